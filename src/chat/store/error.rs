//! What can be wrong with the store, by what can be done about it.

use std::path::PathBuf;

use rusqlite::ErrorCode;

use crate::paths::NoHome;

/// Why the store can't be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// There is no place for it.
    #[error("{NoHome}")]
    NoPlace,
    /// Another program holds it.
    #[error("another program holds {} locked", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// No space.
    #[error("the disk of {} is full", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// It can't be made or written.
    #[error("{} can't be written: {reason}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Its contents make no sense.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How that was noticed.
        reason: String,
    },
    /// A newer platen wrote it.
    #[error(
        "{} was written by a newer platen (version {found} of its format, this one knows {known})",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// It belongs to another program.
    #[error("{} is a database, but not one of platen's", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file is not where it was.
    #[error("{} was moved or removed", path.display())]
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// Another program removed the chat.
    #[error("the chat was removed from {}", path.display())]
    ChatGone {
        /// The file.
        path: PathBuf,
    },
    /// Something else.
    #[error("{}: {reason}", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        reason: String,
    },
}

impl StoreError {
    /// What SQLite's error means for the store in `path`.
    pub(super) fn of(path: &std::path::Path, error: &rusqlite::Error) -> StoreError {
        let path = path.to_owned();
        let reason = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                StoreError::Locked { path }
            }
            Some(ErrorCode::DiskFull) => StoreError::Full { path },
            Some(
                ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
                | ErrorCode::CannotOpen
                | ErrorCode::SystemIoFailure,
            ) => StoreError::Unwritable { path, reason },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                StoreError::Damaged { path, reason }
            }
            Some(_) | None => StoreError::Other { path, reason },
        }
    }

    /// What the user can do about it; a sentence.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            StoreError::NoPlace => "/save FILE keeps this chat in a file.",
            StoreError::Locked { .. } => "It is tried again by itself.",
            StoreError::Full { .. } => "Make room; it is tried again by itself.",
            StoreError::Newer { .. } => "Use the newer platen, or /save FILE for this chat.",
            StoreError::Foreign { .. }
            | StoreError::ChatGone { .. }
            | StoreError::Damaged { .. }
            | StoreError::Gone { .. }
            | StoreError::Unwritable { .. }
            | StoreError::Other { .. } => "/save tries again, /save FILE keeps it in another file.",
        }
    }
}
