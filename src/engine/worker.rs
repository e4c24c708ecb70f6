//! The engine thread's loop: commands in, events out, one model at a time.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread::JoinHandle;

use tokio::sync::{mpsc, watch};

use super::cache::Cache;
use super::command::{Command, GenerateRequest, RequestId};
use super::event::{CacheSnapshot, EngineError, Event, Gauges, Phase, PromptToken};
use super::inference::{Inference, Interrupt, Loader};
use super::options::LoadOptions;
use super::prompt::{Ending, Prompt, RenderOptions};
use super::sampling::Sampling;
use super::token::{ChatKey, PromptMessage};
use crate::clock::{Clock, Timestamp};
use crate::llama::heap;

/// The worker's ends of its channels.
pub(super) struct Line {
    pub inbox: Receiver<Command>,
    pub events: mpsc::UnboundedSender<Event>,
    pub gauges: watch::Sender<Gauges>,
}

/// The engine thread's state.
pub(super) struct Worker {
    pub(super) line: Line,
    loader: Box<dyn Loader>,
    pub(super) interrupt: Arc<Interrupt>,
    pub(super) clock: Arc<dyn Clock>,
    /// Commands that arrived during a reply and wait for its end.
    waiting: VecDeque<Command>,
    session: Option<Session>,
    /// The threads that write states to disk.
    writing: Vec<JoinHandle<()>>,
}

/// A loaded model with what it remembers.
pub(super) struct Session {
    pub model: Box<dyn Inference>,
    pub cache: Cache,
    /// Tokens read and the time it took, in seconds, since the model was loaded.
    pub prefill_so_far: (u64, f64),
    pub load_ms: f64,
    /// The date that templates may name: that of a chat's first prompt, since a new date is a new prompt.
    chat_times: HashMap<ChatKey, jiff::civil::DateTime>,
    /// Notices already given; each is given once.
    announced: HashSet<String>,
}

/// States of chats on disk.
mod keeping;

/// Whether the loop goes on.
#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    End,
}

impl Worker {
    pub(super) fn new(
        line: Line,
        loader: Box<dyn Loader>,
        interrupt: Arc<Interrupt>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Worker {
            line,
            loader,
            interrupt,
            clock,
            waiting: VecDeque::new(),
            session: None,
            writing: Vec::new(),
        }
    }

    /// Serves commands until told to end or until nobody can send any more.
    pub(super) fn run(mut self) {
        while let Some(command) = self.next_command() {
            if self.serve(command) == Next::End {
                break;
            }
        }
        self.session = None;
        for writer in self.writing.drain(..) {
            let _ = writer.join();
        }
        self.emit(Event::Stopped);
    }

    fn next_command(&mut self) -> Option<Command> {
        if let Some(command) = self.waiting.pop_front() {
            return Some(command);
        }
        match self.line.inbox.try_recv() {
            Ok(command) => Some(command),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => {
                // There is nothing to do now.
                heap::give_back();
                self.line.inbox.recv().ok()
            }
        }
    }

    fn serve(&mut self, command: Command) -> Next {
        match command {
            Command::Load { id, path, options } => self.load(id, &path, &options),
            Command::Generate { id, request } => self.generate(id, &request),
            Command::Tokenize { id, messages } => self.tokenize(id, &messages),
            // Nothing is being generated: the next request brings its own settings.
            Command::SetSampling { .. } => {}
            Command::ReadAhead {
                id,
                chat,
                messages,
                draft,
            } => self.read_ahead(id, (chat, &messages, &draft)),
            Command::Save { chat, file, budget } => self.save(chat, file, budget),
            Command::Restore {
                id,
                chat,
                file,
                messages,
            } => self.restore(id, chat, &file, &messages),
            Command::Clear => self.forget(),
            Command::Shutdown => return Next::End,
        }
        Next::GoOn
    }

    pub(super) fn emit(&self, event: Event) {
        // A receiver that is gone means that the program is leaving; the loop ends by itself.
        let _ = self.line.events.send(event);
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn gauge(&self, change: impl FnOnce(&mut Gauges)) {
        self.line.gauges.send_modify(change);
    }

    pub(super) fn phase(&self, phase: Phase) {
        self.gauge(|gauges| gauges.phase = phase);
    }

    /// Takes what has arrived since, keeps commands for later and returns the latest sampling asked for.
    pub(super) fn live_sampling(&mut self) -> Option<Sampling> {
        let mut latest = None;
        loop {
            match self.line.inbox.try_recv() {
                Ok(Command::SetSampling { sampling }) => latest = Some(sampling),
                Ok(Command::Shutdown) => {
                    self.interrupt.cancel_through(u64::MAX);
                    self.waiting.push_front(Command::Shutdown);
                }
                Ok(command) => self.waiting.push_back(command),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return latest,
            }
        }
    }

    /// Whether anything else is asked for.
    pub(super) fn has_waiting(&mut self) -> bool {
        while let Ok(command) = self.line.inbox.try_recv() {
            match command {
                // Nothing is being generated: the next request brings its own settings.
                Command::SetSampling { .. } => {}
                other => self.waiting.push_back(other),
            }
        }
        !self.waiting.is_empty()
    }

    fn read_ahead(&mut self, id: RequestId, draft: (ChatKey, &[PromptMessage], &str)) {
        if self.interrupt.covers(id.0) || self.has_waiting() {
            return;
        }
        let Some(session) = self.session.take() else {
            return;
        };
        let session = super::ahead::run(self, session, id, draft);
        self.emit(Event::Cache {
            cache: session.snapshot(),
        });
        self.session = Some(session);
    }

    fn load(&mut self, id: RequestId, path: &Path, options: &LoadOptions) {
        if self.session.take().is_some() {
            self.emit(Event::Cache {
                cache: CacheSnapshot::default(),
            });
        }
        self.interrupt.begin(id.0);
        self.gauge(|gauges| {
            *gauges = Gauges {
                phase: Phase::Loading,
                ..Gauges::default()
            }
        });
        self.emit(Event::Loading { id, progress: 0.0 });
        let began = self.now();
        let events = self.line.events.clone();
        let mut last_percent = 0;
        let mut report = |progress: f32| {
            #[expect(clippy::cast_possible_truncation, reason = "a percentage")]
            let percent = (progress * 100.0) as i32;
            if percent > last_percent {
                last_percent = percent;
                let _ = events.send(Event::Loading { id, progress });
            }
        };
        let loaded = if self.interrupt.is_cancelled() {
            Err(EngineError::new("loading was cancelled", ""))
        } else {
            self.loader
                .load(path, options, &self.interrupt, &mut report)
        };
        self.phase(Phase::Idle);
        let loaded = match loaded {
            Err(_) if self.interrupt.is_cancelled() => {
                let error = EngineError::new("Loading was stopped.", "Choose a model with /model.");
                return self.emit(Event::Failed { id, error });
            }
            Err(error) => return self.emit(Event::Failed { id, error }),
            Ok(loaded) => loaded,
        };
        let load = self.now().since(began);
        let session = Session {
            cache: Cache::new(loaded.model.sequences(), loaded.spare_ram),
            model: loaded.model,
            prefill_so_far: (0, 0.0),
            load_ms: super::timer::millis(load),
            chat_times: HashMap::new(),
            announced: HashSet::new(),
        };
        self.emit(Event::Ready {
            id,
            facts: Box::new(session.model.facts().clone()),
            load,
        });
        self.emit(Event::Cache {
            cache: session.snapshot(),
        });
        for text in loaded.notices {
            self.emit(Event::Notice { text });
        }
        self.session = Some(session);
    }

    fn forget(&mut self) {
        let Some(session) = &mut self.session else {
            return;
        };
        session.cache.clear(session.model.as_mut());
        session.chat_times.clear();
        let cache = session.snapshot();
        self.gauge(|gauges| gauges.cache_used = 0);
        self.emit(Event::Cache { cache });
    }

    fn no_model() -> EngineError {
        EngineError::new("No model is loaded.", "Choose one with /model.")
    }

    fn tokenize(&mut self, id: RequestId, messages: &[PromptMessage]) {
        let Some(session) = &mut self.session else {
            return self.emit(Event::Failed {
                id,
                error: Worker::no_model(),
            });
        };
        let event = match session.prompt(ChatKey::default(), messages) {
            Ok(prompt) => {
                let vocabulary = session.model.vocabulary();
                let tokens = prompt.tokens.iter().map(|token| PromptToken {
                    id: *token,
                    text: String::from_utf8_lossy(&vocabulary.piece(*token)).into_owned(),
                    control: vocabulary.is_control(*token),
                });
                Event::Prompt {
                    id,
                    tokens: tokens.collect(),
                    text: prompt.text,
                }
            }
            Err(error) => Event::Failed { id, error },
        };
        self.emit(event);
    }

    fn generate(&mut self, id: RequestId, request: &GenerateRequest) {
        self.interrupt.begin(id.0);
        let Some(session) = self.session.take() else {
            return self.emit(Event::Failed {
                id,
                error: Worker::no_model(),
            });
        };
        let session = super::turn::run(self, session, id, request);
        let cache = session.snapshot();
        self.gauge(|gauges| {
            gauges.phase = Phase::Idle;
            gauges.cache_used = cache.used;
        });
        self.session = Some(session);
        self.emit(Event::Cache { cache });
    }
}

impl Session {
    /// Renders and tokenises a conversation.
    pub(super) fn prompt(
        &mut self,
        chat: ChatKey,
        messages: &[PromptMessage],
    ) -> Result<Prompt, EngineError> {
        self.prompt_ending(chat, messages, Ending::Reply)
    }

    /// The date that a chat's prompts name.
    fn time_of(&mut self, chat: ChatKey) -> jiff::civil::DateTime {
        let now = || jiff::ZonedDateTime::now().datetime();
        *self.chat_times.entry(chat).or_insert_with(now)
    }

    pub(super) fn prompt_ending(
        &mut self,
        chat: ChatKey,
        messages: &[PromptMessage],
        ending: Ending,
    ) -> Result<Prompt, EngineError> {
        let options = RenderOptions {
            ending,
            ..RenderOptions::at(self.time_of(chat))
        };
        self.model
            .prompts()
            .build(messages, self.model.vocabulary(), &options)
            .map_err(|error| {
                EngineError::new(
                    error.to_string(),
                    "Change the message or the system prompt and send again.",
                )
            })
    }

    /// What the cache holds.
    pub(super) fn snapshot(&self) -> CacheSnapshot {
        self.cache.snapshot(self.model.facts())
    }

    /// Whether a notice was not given yet; from now on it was.
    pub(super) fn is_news(&mut self, notice: &str) -> bool {
        self.announced.insert(notice.to_owned())
    }
}
