#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::models::tiny_gguf::{self, TinyGguf, TinyKind, Value as TinyValue};

fn inspect(model: &TinyGguf, contexts: &[u32], kv_types: &[KvType], format: Format) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    model.write(&path);
    let mut out = Vec::new();
    run(&path, contexts, kv_types, format, &mut out).unwrap();
    String::from_utf8(out)
        .unwrap()
        .replace(&folder.path().display().to_string(), "")
}

#[test]
fn the_text_shows_the_facts_and_what_contexts_cost() {
    let out = inspect(
        &TinyGguf::new(TinyKind::Gemma3),
        &[256, 4096],
        &[KvType::F16],
        Format::Text,
    );
    for line in [
        "name          tiny-gemma3",
        "layers        6",
        "window        64 tokens in 5 layers",
        "256      f16      384 B    96.0 KiB      983.8 KiB            96.0 KiB",
        "4,096    f16      384 B    1.5 MiB       2.4 MiB              496.0 KiB",
        "  gemma3.attention.sliding_window = 64",
        "  tokenizer.ggml.tokens = (259 × string)",
    ] {
        assert!(out.lines().any(|found| found == line), "{line}\n{out}");
    }
}

#[test]
fn without_sizes_the_default_and_the_trained_context_are_shown() {
    let mut sizes = tiny_gguf::TinySizes::of(TinyKind::Llama);
    let out = inspect(
        &TinyGguf::with_sizes(TinyKind::Llama, sizes),
        &[],
        &[],
        Format::Json,
    );
    let json: Value = serde_json::from_str(&out).unwrap();
    let found = |json: &Value| -> Vec<(u64, String)> {
        let contexts = json["memory"]["contexts"].as_array().unwrap();
        contexts
            .iter()
            .map(|c| {
                (
                    c["context"].as_u64().unwrap(),
                    c["kv_type"].as_str().unwrap().into(),
                )
            })
            .collect()
    };
    assert_eq!(found(&json), [(2048, "f16".into()), (2048, "q8_0".into())]);
    assert_eq!(json["memory"]["contexts"][0]["cache_bytes"], 256 * 2048);
    assert_eq!(json["metadata"]["llama.block_count"], 2);
    sizes.context = 131_072;
    let out = inspect(
        &TinyGguf::with_sizes(TinyKind::Llama, sizes),
        &[],
        &[KvType::F16],
        Format::Json,
    );
    assert_eq!(
        found(&serde_json::from_str(&out).unwrap()),
        [(8192, "f16".into()), (131_072, "f16".into())]
    );
}

#[test]
fn a_model_whose_memory_is_unknown_is_shown_all_the_same() {
    let model = TinyGguf::new(TinyKind::Llama).without("llama.block_count");
    assert!(
        inspect(&model, &[], &[], Format::Text)
            .contains("memory: unknown, 'llama.block_count' is missing")
    );
}

#[test]
fn metadata_steers_no_terminal() {
    let model = TinyGguf::new(TinyKind::Llama).set(
        "general.name",
        TinyValue::Text("\u{1b}]0;x\u{7}\u{9b}2J".into()),
    );
    for format in [Format::Text, Format::Json] {
        let out = inspect(&model, &[], &[], format);
        assert!(
            !out.replace('\n', "").chars().any(char::is_control),
            "{out:?}"
        );
    }
}

#[test]
fn a_broken_file_is_an_error_with_its_name() {
    let mut out = Vec::new();
    let error = run(
        Path::new("/nonexistent.gguf"),
        &[],
        &[],
        Format::Text,
        &mut out,
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("/nonexistent.gguf cannot be read"),
        "{error}"
    );
}
