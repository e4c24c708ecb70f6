//! What a context is made of, and the limits within which llama.cpp makes one without aborting.

use llama_cpp_sys_2 as sys;

use crate::engine::options::{FlashAttention, KvType, SwaCache};

/// The largest context that is asked of llama.cpp, in tokens; beyond it building the cell tables alone takes
/// minutes.
pub const LARGEST_CONTEXT: u32 = 1 << 24;

/// What a context is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextParams {
    /// Tokens it holds, over all sequences.
    pub context: u32,
    /// Most tokens a decode call takes.
    pub batch: u32,
    /// Most tokens computed at once.
    pub ubatch: u32,
    /// Most sequences.
    pub sequences: u32,
    /// Threads for one token at a time.
    pub threads_decode: u32,
    /// Threads for many at once.
    pub threads_prefill: u32,
    /// Element type of K.
    pub type_k: KvType,
    /// Element type of V.
    pub type_v: KvType,
    /// Flash attention.
    pub flash_attention: FlashAttention,
    /// Cells of the layers with a sliding window.
    pub swa_cache: SwaCache,
}

/// Why a context could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContextError {
    /// A number out of its limits.
    #[error("{name} is {value}; it must be {expected}")]
    Limit {
        /// Which number.
        name: &'static str,
        /// The value.
        value: u32,
        /// What is allowed.
        expected: &'static str,
    },
    /// A quantised V cache works with flash attention alone.
    #[error("a {0} V cache needs flash attention; turn it on or use f16")]
    NeedsFlashAttention(KvType),
    /// llama.cpp refused.
    #[error("llama.cpp could not make a context of {context} tokens: {reason}")]
    Refused {
        /// The size asked for.
        context: u32,
        /// Its own words, from its log.
        reason: String,
    },
}

/// The most threads that are taken.
pub const MOST_THREADS: u32 = 512;

/// Checks every number against its limits.
pub(super) fn check(params: &ContextParams) -> Result<(), ContextError> {
    let rules: [(&'static str, u32, bool, &'static str); 6] = [
        (
            "the context size",
            params.context,
            (1..=LARGEST_CONTEXT).contains(&params.context),
            "from 1 to 16,777,216 tokens",
        ),
        (
            "the number of sequences",
            params.sequences,
            (1..=64).contains(&params.sequences),
            "from 1 to 64",
        ),
        (
            "the batch size",
            params.batch,
            params.batch >= params.sequences.max(1) && params.batch <= LARGEST_CONTEXT,
            "at least the number of sequences and at most 16,777,216 tokens",
        ),
        (
            "the micro-batch size",
            params.ubatch,
            params.ubatch >= 1 && params.ubatch <= params.batch,
            "at least 1 and at most the batch size",
        ),
        (
            "the number of decode threads",
            params.threads_decode,
            (1..=MOST_THREADS).contains(&params.threads_decode),
            "from 1 to 512",
        ),
        (
            "the number of prefill threads",
            params.threads_prefill,
            (1..=MOST_THREADS).contains(&params.threads_prefill),
            "from 1 to 512",
        ),
    ];
    if let Some((name, value, _, expected)) = rules.into_iter().find(|(_, _, valid, _)| !valid) {
        return Err(ContextError::Limit {
            name,
            value,
            expected,
        });
    }
    if params.type_v == KvType::Q8_0 && params.flash_attention == FlashAttention::Off {
        return Err(ContextError::NeedsFlashAttention(params.type_v));
    }
    Ok(())
}

/// llama.cpp's number for a cache type.
pub(super) fn ggml_type(kind: KvType) -> sys::ggml_type {
    match kind {
        KvType::F32 => sys::GGML_TYPE_F32,
        KvType::F16 => sys::GGML_TYPE_F16,
        KvType::Bf16 => sys::GGML_TYPE_BF16,
        KvType::Q8_0 => sys::GGML_TYPE_Q8_0,
    }
}
