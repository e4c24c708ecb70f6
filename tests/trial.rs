//! The trial of a new model file by the real program: what kills a process costs a message.
#![allow(clippy::unwrap_used, dead_code, reason = "a test stops where it fails")]

#[path = "support/tiny_gguf.rs"]
mod tiny_gguf;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use platen::engine::event::EngineError;
use platen::engine::inference::{Interrupt, Loader};
use platen::engine::local::trial::TriedLoader;
use platen::engine::options::LoadOptions;
use tiny_gguf::{TinyGguf, TinyKind, Value};

fn load(path: &Path) -> Result<(), EngineError> {
    load_with(path, |loader| loader)
}

fn load_with(path: &Path, change: impl Fn(TriedLoader) -> TriedLoader) -> Result<(), EngineError> {
    let interrupt = Arc::new(Interrupt::default());
    interrupt.begin(1);
    change(TriedLoader::new(env!("CARGO_BIN_EXE_platen").into(), None))
        .load(path, &LoadOptions::default(), &interrupt, &mut |_| {})
        .map(|_| ())
}

#[test]
fn a_model_of_every_kind_passes() {
    let folder = tempfile::tempdir().unwrap();
    for kind in [
        TinyKind::Llama,
        TinyKind::Gemma3,
        TinyKind::Mamba,
        TinyKind::Lfm2,
    ] {
        load(&tiny_gguf::write_in(kind, folder.path())).unwrap();
    }
}

#[test]
fn a_template_that_would_use_up_memory_or_stack_costs_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let bad = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/template-trial");
    for entry in std::fs::read_dir(bad).unwrap() {
        let source = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let path = folder.path().join("bad.gguf");
        TinyGguf::new(TinyKind::Llama)
            .set("tokenizer.chat_template", Value::Text(source.clone()))
            .write(&path);
        let impatient = |loader: TriedLoader| loader.with_patience(Duration::from_secs(3));
        let error = load_with(&path, impatient).unwrap_err();
        assert!(error.message.contains("bad.gguf"), "{source}: {error}");
    }
}

#[test]
fn what_is_refused_is_refused_in_the_words_of_the_load() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.gguf");
    TinyGguf::new(TinyKind::Llama)
        .set("general.architecture", Value::Text("zzz".into()))
        .write(&path);
    let error = load(&path).unwrap_err();
    assert!(error.message.contains("zzz"), "{error}");
}
