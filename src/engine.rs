//! The worker: one thread owns the model, its context and the samplers, and keeps the KV cache alive between
//! turns. The interface talks to it in [`command`]s and hears [`event`]s; neither ever waits for the other.

pub mod bytes_text;
pub mod command;
pub mod event;
pub mod options;
pub mod sampling;
pub mod stats;
pub mod token;

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use command::{Command, RequestId};
use event::{Event, Gauges};

/// The way to a running engine. Dropping it cancels everything, closes the channel and joins the thread.
pub struct EngineHandle {
    commands: std::sync::mpsc::Sender<Command>,
    cancelled: Arc<std::sync::atomic::AtomicU64>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// What a running engine says.
pub struct EngineOutput {
    /// Everything that happens, in order.
    pub events: mpsc::UnboundedReceiver<Event>,
    /// The latest values.
    pub gauges: watch::Receiver<Gauges>,
}

impl EngineHandle {
    /// Queues a command. A command to an engine that has ended is dropped; the engine said so by
    /// [`Event::Stopped`].
    pub fn send(&self, command: Command) {
        let _ = self.commands.send(command);
    }

    /// Cancels every request up to and including `id`, the running one within 50 ms.
    pub fn cancel_through(&self, id: RequestId) {
        self.cancelled.fetch_max(id.0, std::sync::atomic::Ordering::SeqCst);
    }
}

impl Drop for EngineHandle {
    fn drop(&mut self) {
        self.cancel_through(RequestId(u64::MAX));
        self.send(Command::Shutdown);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
