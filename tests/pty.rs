//! The program in a real terminal: what it reads and writes while it runs. The engine is scripted; loop and terminal
//! are the real ones.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "support/moments.rs"]
mod moments;
#[path = "support/pty.rs"]
mod pty;

use std::time::{Duration, Instant};

use moments::{Moment, QUIT, at, spawn, start};

#[test]
fn a_reply_streams_obeys_the_temperature_key_and_stops() {
    let mut run = start("rate=50,tokens=100000");
    run.pty.wait_for_text("state ready");
    run.pty.keys("hi\r");
    run.pty.wait_for_text("w9");
    run.pty.keys("\x1b[A");
    run.pty.wait_for_text("temperatures [0.70, 0.75]");
    run.pty.keys("\x1b");
    run.pty.wait_for_text("state finished");
    run.pty.keys(QUIT);
    assert_eq!(run.pty.exit().exit_code(), 0);
    run.pty.assert_given_back();
}

#[test]
fn the_first_frame_does_not_wait_for_the_model() {
    let mut run = start("load_ms=60000");
    run.pty.wait_for_text("state loading");
    let first = run.pty.first_byte_after().unwrap();
    assert!(
        first < Duration::from_secs(1),
        "the first byte came after {first:?}"
    );
    run.pty.keys(QUIT);
    assert_eq!(run.pty.exit().exit_code(), 0);
}

#[test]
fn what_foreign_code_prints_lands_in_the_log_and_never_on_the_screen() {
    for moment in ["idle", "loading", "generating"] {
        let mut run = start(&format!("tokens=20,at={moment},fault=noise"));
        run.pty.wait_for_text("state ready");
        run.pty.keys("hi\r");
        run.pty.wait_for_text("state finished");
        run.pty.keys(QUIT);
        assert_eq!(run.pty.exit().exit_code(), 0);
        assert!(
            !run.pty.raw().contains("FOREIGN"),
            "{moment}: {}",
            run.pty.raw()
        );
        for text in ["FOREIGN-STDOUT", "FOREIGN-STDERR", "FOREIGN-CHILD"] {
            assert!(run.log().contains(text), "{moment}: {text}");
        }
    }
}

#[test]
fn a_bracketed_paste_is_one_draft_and_sends_nothing() {
    let mut run = at(Moment::Idle);
    run.pty.keys("\x1b[200~a\nb\r\nc\x1b[201~");
    run.pty.wait_for_text(r#"draft "a\nb\nc""#);
    run.pty.wait_for_text("sent 0");
}

#[test]
fn a_paste_without_brackets_is_one_draft_and_sends_nothing() {
    let mut run = at(Moment::Idle);
    run.pty.keys("a\rb\nc\rd");
    run.pty.wait_for_text(r#"draft "a\nb\nc\nd""#);
    run.pty.wait_for_text("sent 0");
}

#[test]
fn an_end_of_paste_within_a_paste_sends_nothing() {
    let mut run = at(Moment::Idle);
    run.pty.keys("\x1b[200~a\x1b[201~\rrm\r\x1b[201~");
    run.pty.wait_for_text(r#"draft "a\nrm\n""#);
    run.pty.wait_for_text("sent 0");
}

#[test]
fn a_large_paste_arrives_whole_and_at_once() {
    let mut run = at(Moment::Idle);
    let text = "x".repeat(1 << 20);
    let start = Instant::now();
    run.pty.keys(format!("\x1b[200~{text}\x1b[201~"));
    run.pty.wait_for_text("length 1048576");
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    run.pty.wait_for_text("sent 0");
}

#[test]
fn ctrl_j_breaks_the_line_and_enter_sends() {
    let mut run = at(Moment::Idle);
    run.pty.keys("a");
    run.pty.wait_for_text(r#"draft "a""#);
    run.pty.keys("\n");
    run.pty.wait_for_text(r#"draft "a\n""#);
    run.pty.keys("\r");
    run.pty.wait_for_text("sent 1");
}

#[test]
fn a_storm_of_sizes_ends_at_the_last_one() {
    let mut run = at(Moment::Generating);
    for step in 0..200u16 {
        run.pty.resize(20 + step % 60, 5 + step % 20);
    }
    for (columns, rows) in [(1, 1), (0, 0), (2, 1), (1, 9), (60, 15)] {
        run.pty.resize(columns, rows);
    }
    run.pty.wait_for_text("size 60x15");
    run.pty.keys(QUIT);
    assert_eq!(run.pty.exit().exit_code(), 0);
    run.pty.assert_given_back();
}

#[test]
fn an_idle_program_writes_nothing_and_uses_no_time() {
    let run = at(Moment::Idle);
    run.pty.wait_for_quiet(Duration::from_millis(500));
    let before = run.pty.cpu_ticks();
    assert_eq!(run.pty.bytes_within(Duration::from_secs(3)), 0);
    // A tick is 10 ms: two in three seconds are 0.7 %.
    assert!(
        run.pty.cpu_ticks() - before < 2,
        "an idle program uses time"
    );
}

#[test]
fn a_fast_reply_is_drawn_at_most_sixty_times_a_second() {
    let mut run = start("rate=500,tokens=1000");
    run.pty.wait_for_text("state ready");
    let before = run.pty.raw_count("\x1b[?2026h");
    let start = Instant::now();
    run.pty.keys("hi\r");
    run.pty.wait_for_text("state finished");
    let frames = run.pty.raw_count("\x1b[?2026h") - before;
    let rate = frames as f64 / start.elapsed().as_secs_f64();
    assert!(rate <= 60.0, "{rate:.1} frames a second");
    assert!(frames > 10, "{frames} frames");
}

#[test]
fn keyboard_flags_are_pushed_only_where_they_are_known_and_popped_on_the_same_screen() {
    let (spawn, _logs) = spawn("");
    let mut pty = spawn.env("TERM", "xterm-kitty").start();
    pty.wait_for_text("state ready");
    pty.keys(b"\x1b[113;5u");
    assert_eq!(pty.exit().exit_code(), 0);
    pty.assert_given_back();
    let raw = pty.raw();
    let order: Vec<usize> = ["\x1b[?1049h", "\x1b[>1u", "\x1b[<1u", "\x1b[?1049l"]
        .iter()
        .map(|code| raw.find(code).unwrap())
        .collect();
    assert!(order.is_sorted(), "{order:?}");

    let run = at(Moment::Idle);
    assert_eq!(run.pty.raw_count("\x1b[>1u"), 0);
}

#[test]
fn copied_text_goes_to_the_terminals_clipboard() {
    let mut run = start("rate=500,tokens=2");
    run.pty.wait_for_text("state ready");
    run.pty.keys("hi\r");
    run.pty.wait_for_text("state finished");
    run.pty.keys(b"\x19");
    run.pty.wait_for_raw("\x1b]52;c;dzAgdzEg\x07");
}

#[test]
fn a_window_that_shrinks_and_grows_back_at_once_is_drawn_whole() {
    let mut run = at(Moment::Idle);
    run.pty
        .keys("some words that are wider than the window becomes");
    run.pty.wait_for_text("wider than the window becomes");
    run.pty.wait_for_quiet(Duration::from_millis(200));
    let before = run.pty.contents();
    for _ in 0..20 {
        // The program may find the size that it knows already, and the terminal has cut what it showed.
        run.pty.resize(10, 3);
        run.pty.resize(80, 24);
        run.pty
            .wait_for("the whole screen", |screen| screen.contents() == before);
    }
}

#[test]
fn pastes_during_changes_of_the_window_all_arrive() {
    let mut run = at(Moment::Idle);
    let paste = format!("\x1b[200~{}\x1b[201~", "0123456789".repeat(100));
    let (done, written) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for round in 0..60 {
            run.pty.resize(80 + round % 2, 24);
            // Blocks for ever where nobody reads.
            run.pty.keys(&paste);
        }
        done.send(run).unwrap();
    });
    let mut run = written
        .recv_timeout(Duration::from_secs(20))
        .expect("what is typed is read");
    run.pty.wait_for_text("length 60000");
    run.pty.keys("x");
    run.pty.wait_for_text("length 60001");
}
