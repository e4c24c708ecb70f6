//! Why the program ends, and the promise that it does: every ending starts a countdown, so that a thread hanging in
//! foreign code or in a write to a dead terminal can't keep the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::llama::crash;

/// From an ending to the process's hard exit.
const COUNTDOWN: Duration = Duration::from_millis(1500);

/// The same where the user left and a chat's state is written first.
const KEEPING: Duration = Duration::from_secs(15);

/// Why the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The user left.
    Quit,
    /// A signal asked for it.
    Signal(Signal),
    /// The terminal is gone.
    TerminalLost,
    /// A thread panicked.
    Panicked,
}

/// A signal that asks the program to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// The terminal or the session ended.
    Hangup,
    /// An interrupt from outside; Ctrl-C is a key here.
    Interrupt,
    /// A quit from outside.
    Quit,
    /// The usual request.
    Terminate,
}

impl Signal {
    /// All of them.
    pub(super) const ALL: [Signal; 4] = [
        Signal::Hangup,
        Signal::Interrupt,
        Signal::Quit,
        Signal::Terminate,
    ];

    /// Its number.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            Signal::Hangup => libc::SIGHUP,
            Signal::Interrupt => libc::SIGINT,
            Signal::Quit => libc::SIGQUIT,
            Signal::Terminate => libc::SIGTERM,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Signal::Hangup => "SIGHUP",
            Signal::Interrupt => "SIGINT",
            Signal::Quit => "SIGQUIT",
            Signal::Terminate => "SIGTERM",
        }
    }
}

impl Ending {
    /// The exit code: 0 for an end by the user, 128 + the signal's number, 101 for a panic, as for SIGHUP where the
    /// terminal is gone.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Ending::Quit => 0,
            Ending::Signal(signal) => 128 + u8::try_from(signal.number()).unwrap_or_default(),
            Ending::TerminalLost => 128 + u8::try_from(libc::SIGHUP).unwrap_or_default(),
            Ending::Panicked => 101,
        }
    }

    /// What to say on the normal screen, where anything needs saying that was not said yet.
    #[must_use]
    pub fn message(self) -> Option<String> {
        match self {
            Ending::Signal(signal) => {
                Some(format!("platen was asked to stop ({})\n", signal.name()))
            }
            Ending::Quit | Ending::TerminalLost | Ending::Panicked => None,
        }
    }
}

/// Where threads announce an ending.
#[derive(Debug, Clone)]
pub(super) struct Endings {
    announce: mpsc::UnboundedSender<Ending>,
    counting: Arc<AtomicBool>,
    finished: Arc<AtomicBool>,
    /// Whether a chat's state is being written, which may take longer.
    keeping: Arc<AtomicBool>,
}

impl Endings {
    pub(super) fn new() -> (Endings, mpsc::UnboundedReceiver<Ending>) {
        let (announce, heard) = mpsc::unbounded_channel();
        (
            Endings {
                announce,
                counting: Arc::default(),
                finished: Arc::default(),
                keeping: Arc::default(),
            },
            heard,
        )
    }

    /// Announces an ending and starts the countdown to the hard exit. The first ending decides.
    pub(super) fn begin(&self, ending: Ending) {
        let _ = self.announce.send(ending);
        if !self.counting.swap(true, Ordering::SeqCst) {
            let finished = self.finished.clone();
            let is_patient = ending == Ending::Quit && self.keeping.load(Ordering::SeqCst);
            let countdown = if is_patient { KEEPING } else { COUNTDOWN };
            let count = move || {
                std::thread::sleep(countdown);
                if finished.load(Ordering::SeqCst) {
                    return;
                }
                if crash::release()
                    && let Some(message) = ending.message()
                {
                    crash::say(&message);
                    crash::say_last_words();
                }
                crash::exit_now(ending.exit_code());
            };
            if let Err(error) = std::thread::Builder::new()
                .name("platen-countdown".into())
                .spawn(count)
            {
                tracing::error!("cannot guard the end of the program: {error}");
            }
        }
    }

    /// A chat's state is to be written before the program ends by the user's wish.
    pub(super) fn wait_for_state(&self) {
        self.keeping.store(true, Ordering::SeqCst);
    }

    /// Everything ended in time: the countdown is off.
    pub(super) fn finish(&self) {
        self.finished.store(true, Ordering::SeqCst);
    }
}
