//! Finds the models on this machine.

use std::path::PathBuf;

/// A model file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundModel {
    /// The name to call it by: unique among those found.
    pub name: String,
    /// The file (the first one of a split model).
    pub path: PathBuf,
    /// Its size in bytes, all parts counted.
    pub bytes: u64,
    /// `general.architecture`; empty where the file could not be read.
    pub architecture: String,
    /// The quantisation's usual name, such as `Q4_1`; empty where unknown.
    pub quantization: String,
    /// Where it was found: `platen`, `folder`, …
    pub source: String,
}
