//! The numbers of the running turn and of the last one, by the definitions of docs/metrics.md.

use std::collections::VecDeque;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::event::{Gauges, PrefillProgress, SampledToken};
use crate::engine::stats::{Gaps, TurnStats};

/// How many rates a sparkline keeps.
const RATES: usize = 24;
/// A token that takes longer than the span of the live rate slows it down before it comes.
const OVERDUE: Duration = Duration::from_secs(1);
/// The time between two rates of the decode sparkline.
const DECODE_SAMPLE: Duration = Duration::from_millis(250);

/// What the panels show of one turn.
#[derive(Debug, Clone, Default)]
pub struct Meter {
    /// Time to first token, once there is one.
    pub ttft: Option<Duration>,
    /// How far the prompt is read, and when that was heard.
    pub prefill: Option<(PrefillProgress, Timestamp)>,
    /// Prefill rate of each chunk, tokens a second.
    pub prefill_rates: VecDeque<f64>,
    /// Decode rate a few times a second.
    pub decode_rates: VecDeque<f64>,
    /// Decode rate over the last second, while tokens come.
    pub decode_tok_s: Option<f64>,
    /// Tokens sampled.
    pub generated: u32,
    /// The last token, with those that could have come instead.
    pub token: Option<SampledToken>,
    /// The finished turn's numbers.
    pub stats: Option<Box<TurnStats>>,
    /// Where in the prompt the conversation's first message stands: behind the system prompt, or first.
    pub first_message: usize,
    /// A prefill rate measured earlier, for the time left before this prefill has one.
    known_prefill_tok_s: Option<f64>,
    gaps_micros: Vec<u64>,
    decode_sampled: Option<Timestamp>,
}

impl Meter {
    /// A turn begins, whose prompt has the conversation's first message at `first_message`.
    pub fn begin(&mut self, first_message: usize) {
        let known = self.prefill_tok_s().or(self.known_prefill_tok_s);
        *self = Meter {
            first_message,
            known_prefill_tok_s: known,
            ..Meter::default()
        };
    }

    /// Part of the prompt was read.
    pub fn prefilled(&mut self, progress: PrefillProgress, now: Timestamp) {
        let (read, elapsed) = self
            .prefill
            .as_ref()
            .map_or((0, Duration::ZERO), |(last, _)| {
                (last.read_tokens, last.elapsed)
            });
        let chunk = progress.read_tokens.saturating_sub(read);
        let took = progress.elapsed.saturating_sub(elapsed);
        if chunk > 0 && !took.is_zero() {
            push(
                &mut self.prefill_rates,
                f64::from(chunk) / took.as_secs_f64(),
            );
        }
        self.prefill = Some((progress, now));
    }

    /// A token arrived `since_submit` after the turn was submitted.
    pub fn sampled(&mut self, token: SampledToken, since_submit: Duration) {
        self.ttft.get_or_insert(since_submit);
        if let Some(last) = &self.token {
            let gap = u64::try_from(token.at.since(last.at).as_micros()).unwrap_or(u64::MAX);
            let place = self.gaps_micros.partition_point(|other| *other < gap);
            self.gaps_micros.insert(place, gap);
        }
        self.generated += 1;
        self.token = Some(token);
    }

    /// The engine's latest values arrived while tokens come.
    pub fn gauged(&mut self, gauges: &Gauges, now: Timestamp) {
        if self.generated < 2 {
            return;
        }
        self.decode_tok_s = gauges.decode_tok_s;
        let due = self
            .decode_sampled
            .is_none_or(|last| now.since(last) >= DECODE_SAMPLE);
        if let (true, Some(rate)) = (due, gauges.decode_tok_s) {
            push(&mut self.decode_rates, rate);
            self.decode_sampled = Some(now);
        }
    }

    /// The turn ended. Its time to first token is the one measured here, where the token arrived.
    pub fn finished(&mut self, mut stats: Box<TurnStats>) -> Box<TurnStats> {
        if let Some(ttft) = self.ttft {
            stats.ttft_ms = Some(ttft.as_secs_f64() * 1e3);
        }
        self.generated = stats.generated_tokens;
        self.stats = Some(stats.clone());
        stats
    }

    /// Prefill rate: of the finished turn, else so far.
    #[must_use]
    pub fn prefill_tok_s(&self) -> Option<f64> {
        if let Some(stats) = &self.stats {
            return stats.prefill_tok_s;
        }
        let (progress, _) = self.prefill.as_ref()?;
        let seconds = progress.elapsed.as_secs_f64();
        (progress.read_tokens > 0 && seconds > 0.0)
            .then(|| f64::from(progress.read_tokens) / seconds)
    }

    /// Decode rate: of the finished turn, else over the last second; none below two tokens. While a token is overdue,
    /// the rate is at most what it would be if the token came now.
    #[must_use]
    pub fn decode_tok_s(&self, now: Timestamp) -> Option<f64> {
        if let Some(stats) = &self.stats {
            return stats.decode_tok_s;
        }
        let waited = self
            .token
            .as_ref()
            .map_or(Duration::ZERO, |last| now.since(last.at));
        let most = if waited > OVERDUE {
            waited.as_secs_f64().recip()
        } else {
            f64::INFINITY
        };
        self.decode_tok_s.map(|rate| rate.min(most))
    }

    /// The time that the rest of the prompt will take, estimated from the rate so far or, before the first
    /// chunk, from that of an earlier turn.
    #[must_use]
    pub fn prefill_left(&self, now: Timestamp) -> Option<Duration> {
        let (progress, heard) = self.prefill.as_ref()?;
        let rate = self
            .prefill_tok_s()
            .or(self.known_prefill_tok_s)
            .filter(|rate| *rate > 0.0)?;
        let rest = progress.to_read_tokens.saturating_sub(progress.read_tokens);
        (rest > 0).then(|| {
            Duration::from_secs_f64(f64::from(rest) / rate).saturating_sub(now.since(*heard))
        })
    }

    /// Percentiles of the time between tokens, by nearest rank; none below two tokens.
    #[must_use]
    pub fn gaps(&self) -> Option<Gaps> {
        if let Some(stats) = &self.stats {
            return stats.gap_ms;
        }
        let count = self.gaps_micros.len();
        let at = |percent: usize| {
            self.gaps_micros[(count * percent).div_ceil(100).saturating_sub(1)] as f64 / 1e3
        };
        (count > 0).then(|| Gaps {
            p50: at(50),
            p95: at(95),
            p99: at(99),
        })
    }
}

fn push(rates: &mut VecDeque<f64>, rate: f64) {
    if rates.len() == RATES {
        rates.pop_front();
    }
    rates.push_back(rate);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(read: u32, to_read: u32, millis: u64) -> PrefillProgress {
        PrefillProgress {
            read_tokens: read,
            to_read_tokens: to_read,
            elapsed: Duration::from_millis(millis),
            ..PrefillProgress::default()
        }
    }

    fn token(at: u64) -> SampledToken {
        SampledToken {
            id: crate::engine::token::TokenId(1),
            bytes: Vec::new(),
            text: String::new(),
            thinking_len: 0,
            probability: 1.0,
            alternatives: Vec::new(),
            at: Timestamp(at),
            temperature: 0.7,
            sampling: None,
        }
    }

    #[test]
    fn the_time_left_counts_down_between_two_chunks() {
        let mut meter = Meter::default();
        meter.prefilled(progress(0, 2_000, 0), Timestamp(0));
        assert_eq!(meter.prefill_left(Timestamp(0)), None);
        meter.prefilled(progress(500, 2_000, 1_000), Timestamp(1_000_000));
        assert_eq!(
            meter.prefill_left(Timestamp(1_000_000)),
            Some(Duration::from_secs(3))
        );
        assert_eq!(
            meter.prefill_left(Timestamp(1_500_000)),
            Some(Duration::from_millis(2_500))
        );
    }

    #[test]
    fn before_its_first_chunk_a_prefill_goes_by_the_rate_of_the_turn_before() {
        let mut meter = Meter::default();
        meter.prefilled(progress(500, 500, 1_000), Timestamp(0));
        meter.begin(0);
        meter.prefilled(progress(0, 1_000, 0), Timestamp(0));
        assert_eq!(meter.prefill_tok_s(), None);
        assert_eq!(
            meter.prefill_left(Timestamp(0)),
            Some(Duration::from_secs(2))
        );
    }

    #[test]
    fn the_rate_of_a_chunk_counts_only_its_own_tokens_and_time() {
        let mut meter = Meter::default();
        meter.prefilled(progress(512, 1_024, 1_000), Timestamp(0));
        meter.prefilled(progress(1_024, 1_024, 3_000), Timestamp(0));
        assert_eq!(meter.prefill_rates, [512.0, 256.0]);
    }

    #[test]
    fn gaps_are_percentiles_by_nearest_rank_and_need_two_tokens() {
        let mut meter = Meter::default();
        meter.sampled(token(0), Duration::from_millis(300));
        assert_eq!(meter.gaps(), None);
        let mut at = 0;
        for gap in 1..=100 {
            at += gap * 1_000;
            meter.sampled(token(at), Duration::from_secs(9));
        }
        assert_eq!(
            meter.gaps(),
            Some(Gaps {
                p50: 50.0,
                p95: 95.0,
                p99: 99.0
            })
        );
        assert_eq!(meter.ttft, Some(Duration::from_millis(300)));
    }

    #[test]
    fn a_live_decode_rate_is_shown_from_the_second_token_on() {
        let mut meter = Meter {
            generated: 1,
            ..Meter::default()
        };
        let gauges = Gauges {
            decode_tok_s: Some(61.2),
            ..Gauges::default()
        };
        meter.gauged(&gauges, Timestamp(0));
        assert_eq!(meter.decode_tok_s(Timestamp(0)), None);
        meter.generated = 2;
        meter.gauged(&gauges, Timestamp(0));
        meter.gauged(&gauges, Timestamp(1));
        assert_eq!(meter.decode_tok_s(Timestamp(1)), Some(61.2));
        assert_eq!(meter.decode_rates.len(), 1);
    }

    #[test]
    fn a_token_that_does_not_come_slows_the_rate_down() {
        let mut meter = Meter::default();
        for at in [1_000_000, 1_016_000] {
            meter.sampled(token(at), Duration::ZERO);
        }
        let gauges = Gauges {
            decode_tok_s: Some(62.5),
            ..Gauges::default()
        };
        meter.gauged(&gauges, Timestamp(1_016_000));
        assert_eq!(meter.decode_tok_s(Timestamp(1_500_000)), Some(62.5));
        assert_eq!(meter.decode_tok_s(Timestamp(5_016_000)), Some(0.25));
    }
}
