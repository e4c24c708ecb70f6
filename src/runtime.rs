//! The one loop that does IO: keys, the engine, the log, jobs and time go in as messages; effects and frames come
//! out. What the screen shows and means is the [`Program`]'s business.

mod ending;
mod input;
mod jobs;
mod pace;
mod turn;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use ratatui::Frame;
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};
use tokio::sync::mpsc;

use crate::app::App;
use crate::app::message::{Effect, Msg};
use crate::chat::keeper::{self, Keeper, StoreEvent};
use crate::clock::Timestamp;
use crate::engine::command::{Command, RequestId};
use crate::engine::{EngineHandle, EngineOutput};
use crate::llama::crash;
use crate::logging::LogSink;
use crate::terminal::{Terminal, report_panics};
use crate::text::sanitize::neutral;
use crate::ui;

pub use ending::{Ending, Signal};
pub use jobs::Library;
pub use watch::signals;

use ending::Endings;
use input::Keyboard;
use turn::Loop;

/// What the loop drives: the state of the screen, without any IO of its own.
pub trait Program {
    /// What is wanted at the start; carried out after the first frame.
    fn start(&mut self, now: Timestamp) -> Vec<Effect>;
    /// Takes a message that arrived at `now`.
    fn update(&mut self, message: Msg, now: Timestamp) -> Vec<Effect>;
    /// How often [`Msg::Tick`] is wanted; `None`: not at all, and then an idle program uses no time.
    fn tick_interval(&self) -> Option<Duration>;
    /// Draws everything.
    fn draw(&self, frame: &mut Frame);
}

impl Program for App {
    fn start(&mut self, now: Timestamp) -> Vec<Effect> {
        App::start(self, now)
    }

    fn update(&mut self, message: Msg, now: Timestamp) -> Vec<Effect> {
        App::update(self, message, now)
    }

    fn tick_interval(&self) -> Option<Duration> {
        App::tick_interval(self)
    }

    fn draw(&self, frame: &mut Frame) {
        ui::draw(frame, self);
    }
}

/// The way to a running engine. Dropping it ends the engine.
pub trait EngineLink {
    /// Queues a command.
    fn send(&self, command: Command);
    /// Cancels every request up to and including `id`.
    fn cancel_through(&self, id: RequestId);
}

impl EngineLink for EngineHandle {
    fn send(&self, command: Command) {
        EngineHandle::send(self, command);
    }

    fn cancel_through(&self, id: RequestId) {
        EngineHandle::cancel_through(self, id);
    }
}

/// What a run needs.
pub struct Session<P, L> {
    /// The state of the screen.
    pub program: P,
    /// Starts the engine; called after the first frame.
    pub spawn_engine: Box<dyn FnOnce() -> anyhow::Result<(L, EngineOutput)>>,
    /// Finds and fetches models.
    pub library: Arc<dyn Library>,
    /// Where chats are kept; `None` keeps none.
    pub chats: Option<keeper::Setup>,
    /// Where messages go.
    pub log: LogSink,
}

/// Runs until the user leaves or something else ends the program. The terminal is given back and the engine has
/// ended when this returns; what had to be said was said on standard error.
///
/// # Errors
/// The terminal can't be taken over, or the engine can't be started.
pub fn run<P: Program, L: EngineLink>(session: Session<P, L>) -> anyhow::Result<Ending> {
    let Session {
        program,
        spawn_engine,
        library,
        chats,
        log,
    } = session;
    let (endings, heard) = Endings::new();
    let panicked = endings.clone();
    report_panics(log.clone(), move || panicked.begin(Ending::Panicked));
    let asked = endings.clone();
    watch::signals(move |signal| asked.begin(Ending::Signal(signal)))
        .context("cannot watch for signals")?;
    let io = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the loop")?;
    io.block_on(async {
        let terminal = Terminal::enter(&log)?;
        watch::terminal(terminal.tty().try_clone_to_owned()?, endings.clone())?;
        let (jobs, job_messages) = jobs::Jobs::new(library);
        let keeper = chats.map(|chats| keep(chats, jobs.results())).transpose()?;
        let mut turn = Loop::new(program, terminal, jobs, keeper);
        let wanted = turn.first_frame();
        let (engine, output) = spawn_engine()?;
        let sources = Sources {
            endings: heard,
            keys: Keyboard::open().context("cannot read the keyboard")?,
            engine: Some(output),
            jobs: job_messages,
            window: signal(SignalKind::window_change())?,
            stop: signal(SignalKind::from_raw(libc::SIGTSTP))?,
            resume: signal(SignalKind::from_raw(libc::SIGCONT))?,
            log,
        };
        let ending = turn.run(&engine, sources, wanted).await;
        if turn.keeps_state() {
            endings.wait_for_state();
        }
        endings.begin(ending);
        // The last words go to the disk while the terminal, which may not answer any more, is given back.
        let farewell = turn.leave();
        if let Some(message) = ending.message() {
            crash::say(&message);
        }
        if let Some(message) = farewell
            .and_then(Keeper::close)
            .and_then(|words| words.message())
        {
            crash::say(&neutral(&message));
        }
        drop(engine);
        endings.finish();
        Ok(ending)
    })
}

/// Starts to keep chats; what becomes of them arrives as messages.
fn keep(chats: keeper::Setup, results: mpsc::UnboundedSender<Msg>) -> anyhow::Result<Keeper> {
    Keeper::start(chats, move |event| {
        if let StoreEvent::Kept { reopen, .. } = &event {
            crash::set_last_words(&neutral(&format!("Go on with this chat: {reopen}")));
        }
        let _ = results.send(Msg::Store(event));
    })
    .context("the thread that keeps the chats can't be started")
}

/// Everything that the loop waits for.
struct Sources {
    endings: mpsc::UnboundedReceiver<Ending>,
    keys: Keyboard,
    engine: Option<EngineOutput>,
    jobs: mpsc::UnboundedReceiver<Msg>,
    window: SignalStream,
    stop: SignalStream,
    resume: SignalStream,
    log: LogSink,
}
