//! The messages with what is said around them on screen: who speaks, and the numbers below a reply.

use crate::chat::record::{Change, Growth, MessageNo, Node, StoredChat};
use crate::chat::{Author, Growing, Message, cut_short};
use crate::engine::event::StopReason;
use crate::engine::sampling::Sampling;
use crate::engine::token::Role;
use crate::text::{Item, ItemKind, Items, Thinking, Transcript};
use crate::ui::format;

/// The conversation on screen: one branch of the chat's tree.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    messages: Vec<Message>,
    frames: Vec<Frame>,
    last_no: MessageNo,
    /// Messages before this one are wrapped as they are.
    clean: usize,
    /// How the last message grows.
    growing: Growing,
    /// What happened since it was last asked for.
    changes: Vec<Change>,
}

/// What is said around a message.
#[derive(Debug, Clone, Default)]
struct Frame {
    no: MessageNo,
    label: String,
    meta: Option<String>,
}

/// A message that was cut off, and can be put back.
#[derive(Debug, Clone)]
pub struct CutOff(Message, Frame);

impl Conversation {
    /// A chat that was read, at the branch where it stands. No other message of it gets a name that a new one has.
    #[must_use]
    pub fn of(chat: &StoredChat) -> Self {
        let mut conversation = Conversation::default();
        for Node { no, message, .. } in chat.branch() {
            let mut message = message.clone();
            let label = match (message.role, &message.author) {
                (Role::User, _) => "you".to_owned(),
                (Role::System, _) => Role::System.name().to_owned(),
                (Role::Assistant, author) => {
                    short_name(author.as_ref().map_or("", |author| &author.model))
                }
            };
            if message.role == Role::Assistant {
                message.stop.get_or_insert(StopReason::Interrupted);
            }
            conversation.frames.push(Frame {
                no: *no,
                label,
                meta: meta(&message),
            });
            conversation.messages.push(message);
        }
        let last = chat.nodes.iter().map(|node| node.no).max();
        conversation.last_no = last.unwrap_or_default();
        conversation
    }

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

    /// The name of the last message.
    #[must_use]
    pub fn leaf(&self) -> Option<MessageNo> {
        self.frames.last().map(|frame| frame.no)
    }

    /// What happened to the messages since this was last asked for.
    #[must_use]
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// Adds what the user said.
    pub fn push_user(&mut self, text: String) {
        self.push(Message::new(Role::User, text), "you".into());
    }

    /// Adds an empty reply of this model, chosen with these settings.
    pub fn push_reply(&mut self, author: Author, sampling: Sampling) {
        let label = short_name(&author.model);
        let mut reply = Message::new(Role::Assistant, "");
        reply.author = Some(author);
        reply.sampling = Some(sampling);
        self.push(reply, label);
    }

    fn push(&mut self, message: Message, label: String) {
        self.last_no.0 += 1;
        self.messages.push(message);
        self.frames.push(Frame {
            no: self.last_no,
            label,
            meta: None,
        });
        self.growing = Growing::default();
        self.put_last();
    }

    /// Takes the last message out for good.
    pub fn pop(&mut self) -> Option<Message> {
        let last = self.messages.pop()?;
        let frame = self.frames.pop();
        self.clean = self.clean.min(self.messages.len());
        self.changes
            .extend(frame.map(|frame| Change::Remove(frame.no)));
        Some(last)
    }

    /// Begins an empty chat; names go on to grow.
    pub fn clear(&mut self) {
        *self = Conversation {
            last_no: self.last_no,
            ..Conversation::default()
        };
    }

    /// Takes the messages after the first `count` off this branch.
    pub fn cut_off(&mut self, count: usize) -> Vec<CutOff> {
        let messages = self.messages.split_off(count.min(self.messages.len()));
        let frames = self.frames.split_off(count.min(self.frames.len()));
        self.clean = self.clean.min(count);
        messages
            .into_iter()
            .zip(frames)
            .map(|(message, frame)| CutOff(message, frame))
            .collect()
    }

    /// Puts messages back that were cut off.
    pub fn put_back(&mut self, cut_off: Vec<CutOff>) {
        for CutOff(message, frame) in cut_off {
            self.messages.push(message);
            self.frames.push(frame);
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
        self.put_last();
    }

    /// Lets the last message grow by a token.
    pub fn grow_last(&mut self, growth: Growth) {
        let (Some(message), Some(frame)) = (self.messages.last_mut(), self.frames.last()) else {
            return;
        };
        self.growing.grow(message, &growth);
        self.clean = self.clean.min(self.messages.len() - 1);
        self.changes.push(Change::Grow(frame.no, growth));
    }

    fn put_last(&mut self) {
        let parent = self.frames.len().checked_sub(2);
        if let (Some(message), Some(frame)) = (self.messages.last(), self.frames.last()) {
            self.changes.push(Change::Put(Box::new(Node {
                no: frame.no,
                parent: parent.map(|parent| self.frames[parent].no),
                message: message.clone(),
            })));
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
            id: frame.no.0,
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
    parts.extend(message.stop.and_then(cut_short).map(str::to_owned));
    let mut before = message.sampling.as_ref();
    for change in &message.sampling_changes {
        let what = differences(before, &change.sampling);
        if !what.is_empty() {
            let from = format::count(change.after_tokens + 1);
            parts.push(format!("{what} from token {from}"));
        }
        before = Some(&change.sampling);
    }
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// The settings that are no longer what they were, as the title of each and its value.
fn differences(before: Option<&Sampling>, now: &Sampling) -> String {
    let before = before.cloned().unwrap_or_default();
    let changed = [
        (before.temperature.to_bits() != now.temperature.to_bits())
            .then(|| format!("temp {:.2}", now.temperature)),
        (before.top_k != now.top_k).then(|| format!("top-k {}", now.top_k)),
        (before.top_p.to_bits() != now.top_p.to_bits()).then(|| format!("top-p {}", now.top_p)),
        (before.min_p.to_bits() != now.min_p.to_bits()).then(|| format!("min-p {}", now.min_p)),
        (before.repeat_penalty.to_bits() != now.repeat_penalty.to_bits())
            .then(|| format!("repeat penalty {}", now.repeat_penalty)),
        (before.repeat_last_n != now.repeat_last_n)
            .then(|| format!("repeat last n {}", now.repeat_last_n)),
    ];
    changed.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::SamplingChange;

    #[test]
    fn a_model_is_called_by_the_first_part_of_its_name() {
        assert_eq!(short_name("SmolLM2-135M-Instruct"), "smollm2");
        assert_eq!(short_name("Qwen2.5 0.5B"), "qwen2.5");
        assert_eq!(short_name(""), "model");
    }

    #[test]
    fn a_reply_says_where_its_settings_changed() {
        let mut message = Message::new(Role::Assistant, "x");
        assert_eq!(meta(&message), None);
        message.sampling = Some(Sampling::default());
        message.sampling_changes.push(SamplingChange {
            after_tokens: 57,
            sampling: Sampling {
                temperature: 0.85,
                ..Sampling::default()
            },
        });
        message.stop = Some(StopReason::Cancelled);
        assert_eq!(
            meta(&message).as_deref(),
            Some("stopped by you · temp 0.85 from token 58")
        );
    }
}
