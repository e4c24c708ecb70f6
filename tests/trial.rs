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
use platen::engine::prompt::RenderOptions;
use platen::engine::token::{PromptMessage, Role};
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

/// Bombs that the trial's short conversations do not set off. What is said depends on what runs out first.
const LATE: [&str; 4] = [
    "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}",
    "{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns|tojson }}",
    "{% set ns = namespace(t=[1]) %}{% for i in range(60) %}{% set ns.t = ns.t + ns.t %}{% endfor %}{{ ns.t|length }}",
    "{% set ns = namespace(t=[1]) %}{% for i in range(34) %}{% set ns.t = ns.t + ns.t %}{% endfor %}{{ ns.t|sort|length }}",
];
const SAID: [&str; 3] = [
    "the chat template uses up memory or stack",
    "tojson: nested too deeply",
    "the chat template runs without end",
];

#[test]
fn a_template_that_turns_bad_in_mid_chat_costs_a_message_and_serves_again() {
    let folder = tempfile::tempdir().unwrap();
    for bomb in LATE {
        let source = format!(
            "{{% for m in messages %}}[{{{{ m.role }}}}]{{{{ m.content }}}}{{% endfor %}}{{% if messages|length > 5 %}}{bomb}{{% endif %}}"
        );
        let path = folder.path().join("late.gguf");
        TinyGguf::new(TinyKind::Llama)
            .set("tokenizer.chat_template", Value::Text(source))
            .write(&path);
        let interrupt = Arc::new(Interrupt::default());
        interrupt.begin(1);
        let mut loader = TriedLoader::new(env!("CARGO_BIN_EXE_platen").into(), None)
            .with_patience(Duration::from_secs(5));
        let model = loader
            .load(&path, &LoadOptions::default(), &interrupt, &mut |_| {})
            .unwrap()
            .model;
        drop(loader);
        let build = |count: usize| {
            let messages: Vec<PromptMessage> = (0..count)
                .map(|at| {
                    let role = if at % 2 == 0 {
                        Role::User
                    } else {
                        Role::Assistant
                    };
                    PromptMessage::new(role, "hello")
                })
                .collect();
            let options = RenderOptions::at(jiff::civil::date(2026, 1, 2).at(3, 4, 5, 0));
            model
                .prompts()
                .build(&messages, model.vocabulary(), &options)
        };
        let short = build(1).unwrap();
        let error = build(7).unwrap_err().to_string();
        let is_told = SAID.iter().any(|words| error.contains(words));
        assert!(is_told, "{bomb}: {error}");
        assert_eq!(build(1).unwrap().tokens, short.tokens, "{bomb}");
    }
}
