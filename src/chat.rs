//! The conversation as the user sees it: messages with what was measured while they came.

use serde::{Deserialize, Serialize};

use crate::engine::event::StopReason;
use crate::engine::stats::TurnStats;
use crate::engine::token::{PromptMessage, Role, TokenRun};

/// A message of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The text, whole and unchanged; what is drawn is made harmless on the way to the screen.
    pub text: String,
    /// The byte length of the model's thinking at the start of the text; 0 where there is none.
    pub thinking_len: usize,
    /// For a reply, its tokens.
    pub tokens: Option<TokenRun>,
    /// For a finished reply, why it ended.
    pub stop: Option<StopReason>,
    /// For a finished reply, its numbers.
    pub stats: Option<Box<TurnStats>>,
    /// Temperatures set in mid-reply: how many tokens were there, and the new value.
    pub temperature_changes: Vec<(u32, f32)>,
}

impl Message {
    /// A message that was written.
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Message {
            role,
            text: text.into(),
            thinking_len: 0,
            tokens: None,
            stop: None,
            stats: None,
            temperature_changes: Vec::new(),
        }
    }

    /// As the engine takes it.
    #[must_use]
    pub fn to_prompt(&self) -> PromptMessage {
        PromptMessage {
            role: self.role,
            text: self.text.clone(),
            tokens: self.tokens.clone(),
        }
    }
}
