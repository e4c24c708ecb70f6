//! Which layer remembers what: the rules of llama.cpp's `load_hparams` and its `models/*.cpp`.

use super::super::gguf::{GgufFile, Value};
use super::{Attention, KvLayout, Layer, Reach};

/// Largest head count, head length or embedding accepted: the products below then fit 64 bits with room.
const MOST: u64 = 1 << 24;

/// Models that hold states alone.
const RECURRENT: [&str; 6] = ["mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"];

/// Models where a layer without KV heads holds a state.
const HYBRID_BY_HEADS: [&str; 10] = [
    "jamba",
    "lfm2",
    "lfm2moe",
    "granitehybrid",
    "plamo2",
    "nemotron_h",
    "nemotron_h_moe",
    "kimi-linear",
    "kimi-k3",
    "bailingmoe3",
];

/// Models where all layers hold states but every n-th.
const HYBRID_BY_INTERVAL: [&str; 4] = ["qwen3next", "qwen35", "qwen35moe", "qwen4exp"];

/// Models with caches of other shapes (index keys, compressed blocks, linear attention).
const APPROXIMATE: [&str; 10] = [
    "deepseek32",
    "deepseek4",
    "glm-dsa",
    "glm5-next",
    "minimax-m3",
    "qwen4exp",
    "hy-v4",
    "dots3note",
    "kimi-k3",
    "minimax-01",
];

pub(super) fn read(file: &GgufFile) -> Result<KvLayout, String> {
    let facts = Facts { file };
    let architecture = file.architecture();
    let blocks = facts.required("block_count")?;
    let blocks = blocks
        .saturating_sub(facts.number("nextn_predict_layers", 0)?)
        .max(1);
    let count = usize::try_from(blocks).map_err(|error| error.to_string())?;
    let heads = facts.per_layer("attention.head_count", count, 0)?;
    let first_heads = heads.first().copied().unwrap_or(0);
    let kv_heads = match file.arch("attention.head_count_kv") {
        Some(_) => facts.per_layer("attention.head_count_kv", count, 0)?,
        None => heads,
    };
    let head_length = match first_heads {
        0 => 0,
        heads => facts.required("embedding_length")? / heads,
    };
    let lengths = [
        facts.number("attention.key_length", head_length)?,
        facts.number("attention.value_length", head_length)?,
    ];
    let window_lengths = [
        facts.number("attention.key_length_swa", lengths[0])?,
        facts.number("attention.value_length_swa", lengths[1])?,
    ];
    let latent = facts.number("attention.key_length_mla", 0)? > 0
        && facts.number("attention.value_length_mla", 0)? > 0;
    let windows = windows(&facts, count, &kv_heads)?;
    let kinds = kinds(&facts, count, &kv_heads)?;
    let state_bytes = state_bytes(&facts)?;
    let owners = layers_with_own_cache(&facts, blocks)?;

    let layers = (0..count)
        .map(|index| {
            let reach = if windows.layers[index] {
                Reach::Window
            } else {
                Reach::Full
            };
            let [key, value] = if windows.layers[index] {
                window_lengths
            } else {
                lengths
            };
            let attention = Attention {
                key_elements: kv_heads[index] * key,
                value_elements: if latent { 0 } else { kv_heads[index] * value },
                reach,
            };
            let has_cells =
                kinds[index].attends() && attention.key_elements > 0 && (index as u64) < owners;
            Layer {
                attention: has_cells.then_some(attention),
                state_bytes: if kinds[index].recurs() {
                    state_bytes
                } else {
                    0
                },
            }
        })
        .collect();
    let window = if windows.layers.contains(&true) {
        windows.tokens
    } else {
        0
    };
    Ok(KvLayout {
        layers,
        window,
        approximate: APPROXIMATE.contains(&architecture),
    })
}

#[derive(Clone, Copy)]
enum Kind {
    Attention,
    State,
    Both,
    Neither,
}

impl Kind {
    fn attends(self) -> bool {
        matches!(self, Kind::Attention | Kind::Both)
    }

    fn recurs(self) -> bool {
        matches!(self, Kind::State | Kind::Both)
    }
}

fn kinds(facts: &Facts, count: usize, kv_heads: &[u64]) -> Result<Vec<Kind>, String> {
    let architecture = facts.file.architecture();
    if RECURRENT.contains(&architecture) {
        return Ok(vec![Kind::State; count]);
    }
    if architecture == "falcon-h1" {
        return Ok(vec![Kind::Both; count]);
    }
    if HYBRID_BY_INTERVAL.contains(&architecture) {
        if let Some(recurrent) = facts.flags("attention.recurrent_layers", count) {
            return Ok(recurrent
                .into_iter()
                .map(|state| if state { Kind::State } else { Kind::Attention })
                .collect());
        }
        let interval = facts.number("full_attention_interval", 4)?.max(1);
        let attends = |index: u64| (index + 1).is_multiple_of(interval);
        return Ok((0..count as u64)
            .map(|i| {
                if attends(i) {
                    Kind::Attention
                } else {
                    Kind::State
                }
            })
            .collect());
    }
    if HYBRID_BY_HEADS.contains(&architecture) {
        // Nemotron-H has layers that are neither: those with a feed-forward length.
        let feed_forward = match architecture {
            "nemotron_h" | "nemotron_h_moe" => facts.per_layer("feed_forward_length", count, 0)?,
            _ => vec![0; count],
        };
        let kind = |index: usize| match (feed_forward[index], kv_heads[index]) {
            (0, 0) => Kind::State,
            (0, _) => Kind::Attention,
            _ => Kind::Neither,
        };
        return Ok((0..count).map(kind).collect());
    }
    Ok(vec![Kind::Attention; count])
}

struct Windows {
    tokens: u64,
    layers: Vec<bool>,
}

fn windows(facts: &Facts, count: usize, kv_heads: &[u64]) -> Result<Windows, String> {
    let none = Windows {
        tokens: 0,
        layers: vec![false; count],
    };
    let architecture = facts.file.architecture();
    let given = facts.optional("attention.sliding_window")?;
    let tokens = match (architecture, given) {
        ("phi3", _) | (_, Some(0)) => return Ok(none),
        ("llama4", _) => 8192,
        ("smallthinker", Some(_)) | ("gemma2", None) => 4096,
        ("exaone4", given) if count == 64 => given.unwrap_or(4096),
        (_, Some(tokens)) => tokens,
        (_, None) => return Ok(none),
    };
    if architecture == "lfm2" {
        return Ok(Windows {
            tokens,
            layers: kv_heads.iter().map(|&heads| heads > 0).collect(),
        });
    }
    // The period of layers that see everything, and whether the period starts with it.
    let default = match architecture {
        "gemma3" => Some((6, false)),
        "gemma2" | "gpt-oss" => Some((2, false)),
        "gemma3n" => Some((5, false)),
        "cohere2" | "llama4" | "olmo2" | "afmoe" | "exaone-moe" | "mellum" | "muse-glimmer" => {
            Some((4, false))
        }
        "exaone4" if count == 64 => Some((4, false)),
        "smallthinker" | "cohere2moe" | "laguna" => Some((4, true)),
        "plamo3" => Some((8, false)),
        _ => None,
    };
    if let Some(layers) = facts.flags("attention.sliding_window_pattern", count) {
        return Ok(Windows { tokens, layers });
    }
    let Some((period, full_first)) = default else {
        return Ok(none);
    };
    let period = facts.number("attention.sliding_window_pattern", period)?;
    let is_window = |index: u64| match (period, full_first) {
        (0, _) => true,
        (period, true) => !index.is_multiple_of(period),
        (period, false) => index % period < period - 1,
    };
    Ok(Windows {
        tokens,
        layers: (0..count as u64).map(is_window).collect(),
    })
}

/// Gemma 3n and 4 let their last layers read an earlier layer's cache.
fn layers_with_own_cache(facts: &Facts, blocks: u64) -> Result<u64, String> {
    Ok(match facts.file.architecture() {
        "gemma3n" => 20,
        "gemma4" => blocks.saturating_sub(facts.number("attention.shared_kv_layers", 0)?),
        _ => blocks,
    })
}

/// The bytes of one layer's state: `n_embd_r + n_embd_s` floats of 32 bits.
fn state_bytes(facts: &Facts) -> Result<u64, String> {
    let embedding = facts.number("embedding_length", 0)?;
    let heads = facts.per_layer("attention.head_count", 1, 0)?[0];
    let wkv = facts.number("wkv.head_size", 0)?;
    let short = facts.number("shortconv.l_cache", 0)?;
    let kda = facts.number("kda.head_dim", 0)?;
    let kernel = facts.number("ssm.conv_kernel", 0)?;
    let inner = facts.number("ssm.inner_size", 0)?;
    let state = facts.number("ssm.state_size", 0)?;
    let groups = facts.number("ssm.group_count", 0)?;
    let product = |factors: &[u64]| {
        factors
            .iter()
            .try_fold(1_u64, |product, &factor| product.checked_mul(factor))
    };
    let (shifts, states) = if wkv > 0 {
        (
            product(&[facts.number("token_shift_count", 2)?, embedding]),
            product(&[embedding, wkv]),
        )
    } else if short > 0 {
        (product(&[embedding, short - 1]), Some(0))
    } else if kda > 0 {
        let kernel = if kernel > 0 { kernel - 1 } else { 3 };
        (
            product(&[3, kernel, heads, kda]),
            product(&[kda, kda, heads]),
        )
    } else {
        (
            product(&[kernel.saturating_sub(1), inner + 2 * groups * state]),
            product(&[state, inner]),
        )
    };
    shifts
        .zip(states)
        .and_then(|(shifts, states)| shifts.checked_add(states)?.checked_mul(4))
        .ok_or_else(|| "the recurrent state's sizes are out of range".to_owned())
}

struct Facts<'file> {
    file: &'file GgufFile,
}

impl Facts<'_> {
    fn optional(&self, key: &str) -> Result<Option<u64>, String> {
        match self.file.arch(key) {
            None | Some(Value::Array(_)) => Ok(None),
            Some(value) => self.limited(key, value).map(Some),
        }
    }

    fn number(&self, key: &str, default: u64) -> Result<u64, String> {
        Ok(self.optional(key)?.unwrap_or(default))
    }

    fn required(&self, key: &str) -> Result<u64, String> {
        self.optional(key)?
            .ok_or_else(|| format!("'{}.{key}' is missing", self.file.architecture()))
    }

    fn per_layer(&self, key: &str, count: usize, default: u64) -> Result<Vec<u64>, String> {
        let Some(Value::Array(array)) = self.file.arch(key) else {
            return Ok(vec![self.number(key, default)?; count]);
        };
        let items = array.items.as_deref().unwrap_or_default();
        if items.len() < count {
            return Err(format!(
                "'{}.{key}' has {} values for {count} layers",
                self.file.architecture(),
                items.len()
            ));
        }
        items
            .iter()
            .take(count)
            .map(|item| self.limited(key, item))
            .collect()
    }

    fn flags(&self, key: &str, count: usize) -> Option<Vec<bool>> {
        let items = self.file.arch(key)?.as_array()?.items.as_deref()?;
        let flag = |item: &Value| {
            item.as_bool()
                .or_else(|| item.as_u64().map(|number| number != 0))
        };
        let flags: Vec<bool> = items.iter().take(count).map(flag).collect::<Option<_>>()?;
        (flags.len() == count).then_some(flags)
    }

    fn limited(&self, key: &str, value: &Value) -> Result<u64, String> {
        match value.as_u64() {
            Some(number) if number <= MOST => Ok(number),
            _ => Err(format!(
                "'{}.{key}' is {value}, expected a number up to {MOST}",
                self.file.architecture()
            )),
        }
    }
}
