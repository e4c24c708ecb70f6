//! The program in a real terminal: what it writes, how it ends, and what it leaves behind. The engine is scripted;
//! loop, terminal and crash handling are the real ones.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "support/pty.rs"]
mod pty;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use pty::{Pty, Spawn};
use rustix::process::Signal;

const QUIT: &[u8] = b"\x11";
const PANIC: &[u8] = b"\x10";

fn scripted() -> &'static Path {
    static BUILT: LazyLock<PathBuf> = LazyLock::new(|| pty::example("scripted"));
    &BUILT
}

struct Run {
    pty: Pty,
    logs: tempfile::TempDir,
}

fn spawn(script: &str) -> (Spawn, tempfile::TempDir) {
    let logs = tempfile::tempdir().unwrap();
    (
        Spawn::new(scripted())
            .env("SCRIPT", script)
            .env("SCRIPT_LOG", logs.path()),
        logs,
    )
}

fn start(script: &str) -> Run {
    let (spawn, logs) = spawn(script);
    Run {
        pty: spawn.start(),
        logs,
    }
}

impl Run {
    fn log(&self) -> String {
        fs::read_to_string(self.logs.path().join("platen.log")).unwrap()
    }

    /// Waits until the thread that draws is held up in a write to the terminal.
    fn wait_until_stuck(&self) {
        let status = format!("/proc/{0}/task/{0}/status", self.pty.pid().as_raw_nonzero());
        let switches = || {
            let status = fs::read_to_string(&status).unwrap();
            let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
            counts.map(str::to_owned).collect::<Vec<_>>()
        };
        let end = Instant::now() + Duration::from_secs(20);
        let mut seen = switches();
        // While it can run it does so a thousand times a second, and each time is counted.
        loop {
            std::thread::sleep(Duration::from_millis(300));
            let now = switches();
            if now == seen {
                return;
            }
            assert!(Instant::now() < end, "never stuck: {now:?}");
            seen = now;
        }
    }
}

/// The moments at which things can go wrong.
#[derive(Debug, Clone, Copy)]
enum Moment {
    Idle,
    Loading,
    Generating,
}

const MOMENTS: [Moment; 3] = [Moment::Idle, Moment::Loading, Moment::Generating];

fn at(moment: Moment) -> Run {
    match moment {
        Moment::Idle => {
            let run = start("");
            run.pty.wait_for_text("state ready");
            run
        }
        Moment::Loading => {
            let run = start("load_ms=60000");
            run.pty.wait_for_text("state loading");
            run
        }
        Moment::Generating => {
            let mut run = start("rate=50,tokens=100000");
            run.pty.wait_for_text("state ready");
            run.pty.keys("hi\r");
            run.pty.wait_for_text("w9");
            run
        }
    }
}

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
fn quitting_leaves_a_clean_screen_at_any_moment() {
    for moment in MOMENTS {
        let mut run = at(moment);
        run.pty.keys(QUIT);
        let status = run.pty.exit_within(Duration::from_secs(2));
        assert_eq!(
            (status.exit_code(), status.signal()),
            (0, None),
            "{moment:?}"
        );
        run.pty.assert_given_back();
        assert_eq!(run.pty.contents().trim(), "", "{moment:?}");
    }
}

#[test]
fn an_engine_that_hangs_does_not_keep_the_program() {
    let mut run = start("at=loading,fault=hang");
    run.pty.wait_for_text("state loading");
    run.pty.keys(QUIT);
    assert_eq!(run.pty.exit_within(Duration::from_secs(3)).exit_code(), 0);
    run.pty.assert_given_back();
}

#[test]
fn what_is_typed_after_leaving_reaches_the_shell() {
    let mut pty = Spawn::new("sh")
        .arg("-c")
        .arg(r#""$0"; read line; echo "the shell got $line""#)
        .arg(scripted())
        .env("SCRIPT", "at=loading,fault=hang")
        .start();
    pty.wait_for_text("state loading");
    pty.keys(QUIT);
    pty.wait_for("the normal screen", |screen| !screen.alternate_screen());
    pty.keys("hello\r");
    pty.wait_for_text("the shell got hello");
}

#[test]
fn signals_that_ask_for_the_end_are_answered_with_a_message_at_any_moment() {
    for (signal, name, number) in [
        (Signal::TERM, "SIGTERM", 15),
        (Signal::HUP, "SIGHUP", 1),
        (Signal::INT, "SIGINT", 2),
        (Signal::QUIT, "SIGQUIT", 3),
    ] {
        for moment in MOMENTS {
            let mut run = at(moment);
            run.pty.signal(signal);
            let status = run.pty.exit_within(Duration::from_secs(2));
            assert_eq!(status.exit_code(), 128 + number, "{name} {moment:?}");
            run.pty.assert_given_back();
            let expected = format!("platen was asked to stop ({name})");
            assert_eq!(run.pty.contents().trim(), expected, "{moment:?}");
        }
    }
}

#[test]
fn fatal_signals_give_the_terminal_back_and_stay_visible_in_the_exit_status() {
    for (signal, name) in [
        (Signal::SEGV, "SIGSEGV"),
        (Signal::BUS, "SIGBUS"),
        (Signal::ILL, "SIGILL"),
        (Signal::FPE, "SIGFPE"),
        (Signal::ABORT, "SIGABRT"),
    ] {
        for moment in MOMENTS {
            let mut run = at(moment);
            run.pty.signal(signal);
            let status = run.pty.exit();
            assert!(status.signal().is_some(), "{name} {moment:?}: {status}");
            run.pty.assert_given_back();
            let screen = run.pty.contents().replace('\n', "");
            assert!(
                screen.starts_with(&format!("platen died of {name}")),
                "{moment:?}: {screen}"
            );
            assert!(screen.contains("platen.log"), "{moment:?}: {screen}");
            assert!(run.log().contains(&format!("platen died of {name}")));
        }
    }
}

/// Runs into `fault` at each moment and hands over what is left.
fn faults(fault: &str, check: impl Fn(&mut Run, &str)) {
    for moment in ["idle", "loading", "generating"] {
        let mut run = start(&format!("at={moment},fault={fault}"));
        if moment == "generating" {
            run.pty.wait_for_text("state ready");
            run.pty.keys("hi\r");
        }
        check(&mut run, moment);
        run.pty.assert_given_back();
    }
}

#[test]
fn a_panic_in_the_engine_ends_the_program_with_a_message() {
    faults("panic", |run, moment| {
        assert_eq!(
            run.pty.exit_within(Duration::from_secs(5)).exit_code(),
            101,
            "{moment}"
        );
        let screen = run.pty.contents();
        assert!(
            screen.starts_with("platen failed in thread engine at "),
            "{moment}: {screen}"
        );
        assert!(
            screen.contains("the script wants a panic"),
            "{moment}: {screen}"
        );
        assert!(run.log().contains("the script wants a panic"));
    });
}

#[test]
fn a_panic_of_the_screen_ends_the_program_with_a_message() {
    for moment in MOMENTS {
        let mut run = at(moment);
        run.pty.keys(PANIC);
        assert_eq!(
            run.pty.exit_within(Duration::from_secs(5)).exit_code(),
            101,
            "{moment:?}"
        );
        run.pty.assert_given_back();
        let screen = run.pty.contents();
        assert!(
            screen.starts_with("platen failed in thread main at "),
            "{moment:?}: {screen}"
        );
        assert!(
            screen.contains("a key wants a panic"),
            "{moment:?}: {screen}"
        );
    }
}

#[test]
fn an_abort_in_the_engine_gives_the_terminal_back() {
    faults("abort", |run, moment| {
        assert!(run.pty.exit().signal().is_some(), "{moment}");
        let screen = run.pty.contents();
        assert!(
            screen.starts_with("platen died of SIGABRT"),
            "{moment}: {screen}"
        );
    });
}

#[test]
fn an_assertion_of_llama_cpp_is_told_in_its_own_words() {
    faults("ggml-abort", |run, moment| {
        assert!(run.pty.exit().signal().is_some(), "{moment}");
        let screen = run.pty.contents();
        assert!(
            screen.starts_with("platen died of SIGABRT"),
            "{moment}: {screen}"
        );
        assert!(
            screen.contains("llama.cpp: ") && screen.contains("GGML_ASSERT"),
            "{moment}: {screen}"
        );
        assert!(run.log().contains("GGML_ASSERT"));
    });
}

#[test]
fn a_stack_overflow_in_the_engine_gives_the_terminal_back() {
    faults("stack-overflow", |run, moment| {
        assert!(run.pty.exit().signal().is_some(), "{moment}");
        let screen = run.pty.contents().replace('\n', "");
        assert!(
            screen.starts_with("platen died of SIGSEGV"),
            "{moment}: {screen}"
        );
        assert!(
            screen.contains("has overflowed its stack"),
            "{moment}: {screen}"
        );
    });
}

#[test]
fn a_lost_terminal_ends_the_program_at_any_moment() {
    for moment in MOMENTS {
        let mut run = at(moment);
        run.pty.hang_up();
        run.pty.exit_within(Duration::from_secs(2));
    }
}

#[test]
fn a_lost_terminal_ends_a_program_that_ignores_the_hang_up_signal() {
    for script in ["", "load_ms=60000", "at=loading,fault=hang"] {
        let mut pty = Spawn::new("sh")
            .arg("-c")
            .arg("trap '' HUP; \"$0\"; :")
            .arg(scripted())
            .env("SCRIPT", script)
            .start();
        pty.wait_for_text(if script.is_empty() {
            "state ready"
        } else {
            "state loading"
        });
        pty.hang_up();
        pty.exit_within(Duration::from_secs(2));
    }
}

#[test]
fn a_terminal_that_takes_no_output_does_not_keep_the_program() {
    let mut run = start("rate=1000,tokens=1000000");
    run.pty.wait_for_text("state ready");
    run.pty.keys("hi\r");
    run.pty.wait_for_text("w9");
    run.pty.stop_reading();
    run.wait_until_stuck();
    run.pty.signal(Signal::TERM);
    let status = run.pty.exit_within(Duration::from_millis(2500));
    assert_eq!(status.exit_code(), 128 + 15);
    run.pty.resume_reading();
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
fn a_stop_from_outside_gives_the_terminal_back_until_continued() {
    let mut run = at(Moment::Idle);
    run.pty.signal(Signal::TSTP);
    run.pty
        .wait_for("the normal screen", |screen| !screen.alternate_screen());
    run.pty.assert_given_back();
    run.pty.signal(Signal::CONT);
    run.pty.wait_for("the screen again", |screen| {
        screen.alternate_screen() && screen.contents().contains("state ready")
    });
    run.pty.keys("typed");
    run.pty.wait_for_text(r#"draft "typed""#);
    run.pty.keys(QUIT);
    assert_eq!(run.pty.exit().exit_code(), 0);
    run.pty.assert_given_back();
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
