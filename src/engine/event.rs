//! What the engine tells. Plain data, like the commands; one line of `--events json` each.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::command::RequestId;
use super::options::{FlashAttention, KvType, SwaCache};
use super::sampling::{Sampling, SamplingPatch};
use super::stats::TurnStats;
use super::token::{Role, TokenId, TokenRun};
use crate::clock::Timestamp;

/// Something that happened in the engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A model is being loaded.
    Loading {
        /// The load request.
        id: RequestId,
        /// From 0 to 1.
        progress: f32,
    },
    /// A model is loaded and its context made.
    Ready {
        /// The load request.
        id: RequestId,
        /// What it is.
        facts: Box<ModelFacts>,
        /// How long loading took.
        load: Duration,
    },
    /// Something that the user should know and that is no error: a fallback template, a merged message.
    Notice {
        /// One sentence.
        text: String,
    },
    /// Part of the prompt was read. The first one, with `read` 0, comes as soon as the prompt is known.
    Prefill {
        /// The generate request.
        id: RequestId,
        /// How far it is.
        progress: PrefillProgress,
    },
    /// A token was sampled.
    Token {
        /// The generate request.
        id: RequestId,
        /// The token.
        token: SampledToken,
    },
    /// A reply ended. What was generated stays in the conversation and in the cache.
    Finished {
        /// The generate request.
        id: RequestId,
        /// Why it ended.
        stop: StopReason,
        /// Text held back until now, to be appended to the reply.
        tail: String,
        /// How many bytes at the start of the tail are the model's thinking.
        tail_thinking_len: usize,
        /// All tokens of the reply.
        tokens: TokenRun,
        /// The reply's numbers.
        stats: Box<TurnStats>,
    },
    /// A request failed; the engine is ready for the next one.
    Failed {
        /// The request.
        id: RequestId,
        /// What went wrong and what to do.
        error: EngineError,
    },
    /// A conversation as the model would see it.
    Prompt {
        /// The tokenize request.
        id: RequestId,
        /// The rendered text.
        text: String,
        /// Its tokens, each with its text.
        tokens: Vec<PromptToken>,
    },
    /// What the cache holds now.
    Cache {
        /// Its contents.
        cache: CacheSnapshot,
    },
    /// Part of a prompt was read before it was asked for.
    ReadAhead {
        /// The request to read ahead.
        id: RequestId,
        /// Tokens of the prompt that the cache holds now.
        read: u32,
        /// Tokens of it that can't change any more.
        total: u32,
    },
    /// A chat's state was read back from its file.
    Restored {
        /// The restore request.
        id: RequestId,
        /// Tokens that need not be read now.
        tokens: u32,
        /// How long that took.
        took: Duration,
        /// How long reading them would have taken, by the rate measured when the state was written.
        saved: Option<Duration>,
    },
    /// No state of the chat was taken: it is read anew.
    NotRestored {
        /// The restore request.
        id: RequestId,
        /// Why; `None` where there is no file.
        reason: Option<String>,
    },
    /// The engine thread ended; nothing follows.
    Stopped,
}

/// One token of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptToken {
    /// The token.
    pub id: TokenId,
    /// Its text; a control token's name.
    pub text: String,
    /// Whether it is a control token.
    pub control: bool,
}

/// A token as it was sampled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampledToken {
    /// The token.
    pub id: TokenId,
    /// Its own bytes; a string where they are UTF-8, else base64 behind `base64:`.
    #[serde(with = "super::bytes_text")]
    pub bytes: Vec<u8>,
    /// The text that this token lets appear: whole characters, nothing of a possible stop string.
    pub text: String,
    /// How many bytes at the start of that text are the model's thinking.
    pub thinking_len: usize,
    /// The probability the model gave it: softmax of the raw logits, before any sampler.
    pub probability: f32,
    /// The likeliest tokens of this step, the likeliest first.
    pub alternatives: Vec<Alternative>,
    /// When it was sampled.
    pub at: Timestamp,
    /// The temperature in force.
    pub temperature: f32,
    /// The settings in force, where they changed with this token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Box<Sampling>>,
}

/// A candidate for the next token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alternative {
    /// The token.
    pub id: TokenId,
    /// Its text, lossy where it is not UTF-8 by itself.
    pub text: String,
    /// Softmax of the raw logits: what the model thinks.
    pub probability: f32,
    /// Its chance in the draw, after every sampler; 0 where a sampler removed it.
    pub chance: f32,
}

/// How far the prompt is read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PrefillProgress {
    /// Tokens of the whole prompt: reused + read ahead + to read.
    pub prompt_tokens: u32,
    /// Tokens found in the cache.
    pub reused_tokens: u32,
    /// Tokens that were read while the prompt was still being typed.
    #[serde(default)]
    pub read_ahead_tokens: u32,
    /// Tokens read so far.
    pub read_tokens: u32,
    /// Tokens read plus tokens to read.
    pub to_read_tokens: u32,
    /// Time since the first prefill call.
    pub elapsed: Duration,
    /// From submitting to the engine taking it up.
    pub queue: Duration,
    /// Rendering the template and tokenising.
    pub template: Duration,
    /// Why tokens are read that were in the cache or could have been.
    pub reread: Option<Reread>,
}

/// Tokens that are read again, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reread {
    /// How many.
    pub tokens: u32,
    /// Why.
    pub reason: RereadReason,
}

/// Why the cache could not serve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RereadReason {
    /// The conversation differs from message `message` (counted from 0) on: an edit, another chat.
    Edited {
        /// The first message that differs.
        message: usize,
    },
    /// The template rendered an earlier message differently.
    TemplateChanged {
        /// The message.
        message: usize,
    },
    /// The model's memory can't be cut back: recurrent, hybrid or a small sliding window.
    CannotRollBack,
    /// A failed or cancelled decode left a state that can't be trusted.
    DecodeFailed,
}

/// Why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model sampled an end-of-generation token.
    Eog,
    /// A stop string was met.
    Stop,
    /// The most tokens asked for.
    MaxTokens,
    /// The context is full.
    Context,
    /// The user stopped it.
    Cancelled,
    /// A decode failed; what came before it is kept.
    Error,
    /// The program ended in the middle. No engine says so: a reply read from disk has it.
    Interrupted,
}

/// An error as the user reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct EngineError {
    /// What failed, at which file, key or number.
    pub message: String,
    /// What to do next; empty where there is nothing.
    pub hint: String,
}

impl EngineError {
    /// An error with a hint.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        EngineError {
            message: message.into(),
            hint: hint.into(),
        }
    }
}

/// How a model remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MemoryKind {
    /// Keys and values of every token.
    Attention,
    /// Some layers see only the last `window` tokens.
    SlidingWindow {
        /// The window, in tokens.
        window: u32,
        /// How many cells those layers have.
        #[serde(default)]
        cells: SwaCache,
    },
    /// One state for the whole sequence.
    Recurrent,
    /// Both.
    Hybrid,
}

impl MemoryKind {
    /// Whether its end can be cut off anywhere.
    #[must_use]
    pub fn can_cut(self) -> bool {
        match self {
            MemoryKind::Attention
            | MemoryKind::SlidingWindow {
                cells: SwaCache::Full,
                ..
            } => true,
            MemoryKind::SlidingWindow {
                cells: SwaCache::Small,
                ..
            }
            | MemoryKind::Recurrent
            | MemoryKind::Hybrid => false,
        }
    }
}

/// Where the chat template came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TemplateSource {
    /// The model's own `tokenizer.chat_template`.
    Model,
    /// A known family's template, found by the model's name or vocabulary.
    Family {
        /// The family.
        name: String,
    },
    /// ChatML, for want of anything better.
    ChatMl,
    /// No template: a base model, whose turns are continued as text.
    Completion,
}

/// What is loaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelFacts {
    /// The model's name, from its metadata or else its file name.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// `general.architecture`.
    pub architecture: String,
    /// The quantisation by its usual name, such as `Q4_1`.
    pub quantization: String,
    /// Number of weights.
    pub parameters: u64,
    /// Bytes of all tensors.
    pub model_bytes: u64,
    /// Layers.
    pub layers: u32,
    /// Names the model's content: its size and a sample of its bytes.
    #[serde(default)]
    pub fingerprint: String,
    /// Size of the vocabulary.
    pub vocab: u32,
    /// Names the vocabulary: where it is the same, so are the meanings of all token ids.
    pub vocabulary: String,
    /// Context the model was trained on, in tokens.
    pub context_train: u32,
    /// Context in use, in tokens.
    pub context: u32,
    /// Most tokens a prefill call takes.
    pub batch: u32,
    /// Most tokens computed at once.
    pub ubatch: u32,
    /// Threads for prefill.
    pub threads_prefill: u32,
    /// Threads for decode.
    pub threads_decode: u32,
    /// Element type of the K cache.
    pub type_k: KvType,
    /// Element type of the V cache.
    pub type_v: KvType,
    /// Flash attention as asked for.
    pub flash_attention: FlashAttention,
    /// How it remembers.
    pub memory: MemoryKind,
    /// Bytes of K and V that one more token takes, over all layers; 0 for a recurrent model.
    pub kv_bytes_per_token: u64,
    /// Bytes of the recurrent state, which is as large for one token as for many; 0 for an attention model.
    pub state_bytes: u64,
    /// Bytes of the whole cache.
    pub kv_capacity_bytes: u64,
    /// Where the chat template came from.
    pub template: TemplateSource,
    /// The model's own recommended sampling.
    pub recommended: SamplingPatch,
}

/// What the cache holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CacheSnapshot {
    /// Cells in use.
    pub used: u32,
    /// Cells in all: the context's effective size.
    pub size: u32,
    /// Bytes in use.
    pub bytes: u64,
    /// Bytes in all.
    pub capacity_bytes: u64,
    /// The cells of the chat on screen in order, by whose message they hold.
    pub spans: Vec<CacheSpan>,
    /// Cells that only other branches and chats use.
    #[serde(default)]
    pub branches: u32,
    /// States of other branches and chats set aside in memory.
    #[serde(default)]
    pub parked: Kept,
    /// States to go back to, where the memory can't be cut back.
    #[serde(default)]
    pub checkpoints: Kept,
}

/// States kept beside the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Kept {
    /// How many.
    pub states: u32,
    /// Tokens they hold, or the last one's place for checkpoints.
    pub tokens: u64,
    /// Bytes they take.
    pub bytes: u64,
}

/// A run of cells that belong to one message (its template glue included).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheSpan {
    /// Whose message; `None` for what stands outside every message.
    pub role: Option<Role>,
    /// Number of cells.
    pub tokens: u32,
}

/// What the engine is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Waiting for a command.
    #[default]
    Idle,
    /// Reading a model file.
    Loading,
    /// Rendering and tokenising the prompt.
    Templating,
    /// Reading the prompt.
    Prefill,
    /// Generating.
    Decode,
}

/// Values that matter only as they are now; a newer one replaces an older one unread.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Gauges {
    /// What the engine is doing.
    pub phase: Phase,
    /// Prefill rate of the running or last prefill, tokens a second.
    pub prefill_tok_s: Option<f64>,
    /// Decode rate over the last second, tokens a second.
    pub decode_tok_s: Option<f64>,
    /// Cells in use.
    pub cache_used: u32,
}
