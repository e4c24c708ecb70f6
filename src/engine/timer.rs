//! Measures one turn. Fed with timestamps as things happen; docs/metrics.md defines what comes out.

use std::collections::VecDeque;
use std::time::Duration;

use super::stats::Gaps;
use crate::clock::Timestamp;

/// The span of the live decode rate.
const LIVE_SPAN: Duration = Duration::from_secs(1);

/// The moments of a turn.
#[derive(Debug, Clone, Default)]
pub struct TurnTimer {
    submitted: Timestamp,
    taken_up: Timestamp,
    templated: Timestamp,
    prefill_began: Option<Timestamp>,
    logits_ready: Option<Timestamp>,
    read_tokens: u32,
    first_token: Option<Timestamp>,
    last_token: Option<Timestamp>,
    generated: u32,
    gaps_us: Vec<u32>,
    recent: VecDeque<Timestamp>,
}

impl TurnTimer {
    /// A turn that was submitted and is taken up now.
    #[must_use]
    pub fn start(submitted: Timestamp, now: Timestamp) -> Self {
        TurnTimer {
            submitted,
            taken_up: now,
            templated: now,
            ..TurnTimer::default()
        }
    }

    /// The prompt is rendered and tokenised.
    pub fn templated(&mut self, now: Timestamp) {
        self.templated = now;
    }

    /// The first prefill call begins.
    pub fn prefill_begins(&mut self, now: Timestamp) {
        self.prefill_began.get_or_insert(now);
    }

    /// A prefill call ended after reading `tokens`.
    pub fn prefill_read(&mut self, tokens: u32, now: Timestamp) {
        self.read_tokens += tokens;
        self.logits_ready = Some(now);
    }

    /// A token was sampled; an end-of-generation token counts for the time to the first one alone.
    pub fn sampled(&mut self, kind: Sampled, now: Timestamp) {
        self.first_token.get_or_insert(now);
        match kind {
            Sampled::EndOfGeneration => {}
            Sampled::Text => {
                if let Some(last) = self.last_token {
                    let gap = now.since(last).as_micros();
                    self.gaps_us.push(u32::try_from(gap).unwrap_or(u32::MAX));
                }
                self.last_token = Some(now);
                self.generated += 1;
                self.recent.push_back(now);
                // The latest two stay, however slow: their gap is the rate then.
                while self.recent.len() > 2
                    && self
                        .recent
                        .front()
                        .is_some_and(|at| now.since(*at) > LIVE_SPAN)
                {
                    self.recent.pop_front();
                }
            }
        }
    }

    /// Time since the first prefill call.
    #[must_use]
    pub fn prefill_elapsed(&self, now: Timestamp) -> Duration {
        self.prefill_began
            .map_or(Duration::ZERO, |began| now.since(began))
    }

    /// Prompt tokens read.
    #[must_use]
    pub fn read_tokens(&self) -> u32 {
        self.read_tokens
    }

    /// When the latest token was sampled; the start of the turn before the first.
    #[must_use]
    pub fn last_sampled(&self) -> Timestamp {
        self.last_token.unwrap_or(self.taken_up)
    }

    /// Tokens generated.
    #[must_use]
    pub fn generated(&self) -> u32 {
        self.generated
    }

    /// From submitting to being taken up.
    #[must_use]
    pub fn queue(&self) -> Duration {
        self.taken_up.since(self.submitted)
    }

    /// Rendering and tokenising.
    #[must_use]
    pub fn template(&self) -> Duration {
        self.templated.since(self.taken_up)
    }

    /// From the first prefill call to the end of the last one so far.
    #[must_use]
    pub fn prefill(&self) -> Duration {
        match (self.prefill_began, self.logits_ready) {
            (Some(began), Some(ready)) => ready.since(began),
            _ => Duration::ZERO,
        }
    }

    /// From logits ready to the first token sampled.
    #[must_use]
    pub fn first_sample(&self) -> Option<Duration> {
        Some(self.first_token?.since(self.logits_ready?))
    }

    /// From submitting to the first token sampled.
    #[must_use]
    pub fn ttft(&self) -> Option<Duration> {
        Some(self.first_token?.since(self.submitted))
    }

    /// Tokens read ÷ prefill time, in tokens a second.
    #[must_use]
    pub fn prefill_rate(&self) -> Option<f64> {
        rate(self.read_tokens, self.prefill())
    }

    /// (generated − 1) ÷ (last token's time − first token's time), in tokens a second.
    #[must_use]
    pub fn decode_rate(&self) -> Option<f64> {
        let span = self.last_token?.since(self.first_token?);
        rate(self.generated.saturating_sub(1), span)
    }

    /// The decode rate over the last second.
    #[must_use]
    pub fn live_decode_rate(&self) -> Option<f64> {
        let (first, last) = (self.recent.front()?, self.recent.back()?);
        rate(
            u32::try_from(self.recent.len()).unwrap_or(u32::MAX) - 1,
            last.since(*first),
        )
    }

    /// Percentiles of the time between sampled tokens, by the nearest-rank method.
    #[must_use]
    pub fn gaps(&self) -> Option<Gaps> {
        let mut sorted = self.gaps_us.clone();
        sorted.sort_unstable();
        let rank = |percent: usize| {
            let at = (sorted.len() * percent).div_ceil(100).max(1) - 1;
            sorted.get(at).map(|gap| f64::from(*gap) / 1_000.0)
        };
        Some(Gaps {
            p50: rank(50)?,
            p95: rank(95)?,
            p99: rank(99)?,
        })
    }
}

/// What was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampled {
    /// A token of the reply.
    Text,
    /// The token that ends it.
    EndOfGeneration,
}

/// Tokens a second; `None` without tokens or without time.
fn rate(tokens: u32, span: Duration) -> Option<f64> {
    (tokens > 0 && !span.is_zero()).then(|| f64::from(tokens) / span.as_secs_f64())
}

/// A duration in milliseconds.
#[must_use]
pub fn millis(span: Duration) -> f64 {
    span.as_micros() as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp(ms * 1_000)
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 0.01
    }

    #[test]
    fn a_long_prompt_and_a_short_reply_keep_their_rates_apart() {
        let mut timer = TurnTimer::start(at(0), at(0));
        timer.templated(at(0));
        timer.prefill_begins(at(0));
        timer.prefill_read(2_000, at(15_700));
        for token in 0..43_u64 {
            timer.sampled(
                Sampled::Text,
                Timestamp(15_700_000 + token * 1_650_000 / 43),
            );
        }
        assert!(near(timer.prefill_rate().unwrap(), 127.39));
        assert!(near(timer.decode_rate().unwrap(), 26.06));
        assert_eq!(timer.ttft(), Some(Duration::from_millis(15_700)));
    }

    #[test]
    fn every_chunk_of_the_prompt_is_timed() {
        let mut timer = TurnTimer::start(at(0), at(0));
        timer.prefill_begins(at(0));
        for chunk in 1..=8 {
            timer.prefill_begins(at((chunk - 1) * 1_000));
            timer.prefill_read(512, at(chunk * 1_000));
        }
        assert!(near(timer.prefill_rate().unwrap(), 512.0));
    }

    #[test]
    fn the_parts_of_the_time_to_first_token_add_up() {
        let mut timer = TurnTimer::start(at(10), at(12));
        timer.templated(at(15));
        timer.prefill_begins(at(15));
        timer.prefill_read(20, at(215));
        timer.sampled(Sampled::Text, at(216));
        let parts =
            timer.queue() + timer.template() + timer.prefill() + timer.first_sample().unwrap();
        assert_eq!(timer.ttft(), Some(parts));
        assert!(near(timer.prefill_rate().unwrap(), 100.0));
    }

    #[test]
    fn one_token_has_no_decode_rate_and_none_has_no_gaps() {
        let mut timer = TurnTimer::start(at(0), at(0));
        assert_eq!((timer.decode_rate(), timer.gaps().is_none()), (None, true));
        timer.sampled(Sampled::Text, at(5));
        assert_eq!((timer.decode_rate(), timer.gaps().is_none()), (None, true));
        timer.sampled(Sampled::Text, at(25));
        assert!(near(timer.decode_rate().unwrap(), 50.0));
    }

    #[test]
    fn an_end_token_at_once_still_sets_the_time_to_first_token() {
        let mut timer = TurnTimer::start(at(0), at(0));
        timer.sampled(Sampled::EndOfGeneration, at(30));
        assert_eq!(
            (timer.ttft(), timer.generated()),
            (Some(Duration::from_millis(30)), 0)
        );
    }

    #[test]
    fn the_live_rate_covers_the_last_second_alone() {
        let mut timer = TurnTimer::start(at(0), at(0));
        for token in 0..10 {
            timer.sampled(Sampled::Text, at(token * 500));
        }
        for token in 0..100 {
            timer.sampled(Sampled::Text, at(10_000 + token * 10));
        }
        assert!(near(timer.live_decode_rate().unwrap(), 100.0));
    }

    #[test]
    fn tokens_over_a_second_apart_still_have_a_live_rate() {
        let mut timer = TurnTimer::start(at(0), at(0));
        for token in 0..4 {
            timer.sampled(Sampled::Text, at(token * 4_000));
        }
        assert!(near(timer.live_decode_rate().unwrap(), 0.25));
    }

    #[test]
    fn gaps_are_ranked() {
        let mut timer = TurnTimer::start(at(0), at(0));
        let mut now = 0;
        timer.sampled(Sampled::Text, at(now));
        for gap in 1..=100 {
            now += gap;
            timer.sampled(Sampled::Text, at(now));
        }
        assert_eq!(
            timer.gaps(),
            Some(Gaps {
                p50: 50.0,
                p95: 95.0,
                p99: 99.0
            })
        );
    }
}
