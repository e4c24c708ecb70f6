//! Finds the models on this machine, whichever tool downloaded them. Only headers are read, and nothing that
//! lies in the folders can make a scan long, endless or fatal.

mod ollama;
mod places;
mod resolve;
mod split;
mod walk;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::catalogue;
use super::gguf::GgufFile;
use crate::text::sanitize::neutral_line;

pub use places::Places;
pub use resolve::{ResolveError, default_model, resolve, resolve_default};
pub(super) use split::{sibling, split_part};

/// Most models that a scan lists.
const MOST_MODELS: usize = 1000;

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
    /// Why it cannot hold a chat: it is broken or of another kind. `None` for a model that can.
    pub problem: Option<String>,
}

/// A file that may be a model, before its header is read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    path: PathBuf,
    /// The name its finder gives it; the file's own where there is none.
    name: Option<String>,
    source: &'static str,
}

/// Lists the models in `places`, each file once, in the order of the places. It may read many headers: call it
/// outside the interface's thread.
#[must_use]
pub fn scan(places: &Places) -> Vec<FoundModel> {
    let mut seen = HashSet::new();
    let mut names = HashSet::new();
    let mut models = Vec::new();
    for candidate in places.candidates() {
        if models.len() == MOST_MODELS {
            break;
        }
        let Ok(canonical) = candidate.path.canonicalize() else {
            continue;
        };
        if !seen.insert(canonical) {
            continue;
        }
        let Some(mut model) = examine(&candidate) else {
            continue;
        };
        model.name = unique(&model.name, &mut names);
        models.push(model);
    }
    models
}

fn examine(candidate: &Candidate) -> Option<FoundModel> {
    let bytes = split::whole_bytes(&candidate.path).ok()?;
    let mut model = FoundModel {
        name: candidate
            .name
            .clone()
            .unwrap_or_else(|| friendly_name(&candidate.path, bytes)),
        path: candidate.path.clone(),
        bytes,
        architecture: String::new(),
        quantization: String::new(),
        source: candidate.source.to_owned(),
        problem: None,
    };
    match GgufFile::open(&candidate.path) {
        Ok(file) => {
            model.architecture = neutral_line(file.architecture());
            model.quantization = file.quantization();
            model.problem = file.not_chat();
        }
        Err(error) => model.problem = Some(error.fault.to_string()),
    }
    Some(model)
}

/// The catalogue's name for one of its files, else the file's name without its ending, in small letters.
fn friendly_name(path: &Path, bytes: u64) -> String {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    if let Some(entry) = catalogue::by_file(&file).filter(|entry| entry.bytes == bytes) {
        return entry.name.clone();
    }
    let stem = match split_part(&file) {
        Some(part) => part.stem.to_owned(),
        None => path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
    };
    neutral_line(&stem.to_lowercase())
}

fn unique(name: &str, names: &mut HashSet<String>) -> String {
    let mut free = name.to_owned();
    let mut number = 2;
    while names.contains(&free) {
        free = format!("{name}-{number}");
        number += 1;
    }
    names.insert(free.clone());
    free
}

#[cfg(test)]
mod tests;
