//! Addresses and file lists of the Hugging Face hub.

use std::fmt::Write as _;

use serde::Deserialize;

use super::{Network, PullError, http};
use crate::models::is_gguf_name;
use crate::text::sanitize::neutral_line;

/// A file of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct HubFile {
    /// Its path.
    pub path: String,
    /// Its size in bytes.
    #[serde(default)]
    pub size: u64,
    /// Where large files are kept.
    #[serde(default)]
    pub lfs: Option<Lfs>,
}

/// Large-file storage of the hub.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Lfs {
    /// The SHA-256 of the file, in hexadecimal.
    pub oid: String,
}

/// The address of a file.
pub(super) fn file_url(hub: &str, repo: &str, revision: &str, file: &str) -> String {
    format!(
        "{}/{repo}/resolve/{}/{}",
        hub.trim_end_matches('/'),
        encode(revision),
        encode(file)
    )
}

/// The GGUF files of a repository.
pub(super) fn list(network: &Network, repo: &str) -> Result<Vec<HubFile>, PullError> {
    let url = format!(
        "{}/api/models/{repo}/tree/main?recursive=true",
        network.hub.trim_end_matches('/')
    );
    let text = http::text(&url, network.hub_token.as_deref())?;
    let files: Vec<HubFile> = serde_json::from_str(&text).map_err(|error| {
        PullError::Request(format!(
            "{}: the list of files is unreadable: {error}",
            neutral_line(&url)
        ))
    })?;
    Ok(files
        .into_iter()
        .filter(|file| is_gguf_name(&file.path))
        .collect())
}

/// The file to take where the user names none: the one there is, or the `Q4_K_M` one.
pub(super) fn choose<'files>(
    repo: &str,
    files: &'files [HubFile],
) -> Result<&'files HubFile, PullError> {
    let whole: Vec<&HubFile> = files
        .iter()
        .filter(|file| {
            let name = file.path.to_ascii_lowercase();
            !name.contains("mmproj") && !name.contains("imatrix") && !is_split(&name)
        })
        .collect();
    let q4_k_m: Vec<&HubFile> = whole
        .iter()
        .copied()
        .filter(|file| file.path.to_ascii_lowercase().contains("q4_k_m"))
        .collect();
    match (whole.as_slice(), q4_k_m.as_slice()) {
        ([only], _) | (_, [only]) => Ok(only),
        ([], _) => Err(PullError::Request(format!(
            "{repo} has no GGUF file of one part"
        ))),
        (several, _) => {
            let names: Vec<String> = several
                .iter()
                .map(|file| format!("hf:{repo}:{}", neutral_line(&file.path)))
                .collect();
            Err(PullError::Request(format!(
                "{repo} has {} GGUF files; choose one:\n  {}",
                several.len(),
                names.join("\n  ")
            )))
        }
    }
}

/// Whether a name ends as the parts of a split model do: `-00001-of-00003.gguf`.
fn is_split(name: &str) -> bool {
    crate::models::discover::split_part(name).is_some()
}

/// Percent-encodes all but the characters that stand for themselves, and slashes.
fn encode(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
