//! The worker: one thread owns the model, its context and the samplers, and keeps the KV cache alive between
//! turns. The interface talks to it in [`command`]s and hears [`event`]s; neither ever waits for the other.

mod ahead;
pub mod bytes_text;
mod cache;
pub mod command;
pub mod event;
mod expendable;
pub mod inference;
pub mod ledger;
pub mod local;
pub mod options;
pub mod prompt;
pub mod sampling;
mod snapshot;
pub mod stats;
pub mod stream;
pub mod timer;
pub mod token;
mod turn;
mod worker;

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use tokio::sync::{mpsc, watch};

use crate::clock::Clock;
use command::{Command, RequestId};
use event::{Event, Gauges};
use inference::{Interrupt, Loader};

/// The engine thread's stack, in bytes: some tokenizers recurse deeply.
pub(crate) const STACK_BYTES: usize = 64 << 20;

/// The way to a running engine. Dropping it cancels everything, closes the channel and joins the thread.
pub struct EngineHandle {
    commands: Option<Sender<Command>>,
    interrupt: Arc<Interrupt>,
    thread: Option<JoinHandle<()>>,
}

/// What a running engine says.
pub struct EngineOutput {
    /// Everything that happens, in order. The channel closes when the thread ends, however it ends.
    pub events: mpsc::UnboundedReceiver<Event>,
    /// The latest values.
    pub gauges: watch::Receiver<Gauges>,
}

/// Starts the engine thread.
///
/// # Errors
/// The system can't start a thread.
pub fn spawn(
    loader: Box<dyn Loader>,
    clock: Arc<dyn Clock>,
) -> std::io::Result<(EngineHandle, EngineOutput)> {
    let (commands, inbox) = channel();
    let (outbox, events) = mpsc::unbounded_channel();
    let (gauges_in, gauges) = watch::channel(Gauges::default());
    let interrupt = Arc::new(Interrupt::default());
    let worker = worker::Worker::new(
        worker::Line {
            inbox,
            events: outbox,
            gauges: gauges_in,
        },
        loader,
        Arc::clone(&interrupt),
        clock,
    );
    let thread = std::thread::Builder::new()
        .name("engine".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || worker.run())?;
    let handle = EngineHandle {
        commands: Some(commands),
        interrupt,
        thread: Some(thread),
    };
    Ok((handle, EngineOutput { events, gauges }))
}

impl EngineHandle {
    /// Queues a command. A command to an engine that has ended is dropped; the engine said so by
    /// [`Event::Stopped`] or by closing the channel.
    pub fn send(&self, command: Command) {
        if let Some(commands) = &self.commands {
            let _ = commands.send(command);
        }
    }

    /// Cancels every request up to and including `id`, the running one within 50 ms.
    pub fn cancel_through(&self, id: RequestId) {
        self.interrupt.cancel_through(id.0);
    }

    /// What cancels requests, for whoever must do so from another thread.
    #[must_use]
    pub fn interrupt(&self) -> Arc<Interrupt> {
        Arc::clone(&self.interrupt)
    }
}

impl Drop for EngineHandle {
    fn drop(&mut self) {
        self.cancel_through(RequestId(u64::MAX));
        self.send(Command::Shutdown);
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
