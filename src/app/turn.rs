//! A turn from Enter to the last token: the queue before it, the reply while it comes, its end.

use crate::chat::record::Growth;
use crate::chat::{Author, Message, SamplingChange};
use crate::engine::command::{Command, GenerateRequest, RequestId};
use crate::engine::event::{EngineError, PrefillProgress, SampledToken, StopReason};
use crate::engine::stats::TurnStats;
use crate::engine::token::{ChatKey, PromptMessage, Role, TokenRun};
use crate::keymap::Action;

use super::App;
use super::message::Effect;
use super::slash;
use super::state::{Active, Turn};

/// How a reply ended.
pub(super) struct Ending {
    pub stop: StopReason,
    pub tail: String,
    pub(super) tail_thinking_len: usize,
    pub tokens: TokenRun,
    pub stats: Box<TurnStats>,
}

impl App {
    /// Queues a message and sends it at once where the engine is free.
    pub(super) fn submit(&mut self, text: String) -> Vec<Effect> {
        self.queue.push_back(text);
        self.send_next()
    }

    /// Sends the first queued message where a model is loaded and no turn runs.
    pub(super) fn send_next(&mut self) -> Vec<Effect> {
        if self.facts().is_none() || self.turn != Turn::Idle {
            return Vec::new();
        }
        match self.queue.pop_front() {
            Some(text) => {
                self.conversation.push_user(text);
                self.replaced.clear();
                vec![self.begin_turn()]
            }
            None => Vec::new(),
        }
    }

    /// Asks for a reply to the conversation as it stands.
    fn begin_turn(&mut self) -> Effect {
        self.ahead.gives_way();
        let id = self.next_id();
        self.turn = Turn::Waiting(Active {
            id,
            submitted: self.now,
        });
        self.meter.begin(usize::from(self.system.is_some()));
        self.notices.clear();
        self.transcript.to_end();
        self.asked = self.settings.sampling();
        let request = GenerateRequest {
            chat: ChatKey(self.chat.slot.0),
            messages: self.prompt_messages(),
            sampling: self.asked.clone(),
            stop: self.config.generation.stop.clone(),
            max_tokens: self.settings.max_tokens,
            submitted: self.now,
        };
        Effect::Engine(Command::Generate { id, request })
    }

    /// The conversation as the engine takes it, the system prompt first.
    pub(super) fn prompt_messages(&self) -> Vec<PromptMessage> {
        let system = self
            .system
            .iter()
            .map(|text| PromptMessage::new(Role::System, text));
        let messages = self.conversation.messages().iter();
        let vocabulary = self
            .facts()
            .map_or_else(String::new, |facts| facts.vocabulary.clone());
        system
            .chain(messages.map(|message| message.to_prompt(&vocabulary)))
            .collect()
    }

    /// Drops the last reply and asks for another.
    pub(super) fn regenerate(&mut self) -> Vec<Effect> {
        let answerable = self
            .conversation
            .messages()
            .iter()
            .rposition(|message| message.role == Role::User);
        if self.facts().is_none() {
            self.tell("No model is loaded yet.");
        } else if self.turn != Turn::Idle {
            self.tell("The reply is still coming; stop it first.");
        } else if let Some(last) = answerable {
            self.replaced = self.conversation.cut_off(last + 1);
            return vec![self.begin_turn()];
        } else {
            self.tell("There is no message to answer again yet.");
        }
        Vec::new()
    }

    /// Stops the running reply; what came so far stays.
    pub(super) fn stop_turn(&mut self) -> Vec<Effect> {
        match self.turn {
            Turn::Idle | Turn::Stopping(_) => Vec::new(),
            Turn::Waiting(active) | Turn::Prefill(active) | Turn::Decoding(active) => {
                self.turn = Turn::Stopping(active);
                vec![Effect::CancelThrough(active.id)]
            }
        }
    }

    /// Stops the running reply and hears no more of it; what came so far stays.
    pub(super) fn abandon_turn(&mut self) -> Vec<Effect> {
        let active = self.turn.active();
        self.end_reply(StopReason::Cancelled);
        self.turn = Turn::Idle;
        self.replaced.clear();
        active
            .map(|active| Effect::CancelThrough(active.id))
            .into_iter()
            .collect()
    }

    pub(super) fn prefilled(&mut self, id: RequestId, progress: PrefillProgress) {
        match self.turn {
            Turn::Waiting(active) | Turn::Prefill(active) if active.id == id => {
                self.turn = Turn::Prefill(active);
                self.meter.prefilled(progress, self.now);
            }
            Turn::Stopping(active) if active.id == id => self.meter.prefilled(progress, self.now),
            Turn::Idle
            | Turn::Waiting(_)
            | Turn::Prefill(_)
            | Turn::Decoding(_)
            | Turn::Stopping(_) => {}
        }
    }

    pub(super) fn sampled(&mut self, id: RequestId, token: SampledToken) {
        let Some(active) = self.turn.active().filter(|active| active.id == id) else {
            return;
        };
        self.turn = match self.turn {
            Turn::Stopping(active) => Turn::Stopping(active),
            Turn::Idle | Turn::Waiting(_) | Turn::Prefill(_) | Turn::Decoding(_) => {
                Turn::Decoding(active)
            }
        };
        self.begin_reply();
        if let Some(sampling) = &token.sampling {
            let (after_tokens, sampling) = (self.meter.generated, (**sampling).clone());
            self.conversation.change_last(|reply| match after_tokens {
                0 => reply.sampling = Some(sampling),
                _ => reply.sampling_changes.push(SamplingChange {
                    after_tokens,
                    sampling,
                }),
            });
        }
        self.conversation.grow_last(Growth {
            text: token.text.clone(),
            thinking_len: token.thinking_len,
            token: token.id,
            token_bytes: token.bytes.len(),
        });
        self.meter.sampled(token, self.now.since(active.submitted));
    }

    pub(super) fn turn_finished(&mut self, id: RequestId, ending: Ending) -> Vec<Effect> {
        if !self.turn.is(id) {
            return Vec::new();
        }
        let stats = self.meter.finished(ending.stats);
        if !ending.tail.is_empty() {
            self.begin_reply();
        }
        if self.streaming().is_some() {
            self.conversation.change_last(|reply| {
                reply.append(&ending.tail, ending.tail_thinking_len);
                reply.tokens = Some(ending.tokens);
                reply.stop = Some(ending.stop);
                reply.stats = Some(stats);
            });
        }
        self.turn = Turn::Idle;
        self.explain(ending.stop);
        self.drop_empty_reply();
        self.restore_replaced();
        self.send_next()
    }

    fn begin_reply(&mut self) {
        if self.streaming().is_none() {
            let author = self.facts().map_or_else(
                || Author {
                    model: String::new(),
                    vocabulary: String::new(),
                },
                |facts| Author {
                    model: facts.name.clone(),
                    vocabulary: facts.vocabulary.clone(),
                },
            );
            self.conversation.push_reply(author, self.asked.clone());
        }
    }

    /// Ends a reply of which no more is heard.
    pub(super) fn end_reply(&mut self, stop: StopReason) {
        if self.streaming().is_some() {
            self.conversation
                .change_last(|reply| reply.stop = Some(stop));
            self.drop_empty_reply();
        }
    }

    /// A reply that says nothing never enters the conversation.
    fn drop_empty_reply(&mut self) {
        let is_empty = |last: &Message| last.role == Role::Assistant && last.text.is_empty();
        if self.conversation.last().is_some_and(is_empty) {
            self.conversation.pop();
        }
    }

    /// After a regeneration that brought nothing, the reply from before stands again.
    fn restore_replaced(&mut self) -> bool {
        let replaced = std::mem::take(&mut self.replaced);
        let nothing_came = self
            .conversation
            .last()
            .is_some_and(|last| last.role == Role::User);
        let restored = nothing_came && !replaced.is_empty();
        if restored {
            self.conversation.put_back(replaced);
        }
        restored
    }

    fn explain(&mut self, stop: StopReason) {
        let silent = self
            .conversation
            .last()
            .is_none_or(|last| last.role != Role::Assistant || last.text.is_empty());
        match stop {
            StopReason::Eog | StopReason::Stop if silent => {
                self.tell("The model ended its turn without a word.");
            }
            StopReason::Cancelled if silent => {
                let again = self.key_name(Action::Regenerate);
                self.tell(format!(
                    "Stopped before the first token; {again} asks again."
                ));
            }
            StopReason::Context => self.fail(&EngineError::new(
                "The context is full: the reply ends here.",
                "/new starts an empty chat; a larger --ctx holds more.",
            )),
            StopReason::Error => {
                let log = self.key_name(Action::Log);
                self.fail(&EngineError::new(
                    "A decode failed: the reply ends here.",
                    format!("What came before it is kept; the log ({log}) says why."),
                ));
            }
            StopReason::Eog
            | StopReason::Stop
            | StopReason::MaxTokens
            | StopReason::Cancelled
            | StopReason::Interrupted => {}
        }
    }

    /// A turn that failed before its first token gives the message back, lest it fail again with every turn that
    /// follows: into an empty draft, else into the history. Queued messages wait for the user.
    pub(super) fn turn_failed(&mut self, error: &EngineError) -> Vec<Effect> {
        self.turn = Turn::Idle;
        let mut error = error.clone();
        match self.conversation.last().map(|last| last.role) {
            Some(Role::Assistant) => {
                self.conversation
                    .change_last(|reply| reply.stop = Some(StopReason::Error));
                self.drop_empty_reply();
            }
            Some(Role::User) if self.restore_replaced() => {}
            Some(Role::User) => self.take_back(&mut error),
            Some(Role::System) | None => {}
        }
        self.fail(&error);
        Vec::new()
    }

    fn take_back(&mut self, error: &mut EngineError) {
        let Some(message) = self.conversation.pop() else {
            return;
        };
        if self.composer.is_empty() {
            self.composer.set_text(&slash::draft_of(&message.text));
        } else {
            error.hint += " The message is in the history.";
        }
    }
}
