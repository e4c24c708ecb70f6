//! The keeper's thread: takes what happened, writes it when it is due, and goes on trying where that fails.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::mirror::Mirror;
use super::{Farewell, Keeping, Setup, StoreCommand, StoreEvent};
use crate::chat::record::{Change, ChatId, ChatSlot};
use crate::chat::store::{Access, ChatLock, Locking, Opened, Recovered, Store, StoreError};
use crate::engine::event::EngineError;

/// How long the growth of a reply may wait for more.
const GROWTH_WAIT: Duration = Duration::from_millis(400);
/// The first wait after a failed write; it doubles.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// The longest wait.
const LAST_RETRY: Duration = Duration::from_secs(30);

pub(super) struct Worker {
    path: Option<PathBuf>,
    usual_path: Option<PathBuf>,
    store: Result<Store, StoreError>,
    chats: BTreeMap<ChatSlot, Mirror>,
    /// When the next write is due.
    due: Option<Instant>,
    /// The wait after the next failure.
    patience: Duration,
    state: Keeping,
    report: Box<dyn Fn(StoreEvent) + Send>,
}

impl Worker {
    pub(super) fn new(setup: Setup, report: Box<dyn Fn(StoreEvent) + Send>) -> Worker {
        let mut worker = Worker {
            path: setup.path,
            usual_path: setup.usual_path,
            store: setup.store.map(|opened| taken(opened, &*report)),
            chats: BTreeMap::new(),
            due: None,
            patience: FIRST_RETRY,
            state: Keeping::Saved,
            report,
        };
        if let Some(resumed) = setup.resumed {
            let mirror = Mirror::of(resumed);
            if let Some(id) = mirror.id {
                worker.tell_kept(ChatSlot(1), id);
            }
            worker.chats.insert(ChatSlot(1), mirror);
        }
        worker
    }

    /// Works until nobody can send any more.
    pub(super) fn run(mut self, inbox: &Receiver<StoreCommand>) -> Farewell {
        self.check();
        self.flush();
        loop {
            let wait = self
                .due
                .map(|due| due.saturating_duration_since(Instant::now()));
            let received = match wait {
                Some(wait) => inbox.recv_timeout(wait),
                None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match received {
                Ok(command) => {
                    self.take(command);
                    while let Ok(command) = inbox.try_recv() {
                        self.take(command);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.end(),
            }
            if self.due.is_some_and(|due| due <= Instant::now()) {
                self.flush();
            }
        }
    }

    fn take(&mut self, command: StoreCommand) {
        match command {
            StoreCommand::Keep {
                slot,
                head,
                changes,
            } => {
                let grown_only = !changes.is_empty()
                    && changes
                        .iter()
                        .all(|change| matches!(change, Change::Grow(..)));
                self.chats.entry(slot).or_default().apply(head, changes);
                let wait = if grown_only {
                    GROWTH_WAIT
                } else {
                    Duration::ZERO
                };
                // After a failure the next try has its own time.
                if self.state == Keeping::Saved {
                    self.be_due_in(wait);
                }
            }
            StoreCommand::Retry => {
                self.due = None;
                self.flush();
                if self.state == Keeping::Saved {
                    let place = self.path.as_deref().map_or_else(String::new, place);
                    (self.report)(StoreEvent::Told(format!("Everything is saved in {place}.")));
                }
            }
            StoreCommand::SaveTo(path) => self.move_to(path),
        }
    }

    fn be_due_in(&mut self, wait: Duration) {
        let due = Instant::now() + wait;
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    /// Looks for damage that no read has met yet.
    fn check(&mut self) {
        if let Ok(store) = &self.store
            && let Err(error @ StoreError::Damaged { .. }) = store.check()
        {
            self.store = Err(error);
            self.be_due_in(Duration::ZERO);
        }
    }

    /// Writes everything that the store doesn't have.
    fn flush(&mut self) {
        self.due = None;
        let outcome = self.try_flush().or_else(|error| {
            // The file is gone, damaged or has lost the chat: once more, with what is to be had then.
            if self.mend(&error) {
                self.try_flush()
            } else {
                Err(error)
            }
        });
        match outcome {
            Ok(()) => {
                self.patience = FIRST_RETRY;
                self.forget_finished();
                self.become_state(Keeping::Saved);
            }
            Err(error) => {
                self.due = Some(Instant::now() + self.patience);
                self.patience = (self.patience * 2).min(LAST_RETRY);
                let told = told(&error);
                self.become_state(Keeping::NotSaved(told));
            }
        }
    }

    fn try_flush(&mut self) -> Result<(), StoreError> {
        self.reopen_where_needed()?;
        let store = match &mut self.store {
            Ok(store) => store,
            Err(error) => return Err(error.clone()),
        };
        if let Access::ReadOnly(reason) = store.access() {
            return Err(reason.clone());
        }
        let mut kept = Vec::new();
        for (slot, mirror) in &mut self.chats {
            while mirror.is_stale() {
                let id = store.write(&mirror.batch())?;
                let is_new = mirror.id.is_none();
                mirror.written(id);
                if is_new {
                    match ChatLock::of(store.path(), id) {
                        Locking::Granted(lock) => mirror.lock = Some(lock),
                        // Somebody opened it before its lock was taken: it is theirs, and goes on here as a copy.
                        Locking::Taken => {
                            mirror.forget_store();
                            continue;
                        }
                        Locking::Unknown(error) => tracing::warn!("a chat goes unlocked: {error}"),
                    }
                    kept.push((*slot, id));
                }
            }
        }
        for (slot, id) in kept {
            self.tell_kept(slot, id);
        }
        Ok(())
    }

    /// Opens the store, where it is not or was not to be written.
    fn reopen_where_needed(&mut self) -> Result<(), StoreError> {
        let is_open = match &self.store {
            Ok(store) => *store.access() == Access::ReadWrite,
            Err(_) => false,
        };
        let Some(path) = self.path.clone().filter(|_| !is_open) else {
            return Ok(());
        };
        match Store::open(&path) {
            Ok(opened) => {
                let recovered = opened.recovered.is_some();
                self.store = Ok(taken(opened, &*self.report));
                if recovered {
                    self.match_recovered();
                }
                Ok(())
            }
            Err(error) => {
                self.store = Err(error.clone());
                Err(error)
            }
        }
    }

    /// Makes ready for another try after an error; `false` where that brings nothing.
    fn mend(&mut self, error: &StoreError) -> bool {
        match error {
            StoreError::ChatGone { .. } | StoreError::Gone { .. } => {
                if let StoreError::Gone { .. } = error {
                    self.store = Err(error.clone());
                }
                self.chats.values_mut().for_each(Mirror::forget_store);
                true
            }
            StoreError::Damaged { path, reason } => {
                self.store = Err(error.clone());
                match Store::open_damaged(path, reason) {
                    Ok(opened) => {
                        self.store = Ok(taken(opened, &*self.report));
                        self.match_recovered();
                        true
                    }
                    Err(failed) => {
                        self.store = Err(failed);
                        false
                    }
                }
            }
            StoreError::NoPlace
            | StoreError::Locked { .. }
            | StoreError::Full { .. }
            | StoreError::Unwritable { .. }
            | StoreError::Newer { .. }
            | StoreError::Foreign { .. }
            | StoreError::Other { .. } => false,
        }
    }

    /// After a recovery: chats that were saved go on as themselves, the others as new ones.
    fn match_recovered(&mut self) {
        let Ok(store) = &self.store else { return };
        for mirror in self.chats.values_mut() {
            let known = mirror
                .id
                .is_some_and(|id| matches!(store.chat(id), Ok(Some(_))));
            if known {
                mirror.write_again();
            } else {
                mirror.forget_store();
            }
        }
    }

    /// Keeps the chats in another file from now on.
    fn move_to(&mut self, path: PathBuf) {
        let path = at_home(path);
        let path = std::path::absolute(&path).unwrap_or(path);
        match Store::open(&path) {
            Ok(opened) => {
                self.store = Ok(taken(opened, &*self.report));
                self.chats.values_mut().for_each(Mirror::forget_store);
                self.path = Some(path.clone());
                self.flush();
                if self.state == Keeping::Saved {
                    (self.report)(StoreEvent::Told(format!(
                        "Chats are kept in {} from now on; --store {} finds them again.",
                        place(&path),
                        quoted(&path)
                    )));
                }
            }
            Err(error) => {
                let error = told(&error);
                (self.report)(StoreEvent::Told(error.to_string()));
            }
        }
    }

    /// Chats that are written whole and can't change any more.
    fn forget_finished(&mut self) {
        let last = self.chats.keys().next_back().copied();
        self.chats
            .retain(|slot, mirror| Some(*slot) == last || mirror.is_stale());
    }

    fn become_state(&mut self, state: Keeping) {
        if self.state != state {
            match &state {
                Keeping::NotSaved(error) => tracing::error!("chats are not saved: {error}"),
                Keeping::Saved => tracing::info!("chats are saved again"),
                Keeping::Off => {}
            }
            self.state = state.clone();
            (self.report)(StoreEvent::State(state));
        }
    }

    fn tell_kept(&self, slot: ChatSlot, id: ChatId) {
        let reopen = self.reopen(id);
        (self.report)(StoreEvent::Kept { slot, id, reopen });
    }

    /// The command that opens a chat again.
    fn reopen(&self, id: ChatId) -> String {
        match &self.path {
            Some(path) if self.path != self.usual_path => {
                format!("platen --store {} --continue={id}", quoted(path))
            }
            Some(_) | None => format!("platen --continue={id}"),
        }
    }

    fn end(mut self) -> Farewell {
        if self.chats.values().any(Mirror::is_stale) {
            self.flush();
        }
        let last = self.chats.values().next_back();
        let is_stale = self.chats.values().any(Mirror::is_stale);
        Farewell {
            reopen: last.and_then(|mirror| mirror.id).map(|id| self.reopen(id)),
            unsaved: match &self.state {
                Keeping::NotSaved(error) if is_stale => Some(error.clone()),
                Keeping::NotSaved(_) | Keeping::Saved | Keeping::Off => None,
            },
        }
    }
}

/// A path as typed, with `~/` for the home directory.
fn at_home(typed: PathBuf) -> PathBuf {
    match (typed.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        (Ok(_), None) | (Err(_), _) => typed,
    }
}

/// Takes a store that was opened, and says what was saved of a damaged one.
fn taken(opened: Opened, report: &dyn Fn(StoreEvent)) -> Store {
    if let Some(recovered) = &opened.recovered {
        report(StoreEvent::Told(told_of_recovery(recovered)));
    }
    opened.store
}

/// An error as the user reads it.
fn told(error: &StoreError) -> EngineError {
    EngineError::new(capitalised(&format!("{error}.")), error.hint())
}

fn told_of_recovery(recovered: &Recovered) -> String {
    format!(
        "The store of chats was damaged. {} chats with {} messages could be read; the damaged file is kept as {}.",
        recovered.chats,
        recovered.messages,
        place(&recovered.kept_as)
    )
}

fn place(path: &Path) -> String {
    path.display().to_string()
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '+' | ',');
    if text.chars().all(is_plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}
