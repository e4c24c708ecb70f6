//! Who has what open. Locks of the operating system, which end with the process however it ends, on small files in a
//! folder beside the store.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::chat::record::ChatId;
use crate::paths::{create_private, is_at, lock, private_file};

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
        let locked = made_folder_of(&path).and_then(|()| lock(&path, &to_lock()));
        match locked {
            Ok(Some(file)) => Locking::Granted(ChatLock { file, path }),
            Ok(None) => Locking::Taken,
            Err(error) => Locking::Unknown(error),
        }
    }
}

impl Drop for ChatLock {
    fn drop(&mut self) {
        if is_at(&self.file, &self.path).unwrap_or(false) {
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
    made_folder_of(path)?;
    to_lock().open(path)
}

fn made_folder_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), create_private)
}

fn to_lock() -> OpenOptions {
    let mut options = private_file();
    options.write(true).truncate(false);
    options
}
