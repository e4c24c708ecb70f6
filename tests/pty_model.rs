//! The whole program in a real terminal with a real model: a conversation as a person has it, and the ways it can end.
#![allow(clippy::unwrap_used, dead_code, reason = "a test stops where it fails")]

#[path = "support/pty.rs"]
mod pty;

use std::path::Path;

use pty::{Pty, Spawn};
use rustix::process::Signal;

const CTRL_UP: &str = "\x1b[1;5A";
const ESC: &str = "\x1b";
const QUIT: &str = "\x04";

fn start(home: &Path) -> Pty {
    // `make test` fetches the model and says where it is.
    let model =
        std::env::var_os("PLATEN_TEST_MODEL").expect("PLATEN_TEST_MODEL is set by make test");
    let pty = Spawn::new(env!("CARGO_BIN_EXE_platen"))
        .env("PLATEN_HOME", home)
        .arg("--seed")
        .arg("3")
        .arg("--model")
        .arg(model)
        .size(120, 34)
        .start();
    pty.wait_for_text("idle");
    pty
}

fn replying(pty: &mut Pty, text: &str) {
    pty.keys(text);
    pty.keys("\r");
    pty.wait_for_text("decoding");
}

#[test]
fn a_conversation_keeps_its_cache_takes_another_temperature_and_leaves_a_clean_screen() {
    let home = tempfile::tempdir().unwrap();
    let mut pty = start(home.path());
    replying(&mut pty, "Write a very long story about a journey.");
    pty.keys(CTRL_UP);
    pty.keys(CTRL_UP);
    pty.wait_for_text("temp 0.80");
    pty.wait_for_text("temp 0.80 from token");
    pty.resize(70, 20);
    pty.wait_for_text("decode ");
    pty.resize(120, 34);
    pty.wait_for_text("KV cache");
    pty.keys(ESC);
    pty.wait_for_text("idle");
    pty.wait_for_text("reused 0");
    pty.keys("\x1b[200~Two lines,\nand a short question: who went?\x1b[201~");
    pty.wait_for_text("who went?");
    assert!(pty.contents().contains("idle"), "a paste sends nothing");
    // An Enter at once would count as a part of the paste.
    pty.wait_for_quiet(std::time::Duration::from_millis(200));
    pty.keys("\r");
    pty.wait_for("a second turn from the cache", |screen| {
        let text = screen.contents();
        text.contains("reused ") && !text.contains("reused 0")
    });
    pty.keys(ESC);
    pty.wait_for_text("idle");
    pty.assert_quits_by(QUIT);
}

#[test]
fn a_running_model_never_keeps_the_program_from_leaving() {
    for (moment, signal, code) in [
        ("decoding", Signal::TERM, 143),
        ("reading", Signal::HUP, 129),
    ] {
        let home = tempfile::tempdir().unwrap();
        let mut pty = start(home.path());
        if moment == "reading" {
            let long = "a long text to read ".repeat(300);
            pty.keys(format!("\x1b[200~{long}\x1b[201~"));
            pty.wait_for_quiet(std::time::Duration::from_millis(300));
            pty.keys("\r");
            pty.wait_for_text("reading");
        } else {
            replying(&mut pty, "Write a long story.");
        }
        pty.signal(signal);
        let status = pty.exit_within(std::time::Duration::from_secs(10));
        assert_eq!(status.exit_code(), code, "{moment}");
        pty.assert_given_back();
    }
}

#[test]
fn a_model_that_cannot_be_loaded_leaves_a_working_screen() {
    let home = tempfile::tempdir().unwrap();
    let broken = home.path().join("broken.gguf");
    std::fs::write(&broken, b"GGUF\x03\0\0\0garbage").unwrap();
    let mut pty = Spawn::new(env!("CARGO_BIN_EXE_platen"))
        .env("PLATEN_HOME", home.path())
        .arg(&broken)
        .size(100, 30)
        .start();
    pty.wait_for_text("is cut short");
    pty.keys(ESC);
    pty.wait_for("the list of models is closed", |screen| {
        !screen.contents().contains("Esc close")
    });
    pty.keys(QUIT);
    assert_eq!(pty.exit().exit_code(), 0, "{}", pty.contents());
    pty.assert_given_back();
}
