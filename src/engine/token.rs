//! The vocabulary of commands and events: token ids, roles, messages as the engine takes them.

use serde::{Deserialize, Serialize};

/// An index into the model's vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenId(pub i32);

/// Names a chat among those of one run. Prompts of one chat are taken as turns and branches of one conversation.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ChatKey(pub u64);

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The instructions that stand before the conversation.
    System,
    /// The person at the keyboard.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The name that chat templates use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        }
    }
}

/// The tokens of a generated text, as they were sampled. They are never made from the text again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TokenRun {
    /// The sampled ids, without the end-of-generation token.
    pub ids: Vec<TokenId>,
    /// How many bytes of the message's text these ids stand for; what follows (the part of a token before a
    /// stop string) is tokenised when it is next read.
    pub text_len: usize,
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptMessage {
    /// Who speaks.
    pub role: Role,
    /// The text, whole (a reply's thinking included).
    pub text: String,
    /// For a generated message, its tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenRun>,
}

impl PromptMessage {
    /// A message that was written, not generated.
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        PromptMessage {
            role,
            text: text.into(),
            tokens: None,
        }
    }
}
