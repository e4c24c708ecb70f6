//! The command line as a shell sees it: exit codes, and what goes to which stream.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::Read;
use std::process::{Command, Stdio};

use tempfile::TempDir;

fn platen(home: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_platen"));
    command
        .env_clear()
        .env("PLATEN_HOME", home.path())
        .stdin(Stdio::null());
    command
}

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

fn run(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Arguments, and what the error says about them.
const WRONG_USES: &[(&[&str], &str)] = &[
    (&["--frob"], "unexpected argument '--frob' found"),
    (
        &["ask", "hi", "--tmp", "1"],
        "a similar argument exists: '--temp'",
    ),
    (&["ask", "hi", "there"], "unexpected argument 'there' found"),
    (&["m", "--model", "n"], "cannot be used with"),
    (
        &["m", "ask", "hi"],
        "'m' stands before the command; it must stand after it",
    ),
    (
        &["--seed", "1", "ask", "hi"],
        "--seed stands before the command; it must stand after it",
    ),
    (
        &["ask", "hi", "--ctx", "many"],
        "invalid value 'many' for '--ctx <TOKENS>'",
    ),
    (
        &["ask", "hi", "--top-k", "-1"],
        "invalid value '-1' for '--top-k <K>'",
    ),
    (&["ask", "hi", "--seed", "4294967296"], "for '--seed <N>'"),
    (
        &["ask", "hi", "--kv-type-k", "q4_0"],
        "use one of f32, f16, bf16, q8_0",
    ),
    (&["ask", "hi", "--flash-attn", "yes"], "use auto, on or off"),
    (
        &["ask", "hi", "--stats", "xml"],
        "invalid value 'xml' for '--stats <FORMAT>'",
    ),
    (
        &["ask", "hi", "--events", "text"],
        "invalid value 'text' for '--events <FORMAT>'",
    ),
    (
        &["ask", "hi", "--temp", "1", "--temp", "2"],
        "'--temp <T>' cannot be used multiple times",
    ),
    (
        &["config", "show", "--temp", "-1"],
        "--temp: sampling.temperature is -1; it must be a number from 0 to 5",
    ),
    (
        &["config", "show", "--temp", "nan"],
        "--temp: sampling.temperature is NaN; it must be",
    ),
    (
        &["config", "show", "--top-p", "inf"],
        "--top-p: sampling.top_p is inf; it must be",
    ),
    (
        &["config", "show", "--ctx", "15"],
        "--ctx: load.context is 15; it must be a whole number of tokens, 0 or",
    ),
    (
        &["config", "show", "--threads", "0"],
        "--threads: load.threads is 0; it must be a whole number from 1",
    ),
    (
        &["config", "show", "--batch", "64", "--ubatch", "65"],
        "hint: raise the batch as well: --batch 65",
    ),
    (
        &["config", "show", "--max-tokens", "0"],
        "--max-tokens: generation.max_tokens is 0; it must be",
    ),
    (
        &["config", "show", "--stop", ""],
        "--stop: a stop text is empty",
    ),
    (
        &[
            "config",
            "show",
            "--kv-type-v",
            "q8_0",
            "--flash-attn",
            "off",
        ],
        "hint: use --flash-attn auto, or --kv-type-v f16",
    ),
    (&["config", "edit"], "unrecognized subcommand 'edit'"),
    (&["inspect"], "<MODEL>"),
    (&["inspect", "m", "--ctx", "8"], "8 is not in 16..=4194304"),
    (&["inspect", "m", "--kv", "f16,f8"], "'f8' is no cache type"),
    (&["pull"], "<NAME|hf:ORG/REPO[:FILE]|URL>"),
    (&["prompt"], "<MODEL>"),
    (
        &["models", "--temp", "1"],
        "unexpected argument '--temp' found",
    ),
    (
        &["completions", "tcsh"],
        "invalid value 'tcsh' for '<SHELL>'",
    ),
];

#[test]
fn wrong_use_exits_2_with_an_error_that_names_the_flag() {
    let home = TempDir::new().unwrap();
    for (arguments, expected) in WRONG_USES {
        let ran = run(platen(&home).args(*arguments));
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.err);
        assert!(
            ran.err.starts_with("platen: error: "),
            "{arguments:?}: {}",
            ran.err
        );
        assert!(ran.err.contains(expected), "{arguments:?}: {}", ran.err);
        assert_eq!(ran.out, "", "{arguments:?}");
    }
}

#[test]
fn help_and_version_go_to_standard_output() {
    let home = TempDir::new().unwrap();
    let commands = [
        "ask",
        "models",
        "pull",
        "inspect",
        "prompt",
        "config",
        "completions",
    ];
    let help = run(platen(&home).arg("--help"));
    assert_eq!((help.code, help.err.as_str()), (Some(0), ""));
    for command in commands {
        assert!(
            help.out.contains(&format!("\n  {command} ")),
            "{command}: {}",
            help.out
        );
        let own = run(platen(&home).args([command, "--help"]));
        assert_eq!((own.code, own.err.as_str()), (Some(0), ""));
        assert!(own.out.contains("Usage: platen"), "{}", own.out);
    }
    let version = run(platen(&home).arg("--version"));
    assert_eq!(
        version.out,
        format!("platen {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn no_escape_code_reaches_a_stream_that_is_no_terminal() {
    let home = TempDir::new().unwrap();
    for arguments in [
        &["--help"][..],
        &["--x\x1b]0;title\x07"],
        &["ask", "hi", "--ctx", "\x1b[2J\u{9b}"],
    ] {
        let ran = run(platen(&home).args(arguments));
        let control = |text: &str| {
            text.contains(|character: char| character.is_control() && character != '\n')
        };
        assert!(
            !control(&ran.out) && !control(&ran.err),
            "{:?} {:?}",
            ran.out,
            ran.err
        );
    }
}

#[test]
fn every_shell_gets_a_completion_script_that_knows_the_flags() {
    let home = TempDir::new().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = run(platen(&home).args(["completions", shell]));
        assert_eq!(ran.code, Some(0), "{shell}: {}", ran.err);
        assert!(
            ran.out.contains("kv-type-k") && ran.out.contains("inspect"),
            "{shell}"
        );
    }
}

#[test]
fn a_reader_that_stops_reading_is_no_failure() {
    let home = TempDir::new().unwrap();
    for arguments in [
        &["completions", "zsh"][..],
        &["config", "show"],
        &["--help"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut child = platen(&home)
            .args(arguments)
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut err = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        assert_eq!(
            child.wait().unwrap().code(),
            Some(0),
            "{arguments:?}: {err}"
        );
        assert_eq!(err, "", "{arguments:?}");
    }
}
