//! Headers that were made to do harm.

use std::io::{Cursor, Read, Seek};

use proptest::prelude::*;

use super::*;

fn header(tensors: u64, keys: u64) -> Vec<u8> {
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend(tensors.to_le_bytes());
    bytes.extend(keys.to_le_bytes());
    bytes
}

#[test]
fn numbers_that_abort_the_computation_are_refused_with_field_and_values() {
    let refused = |key: &str, value: TinyValue| {
        let model = TinyGguf::new(TinyKind::Llama).set(key, value);
        parse(&model.encode()).unwrap_err().to_string()
    };
    for epsilon in [f32::NAN, f32::NEG_INFINITY, f32::INFINITY, -1.0] {
        let told = refused(
            "llama.attention.layer_norm_rms_epsilon",
            TinyValue::F32(epsilon),
        );
        assert!(told.contains("layer_norm_rms_epsilon"), "{told}");
        assert!(told.contains("expected a number from 0"), "{told}");
    }
    // 64 values in 4 heads.
    let rope = |value| refused("llama.rope.dimension_count", TinyValue::U32(value));
    assert!(rope(15).contains("is 15, expected an even number"));
    assert!(rope(18).contains("is 18, the most accepted is 16"));
    assert!(rope(65_536).contains("is 65536, the most accepted is 16"));
}

#[test]
fn weights_of_whole_numbers_are_refused() {
    let mut bytes = TinyGguf::new(TinyKind::Llama).encode();
    let name = b"blk.0.ffn_gate.weight";
    let at = bytes
        .windows(name.len())
        .position(|window| window == name)
        .unwrap();
    // Two dimensions: their count, their sizes, then the type.
    let kind = at + name.len() + 4 + 2 * 8;
    bytes[kind] = 26;
    let told = parse(&bytes).unwrap_err().to_string();
    assert!(
        told.contains("the type of 'blk.0.ffn_gate.weight' is I32, expected a type of weights"),
        "{told}"
    );
}

#[test]
fn norms_and_biases_of_any_type_but_f32_are_refused() {
    let whole = TinyGguf::new(TinyKind::Llama).encode();
    let name = b"blk.0.ffn_norm.weight";
    let at = whole
        .windows(name.len())
        .position(|window| window == name)
        .unwrap();
    // Q4_0, F16, I32, BF16.
    for kind in [2, 1, 26, 30] {
        let mut bytes = whole.clone();
        bytes[at + name.len() + 4 + 8] = kind;
        let told = parse(&bytes).unwrap_err().to_string();
        assert!(
            told.contains("the type of 'blk.0.ffn_norm.weight'"),
            "{told}"
        );
        assert!(told.ends_with("expected F32"), "{told}");
    }
}

#[test]
fn huge_counts_are_refused_before_anything_is_read() {
    assert!(fault(&header(1 << 60, 0)).contains("the number of tensors is 1152921504606846976"));
    assert!(
        fault(&header(0, 1 << 60)).contains("the number of metadata keys is 1152921504606846976")
    );
    assert!(fault(&header(u64::MAX, u64::MAX)).contains("the number of tensors"));

    let mut key = header(0, 1);
    key.extend(((1_u64 << 48) - 1).to_le_bytes());
    assert!(fault(&key).contains("the length of the key at byte 24 is 281474976710655"));
    let mut key = header(0, 1);
    key.extend(0_u64.to_le_bytes());
    assert!(fault(&key).contains("expected at least 1"));

    for (kind, len) in [
        (0_u32, 1_u64 << 40),
        (8, 1 << 40),
        (12, u64::MAX),
        (8, 1 << 21),
    ] {
        let mut raw = kind.to_le_bytes().to_vec();
        raw.extend(len.to_le_bytes());
        let fault = fault(&tiny().set("x", TinyValue::Raw(9, raw)).encode());
        assert!(
            fault.contains("'x'") || fault.contains("texts in arrays"),
            "{fault}"
        );
    }
    let text = (1_u64 << 47).to_le_bytes().to_vec();
    assert!(
        fault(&tiny().set("x", TinyValue::Raw(8, text)).encode()).contains("cut short: 'x' needs")
    );
}

#[test]
fn the_costliest_hostile_header_is_read_once_and_no_further() {
    // As many tokens and other texts as arrays may have: each costs a read of its length.
    let tokens: u32 = 1 << 19;
    let mut distinct = [
        8_u32.to_le_bytes().to_vec(),
        u64::from(tokens).to_le_bytes().to_vec(),
    ]
    .concat();
    for token in 0..tokens {
        distinct.extend([4_u64.to_le_bytes().as_slice(), &token.to_le_bytes()].concat());
    }
    let texts: u64 = (1 << 21) - u64::from(tokens);
    let mut empty = [8_u32.to_le_bytes().to_vec(), texts.to_le_bytes().to_vec()].concat();
    empty.resize(empty.len() + 8 * usize::try_from(texts).unwrap(), 0);
    let bytes = TinyGguf::new(TinyKind::Llama)
        .set("tokenizer.ggml.tokens", TinyValue::Raw(9, distinct))
        .set("x", TinyValue::Raw(9, empty))
        .set("y", TinyValue::Raw(99, vec![]))
        .encode();
    let read = std::rc::Rc::new(std::cell::Cell::new(0));
    let source = Counted {
        inner: Cursor::new(&bytes),
        read: read.clone(),
    };
    let error =
        GgufFile::from_reader(source, bytes.len() as u64, Path::new("hostile")).unwrap_err();
    assert!(
        error.to_string().contains("the type of 'y' is 99"),
        "{error}"
    );
    // Jumping over texts throws buffered bytes away; they may be read twice.
    assert!(
        read.get() <= 2 * bytes.len(),
        "{} of {}",
        read.get(),
        bytes.len()
    );
}

#[test]
fn broken_values_are_named() {
    let nested = [9_u32.to_le_bytes().to_vec(), 1_u64.to_le_bytes().to_vec()].concat();
    let cases: [(&str, TinyValue, &str); 19] = [
        ("x", TinyValue::Raw(13, vec![0; 8]), "the type of 'x' is 13"),
        ("x", TinyValue::Raw(7, vec![2]), "'x' is 2, expected 0 or 1"),
        ("x", TinyValue::Raw(9, nested), "array of arrays"),
        (
            "general.alignment",
            TinyValue::U32(0),
            "'general.alignment' is 0",
        ),
        (
            "general.alignment",
            TinyValue::U32(3),
            "'general.alignment' is 3",
        ),
        (
            "general.alignment",
            TinyValue::U32(4),
            "'general.alignment' is 4",
        ),
        (
            "general.alignment",
            TinyValue::U32(1 << 30),
            "'general.alignment' is 1073741824",
        ),
        (
            "general.alignment",
            TinyValue::U64(32),
            "type of 'general.alignment' is u64, expected u32",
        ),
        (
            "general.architecture",
            TinyValue::U32(1),
            "no 'general.architecture'",
        ),
        (
            "llama.block_count",
            TinyValue::U32(0),
            "'llama.block_count' is 0",
        ),
        (
            "llama.block_count",
            TinyValue::U32(100_000),
            "'llama.block_count' is 100000, the most accepted is 512",
        ),
        (
            "llama.block_count",
            TinyValue::Text("2".into()),
            "'llama.block_count' is 2, expected a whole number",
        ),
        (
            "llama.block_count",
            TinyValue::I32(-1),
            "'llama.block_count' is -1",
        ),
        (
            "llama.nextn_predict_layers",
            TinyValue::U32(3),
            "'llama.nextn_predict_layers' is 3",
        ),
        (
            "llama.expert_count",
            TinyValue::U32(5000),
            "'llama.expert_count' is 5000",
        ),
        (
            "llama.expert_count",
            TinyValue::U32(8),
            "'llama.expert_used_count' is 0",
        ),
        (
            "llama.expert_used_count",
            TinyValue::U32(9),
            "'llama.expert_used_count' is 9, the most accepted is 0",
        ),
        (
            "llama.rope.scaling.type",
            TinyValue::Text("zzz".into()),
            "'llama.rope.scaling.type' is zzz",
        ),
        (
            "general.architecture",
            TinyValue::Text(String::new()),
            "no 'general.architecture'",
        ),
    ];
    for (key, value, expected) in cases {
        let fault = fault(&tiny().set(key, value).encode());
        assert!(fault.contains(expected), "{key}: {fault}");
    }
}

#[test]
fn vocabularies_that_llama_cpp_would_abort_on_are_refused() {
    let tokens = |texts: [&str; 3]| TinyValue::Texts(texts.map(str::to_owned).to_vec());
    let plain = |key: &str, value| tiny().set(key, value).encode();
    assert!(
        fault(&plain(
            "tokenizer.ggml.scores",
            TinyValue::U8s(vec![0; 259])
        ))
        .contains("259 u8, expected")
    );
    assert!(
        fault(&plain(
            "tokenizer.ggml.scores",
            TinyValue::F32s(vec![0.0; 2])
        ))
        .contains("2 f32, expected")
    );
    assert!(
        fault(&plain(
            "tokenizer.ggml.token_type",
            TinyValue::F32s(vec![0.0; 259])
        ))
        .contains("259 f32")
    );
    assert!(
        fault(&plain("tokenizer.ggml.tokens", TinyValue::U32(1)))
            .contains("expected an array of strings")
    );
    assert!(
        fault(&plain("tokenizer.ggml.tokens", TinyValue::U8s(vec![1])))
            .contains("expected an array of strings")
    );
    let twice = fault(&plain("tokenizer.ggml.tokens", tokens(["a", "b", "a"])));
    assert!(
        twice.contains("the token 'number 0, also number 2' appears twice"),
        "{twice}"
    );
    parse(&plain("tokenizer.ggml.tokens", tokens(["", "b", ""]))).unwrap();
}

#[test]
fn broken_tensors_are_named() {
    let broken = |change: fn(&mut crate::models::tiny_gguf::Tensor)| {
        let mut model = tiny();
        change(&mut model.tensors[3]);
        fault(&model.encode())
    };
    assert!(broken(|tensor| tensor.name = "token_embd.weight".into()).contains("appears twice"));
    assert!(broken(|tensor| tensor.name = String::new()).contains("the name of tensor 3 is 0"));
    assert!(broken(|tensor| tensor.name = "x".repeat(64)).contains("the name of tensor 3 is 64"));
    assert!(broken(|tensor| tensor.kind = 4).contains("is 4, expected a type"));
    assert!(broken(|tensor| tensor.kind = 9999).contains("is 9999, expected a type"));
    assert!(
        broken(|tensor| tensor.kind = 12).contains("expected a multiple of 256 for the type Q4_K")
    );
    assert!(broken(|tensor| tensor.dims = vec![1 << 32, 1 << 32]).contains("fewer elements"));
    assert!(broken(|tensor| tensor.dims = vec![0, u64::MAX]).contains("18446744073709551615"));
    assert!(broken(|tensor| tensor.dims = vec![1; 5]).contains("is 5, expected at most 4"));
    assert!(broken(|tensor| tensor.dims = vec![1 << 60]).contains("cut short: the tensor"));
    assert!(broken(|tensor| tensor.offset = Some(u64::MAX)).contains("the offset of"));
    assert!(broken(|tensor| tensor.offset = Some(1 << 40)).contains("the offset of"));

    let mut model = tiny();
    model.tensors.last_mut().unwrap().dims = vec![128, 1 << 30];
    assert!(fault(&model.encode()).contains("cut short: the tensor 'blk.1.ffn_down.weight' needs"));
}

#[test]
fn a_key_given_twice_is_refused() {
    let mut model = tiny();
    model
        .metadata
        .push(("general.name".into(), TinyValue::U32(1)));
    assert!(fault(&model.encode()).contains("the key 'general.name' appears twice"));
}

#[test]
fn metadata_that_would_fill_memory_is_refused() {
    let mut model = tiny();
    for index in 0..20 {
        model
            .metadata
            .push((format!("x{index}"), TinyValue::Text("y".repeat(1 << 20))));
    }
    assert!(fault(&model.encode()).contains("the size of the metadata"));
    let long = tiny().set("x", TinyValue::Text("y".repeat((1 << 20) + 1)));
    assert_eq!(
        parse(&long.encode()).unwrap().get("x"),
        Some(&Value::LongText {
            bytes: (1 << 20) + 1
        })
    );
}

#[test]
fn hostile_names_reach_no_terminal() {
    let mut model = tiny();
    model.metadata.push((
        "\u{1b}]52;c;QQ==\u{7}".into(),
        TinyValue::Raw(99, Vec::new()),
    ));
    let fault = fault(&model.encode());
    assert!(fault.contains("␛]52;c;QQ==␇"), "{fault}");
    assert!(!fault.chars().any(char::is_control));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn changed_bytes_never_panic(
        changes in prop::collection::vec((0_usize..6000, any::<u8>()), 1..12),
        words in prop::collection::vec((0_usize..6000, prop::sample::select(vec![0_u64, 1, 255, 1 << 31, 1 << 47, 1 << 60, u64::MAX])), 0..3),
        cut in prop::option::of(0_usize..20_000),
    ) {
        let mut bytes = small().clone();
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        for (at, word) in words {
            let at = at % (bytes.len() - 8);
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes.truncate(cut.unwrap_or(usize::MAX));
        if let Ok(file) = parse(&bytes) {
            let _ = (file.not_chat(), file.quantization(), crate::models::estimate::KvLayout::of(&file));
        }
    }
}

/// A model with little data, so that changes hit the header.
fn small() -> &'static Vec<u8> {
    use crate::models::tiny_gguf::TinySizes;
    static BYTES: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    BYTES.get_or_init(|| {
        let sizes = TinySizes {
            layers: 1,
            embedding: 4,
            feed_forward: 4,
            context: 64,
        };
        let mut model = TinyGguf::with_sizes(TinyKind::Lfm2, sizes);
        model = model
            .set(
                "tokenizer.ggml.tokens",
                TinyValue::Texts(vec!["a".into(), "b".into()]),
            )
            .set("tokenizer.ggml.scores", TinyValue::F32s(vec![0.0; 2]))
            .set("tokenizer.ggml.token_type", TinyValue::I32s(vec![1; 2]));
        model.encode()
    })
}

/// Counts the bytes that are read.
struct Counted<'a> {
    inner: Cursor<&'a Vec<u8>>,
    read: std::rc::Rc<std::cell::Cell<usize>>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.read.set(self.read.get() + count);
        Ok(count)
    }
}

impl Seek for Counted<'_> {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        self.inner.seek(to)
    }
}
