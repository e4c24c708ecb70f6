//! Time as plain data. Every measured number is a difference of two [`Timestamp`]s, so that tests pin the
//! numbers with a [`FakeClock`] and events stay serialisable.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// A moment, in microseconds since the process first asked for the time.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The time from `earlier` to `self`; zero where `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// The moment `span` after this one.
    #[must_use]
    pub fn plus(self, span: Duration) -> Timestamp {
        Timestamp(self.0 + u64::try_from(span.as_micros()).unwrap_or(u64::MAX - self.0))
    }
}

/// Where the time comes from.
pub trait Clock: Send + Sync {
    /// The present moment; it never runs backwards.
    fn now(&self) -> Timestamp;
}

/// The system's monotonic clock, less the time that the process was stopped (Ctrl-Z, `kill -STOP`): a stopped process
/// measures nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

static ORIGIN: OnceLock<Instant> = OnceLock::new();
static STOPS: Stops = Stops::new();

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let origin = *ORIGIN.get_or_init(Instant::now);
        Timestamp(STOPS.running(micros(origin.elapsed())))
    }
}

/// The process was stopped until now. Safe in a signal handler.
pub fn continued() {
    if let Some(origin) = ORIGIN.get() {
        STOPS.continued(micros(origin.elapsed()));
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// A step between two readings of the clock that may have been a stop, in microseconds.
const STEP: u64 = 100_000;
/// How long after a step its stop is told of at the latest, in microseconds.
const TELLING: u64 = 200_000;

/// How long the process was stopped, in microseconds. A stop announces nothing, only its end does; it began after the
/// clock was last read, which happens with every token and every frame.
#[derive(Debug)]
struct Stops {
    stopped: AtomicU64,
    read: AtomicU64,
    /// The last large step between two readings: another thread may read the clock before the end of the stop is told.
    step_from: AtomicU64,
    step_to: AtomicU64,
}

impl Stops {
    const fn new() -> Stops {
        Stops {
            stopped: AtomicU64::new(0),
            read: AtomicU64::new(0),
            step_from: AtomicU64::new(0),
            step_to: AtomicU64::new(0),
        }
    }

    /// The running time at `now` on the system's clock.
    fn running(&self, now: u64) -> u64 {
        let before = self.read.fetch_max(now, Ordering::SeqCst);
        if now.saturating_sub(before) > STEP {
            self.step_from.store(before, Ordering::SeqCst);
            self.step_to.store(now, Ordering::SeqCst);
        }
        now.saturating_sub(self.stopped.load(Ordering::SeqCst))
    }

    /// A stop ended at `now` on the system's clock.
    fn continued(&self, now: u64) {
        let step_to = self.step_to.load(Ordering::SeqCst);
        let began = if step_to > 0 && now.saturating_sub(step_to) < TELLING {
            self.step_from.load(Ordering::SeqCst)
        } else {
            self.read.load(Ordering::SeqCst)
        };
        self.stopped
            .fetch_add(now.saturating_sub(began), Ordering::SeqCst);
        self.read.fetch_max(now, Ordering::SeqCst);
        self.step_to.store(0, Ordering::SeqCst);
    }
}

/// A clock that moves only when told to; clones share one time.
#[derive(Debug, Clone, Default)]
pub struct FakeClock(Arc<AtomicU64>);

impl FakeClock {
    /// Moves the time forward.
    pub fn advance(&self, span: Duration) {
        self.0.fetch_add(
            u64::try_from(span.as_micros()).unwrap_or(u64::MAX),
            Ordering::SeqCst,
        );
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    #[test]
    fn stopped_time_is_left_out() {
        let stops = Stops::new();
        assert_eq!(stops.running(SECOND), SECOND);
        stops.continued(11 * SECOND);
        assert_eq!(stops.running(11 * SECOND), SECOND);
        assert_eq!(stops.running(12 * SECOND), 2 * SECOND);
        stops.continued(20 * SECOND);
        assert_eq!(stops.running(20 * SECOND), 2 * SECOND);
    }

    #[test]
    fn a_thread_that_reads_the_clock_before_the_stop_is_told_changes_nothing() {
        let stops = Stops::new();
        assert_eq!(stops.running(SECOND), SECOND);
        stops.running(11 * SECOND);
        stops.continued(11 * SECOND + 40);
        assert_eq!(stops.running(11 * SECOND + 40), SECOND);
        // A continuation without a stop takes out only the time since the last reading.
        stops.running(11 * SECOND + 500);
        stops.continued(11 * SECOND + 600);
        assert_eq!(stops.running(11 * SECOND + 600), SECOND + 460);
    }
}
