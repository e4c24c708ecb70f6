//! The keeper as the screen uses it.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rusqlite::Connection;

use super::*;
use crate::chat::Message;
use crate::chat::record::{Growth, MessageNo, Node};
use crate::chat::store::{Locking, Store};
use crate::engine::event::StopReason;
use crate::engine::token::{Role, TokenId};

/// How long an event is waited for before a test fails.
const PATIENCE: Duration = Duration::from_mins(1);

struct Desk {
    keeper: Keeper,
    events: Receiver<StoreEvent>,
}

impl Desk {
    fn at(path: &Path, resumed: Option<Resumed>) -> Desk {
        Desk::with(Setup {
            path: Some(path.to_owned()),
            usual_path: Some(path.to_owned()),
            store: Store::open(path),
            resumed,
        })
    }

    fn with(setup: Setup) -> Desk {
        let (sender, events) = channel();
        let keeper = Keeper::start(setup, move |event| {
            let _ = sender.send(event);
        })
        .unwrap();
        Desk { keeper, events }
    }

    fn keep(&self, slot: u64, changes: Vec<Change>) {
        let leaf = changes.iter().rev().find_map(|change| match change {
            Change::Put(node) => Some(node.no),
            Change::Grow(no, _) => Some(*no),
            Change::Remove(_) => None,
        });
        self.keeper.send(StoreCommand::Keep {
            slot: ChatSlot(slot),
            head: ChatHead {
                leaf,
                ..ChatHead::default()
            },
            changes,
        });
    }

    /// Waits for an event that `wanted` picks.
    fn hear<T>(&self, wanted: impl Fn(StoreEvent) -> Option<T>) -> T {
        loop {
            if let Some(found) = wanted(self.events.recv_timeout(PATIENCE).unwrap()) {
                return found;
            }
        }
    }

    fn hear_kept(&self) -> ChatId {
        self.hear(|event| match event {
            StoreEvent::Kept { id, .. } => Some(id),
            StoreEvent::State(_) | StoreEvent::Told(_) => None,
        })
    }

    fn hear_state(&self) -> Keeping {
        self.hear(|event| match event {
            StoreEvent::State(keeping) => Some(keeping),
            StoreEvent::Kept { .. } | StoreEvent::Told(_) => None,
        })
    }

    fn hear_told(&self) -> String {
        self.hear(|event| match event {
            StoreEvent::Told(text) => Some(text),
            StoreEvent::Kept { .. } | StoreEvent::State(_) => None,
        })
    }
}

fn said(no: u64, text: &str) -> Change {
    Change::Put(Box::new(Node {
        no: MessageNo(no),
        parent: no.checked_sub(1).filter(|no| *no > 0).map(MessageNo),
        message: Message::new(Role::User, text),
    }))
}

fn reply(no: u64, text: &str, stop: Option<StopReason>) -> Change {
    let mut message = Message::new(Role::Assistant, text);
    message.stop = stop;
    Change::Put(Box::new(Node {
        no: MessageNo(no),
        parent: Some(MessageNo(no - 1)),
        message,
    }))
}

fn grown(no: u64, text: &str) -> Change {
    Change::Grow(
        MessageNo(no),
        Growth {
            text: text.into(),
            thinking_len: 0,
            token: TokenId(7),
            token_bytes: text.len(),
        },
    )
}

fn stored(path: &Path, id: ChatId) -> StoredChat {
    let store = Store::open(path).unwrap().store;
    store.chat(id).unwrap().unwrap()
}

fn texts(chat: &StoredChat) -> Vec<String> {
    let branch = chat.branch();
    branch
        .iter()
        .map(|node| node.message.text.clone())
        .collect()
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chats.db");
    (folder, path)
}

#[test]
fn a_reply_is_on_disk_while_it_streams() {
    let (_folder, path) = place();
    let desk = Desk::at(&path, None);
    desk.keep(1, vec![said(1, "a question")]);
    let id = desk.hear_kept();
    desk.keep(1, vec![reply(2, "", None)]);
    for text in ["one", " two", " three"] {
        desk.keep(1, vec![grown(2, text)]);
    }
    let whole = || texts(&stored(&path, id)) == ["a question", "one two three"];
    let deadline = std::time::Instant::now() + PATIENCE;
    while !whole() {
        assert!(std::time::Instant::now() < deadline, "it never came");
        std::thread::sleep(Duration::from_millis(5));
    }
    let chat = stored(&path, id);
    assert_eq!(chat.title, "a question");
    assert_eq!(chat.nodes[1].message.stop, None);
    assert_eq!(chat.nodes[1].message.tokens.as_ref().unwrap().ids.len(), 3);
    desk.keep(1, vec![reply(2, "one two three!", Some(StopReason::Eog))]);
    let farewell = desk.keeper.close().unwrap();
    assert_eq!(farewell.unsaved, None);
    assert_eq!(
        farewell.message().unwrap(),
        format!("Go on with this chat: platen --continue={id}\n")
    );
    assert_eq!(
        stored(&path, id).nodes[1].message.stop,
        Some(StopReason::Eog)
    );
}

#[test]
fn each_chat_of_a_run_is_its_own_and_an_empty_one_is_none() {
    let (_folder, path) = place();
    let desk = Desk::at(&path, None);
    desk.keep(1, vec![said(1, "first")]);
    desk.keep(2, Vec::new());
    desk.keep(3, vec![said(2, "second")]);
    desk.keep(3, vec![said(3, "more")]);
    drop(desk);
    let chats = Store::open(&path).unwrap().store.chats().unwrap();
    let mut titles: Vec<_> = chats
        .iter()
        .map(|chat| (&*chat.title, chat.messages))
        .collect();
    titles.sort_unstable();
    assert_eq!(titles, [("first", 1), ("second", 2)]);
}

/// A chat of the store in `path` with a reply that was cut off.
fn cut_off_chat(path: &Path) -> ChatId {
    let desk = Desk::at(path, None);
    desk.keep(1, vec![said(1, "q"), reply(2, "half", None)]);
    desk.hear_kept()
}

fn resume(path: &Path, id: ChatId) -> Resumed {
    let store = Store::open(path).unwrap().store;
    let chat = store.chat(id).unwrap().unwrap();
    let standing = match ChatLock::of(path, id) {
        Locking::Granted(lock) => Resumption::Itself(Some(lock)),
        Locking::Taken => Resumption::Copy,
        Locking::Unknown(error) => panic!("{error}"),
    };
    Resumed { chat, standing }
}

#[test]
fn a_reply_that_was_cut_off_is_marked_when_its_chat_goes_on() {
    let (_folder, path) = place();
    let id = cut_off_chat(&path);
    let desk = Desk::at(&path, Some(resume(&path, id)));
    assert_eq!(desk.hear_kept(), id);
    drop(desk);
    let reply = &stored(&path, id).nodes[1].message;
    assert_eq!(
        (reply.text.as_str(), reply.stop),
        ("half", Some(StopReason::Interrupted))
    );
}

#[test]
fn a_chat_that_is_open_elsewhere_goes_on_as_a_copy_and_nothing_is_overwritten() {
    let (_folder, path) = place();
    let id = cut_off_chat(&path);
    let first = Desk::at(&path, Some(resume(&path, id)));
    let second = Desk::at(&path, Some(resume(&path, id)));
    first.keep(1, vec![said(3, "from the first")]);
    second.keep(1, vec![said(3, "from the second")]);
    let copy = second.hear_kept();
    assert_ne!(copy, id);
    drop((second, first));
    assert_eq!(texts(&stored(&path, id)), ["q", "half", "from the first"]);
    assert_eq!(
        texts(&stored(&path, copy)),
        ["q", "half", "from the second"]
    );
}

#[test]
fn a_copy_of_which_nothing_came_is_not_kept() {
    let (_folder, path) = place();
    let id = cut_off_chat(&path);
    let first = Desk::at(&path, Some(resume(&path, id)));
    let second = Desk::at(&path, Some(resume(&path, id)));
    // Another model is loaded; nothing is said.
    second.keep(1, Vec::new());
    drop(second);
    drop(first);
    assert_eq!(Store::open(&path).unwrap().store.chats().unwrap().len(), 1);
}

#[test]
fn what_a_locked_store_does_not_take_is_written_when_it_is_free() {
    let (_folder, path) = place();
    let desk = Desk::at(&path, None);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    desk.keep(1, vec![said(1, "q")]);
    let Keeping::NotSaved(error) = desk.hear_state() else {
        panic!("it is locked");
    };
    assert!(error.message.contains("locked"), "{error:?}");
    desk.keep(1, vec![reply(2, "a", Some(StopReason::Eog))]);
    other.execute_batch("COMMIT").unwrap();
    desk.keeper.send(StoreCommand::Retry);
    let id = desk.hear_kept();
    assert_eq!(desk.hear_state(), Keeping::Saved);
    assert!(desk.hear_told().starts_with("Everything is saved in"));
    assert_eq!(texts(&stored(&path, id)), ["q", "a"]);
}

#[test]
fn a_store_that_vanishes_is_made_again_with_the_whole_open_chat() {
    let (folder, path) = place();
    let desk = Desk::at(&path, None);
    desk.keep(1, vec![said(1, "q"), reply(2, "a", Some(StopReason::Eog))]);
    desk.hear_kept();
    std::fs::rename(&path, folder.path().join("elsewhere")).unwrap();
    desk.keep(1, vec![said(3, "more")]);
    let id = desk.hear_kept();
    drop(desk);
    assert_eq!(texts(&stored(&path, id)), ["q", "a", "more"]);
}

#[test]
fn a_chat_that_another_process_removes_is_written_again() {
    let (_folder, path) = place();
    let desk = Desk::at(&path, None);
    desk.keep(1, vec![said(1, "q")]);
    let id = desk.hear_kept();
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch("DELETE FROM message; DELETE FROM chat")
        .unwrap();
    desk.keep(1, vec![said(2, "more")]);
    let again = desk.hear_kept();
    assert_ne!(id, again);
    drop(desk);
    assert_eq!(texts(&stored(&path, again)), ["q", "more"]);
}

#[test]
fn a_damaged_store_is_recovered_around_the_open_chat() {
    let (_folder, path) = place();
    let desk = Desk::at(&path, None);
    desk.keep(1, vec![said(1, "q")]);
    desk.hear_kept();
    drop(desk);
    std::fs::write(&path, [0xEE; 12_288]).unwrap();
    let desk = Desk::at(&path, None);
    assert!(desk.hear_told().contains("was damaged"));
    desk.keep(1, vec![said(1, "after")]);
    let id = desk.hear_kept();
    drop(desk);
    assert_eq!(texts(&stored(&path, id)), ["after"]);
}

#[test]
fn a_place_that_can_t_be_written_is_told_and_another_file_takes_everything() {
    let (folder, path) = place();
    let file = folder.path().join("a file in the way");
    std::fs::write(&file, "").unwrap();
    let desk = Desk::at(&file.join("chats.db"), None);
    let Keeping::NotSaved(error) = desk.hear_state() else {
        panic!("it can't be written");
    };
    assert!(error.hint.contains("/save FILE"), "{error:?}");
    desk.keep(1, vec![said(1, "q")]);
    desk.keep(1, vec![reply(2, "", None), grown(2, "part")]);
    desk.keeper.send(StoreCommand::SaveTo(path.clone()));
    let id = desk.hear_kept();
    assert_eq!(desk.hear_state(), Keeping::Saved);
    desk.keep(1, vec![grown(2, " by part")]);
    let farewell = desk.keeper.close().unwrap();
    assert_eq!(
        farewell.reopen.unwrap(),
        format!("platen --store {} --continue={id}", path.display())
    );
    assert_eq!(texts(&stored(&path, id)), ["q", "part by part"]);
}

#[test]
fn without_a_home_the_chat_goes_on_in_memory_and_the_end_says_so() {
    let desk = Desk::with(Setup {
        path: None,
        usual_path: None,
        store: Err(StoreError::NoPlace),
        resumed: None,
    });
    let Keeping::NotSaved(error) = desk.hear_state() else {
        panic!("there is no place");
    };
    assert!(error.message.contains("no home directory"), "{error:?}");
    desk.keep(1, vec![said(1, "q")]);
    let farewell = desk.keeper.close().unwrap();
    assert!(
        farewell
            .message()
            .unwrap()
            .starts_with("The end of the chat was not saved: ")
    );
}
