//! What the program writes down and tells: no passwords, tokens and signatures, and nothing that was said. What it
//! makes is its user's alone, whatever the umask allows.
#![allow(clippy::unwrap_used, missing_docs, dead_code, reason = "tests")]

#[path = "support/pty.rs"]
mod pty;
#[path = "support/tiny_gguf.rs"]
mod tiny_gguf;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pty::Spawn;
use tempfile::TempDir;
use tiny_gguf::{TinyGguf, TinyKind, Value};

/// Stands in every password, token and signature of these tests.
const SECRET: &str = "s3cr3tw0rd";
/// Stands in everything that is said.
const SAID: &str = "und3rth3r0s3";

/// What was told by a run, and all files that it left.
struct Told {
    code: Option<i32>,
    out: String,
    err: String,
}

fn platen(home: &Path, arguments: &[&str], variables: &[(&str, &str)], input: &str) -> Told {
    let mut child = Command::new(env!("CARGO_BIN_EXE_platen"))
        .env_clear()
        .env("PLATEN_HOME", home)
        .env("HF_TOKEN", SECRET)
        .envs(variables.iter().copied())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that does not read its input is no failure of the test.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    Told {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        found.push(path.clone());
        if path.is_dir() {
            files_below(&path, found);
        }
    }
}

/// Asserts that no file below the folder holds the text; the store of chats may.
#[track_caller]
fn assert_in_no_file(text: &str, folder: &Path) {
    let mut files = Vec::new();
    files_below(folder, &mut files);
    for file in files.iter().filter(|file| file.is_file()) {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = fs::read(file).unwrap();
        let holds = bytes
            .windows(text.len())
            .any(|window| window == text.as_bytes());
        assert!(!holds || name.starts_with("chats.db"), "{name} holds it");
    }
}

/// A server that answers every request with `answer`; its address without the scheme.
fn server(answer: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(&stream).lines();
            while lines
                .next()
                .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
            {}
            let _ = (&stream).write_all(&answer);
        }
    });
    address
}

fn answer(head: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n");
    [head.as_bytes(), body].concat()
}

#[test]
fn a_download_tells_and_keeps_no_secret_of_its_address() {
    let model = TinyGguf::new(TinyKind::Llama).encode();
    let refuses = server(answer("403 Forbidden\r\nContent-Length: 0", b""));
    let redirect = format!(
        "302 Found\r\nContent-Length: 0\r\nLocation: http://u:{SECRET}@127.0.0.1:1/m.gguf?X-Amz-Signature={SECRET}"
    );
    let leads_on = server(answer(&redirect, b""));
    let bad_lead =
        format!("302 Found\r\nContent-Length: 0\r\nLocation: http://u:{SECRET}@[bad/?sig={SECRET}");
    let leads_nowhere = server(answer(&bad_lead, b""));
    let head = format!("200 OK\r\nETag: \"v1\"\r\nContent-Length: {}", model.len());
    let cut = server(answer(&head, &model[..model.len() / 2]));
    let whole = server(answer(&head, &model));
    let query = format!("?X-Amz-Signature={SECRET}&token={SECRET}");
    let dead = "127.0.0.1:1";
    for (address, ends_well) in [
        (
            format!("http://user:{SECRET}@{refuses}/m.gguf{query}"),
            false,
        ),
        (
            format!("http://user:{SECRET}@{leads_on}/m.gguf{query}"),
            false,
        ),
        (format!("http://{leads_nowhere}/m.gguf{query}"), false),
        (
            format!("http://user:{SECRET}@{dead}/m.gguf{query}#{SECRET}"),
            false,
        ),
        (format!("https://user:{SECRET}@{dead}"), false),
        (format!("https://user:{SECRET}@{dead}/"), false),
        (format!("https://user:{SECRET}@{dead}/no{query}"), false),
        (format!("http://user:{SECRET}@[bad/m.gguf{query}"), false),
        (format!("ftp://user:{SECRET}@{dead}/m.gguf"), false),
        (format!("http://user:{SECRET}@{cut}/m.gguf{query}"), false),
        (
            format!("http://user:{SECRET}@{whole}/whole.gguf{query}"),
            true,
        ),
    ] {
        let home = TempDir::new().unwrap();
        let told = platen(home.path(), &["pull", &address], &[], "");
        assert_eq!(told.code == Some(0), ends_well, "{address}: {}", told.err);
        let all = told.out + &told.err;
        assert!(!all.is_empty() && !all.contains(SECRET), "{address}: {all}");
        assert_in_no_file(SECRET, home.path());
    }
}

#[test]
fn a_hub_or_a_proxy_with_a_password_is_named_without_it() {
    let refuses = server(answer("401 Unauthorized\r\nContent-Length: 0", b""));
    let model = format!("http://{refuses}/m.gguf");
    let proxy = format!("http://user:{SECRET}@127.0.0.1:1");
    let bad_proxy = format!("user:{SECRET}@[bad");
    let hub = format!("http://user:{SECRET}@{refuses}/?key={SECRET}");
    let bad_token = format!("{SECRET}\n");
    for (what, name, value) in [
        ("hf:org/model", "HF_ENDPOINT", hub.as_str()),
        ("hf:org/model:m.gguf", "HF_TOKEN", &bad_token),
        (&model, "http_proxy", &proxy),
        (&model, "ALL_PROXY", &bad_proxy),
        (&model, "HTTPS_PROXY", &proxy),
    ] {
        let home = TempDir::new().unwrap();
        let mut variables = vec![(name, value)];
        if name == "HF_TOKEN" {
            variables.push(("HF_ENDPOINT", "http://127.0.0.1:1"));
        }
        let told = platen(home.path(), &["pull", what], &variables, "");
        assert_eq!(told.code, Some(1), "{name}: {}", told.err);
        assert!(!told.err.contains(SECRET), "{name}: {}", told.err);
        assert_in_no_file(SECRET, home.path());
    }
}

#[test]
fn an_address_where_a_model_belongs_is_told_without_its_password() {
    let home = TempDir::new().unwrap();
    let address = format!("https://user:{SECRET}@example.org/m.gguf?sig={SECRET}");
    for arguments in [
        &["ask", "hi", "--model", &address][..],
        &["--plain", &address],
        &["inspect", &address],
        &["models", &address],
    ] {
        let told = platen(home.path(), arguments, &[], "");
        assert!(matches!(told.code, Some(1 | 2)), "{}", told.err);
        assert!(!told.err.contains(SECRET), "{arguments:?}: {}", told.err);
    }
}

#[test]
fn what_is_said_stays_out_of_standard_error_and_every_file() {
    let home = TempDir::new().unwrap();
    let model = tiny_gguf::write_in(TinyKind::Llama, home.path());
    let no_template = home.path().join("broken.gguf");
    TinyGguf::new(TinyKind::Llama)
        .set(
            "tokenizer.chat_template",
            Value::Text("{{ messages[0].content | nothing }}".to_owned()),
        )
        .write(&no_template);
    let long = format!("{SAID} ").repeat(200);
    for model in [&model, &no_template] {
        let model = model.to_str().unwrap();
        for (arguments, input) in [
            (vec!["ask", SAID, "--system", SAID, "--model", model], ""),
            (vec!["ask", &long, "--model", model], ""),
            (vec!["ask", "--model", model, "--stats", "json"], SAID),
            (
                vec!["--plain", "--model", model],
                &format!("{SAID}\n{long}\n{SAID}\n"),
            ),
        ] {
            let mut arguments = arguments;
            arguments.extend(["--ctx", "256", "--max-tokens", "4"]);
            let told = platen(home.path(), &arguments, &[], input);
            assert!(told.code.is_some(), "{}", told.err);
            assert!(!told.err.contains(SAID), "{arguments:?}: {}", told.err);
            assert_in_no_file(SAID, home.path());
        }
    }
}

/// A chat on the screen, with all that makes files: a message, the log, another store, the end.
fn chat(home: &Path, model: &Path, elsewhere: &Path) {
    let script = "umask 000; exec \"$0\" \"$@\"";
    let mut pty = Spawn::new("/bin/sh")
        .arg("-c")
        .arg(script)
        .arg(env!("CARGO_BIN_EXE_platen"))
        .env("PLATEN_HOME", home)
        .env("HF_TOKEN", SECRET)
        .env("HTTPS_PROXY", format!("http://user:{SECRET}@127.0.0.1:1"))
        .arg("--model")
        .arg(model)
        .args(&["--ctx", "512", "--max-tokens", "8", "--system", SAID])
        .size(120, 40)
        .start();
    pty.wait_for_text("idle");
    pty.keys(format!("{SAID}\r"));
    // The figures below the reply: a random model may end it at any token.
    pty.wait_for_text("tok · TTFT");
    pty.keys("\x1bOQ");
    pty.wait_for_text("llama.cpp");
    let log = pty.contents();
    assert!(!log.contains(SAID) && !log.contains(SECRET), "{log}");
    pty.keys("\x1b");
    // What follows an Esc at once would be a key with Alt.
    pty.wait_for_text(SAID);
    pty.keys(format!("/save {}\r", elsewhere.display()));
    pty.wait_for_text("elsewhere.db");
    pty.wait_for_quiet(std::time::Duration::from_millis(200));
    pty.keys("\x04");
    assert_eq!(pty.exit().exit_code(), 0, "{}", pty.contents());
}

#[test]
fn a_chat_logs_nothing_that_is_said_and_all_that_is_made_is_private_whatever_the_umask() {
    let root = TempDir::new().unwrap();
    let model = tiny_gguf::write_in(TinyKind::Llama, root.path());
    let made = root.path().join("made");
    fs::create_dir(&made).unwrap();
    let (home, elsewhere) = (made.join("home"), made.join("kept/elsewhere.db"));
    chat(&home, &model, &elsewhere);
    for secret in [SAID, SECRET] {
        let mut logs = Vec::new();
        files_below(&home.join("logs"), &mut logs);
        assert!(!logs.is_empty());
        for log in logs {
            let text = String::from_utf8_lossy(&fs::read(log).unwrap()).into_owned();
            assert!(!text.contains(secret), "{text}");
        }
    }
    let bytes = TinyGguf::new(TinyKind::Llama).encode();
    let head = format!("200 OK\r\nETag: \"v1\"\r\nContent-Length: {}", bytes.len());
    let whole = server(answer(&head, &bytes));
    let cut = server(answer(&head, &bytes[..bytes.len() / 2]));
    for address in [
        format!("http://{whole}/m.gguf"),
        format!("http://{cut}/cut.gguf"),
    ] {
        let pulled = Command::new("/bin/sh")
            .args(["-c", "umask 000; exec \"$0\" \"$@\""])
            .arg(env!("CARGO_BIN_EXE_platen"))
            .args(["pull", &address])
            .env_clear()
            .env("PLATEN_HOME", made.join("pulled"))
            .output()
            .unwrap();
        assert!(!pulled.stderr.is_empty());
    }
    let mut found = Vec::new();
    files_below(&made, &mut found);
    let open: Vec<String> = found
        .iter()
        .filter(|path| path.symlink_metadata().unwrap().permissions().mode() & 0o077 != 0)
        .map(|path| path.strip_prefix(&made).unwrap().display().to_string())
        .collect();
    assert!(open.is_empty(), "open to others: {open:?}");
    let names: Vec<String> = found
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    for name in [
        "platen.log",
        "tried",
        "chats.db",
        "elsewhere.db",
        "m.gguf",
        "cut.gguf.part",
        "cut.gguf.part.origin",
    ] {
        assert!(
            names.iter().any(|made| made == name),
            "{name} is not among {names:?}"
        );
    }
}
