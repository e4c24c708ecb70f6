//! What the engine can be asked to do. Plain data: it can cross a thread, a pipe or a network.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::options::LoadOptions;
use super::sampling::Sampling;
use super::token::{ChatKey, PromptMessage};
use crate::clock::Timestamp;

/// Names one request. Ids grow; cancelling "through id N" cancels every request up to N and none after.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct RequestId(pub u64);

/// A request to the engine. They are served in order, except [`Command::SetSampling`], which takes effect
/// on the next token even while a reply is being generated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Loads a model and makes its context; what was loaded before is dropped first.
    Load {
        /// Names the request.
        id: RequestId,
        /// The GGUF file.
        path: PathBuf,
        /// How to load it.
        options: LoadOptions,
    },
    /// Generates a reply to a conversation.
    Generate {
        /// Names the request.
        id: RequestId,
        /// The conversation and the settings.
        request: GenerateRequest,
    },
    /// Changes the sampling of the reply being generated, from its next token on.
    SetSampling {
        /// The new settings, valid by [`Sampling::validate`].
        sampling: Sampling,
    },
    /// Renders and tokenises a conversation without reading it; answered by [`super::event::Event::Prompt`].
    Tokenize {
        /// Names the request.
        id: RequestId,
        /// The conversation.
        messages: Vec<PromptMessage>,
    },
    /// Reads what can't change any more of a conversation whose last message is still being written; answered by
    /// [`super::event::Event::ReadAhead`]. It gives way to every other command.
    ReadAhead {
        /// Names the request.
        id: RequestId,
        /// The chat.
        chat: ChatKey,
        /// The conversation so far.
        messages: Vec<PromptMessage>,
        /// What is written of the next message.
        draft: String,
    },
    /// Writes the state of a chat to a file, in the background; without a word where there is nothing worth it.
    Save {
        /// The chat.
        chat: ChatKey,
        /// The file. Others beside it give way.
        file: PathBuf,
        /// Bytes that all files beside it may take together.
        budget: u64,
    },
    /// Reads the state of a chat back, where it is the beginning of this conversation; answered by
    /// [`super::event::Event::Restored`] or [`super::event::Event::NotRestored`].
    Restore {
        /// Names the request.
        id: RequestId,
        /// The chat.
        chat: ChatKey,
        /// The file.
        file: PathBuf,
        /// The conversation, oldest message first.
        messages: Vec<PromptMessage>,
    },
    /// Forgets the cache.
    Clear,
    /// Frees everything in order and ends the thread.
    Shutdown,
}

/// A conversation to answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GenerateRequest {
    /// The chat that it belongs to.
    #[serde(default)]
    pub chat: ChatKey,
    /// The conversation, oldest first; the last message is the one to answer.
    pub messages: Vec<PromptMessage>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Texts that end the reply; they are not part of it.
    #[serde(default)]
    pub stop: Vec<String>,
    /// Most tokens to generate.
    pub max_tokens: u32,
    /// When the user submitted it; the start of the time to first token.
    pub submitted: Timestamp,
}
