//! Names, metadata, chats, values and answers that try to steer the terminal, through every command of the real
//! program, with standard output and standard error in pipes and in a terminal.
#![allow(clippy::unwrap_used, missing_docs, dead_code, reason = "tests")]

#[path = "support/hostile_home.rs"]
mod hostile_home;
#[path = "support/pty.rs"]
mod pty;
#[path = "support/tiny_gguf.rs"]
mod tiny_gguf;
#[path = "support/wire.rs"]
mod wire;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use hostile_home::Home;
use pty::Spawn;
use wire::{HOSTILE, Stream, foreign};

/// One call of the program.
struct Call {
    arguments: Vec<OsString>,
    variables: Vec<(String, OsString)>,
}

impl Call {
    fn new<const N: usize>(arguments: [&dyn AsRef<OsStr>; N]) -> Call {
        Call {
            arguments: arguments
                .iter()
                .map(|argument| AsRef::<OsStr>::as_ref(*argument).to_owned())
                .collect(),
            variables: Vec::new(),
        }
    }

    fn with(mut self, name: &str, value: impl AsRef<OsStr>) -> Call {
        self.variables
            .push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    fn in_pipes(&self, home: &Path) -> Output {
        Command::new(env!("CARGO_BIN_EXE_platen"))
            .env_clear()
            .env("PLATEN_HOME", home)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .args(&self.arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    fn in_a_terminal(&self, home: &Path) -> Vec<u8> {
        let mut spawn = Spawn::new(env!("CARGO_BIN_EXE_platen")).env("PLATEN_HOME", home);
        for (name, value) in &self.variables {
            spawn = spawn.env(name, value);
        }
        for argument in &self.arguments {
            spawn = spawn.arg(argument);
        }
        let mut pty = spawn.start();
        pty.exit();
        pty.bytes()
    }

    /// Runs it both ways and reads every byte. What stands in a pipe as it is, is up to `raw`.
    #[track_caller]
    fn check(&self, home: &Path, raw: Raw) {
        let output = self.in_pipes(home);
        let told = format!("{:?} {:?}", self.arguments, self.variables);
        assert!(output.status.code().is_some(), "{told}: {}", output.status);
        if raw == Raw::Nothing {
            assert_eq!(
                foreign(&output.stdout, Stream::Pipe),
                None,
                "{told}: stdout"
            );
        }
        assert_eq!(
            foreign(&output.stderr, Stream::Pipe),
            None,
            "{told}: stderr"
        );
        let shown = self.in_a_terminal(home);
        assert_eq!(foreign(&shown, Stream::Lines), None, "{told}: terminal");
        assert!(
            !output.stdout.is_empty() || !output.stderr.is_empty(),
            "{told} says nothing"
        );
    }
}

/// What a pipe gets unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Raw {
    Nothing,
    Stdout,
}

#[test]
fn what_files_models_and_chats_say_steers_no_terminal() {
    let home = Home::new();
    let at = home.path();
    let last = &"last";
    for call in [
        Call::new([&"models"]),
        Call::new([&"models", &"--json"]),
        Call::new([&"chats"]),
        Call::new([&"chats", &"--json"]),
        Call::new([&"chats", &"show", last]),
        Call::new([&"chats", &"show", last, &"--json"]),
        Call::new([&"chats", &"export", last, &"--format", &"json"]),
        Call::new([&"config", &"path"]),
        Call::new([&"config", &"show"]),
        Call::new([&"config", &"check"]),
    ] {
        call.check(&at, Raw::Nothing);
    }
    for model in home.models() {
        for call in [
            Call::new([&"inspect", &model]),
            Call::new([&"inspect", &model, &"--json"]),
            Call::new([&"prompt", &model, &"--system", &HOSTILE]),
            Call::new([&"prompt", &model, &"--messages", &home.messages()]),
        ] {
            call.check(&at, Raw::Nothing);
        }
    }
}

#[test]
fn a_chat_goes_to_a_pipe_as_it_was_and_to_a_terminal_harmless() {
    let home = Home::new();
    let export = Call::new([&"chats", &"export", &"last", &"--format", &"md"]);
    export.check(&home.path(), Raw::Stdout);
    let text = String::from_utf8(export.in_pipes(&home.path()).stdout).unwrap();
    assert_eq!(text.matches(HOSTILE).count(), 5, "{text:?}");
    let json = Call::new([&"chats", &"export", &"last", &"--format", &"json"]);
    let json = json.in_pipes(&home.path()).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["title"], HOSTILE);
    assert_eq!(json["messages"][1]["text"], HOSTILE);
}

#[test]
fn what_a_model_writes_steers_no_terminal() {
    let home = Home::new();
    let at = home.path();
    let model = home.model();
    // Noise over all bytes: at this temperature every control comes up.
    let hot: [&dyn AsRef<OsStr>; 11] = [
        &"ask",
        &HOSTILE,
        &"--temp",
        &"5",
        &"--max-tokens",
        &"400",
        &"--ctx",
        &"1024",
        &"--model",
        &model,
        &"--seed",
    ];
    for seed in ["1", "2"] {
        for more in [
            &[][..],
            &["--stats", "json"],
            &["--events", "json"],
            &["--stats", "text"],
        ] {
            let mut call = Call::new(hot);
            call.arguments.push(seed.into());
            call.arguments.extend(more.iter().map(OsString::from));
            call.check(&at, Raw::Nothing);
        }
    }
}

#[test]
fn wrong_names_and_values_steer_no_terminal() {
    let home = Home::new();
    let at = home.path();
    let not_utf8 = OsString::from_vec([HOSTILE.as_bytes(), b"\xff\xfe"].concat());
    let named = |start: &str| format!("{start}{HOSTILE}");
    for call in [
        Call::new([&named("--")]),
        Call::new([&named("-")]),
        Call::new([&"ask", &"hi", &"there", &HOSTILE]),
        Call::new([&"ask", &"hi", &"--ctx", &HOSTILE]),
        Call::new([&"ask", &"hi", &"--model", &named("no ")]),
        Call::new([&"ask", &"hi", &"--model", &not_utf8]),
        Call::new([&"ask", &"hi", &"--kv-type-k", &HOSTILE]),
        Call::new([&"ask", &not_utf8]),
        Call::new([&"--plain", &named("no ")]),
        Call::new([&HOSTILE, &"models"]),
        Call::new([&"config", &HOSTILE]),
        Call::new([
            &"config", &"show", &"--model", &HOSTILE, &"--stop", &HOSTILE,
        ]),
        Call::new([&"inspect", &HOSTILE]),
        Call::new([&"inspect", &not_utf8]),
        Call::new([&"prompt", &home.model(), &"--messages", &HOSTILE]),
        Call::new([&"prompt", &home.model(), &"--messages", &not_utf8]),
        Call::new([&"chats", &"show", &HOSTILE]),
        Call::new([&"chats", &"--store", &HOSTILE, &"show", &"1"]),
        Call::new([&"chats", &"--store", &not_utf8, &"show", &"1"]),
        Call::new([&"chats", &"show", &"7"]),
        Call::new([&"completions", &HOSTILE]),
        Call::new([&"pull", &HOSTILE]),
        Call::new([&"pull", &named("hf:")]),
        Call::new([&"pull", &format!("http://127.0.0.1:1/{HOSTILE}")]),
        Call::new([&"pull", &format!("http://127.0.0.1:1/m.gguf?{HOSTILE}")]),
        Call::new([&"pull", &format!("http://{HOSTILE}/m.gguf")]),
        Call::new([&"pull", &"hf:a/b"])
            .with("HF_ENDPOINT", format!("http://127.0.0.1:1/{HOSTILE}")),
        Call::new([&"pull", &"http://127.0.0.1:1/m.gguf"]).with("http_proxy", HOSTILE),
        Call::new([&"config", &"check"]).with("PLATEN_CONFIG", home.broken_config()),
        Call::new([&"config", &"check"]).with("PLATEN_CONFIG", HOSTILE),
        Call::new([&"config", &"path"]).with("PLATEN_CONFIG", HOSTILE),
        Call::new([&"config", &"path"]).with("PLATEN_CONFIG", &not_utf8),
        Call::new([&"config", &"show"]).with("PLATEN_CONFIG", HOSTILE),
        Call::new([&"config", &"show"]).with("PLATEN_MODEL", HOSTILE),
        Call::new([&"config", &"show"]).with("PLATEN_SYSTEM", &not_utf8),
        Call::new([&"config", &"show"]).with("PLATEN_CTX", HOSTILE),
        Call::new([&"config", &"show"]).with("PLATEN_STORE", HOSTILE),
        Call::new([&"config", &"path"]).with("PLATEN_HOME", HOSTILE),
        Call::new([&"models"]).with("HF_HOME", HOSTILE),
    ] {
        call.check(&at, Raw::Nothing);
    }
}
