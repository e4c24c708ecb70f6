//! What can be asked for: a name of the catalogue, `hf:ORG/REPO[:FILE]`, or an address.

use super::{Network, PullError, hub};
use crate::models::catalogue::{self, Entry, Source};
use crate::models::is_gguf_name;
use crate::text::sanitize::neutral_line;

/// A file to fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    /// The name it will have in the folder.
    pub file: String,
    /// Its size, where it is published.
    pub bytes: Option<u64>,
    /// Its SHA-256 in hexadecimal, where it is published; without one the content cannot be checked.
    pub sha256: Option<String>,
    /// Where it can be had, the best first.
    pub sources: Vec<Source>,
}

impl From<&Entry> for PullRequest {
    fn from(entry: &Entry) -> Self {
        PullRequest {
            file: entry.file.clone(),
            bytes: Some(entry.bytes),
            sha256: Some(entry.sha256.clone()),
            sources: entry.sources.clone(),
        }
    }
}

impl PullRequest {
    /// Reads what the user typed. For `hf:` the hub is asked for the repository's files.
    ///
    /// # Errors
    /// The text is none of the three, or the hub does not answer or offers several files.
    pub fn parse(text: &str, network: &Network) -> Result<PullRequest, PullError> {
        if let Some(rest) = text.strip_prefix("hf:") {
            return from_hub(rest, network);
        }
        if text.starts_with("http://") || text.starts_with("https://") {
            return from_url(text);
        }
        catalogue::find(text).map(PullRequest::from).ok_or_else(|| {
            let names: Vec<&str> = catalogue::entries()
                .iter()
                .map(|entry| entry.name.as_str())
                .collect();
            PullError::Request(format!(
                "'{}' is not in the catalogue ({}); hf:ORG/REPO[:FILE] and addresses work too",
                neutral_line(text),
                names.join(", ")
            ))
        })
    }
}

fn from_hub(text: &str, network: &Network) -> Result<PullRequest, PullError> {
    let (repo, file) = match text.split_once(':') {
        Some((repo, file)) => (repo, Some(file)),
        None => (text, None),
    };
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with('.')
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
    };
    if !repo
        .split_once('/')
        .is_some_and(|(org, name)| is_name(org) && is_name(name))
    {
        return Err(PullError::Request(format!(
            "'hf:{}' is not of the form hf:ORG/REPO[:FILE]",
            neutral_line(text)
        )));
    }
    let files = hub::list(network, repo)?;
    let chosen = match file {
        None => hub::choose(repo, &files)?,
        Some(file) => files
            .iter()
            .find(|found| found.path == file)
            .ok_or_else(|| {
                let names: Vec<String> =
                    files.iter().map(|file| neutral_line(&file.path)).collect();
                PullError::Request(format!(
                    "{repo} has no GGUF file '{}'; it has:\n  {}",
                    neutral_line(file),
                    names.join("\n  ")
                ))
            })?,
    };
    let name = chosen
        .path
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_owned();
    check_file_name(&name)?;
    Ok(PullRequest {
        file: name,
        bytes: (chosen.size > 0).then_some(chosen.size),
        sha256: chosen
            .lfs
            .as_ref()
            .map(|lfs| lfs.oid.clone())
            .filter(|oid| oid.len() == 64),
        sources: vec![Source::Hub {
            repo: repo.to_owned(),
            revision: "main".to_owned(),
            file: chosen.path.clone(),
        }],
    })
}

fn from_url(url: &str) -> Result<PullRequest, PullError> {
    let named = url.split(['?', '#']).next().unwrap_or_default();
    let behind_scheme = named.split_once("://").map_or(named, |(_, rest)| rest);
    // What stands before the first slash is the host, and perhaps a password.
    let Some((_, name)) = behind_scheme.rsplit_once('/') else {
        return Err(PullError::Request(format!(
            "{} names no file",
            neutral_line(url)
        )));
    };
    check_file_name(name)?;
    Ok(PullRequest {
        file: name.to_owned(),
        bytes: None,
        sha256: None,
        sources: vec![Source::Url {
            url: url.to_owned(),
        }],
    })
}

/// A name that stays in its folder and is a model's.
pub(super) fn check_file_name(name: &str) -> Result<(), PullError> {
    let stays = !name.starts_with('.')
        && name.len() <= 200
        && !name.contains(['/', '\\', '\0'])
        && !name.chars().any(char::is_control);
    if stays && is_gguf_name(name) {
        return Ok(());
    }
    Err(PullError::Request(format!(
        "'{}' is not the name of a GGUF file",
        neutral_line(name)
    )))
}
