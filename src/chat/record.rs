//! What is told to the store and what comes back from it, as plain data.

use std::fmt;
use std::path::PathBuf;

use crate::engine::token::TokenId;

use super::Message;

/// A chat of this run of the program, whether or not the store knows it yet. They grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ChatSlot(pub u64);

/// A chat in the store: what `platen chats` calls it by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChatId(pub i64);

impl fmt::Display for ChatId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Names a message within its chat. They grow from 1, and none is given twice: a message comes after the one that it
/// answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MessageNo(pub u64);

/// A message at its place in the tree of the chat.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its name.
    pub no: MessageNo,
    /// The message before it; `None` for the first. Messages with the same one are alternatives.
    pub parent: Option<MessageNo>,
    /// The message.
    pub message: Message,
}

/// A token that a reply grew by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Growth {
    /// The text that appeared.
    pub text: String,
    /// How many bytes at its start are the model's thinking.
    pub thinking_len: usize,
    /// The token.
    pub token: TokenId,
    /// How many bytes the token itself stands for; its text may appear later.
    pub token_bytes: usize,
}

/// Something that happened to the messages of a chat.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A message is new, or is this now.
    Put(Box<Node>),
    /// The reply of this name grew.
    Grow(MessageNo, Growth),
    /// A message is to be forgotten.
    Remove(MessageNo),
}

/// What holds for a chat as a whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChatHead {
    /// The system prompt.
    pub system: Option<String>,
    /// The model it is held with.
    pub model: Option<ModelRef>,
    /// The message it stands at: the last one of the branch on screen.
    pub leaf: Option<MessageNo>,
}

/// A model, so that it can be found again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRef {
    /// Its name.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
}

/// A chat as the store holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredChat {
    /// Its name.
    pub id: ChatId,
    /// Its title; as it was written, so not safe to draw as it is.
    pub title: String,
    /// When its first message was written, in milliseconds since 1970.
    pub created_ms: i64,
    /// When it last changed, in milliseconds since 1970.
    pub updated_ms: i64,
    /// What holds for the whole.
    pub head: ChatHead,
    /// All messages, parents before what follows them.
    pub nodes: Vec<Node>,
    /// Messages left out, for this version can't say what they are.
    pub unknown: usize,
}

impl StoredChat {
    /// The branch that the chat stands at, oldest message first.
    #[must_use]
    pub fn branch(&self) -> Vec<&Node> {
        let find = |no: MessageNo| self.nodes.iter().find(|node| node.no == no);
        let leaf = self.head.leaf.and_then(find);
        let mut branch = Vec::new();
        let mut next = leaf.or_else(|| self.nodes.iter().max_by_key(|node| node.no));
        while let Some(node) = next {
            branch.push(node);
            next = node
                .parent
                .filter(|parent| *parent < node.no)
                .and_then(find);
        }
        branch.reverse();
        branch
    }
}

/// A chat in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatSummary {
    /// Its name.
    pub id: ChatId,
    /// Its title; as it was written, so not safe to draw as it is.
    pub title: String,
    /// When its first message was written, in milliseconds since 1970.
    pub created_ms: i64,
    /// When it last changed, in milliseconds since 1970.
    pub updated_ms: i64,
    /// The model it is held with.
    pub model: Option<String>,
    /// Messages, alternatives included.
    pub messages: u64,
}
