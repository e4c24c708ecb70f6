//! The numbers of a turn, by the definitions of docs/metrics.md. Pure: fed with timestamps, tested with a fake
//! clock.

use serde::{Deserialize, Serialize};

use super::event::{RereadReason, StopReason};
use super::options::KvType;

/// The numbers of one turn: the line that `--stats json` prints. Times in milliseconds, rates in tokens a
/// second; `None` where a value does not exist.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnStats {
    /// The model's name.
    pub model: String,
    /// Tokens of the whole prompt: reused + read ahead + read.
    pub prompt_tokens: u32,
    /// Prompt tokens found in the cache.
    pub reused_tokens: u32,
    /// Prompt tokens read after the prompt was submitted.
    pub read_tokens: u32,
    /// Prompt tokens read while the prompt was still being typed.
    pub read_ahead_tokens: u32,
    /// Why tokens were read again.
    pub reread_reason: Option<RereadReason>,
    /// How many were.
    pub reread_tokens: u32,
    /// Tokens sampled, without the end-of-generation token.
    pub generated_tokens: u32,
    /// Why the reply ended.
    pub stop: StopReason,
    /// How long loading the model took, before the first turn.
    pub load_ms: f64,
    /// From submitting to the first sampled token reaching whoever asked.
    pub ttft_ms: Option<f64>,
    /// From submitting to the engine taking it up.
    pub queue_ms: f64,
    /// Rendering the template and tokenising.
    pub template_ms: f64,
    /// From the first prefill call to logits ready.
    pub prefill_ms: f64,
    /// From logits ready to the first token sampled.
    pub first_sample_ms: Option<f64>,
    /// Read tokens ÷ prefill time.
    pub prefill_tok_s: Option<f64>,
    /// (generated − 1) ÷ (last token's time − first token's time).
    pub decode_tok_s: Option<f64>,
    /// Percentiles of the time between sampled tokens.
    pub gap_ms: Option<Gaps>,
    /// Reused tokens × this session's measured prefill seconds a token, in milliseconds.
    pub saved_ms: Option<f64>,
    /// The cache at the end of the turn.
    pub cache: CacheStats,
    /// Threads in use.
    pub threads: Threads,
    /// The sampling at the end of the reply.
    pub sampling: SamplingStats,
}

/// Inter-token gaps in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gaps {
    /// The median.
    pub p50: f64,
    /// 95 of 100 are at most this.
    pub p95: f64,
    /// 99 of 100 are at most this.
    pub p99: f64,
}

/// The cache in a turn's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheStats {
    /// Cells in use.
    pub used: u32,
    /// Cells in all.
    pub size: u32,
    /// Bytes in use.
    pub bytes: u64,
    /// Bytes in all.
    pub capacity_bytes: u64,
    /// Element type of K.
    pub type_k: KvType,
    /// Element type of V.
    pub type_v: KvType,
}

/// Threads in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Threads {
    /// For prefill.
    pub prefill: u32,
    /// For decode.
    pub decode: u32,
}

/// The sampling in a turn's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SamplingStats {
    /// The temperature.
    pub temperature: f32,
    /// The seed that was drawn with.
    pub seed: u32,
}
