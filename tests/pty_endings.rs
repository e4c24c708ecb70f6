//! How the program ends in a real terminal, at any moment: what it leaves behind and what it says. The engine is
//! scripted; loop, terminal and crash handling are the real ones.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "support/moments.rs"]
mod moments;
#[path = "support/pty.rs"]
mod pty;

use std::time::Duration;

use moments::{MOMENTS, Moment, PANIC, QUIT, Run, at, scripted, start};
use pty::Spawn;
use rustix::process::Signal;

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
        (Signal::TRAP, "SIGTRAP"),
        (Signal::SYS, "SIGSYS"),
        (Signal::XCPU, "SIGXCPU"),
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
fn an_exception_of_cpp_that_nobody_catches_gives_the_terminal_back() {
    faults("cpp-exception", |run, moment| {
        assert!(run.pty.exit().signal().is_some(), "{moment}");
        let screen = run.pty.contents();
        assert!(
            screen.starts_with("platen died of SIGABRT"),
            "{moment}: {screen}"
        );
        assert!(run.log().contains("terminate called"), "{moment}");
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
fn a_stack_overflow_of_the_screen_gives_the_terminal_back() {
    for moment in MOMENTS {
        let mut run = at(moment);
        run.pty.keys(b"\x0f");
        assert!(run.pty.exit().signal().is_some(), "{moment:?}");
        run.pty.assert_given_back();
        let screen = run.pty.contents().replace('\n', "");
        assert!(
            screen.starts_with("platen died of SIGSEGV"),
            "{moment:?}: {screen}"
        );
    }
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

/// A shell with job control in which the program runs.
fn in_a_shell(script: &str) -> pty::Pty {
    let mut pty = Spawn::new("bash")
        .arg("--norc")
        .arg("--noprofile")
        .arg("-i")
        .env("PS1", "shell$ ")
        .env("SCRIPT", script)
        .start();
    pty.wait_for_text("shell$");
    pty.keys(format!("{}\r", scripted().display()));
    pty.wait_for_text("state ready");
    pty
}

#[test]
fn ctrl_z_goes_to_the_shell_and_fg_comes_back_at_any_moment() {
    for generating in [false, true] {
        let mut pty = in_a_shell("rate=50,tokens=100000");
        if generating {
            pty.keys("hi\r");
            pty.wait_for_text("w9");
        }
        pty.keys(b"\x1a");
        pty.wait_for("the shell", |screen| {
            !screen.alternate_screen() && screen.contents().contains("Stopped")
        });
        pty.keys("echo in the $((40 + 2))\r");
        pty.wait_for_text("in the 42");
        pty.resize(60, 20);
        pty.keys("fg\r");
        pty.wait_for("the screen again", |screen| {
            screen.alternate_screen() && screen.contents().contains("size 60x20")
        });
        pty.keys("typed");
        pty.wait_for_text(r#"draft "typed""#);
        pty.keys(QUIT);
        pty.wait_for("the shell", |screen| {
            !screen.alternate_screen() && screen.contents().matches("shell$").count() >= 3
        });
        pty.keys("exit\r");
        assert_eq!(pty.exit().exit_code(), 0);
    }
}

#[test]
fn stopped_time_is_in_no_figure() {
    let mut run = start("rate=50,tokens=100000");
    run.pty.wait_for_text("state ready");
    run.pty.keys("hi\r");
    run.pty.wait_for_text("w9");
    let stop = Duration::from_secs(4);
    run.pty.signal(Signal::STOP);
    std::thread::sleep(stop);
    let seen = run.pty.contents();
    run.pty.signal(Signal::CONT);
    let last = |contents: &str| {
        let mut words = contents.split_whitespace().rev();
        words.find_map(|word| word.strip_prefix('w')?.parse::<u32>().ok())
    };
    run.pty.wait_for("more words", |screen| {
        last(&screen.contents()) > last(&seen).map(|word| word + 50)
    });
    let contents = run.pty.contents();
    let gap = contents.split("longest gap ").nth(1).unwrap();
    let gap: u64 = gap.split(' ').next().unwrap().parse().unwrap();
    assert!(
        Duration::from_millis(gap) < stop / 2,
        "the longest gap was {gap} ms"
    );
}

#[test]
fn after_a_stop_without_warning_every_mode_is_taken_again() {
    let run = start("rate=50");
    run.pty.wait_for_text("state ready");
    let taken = || ["\x1b[?1049h", "\x1b[?2004h", "\x1b[?25l"].map(|mode| run.pty.raw_count(mode));
    let before = taken();
    run.pty.signal(Signal::STOP);
    run.pty.signal(Signal::CONT);
    let again = before.map(|count| count + 1);
    let began = std::time::Instant::now();
    while taken()
        .into_iter()
        .zip(again)
        .any(|(taken, again)| taken < again)
    {
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", taken());
        std::thread::sleep(Duration::from_millis(10));
    }
}
