//! A web server that answers as the test wants: badly.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    missing_docs,
    dead_code,
    reason = "test code, shared by programs that each use a part"
)]

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

#[derive(Debug, Clone, Default)]
pub struct Request {
    pub path: String,
    pub range: Option<u64>,
    pub if_range: Option<String>,
    pub authorization: Option<String>,
}

/// Status line and headers, then the body; the connection closes behind it.
pub struct Answer {
    head: Vec<String>,
    body: Vec<u8>,
    /// Where the body waits for the test.
    stall: Option<usize>,
}

impl Answer {
    fn new(status: &str, body: Vec<u8>) -> Answer {
        let head = vec![
            format!("HTTP/1.1 {status}"),
            format!("Content-Length: {}", body.len()),
        ];
        Answer {
            head,
            body,
            stall: None,
        }
    }

    pub fn ok(body: Vec<u8>, etag: &str) -> Answer {
        Answer::new("200 OK", body).with(&format!("ETag: \"{etag}\""))
    }

    pub fn partial(whole: &[u8], start: u64, etag: &str) -> Answer {
        let rest = whole[usize::try_from(start).unwrap()..].to_vec();
        Answer::new("206 Partial Content", rest)
            .with(&format!("ETag: \"{etag}\""))
            .with(&format!(
                "Content-Range: bytes {start}-{}/{}",
                whole.len() - 1,
                whole.len()
            ))
    }

    pub fn page(text: &str, kind: &str) -> Answer {
        Answer::new("200 OK", text.as_bytes().to_vec()).with(&format!("Content-Type: {kind}"))
    }

    pub fn status(code: u16) -> Answer {
        Answer::new(&format!("{code} So It Is"), b"no".to_vec())
    }

    pub fn redirect(to: &str) -> Answer {
        Answer::new("302 Found", Vec::new()).with(&format!("Location: {to}"))
    }

    /// The connection is closed without a word.
    pub fn nothing() -> Answer {
        Answer {
            head: Vec::new(),
            body: Vec::new(),
            stall: None,
        }
    }

    #[must_use]
    pub fn with(mut self, header: &str) -> Answer {
        self.head.push(header.to_owned());
        self
    }

    #[must_use]
    pub fn without(mut self, header: &str) -> Answer {
        self.head.retain(|line| !line.starts_with(header));
        self
    }

    /// Only half of the body comes.
    #[must_use]
    pub fn cut(mut self) -> Answer {
        self.body.truncate(self.body.len() / 2);
        self
    }

    /// The second half waits until the test lets the server go on.
    #[must_use]
    pub fn stalls_at_half(mut self) -> Answer {
        self.stall = Some(self.body.len() / 2);
        self
    }
}

/// What a stalled answer does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    Shut,
    /// The rest is sent.
    Open,
    /// The connection is closed.
    Gone,
}

type Respond = dyn Fn(usize, &Request) -> Answer + Send + Sync;
type Override = dyn Fn(usize, &Request) -> Option<Answer> + Send + Sync;

pub struct Server {
    pub url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    instead: Arc<Mutex<Option<Box<Override>>>>,
    gate: Arc<(Mutex<Gate>, Condvar)>,
}

impl Server {
    /// `answer` gets the number of the request among those for something else than `/api/`, from 0, and the request.
    pub fn start(answer: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = Server {
            url,
            requests: Arc::default(),
            instead: Arc::default(),
            gate: Arc::new((Mutex::new(Gate::Shut), Condvar::new())),
        };
        let answer: Arc<Respond> = Arc::new(answer);
        let (requests, instead, gate) = (
            Arc::clone(&server.requests),
            Arc::clone(&server.instead),
            Arc::clone(&server.gate),
        );
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, requests, instead, gate) = (
                    Arc::clone(&answer),
                    Arc::clone(&requests),
                    Arc::clone(&instead),
                    Arc::clone(&gate),
                );
                std::thread::spawn(move || {
                    let request = read_request(&mut BufReader::new(&stream));
                    let number = {
                        let mut requests = requests.lock().unwrap();
                        let files = requests.iter().filter(|one| !one.path.starts_with("/api/"));
                        let number = files.count();
                        requests.push(request.clone());
                        number
                    };
                    let other = instead
                        .lock()
                        .unwrap()
                        .as_ref()
                        .and_then(|instead| instead(number, &request));
                    send(
                        &stream,
                        &other.unwrap_or_else(|| answer(number, &request)),
                        &gate,
                    );
                });
            }
        });
        server
    }

    /// From now on this comes first.
    pub fn answer_with(
        &self,
        answer: impl Fn(usize, &Request) -> Option<Answer> + Send + Sync + 'static,
    ) {
        *self.instead.lock().unwrap() = Some(Box::new(answer));
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Stalled answers go on.
    pub fn go_on(&self) {
        self.set_gate(Gate::Open);
    }

    /// Stalled answers end.
    pub fn let_go(&self) {
        self.set_gate(Gate::Gone);
    }

    fn set_gate(&self, to: Gate) {
        *self.gate.0.lock().unwrap() = to;
        self.gate.1.notify_all();
    }
}

fn send(mut stream: &TcpStream, answer: &Answer, gate: &(Mutex<Gate>, Condvar)) {
    if answer.head.is_empty() {
        return;
    }
    let head = format!("{}\r\nConnection: close\r\n\r\n", answer.head.join("\r\n"));
    let _ = stream.write_all(head.as_bytes());
    let (first, rest) = answer
        .body
        .split_at(answer.stall.unwrap_or(answer.body.len()));
    let _ = stream.write_all(first).and_then(|()| stream.flush());
    if answer.stall.is_some() {
        let shut = gate.0.lock().unwrap();
        let now = gate.1.wait_while(shut, |gate| *gate == Gate::Shut).unwrap();
        if *now == Gate::Open {
            let _ = stream.write_all(rest);
        }
    }
}

/// Reads the head of a request.
pub fn read_request(stream: &mut impl BufRead) -> Request {
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
                    let start = value.strip_prefix("bytes=").unwrap();
                    request.range = start.strip_suffix('-').unwrap().parse().ok();
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

pub fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<Vec<_>>()
        .concat()
}

/// Waits for something that must come, for a time in which anything must.
#[track_caller]
pub fn wait_until(mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_mins(1), "it never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}
