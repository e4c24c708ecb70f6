//! Downloads by the real program from a server that misbehaves: what is said, what lies in the folder, what is listed,
//! and that pulling again ends with the right file.
#![allow(clippy::unwrap_used, dead_code, reason = "a test stops where it fails")]

#[path = "support/server.rs"]
mod server;
#[path = "support/tiny_gguf.rs"]
mod tiny_gguf;

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use server::{Answer, Request, Server, hex};
use tempfile::TempDir;
use tiny_gguf::{TinyGguf, TinyKind};

const NAME: &str = "tiny.gguf";
const WANTED: &str = "hf:org/repo:tiny.gguf";

fn model() -> Vec<u8> {
    TinyGguf::new(TinyKind::Llama).encode()
}

/// A hub with one model, whose file is served as the test wants. Requests for the file are counted from 0.
fn hub(answer: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static) -> Server {
    Server::start(move |number, request| {
        if request.path.starts_with("/api/models/org/repo/") {
            let bytes = model();
            let list = format!(
                r#"[{{"path":"{NAME}","size":{},"lfs":{{"oid":"{}"}}}}]"#,
                bytes.len(),
                hex(&bytes)
            );
            return Answer::ok(list.into_bytes(), "list");
        }
        answer(number, request)
    })
}

struct Home {
    dir: TempDir,
    hub: String,
}

impl Home {
    fn at(server: &Server) -> Home {
        Home {
            dir: tempfile::tempdir().unwrap(),
            hub: server.url.clone(),
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_platen"));
        command
            .env_clear()
            .env("PLATEN_HOME", self.dir.path())
            .env("HF_ENDPOINT", &self.hub)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn pull(&self, what: &str) -> Output {
        self.command(&["pull", what]).output().unwrap()
    }

    fn spawn(&self, what: &str) -> Child {
        self.command(&["pull", what]).spawn().unwrap()
    }

    fn models(&self) -> PathBuf {
        self.dir.path().join("data/models")
    }

    fn part(&self) -> PathBuf {
        self.models().join(format!("{NAME}.part"))
    }

    fn files(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.models()) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn listed(&self) -> serde_json::Value {
        let output = self.command(&["models", "--json"]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Nothing has a model's name, and nothing is listed.
    fn assert_no_model(&self) {
        assert!(!self.files().contains(&NAME.to_owned()));
        assert_eq!(self.listed(), serde_json::json!([]));
    }

    /// The file is there, whole, alone, listed.
    fn assert_whole(&self) {
        assert_eq!(self.files(), [NAME]);
        assert_eq!(fs::read(self.models().join(NAME)).unwrap(), model());
        assert_eq!(self.listed().as_array().unwrap().len(), 1);
    }
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[track_caller]
fn assert_fails(output: &Output, code: i32, words: &str) {
    assert_eq!(output.status.code(), Some(code), "{}", said(output));
    assert!(said(output).contains(words), "{}", said(output));
    assert!(output.stdout.is_empty(), "no path is printed");
}

/// The model's bytes are sent as they should be.
fn honest(request: &Request) -> Answer {
    match request.range {
        Some(start) if request.if_range.as_deref() == Some("\"v1\"") => {
            Answer::partial(&model(), start, "v1")
        }
        _ => Answer::ok(model(), "v1"),
    }
}

/// Half of the model comes, and the rest when the test lets it; from then on the hub is honest.
fn hub_that_stalls_at_first() -> Server {
    hub(|number, request| {
        if number == 0 {
            Answer::ok(model(), "v1").stalls_at_half()
        } else {
            honest(request)
        }
    })
}

type Misbehaviour = fn(&Request) -> Answer;

/// What the file's first requests are answered with, until the server behaves; and the words that a server that never
/// does must lead to.
const MISBEHAVIOURS: &[(&str, Misbehaviour, &str)] = &[
    (
        "the connection is cut at half",
        |_| Answer::ok(model(), "v1").cut(),
        "gave up after 5 tries: it stopped after",
    ),
    (
        "a web page with status 200",
        |_| Answer::page("<html>Log in</html>", "text/html; charset=utf-8"),
        "it sent a web page instead of the model",
    ),
    (
        "a web page that calls itself something else",
        |_| {
            Answer::page(
                "<!DOCTYPE html><html>Log in</html>",
                "application/octet-stream",
            )
        },
        "instead of",
    ),
    (
        "a length that is too large",
        |_| Answer::ok([model(), vec![0; 100]].concat(), "v1"),
        "it has a file of",
    ),
    (
        "a length that is too small",
        |_| Answer::ok(model()[..1000].to_vec(), "v1"),
        "it has a file of 1000 bytes instead of",
    ),
    (
        "no length at all, and too little",
        |_| Answer::ok(model()[..1000].to_vec(), "v1").without("Content-Length"),
        "it stopped after 1000 of",
    ),
    (
        "other bytes of the same length",
        |_| {
            let mut bytes = model();
            *bytes.last_mut().unwrap() ^= 1;
            Answer::ok(bytes, "v1")
        },
        "the checksum is",
    ),
    (
        "packed bytes that nobody asked for",
        |_| Answer::ok(vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0], "v1").with("Content-Encoding: gzip"),
        "instead of",
    ),
    ("not found", |_| Answer::status(404), "it answered 404"),
    (
        "forbidden",
        |_| Answer::status(403),
        "the model may need a licence accepted on the hub",
    ),
    (
        "too many requests",
        |_| Answer::status(429).with("Retry-After: 1"),
        "it answered 429",
    ),
    ("out of order", |_| Answer::status(503), "it answered 503"),
    (
        "round in circles",
        |request| Answer::redirect(&request.path),
        "redirect",
    ),
    (
        "nothing",
        |_| Answer::nothing(),
        "org/repo: Peer disconnected",
    ),
];

#[test]
fn a_server_that_misbehaves_leaves_no_model_and_the_next_pull_is_right() {
    for (name, misbehave, words) in MISBEHAVIOURS {
        let server = hub(|number, request| {
            if number < 1_000 {
                misbehave(request)
            } else {
                honest(request)
            }
        });
        let home = Home::at(&server);
        let output = home.pull(WANTED);
        assert_fails(&output, 1, words);
        home.assert_no_model();
        let better = hub(|_, request| honest(request));
        let home = Home {
            hub: better.url.clone(),
            ..home
        };
        let output = home.pull(WANTED);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", said(&output));
        home.assert_whole();
    }
}

/// What a server that is asked for the rest of a file may do, and how many bytes it sends then.
const RESUMPTIONS: &[(&str, Misbehaviour)] = &[
    ("it sends the rest", honest),
    ("it sends all of it", |_| Answer::ok(model(), "v1")),
    ("it has a newer file", |_| Answer::ok(model(), "v2")),
    ("it forgets the version", |_| {
        Answer::ok(model(), "v1").without("ETag")
    }),
    ("its version is a weak one", |_| {
        Answer::ok(model(), "v1")
            .without("ETag")
            .with("ETag: W/\"v1\"")
    }),
    ("the rest of another version", |request| {
        match request.range {
            Some(start) => Answer::partial(&model(), start, "v2"),
            None => Answer::ok(model(), "v2"),
        }
    }),
    ("the rest from another place", |request| {
        match request.range {
            Some(start) => Answer::partial(&model(), start - 7, "v1"),
            None => Answer::ok(model(), "v1"),
        }
    }),
    ("the rest of a longer file", |request| match request.range {
        Some(start) => Answer::partial(&[model(), vec![0; 9]].concat(), start, "v1"),
        None => Answer::ok(model(), "v1"),
    }),
    ("there is no such range", |request| match request.range {
        Some(_) => Answer::status(416),
        None => Answer::ok(model(), "v1"),
    }),
];

#[test]
fn a_cut_download_ends_right_whatever_the_server_does_then() {
    for (name, resume) in RESUMPTIONS {
        let cutting = hub(|number, _| {
            if number == 0 {
                Answer::ok(model(), "v1").cut()
            } else {
                Answer::status(503)
            }
        });
        let home = Home::at(&cutting);
        assert_fails(&home.pull(WANTED), 1, "it answered 503");
        home.assert_no_model();
        let half = fs::metadata(home.part()).unwrap().len();
        assert_eq!(
            half,
            model().len() as u64 / 2,
            "{name}: what arrived is kept"
        );
        // The same server by its address, for bytes of another are never continued.
        cutting.answer_with(|_, request| {
            if request.path.starts_with("/api/") {
                None
            } else {
                Some(resume(request))
            }
        });
        let output = home.pull(WANTED);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", said(&output));
        home.assert_whole();
        let asked = cutting.requests();
        let first = asked
            .iter()
            .find(|request| request.range.is_some())
            .unwrap();
        assert_eq!(first.range, Some(half), "{name}");
        assert_eq!(first.if_range.as_deref(), Some("\"v1\""));
    }
}

#[test]
fn a_page_in_place_of_the_rest_takes_nothing_away() {
    for page in [
        |_: &Request| Answer::page("<html>Log in</html>", "text/html"),
        |_: &Request| Answer::ok(vec![0; 20], "v1"),
    ] {
        let server = hub(|number, request| {
            if number == 0 {
                Answer::ok(model(), "v1").cut()
            } else {
                honest(request)
            }
        });
        server.answer_with(move |number, request| {
            let is_file = !request.path.starts_with("/api/");
            (is_file && (1..3).contains(&number)).then(|| page(request))
        });
        let home = Home::at(&server);
        let half = model().len() as u64 / 2;
        assert_eq!(home.pull(WANTED).status.code(), Some(1));
        assert_eq!(fs::metadata(home.part()).unwrap().len(), half);
        home.assert_no_model();
        assert_eq!(home.pull(WANTED).status.code(), Some(1));
        assert_eq!(home.pull(WANTED).status.code(), Some(0));
        home.assert_whole();
        let last = server.requests().pop().unwrap();
        assert_eq!(last.range, Some(half), "only the rest was fetched");
    }
}

#[test]
fn the_end_of_the_program_in_the_middle_leaves_what_can_be_gone_on_with() {
    for signal in ["KILL", "INT", "TERM", "HUP"] {
        let server = hub_that_stalls_at_first();
        let home = Home::at(&server);
        let child = home.spawn(WANTED);
        let half = model().len() as u64 / 2;
        server::wait_until(|| fs::metadata(home.part()).is_ok_and(|part| part.len() == half));
        home.assert_no_model();
        let pid = child.id().to_string();
        assert!(
            Command::new("kill")
                .args([&format!("-{signal}"), &pid])
                .status()
                .unwrap()
                .success()
        );
        let output = child.wait_with_output().unwrap();
        if signal == "KILL" {
            assert_eq!(output.status.code(), None);
        } else {
            assert!(
                output.status.code().is_some_and(|code| code > 128),
                "{signal}: {:?}",
                output.status
            );
            assert!(
                said(&output).contains("the download was stopped; pull again to go on with it"),
                "{}",
                said(&output)
            );
        }
        home.assert_no_model();
        let output = home.pull(WANTED);
        assert_eq!(output.status.code(), Some(0), "{signal}: {}", said(&output));
        home.assert_whole();
        let rest = server
            .requests()
            .into_iter()
            .find_map(|request| request.range);
        assert_eq!(rest, Some(half), "{signal}: only the rest was fetched");
    }
}

#[test]
fn two_at_once_do_not_mix() {
    let server = hub_that_stalls_at_first();
    let home = Home::at(&server);
    let mut first = home.spawn(WANTED);
    server::wait_until(|| fs::metadata(home.part()).is_ok_and(|part| part.len() > 0));
    let second = home.pull(WANTED);
    assert_fails(&second, 1, "is being downloaded by another platen");
    server.let_go();
    // Cut off, the first one goes on with the rest.
    assert_eq!(first.wait().unwrap().code(), Some(0));
    home.assert_whole();
}

#[test]
fn without_a_published_checksum_the_file_itself_says_whether_it_is_whole() {
    let bytes = model();
    let end = bytes.len() - 100;
    let server = Server::start(move |number, _| {
        if number < 1 {
            Answer::ok(model()[..end].to_vec(), "v1")
        } else {
            Answer::ok(model(), "v1")
        }
    });
    let home = Home::at(&server);
    let url = format!("{}/{NAME}", server.url);
    let output = home.pull(&url);
    assert_fails(&output, 1, "what it sent is no whole GGUF file");
    assert!(said(&output).contains("no checksum is published"));
    home.assert_no_model();
    assert_eq!(home.pull(&url).status.code(), Some(0));
    home.assert_whole();
}

#[test]
fn secrets_do_not_follow_to_another_host() {
    let other = Server::start(|_, _| Answer::ok(model(), "v1"));
    let elsewhere = format!("{}/{NAME}", other.url.replace("127.0.0.1", "localhost"));
    let server = hub(move |_, _| Answer::redirect(&elsewhere));
    let home = Home::at(&server);
    let output = home
        .command(&["pull", WANTED])
        .env("HF_TOKEN", "hf_secret")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    home.assert_whole();
    let told = server.requests();
    assert!(
        told.iter()
            .all(|request| request.authorization.as_deref() == Some("Bearer hf_secret"))
    );
    assert_eq!(other.requests()[0].authorization, None);
    assert!(!said(&output).contains("hf_secret"));
}

#[test]
fn names_that_leave_the_folder_and_places_that_are_taken_are_refused() {
    let server = Server::start(|_, _| Answer::ok(model(), "v1"));
    let home = Home::at(&server);
    for name in [
        "",
        "..",
        "%2e%2e",
        ".gguf",
        "a\\b.gguf",
        "model.bin",
        &format!("{}.gguf", "x".repeat(300)),
    ] {
        let output = home.pull(&format!("{}/{name}", server.url));
        assert_fails(&output, 1, "is not the name of a GGUF file");
    }
    assert_eq!(server.requests().len(), 0);
    fs::create_dir_all(home.models().join(NAME)).unwrap();
    let output = home.pull(&format!("{}/{NAME}", server.url));
    assert_fails(&output, 1, "it is a folder");
    fs::remove_dir(home.models().join(NAME)).unwrap();
    // Half a model that somebody put there is not taken for the whole.
    fs::write(home.models().join(NAME), &model()[..9_000]).unwrap();
    let output = home.pull(&format!("{}/{NAME}", server.url));
    assert_fails(&output, 1, "exists and is another file");
    // Another file of the same name is never overwritten.
    let hub = hub(|_, request| honest(request));
    let home = Home {
        hub: hub.url.clone(),
        ..home
    };
    fs::write(home.models().join(NAME), "mine").unwrap();
    assert_fails(&home.pull(WANTED), 1, "exists and is another file");
    assert_eq!(fs::read(home.models().join(NAME)).unwrap(), b"mine");
}

/// A small disk; `None` where this user may not make one.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: PathBuf, bytes: usize) -> Option<Disk> {
        fs::create_dir_all(&at).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"])
            .arg(&at)
            .stderr(Stdio::null())
            .status();
        mounted
            .is_ok_and(|status| status.success())
            .then_some(Disk(at))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_disk_without_room_is_told_before_the_first_byte_and_one_that_runs_full_keeps_what_came() {
    let server = hub(|_, request| honest(request));
    let home = Home::at(&server);
    let Some(disk) = Disk::mount(home.models(), 64 << 10) else {
        println!("skipped: this user can't mount a small disk");
        return;
    };
    assert_fails(
        &home.pull(WANTED),
        1,
        "free some space or choose another folder",
    );
    home.assert_no_model();
    assert_eq!(home.files(), [""; 0], "nothing is left");
    drop(disk);
    // There is room when it begins, and another program takes it on the way.
    let bytes = model().len();
    let server = hub_that_stalls_at_first();
    let home = Home::at(&server);
    let _disk = Disk::mount(home.models(), bytes + (128 << 10)).unwrap();
    let child = home.spawn(WANTED);
    let half = bytes as u64 / 2;
    server::wait_until(|| fs::metadata(home.part()).is_ok_and(|part| part.len() == half));
    let filler = home.models().join("filler");
    let mut size = bytes;
    while size > 4096 {
        size -= 4096;
        if fs::write(&filler, vec![1; size]).is_ok() {
            break;
        }
    }
    server.go_on();
    let output = child.wait_with_output().unwrap();
    assert_fails(
        &output,
        1,
        "is full; free some space and pull again to go on with the download",
    );
    home.assert_no_model();
    fs::remove_file(&filler).unwrap();
    let output = home.pull(WANTED);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    home.assert_whole();
    let resumed = server
        .requests()
        .into_iter()
        .find_map(|request| request.range);
    assert!(resumed.is_some_and(|start| start >= half), "it went on");
}
