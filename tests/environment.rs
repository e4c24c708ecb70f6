//! Whatever the environment, the command line and the configuration file hold: the program says what is wrong in
//! words, and neither panics nor dies by a signal.
#![allow(clippy::unwrap_used, dead_code, reason = "tests")]

#[path = "support/pty.rs"]
mod pty;

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use proptest::prelude::*;
use pty::Spawn;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Every variable that the program or its libraries read.
const VARIABLES: [&str; 40] = [
    "PLATEN_HOME",
    "PLATEN_CONFIG",
    "PLATEN_MODEL",
    "PLATEN_SYSTEM",
    "PLATEN_CTX",
    "PLATEN_THREADS",
    "PLATEN_BATCH",
    "PLATEN_UBATCH",
    "PLATEN_KV_TYPE_K",
    "PLATEN_KV_TYPE_V",
    "PLATEN_FLASH_ATTN",
    "PLATEN_GPU_LAYERS",
    "PLATEN_MEMORY",
    "PLATEN_TEMP",
    "PLATEN_TOP_K",
    "PLATEN_TOP_P",
    "PLATEN_MIN_P",
    "PLATEN_REPEAT_PENALTY",
    "PLATEN_SEED",
    "PLATEN_MAX_TOKENS",
    "PLATEN_STOP",
    "PLATEN_SAVE",
    "PLATEN_STORE",
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "TMPDIR",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HF_ENDPOINT",
    "HF_TOKEN",
    "OLLAMA_MODELS",
    "NO_COLOR",
    "TERM",
    "COLUMNS",
    "TZ",
    "RUST_BACKTRACE",
];

/// Commands that end by themselves and ask no network.
const COMMANDS: [&[&str]; 9] = [
    &["models"],
    &["config", "show"],
    &["config", "path"],
    &["config", "check"],
    &["chats"],
    &["chats", "show", "last"],
    &["ask", "hi"],
    &["--plain"],
    &["inspect", "nothing"],
];

/// Far more than any of these runs takes.
const DEADLINE: Duration = Duration::from_secs(20);

/// A folder with everything that a path can lead to.
fn places() -> TempDir {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::write(at.join("file"), "text").unwrap();
    fs::create_dir_all(at.join("folder/config/config.toml")).unwrap();
    fs::create_dir_all(at.join("folder/data/chats.db")).unwrap();
    fs::create_dir(at.join("empty")).unwrap();
    symlink("loop", at.join("loop")).unwrap();
    symlink("nowhere", at.join("dangling")).unwrap();
    symlink(".", at.join("itself")).unwrap();
    folder
}

fn value() -> impl Strategy<Value = OsString> {
    let known = [
        "",
        "file",
        "file/below",
        "folder",
        "empty",
        "loop",
        "loop/below",
        "dangling",
        "itself/itself/folder",
        ".",
        "..",
        "/",
        "/dev/null",
        "/dev/full",
        "/dev/zero",
        "/proc/self/mem",
        "a\nb",
        " ",
        "-1",
        "0",
        "1",
        "nan",
        "1e999",
        "18446744073709551616",
        "true",
        "auto",
        "f16",
        "~",
        "$HOME",
        "http://[",
        "\u{1b}]0;x\u{7}",
        "\u{202e}",
    ];
    prop_oneof![
        4 => prop::sample::select(known.to_vec()).prop_map(OsString::from),
        1 => prop::collection::vec(1_u8.., 0..12).prop_map(OsString::from_vec),
        1 => (250_usize..9000).prop_map(|length| OsString::from("x".repeat(length))),
        1 => Just(OsString::from_vec(b"folder/\xff\xfe".to_vec())),
        1 => (100_usize..3000).prop_map(|length| OsString::from("x/".repeat(length))),
    ]
}

fn platen(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_platen"));
    command
        .env_clear()
        .env("PLATEN_HOME", "empty")
        .current_dir(folder)
        .stdin(Stdio::null());
    command
}

/// Runs it to its end; one that has none is killed, which is an end by a signal.
fn run(command: &mut Command) -> Output {
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = Pid::from_child(&child);
    let (ended, end) = channel::<()>();
    let watch = std::thread::spawn(move || {
        if end.recv_timeout(DEADLINE) == Err(RecvTimeoutError::Timeout) {
            let _ = kill_process(pid, Signal::KILL);
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(ended);
    watch.join().unwrap();
    output
}

/// Ended by itself; what failed says so.
fn assert_told(output: &Output, told: &str) -> Result<(), TestCaseError> {
    let err = String::from_utf8_lossy(&output.stderr);
    prop_assert_eq!(output.status.signal(), None, "{}: {}", told, err);
    let code = output.status.code();
    prop_assert!(matches!(code, Some(0..=2)), "{}: {:?} {}", told, code, err);
    prop_assert!(
        !err.contains("panicked") && !err.contains("bug in platen"),
        "{}: {}",
        told,
        err
    );
    prop_assert!(
        code == Some(0) || err.starts_with("platen: "),
        "{}: {}",
        told,
        err
    );
    Ok(())
}

fn settings(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn argument() -> impl Strategy<Value = OsString> {
    let known = [
        "ask",
        "models",
        "inspect",
        "config",
        "show",
        "path",
        "check",
        "chats",
        "export",
        "last",
        "7",
        "prompt",
        "completions",
        "bash",
        "--json",
        "--plain",
        "--model",
        "--ctx",
        "--temp",
        "--seed",
        "--stop",
        "--store",
        "--system",
        "--messages",
        "--kv",
        "--stats",
        "json",
        "--events",
        "--continue",
        "--continue=7",
        "--no-save",
        "--help",
        "--version",
        "--",
        "-",
        "--force",
        "--batch",
        "--kv-type-k",
        "f16",
        "--format",
        "md",
    ];
    prop_oneof![
        4 => prop::sample::select(known.to_vec()).prop_map(OsString::from),
        1 => value(),
    ]
}

fn line() -> impl Strategy<Value = String> {
    let known = [
        "[load]",
        "[sampling]",
        "[keys]",
        "[chats]",
        "[generation]",
        "[[load]]",
        "[load",
        "context = 4096",
        "context = -1",
        "context = 1e9",
        "temperature = nan",
        "temperature = 0.5",
        "model = \"m\"",
        "system = \"\"",
        "stop = [\"\"]",
        "stop = [1]",
        "send = [\"enter\"]",
        "quit = [\"ctrl+q\", \"\"]",
        "x.y.z = 1",
        "load = 1",
        "a = {",
        "b = '''",
        "\u{0}",
        "\u{feff}",
        "# \u{1b}[2J",
        "threads = 99999999999999999999",
        "batch = 1\nubatch = 9",
        "k = 1979-05-27T07:32:00Z",
        "\"\\uD800\" = 1",
        "save = \"yes\"",
    ];
    prop_oneof![
        5 => prop::sample::select(known.to_vec()).prop_map(str::to_owned),
        1 => "[ -~]{0,30}",
        1 => any::<String>(),
    ]
}

proptest! {
    #![proptest_config(settings(150))]

    #[test]
    fn any_environment_is_survived(
        variables in prop::collection::vec((prop::sample::select(VARIABLES.to_vec()), value()), 1..6),
        command in prop::sample::select(COMMANDS.to_vec()),
    ) {
        let folder = places();
        let output = run(platen(folder.path()).envs(variables.clone()).args(command));
        assert_told(&output, &format!("{variables:?} {command:?}"))?;
    }

    #[test]
    fn any_arguments_are_survived(arguments in prop::collection::vec(argument(), 0..7)) {
        let folder = places();
        let output = run(platen(folder.path()).args(&arguments));
        assert_told(&output, &format!("{arguments:?}"))?;
    }

    #[test]
    fn any_configuration_is_survived(lines in prop::collection::vec(line(), 0..8), cut in any::<u8>()) {
        let folder = places();
        let mut bytes = lines.join("\n").into_bytes();
        if cut < 60 {
            bytes.truncate(usize::from(cut));
        }
        fs::write(folder.path().join("c.toml"), &bytes).unwrap();
        for command in [&["config", "check"][..], &["config", "show"], &["ask", "hi"]] {
            let output = run(platen(folder.path()).env("PLATEN_CONFIG", "c.toml").args(command));
            assert_told(&output, &format!("{command:?} {lines:?}"))?;
        }
    }
}

#[test]
fn the_screen_opens_and_closes_whatever_the_home_is() {
    let long = "x".repeat(5000);
    let odd = OsString::from_vec(b"odd\xff\n".to_vec());
    for home in [
        OsString::from(""),
        "file".into(),
        "file/below".into(),
        "loop".into(),
        "dangling".into(),
        "folder".into(),
        "/dev/null".into(),
        long.into(),
        odd,
        "two\nlines".into(),
    ] {
        let folder = places();
        let mut pty = Spawn::new("/bin/sh")
            .args(&["-c", "cd \"$1\" && exec \"$0\""])
            .arg(env!("CARGO_BIN_EXE_platen"))
            .arg(folder.path())
            .env("HOME", folder.path().join("empty"))
            .env("PLATEN_HOME", &home)
            .size(100, 30)
            .start();
        pty.wait_for_text("platen");
        pty.wait_for("the screen", |screen| screen.contents().contains('└'));
        pty.wait_for_text("Esc close");
        pty.keys("\x1b");
        pty.wait_for("the list is closed", |screen| {
            !screen.contents().contains("Esc close")
        });
        pty.keys("\x04");
        assert_eq!(pty.exit().exit_code(), 0, "{home:?}: {}", pty.contents());
        pty.assert_given_back();
    }
}
