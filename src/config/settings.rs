//! The table of settings: one row feeds the file's keys, the environment's variables, the flags' names, the
//! hints of errors and `platen config show`, so that none of them can know a setting that another does not.

use serde::Deserialize;
use toml::{Table, Value};

use super::Config;

/// What a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A text, or one word of a fixed set.
    Text,
    /// A whole number.
    Whole,
    /// A number.
    Number,
    /// A list of texts.
    List,
    /// `true` or `false`.
    Switch,
}

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// Its name in the file, with the table: `load.context`.
    pub name: &'static str,
    /// Its environment variable.
    pub variable: Option<&'static str>,
    /// Its flag.
    pub flag: Option<&'static str>,
    /// What it takes.
    pub kind: Kind,
    /// What it takes, as an error says it.
    pub expects: &'static str,
    /// What holds where nothing is set, as `config show` says it.
    pub unset: &'static str,
}

/// Every setting but the key table, in the order in which the file lists them.
pub const SETTINGS: [Setting; 28] = [
    Setting {
        name: "model",
        variable: Some("PLATEN_MODEL"),
        flag: Some("--model"),
        kind: Kind::Text,
        expects: "a text: a path or the name of a model",
        unset: "chosen when the chat opens",
    },
    Setting {
        name: "system",
        variable: Some("PLATEN_SYSTEM"),
        flag: Some("--system"),
        kind: Kind::Text,
        expects: "a text",
        unset: "none",
    },
    Setting {
        name: "load.context",
        variable: Some("PLATEN_CTX"),
        flag: Some("--ctx"),
        kind: Kind::Whole,
        expects: "a whole number of tokens, 0 or from 16 to 4194304",
        unset: "8192, or less where the model was trained on less",
    },
    Setting {
        name: "load.threads",
        variable: Some("PLATEN_THREADS"),
        flag: Some("--threads"),
        kind: Kind::Whole,
        expects: "a whole number from 1 to 1024",
        unset: "the physical cores",
    },
    Setting {
        name: "load.threads_prefill",
        variable: None,
        flag: None,
        kind: Kind::Whole,
        expects: "a whole number from 1 to 1024",
        unset: "as load.threads",
    },
    Setting {
        name: "load.batch",
        variable: Some("PLATEN_BATCH"),
        flag: Some("--batch"),
        kind: Kind::Whole,
        expects: "a whole number of tokens from 1 to 65536",
        unset: "512",
    },
    Setting {
        name: "load.ubatch",
        variable: Some("PLATEN_UBATCH"),
        flag: Some("--ubatch"),
        kind: Kind::Whole,
        expects: "a whole number of tokens from 1 to the batch",
        unset: "512, or the batch where that is less",
    },
    Setting {
        name: "load.kv_type_k",
        variable: Some("PLATEN_KV_TYPE_K"),
        flag: Some("--kv-type-k"),
        kind: Kind::Text,
        expects: "one of \"f32\", \"f16\", \"bf16\", \"q8_0\"",
        unset: "f16",
    },
    Setting {
        name: "load.kv_type_v",
        variable: Some("PLATEN_KV_TYPE_V"),
        flag: Some("--kv-type-v"),
        kind: Kind::Text,
        expects: "one of \"f32\", \"f16\", \"bf16\", \"q8_0\"",
        unset: "f16",
    },
    Setting {
        name: "load.flash_attention",
        variable: Some("PLATEN_FLASH_ATTN"),
        flag: Some("--flash-attn"),
        kind: Kind::Text,
        expects: "one of \"auto\", \"on\", \"off\"",
        unset: "auto",
    },
    Setting {
        name: "load.swa_cache",
        variable: Some("PLATEN_SWA_CACHE"),
        flag: Some("--swa-cache"),
        kind: Kind::Text,
        expects: "one of \"full\", \"small\"",
        unset: "full",
    },
    Setting {
        name: "load.cache_ram",
        variable: Some("PLATEN_CACHE_RAM"),
        flag: Some("--cache-ram"),
        kind: Kind::Whole,
        expects: "a whole number of MiB from 0 to 1048576",
        unset: "1024, or a quarter of what is free where that is less",
    },
    Setting {
        name: "load.gpu_layers",
        variable: Some("PLATEN_GPU_LAYERS"),
        flag: Some("--gpu-layers"),
        kind: Kind::Whole,
        expects: "a whole number from 0 to 65536",
        unset: "as many as fit",
    },
    Setting {
        name: "load.memory",
        variable: Some("PLATEN_MEMORY"),
        flag: Some("--force"),
        kind: Kind::Text,
        expects: "one of \"check\", \"force\"",
        unset: "check",
    },
    Setting {
        name: "sampling.temperature",
        variable: Some("PLATEN_TEMP"),
        flag: Some("--temp"),
        kind: Kind::Number,
        expects: "a number from 0 to 5",
        unset: "the model's own, else 0.7",
    },
    Setting {
        name: "sampling.top_k",
        variable: Some("PLATEN_TOP_K"),
        flag: Some("--top-k"),
        kind: Kind::Whole,
        expects: "a whole number from 0 to 2147483647; 0 keeps all tokens",
        unset: "the model's own, else 40",
    },
    Setting {
        name: "sampling.top_p",
        variable: Some("PLATEN_TOP_P"),
        flag: Some("--top-p"),
        kind: Kind::Number,
        expects: "a number above 0 and at most 1",
        unset: "the model's own, else 0.95",
    },
    Setting {
        name: "sampling.min_p",
        variable: Some("PLATEN_MIN_P"),
        flag: Some("--min-p"),
        kind: Kind::Number,
        expects: "a number from 0 to 1",
        unset: "the model's own, else 0.05",
    },
    Setting {
        name: "sampling.repeat_penalty",
        variable: Some("PLATEN_REPEAT_PENALTY"),
        flag: Some("--repeat-penalty"),
        kind: Kind::Number,
        expects: "a number above 0 and at most 10; 1 changes nothing",
        unset: "the model's own, else 1",
    },
    Setting {
        name: "sampling.repeat_last_n",
        variable: None,
        flag: None,
        kind: Kind::Whole,
        expects: "a whole number of tokens from 0 to 2147483647",
        unset: "the model's own, else 64",
    },
    Setting {
        name: "sampling.seed",
        variable: Some("PLATEN_SEED"),
        flag: Some("--seed"),
        kind: Kind::Whole,
        expects: "a whole number from 0 to 4294967295",
        unset: "a new one for each reply",
    },
    Setting {
        name: "generation.max_tokens",
        variable: Some("PLATEN_MAX_TOKENS"),
        flag: Some("--max-tokens"),
        kind: Kind::Whole,
        expects: "a whole number of tokens from 1 to 2147483647",
        unset: "2048",
    },
    Setting {
        name: "generation.stop",
        variable: Some("PLATEN_STOP"),
        flag: Some("--stop"),
        kind: Kind::List,
        expects: "a list of texts, none of them empty",
        unset: "none",
    },
    Setting {
        name: "generation.read_ahead",
        variable: Some("PLATEN_READ_AHEAD"),
        flag: None,
        kind: Kind::Text,
        expects: "one of \"auto\", \"on\", \"off\"",
        unset: "auto",
    },
    Setting {
        name: "chats.save",
        variable: Some("PLATEN_SAVE"),
        flag: Some("--no-save"),
        kind: Kind::Switch,
        expects: "true or false",
        unset: "true",
    },
    Setting {
        name: "chats.file",
        variable: Some("PLATEN_STORE"),
        flag: Some("--store"),
        kind: Kind::Text,
        expects: "a text: a path",
        unset: "chats.db in platen's data directory",
    },
    Setting {
        name: "chats.cache_disk",
        variable: Some("PLATEN_CACHE_DISK"),
        flag: None,
        kind: Kind::Whole,
        expects: "a whole number of MiB from 0 to 16777216",
        unset: "4096",
    },
    Setting {
        name: "ui.panels",
        variable: None,
        flag: None,
        kind: Kind::Text,
        expects: "one of \"auto\", \"hidden\"",
        unset: "auto",
    },
];

/// The tables of the file.
pub const TABLES: [&str; 6] = ["load", "sampling", "generation", "chats", "ui", "keys"];

/// The setting of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// Splits `load.context` into the table and the key; the table is empty at the top level. The name of a key
/// binding may hold dots of its own.
#[must_use]
pub fn split(name: &str) -> (&str, &str) {
    name.split_once('.').unwrap_or(("", name))
}

/// Puts a value where its name says.
pub fn insert(table: &mut Table, name: &str, value: Value) {
    let (section, key) = split(name);
    if section.is_empty() {
        table.insert(key.to_owned(), value);
    } else if let Value::Table(inner) = table
        .entry(section.to_owned())
        .or_insert_with(|| Value::Table(Table::new()))
    {
        inner.insert(key.to_owned(), value);
    }
}

/// Whether the setting of that name takes this kind of value. Limits are the business of
/// [`rules`](super::rules).
#[must_use]
pub fn fits(name: &str, value: &Value) -> bool {
    let mut table = Table::new();
    insert(&mut table, name, value.clone());
    Config::deserialize(table).is_ok()
}
