//! Layers, their order, and where problems are reported.

#![allow(clippy::unwrap_used, reason = "tests")]

mod example;
mod round_trip;

use std::path::Path;

use super::*;
use crate::config::file::ConfigFile;
use crate::engine::options::{FlashAttention, KvType, MemoryCheck, SwaCache};

fn sources() -> Sources {
    Sources {
        file: ConfigFile::None,
        variables: BTreeMap::new(),
        flags: Layer::new(),
        check_binding: |_, _| Ok(()),
    }
}

fn with_file(text: &str) -> (tempfile::TempDir, Sources) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    std::fs::write(&path, text).unwrap();
    (
        dir,
        Sources {
            file: ConfigFile::Usual(path),
            ..sources()
        },
    )
}

fn flag(name: &str, flag: &'static str, value: impl Into<Value>) -> Layer {
    Layer::from([(name.to_owned(), (value.into(), Origin::Flag(flag)))])
}

fn variable(name: &str, value: &str) -> BTreeMap<String, std::ffi::OsString> {
    BTreeMap::from([(name.to_owned(), value.into())])
}

#[test]
fn nothing_set_gives_the_defaults() {
    let loaded = load(&sources()).unwrap();
    assert_eq!(loaded, Loaded::default());
}

#[test]
fn a_usual_file_that_is_missing_is_fine_and_a_named_one_is_not() {
    let missing = PathBuf::from("/nowhere/config.toml");
    let usual = Sources {
        file: ConfigFile::Usual(missing.clone()),
        ..sources()
    };
    assert_eq!(load(&usual).unwrap(), Loaded::default());
    let named = Sources {
        file: ConfigFile::Named(missing),
        ..sources()
    };
    let error = load(&named).unwrap_err().to_string();
    assert!(
        error.starts_with("/nowhere/config.toml: can't be read: "),
        "{error}"
    );
}

#[test]
fn a_flag_hides_the_environment_which_hides_the_file_which_hides_the_default() {
    let (_dir, file) = with_file("[load]\ncontext = 1024\nthreads = 2\nbatch = 64\n");
    let variables = [
        variable("PLATEN_CTX", "2048"),
        variable("PLATEN_THREADS", " 3 "),
    ];
    let all = Sources {
        variables: variables.into_iter().flatten().collect(),
        flags: flag("load.context", "--ctx", 4096),
        ..file
    };
    let Loaded { config, origins } = load(&all).unwrap();
    assert_eq!(config.load.context, Some(4096));
    assert_eq!(config.load.threads, Some(3));
    assert_eq!(config.load.batch, Some(64));
    assert_eq!(config.load.ubatch, None);
    assert_eq!(origins["load.context"], Origin::Flag("--ctx"));
    assert_eq!(
        origins["load.threads"],
        Origin::Environment("PLATEN_THREADS")
    );
    assert!(matches!(
        origins["load.batch"],
        Origin::File { line: 4, .. }
    ));
    assert_eq!(origins.get("load.ubatch"), None);
}

#[test]
fn every_variable_sets_its_setting() {
    for setting in &settings::SETTINGS {
        let Some(name) = setting.variable else {
            continue;
        };
        let text = match setting.name {
            "load.kv_type_k" | "load.kv_type_v" => "bf16",
            "load.flash_attention" => "on",
            "load.memory" => "force",
            "load.swa_cache" => "small",
            "generation.read_ahead" => "off",
            "load.context" => "64",
            "sampling.min_p" => "0.5",
            "chats.save" => "false",
            _ => "1",
        };
        let loaded = load(&Sources {
            variables: variable(name, text),
            ..sources()
        })
        .unwrap();
        assert_ne!(loaded.config, Config::default(), "{name}");
        assert_eq!(loaded.origins[setting.name], Origin::Environment(name));
    }
}

#[test]
fn a_variable_set_to_nothing_counts_as_not_set() {
    let loaded = load(&Sources {
        variables: variable("PLATEN_CTX", ""),
        ..sources()
    })
    .unwrap();
    assert_eq!(loaded, Loaded::default());
}

#[test]
fn a_bad_variable_is_named_with_what_it_takes() {
    for (name, value, expected) in [
        (
            "PLATEN_CTX",
            "big",
            "PLATEN_CTX: load.context is \"big\"; it must be a whole number of tokens",
        ),
        (
            "PLATEN_CTX",
            "-1",
            "PLATEN_CTX: load.context is \"-1\"; it must be a whole number",
        ),
        (
            "PLATEN_CTX",
            "3",
            "PLATEN_CTX: load.context is 3; it must be a whole number",
        ),
        (
            "PLATEN_TEMP",
            "nan",
            "PLATEN_TEMP: sampling.temperature is NaN; it must be a number from 0 to 5",
        ),
        (
            "PLATEN_FLASH_ATTN",
            "maybe",
            "PLATEN_FLASH_ATTN: load.flash_attention is \"maybe\"; it must be one of",
        ),
    ] {
        let error = load(&Sources {
            variables: variable(name, value),
            ..sources()
        })
        .unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
        assert!(error.is_about_use());
    }
}

#[test]
fn a_rule_about_two_settings_is_reported_at_the_stronger_one() {
    let (_dir, file) = with_file("[load]\nbatch = 64\n");
    let both = Sources {
        flags: flag("load.ubatch", "--ubatch", 128),
        ..file
    };
    let error = load(&both).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "--ubatch: load.ubatch is 128; it must be at most load.batch, which is 64"
        ),
        "{error}"
    );
}

#[test]
fn a_bad_file_is_left_out_with_a_notice_and_the_other_layers_hold() {
    let (_dir, file) = with_file("[load]\ncontext = 1\nthreads = 2\n");
    let both = Sources {
        flags: flag("load.batch", "--batch", 64),
        ..file
    };
    let (loaded, notice) = load_despite_file(&both).unwrap();
    assert_eq!(loaded.config.load.threads, None);
    assert_eq!(loaded.config.load.batch, Some(64));
    assert!(
        notice
            .unwrap()
            .to_string()
            .contains("config.toml:2: load.context is 1")
    );
}

#[test]
fn a_bad_flag_is_no_notice() {
    let (_dir, file) = with_file("modle = 1");
    let both = Sources {
        flags: flag("load.batch", "--batch", 0),
        ..file
    };
    let error = load_despite_file(&both).unwrap_err().to_string();
    assert_eq!(
        error,
        "--batch: load.batch is 0; it must be a whole number of tokens from 1 to 65536"
    );
}

#[test]
fn a_binding_is_judged_by_the_keymap_and_reported_at_its_line() {
    let (_dir, file) = with_file("[keys]\nsend = [\"enter\"]\nfly = [\"f\"]\n");
    let judged = Sources {
        check_binding: |action, _| match action {
            "send" => Ok(()),
            other => Err(format!("there is no action {other}")),
        },
        ..file
    };
    let error = load(&judged).unwrap_err().to_string();
    assert!(
        error.ends_with("config.toml:3: there is no action fly\n  3 | fly = [\"f\"]"),
        "{error}"
    );
}

#[test]
fn every_setting_of_the_table_exists_and_none_is_missing() {
    let filled = Config {
        model: Some("m".into()),
        system: Some("s".into()),
        load: LoadOptions {
            context: Some(64),
            threads: Some(1),
            threads_prefill: Some(1),
            batch: Some(1),
            ubatch: Some(1),
            kv_type_k: KvType::F16,
            kv_type_v: KvType::F16,
            flash_attention: FlashAttention::Auto,
            swa_cache: SwaCache::Full,
            cache_ram: Some(0),
            gpu_layers: Some(0),
            memory: MemoryCheck::Check,
        },
        sampling: SamplingPatch {
            temperature: Some(1.0),
            top_k: Some(1),
            top_p: Some(1.0),
            min_p: Some(0.0),
            repeat_penalty: Some(1.0),
            repeat_last_n: Some(1),
            seed: Some(1),
        },
        generation: GenerationConfig {
            max_tokens: 1,
            stop: vec![],
            read_ahead: ReadAhead::Auto,
        },
        chats: ChatsConfig {
            save: true,
            file: Some("f".into()),
            cache_disk: 0,
        },
        ui: UiConfig::default(),
        keys: BTreeMap::new(),
    };
    let table = Table::try_from(&filled).unwrap();
    let mut names = Vec::new();
    for (key, value) in &table {
        match value {
            Value::Table(inner) => names.extend(inner.keys().map(|inner| format!("{key}.{inner}"))),
            _ => names.push(key.clone()),
        }
    }
    names.sort();
    let mut listed: Vec<String> = settings::SETTINGS
        .iter()
        .map(|setting| setting.name.to_owned())
        .collect();
    listed.sort();
    assert_eq!(names, listed);
}

fn parsed(text: &str) -> Config {
    let read = file::parse(Path::new("text.toml"), text);
    assert_eq!(read.problems, []);
    merge([read.layer, Layer::new(), Layer::new()])
        .unwrap()
        .config
}
