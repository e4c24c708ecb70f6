//! When the next frame is due: at once for a key, at most 60 times a second; for what the engine says at most 30
//! times a second; never without a reason.

use std::time::{Duration, Instant};

/// Shortest time between frames.
const PROMPT: Duration = Duration::from_micros(16_667);
/// Shortest time between a frame and one that only the engine asked for.
const STEADY: Duration = Duration::from_micros(33_333);

/// How much a change hurries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hurry {
    /// It can wait for the next of 30 frames a second.
    Steady,
    /// A person waits for it.
    Prompt,
}

/// Decides when to draw.
#[derive(Debug, Default)]
pub(super) struct Pace {
    wanted: Option<Hurry>,
    last: Option<Instant>,
}

impl Pace {
    /// Something changed.
    pub(super) fn want(&mut self, hurry: Hurry) {
        self.wanted = self.wanted.max(Some(hurry));
    }

    /// When to draw; `None`: nothing changed.
    pub(super) fn due(&self) -> Option<Instant> {
        let gap = match self.wanted? {
            Hurry::Prompt => PROMPT,
            Hurry::Steady => STEADY,
        };
        Some(self.last.map_or_else(Instant::now, |last| last + gap))
    }

    /// A frame was drawn at `now`.
    pub(super) fn drawn(&mut self, now: Instant) {
        self.wanted = None;
        self.last = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_due_without_a_change() {
        let mut pace = Pace::default();
        assert_eq!(pace.due(), None);
        pace.want(Hurry::Steady);
        pace.drawn(Instant::now());
        assert_eq!(pace.due(), None);
    }

    #[test]
    fn a_key_overtakes_the_engine() {
        let mut pace = Pace::default();
        let start = Instant::now();
        pace.drawn(start);
        pace.want(Hurry::Steady);
        assert_eq!(pace.due(), Some(start + STEADY));
        pace.want(Hurry::Prompt);
        assert_eq!(pace.due(), Some(start + PROMPT));
        pace.want(Hurry::Steady);
        assert_eq!(pace.due(), Some(start + PROMPT));
    }
}
