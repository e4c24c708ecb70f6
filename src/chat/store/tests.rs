//! The store against what machines do to it: kills, locks, damage, other programs, other versions.

#![allow(clippy::unwrap_used, reason = "tests")]

mod damage;
mod migration;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rusqlite::Connection;

use super::*;
use crate::chat::record::{ChatHead, ChatId, MessageNo, ModelRef, Node};
use crate::chat::{Author, Message, SamplingChange};
use crate::engine::event::StopReason;
use crate::engine::sampling::Sampling;
use crate::engine::token::{Role, TokenId, TokenRun};

/// A folder with a place for a store.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        Place {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("chats.db")
    }

    fn open(&self) -> Store {
        Store::open(&self.path()).unwrap().store
    }
}

fn node(no: u64, parent: Option<u64>, role: Role, text: &str) -> Node {
    Node {
        no: MessageNo(no),
        parent: parent.map(MessageNo),
        message: Message::new(role, text),
    }
}

/// A reply with everything that a message can have.
fn full_reply(no: u64, parent: u64) -> Node {
    let mut reply = node(
        no,
        Some(parent),
        Role::Assistant,
        "hm\nThe answer: é\0\u{1b}[2J",
    );
    reply.message.thinking_len = 3;
    reply.message.tokens = Some(TokenRun {
        ids: vec![TokenId(0), TokenId(-1), TokenId(i32::MAX)],
        text_len: 5,
    });
    reply.message.stop = Some(StopReason::MaxTokens);
    reply.message.author = Some(Author {
        model: "m".into(),
        vocabulary: "ab12".into(),
    });
    reply.message.sampling = Some(Sampling::default());
    reply.message.sampling_changes = vec![SamplingChange {
        after_tokens: 2,
        sampling: Sampling {
            top_k: 7,
            ..Sampling::default()
        },
    }];
    reply
}

fn batch(chat: Option<ChatId>, put: Vec<&Node>) -> Batch<'_> {
    let leaf = put.last().map(|node| node.no);
    Batch {
        chat,
        title: "A title".into(),
        head: ChatHead {
            system: Some("be brief".into()),
            model: Some(ModelRef {
                name: "m".into(),
                path: "/models/\u{e9}.gguf".into(),
            }),
            leaf,
        },
        put,
        ..Batch::default()
    }
}

/// A store with `count` chats of a question and an answer.
fn filled(place: &Place, count: usize) -> Vec<ChatId> {
    let mut store = place.open();
    (0..count)
        .map(|index| {
            let question = node(1, None, Role::User, &format!("question {index}"));
            let answer = full_reply(2, 1);
            store.write(&batch(None, vec![&question, &answer])).unwrap()
        })
        .collect()
}

#[test]
fn what_is_written_comes_back_as_it_was() {
    let place = Place::new();
    let question = node(1, None, Role::User, "What?\u{0}\u{202e}\u{feff}");
    let answer = full_reply(2, 1);
    let id = place
        .open()
        .write(&batch(None, vec![&question, &answer]))
        .unwrap();
    let chat = place.open().chat(id).unwrap().unwrap();
    assert_eq!(chat.nodes, [question, answer]);
    assert_eq!(chat.title, "A title");
    assert_eq!(chat.head, batch(None, vec![&chat.nodes[1]]).head);
    assert_eq!(place.open().chats().unwrap()[0].messages, 2);
    assert_eq!(place.open().latest().unwrap(), Some(id));
}

#[test]
fn alternatives_stay_and_the_branch_is_the_one_that_was_left() {
    let place = Place::new();
    let mut store = place.open();
    let nodes = [
        node(1, None, Role::User, "q"),
        node(2, Some(1), Role::Assistant, "first"),
        node(3, Some(1), Role::Assistant, "second"),
    ];
    let id = store.write(&batch(None, nodes.iter().collect())).unwrap();
    let texts = |chat: &crate::chat::record::StoredChat| -> Vec<String> {
        let branch = chat.branch();
        branch
            .iter()
            .map(|node| node.message.text.clone())
            .collect()
    };
    assert_eq!(texts(&store.chat(id).unwrap().unwrap()), ["q", "second"]);
    let mut back = batch(Some(id), Vec::new());
    back.head.leaf = Some(MessageNo(2));
    store.write(&back).unwrap();
    let chat = store.chat(id).unwrap().unwrap();
    assert_eq!(texts(&chat), ["q", "first"]);
    assert_eq!(chat.nodes.len(), 3);
}

#[test]
fn a_reply_that_grew_is_read_with_what_it_grew_by_and_settles_when_it_ends() {
    let place = Place::new();
    let mut store = place.open();
    let begun = [
        node(1, None, Role::User, "q"),
        node(2, Some(1), Role::Assistant, ""),
    ];
    let id = store.write(&batch(None, begun.iter().collect())).unwrap();
    for (text, thinking_len, ids, ids_text_len) in [
        ("hm ", 3, vec![TokenId(5)], 3),
        ("so: é", 1, vec![TokenId(6), TokenId(7)], 9),
        ("held", 0, vec![], 9),
    ] {
        let mut growth = batch(Some(id), Vec::new());
        growth.grown = vec![Growths {
            no: MessageNo(2),
            text,
            thinking_len,
            ids: &ids,
            ids_text_len,
        }];
        store.write(&growth).unwrap();
    }
    let reply = store.chat(id).unwrap().unwrap().nodes.remove(1).message;
    assert_eq!(reply.text, "hm so: éheld");
    assert_eq!(reply.thinking_len, 4);
    assert_eq!(reply.stop, None);
    let run = reply.tokens.unwrap();
    assert_eq!((run.ids.len(), run.text_len), (3, 9));
    let whole = full_reply(2, 1);
    store.write(&batch(Some(id), vec![&whole])).unwrap();
    assert_eq!(store.chat(id).unwrap().unwrap().nodes[1], whole);
    let left: i64 = Connection::open(place.path())
        .unwrap()
        .query_row("SELECT count(*) FROM growth", [], |row| row.get(0))
        .unwrap();
    assert_eq!(left, 0);
}

#[test]
fn a_message_that_is_answered_is_not_forgotten() {
    let place = Place::new();
    let id = filled(&place, 1)[0];
    let mut store = place.open();
    let mut removal = batch(Some(id), Vec::new());
    removal.removed = vec![MessageNo(1)];
    store.write(&removal).unwrap();
    assert_eq!(store.chat(id).unwrap().unwrap().nodes.len(), 2);
    removal.removed = vec![MessageNo(2), MessageNo(1)];
    store.write(&removal).unwrap();
    assert_eq!(store.chat(id).unwrap().unwrap().nodes.len(), 0);
    assert_eq!(store.chats().unwrap(), [], "an empty chat is not listed");
    assert_eq!(store.latest().unwrap(), None);
}

#[test]
fn everything_is_private_to_the_user() {
    let place = Place::new();
    let id = filled(&place, 1)[0];
    let store = place.open();
    let _lock = ChatLock::of(&place.path(), id);
    let mut seen = 0;
    for folder in [
        place.folder.path().to_owned(),
        beside(&place.path(), ".locks"),
    ] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode() & 0o077;
            assert_eq!(mode, 0, "{}", entry.path().display());
            seen += 1;
        }
    }
    assert!(seen >= 4, "the database, its log, the locks");
    drop(store);
}

#[test]
fn a_chat_is_one_process_s_to_write_until_it_lets_go() {
    let place = Place::new();
    let id = filled(&place, 1)[0];
    let Locking::Granted(lock) = ChatLock::of(&place.path(), id) else {
        panic!("the lock is free");
    };
    assert!(matches!(ChatLock::of(&place.path(), id), Locking::Taken));
    drop(lock);
    assert!(matches!(
        ChatLock::of(&place.path(), id),
        Locking::Granted(_)
    ));
}

#[test]
fn a_chat_that_another_process_removed_is_told_from_a_failure() {
    let place = Place::new();
    let id = filled(&place, 1)[0];
    let mut store = place.open();
    let other = Connection::open(place.path()).unwrap();
    other.execute("DELETE FROM message", []).unwrap();
    other.execute("DELETE FROM chat", []).unwrap();
    let error = store.write(&batch(Some(id), Vec::new())).unwrap_err();
    assert!(matches!(error, StoreError::ChatGone { .. }), "{error}");
}

#[test]
fn a_store_that_was_moved_away_takes_nothing_more() {
    let place = Place::new();
    let id = filled(&place, 1)[0];
    let mut store = place.open();
    std::fs::rename(place.path(), beside(&place.path(), ".moved")).unwrap();
    let error = store.write(&batch(Some(id), Vec::new())).unwrap_err();
    assert!(matches!(error, StoreError::Gone { .. }), "{error}");
}

#[test]
fn a_locked_store_says_so() {
    let place = Place::new();
    let mut store = place.open();
    store.connection.busy_timeout(Duration::ZERO).unwrap();
    let other = Connection::open(place.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let question = node(1, None, Role::User, "q");
    let error = store.write(&batch(None, vec![&question])).unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    other.execute_batch("COMMIT").unwrap();
    store.write(&batch(None, vec![&question])).unwrap();
}

#[test]
fn a_full_disk_says_so_and_writes_nothing_of_a_batch() {
    let place = Place::new();
    let mut store = place.open();
    store
        .connection
        .pragma_update(None, "max_page_count", 30)
        .unwrap();
    let question = node(1, None, Role::User, "q");
    let id = store.write(&batch(None, vec![&question])).unwrap();
    let long = node(2, Some(1), Role::Assistant, &"x".repeat(1 << 20));
    let error = store.write(&batch(Some(id), vec![&long])).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    let chat = store.chat(id).unwrap().unwrap();
    assert_eq!(chat.nodes, [question]);
    assert_eq!(chat.head.leaf, Some(MessageNo(1)), "all of it or nothing");
}

#[test]
fn a_place_that_is_no_file_is_refused() {
    let place = Place::new();
    std::fs::create_dir(place.path()).unwrap();
    let error = Store::open(&place.path()).unwrap_err();
    assert!(matches!(error, StoreError::Unwritable { .. }), "{error}");
    let below = place.path().join("no-folder");
    std::fs::write(&below, "").unwrap();
    let error = Store::open(&below.join("chats.db")).unwrap_err();
    assert!(matches!(error, StoreError::Unwritable { .. }), "{error}");
    assert!(
        Store::open_existing(&place.path().join("none"))
            .unwrap()
            .is_none()
    );
}

#[test]
fn another_program_s_database_is_left_alone() {
    let place = Place::new();
    let other = Connection::open(place.path()).unwrap();
    other.execute_batch("CREATE TABLE t (x)").unwrap();
    drop(other);
    let before = std::fs::read(place.path()).unwrap();
    let error = Store::open(&place.path()).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    assert_eq!(std::fs::read(place.path()).unwrap(), before);
}
