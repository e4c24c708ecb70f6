//! What the user can set, and from where: defaults, then the file, then the environment, then the flags.
//!
//! Every layer is a [`Layer`]: values by the setting's name, each with its [`Origin`]. They are laid over each
//! other, turned into one [`Config`] and checked by [`rules`]; a problem is reported at the place that caused it.

pub mod environment;
pub mod file;
pub mod problem;
pub mod rules;
pub mod settings;
pub mod show;
pub mod suggest;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::engine::options::LoadOptions;
use crate::engine::sampling::SamplingPatch;
use problem::{ConfigError, ConfigProblem};

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
    /// How chats are kept.
    pub chats: ChatsConfig,
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
    /// Whether a message is read while it is written.
    pub read_ahead: ReadAhead,
}

/// Whether a message is read while it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadAhead {
    /// Except on battery power.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

impl Default for GenerationConfig {
    fn default() -> Self {
        GenerationConfig {
            max_tokens: 2048,
            stop: Vec::new(),
            read_ahead: ReadAhead::Auto,
        }
    }
}

/// How chats are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChatsConfig {
    /// Whether they are.
    pub save: bool,
    /// In which file; where it is not set, in platen's data directory.
    pub file: Option<PathBuf>,
    /// What the states of chats may take on disk, in MiB, so that they need not be read again; 0 keeps none.
    pub cache_disk: u32,
}

/// What the states of chats may take on disk where nothing else is asked for, in MiB.
const DEFAULT_DISK_MIB: u32 = 4096;

impl Default for ChatsConfig {
    fn default() -> Self {
        ChatsConfig {
            save: true,
            file: None,
            cache_disk: DEFAULT_DISK_MIB,
        }
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

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Origin {
    /// Built in.
    #[default]
    Default,
    /// A line of the configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The line's text.
        text: String,
    },
    /// An environment variable, by its name.
    Environment(&'static str),
    /// A flag, such as `--ctx`.
    Flag(&'static str),
}

impl Origin {
    /// How strong it is: a value of a higher rank hides one of a lower rank.
    #[must_use]
    pub fn rank(&self) -> u8 {
        match self {
            Origin::Default => 0,
            Origin::File { .. } => 1,
            Origin::Environment(_) => 2,
            Origin::Flag(_) => 3,
        }
    }

    /// Its place in a list of problems: by rank, then by line.
    fn position(&self) -> (u8, usize) {
        match self {
            Origin::File { line, .. } => (self.rank(), *line),
            Origin::Default | Origin::Environment(_) | Origin::Flag(_) => (self.rank(), 0),
        }
    }
}

/// One layer: values by the setting's name (`load.context`), each with where it comes from.
pub type Layer = BTreeMap<String, (Value, Origin)>;

/// What reading one layer gave: its good values, and what is wrong with the others.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LayerRead {
    /// The good values.
    pub layer: Layer,
    /// What is wrong.
    pub problems: Vec<ConfigProblem>,
}

/// Where each value that is not a default comes from, by the setting's name.
pub type Origins = BTreeMap<String, Origin>;

/// Checks one binding of the key table: the action's name and its keys. An `Err` says what is wrong with it.
pub type CheckBinding = fn(action: &str, keys: &[String]) -> Result<(), String>;

/// What [`load`] reads.
#[derive(Clone)]
pub struct Sources {
    /// The configuration file.
    pub file: file::ConfigFile,
    /// The environment layer's variables, by name.
    pub variables: BTreeMap<String, std::ffi::OsString>,
    /// The flags.
    pub flags: Layer,
    /// Knows the names of actions and keys.
    pub check_binding: CheckBinding,
}

/// The merged configuration and where its values come from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Loaded {
    /// The values.
    pub config: Config,
    /// Their origins.
    pub origins: Origins,
}

/// Reads every layer, merges them and checks the result.
///
/// # Errors
/// Everything that is wrong, each at the file's line, the variable or the flag that caused it.
pub fn load(sources: &Sources) -> Result<Loaded, ConfigError> {
    let file = file::read(&sources.file);
    let environment = environment::read(&sources.variables);
    let loaded = merge([file.layer, environment.layer, sources.flags.clone()])?;
    let mut problems = [file.problems, environment.problems].concat();
    problems.extend(rules::check(&loaded, sources.check_binding));
    problems.sort_by_key(|problem| problem.origin.position());
    if problems.is_empty() {
        Ok(loaded)
    } else {
        Err(ConfigError { problems })
    }
}

/// As [`load`], but a bad file is left out and handed back as a notice, so that a chat can still open.
///
/// # Errors
/// What is wrong with the environment or the flags.
pub fn load_despite_file(sources: &Sources) -> Result<(Loaded, Option<ConfigError>), ConfigError> {
    match load(sources) {
        Ok(loaded) => Ok((loaded, None)),
        Err(error) if error.is_about_file() => {
            let without = Sources {
                file: file::ConfigFile::None,
                ..sources.clone()
            };
            Ok((load(&without)?, Some(error)))
        }
        Err(error) => Err(error),
    }
}

/// Lays layers over each other, the strongest last. Nothing is judged but the types; see [`load`].
///
/// # Errors
/// A value of a type that its setting doesn't take.
pub fn merge(layers: [Layer; 3]) -> Result<Loaded, ConfigError> {
    let merged: Layer = layers.into_iter().flatten().collect();
    let mut table = Table::new();
    let mut origins = Origins::new();
    for (name, (value, origin)) in merged {
        settings::insert(&mut table, &name, value);
        origins.insert(name, origin);
    }
    let config = Config::deserialize(table).map_err(|error| ConfigError {
        problems: vec![ConfigProblem::new(
            Origin::Default,
            error.message().to_owned(),
        )],
    })?;
    Ok(Loaded { config, origins })
}

#[cfg(test)]
mod tests;
