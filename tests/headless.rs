//! Commands that run a model without a screen, as a shell sees them: what goes to which stream, and how they end.

#![allow(clippy::unwrap_used, missing_docs, dead_code, reason = "tests")]

#[path = "support/tiny_gguf.rs"]
mod tiny_gguf;

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use tiny_gguf::TinyKind;

struct Machine {
    home: TempDir,
    model: PathBuf,
}

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Machine {
    fn new() -> Machine {
        let home = TempDir::new().unwrap();
        let model = tiny_gguf::write_in(TinyKind::Llama, home.path());
        Machine { home, model }
    }

    fn platen(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_platen"));
        command
            .env_clear()
            .env("PLATEN_HOME", self.home.path())
            .args(arguments)
            .args(["--threads", "1", "--temp", "0", "--ctx", "256"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn model(&self) -> &str {
        self.model.to_str().unwrap()
    }

    fn run(&self, arguments: &[&str], input: &str) -> Ran {
        let mut child = self
            .platen(arguments)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that does not read its input is no failure of the test.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

#[test]
fn an_answer_goes_to_standard_output_and_why_it_was_cut_to_standard_error() {
    let machine = Machine::new();
    let model = machine.model();
    let ran = machine.run(&["ask", "hi", "--model", model, "--max-tokens", "3"], "");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.ends_with('\n'), "{:?}", ran.out);
    assert_eq!(
        ran.err,
        "platen: the reply was cut after 3 tokens; --max-tokens allows more\n"
    );
    // Whoever reads the numbers gets one line of JSON and nothing else.
    let asked = [
        "ask",
        "hi",
        "--model",
        model,
        "--max-tokens",
        "3",
        "--stats",
        "json",
    ];
    let again = machine.run(&asked, "");
    let stats: Value = serde_json::from_str(&again.err).unwrap();
    assert_eq!(
        again.out, ran.out,
        "the same model, prompt and temperature 0"
    );
    assert_eq!(stats["stop"], "max_tokens");
    assert_eq!(stats["generated_tokens"], 3);
}

#[test]
fn events_are_lines_of_json_from_the_load_to_the_end_of_the_reply() {
    let machine = Machine::new();
    let asked = [
        "ask",
        "hi",
        "--model",
        machine.model(),
        "--max-tokens",
        "3",
        "--events",
        "json",
    ];
    let ran = machine.run(&asked, "");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let events: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut names: Vec<&str> = events
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    names.dedup();
    assert_eq!(
        names,
        ["loading", "ready", "cache", "prefill", "token", "finished"]
    );
    assert_eq!(events.last().unwrap()["stop"], "max_tokens");
}

#[test]
fn a_reader_that_stops_reading_an_answer_is_no_failure() {
    let machine = Machine::new();
    for more in [&[][..], &["--events", "json"]] {
        let mut asked = vec![
            "ask",
            "hi",
            "--model",
            machine.model(),
            "--max-tokens",
            "64",
        ];
        asked.extend(more);
        let mut child = machine.platen(&asked).spawn().unwrap();
        let mut first = [0];
        let mut out = child.stdout.take().unwrap();
        out.read_exact(&mut first).unwrap();
        drop(out);
        let mut err = String::new();
        let mut stream = child.stderr.take().unwrap();
        stream.read_to_string(&mut err).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{err}");
        assert!(!err.contains("error"), "{err}");
    }
}

#[test]
fn each_line_is_a_turn_and_one_that_is_too_long_costs_only_itself() {
    let machine = Machine::new();
    let chat = [
        "--plain",
        "--max-tokens",
        "4",
        "--stats",
        "json",
        machine.model(),
    ];
    let long = "word ".repeat(400);
    let ran = machine.run(&chat, &format!("one\n\n{long}\ntwo\n"));
    assert_eq!(ran.code, Some(1));
    let lines: Vec<&str> = ran.err.lines().collect();
    let stats: Vec<Value> = lines
        .iter()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    assert_eq!(stats.len(), 2, "{}", ran.err);
    assert!(stats[1]["reused_tokens"].as_u64() > Some(0));
    assert_eq!(stats[1]["reread_reason"], Value::Null);
    assert!(ran.err.contains("the context holds 256"), "{}", ran.err);
    assert!(ran.err.ends_with("one turn failed\n"), "{}", ran.err);
}

#[test]
fn a_model_that_cannot_be_used_is_told_once_with_its_name() {
    let machine = Machine::new();
    let whole = std::fs::read(&machine.model).unwrap();
    let cut = machine.home.path().join("cut.gguf");
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let gone = machine.home.path().join("gone.gguf");
    for (path, reason) in [
        (cut.to_str().unwrap(), "is cut short"),
        (gone.to_str().unwrap(), "cannot be read"),
        (
            machine.home.path().to_str().unwrap(),
            "is not a regular file",
        ),
        ("/no\u{1b}]0;x\u{7}where", "cannot be read"),
    ] {
        let ran = machine.run(&["ask", "hi", "--model", path], "");
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
        assert_eq!(ran.err.matches(reason).count(), 1, "{}", ran.err);
        assert!(
            !ran.err.trim_end().contains(char::is_control),
            "{:?}",
            ran.err
        );
    }
}
