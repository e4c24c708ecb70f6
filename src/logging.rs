//! Where messages for the log go: a file, and a ring that the log view shows. What people and models say to each
//! other never goes there.

mod file;
mod layer;
mod sink;

use serde::{Deserialize, Serialize};

pub use sink::{LogSink, record};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For developers.
    Debug,
    /// What happened.
    Info,
    /// Something is odd.
    Warn,
    /// Something failed.
    Error,
}

impl LogLevel {
    /// The word in the log file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        }
    }
}

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// How bad it is.
    pub level: LogLevel,
    /// Who says it: `llama.cpp` or a module of platen.
    pub target: String,
    /// The text, without a newline.
    pub text: String,
}
