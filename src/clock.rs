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

/// The system's monotonic clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

static ORIGIN: OnceLock<Instant> = OnceLock::new();

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let origin = *ORIGIN.get_or_init(Instant::now);
        Timestamp(u64::try_from(origin.elapsed().as_micros()).unwrap_or(u64::MAX))
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
