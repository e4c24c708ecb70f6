//! The state of the screen and how messages change it. No IO, no clock, no terminal: time comes in with the
//! message, and what should happen outside goes out as [`Effect`]s.

pub mod conversation;
pub mod help;
pub mod keeping;
pub mod layout;
pub mod log_ring;
pub mod message;
pub mod meter;
pub mod settings;
pub mod slash;
pub mod state;

mod ahead;
mod commands;
mod input;
mod loading;
mod nearest;
mod overlay;
mod turn;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use crate::chat::Message;
use crate::clock::Timestamp;
use crate::config::{Config, PanelsConfig};
use crate::engine::command::RequestId;
use crate::engine::event::{CacheSnapshot, EngineError, Event, Gauges, ModelFacts, StopReason};
use crate::engine::sampling::Sampling;
use crate::engine::token::Role;
use crate::keymap::{Action, Context, Keymap};
use crate::logging::{LogLevel, LogLine};
use crate::models::discover::FoundModel;
use crate::text::composer::Composer;
use crate::text::transcript::Transcript;
use crate::ui::palette::Palette;

use ahead::Ahead;
use conversation::{Conversation, CutOff};
use keeping::{OpenChat, States};
use layout::Layout;
use log_ring::LogRing;
use message::{Effect, Msg};
use meter::Meter;
pub use nearest::nearest;
use settings::Settings;
use slash::Completion;
use state::{
    Download, EngineState, Notice, NoticeLevel, Offer, Overlay, Panels, Scan, Turn, Wanted,
};

/// How often the screen moves by itself while something runs.
const TICK: Duration = Duration::from_millis(100);
/// Notices kept on screen.
const NOTICES: usize = 3;

/// The whole state of the screen.
pub struct App {
    pub(crate) config: Config,
    pub(crate) keymap: Keymap,
    pub(crate) palette: Palette,
    pub(crate) size: (u16, u16),
    pub(crate) now: Timestamp,
    pub(crate) engine: EngineState,
    pub(crate) turn: Turn,
    pub(crate) overlay: Option<Overlay>,
    pub(crate) panels: Panels,
    pub(crate) conversation: Conversation,
    pub(crate) chat: OpenChat,
    pub(crate) system: Option<String>,
    pub(crate) queue: VecDeque<String>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) transcript: Transcript,
    pub(crate) composer: Composer,
    pub(crate) completion: Completion,
    pub(crate) settings: Settings,
    pub(crate) meter: Meter,
    pub(crate) cache: CacheSnapshot,
    pub(crate) gauges: Gauges,
    pub(crate) models: Vec<FoundModel>,
    pub(crate) offers: Vec<Offer>,
    pub(crate) download: Option<Download>,
    pub(crate) log: LogRing,
    pub(crate) scan: Scan,
    pub(crate) wanted: Wanted,
    last_model: Option<PathBuf>,
    last_id: u64,
    /// The reply that is being generated anew; it comes back where nothing takes its place.
    replaced: Vec<CutOff>,
    /// The sampling that the running reply was asked with.
    asked: Sampling,
    /// Where the states of chats are kept.
    states: Option<States>,
    /// Reading the draft while it is written.
    pub(crate) ahead: Ahead,
    /// The request for the state of the chat on screen.
    restoring: Option<RequestId>,
}

impl App {
    /// The state before anything happened. Keys that the configuration gets wrong are told as a notice and
    /// leave the default keys.
    #[must_use]
    pub fn new(config: &Config, size: (u16, u16)) -> Self {
        let keymap = Keymap::with_overrides(&config.keys);
        let mut app = App {
            config: config.clone(),
            keymap: Keymap::default(),
            palette: Palette::default(),
            size,
            now: Timestamp::default(),
            engine: EngineState::NoModel,
            turn: Turn::Idle,
            overlay: None,
            panels: match config.ui.panels {
                PanelsConfig::Auto => Panels::Shown,
                PanelsConfig::Hidden => Panels::Hidden,
            },
            conversation: Conversation::default(),
            chat: OpenChat::default(),
            system: config.system.clone(),
            queue: VecDeque::new(),
            notices: Vec::new(),
            transcript: Transcript::default(),
            composer: Composer::new(),
            completion: Completion::default(),
            settings: Settings::new(config.sampling.clone(), config.generation.max_tokens),
            meter: Meter::default(),
            cache: CacheSnapshot::default(),
            gauges: Gauges::default(),
            models: Vec::new(),
            offers: Vec::new(),
            download: None,
            log: LogRing::default(),
            scan: Scan::Done,
            wanted: Wanted::Nothing,
            last_model: None,
            last_id: 0,
            replaced: Vec::new(),
            asked: Sampling::default(),
            states: None,
            ahead: Ahead::default(),
            restoring: None,
        };
        match keymap {
            Ok(keymap) => app.keymap = keymap,
            Err(error) => app.fail(&EngineError::new(
                error.to_string(),
                "The default keys are in use.",
            )),
        }
        app
    }

    /// The same state, drawn with this palette.
    #[must_use]
    pub fn with_palette(mut self, palette: Palette) -> Self {
        self.palette = palette;
        self
    }

    /// The same state, with these models to offer for download.
    #[must_use]
    pub fn with_offers(mut self, offers: Vec<Offer>) -> Self {
        self.offers = offers;
        self
    }

    /// The same state, with something wrong to tell from the start.
    #[must_use]
    pub fn with_problem(mut self, error: &EngineError) -> Self {
        self.fail(error);
        self
    }

    /// What to do first: look for the models of this machine, and load the configured one
    /// where it is a path.
    pub fn start(&mut self, now: Timestamp) -> Vec<Effect> {
        self.now = now;
        self.wanted = Wanted::Any;
        let mut effects = vec![self.search()];
        if let Some(model) = self.config.model.clone() {
            effects.extend(self.open_model(model));
        }
        effects.dedup();
        self.relayout();
        effects
    }

    /// Changes the state by what happened, and says what should be done.
    pub fn update(&mut self, msg: Msg, now: Timestamp) -> Vec<Effect> {
        self.now = now;
        let mut effects = match msg {
            Msg::Key(key) => self.key(key),
            Msg::Paste(text) => self.paste(&text),
            Msg::Resize { width, height } => {
                self.size = (width, height);
                Vec::new()
            }
            Msg::Engine(event) => self.heard(event),
            Msg::Gauges(gauges) => {
                if let Turn::Decoding(_) = self.turn {
                    self.meter.gauged(&gauges, now);
                }
                self.gauges = gauges;
                Vec::new()
            }
            Msg::Log(lines) => {
                self.logged(lines);
                Vec::new()
            }
            Msg::Models(models) => self.models_found(models),
            Msg::Download(event) => self.download_moved(event),
            Msg::Store(event) => {
                self.store_said(event);
                Vec::new()
            }
            Msg::Tick => Vec::new(),
        };
        effects.extend(self.read_ahead());
        effects.extend(self.keep());
        self.relayout();
        effects
    }

    /// How long until the next [`Msg::Tick`]; `None` while nothing on screen moves by itself.
    #[must_use]
    pub fn tick_interval(&self) -> Option<Duration> {
        let downloading = self.download.as_ref().is_some_and(Download::is_running);
        let loading = matches!(self.engine, EngineState::Loading(_));
        let ahead = self.ahead.is_due();
        (downloading || loading || ahead || self.turn != Turn::Idle).then_some(TICK)
    }

    fn heard(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Loading { id, progress } => self.load_progressed(id, progress),
            Event::Ready { id, facts, load: _ } => return self.load_finished(id, facts),
            Event::Notice { text } => self.tell(text),
            Event::Prefill { id, progress } => self.prefilled(id, progress),
            Event::Token { id, token } => self.sampled(id, token),
            Event::Finished {
                id,
                stop,
                tail,
                tail_thinking_len,
                tokens,
                stats,
            } => {
                return self.turn_finished(
                    id,
                    turn::Ending {
                        stop,
                        tail,
                        tail_thinking_len,
                        tokens,
                        stats,
                    },
                );
            }
            Event::Failed { id, error } => return self.failed(id, error),
            Event::Prompt { .. } => {}
            Event::ReadAhead { id, read, total } => self.was_read_ahead(id, read, total),
            Event::Restored {
                id,
                tokens,
                took,
                saved,
            } => self.state_restored(id, (tokens, took, saved)),
            Event::NotRestored { id, reason } => self.state_refused(id, reason),
            Event::Cache { cache } => self.cache = cache,
            Event::Stopped => self.engine_stopped(),
        }
        Vec::new()
    }

    fn failed(&mut self, id: RequestId, error: EngineError) -> Vec<Effect> {
        let loading = matches!(&self.engine, EngineState::Loading(load) if load.id == id);
        if loading {
            self.load_failed(error)
        } else if self.turn.is(id) {
            self.turn_failed(&error)
        } else {
            Vec::new()
        }
    }

    fn engine_stopped(&mut self) {
        let log = self.key_name(Action::Log);
        let error = EngineError::new(
            "The engine ended unexpectedly.",
            format!("Leave and start platen again; the log ({log}) may say why."),
        );
        self.fail(&error);
        self.end_reply(StopReason::Error);
        self.engine = EngineState::Failed(error);
        self.turn = Turn::Idle;
    }

    /// Adds to the log; a log that is scrolled up stays where it is.
    fn logged(&mut self, lines: Vec<LogLine>) {
        let added = self.log.extend(lines);
        if let Some(Overlay::Log { below }) = &mut self.overlay
            && *below > 0
        {
            *below = (*below + added).min(self.log.len().saturating_sub(1));
        }
    }

    /// The key of an action, for a sentence.
    pub(crate) fn key_name(&self, action: Action) -> String {
        self.keymap
            .chords(action)
            .first()
            .map_or_else(|| action.name().to_owned(), ToString::to_string)
    }

    fn next_id(&mut self) -> RequestId {
        self.last_id += 1;
        RequestId(self.last_id)
    }

    fn tell(&mut self, text: impl Into<String>) {
        self.notice(NoticeLevel::Info, text.into(), String::new());
    }

    fn fail(&mut self, error: &EngineError) {
        self.notice(
            NoticeLevel::Error,
            error.message.clone(),
            error.hint.clone(),
        );
    }

    fn notice(&mut self, level: NoticeLevel, text: String, hint: String) {
        let line = LogLine {
            level: match level {
                NoticeLevel::Info => LogLevel::Info,
                NoticeLevel::Error => LogLevel::Error,
            },
            target: "platen".into(),
            text: format!("{text} {hint}").trim_end().to_owned(),
        };
        self.logged(vec![line]);
        let notice = Notice { level, text, hint };
        self.notices.retain(|other| *other != notice);
        if self.notices.len() == NOTICES {
            self.notices.remove(0);
        }
        self.notices.push(notice);
    }

    /// The facts of the loaded model.
    #[must_use]
    pub fn facts(&self) -> Option<&ModelFacts> {
        match &self.engine {
            EngineState::Ready(facts) => Some(facts),
            EngineState::NoModel | EngineState::Loading(_) | EngineState::Failed(_) => None,
        }
    }

    pub(crate) fn context(&self) -> Context {
        match self.overlay {
            None | Some(Overlay::ConfirmQuit) => Context::Chat,
            Some(
                Overlay::Help { .. }
                | Overlay::Log { .. }
                | Overlay::ModelPicker(_)
                | Overlay::Catalogue { .. },
            ) => Context::Overlay,
        }
    }

    /// Where everything stands now.
    #[must_use]
    pub fn layout(&self) -> Layout {
        let width = Layout::composer_width(self.size, self.panels);
        let view = self.composer.view(width, Layout::composer_most(self.size));
        let contents = layout::Contents {
            size: self.size,
            panels: self.panels,
            notice_rows: crate::ui::notices::rows(self),
            composer_rows: u16::try_from(view.lines.len()).unwrap_or(u16::MAX),
        };
        Layout::new(contents)
    }

    fn relayout(&mut self) {
        let chat = self.layout().chat;
        self.conversation
            .wrap_into(&mut self.transcript, chat.width.max(1));
    }

    /// The reply that is being written.
    #[must_use]
    pub fn streaming(&self) -> Option<&Message> {
        self.turn.active()?;
        self.conversation
            .last()
            .filter(|last| last.role == Role::Assistant && last.stop.is_none())
    }
}
