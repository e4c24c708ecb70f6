//! What of the chat is on disk: what happened goes out to be kept, and whether it was comes back.

use std::path::PathBuf;
use std::time::Duration;

use crate::chat::keeper::{Keeping, StoreCommand, StoreEvent};
use crate::chat::record::{ChatHead, ChatId, ChatSlot, ModelRef, StoredChat};
use crate::engine::command::{Command, RequestId};
use crate::engine::event::EngineError;
use crate::engine::token::ChatKey;
use crate::keymap::Action;
use crate::ui::format;

use super::App;
use super::conversation::Conversation;
use super::message::Effect;
use super::state::{Notice, NoticeLevel, Overlay};

/// The chat on screen, as the store knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenChat {
    /// Which chat of this run it is.
    pub slot: ChatSlot,
    /// Its name in the store, once it has one.
    pub id: Option<ChatId>,
    /// Whether what is said is kept.
    pub keeping: Keeping,
    /// Whether anything was said in it during this run.
    talk: Talk,
    /// What was last told to be kept of the chat as a whole.
    told: ChatHead,
    /// The model it was held with before one is loaded.
    model: Option<ModelRef>,
    /// The chat in the store that it was read from.
    read_from: Option<ChatId>,
}

/// Where the states of chats are kept, so that they need not be read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct States {
    /// The folder.
    pub folder: PathBuf,
    /// Names the store that the chats are in.
    pub store: String,
    /// Bytes that all may take.
    pub budget: u64,
}

impl States {
    fn file(&self, id: ChatId) -> PathBuf {
        self.folder.join(format!("{}-{id}.kv", self.store))
    }
}

/// Whether anything was said in a chat during this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Talk {
    /// Nothing: what is on screen was read from the store.
    Read,
    /// Something, which may be in memory alone.
    Said,
}

impl Default for OpenChat {
    fn default() -> Self {
        OpenChat {
            slot: ChatSlot(1),
            id: None,
            keeping: Keeping::Off,
            talk: Talk::Read,
            told: ChatHead::default(),
            model: None,
            read_from: None,
        }
    }
}

impl App {
    /// The same state, whose chats are kept.
    #[must_use]
    pub fn with_keeping(mut self) -> Self {
        self.chat.keeping = Keeping::Saved;
        self
    }

    /// The same state, in the middle of a chat that was read.
    #[must_use]
    pub fn with_chat(mut self, chat: &StoredChat) -> Self {
        self.conversation = Conversation::of(chat);
        self.chat.model.clone_from(&chat.head.model);
        self.chat.told = self.head();
        self.chat.read_from = Some(chat.id);
        if chat.unknown > 0 {
            let (messages, are) = match chat.unknown {
                1 => ("1 message".to_owned(), "is"),
                several => (format!("{several} messages"), "are"),
            };
            self.tell(format!("{messages} of an unknown kind {are} left out."));
        }
        self
    }

    /// The same state, which keeps the states of chats.
    #[must_use]
    pub fn with_states(mut self, states: States) -> Self {
        self.states = Some(states);
        self
    }

    /// Keeps the state of the chat on screen, where there is one and a place for it.
    fn keep_state(&self) -> Option<Effect> {
        let (states, id) = (self.states.as_ref()?, self.chat.id?);
        if self.facts().is_none() || self.conversation.last().is_none() {
            return None;
        }
        Some(Effect::Engine(Command::Save {
            chat: ChatKey(self.chat.slot.0),
            file: states.file(id),
            budget: states.budget,
        }))
    }

    /// Takes the state of the chat on screen back, where one was kept.
    pub(super) fn take_back_state(&mut self) -> Option<Effect> {
        let file = self.states.as_ref()?.file(self.chat.read_from?);
        let messages = self.prompt_messages();
        self.conversation.last()?;
        let id = self.next_id();
        self.restoring = Some(id);
        Some(Effect::Engine(Command::Restore {
            id,
            chat: ChatKey(self.chat.slot.0),
            file,
            messages,
        }))
    }

    /// The state came back.
    pub(super) fn state_restored(
        &mut self,
        id: RequestId,
        (tokens, took, saved): (u32, Duration, Option<Duration>),
    ) {
        if self.restoring.take_if(|wanted| *wanted == id).is_none() {
            return;
        }
        let saved = saved.map_or_else(String::new, |saved| {
            format!(", {} saved", format::wait(saved.saturating_sub(took)))
        });
        self.tell(format!(
            "Restored {} tokens in {:.2} s{saved}.",
            format::count(tokens),
            took.as_secs_f64()
        ));
    }

    /// It was of no use.
    pub(super) fn state_refused(&mut self, id: RequestId, reason: Option<String>) {
        let asked = self.restoring.take_if(|wanted| *wanted == id);
        if let (Some(_), Some(reason)) = (asked, reason) {
            self.tell(format!(
                "The chat will be read anew; its kept cache can't be used: {reason}."
            ));
        }
    }

    /// The same state, with something to tell from the start.
    #[must_use]
    pub fn with_notice(mut self, text: impl Into<String>) -> Self {
        self.tell(text);
        self
    }

    /// Whether something was said that is not on disk.
    pub(crate) fn is_unsaved(&self) -> bool {
        matches!(self.chat.keeping, Keeping::NotSaved(_))
            && self.chat.talk == Talk::Said
            && self.conversation.last().is_some()
    }

    /// What has to be kept since it was last told.
    pub(super) fn keep(&mut self) -> Option<Effect> {
        let changes = self.conversation.take_changes();
        let is_empty = self.conversation.last().is_none();
        if self.chat.keeping == Keeping::Off || (changes.is_empty() && (is_empty || self.is_told()))
        {
            return None;
        }
        if !changes.is_empty() {
            self.chat.talk = Talk::Said;
        }
        self.chat.told = self.head();
        Some(Effect::Store(StoreCommand::Keep {
            slot: self.chat.slot,
            head: self.chat.told.clone(),
            changes,
        }))
    }

    fn head(&self) -> ChatHead {
        let loaded = self.facts().map(|facts| ModelRef {
            name: facts.name.clone(),
            path: facts.path.clone(),
        });
        ChatHead {
            system: self.system.clone(),
            model: loaded.or_else(|| self.chat.model.clone()),
            leaf: self.conversation.leaf(),
        }
    }

    /// Whether the chat as a whole is as it was last told; asked for every token, so nothing is copied.
    fn is_told(&self) -> bool {
        let told = &self.chat.told;
        let same_model = match (self.facts(), &told.model) {
            (Some(facts), Some(model)) => facts.name == model.name && facts.path == model.path,
            (Some(_), None) => false,
            (None, _) => true,
        };
        same_model && told.system == self.system && told.leaf == self.conversation.leaf()
    }

    /// From here on another chat is kept. What is left of the one before goes out first.
    pub(super) fn begin_chat(&mut self) -> Vec<Effect> {
        let left: Vec<Effect> = self.keep_state().into_iter().chain(self.keep()).collect();
        self.conversation.clear();
        self.chat = OpenChat {
            slot: ChatSlot(self.chat.slot.0 + 1),
            keeping: self.chat.keeping.clone(),
            ..OpenChat::default()
        };
        left
    }

    pub(super) fn store_said(&mut self, event: StoreEvent) {
        match event {
            StoreEvent::Kept { slot, id, .. } if slot == self.chat.slot => self.chat.id = Some(id),
            StoreEvent::Kept { .. } => {}
            StoreEvent::Told(text) => self.tell(text),
            StoreEvent::State(keeping) => self.keeping_changed(keeping),
        }
    }

    fn keeping_changed(&mut self, keeping: Keeping) {
        match (&keeping, &self.chat.keeping) {
            (Keeping::NotSaved(error), _) => {
                let error =
                    EngineError::new(format!("Not saved: {}", error.message), error.hint.clone());
                self.notices.retain(|notice| !is_about_saving(notice));
                self.fail(&error);
            }
            (Keeping::Saved, Keeping::NotSaved(_)) => {
                self.notices.retain(|notice| !is_about_saving(notice));
                self.tell("Everything is saved again.");
            }
            (Keeping::Saved | Keeping::Off, _) => {}
        }
        self.chat.keeping = keeping;
    }

    /// Leaves, or says first what would be lost.
    pub(super) fn quit(&mut self) -> Vec<Effect> {
        if self.is_unsaved() && self.overlay != Some(Overlay::ConfirmQuit) {
            self.overlay = Some(Overlay::ConfirmQuit);
            return Vec::new();
        }
        self.leave()
    }

    /// Leaves, with the chat's state kept.
    pub(super) fn leave(&self) -> Vec<Effect> {
        let kept = self.keep_state().into_iter();
        kept.chain([Effect::Quit]).collect()
    }

    /// `/save`: tries again; `/save FILE`: keeps the chats there from now on.
    pub(super) fn save(&mut self, file: Option<String>) -> Vec<Effect> {
        let command = match (file, &self.chat.keeping) {
            (Some(_) | None, Keeping::Off) => {
                self.tell("Saving is switched off for this run.");
                return Vec::new();
            }
            (Some(file), _) => StoreCommand::SaveTo(file.into()),
            (None, _) => StoreCommand::Retry,
        };
        let kept = self.keep();
        kept.into_iter().chain([Effect::Store(command)]).collect()
    }

    /// What the last line before leaving asks.
    pub(crate) fn quit_question(&self) -> String {
        let key = self.key_name(Action::Interrupt);
        if self.is_unsaved() {
            format!("This chat is not saved. {key} quits and loses it; /save FILE keeps it.")
        } else {
            format!("Press {key} again to quit; any other key goes on.")
        }
    }
}

fn is_about_saving(notice: &Notice) -> bool {
    notice.level == NoticeLevel::Error && notice.text.starts_with("Not saved: ")
}
