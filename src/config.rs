//! What the user can set, and from where: defaults, then the file, then the environment, then the flags.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::engine::options::LoadOptions;
use crate::engine::sampling::SamplingPatch;

/// The configuration, all layers merged.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The model to open: a path or a name.
    pub model: Option<String>,
    /// The system prompt of new chats.
    pub system: Option<String>,
    /// How models are loaded.
    pub load: LoadOptions,
    /// The sampling that the user sets; what is left out comes from the model, then from the defaults.
    pub sampling: SamplingPatch,
    /// How long replies get.
    pub generation: GenerationConfig,
    /// The screen.
    pub ui: UiConfig,
    /// Keys for actions, by the action's name; they replace the defaults of that action.
    pub keys: BTreeMap<String, Vec<String>>,
}

/// How long replies get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GenerationConfig {
    /// Most tokens of a reply.
    pub max_tokens: u32,
    /// Texts that end a reply.
    pub stop: Vec<String>,
}

impl Default for GenerationConfig {
    fn default() -> Self {
        GenerationConfig { max_tokens: 2048, stop: Vec::new() }
    }
}

/// The screen.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UiConfig {
    /// Where the panels stand.
    pub panels: PanelsConfig,
}

/// Where the panels stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PanelsConfig {
    /// By the terminal's width.
    #[default]
    Auto,
    /// Never shown.
    Hidden,
}
