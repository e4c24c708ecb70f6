//! Who has what open. Locks of the operating system, which end with the process however it ends, on small files in a
//! folder beside the store.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::chat::record::ChatId;
use crate::paths::create_private;

/// The right to write to a chat, while it lives.
#[derive(Debug)]
pub struct ChatLock {
    file: File,
    path: PathBuf,
}

/// The answer to a wish to write to a chat.
#[derive(Debug)]
pub enum Locking {
    /// It is granted.
    Granted(ChatLock),
    /// Another process has the chat open.
    Taken,
    /// The system has no locks here, or the folder can't be written.
    Unknown(io::Error),
}

impl ChatLock {
    /// Asks for the right to write to a chat of the store in `store`.
    #[must_use]
    pub fn of(store: &Path, chat: ChatId) -> Locking {
        let path = folder(store).join(chat.to_string());
        loop {
            let file = match open(&path) {
                Ok(file) => file,
                Err(error) => return Locking::Unknown(error),
            };
            match file.try_lock() {
                // Whoever held it last may have removed the file that was opened here.
                Ok(()) if is_at(&file, &path) => {
                    return Locking::Granted(ChatLock { file, path });
                }
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Locking::Taken,
                Err(TryLockError::Error(error)) => return Locking::Unknown(error),
            }
        }
    }
}

impl Drop for ChatLock {
    fn drop(&mut self) {
        if is_at(&self.file, &self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// That a process has the store open, while it lives.
#[derive(Debug)]
pub(super) struct Presence(#[expect(dead_code, reason = "held, never read")] File);

impl Presence {
    /// Announces it; a system without locks goes without.
    pub(super) fn announce(store: &Path) -> Option<Presence> {
        let file = open(&folder(store).join("store")).ok()?;
        file.try_lock_shared().ok()?;
        Some(Presence(file))
    }

    /// Has the store for this process alone; `None` where another one has it open.
    pub(super) fn alone(store: &Path) -> io::Result<Option<Presence>> {
        let file = open(&folder(store).join("store"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Presence(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

fn folder(store: &Path) -> PathBuf {
    super::beside(store, ".locks")
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        create_private(folder)?;
    }
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), path.metadata()) {
        (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
        (Err(_), _) | (_, Err(_)) => false,
    }
}
