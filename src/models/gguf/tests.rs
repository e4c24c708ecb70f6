#![allow(clippy::unwrap_used, reason = "tests")]

use std::cell::Cell;
use std::io::{Cursor, Read, Seek};
use std::path::Path;
use std::rc::Rc;

use super::super::tiny_gguf::{TinyGguf, TinyKind, Value as TinyValue};
use super::*;

mod hostile;

fn parse(bytes: &[u8]) -> Result<GgufFile, GgufError> {
    GgufFile::from_reader(Cursor::new(bytes), bytes.len() as u64, Path::new("m.gguf"))
}

/// The fault, found without reading more than the header twice over.
fn fault(bytes: &[u8]) -> String {
    let counted = Counted {
        source: Cursor::new(bytes),
        read: Rc::default(),
    };
    let read = Rc::clone(&counted.read);
    let fault = GgufFile::from_reader(counted, bytes.len() as u64, Path::new("m.gguf"))
        .unwrap_err()
        .fault;
    assert!(
        read.get() <= 2 * bytes.len(),
        "{fault}: read {} of {} bytes",
        read.get(),
        bytes.len()
    );
    fault.to_string()
}

struct Counted<'bytes> {
    source: Cursor<&'bytes [u8]>,
    read: Rc<Cell<usize>>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.read.set(self.read.get() + count);
        Ok(count)
    }
}

impl Seek for Counted<'_> {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        self.source.seek(to)
    }
}

fn tiny() -> TinyGguf {
    TinyGguf::new(TinyKind::Llama)
}

#[test]
fn every_tiny_model_is_read() {
    for kind in TinyKind::ALL {
        let model = TinyGguf::new(kind);
        let file = parse(&model.encode()).unwrap();
        assert_eq!(file.architecture(), kind.architecture());
        assert_eq!(
            file.name(),
            Some(format!("tiny-{}", kind.architecture()).as_str())
        );
        assert_eq!(file.version(), 3);
        assert_eq!(file.quantization(), "F32");
        assert_eq!(file.context_train(), Some(2048));
        assert_eq!(file.vocab_size(), Some(259));
        assert_eq!(file.tensors().len(), model.tensors.len());
        assert_eq!(
            file.tensor_bytes(),
            model
                .tensors
                .iter()
                .map(|tensor| tensor.data.len() as u64 * 4)
                .sum::<u64>()
        );
        assert_eq!(file.parameters() * 4, file.tensor_bytes());
        assert_eq!(
            file.chat_template(),
            Some(crate::models::tiny_gguf::CHAT_TEMPLATE)
        );
        assert_eq!(file.not_chat(), None);
    }
}

#[test]
fn values_keep_their_types() {
    let file = parse(
        &tiny()
            .set("x.float", TinyValue::F32(1.5))
            .set("x.minus", TinyValue::I32(-3))
            .encode(),
    )
    .unwrap();
    assert_eq!(file.f64("x.float"), Some(1.5));
    assert_eq!(file.get("x.minus"), Some(&Value::Signed(-3)));
    assert_eq!(file.u64("x.minus"), None);
    assert_eq!(file.bool("tokenizer.ggml.add_bos_token"), Some(true));
    assert_eq!(file.u64("tokenizer.ggml.eos_token_id"), Some(1));
    let tokens = file.array("tokenizer.ggml.tokens").unwrap();
    assert_eq!(
        (tokens.element, tokens.len, &tokens.items),
        (ValueType::String, 259, &None)
    );
}

#[test]
fn version_two_is_read_and_other_versions_are_named() {
    let mut model = tiny();
    model.version = 2;
    assert_eq!(parse(&model.encode()).unwrap().version(), 2);
    for version in [0, 1, 4, 99, u32::MAX] {
        model.version = version;
        assert!(fault(&model.encode()).contains(&format!("GGUF version {version};")));
    }
    model.version = 3_u32.swap_bytes();
    assert!(fault(&model.encode()).contains("big-endian"));
}

#[test]
fn other_files_are_told_apart() {
    assert!(fault(b"<!DOCTYPE html><html>").contains("begins with \"<!DO\""));
    assert!(fault(b"\x1b[2Jxxxx").contains("begins with \"\\x1b[2J\""));
    assert!(
        GgufFile::open(Path::new("/"))
            .unwrap_err()
            .to_string()
            .contains("not a regular file")
    );
}

#[test]
fn a_file_cut_anywhere_says_what_it_needs_and_has() {
    let bytes = tiny().encode();
    let data = bytes.len() - usize::try_from(parse(&bytes).unwrap().tensor_bytes()).unwrap();
    let mut cuts: Vec<usize> = vec![
        0,
        3,
        4,
        7,
        8,
        15,
        16,
        23,
        24,
        25,
        32,
        1024,
        data,
        bytes.len() / 2,
        bytes.len() - 4096,
    ];
    cuts.extend((0..data).step_by(97));
    for cut in cuts {
        let fault = parse(&bytes[..cut]).unwrap_err().fault;
        match fault {
            GgufFault::Truncated { need, have, .. } => {
                assert_eq!(have, cut as u64);
                assert!(
                    need > have && need <= bytes.len() as u64,
                    "cut at {cut}: needs {need}"
                );
            }
            other => panic!("cut at {cut}: {other}"),
        }
    }
    let error = parse(&bytes[..bytes.len() - 33]).unwrap_err().to_string();
    assert!(
        error.starts_with("m.gguf is cut short: the tensor 'blk.1.ffn_down.weight' needs"),
        "{error}"
    );
    assert!(error.ends_with("download it again"), "{error}");
}

#[test]
fn models_that_write_nothing_say_so() {
    let not_chat = |model: TinyGguf| parse(&model.encode()).unwrap().not_chat();
    let named = |name: &str| tiny().set("general.architecture", TinyValue::Text(name.into()));
    for name in ["bert", "nomic-bert", "t5encoder", "clip"] {
        assert!(not_chat(named(name)).unwrap().contains(name));
    }
    for name in ["none", "no_vocab", "bert"] {
        let tokenizer = TinyValue::Text(name.into());
        let reason = not_chat(tiny().set("tokenizer.ggml.model", tokenizer)).unwrap();
        assert!(reason.contains(name), "{reason}");
    }
    assert!(
        not_chat(tiny().set("llama.pooling_type", TinyValue::U32(1)))
            .unwrap()
            .contains("embedding")
    );
    assert!(
        not_chat(tiny().set("llama.pooling_type", TinyValue::U32(4)))
            .unwrap()
            .contains("reranker")
    );
    assert!(
        not_chat(tiny().set("general.type", TinyValue::Text("adapter".into())))
            .unwrap()
            .contains("adapter")
    );
    assert_eq!(
        not_chat(tiny().set("llama.pooling_type", TinyValue::U32(0))),
        None
    );
}

#[test]
fn the_quantisation_is_guessed_from_the_weights_where_the_file_is_silent() {
    let file = parse(&tiny().without("general.file_type").encode()).unwrap();
    assert_eq!(file.quantization(), "F32");
    let file = parse(&tiny().set("general.file_type", TinyValue::U32(15)).encode()).unwrap();
    assert_eq!(file.quantization(), "Q4_K_M");
    let file = parse(
        &tiny()
            .set("general.file_type", TinyValue::U32(1024))
            .encode(),
    )
    .unwrap();
    assert_eq!(file.quantization(), "F32");
}
