//! Keeps the chats of this run on disk, in a thread of its own: the screen never waits for a disk. What the store
//! does not take stays in memory and is tried again; nothing is dropped because a write failed.

mod mirror;
mod worker;

use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use super::record::{Change, ChatHead, ChatId, ChatSlot, StoredChat};
use super::store::{ChatLock, Opened, StoreError};
use crate::engine::event::EngineError;

use worker::Worker;

/// What the screen wants kept.
#[derive(Debug, Clone, PartialEq)]
pub enum StoreCommand {
    /// Something happened to a chat.
    Keep {
        /// The chat.
        slot: ChatSlot,
        /// What holds for the whole now.
        head: ChatHead,
        /// What happened to its messages, in order.
        changes: Vec<Change>,
    },
    /// Try again now what could not be written.
    Retry,
    /// Keep the chats in this file from now on.
    SaveTo(PathBuf),
}

/// What became of it.
#[derive(Debug, Clone, PartialEq)]
pub enum StoreEvent {
    /// The chat is in the store.
    Kept {
        /// The chat.
        slot: ChatSlot,
        /// Its name there.
        id: ChatId,
        /// The command that opens it again.
        reopen: String,
    },
    /// Whether what is said is kept.
    State(Keeping),
    /// Something that the user should know.
    Told(String),
}

/// Whether what is said is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keeping {
    /// It is.
    Saved,
    /// It is in memory alone, and why.
    NotSaved(EngineError),
    /// Nobody asked for it.
    Off,
}

/// A chat of the store that goes on.
#[derive(Debug)]
pub struct Resumed {
    /// The chat.
    pub chat: StoredChat,
    /// How it goes on.
    pub standing: Resumption,
}

/// How a chat of the store goes on.
#[derive(Debug)]
pub enum Resumption {
    /// As itself.
    Itself(Option<ChatLock>),
    /// As a copy that is made with the first new message, for another process has it open or the store can't be
    /// written.
    Copy,
}

/// What the keeper begins with.
#[derive(Debug)]
pub struct Setup {
    /// Where the chats belong; `None` where the system has no place.
    pub path: Option<PathBuf>,
    /// Where they are looked for without a flag.
    pub usual_path: Option<PathBuf>,
    /// The store as it was opened.
    pub store: Result<Opened, StoreError>,
    /// The chat that goes on, as the slot 1.
    pub resumed: Option<Resumed>,
}

/// How the keeping ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Farewell {
    /// The command that goes on with the last chat, where the store has it.
    pub reopen: Option<String>,
    /// Why something is not saved, where something is not.
    pub unsaved: Option<EngineError>,
}

impl Farewell {
    /// What to say when the program ends.
    #[must_use]
    pub fn message(&self) -> Option<String> {
        match (&self.unsaved, &self.reopen) {
            (Some(error), _) => Some(format!(
                "The end of the chat was not saved: {}\n",
                error.message
            )),
            (None, Some(command)) => Some(format!("Go on with this chat: {command}\n")),
            (None, None) => None,
        }
    }
}

/// The way to the thread that keeps the chats. Dropping it ends the thread, after a last write.
#[derive(Debug)]
pub struct Keeper {
    commands: Option<Sender<StoreCommand>>,
    thread: Option<JoinHandle<Farewell>>,
}

impl Keeper {
    /// Starts to keep; `report` is called from the keeper's thread.
    ///
    /// # Errors
    /// The thread can't be started.
    pub fn start(
        setup: Setup,
        report: impl Fn(StoreEvent) + Send + 'static,
    ) -> std::io::Result<Keeper> {
        let (commands, inbox) = channel();
        let thread = std::thread::Builder::new()
            .name("platen-store".into())
            .spawn(move || Worker::new(setup, Box::new(report)).run(&inbox))?;
        Ok(Keeper {
            commands: Some(commands),
            thread: Some(thread),
        })
    }

    /// Hands over a command.
    pub fn send(&self, command: StoreCommand) {
        if let Some(commands) = &self.commands
            && commands.send(command).is_err()
        {
            tracing::error!("the thread that keeps the chats has ended");
        }
    }

    /// Lets the thread write what is left, without waiting for it.
    pub fn begin_close(&mut self) {
        self.commands = None;
    }

    /// Writes what is left and ends; `None` where the thread died.
    #[must_use]
    pub fn close(mut self) -> Option<Farewell> {
        self.begin_close();
        self.thread.take()?.join().ok()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.begin_close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
