//! Chats on disk: one SQLite file (WAL), which several platens read and write side by side. Each row is written by the
//! one process that holds the chat's lock, so nothing is overwritten.

mod error;
mod lock;
mod read;
mod recover;
mod rows;
mod schema;
mod write;

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

pub use error::StoreError;
pub use lock::{ChatLock, Locking};
pub use recover::Recovered;
pub use write::{Batch, Growths};

use lock::Presence;
use schema::{Found, STEPS};

use crate::paths::{create_private, identity, private_file};

/// How long another program's write is waited for.
const BUSY_PATIENCE: Duration = Duration::from_secs(2);
/// The same while somebody waits for the first frame.
const OPEN_PATIENCE: Duration = Duration::from_millis(500);

/// Whether a store can be written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// It can.
    ReadWrite,
    /// It can't, for this reason.
    ReadOnly(StoreError),
}

/// An open store.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    access: Access,
    /// The file that was opened; another one may lie at the path by now.
    identity: Option<(u64, u64)>,
    /// Tells other processes that this one has the store open.
    _presence: Option<Presence>,
}

/// A store that was opened, and what had to be done for it.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: Store,
    /// What was saved from a damaged one.
    pub recovered: Option<Recovered>,
}

impl Store {
    /// Opens the store in `path`, private to the user; makes it and the folders above where there is none. One of an
    /// older version is brought forward, one of a newer version or without the right to write is opened for reading.
    /// What can be read of a damaged one is moved into a new one; the damaged one is kept beside it.
    ///
    /// # Errors
    /// See [`StoreError`]; nothing was overwritten.
    pub fn open(path: &Path) -> Result<Opened, StoreError> {
        match Store::open_as_it_is(path) {
            Ok(store) => Ok(Opened {
                store,
                recovered: None,
            }),
            Err(StoreError::Damaged { reason, .. }) => Store::open_damaged(path, &reason),
            Err(error) => Err(error),
        }
    }

    /// Moves what can be read of a damaged store into a new one, and opens that.
    ///
    /// # Errors
    /// Another platen has it open, or the new one can't be made; the damaged one is where it was.
    pub fn open_damaged(path: &Path, reason: &str) -> Result<Opened, StoreError> {
        tracing::error!("the store of chats is damaged: {reason}");
        let recovered = recover::recover(path, reason)?;
        Ok(Opened {
            store: Store::open_as_it_is(path)?,
            recovered: Some(recovered),
        })
    }

    /// The store in `path`, where there is one.
    ///
    /// # Errors
    /// As for [`Store::open`].
    pub fn open_existing(path: &Path) -> Result<Option<Opened>, StoreError> {
        match path.symlink_metadata() {
            Ok(_) => Store::open(path).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unwritable(path, &error)),
        }
    }

    fn open_as_it_is(path: &Path) -> Result<Store, StoreError> {
        match Store::open_for_writing(path) {
            Err(refused @ StoreError::Unwritable { .. }) if path.is_file() => {
                Store::open_for_reading(path, refused)
            }
            outcome => outcome,
        }
    }

    fn open_for_writing(path: &Path) -> Result<Store, StoreError> {
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            create_private(folder).map_err(|error| unwritable(path, &error))?;
        }
        create_private_file(path).map_err(|error| unwritable(path, &error))?;
        let fail = |error: rusqlite::Error| StoreError::of(path, &error);
        let presence = Presence::announce(path);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).map_err(fail)?;
        connection.busy_timeout(OPEN_PATIENCE).map_err(fail)?;
        connection
            .pragma_update(None, "foreign_keys", true)
            .map_err(fail)?;
        let found = schema::migrate(&mut connection, path, &STEPS)?;
        let access = match found {
            Found::Current => {
                let mode: String = connection
                    .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
                    .map_err(fail)?;
                if mode != "wal" {
                    tracing::warn!("the store of chats has the journal mode {mode}, not wal");
                }
                Access::ReadWrite
            }
            Found::Newer(found) => {
                connection
                    .pragma_update(None, "query_only", true)
                    .map_err(fail)?;
                Access::ReadOnly(StoreError::Newer {
                    path: path.to_owned(),
                    found,
                    known: i64::try_from(STEPS.len()).unwrap_or(i64::MAX),
                })
            }
        };
        connection.busy_timeout(BUSY_PATIENCE).map_err(fail)?;
        Ok(Store {
            connection,
            path: path.to_owned(),
            access,
            identity: identity_of(path),
            _presence: presence,
        })
    }

    /// Opens a store that can't be written. Where the folder can't be written either, SQLite can't share the file with
    /// a writer, and there can be none: it is read as it lies there.
    fn open_for_reading(path: &Path, refused: StoreError) -> Result<Store, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let usable = |connection: Connection| {
            connection
                .query_row("SELECT count(*) FROM chat", [], |row| row.get::<_, i64>(0))
                .map(|_| connection)
        };
        let plain = Connection::open_with_flags(path, flags).and_then(usable);
        let opened = plain.or_else(|_| {
            let uri = immutable_uri(path);
            Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI).and_then(usable)
        });
        match opened {
            Ok(connection) => Ok(Store {
                connection,
                path: path.to_owned(),
                access: Access::ReadOnly(refused),
                identity: identity_of(path),
                _presence: None,
            }),
            Err(_) => Err(refused),
        }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it can be written to.
    #[must_use]
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Looks at every page.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], or SQLite fails.
    pub fn check(&self) -> Result<(), StoreError> {
        let verdict: String = self
            .connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(|error| self.failed(&error))?;
        if verdict == "ok" {
            return Ok(());
        }
        Err(StoreError::Damaged {
            path: self.path.clone(),
            reason: verdict,
        })
    }

    /// Whether the file that is open is still the one at the path.
    fn is_in_place(&self) -> bool {
        identity_of(&self.path) == self.identity
    }

    fn failed(&self, error: &rusqlite::Error) -> StoreError {
        StoreError::of(&self.path, error)
    }
}

/// `path` with something behind its name.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Makes an empty file that only its owner can read, where there is none. What SQLite puts beside it is made alike.
fn create_private_file(path: &Path) -> io::Result<()> {
    // Without waiting for the other end where a pipe lies there.
    let file = private_file()
        .append(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    if file.metadata()?.is_file() {
        return Ok(());
    }
    Err(io::Error::other("it is not a file"))
}

fn unwritable(path: &Path, error: &io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full {
            path: path.to_owned(),
        },
        _ => StoreError::Unwritable {
            path: path.to_owned(),
            reason: error.to_string(),
        },
    }
}

/// Which file lies at the path.
fn identity_of(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|about| identity(&about))
}

/// The file's name as SQLite takes it together with options: bytes that mean something in one are escaped.
fn immutable_uri(path: &Path) -> PathBuf {
    use std::fmt::Write as _;
    use std::os::unix::ffi::OsStrExt;
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut uri = String::from("file:");
    for byte in whole.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => {
                uri.push(char::from(*byte));
            }
            other => {
                let _ = write!(uri, "%{other:02X}");
            }
        }
    }
    PathBuf::from(uri + "?immutable=1")
}

/// Writes what is known of a file to the disk.
fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests;
