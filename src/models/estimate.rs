//! What a context will cost in memory, worked out from a model's header before it is loaded.
//!
//! A token's share of the KV cache is, as in llama.cpp's `llama_kv_cache`, the sum over layers of
//! KV heads × (key length × bytes of the K type + value length × bytes of the V type). Layers with a sliding
//! window need no more cells than the window where the small cache is chosen, and recurrent layers hold a
//! state of fixed size (`llama_hparams::n_embd_r` and `n_embd_s`, in 32-bit floats) instead of cells.

mod layout;

use crate::engine::options::{KvType, SwaCache};

use super::gguf::GgufFile;

/// llama.cpp rounds contexts and the small window cache up to this many cells.
const CELLS: u64 = 256;

/// What one layer remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layer {
    /// Its attention, if it has any of its own.
    pub attention: Option<Attention>,
    /// The bytes of its recurrent state for one sequence; 0 where it has none.
    pub state_bytes: u64,
}

/// The cache of one attention layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attention {
    /// Elements of K for a token: KV heads × key length.
    pub key_elements: u64,
    /// Elements of V for a token: KV heads × value length; 0 where V is a part of K (MLA).
    pub value_elements: u64,
    /// Which tokens it sees.
    pub reach: Reach,
}

/// Which tokens a layer sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// All of them.
    Full,
    /// Those in the model's sliding window.
    Window,
}

/// How much of the cache windowed layers get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WindowCache {
    /// As many cells as the full layers, so that a reply can be taken back.
    Full,
    /// The window and one ubatch.
    Small {
        /// Tokens computed at once.
        ubatch: u32,
    },
}

impl WindowCache {
    /// What a context with this option has.
    #[must_use]
    pub fn of(cache: SwaCache, ubatch: u32) -> WindowCache {
        match cache {
            SwaCache::Full => WindowCache::Full,
            SwaCache::Small => WindowCache::Small { ubatch },
        }
    }
}

/// What the memory of a model looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvLayout {
    /// The layers in order.
    pub layers: Vec<Layer>,
    /// The sliding window in tokens; 0 where no layer has one.
    pub window: u64,
    /// Whether the architecture has caches of other shapes, so that the numbers are only near the truth.
    pub approximate: bool,
}

impl KvLayout {
    /// Reads the layout from a model's header.
    ///
    /// # Errors
    /// A number that the formula needs is missing or out of range; the text names it.
    pub fn of(file: &GgufFile) -> Result<KvLayout, String> {
        layout::read(file)
    }

    /// The bytes of cache that one more token takes where every layer keeps every token.
    #[must_use]
    pub fn bytes_per_token(&self, kv_type_k: KvType, kv_type_v: KvType) -> u64 {
        self.bytes_of(kv_type_k, kv_type_v, |_| true)
    }

    /// The bytes that one more token takes once the small window cache is full: those of the full layers.
    #[must_use]
    pub fn bytes_per_token_past_window(&self, kv_type_k: KvType, kv_type_v: KvType) -> u64 {
        self.bytes_of(kv_type_k, kv_type_v, |reach| reach == Reach::Full)
    }

    /// The bytes of all recurrent states for one sequence.
    #[must_use]
    pub fn state_bytes(&self) -> u64 {
        self.layers.iter().map(|layer| layer.state_bytes).sum()
    }

    /// The bytes that a context of `context` tokens takes from the start, states included.
    #[must_use]
    pub fn capacity_bytes(
        &self,
        context: u64,
        types: (KvType, KvType),
        windows: WindowCache,
    ) -> u64 {
        let cells = context.max(1).next_multiple_of(CELLS);
        let window_cells = match windows {
            WindowCache::Full => cells,
            WindowCache::Small { ubatch } => cells
                .min(self.window.saturating_add(u64::from(ubatch)))
                .next_multiple_of(CELLS),
        };
        let full = self.bytes_of(types.0, types.1, |reach| reach == Reach::Full);
        let window = self.bytes_of(types.0, types.1, |reach| reach == Reach::Window);
        full.saturating_mul(cells)
            .saturating_add(window.saturating_mul(window_cells))
            .saturating_add(self.state_bytes())
    }

    /// Whether any layer has a sliding window.
    #[must_use]
    pub fn has_window(&self) -> bool {
        self.attention()
            .any(|attention| attention.reach == Reach::Window)
    }

    /// Whether any layer has a recurrent state, which cannot be rolled back.
    #[must_use]
    pub fn is_recurrent(&self) -> bool {
        self.layers.iter().any(|layer| layer.state_bytes > 0)
    }

    fn attention(&self) -> impl Iterator<Item = &Attention> {
        self.layers
            .iter()
            .filter_map(|layer| layer.attention.as_ref())
    }

    fn bytes_of(
        &self,
        kv_type_k: KvType,
        kv_type_v: KvType,
        counts: impl Fn(Reach) -> bool,
    ) -> u64 {
        self.attention()
            .filter(|attention| counts(attention.reach))
            .map(|attention| {
                kv_type_k.bytes(attention.key_elements) + kv_type_v.bytes(attention.value_elements)
            })
            .sum()
    }
}

#[cfg(test)]
mod tests;
