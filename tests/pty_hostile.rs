//! What models, files, chats and pastes say on the real screen: every byte that the program writes is text that is
//! seen, or a control sequence of its own.
#![allow(clippy::unwrap_used, missing_docs, dead_code, reason = "tests")]

#[path = "support/hostile_home.rs"]
mod hostile_home;
#[path = "support/pty.rs"]
mod pty;
#[path = "support/tiny_gguf.rs"]
mod tiny_gguf;
#[path = "support/wire.rs"]
mod wire;

use hostile_home::Home;
use pty::{Pty, Spawn};
use rustix::process::Signal;
use wire::{HOSTILE, Stream, foreign};

const F2: &str = "\x1bOQ";
const F4: &str = "\x1bOS";
const ESC: &str = "\x1b";
const QUIT: &str = "\x04";

#[track_caller]
fn assert_harmless(pty: &Pty) {
    assert_eq!(foreign(&pty.bytes(), Stream::Screen), None);
}

/// Without what ends a paste or a line early.
fn pasted() -> String {
    format!("\x1b[200~paste {HOSTILE} end\x1b[201~")
}

#[test]
fn a_reply_cut_into_tokens_and_a_paste_steer_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (reply, store) = (folder.path().join("reply"), folder.path().join("chats.db"));
    std::fs::write(&reply, format!("{HOSTILE}{HOSTILE} the end")).unwrap();
    let mut pty = Spawn::new(pty::example("scripted"))
        .env("SCRIPT", "rate=2000")
        .env("SCRIPT_SCREEN", "app")
        .env("SCRIPT_REPLY", &reply)
        .env("SCRIPT_CHATS", &store)
        .size(100, 30)
        .start();
    pty.wait_for_text("Scripted");
    pty.keys(pasted());
    pty.wait_for_text("end");
    // An Enter at once would count as a part of the paste.
    pty.wait_for_quiet(std::time::Duration::from_millis(200));
    pty.keys("\r");
    pty.wait_for_text("the end");
    pty.keys("/temp \x1b[200~\u{9b}2J\u{202e}\x1b[201~");
    pty.wait_for_text("/temp ␦2J␦");
    pty.wait_for_quiet(std::time::Duration::from_millis(200));
    pty.keys("\r");
    pty.wait_for("the draft is refused", |screen| {
        screen.contents().matches("␦2J␦").count() > 1
    });
    pty.keys("\x15");
    pty.keys("\x03");
    pty.keys(QUIT);
    assert_eq!(pty.exit().exit_code(), 0, "{}", pty.contents());
    assert_harmless(&pty);
    let chats = platen::chat::store::Store::open(&store).unwrap().store;
    let chat = chats
        .chat(chats.latest().unwrap().unwrap())
        .unwrap()
        .unwrap();
    let reply = &chat.branch()[1].message;
    assert_eq!(
        reply.text,
        format!("{HOSTILE}{HOSTILE} the end"),
        "what is kept is what was said"
    );
}

#[test]
fn names_metadata_logs_errors_and_kept_messages_steer_nothing() {
    let home = Home::new();
    let mut pty = Spawn::new(env!("CARGO_BIN_EXE_platen"))
        .env("PLATEN_HOME", home.path())
        .arg("--continue")
        .arg("--model")
        .arg(home.model())
        .args(&["--ctx", "512", "--temp", "5", "--max-tokens", "60"])
        .size(100, 40)
        .start();
    pty.wait_for_text("idle");
    pty.wait_for_text("]52;c;QQ==");
    pty.keys("hi\r");
    pty.wait_for_text("TTFT");
    pty.wait_for_text("idle");
    pty.keys(F2);
    pty.wait_for_text("llama.cpp");
    for _ in 0..20 {
        if pty.contents().contains("general.name") {
            break;
        }
        pty.keys("\x1b[5~");
        pty.wait_for_quiet(std::time::Duration::from_millis(100));
    }
    pty.wait_for_text("general.name");
    pty.keys(ESC);
    pty.wait_for_text("idle");
    pty.keys(F4);
    pty.wait_for_text("Esc close");
    for _ in 0..6 {
        pty.keys("\x1b[B");
    }
    pty.resize(60, 20);
    pty.resize(120, 40);
    pty.keys(ESC);
    pty.wait_for("the list is closed", |screen| {
        !screen.contents().contains("Esc close")
    });
    for model in home.models() {
        let name = model.to_string_lossy().into_owned();
        pty.keys(format!("/model \x1b[200~{name}\x1b[201~"));
        pty.wait_for_quiet(std::time::Duration::from_millis(200));
        pty.keys("\r");
        pty.wait_for_quiet(std::time::Duration::from_millis(300));
        pty.keys(ESC);
    }
    pty.signal(Signal::TERM);
    pty.exit();
    assert_harmless(&pty);
    let log = std::fs::read(home.path().join("logs/platen.log")).unwrap();
    assert!(!log.is_empty());
    assert_eq!(
        foreign(&log, Stream::Pipe),
        None,
        "the log, when it is read with cat"
    );
}

#[test]
fn the_last_words_of_a_crash_steer_nothing() {
    let home = Home::new();
    for signal in [Signal::ABORT, Signal::SEGV] {
        let mut pty = Spawn::new(env!("CARGO_BIN_EXE_platen"))
            .env("PLATEN_HOME", home.path())
            .arg("--continue")
            .arg("--model")
            .arg(home.model())
            .start();
        pty.wait_for_text("idle");
        pty.signal(signal);
        pty.exit();
        let bytes = pty.bytes();
        let said = String::from_utf8_lossy(&bytes);
        assert!(said.contains("The log is "), "{said}");
        assert_harmless(&pty);
    }
}

#[test]
fn a_broken_configuration_is_told_harmlessly() {
    let home = Home::new();
    let mut pty = Spawn::new(env!("CARGO_BIN_EXE_platen"))
        .env("PLATEN_HOME", home.path())
        .env("PLATEN_CONFIG", home.broken_config())
        .arg("--model")
        .arg(home.model())
        .size(100, 40)
        .start();
    pty.wait_for_text("was left out");
    pty.wait_for_text("idle");
    pty.assert_quits_by(QUIT);
    assert_harmless(&pty);
}
