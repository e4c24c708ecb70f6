//! Cancelling without a flag to reset: requests carry growing ids, and one number says through which id they are
//! cancelled. A late cancel can therefore never hit the next request.

use std::sync::atomic::{AtomicU64, Ordering};

/// Which request runs and which are cancelled; shared between the engine, its handle and llama.cpp's callbacks.
#[derive(Debug, Default)]
pub struct Interrupt {
    cancelled_through: AtomicU64,
    running: AtomicU64,
}

impl Interrupt {
    /// Cancels every request up to and including `id`.
    pub fn cancel_through(&self, id: u64) {
        self.cancelled_through.fetch_max(id, Ordering::SeqCst);
    }

    /// Says that request `id` runs from now on.
    pub fn begin(&self, id: u64) {
        self.running.store(id, Ordering::SeqCst);
    }

    /// Whether the running request is cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.covers(self.running.load(Ordering::SeqCst))
    }

    /// Whether request `id` is cancelled.
    #[must_use]
    pub fn covers(&self, id: u64) -> bool {
        self.cancelled_through.load(Ordering::SeqCst) >= id
    }
}
