//! A turn from Enter to the last token: the queue before it, the reply while it comes, its end.

use crate::chat::Message;
use crate::engine::command::{Command, GenerateRequest, RequestId};
use crate::engine::event::{EngineError, PrefillProgress, SampledToken, StopReason};
use crate::engine::stats::TurnStats;
use crate::engine::token::{PromptMessage, Role, TokenRun};

use super::App;
use super::message::Effect;
use super::state::{Active, EngineState, Turn};

/// Temperatures nearer than this are the same.
const SAME_TEMPERATURE: f32 = 1e-4;

/// How a reply ended.
pub(super) struct Ending {
    pub stop: StopReason,
    pub tail: String,
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
                self.messages.push(Message::new(Role::User, text));
                vec![self.begin_turn()]
            }
            None => Vec::new(),
        }
    }

    /// Asks for a reply to the conversation as it stands.
    fn begin_turn(&mut self) -> Effect {
        let id = self.next_id();
        self.turn = Turn::Waiting(Active { id, submitted: self.now });
        self.meter.begin();
        self.notices.clear();
        self.transcript.to_end();
        let system = self.system.iter().map(|text| PromptMessage::new(Role::System, text));
        let request = GenerateRequest {
            messages: system.chain(self.messages.iter().map(Message::to_prompt)).collect(),
            sampling: self.settings.sampling(),
            stop: self.config.generation.stop.clone(),
            max_tokens: self.settings.max_tokens,
            submitted: self.now,
        };
        Effect::Engine(Command::Generate { id, request })
    }

    /// Drops the last reply and asks for another.
    pub(super) fn regenerate(&mut self) -> Vec<Effect> {
        let answerable = self.messages.iter().rposition(|message| message.role == Role::User);
        match (&self.engine, self.turn, answerable) {
            (EngineState::Ready(_), Turn::Idle, Some(last)) => {
                self.messages.truncate(last + 1);
                vec![self.begin_turn()]
            }
            (EngineState::Ready(_), Turn::Idle, None) => {
                self.tell("There is no message to answer again yet.");
                Vec::new()
            }
            (EngineState::Ready(_), _, _) => {
                self.tell("The reply is still coming; stop it first.");
                Vec::new()
            }
            (EngineState::NoModel | EngineState::Loading(_) | EngineState::Failed(_), _, _) => {
                self.tell("No model is loaded yet.");
                Vec::new()
            }
        }
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

    /// Stops the running reply and hears no more of it.
    pub(super) fn abandon_turn(&mut self) -> Vec<Effect> {
        let active = self.turn.active();
        self.turn = Turn::Idle;
        active.map(|active| Effect::CancelThrough(active.id)).into_iter().collect()
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
            Turn::Idle | Turn::Waiting(_) | Turn::Prefill(_) | Turn::Decoding(_) => Turn::Decoding(active),
        };
        if self.streaming().is_none() {
            self.messages.push(Message::new(Role::Assistant, ""));
        }
        let before = self.meter.token.as_ref().map(|last| last.temperature);
        if let Some(reply) = self.messages.last_mut() {
            if before.is_some_and(|before| (before - token.temperature).abs() > SAME_TEMPERATURE) {
                reply.temperature_changes.push((self.meter.generated, token.temperature));
            }
            reply.text.push_str(&token.text);
            if token.thinking {
                reply.thinking_len += token.text.len();
            }
        }
        self.meter.sampled(token, self.now.since(active.submitted));
    }

    pub(super) fn turn_finished(&mut self, id: RequestId, ending: Ending) -> Vec<Effect> {
        if !self.turn.is(id) {
            return Vec::new();
        }
        let stats = self.meter.finished(ending.stats);
        if self.streaming().is_none() && !ending.tail.is_empty() {
            self.messages.push(Message::new(Role::Assistant, ""));
        }
        if let Some(reply) = self.streaming().and_then(|index| self.messages.get_mut(index)) {
            reply.text.push_str(&ending.tail);
            reply.tokens = Some(ending.tokens);
            reply.stop = Some(ending.stop);
            reply.stats = Some(stats);
        }
        self.turn = Turn::Idle;
        self.explain(ending.stop);
        self.drop_empty_reply();
        self.send_next()
    }

    /// A reply that says nothing never enters the conversation.
    fn drop_empty_reply(&mut self) {
        let empty = |message: &Message| message.role == Role::Assistant && message.text.is_empty();
        if self.messages.last().is_some_and(empty) {
            self.messages.pop();
        }
    }

    fn explain(&mut self, stop: StopReason) {
        let silent = self.messages.last().is_none_or(|message| {
            message.role != Role::Assistant || message.text.is_empty()
        });
        match stop {
            StopReason::Eog | StopReason::Stop if silent => {
                self.tell("The model ended its turn without a word.");
            }
            StopReason::Context => self.fail(&EngineError::new(
                "The context is full: the reply ends here.",
                "/new starts an empty chat; a larger --ctx holds more.",
            )),
            StopReason::Error => self.fail(&EngineError::new(
                "A decode failed: the reply ends here.",
                "What came before it is kept; the log (F2) says why.",
            )),
            StopReason::Eog | StopReason::Stop | StopReason::MaxTokens | StopReason::Cancelled => {}
        }
    }

    /// A turn that failed before its first token gives the message back to an empty draft. Queued messages wait
    /// for the user, for they would fail as well.
    pub(super) fn turn_failed(&mut self, error: &EngineError) -> Vec<Effect> {
        self.turn = Turn::Idle;
        match self.streaming_or_last_reply() {
            Some(reply) if !reply.text.is_empty() => reply.stop = Some(StopReason::Error),
            Some(_) => self.drop_empty_reply(),
            None if self.composer.is_empty() => {
                if let Some(message) = self.messages.pop() {
                    self.composer.set_text(&message.text);
                }
            }
            None => {}
        }
        self.fail(error);
        Vec::new()
    }

    fn streaming_or_last_reply(&mut self) -> Option<&mut Message> {
        self.messages.last_mut().filter(|message| message.role == Role::Assistant)
    }
}
