//! When the draft is read while it is written: once the keyboard has been quiet for a moment.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::command::{Command, RequestId};
use crate::engine::token::{ChatKey, Role};

use super::App;
use super::message::Effect;
use super::slash::{Input, interpret};
use super::state::{EngineState, Turn};

/// The longest draft that is read ahead, in bytes: it is copied and tokenised with each pause.
const LONGEST_DRAFT: usize = 256 << 10;
/// How long the keyboard must be quiet.
const QUIET: Duration = Duration::from_millis(300);

/// Reading the draft while it is written.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ahead {
    /// Whether it is wanted at all.
    wish: Wish,
    /// What was last asked for.
    asked: Option<Asked>,
    /// What waits for the keyboard to be quiet, and since when it is the same.
    waiting: Option<(About, Timestamp)>,
    /// What the engine said: tokens read, tokens to read.
    pub progress: Option<(u32, u32)>,
}

/// Whether it is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Wish {
    #[default]
    Unwanted,
    Wanted,
}

/// A request to read ahead.
#[derive(Debug, Clone, PartialEq)]
struct Asked {
    id: RequestId,
    about: About,
}

/// What is read ahead: it is asked for once.
#[derive(Debug, Clone, PartialEq)]
struct About {
    chat: u64,
    messages: usize,
    system: Option<String>,
    draft: String,
}

impl Ahead {
    /// Whether something waits for the keyboard to be quiet.
    pub(super) fn is_due(&self) -> bool {
        self.waiting.is_some()
    }

    /// Whether the engine is at it.
    pub(crate) fn is_running(&self) -> bool {
        self.progress.is_some_and(|(read, total)| read < total)
    }

    /// A turn begins: it reads for itself.
    pub(super) fn gives_way(&mut self) {
        self.asked = None;
        self.waiting = None;
        self.progress = None;
    }
}

impl App {
    /// The same state, which reads a draft while it is written.
    #[must_use]
    pub fn with_read_ahead(mut self) -> Self {
        self.ahead.wish = Wish::Wanted;
        self
    }

    /// Asks for what can be read already, once the keyboard has been quiet; what was asked for before is stopped as
    /// soon as the draft is another one.
    pub(super) fn read_ahead(&mut self) -> Vec<Effect> {
        let is_ready = matches!(self.engine, EngineState::Ready(_)) && self.turn == Turn::Idle;
        // A message whose reply was stopped is read on with the next try, not against the user's wish.
        let unanswered = matches!(self.conversation.last(), Some(last) if last.role == Role::User);
        let wanted = self.ahead.wish == Wish::Wanted && self.restoring.is_none();
        if !wanted || !is_ready || unanswered {
            return Vec::new();
        }
        let about = About {
            chat: self.chat.slot.0,
            messages: self.conversation.messages().len(),
            system: self.system.clone(),
            draft: self.draft_to_read().to_owned(),
        };
        let asked = self.ahead.asked.as_ref();
        if asked.is_some_and(|asked| asked.about == about) {
            self.ahead.waiting = None;
            return Vec::new();
        }
        let mut effects = Vec::new();
        if let Some(asked) = self.ahead.asked.take() {
            effects.push(Effect::CancelThrough(asked.id));
            self.ahead.progress = None;
        }
        let since = match self.ahead.waiting.take() {
            Some((same, since)) if same == about => since,
            Some(_) | None => self.now,
        };
        if self.now.since(since) < QUIET {
            self.ahead.waiting = Some((about, since));
            return effects;
        }
        let id = self.next_id();
        effects.push(Effect::Engine(Command::ReadAhead {
            id,
            chat: ChatKey(about.chat),
            messages: self.prompt_messages(),
            draft: about.draft.clone(),
        }));
        self.ahead.asked = Some(Asked { id, about });
        effects
    }

    /// What of the draft would be sent to the model.
    fn draft_to_read(&self) -> &str {
        let text = self.composer.text();
        let is_command = text.starts_with('/') && !matches!(interpret(text), Input::Text(_));
        if is_command || text.len() > LONGEST_DRAFT {
            ""
        } else {
            text
        }
    }

    pub(super) fn was_read_ahead(&mut self, id: RequestId, read: u32, total: u32) {
        if self
            .ahead
            .asked
            .as_ref()
            .is_some_and(|asked| asked.id == id)
        {
            self.ahead.progress = Some((read, total));
        }
    }
}
