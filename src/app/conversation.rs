//! The messages with what is said around them on screen: who speaks, and the numbers below a reply.

use crate::chat::Message;
use crate::engine::event::StopReason;
use crate::engine::token::Role;
use crate::text::{Item, ItemKind, Items, Thinking, Transcript};
use crate::ui::format;

/// The conversation on screen.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    messages: Vec<Message>,
    frames: Vec<Frame>,
    last_id: u64,
    /// Messages before this one are wrapped as they are.
    clean: usize,
}

/// What is said around a message.
#[derive(Debug, Clone, Default)]
struct Frame {
    id: u64,
    label: String,
    meta: Option<String>,
}

impl Conversation {
    /// The messages, oldest first.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The last message.
    #[must_use]
    pub fn last(&self) -> Option<&Message> {
        self.messages.last()
    }

    /// Adds what the user said.
    pub fn push_user(&mut self, text: String) {
        self.push(Message::new(Role::User, text), "you".into());
    }

    /// Adds an empty reply of this model.
    pub fn push_reply(&mut self, model: &str) {
        self.push(Message::new(Role::Assistant, ""), short_name(model));
    }

    fn push(&mut self, message: Message, label: String) {
        self.last_id += 1;
        self.messages.push(message);
        self.frames.push(Frame {
            id: self.last_id,
            label,
            meta: None,
        });
    }

    /// Takes the last message out.
    pub fn pop(&mut self) -> Option<Message> {
        let last = self.messages.pop()?;
        self.truncate(self.messages.len());
        Some(last)
    }

    /// Keeps the first `count` messages.
    pub fn truncate(&mut self, count: usize) {
        self.messages.truncate(count);
        self.frames.truncate(count);
        self.clean = self.clean.min(count);
    }

    /// Takes out the messages after the first `count`.
    pub fn cut_off(&mut self, count: usize) -> Vec<(Message, String)> {
        let messages = self.messages.split_off(count.min(self.messages.len()));
        let labels = self.frames.split_off(count.min(self.frames.len()));
        self.clean = self.clean.min(count);
        let labels = labels.into_iter().map(|frame| frame.label);
        messages.into_iter().zip(labels).collect()
    }

    /// Puts messages back that were cut off.
    pub fn put_back(&mut self, messages: Vec<(Message, String)>) {
        for (message, label) in messages {
            self.push(message, label);
            self.change_last(|_| {});
        }
    }

    /// Changes the last message.
    pub fn change_last(&mut self, change: impl FnOnce(&mut Message)) {
        let (Some(message), Some(frame)) = (self.messages.last_mut(), self.frames.last_mut())
        else {
            return;
        };
        change(message);
        frame.meta = meta(message);
        self.clean = self.clean.min(self.messages.len() - 1);
    }

    /// Another model is loaded: token ids of the one before mean nothing to it.
    pub fn forget_tokens(&mut self) {
        for message in &mut self.messages {
            message.tokens = None;
        }
    }

    /// Wraps what changed.
    pub fn wrap_into(&mut self, transcript: &mut Transcript, width: u16) {
        transcript.sync_from(self.clean, self, width);
        self.clean = self.messages.len();
    }
}

impl Items for Conversation {
    fn len(&self) -> usize {
        self.messages.len()
    }

    fn item(&self, index: usize) -> Item<'_> {
        let (message, frame) = (&self.messages[index], &self.frames[index]);
        Item {
            id: frame.id,
            kind: ItemKind::Message(message.role),
            label: &frame.label,
            body: &message.text,
            thinking_len: message.thinking_len,
            thinking: Thinking::Shown,
            meta: frame.meta.as_deref(),
        }
    }
}

/// The part of a model's name that it is called by: `smollm2` for `SmolLM2-135M-Instruct`.
fn short_name(model: &str) -> String {
    let first = model
        .split(['-', '_', ' ', ':'])
        .find(|part| part.chars().count() > 1);
    first.unwrap_or("model").to_lowercase()
}

/// The line below a reply.
fn meta(message: &Message) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(stats) = &message.stats {
        parts.push(format!("{} tok", format::count(stats.generated_tokens)));
        if let Some(ttft) = stats.ttft_ms {
            parts.push(format!("TTFT {}", format::millis(ttft)));
        }
        if let Some(rate) = stats.decode_tok_s {
            parts.push(format!("{} tok/s", format::rate(rate)));
        }
    }
    parts.extend(message.stop.and_then(ended).map(str::to_owned));
    for (tokens, temperature) in &message.temperature_changes {
        parts.push(format!(
            "temp {temperature:.2} from token {}",
            format::count(*tokens + 1)
        ));
    }
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// How a reply ended, where it did not end by itself.
fn ended(stop: StopReason) -> Option<&'static str> {
    match stop {
        StopReason::Eog => None,
        StopReason::Stop => Some("ended by a stop text"),
        StopReason::MaxTokens => Some("cut at max tokens"),
        StopReason::Context => Some("cut: context full"),
        StopReason::Cancelled => Some("stopped by you"),
        StopReason::Error => Some("cut by an error"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_called_by_the_first_part_of_its_name() {
        assert_eq!(short_name("SmolLM2-135M-Instruct"), "smollm2");
        assert_eq!(short_name("Qwen2.5 0.5B"), "qwen2.5");
        assert_eq!(short_name(""), "model");
    }

    #[test]
    fn a_reply_says_where_its_temperature_changed() {
        let mut message = Message::new(Role::Assistant, "x");
        assert_eq!(meta(&message), None);
        message.temperature_changes.push((57, 0.85));
        message.stop = Some(StopReason::Cancelled);
        assert_eq!(
            meta(&message).as_deref(),
            Some("stopped by you · temp 0.85 from token 58")
        );
    }
}
