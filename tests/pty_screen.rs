//! The program's own screen in a real terminal, with a scripted engine: what a person does, and what stays clean.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "support/pty.rs"]
mod pty;

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use pty::{Pty, Spawn};

/// Ctrl-D, with an empty draft.
const QUIT: &str = "\x04";
const ESC: &str = "\x1b";
const CTRL_UP: &str = "\x1b[1;5A";
/// A reply without end.
const ENDLESS: &str = "rate=50,tokens=100000";

fn spawn(script: &str) -> Spawn {
    static BUILT: LazyLock<PathBuf> = LazyLock::new(|| pty::example("scripted"));
    Spawn::new(&*BUILT)
        .env("SCRIPT", script)
        .env("SCRIPT_SCREEN", "app")
        .size(100, 30)
}

/// Started, with the model loaded.
fn ready(spawn: Spawn) -> Pty {
    let pty = spawn.start();
    pty.wait_for_text("Scripted");
    pty
}

/// Started, with a reply on its way.
fn replying(spawn: Spawn) -> Pty {
    let mut pty = ready(spawn);
    pty.keys("hi\r");
    pty.wait_for_text("w9");
    pty
}

#[track_caller]
fn quit(mut pty: Pty) -> Pty {
    pty.assert_quits_by(QUIT);
    assert_eq!(pty.contents().trim(), "");
    pty
}

#[test]
fn a_person_warms_a_reply_on_its_way_and_stops_it() {
    let mut pty = replying(spawn(ENDLESS));
    pty.keys(CTRL_UP);
    pty.wait_for_text("temp 0.75 from token");
    pty.keys(ESC);
    pty.wait_for_text("stopped by you");
    quit(pty);
}

#[test]
fn quitting_is_clean_while_a_model_loads_and_while_it_replies() {
    let loading = spawn("load_ms=60000").start();
    loading.wait_for_text("oading");
    quit(loading);
    quit(replying(spawn(ENDLESS)));
}

#[test]
fn pastes_become_the_draft_and_send_nothing() {
    for paste in [
        "\x1b[200~a\nb\r\nc\x1b[201~",
        "a\rb\rc",
        "\x1b[200~a\x1b[201~\rb\rc\x1b[201~",
    ] {
        let mut pty = ready(spawn(""));
        pty.keys(paste);
        pty.wait_for("the draft", |screen| {
            let screen = screen.contents();
            screen.contains("│ > a ") && screen.contains("│   b ") && screen.contains("│   c ")
        });
        assert!(!pty.contents().contains("│ you"), "{}", pty.contents());
    }
}

#[test]
fn every_small_size_is_drawn_while_a_reply_comes() {
    let pty = replying(spawn(ENDLESS));
    for rows in 0..12 {
        for columns in 0..30 {
            pty.resize(columns, rows);
        }
    }
    pty.resize(90, 25);
    pty.wait_for("the reply at the last size", |screen| {
        let lines: Vec<String> = screen.rows(0, 90).collect();
        lines.len() == 25 && lines[24].starts_with('└') && screen.contents().contains("decoding")
    });
    quit(pty);
}

#[test]
fn no_color_writes_no_colour() {
    let pty = quit(replying(
        spawn(ENDLESS)
            .env("NO_COLOR", "1")
            .env("COLORTERM", "truecolor"),
    ));
    let colour = |code: &str| {
        matches!(
            code.parse(),
            Ok(30..=38 | 40..=48 | 58 | 90..=97 | 100..=107)
        )
    };
    for sgr in pty.sgr() {
        assert!(!sgr.split([';', ':']).any(colour), "ESC[{sgr}m");
    }
}

#[test]
fn terminals_that_do_not_claim_true_colour_get_none() {
    for term in ["dumb", "linux", "screen", "xterm-256color"] {
        let pty = quit(replying(spawn(ENDLESS).env("TERM", term)));
        for sgr in pty.sgr() {
            let codes: Vec<&str> = sgr.split([';', ':']).collect();
            let rgb = codes
                .windows(2)
                .any(|pair| matches!(pair, ["38" | "48", "2"]));
            assert!(!rgb, "{term}: ESC[{sgr}m");
        }
    }
}

#[test]
fn an_idle_screen_writes_nothing_and_uses_no_time() {
    let pty = ready(spawn(""));
    pty.wait_for_quiet(Duration::from_millis(500));
    let before = pty.cpu_ticks();
    assert_eq!(pty.bytes_within(Duration::from_secs(3)), 0);
    // A tick is 10 ms: two in three seconds are 0.7 %.
    assert!(pty.cpu_ticks() - before < 2, "an idle screen uses time");
}

#[test]
fn a_fast_reply_is_drawn_at_most_sixty_times_a_second() {
    let mut pty = ready(spawn("rate=500,tokens=1000"));
    let before = pty.raw_count("\x1b[?2026h");
    let start = Instant::now();
    pty.keys("hi\r");
    pty.wait_for_text("w999");
    let frames = pty.raw_count("\x1b[?2026h") - before;
    let rate = frames as f64 / start.elapsed().as_secs_f64();
    assert!(rate <= 60.0, "{rate:.1} frames a second");
    assert!(frames > 10, "{frames} frames");
}
