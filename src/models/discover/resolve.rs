//! From what the user typed to a file that can hold a chat.

use std::path::{Path, PathBuf};

use super::split::{self, split_part};
use super::{FoundModel, Places, scan};
use crate::models::catalogue;
use crate::models::gguf::{GgufError, GgufFile};
use crate::text::sanitize::neutral_line;

/// Why a name or path leads to no model.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The file is unreadable or broken.
    #[error("{0}")]
    Broken(#[from] GgufError),
    /// The file is whole but cannot hold a chat.
    #[error("{}: {reason}; choose another model", neutral_line(&path.display().to_string()))]
    NotChat {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// It is a part of a split model that cannot be opened.
    #[error("{}: {reason}", neutral_line(&path.display().to_string()))]
    Split {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// There is no model on this machine.
    #[error("there is no model on this machine; get one with: platen pull smollm2-135m")]
    None,
    /// No model of that name is on this machine, but the catalogue has it.
    #[error("'{name}' is not on this machine; get it with: platen pull {name}")]
    NotPulled {
        /// The catalogue's name.
        name: String,
    },
    /// Nothing is called that.
    #[error("no model is called '{}'{}; list them with: platen models", neutral_line(name), nearest.as_ref().map(|near| format!("; did you mean '{near}'?")).unwrap_or_default())]
    NotFound {
        /// What was typed.
        name: String,
        /// The nearest name.
        nearest: Option<String>,
    },
}

/// The model file that `name_or_path` means: a path, or the name of a model in `places`.
///
/// # Errors
/// See [`ResolveError`].
pub fn resolve(name_or_path: &str, places: &Places) -> Result<PathBuf, ResolveError> {
    let path = Path::new(name_or_path);
    // Ollama's names may hold a slash too, but always a colon.
    if path.is_file() || (name_or_path.contains('/') && !name_or_path.contains(':')) {
        return check(path);
    }
    let models = scan(places);
    match by_name(name_or_path, &models) {
        Some(model) => check(&model.path),
        None if catalogue::find(name_or_path).is_some() => Err(ResolveError::NotPulled {
            name: name_or_path.to_owned(),
        }),
        None => Err(ResolveError::NotFound {
            name: name_or_path.to_owned(),
            nearest: nearest(name_or_path, &models),
        }),
    }
}

/// The model to open where none was named: the catalogue's default where it is among `models`, else the first that
/// can chat.
#[must_use]
pub fn default_model(models: &[FoundModel]) -> Option<&FoundModel> {
    let wanted = catalogue::default_entry().map(|entry| entry.name.as_str());
    let mut able = models.iter().filter(|model| model.problem.is_none());
    able.clone()
        .find(|model| Some(model.name.as_str()) == wanted)
        .or_else(|| able.next())
}

/// The file of the model to open where none was named.
///
/// # Errors
/// [`ResolveError::None`], where there is no model.
pub fn resolve_default(places: &Places) -> Result<PathBuf, ResolveError> {
    match default_model(&scan(places)) {
        Some(model) => Ok(model.path.clone()),
        None => Err(ResolveError::None),
    }
}

fn by_name<'models>(text: &str, models: &'models [FoundModel]) -> Option<&'models FoundModel> {
    let lower = text.to_lowercase();
    let file_is = |model: &FoundModel, name: &str| {
        model
            .path
            .file_name()
            .is_some_and(|file| file.to_string_lossy().to_lowercase() == name)
    };
    models
        .iter()
        .find(|model| model.name == lower)
        .or_else(|| {
            models
                .iter()
                .find(|model| file_is(model, &lower) || file_is(model, &format!("{lower}.gguf")))
        })
        .or_else(|| {
            models
                .iter()
                .find(|model| model.name == format!("{lower}:latest"))
        })
}

fn check(path: &Path) -> Result<PathBuf, ResolveError> {
    let broken_split = |reason: String| ResolveError::Split {
        path: path.to_owned(),
        reason,
    };
    if let Some(part) = path
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(split_part)
    {
        if part.number != 1 {
            let reason = format!("is part {} of {}; open part 1", part.number, part.count);
            return Err(broken_split(reason));
        }
        let missing = (2..=part.count)
            .find(|&number| split::sibling(path, number).is_none_or(|part| !part.is_file()));
        if let Some(number) = missing {
            return Err(broken_split(format!(
                "part {number} of {} is missing beside it",
                part.count
            )));
        }
    }
    let file = GgufFile::open(path)?;
    match file.not_chat() {
        Some(reason) => Err(ResolveError::NotChat {
            path: path.to_owned(),
            reason,
        }),
        None => Ok(path.to_owned()),
    }
}

/// The name that is most like `text`, where one is like it at all.
fn nearest(text: &str, models: &[FoundModel]) -> Option<String> {
    let lower = text.to_lowercase();
    let names = || {
        let pullable = catalogue::entries().iter().map(|entry| entry.name.as_str());
        models
            .iter()
            .map(|model| model.name.as_str())
            .chain(pullable)
    };
    let most = (lower.chars().count() / 3).max(2);
    names()
        .map(|name| (distance(&lower, name), name))
        .filter(|&(distance, _)| distance <= most)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name.to_owned())
        .or_else(|| {
            names()
                .find(|name| lower.len() >= 3 && name.contains(&lower))
                .map(str::to_owned)
        })
}

/// The edits (insert, remove, replace) between two texts, of which only the first 64 characters count.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let replace = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
