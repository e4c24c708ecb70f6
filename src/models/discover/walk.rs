//! Walks a folder for GGUF files. Links are followed, but no folder is entered twice.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::split::split_part;
use crate::models::is_gguf_name;
use crate::paths::identity;

/// How deep below the start a model may lie.
const MOST_DEPTH: usize = 8;
/// Most entries looked at below one start.
const MOST_ENTRIES: usize = 100_000;

/// All files below `root`, sorted by path within each folder, files before folders; `wanted` decides by the
/// file's name.
pub fn files(root: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut entered = HashSet::new();
    let mut looked = 0;
    let mut waiting = vec![(root.to_owned(), 0)];
    while let Some((folder, depth)) = waiting.pop() {
        let Ok(about) = fs::metadata(&folder) else {
            continue;
        };
        if !about.is_dir() || !entered.insert(identity(&about)) {
            continue;
        }
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in entries.flatten() {
            looked += 1;
            if looked > MOST_ENTRIES {
                return found;
            }
            paths.push(entry.path());
        }
        paths.sort();
        let mut folders = Vec::new();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // `metadata` follows links: a dangling one and a link to itself are errors.
            match fs::metadata(&path) {
                Ok(about) if about.is_dir() && depth < MOST_DEPTH && !name.starts_with('.') => {
                    folders.push((path, depth + 1));
                }
                Ok(about) if about.is_file() && wanted(&name) => found.push(path),
                _ => {}
            }
        }
        waiting.extend(folders.into_iter().rev());
    }
    found
}

/// Whether a file's name is that of a model: not of a projector, an unfinished download or a later part.
pub fn is_model_name(name: &str) -> bool {
    let lower = name.to_lowercase();
    is_gguf_name(name)
        && !lower.starts_with('.')
        && !lower.contains("mmproj")
        && split_part(name).is_none_or(|part| part.number == 1)
}
