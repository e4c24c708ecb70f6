//! The flags that several commands share, and the layer of the configuration that they make.

use std::path::PathBuf;
use std::str::FromStr;

use toml::Value;

use super::{EventsFormat, Report, StatsFormat};
use crate::chat::record::ChatId;
use crate::config::settings::SETTINGS;
use crate::config::{Layer, Origin};
use crate::engine::options::{FlashAttention, KvType, SwaCache};

/// `--model`.
#[derive(Debug, clap::Args)]
pub struct ModelFlag {
    /// The model: a path or the name of a model on this machine
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
}

/// `--system`.
#[derive(Debug, Clone, clap::Args)]
pub struct SystemFlag {
    /// System prompt
    #[arg(long, value_name = "TEXT", help_heading = "Generation")]
    system: Option<String>,
}

/// `--stats` and `--events`.
#[derive(Debug, clap::Args)]
pub struct ReportFlags {
    /// Write each reply's numbers to standard error: none, text or json
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "none",
        hide_default_value = true
    )]
    #[arg(hide_possible_values = true)]
    stats: StatsFormat,
    /// Write engine events to standard output in place of the text: json
    #[arg(long, value_name = "FORMAT", hide_possible_values = true)]
    events: Option<EventsFormat>,
}

impl ReportFlags {
    /// The flag that asks for something, if one does.
    #[must_use]
    pub fn first_given(&self) -> Option<&'static str> {
        match (self.stats, self.events) {
            (StatsFormat::Text | StatsFormat::Json, _) => Some("--stats"),
            (StatsFormat::None, Some(EventsFormat::Json)) => Some("--events"),
            (StatsFormat::None, None) => None,
        }
    }
}

impl From<ReportFlags> for Report {
    fn from(flags: ReportFlags) -> Self {
        Report {
            stats: flags.stats,
            events: flags.events,
        }
    }
}

/// What a model is run with.
#[derive(Debug, Clone, clap::Args)]
#[command(allow_negative_numbers = true)]
pub struct RunFlags {
    /// Context size in tokens; 0 takes what the model was trained on
    #[arg(long, value_name = "TOKENS", help_heading = "Model")]
    ctx: Option<u32>,
    /// CPU threads
    #[arg(long, value_name = "N", help_heading = "Model")]
    threads: Option<u32>,
    /// Most tokens handed to one prefill call
    #[arg(long, value_name = "TOKENS", help_heading = "Model")]
    batch: Option<u32>,
    /// Most tokens computed at once within a call
    #[arg(long, value_name = "TOKENS", help_heading = "Model")]
    ubatch: Option<u32>,
    #[arg(help = "Element type of the K cache: f32, f16, bf16 or q8_0")]
    #[arg(long, value_name = "TYPE", help_heading = "Model")]
    kv_type_k: Option<KvType>,
    #[arg(help = "Element type of the V cache: f32, f16, bf16 or q8_0")]
    #[arg(long, value_name = "TYPE", help_heading = "Model")]
    kv_type_v: Option<KvType>,
    /// Flash attention: auto, on or off
    #[arg(long, value_name = "MODE", help_heading = "Model")]
    flash_attn: Option<FlashAttention>,
    /// Cells of layers with a sliding window: full, or small for less memory
    #[arg(long, value_name = "SIZE", help_heading = "Model")]
    swa_cache: Option<SwaCache>,
    /// Memory for branches and chats that were left, in MiB; 0 keeps none
    #[arg(long, value_name = "MIB", help_heading = "Model")]
    cache_ram: Option<u32>,
    /// Layers kept on the GPU
    #[arg(long, value_name = "N", help_heading = "Model")]
    gpu_layers: Option<u32>,
    /// Load a model also where it needs more memory than is free
    #[arg(long, help_heading = "Model")]
    force: bool,
    /// Temperature, 0 to 5; 0 always takes the likeliest token
    #[arg(long, value_name = "T", help_heading = "Sampling")]
    temp: Option<f32>,
    /// Keep the K likeliest tokens; 0 keeps all
    #[arg(long, value_name = "K", help_heading = "Sampling")]
    top_k: Option<u32>,
    /// Keep the likeliest tokens that add up to P; 1 keeps all
    #[arg(long, value_name = "P", help_heading = "Sampling")]
    top_p: Option<f32>,
    /// Drop tokens less likely than this share of the likeliest; 0 drops none
    #[arg(long, value_name = "P", help_heading = "Sampling")]
    min_p: Option<f32>,
    /// Make tokens that occurred lately less likely; 1 changes nothing
    #[arg(long, value_name = "X", help_heading = "Sampling")]
    repeat_penalty: Option<f32>,
    /// Seed of the draw; the same seed gives the same reply
    #[arg(long, value_name = "N", help_heading = "Sampling")]
    seed: Option<u32>,
    /// Most tokens of a reply
    #[arg(long, value_name = "N", help_heading = "Generation")]
    max_tokens: Option<u32>,
    #[command(flatten)]
    system: SystemFlag,
    /// A text that ends the reply; may be given several times
    #[arg(long, value_name = "TEXT", help_heading = "Generation")]
    stop: Vec<String>,
}

/// Adds where chats are kept to the layer that the other flags make.
pub(super) fn add_store(path: Option<PathBuf>, layer: &mut Layer) {
    let path = path.map(|path| path.to_string_lossy().into_owned());
    set(layer, "--store", path.map(Value::String));
}

/// Which chat is opened and whether it is kept.
#[derive(Debug, Clone, clap::Args)]
pub struct ChatFlags {
    /// Go on with the last chat, or with this one (see platen chats)
    #[arg(long = "continue", value_name = "CHAT", help_heading = "Chats")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "last")]
    resume: Option<ChatName>,
    /// Keep nothing of this chat on disk
    #[arg(long, help_heading = "Chats")]
    no_save: bool,
    /// Keep chats in this file
    #[arg(long, value_name = "FILE", help_heading = "Chats")]
    store: Option<PathBuf>,
}

impl ChatFlags {
    /// The flag that asks for something, if one does.
    #[must_use]
    pub fn first_given(&self) -> Option<&'static str> {
        [
            (self.resume.is_some(), "--continue"),
            (self.no_save, "--no-save"),
            (self.store.is_some(), "--store"),
        ]
        .into_iter()
        .find_map(|(given, flag)| given.then_some(flag))
    }

    /// The chat to go on with.
    #[must_use]
    pub fn resume(&self) -> Option<ChatName> {
        self.resume
    }

    /// Adds to the layer that the other flags make.
    pub fn add_to(self, layer: &mut Layer) {
        let save = self.no_save.then_some(Value::Boolean(false));
        set(layer, "--no-save", save);
        add_store(self.store, layer);
    }
}

/// A chat as it is named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatName {
    /// The one that changed last.
    Last,
    /// The one with this number.
    Number(ChatId),
}

impl FromStr for ChatName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "last" {
            return Ok(ChatName::Last);
        }
        match text.parse() {
            Ok(number) if number > 0 => Ok(ChatName::Number(ChatId(number))),
            Ok(_) | Err(_) => {
                Err("a chat is named by its number (see platen chats), or by 'last'".into())
            }
        }
    }
}

impl RunFlags {
    /// The layer that the flags make, the model with them.
    #[must_use]
    pub fn layer(self, model: Option<String>) -> Layer {
        let mut layer = Layer::new();
        let stop =
            (!self.stop.is_empty()).then(|| self.stop.into_iter().map(Value::String).collect());
        let typed = [
            ("--model", model.map(Value::String)),
            ("--system", self.system.system.map(Value::String)),
            ("--ctx", self.ctx.map(whole)),
            ("--threads", self.threads.map(whole)),
            ("--batch", self.batch.map(whole)),
            ("--ubatch", self.ubatch.map(whole)),
            (
                "--kv-type-k",
                self.kv_type_k.map(|kind| Value::from(kind.name())),
            ),
            (
                "--kv-type-v",
                self.kv_type_v.map(|kind| Value::from(kind.name())),
            ),
            (
                "--flash-attn",
                self.flash_attn
                    .map(|mode| Value::from(flash_attention_name(mode))),
            ),
            (
                "--swa-cache",
                self.swa_cache.map(|size| Value::from(size.name())),
            ),
            ("--cache-ram", self.cache_ram.map(whole)),
            ("--gpu-layers", self.gpu_layers.map(whole)),
            ("--force", self.force.then(|| Value::from("force"))),
            ("--temp", self.temp.map(Value::from)),
            ("--top-k", self.top_k.map(whole)),
            ("--top-p", self.top_p.map(Value::from)),
            ("--min-p", self.min_p.map(Value::from)),
            ("--repeat-penalty", self.repeat_penalty.map(Value::from)),
            ("--seed", self.seed.map(whole)),
            ("--max-tokens", self.max_tokens.map(whole)),
            ("--stop", stop.map(Value::Array)),
        ];
        for (flag, value) in typed {
            set(&mut layer, flag, value);
        }
        layer
    }
}

impl SystemFlag {
    /// The layer that the flag and a model make.
    #[must_use]
    pub fn layer(self, model: String) -> Layer {
        let mut layer = Layer::new();
        set(&mut layer, "--model", Some(Value::String(model)));
        set(&mut layer, "--system", self.system.map(Value::String));
        layer
    }
}

fn set(layer: &mut Layer, flag: &'static str, value: Option<Value>) {
    let setting = SETTINGS.iter().find(|setting| setting.flag == Some(flag));
    if let (Some(setting), Some(value)) = (setting, value) {
        layer.insert(setting.name.to_owned(), (value, Origin::Flag(flag)));
    }
}

fn whole(number: u32) -> Value {
    Value::Integer(i64::from(number))
}

fn flash_attention_name(mode: FlashAttention) -> &'static str {
    match mode {
        FlashAttention::Auto => "auto",
        FlashAttention::On => "on",
        FlashAttention::Off => "off",
    }
}
