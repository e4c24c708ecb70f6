#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::Cursor;
use std::path::Path;

use super::super::tiny_gguf::{TinyGguf, TinyKind, Value};
use super::*;

const F16: (KvType, KvType) = (KvType::F16, KvType::F16);

fn layout(model: &TinyGguf) -> KvLayout {
    KvLayout::of(&file(model)).unwrap()
}

fn file(model: &TinyGguf) -> GgufFile {
    let bytes = model.encode();
    let size = bytes.len() as u64;
    GgufFile::from_reader(Cursor::new(bytes), size, Path::new("m.gguf")).unwrap()
}

#[test]
fn plain_attention_costs_the_same_for_every_token() {
    let layout = layout(&TinyGguf::new(TinyKind::Llama));
    // 2 layers × 2 KV heads × (16 + 16) elements × 2 bytes
    assert_eq!(layout.bytes_per_token(KvType::F16, KvType::F16), 256);
    assert_eq!(layout.bytes_per_token(KvType::F32, KvType::F16), 384);
    // 32 elements are one block of 34 bytes
    assert_eq!(
        layout.bytes_per_token(KvType::Q8_0, KvType::Q8_0),
        2 * 2 * 34
    );
    assert_eq!(
        layout.capacity_bytes(2048, F16, WindowCache::Full),
        256 * 2048
    );
    assert_eq!(
        layout.capacity_bytes(2000, F16, WindowCache::Full),
        256 * 2048,
        "rounded up to 256 cells"
    );
    assert!(!layout.has_window() && !layout.is_recurrent());
}

#[test]
fn windowed_layers_stop_growing_in_the_small_cache() {
    let layout = layout(&TinyGguf::new(TinyKind::Gemma3));
    // six layers of one KV head of 16 + 16 elements; the sixth sees everything
    assert_eq!(layout.bytes_per_token(KvType::F16, KvType::F16), 6 * 64);
    assert_eq!(
        layout.bytes_per_token_past_window(KvType::F16, KvType::F16),
        64
    );
    assert_eq!(
        layout.capacity_bytes(4096, F16, WindowCache::Full),
        6 * 64 * 4096
    );
    // 64 + 512 cells, rounded up to 768
    let small = layout.capacity_bytes(4096, F16, WindowCache::Small { ubatch: 512 });
    assert_eq!(small, 64 * 4096 + 5 * 64 * 768);
    // never more than the context
    let short = layout.capacity_bytes(256, F16, WindowCache::Small { ubatch: 512 });
    assert_eq!(short, 6 * 64 * 256);
    assert_eq!(layout.window, 64);
}

#[test]
fn recurrent_models_cost_the_same_for_any_context() {
    let layout = layout(&TinyGguf::new(TinyKind::Mamba));
    assert_eq!(layout.bytes_per_token(KvType::F16, KvType::F16), 0);
    // 2 layers × (3 × 128 + 16 × 128) floats
    assert_eq!(layout.state_bytes(), 2 * (3 * 128 + 16 * 128) * 4);
    assert_eq!(
        layout.capacity_bytes(256, F16, WindowCache::Full),
        layout.state_bytes()
    );
    assert_eq!(
        layout.capacity_bytes(1 << 20, F16, WindowCache::Full),
        layout.state_bytes()
    );
    assert!(layout.is_recurrent());
}

#[test]
fn hybrid_models_count_each_layer_by_its_kind() {
    let layout = layout(&TinyGguf::new(TinyKind::Lfm2));
    // layers 1 and 3: 2 KV heads of 16 + 16 elements
    assert_eq!(
        layout.bytes_per_token(KvType::F16, KvType::F16),
        2 * 2 * 32 * 2
    );
    // layers 0 and 2: 64 × (3 − 1) floats
    assert_eq!(layout.state_bytes(), 2 * 64 * 2 * 4);
    let kinds: Vec<bool> = layout
        .layers
        .iter()
        .map(|layer| layer.attention.is_some())
        .collect();
    assert_eq!(kinds, [false, true, false, true]);
}

#[test]
fn kv_heads_default_to_heads_and_lengths_to_the_embedding() {
    let model = TinyGguf::new(TinyKind::Llama).without("llama.attention.head_count_kv");
    assert_eq!(
        layout(&model).bytes_per_token(KvType::F16, KvType::F16),
        2 * 4 * 32 * 2
    );
    let model = TinyGguf::new(TinyKind::Llama)
        .set("llama.attention.key_length", Value::U32(32))
        .set("llama.attention.value_length", Value::U32(8));
    assert_eq!(
        layout(&model).bytes_per_token(KvType::F16, KvType::F16),
        2 * 2 * 40 * 2
    );
}

#[test]
fn a_window_that_the_architecture_ignores_is_ignored() {
    let model =
        TinyGguf::new(TinyKind::Llama).set("llama.attention.sliding_window", Value::U32(64));
    assert!(!layout(&model).has_window());
    let model = TinyGguf::new(TinyKind::Gemma3).without("gemma3.attention.sliding_window");
    assert!(!layout(&model).has_window());
    let model = TinyGguf::new(TinyKind::Gemma3)
        .set("gemma3.attention.sliding_window_pattern", Value::U32(2));
    let past = layout(&model).bytes_per_token_past_window(KvType::F16, KvType::F16);
    assert_eq!(past, 3 * 64);
}

#[test]
fn a_latent_cache_keeps_no_v() {
    let model = TinyGguf::new(TinyKind::Llama)
        .set("llama.attention.key_length_mla", Value::U32(16))
        .set("llama.attention.value_length_mla", Value::U32(16));
    assert_eq!(
        layout(&model).bytes_per_token(KvType::F16, KvType::F16),
        2 * 2 * 16 * 2
    );
}

#[test]
fn numbers_out_of_range_are_errors_that_name_the_key() {
    let wrong = |key: &str, value| {
        KvLayout::of(&file(&TinyGguf::new(TinyKind::Llama).set(key, value))).unwrap_err()
    };
    assert!(
        wrong("llama.attention.key_length", Value::U32(u32::MAX))
            .contains("'llama.attention.key_length'")
    );
    assert!(
        wrong("llama.attention.head_count_kv", Value::I32s(vec![1]))
            .contains("1 values for 2 layers")
    );
    assert!(wrong("llama.attention.head_count_kv", Value::I32(-1)).contains("is -1"));
    let model = TinyGguf::new(TinyKind::Llama).without("llama.block_count");
    assert!(
        KvLayout::of(&file(&model))
            .unwrap_err()
            .contains("'llama.block_count' is missing")
    );
}
