//! Chats that outlive the program, in a real terminal: killed at random moments, opened twice, not savable.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "support/pty.rs"]
mod pty;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use platen::chat::record::{ChatId, StoredChat};
use platen::chat::store::Store;
use platen::engine::event::StopReason;
use platen::engine::token::Role;
use pty::{Pty, Spawn};
use rustix::process::Signal;

/// Words of a scripted reply.
const WORDS: usize = 60;
/// How often the program is killed; `PLATEN_KILLS` says otherwise.
const KILLS: usize = 12;

fn spawn(store: &Path, script: &str) -> Spawn {
    static BUILT: LazyLock<PathBuf> = LazyLock::new(|| pty::example("scripted"));
    Spawn::new(&*BUILT)
        .env("SCRIPT", script)
        .env("SCRIPT_SCREEN", "app")
        .env("SCRIPT_CHATS", store)
        .size(100, 30)
}

fn ready(spawn: Spawn) -> Pty {
    let pty = spawn.start();
    pty.wait_for_text("Scripted");
    pty
}

/// What the scripted engine says in `words` words.
fn script_text(words: usize) -> String {
    (0..words).fold(String::new(), |mut text, number| {
        let end = if number % 8 == 7 { '\n' } else { ' ' };
        let _ = write!(text, "w{number}{end}");
        text
    })
}

fn chats(store: &Path) -> BTreeMap<ChatId, StoredChat> {
    let store = Store::open(store).unwrap();
    assert_eq!(store.recovered, None, "a kill damages nothing");
    store.store.check().unwrap();
    let ids = store.store.chats().unwrap();
    ids.iter()
        .map(|summary| (summary.id, store.store.chat(summary.id).unwrap().unwrap()))
        .collect()
}

/// Asserts that a chat is one of the script's: whole but for its end. Returns how many words its last reply has.
fn assert_whole_but_for_its_end(chat: &StoredChat) -> usize {
    let branch = chat.branch();
    assert_eq!(branch.len(), chat.nodes.len());
    let mut words = 0;
    for (index, node) in branch.iter().enumerate() {
        let (message, is_last) = (&node.message, index + 1 == branch.len());
        if index % 2 == 0 {
            assert_eq!(message.role, Role::User);
            assert_eq!(message.text, format!("message {}", index / 2 + 1));
            words = 0;
            continue;
        }
        assert_eq!(message.role, Role::Assistant);
        words = message.text.split_whitespace().count();
        assert_eq!(message.text, script_text(words), "chat {}", chat.id);
        let run = message.tokens.clone().unwrap_or_default();
        assert_eq!(run.ids.len(), words, "chat {}", chat.id);
        match message.stop {
            Some(stop) => assert_eq!((stop, words), (StopReason::Eog, WORDS)),
            None => assert!(is_last, "chat {}: a reply was followed by more", chat.id),
        }
    }
    words
}

/// The number of the last word on the screen.
fn last_word(pty: &Pty) -> Option<usize> {
    let contents = pty.contents();
    let mut words = contents.split_whitespace().rev();
    words.find_map(|word| word.strip_prefix('w')?.parse().ok())
}

#[test]
fn a_kill_at_any_moment_leaves_a_store_that_opens_and_loses_no_completed_message() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("chats.db");
    let kills = std::env::var("PLATEN_KILLS").ok();
    let kills = kills.map_or(KILLS, |count| count.parse().unwrap());
    let mut before = BTreeMap::new();
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut most_lost = Duration::ZERO;
    for _ in 0..kills {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let life = Duration::from_micros((random >> 33) % 1_600_000);
        let mut pty = ready(spawn(&store, &format!("rate=150,tokens={WORDS}")));
        let start = Instant::now();
        let (mut turn, mut seen) = (0, Vec::new());
        while start.elapsed() < life {
            if turn == 0 || last_word(&pty) == Some(WORDS - 1) && pty.contents().contains("idle") {
                turn += 1;
                seen.clear();
                pty.keys(format!("message {turn}\r"));
                pty.wait_for_text(&format!("message {turn}"));
            }
            seen.push((Instant::now(), last_word(&pty)));
            std::thread::sleep(Duration::from_millis(5));
        }
        let killed = Instant::now();
        pty.signal(Signal::KILL);
        pty.exit();
        let mut after = chats(&store);
        for (id, chat) in &before {
            assert_eq!(after.get(id), Some(chat), "what was there stays");
        }
        let new: Vec<_> = after.keys().filter(|id| !before.contains_key(id)).collect();
        assert!(new.len() <= 1);
        let stored = new
            .first()
            .map_or(0, |id| assert_whole_but_for_its_end(&after[id]));
        // How old the oldest word is that was on the screen and is not in the store.
        let lost = seen
            .iter()
            .find(|(_, word)| word.is_some_and(|word| word >= stored && word + 1 != WORDS))
            .map_or(Duration::ZERO, |(at, _)| killed - *at);
        most_lost = most_lost.max(lost);
        before = std::mem::take(&mut after);
    }
    println!(
        "{kills} kills, {} chats, at most {most_lost:?} lost",
        before.len()
    );
    if std::env::var_os("PLATEN_KILLS").is_some() {
        assert!(most_lost < Duration::from_secs(1));
    }
}

#[test]
fn leaving_says_how_to_go_on_and_keeps_the_reply_that_was_on_its_way() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("chats.db");
    for ending in [Ending::Key, Ending::Signal, Ending::Abort, Ending::HangUp] {
        let mut pty = ready(spawn(&store, "rate=50,tokens=100000"));
        pty.keys("message 1\r");
        pty.wait_for_text("w9");
        match ending {
            Ending::Key => pty.keys("\x04"),
            Ending::Signal => pty.signal(Signal::TERM),
            Ending::Abort => pty.signal(Signal::ABORT),
            Ending::HangUp => pty.hang_up(),
        }
        pty.exit();
        let chats = chats(&store);
        let (id, chat) = chats.iter().next_back().unwrap();
        let words = assert_whole_but_for_its_end(chat);
        // A death in the middle leaves no time for a last write.
        assert!(words >= 10 || matches!(ending, Ending::Abort), "{ending:?}");
        if !matches!(ending, Ending::HangUp) {
            pty.wait_for_text(&format!("platen --continue={id}"));
        }
    }
    assert_eq!(chats(&store).len(), 4);
}

#[derive(Debug)]
enum Ending {
    Key,
    Signal,
    Abort,
    HangUp,
}

#[test]
fn a_place_that_can_t_be_written_never_keeps_anybody_from_chatting() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let mut pty = ready(spawn(&file.join("chats.db"), "rate=500,tokens=60"));
    pty.wait_for_text("! not saved");
    pty.keys("message 1\r");
    pty.wait_for_text("w59");
    pty.wait_for_text("! not saved");
    pty.keys("\x04");
    pty.wait_for_text("This chat is not saved.");
    let elsewhere = folder.path().join("elsewhere.db");
    pty.keys(format!("/save {}\r", elsewhere.display()));
    pty.wait_for_text("saved again");
    pty.keys("\x04");
    assert_eq!(pty.exit().exit_code(), 0);
    let chats = chats(&elsewhere);
    assert_eq!(
        assert_whole_but_for_its_end(chats.values().next().unwrap()),
        WORDS
    );
}
