//! How a model is loaded: what the context costs and what runs it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The context size taken where none is asked for, in tokens (less where the model was trained on less).
pub const DEFAULT_CONTEXT: u32 = 8192;

/// Memory for states set aside where nothing else is asked for, in MiB.
pub const DEFAULT_RAM_MIB: u32 = 1024;

/// The element type of the K or the V cache. Only types that decode correctly on every backend are here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KvType {
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    #[default]
    F16,
    /// 16-bit brain floats.
    Bf16,
    /// 8-bit blocks of 32 with a 16-bit scale: 34 bytes a block.
    #[serde(rename = "q8_0")]
    Q8_0,
}

impl KvType {
    /// All types, in the order in which help lists them.
    pub const ALL: [KvType; 4] = [KvType::F32, KvType::F16, KvType::Bf16, KvType::Q8_0];

    /// The name used on the command line, in the configuration and on screen.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            KvType::F32 => "f32",
            KvType::F16 => "f16",
            KvType::Bf16 => "bf16",
            KvType::Q8_0 => "q8_0",
        }
    }

    /// The bytes that `elements` values take, whole blocks counted.
    #[must_use]
    pub fn bytes(self, elements: u64) -> u64 {
        match self {
            KvType::F32 => elements * 4,
            KvType::F16 | KvType::Bf16 => elements * 2,
            KvType::Q8_0 => elements.div_ceil(32) * 34,
        }
    }
}

impl fmt::Display for KvType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for KvType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        KvType::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| format!("'{text}' is no cache type; use one of f32, f16, bf16, q8_0"))
    }
}

/// Whether attention runs in one fused kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlashAttention {
    /// llama.cpp chooses.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

impl FromStr for FlashAttention {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(FlashAttention::Auto),
            "on" => Ok(FlashAttention::On),
            "off" => Ok(FlashAttention::Off),
            other => Err(format!(
                "'{other}' is no flash-attention setting; use auto, on or off"
            )),
        }
    }
}

/// How many cells the layers of a sliding window get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SwaCache {
    /// As many as the others, so that what was said can be taken back at any place.
    #[default]
    Full,
    /// The window and one ubatch: less memory, and checkpoints where something is taken back.
    Small,
}

impl SwaCache {
    /// The name used on the command line, in the configuration and on screen.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SwaCache::Full => "full",
            SwaCache::Small => "small",
        }
    }
}

impl FromStr for SwaCache {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "full" => Ok(SwaCache::Full),
            "small" => Ok(SwaCache::Small),
            other => Err(format!(
                "'{other}' is no size of the window's cache; use full or small"
            )),
        }
    }
}

/// What happens where a model and its context need more memory than is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryCheck {
    /// It is refused.
    #[default]
    Check,
    /// It is loaded anyway.
    Force,
}

/// What a model is loaded with. `None` leaves the choice to the engine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoadOptions {
    /// Context size in tokens; `None`: the smaller of [`DEFAULT_CONTEXT`] and what the model was trained on;
    /// 0: what the model was trained on.
    pub context: Option<u32>,
    /// Threads for decode; `None`: the physical cores this process may use.
    pub threads: Option<u32>,
    /// Threads for prefill; `None`: as for decode.
    pub threads_prefill: Option<u32>,
    /// Most tokens handed to one prefill call; `None`: 512.
    pub batch: Option<u32>,
    /// Most tokens computed at once within a call; `None`: 512.
    pub ubatch: Option<u32>,
    /// Element type of the K cache.
    pub kv_type_k: KvType,
    /// Element type of the V cache.
    pub kv_type_v: KvType,
    /// Flash attention.
    pub flash_attention: FlashAttention,
    /// Cells of the layers with a sliding window.
    pub swa_cache: SwaCache,
    /// Memory for states set aside, in MiB; `None`: at most [`DEFAULT_RAM_MIB`] and a quarter of what is free.
    pub cache_ram: Option<u32>,
    /// Layers kept on the GPU; `None`: as many as fit.
    pub gpu_layers: Option<u32>,
    /// What happens where that needs more memory than is free.
    pub memory: MemoryCheck,
}
