//! One turn of the loop: wait, take everything that is there, carry out the effects, draw if a frame is due.

use std::future::pending;
use std::time::Instant;

use rustix::process::{Signal, getpid, kill_process};

use super::input::{Batch, Digest};
use super::jobs::Jobs;
use super::pace::{Hurry, Pace};
use super::{Ending, EngineLink, Program, Sources};
use crate::app::message::{Effect, Msg};
use crate::chat::keeper::Keeper;
use crate::clock::{Clock, SystemClock};
use crate::engine::EngineOutput;
use crate::engine::command::Command;
use crate::engine::event::{Event, Gauges};
use crate::llama::crash;
use crate::terminal::Terminal;

/// Most waiting engine events taken before a key gets its turn.
const ENGINE_BATCH: usize = 1024;

/// What ended the wait.
enum Woken {
    Ending(Ending),
    Keys(Batch),
    /// An Enter waited long enough.
    Enter,
    Engine(Heard),
    Job(Msg),
    Log,
    Window,
    Stop,
    Resume,
    Tick,
    Frame,
}

/// What the engine said.
enum Heard {
    Event(Event),
    Gauges(Gauges),
    /// It ended; nothing follows.
    End,
}

/// The loop's own state.
pub(super) struct Loop<P> {
    program: P,
    terminal: Terminal,
    jobs: Jobs,
    keeper: Option<Keeper>,
    pace: Pace,
    digest: Digest,
    ticked: Instant,
    ending: Option<Ending>,
    /// Whether the engine's last event was a token: more of them can wait for the frame that is due, and each wake
    /// would take a core from the threads that compute.
    streaming: bool,
    /// Whether the engine was asked to write a chat's state.
    keeps_state: bool,
}

impl<P: Program> Loop<P> {
    pub(super) fn new(program: P, terminal: Terminal, jobs: Jobs, keeper: Option<Keeper>) -> Self {
        Loop {
            program,
            terminal,
            jobs,
            keeper,
            pace: Pace::default(),
            digest: Digest::default(),
            ticked: Instant::now(),
            ending: None,
            streaming: false,
            keeps_state: false,
        }
    }

    /// Draws before anything slow; what the program wants at its start is returned for [`Loop::run`].
    pub(super) fn first_frame(&mut self) -> Vec<Effect> {
        let mut wanted = match self.terminal.size() {
            Ok((width, height)) => {
                let size = Msg::Resize { width, height };
                self.program.update(size, SystemClock.now())
            }
            Err(error) => {
                self.lost(&error);
                Vec::new()
            }
        };
        wanted.extend(self.program.start(SystemClock.now()));
        self.draw();
        wanted
    }

    /// Turns until the program ends.
    pub(super) async fn run(
        &mut self,
        engine: &impl EngineLink,
        mut sources: Sources,
        wanted: Vec<Effect>,
    ) -> Ending {
        self.carry_out(wanted, engine);
        loop {
            if let Some(ending) = self.ending {
                return ending;
            }
            match self.wait(&mut sources).await {
                Woken::Ending(ending) => return ending,
                Woken::Keys(batch) => self.keys(batch, engine),
                Woken::Enter => {
                    for message in self.digest.overdue(Instant::now()) {
                        self.take(message, Hurry::Prompt, engine);
                    }
                }
                Woken::Engine(heard) => {
                    if let Heard::End = heard {
                        sources.engine = None;
                    }
                    self.heard(heard, engine);
                }
                Woken::Job(message) => self.take(message, Hurry::Steady, engine),
                Woken::Log => self.log(&sources, engine),
                Woken::Window => self.resize(engine),
                Woken::Stop => self.pause(stop_alone, engine),
                Woken::Resume => self.resumed(engine),
                Woken::Tick => {
                    self.ticked = Instant::now();
                    self.take(Msg::Tick, Hurry::Steady, engine);
                }
                Woken::Frame => {}
            }
            self.drain(&mut sources, engine);
            if self.pace.due().is_some_and(|due| due <= Instant::now()) {
                self.draw();
            }
        }
    }

    /// Whether the engine was asked to write a chat's state, which it does before it ends.
    pub(super) fn keeps_state(&self) -> bool {
        self.keeps_state
    }

    /// Gives the terminal back; meanwhile what is left of the chats is being written.
    pub(super) fn leave(&mut self) -> Option<Keeper> {
        if let Some(keeper) = &mut self.keeper {
            keeper.begin_close();
        }
        self.terminal.leave();
        self.keeper.take()
    }

    async fn wait(&self, sources: &mut Sources) -> Woken {
        let tick = self
            .program
            .tick_interval()
            .map(|interval| self.ticked + interval);
        let tokens_can_wait = self.streaming && self.pace.due().is_some();
        tokio::select! {
            biased;
            Some(ending) = sources.endings.recv() => Woken::Ending(ending),
            Some(batch) = sources.keys.batches.recv() => Woken::Keys(batch),
            () = at(self.digest.due()) => Woken::Enter,
            Some(()) = sources.window.recv() => Woken::Window,
            Some(()) = sources.stop.recv() => Woken::Stop,
            Some(()) = sources.resume.recv() => Woken::Resume,
            () = at(self.pace.due()) => Woken::Frame,
            heard = listen(sources.engine.as_mut()), if !tokens_can_wait => Woken::Engine(heard),
            Some(message) = sources.jobs.recv() => Woken::Job(message),
            () = sources.log.added() => Woken::Log,
            () = at(tick) => Woken::Tick,
        }
    }

    /// Takes everything else that is already there, so that one frame shows all of it.
    fn drain(&mut self, sources: &mut Sources, engine: &impl EngineLink) {
        while let Ok(batch) = sources.keys.batches.try_recv() {
            self.keys(batch, engine);
        }
        for _ in 0..ENGINE_BATCH {
            let Some(Ok(event)) = sources
                .engine
                .as_mut()
                .map(|output| output.events.try_recv())
            else {
                break;
            };
            self.heard(Heard::Event(event), engine);
        }
        let gauges = sources
            .engine
            .as_mut()
            .filter(|output| output.gauges.has_changed().unwrap_or(false));
        if let Some(gauges) = gauges.map(|output| output.gauges.borrow_and_update().clone()) {
            self.heard(Heard::Gauges(gauges), engine);
        }
        while let Ok(message) = sources.jobs.try_recv() {
            self.take(message, Hurry::Steady, engine);
        }
        self.log(sources, engine);
    }

    fn keys(&mut self, batch: Batch, engine: &impl EngineLink) {
        for message in self.digest.messages(batch) {
            self.take(message, Hurry::Prompt, engine);
        }
    }

    fn heard(&mut self, heard: Heard, engine: &impl EngineLink) {
        if let Heard::Event(event) = &heard {
            self.streaming = matches!(event, Event::Token { .. });
        }
        match heard {
            Heard::Event(event) => self.take(Msg::Engine(event), Hurry::Steady, engine),
            Heard::Gauges(gauges) => self.take(Msg::Gauges(gauges), Hurry::Steady, engine),
            Heard::End => {}
        }
    }

    fn log(&mut self, sources: &Sources, engine: &impl EngineLink) {
        let lines = sources.log.take();
        if !lines.is_empty() {
            self.take(Msg::Log(lines), Hurry::Steady, engine);
        }
    }

    /// The window has another size, or had one for a moment: the terminal may have cut what it showed, so everything is
    /// drawn again also where the size is the one that was known.
    fn resize(&mut self, engine: &impl EngineLink) {
        if let Err(error) = self.terminal.redraw() {
            return self.lost(&error);
        }
        match self.terminal.size() {
            Ok((width, height)) => self.take(Msg::Resize { width, height }, Hurry::Prompt, engine),
            Err(error) => self.lost(&error),
        }
    }

    /// Stops with the terminal given back, and takes it again when continued. The clock is read first: what follows
    /// its last reading counts as stopped.
    fn pause(&mut self, stop: impl FnOnce() -> std::io::Result<()>, engine: &impl EngineLink) {
        self.terminal.leave();
        SystemClock.now();
        if let Err(error) = stop() {
            tracing::warn!("cannot stop: {error}");
        }
        if let Err(error) = self.terminal.take() {
            self.ending = Some(Ending::TerminalLost);
            tracing::error!("cannot take the terminal again: {error:#}");
        }
        // A change of size while stopped was told to whoever had the terminal then.
        self.resize(engine);
    }

    /// Continued after a stop that came without warning.
    fn resumed(&mut self, engine: &impl EngineLink) {
        if let Err(error) = self.terminal.take_again() {
            tracing::warn!("{error:#}");
        }
        self.resize(engine);
    }

    fn take(&mut self, message: Msg, hurry: Hurry, engine: &impl EngineLink) {
        let effects = self.program.update(message, SystemClock.now());
        self.pace.want(hurry);
        self.carry_out(effects, engine);
    }

    fn carry_out(&mut self, effects: Vec<Effect>, engine: &impl EngineLink) {
        for effect in effects {
            match effect {
                Effect::Engine(command) => {
                    self.keeps_state |= matches!(command, Command::Save { .. });
                    engine.send(command);
                }
                Effect::CancelThrough(id) => engine.cancel_through(id),
                Effect::ScanModels => self.jobs.scan(),
                Effect::Download { name } => self.jobs.download(name),
                Effect::CancelDownload => self.jobs.cancel_download(),
                Effect::Copy(text) => {
                    if let Err(error) = self.terminal.copy(&text) {
                        self.lost(&error);
                    }
                }
                Effect::Store(command) => {
                    if let Some(keeper) = &self.keeper {
                        keeper.send(command);
                    }
                }
                Effect::Redraw => {
                    if let Err(error) = self.terminal.redraw() {
                        self.lost(&error);
                    }
                }
                Effect::Suspend => self.pause(crash::stop_job, engine),
                Effect::Quit => self.ending = Some(Ending::Quit),
            }
        }
    }

    fn draw(&mut self) {
        if let Err(error) = self.terminal.draw(|frame| self.program.draw(frame)) {
            self.lost(&error);
        }
        self.pace.drawn(Instant::now());
    }

    fn lost(&mut self, error: &std::io::Error) {
        tracing::error!("the terminal is gone: {error}");
        self.ending = Some(Ending::TerminalLost);
    }
}

/// Stops this process, as somebody outside asked.
fn stop_alone() -> std::io::Result<()> {
    Ok(kill_process(getpid(), Signal::STOP)?)
}

/// The next thing that the engine says; waits for ever where there is none.
async fn listen(output: Option<&mut EngineOutput>) -> Heard {
    let Some(output) = output else {
        return pending().await;
    };
    tokio::select! {
        biased;
        event = output.events.recv() => event.map_or(Heard::End, Heard::Event),
        Ok(()) = output.gauges.changed() => Heard::Gauges(output.gauges.borrow_and_update().clone()),
    }
}

/// Waits until `moment`; for ever where there is none.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment.into()).await,
        None => pending().await,
    }
}
