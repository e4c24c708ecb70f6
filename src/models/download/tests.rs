#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::io::{BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use super::super::catalogue::PipMember;
use super::super::discover::{Places, scan};
use super::super::tiny_gguf::{TinyGguf, TinyKind};
use super::*;
use server::{Request, hex, read_request};

mod pip;
mod requests;
mod resume;
#[path = "../../../tests/support/server.rs"]
mod server;

/// A server that answers each request as the test wants.
struct Server {
    url: String,
    requests: Arc<Mutex<Vec<Request>>>,
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

fn model() -> Vec<u8> {
    TinyGguf::new(TinyKind::Llama).encode()
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
