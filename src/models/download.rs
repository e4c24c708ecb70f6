//! Fetches a model of the catalogue.

use std::path::PathBuf;

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
        /// Bytes in all.
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
