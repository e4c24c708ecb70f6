//! The one place that log lines go through, callable from any thread, foreign ones included: it never panics and
//! never waits for a reader.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::Notify;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::text::sanitize::neutral;
use crate::text::secrets::without_secrets;

use super::{LogLevel, LogLine, file};

/// Lines kept for the log view.
const RING_CAPACITY: usize = 1000;
/// Most bytes that one run adds to the file.
const RUN_LIMIT: u64 = 32 * 1024 * 1024;

/// The log of this process, for code that can be handed nothing but a function.
static INSTALLED: OnceLock<LogSink> = OnceLock::new();

/// Adds a line to the installed log; without one it is dropped. Never panics.
pub fn record(line: LogLine) {
    if let Some(sink) = INSTALLED.get() {
        sink.push(line);
    }
}

/// The log. Clones share one log.
#[derive(Debug, Clone)]
pub struct LogSink(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    ring: Mutex<VecDeque<LogLine>>,
    fresh: Notify,
    file: Option<(File, PathBuf)>,
    written: AtomicU64,
}

impl LogSink {
    /// A log that is kept in memory and appended to `platen.log` in `dir`.
    ///
    /// # Errors
    /// The folder or the file can't be made or written.
    pub fn open(dir: &Path) -> io::Result<LogSink> {
        Ok(LogSink::new(Some(file::open(dir)?)))
    }

    /// A log that is kept in memory only.
    #[must_use]
    pub fn in_memory() -> LogSink {
        LogSink::new(None)
    }

    fn new(file: Option<(File, PathBuf)>) -> LogSink {
        LogSink(Arc::new(Shared {
            ring: Mutex::new(VecDeque::new()),
            fresh: Notify::new(),
            file,
            written: AtomicU64::new(0),
        }))
    }

    /// The file's path, where there is a file.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.file.as_ref().map(|(_, path)| path.as_path())
    }

    /// The file, where there is one: for streams that are redirected into it.
    #[must_use]
    pub fn file(&self) -> Option<&File> {
        self.0.file.as_ref().map(|(file, _)| file)
    }

    /// Makes this the log of the process: what the program traces and what [`record`] is given goes here.
    ///
    /// # Errors
    /// Something else already receives what is traced.
    pub fn install(&self) -> Result<(), tracing::subscriber::SetGlobalDefaultError> {
        let _ = INSTALLED.set(self.clone());
        let layer = super::layer::SinkLayer(self.clone());
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))
    }

    /// Adds what foreign code says, a line of the log for each of its lines. Never panics.
    pub fn log_foreign(&self, level: LogLevel, target: &str, text: &str) {
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            self.push(LogLine {
                level,
                target: target.to_owned(),
                text: line.trim_end().to_owned(),
            });
        }
    }

    /// Adds a line. Never panics; a line that can't be written to the file is still shown.
    pub fn push(&self, mut line: LogLine) {
        if let Cow::Owned(safe) = without_secrets(&line.text) {
            line.text = safe;
        }
        self.write(&line);
        {
            let mut ring = self.0.ring.lock().unwrap_or_else(PoisonError::into_inner);
            if ring.len() == RING_CAPACITY {
                ring.pop_front();
            }
            ring.push_back(line);
        }
        self.0.fresh.notify_one();
    }

    /// Takes the lines added since the last call, at most the latest thousand.
    #[must_use]
    pub fn take(&self) -> Vec<LogLine> {
        self.0
            .ring
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
            .collect()
    }

    /// Waits until lines were added. Cancel-safe.
    pub async fn added(&self) {
        self.0.fresh.notified().await;
    }

    fn write(&self, line: &LogLine) {
        let Some((file, _)) = &self.0.file else {
            return;
        };
        let now = jiff::Timestamp::now();
        let text = format!(
            "{now:.3} {:5} {}: {}\n",
            line.level.name(),
            line.target,
            neutral(&line.text)
        );
        let bytes = text.len() as u64;
        let before = self.0.written.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes <= RUN_LIMIT {
            let _ = (&*file).write_all(text.as_bytes());
        } else if before <= RUN_LIMIT {
            let _ = (&*file)
                .write_all(b"this run has logged enough; the rest is only in the log view\n");
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn line(text: &str) -> LogLine {
        LogLine {
            level: LogLevel::Info,
            target: "test".into(),
            text: text.into(),
        }
    }

    #[test]
    fn the_ring_keeps_the_latest_thousand_lines() {
        let sink = LogSink::in_memory();
        for number in 0..1005 {
            sink.push(line(&number.to_string()));
        }
        let lines = sink.take();
        assert_eq!(lines.len(), 1000);
        assert_eq!(lines[0].text, "5");
        assert!(sink.take().is_empty());
    }

    #[test]
    fn the_file_is_private_and_gets_every_line() {
        let dir = tempfile::tempdir().unwrap();
        let sink = LogSink::open(&dir.path().join("logs")).unwrap();
        sink.log_foreign(LogLevel::Warn, "llama.cpp", "one\n\ntwo\n");
        let path = sink.path().unwrap();
        assert_eq!(
            fs::metadata(path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let text = fs::read_to_string(path).unwrap();
        let ends: Vec<&str> = text
            .lines()
            .map(|line| line.split_once(' ').unwrap().1)
            .collect();
        assert_eq!(ends, ["warn  llama.cpp: one", "warn  llama.cpp: two"]);
    }

    #[test]
    fn what_is_read_from_the_file_steers_no_terminal() {
        let dir = tempfile::tempdir().unwrap();
        let sink = LogSink::open(dir.path()).unwrap();
        sink.push(line("name = \u{1b}]52;c;QQ==\u{7}\u{9b}2J\u{202e}x"));
        let text = fs::read_to_string(sink.path().unwrap()).unwrap();
        assert!(!text.trim_end().contains(char::is_control), "{text:?}");
        assert!(!text.contains('\u{202e}'), "{text:?}");
    }

    #[test]
    fn an_address_is_logged_without_its_password_and_signature() {
        let dir = tempfile::tempdir().unwrap();
        let sink = LogSink::open(dir.path()).unwrap();
        sink.push(line("from https://u:SECRET@h/m.gguf?sig=SECRET failed"));
        let logged = fs::read_to_string(sink.path().unwrap()).unwrap();
        let shown = &sink.take()[0].text;
        assert_eq!(shown, "from https://…@h/m.gguf?… failed");
        assert!(logged.contains(shown.as_str()), "{logged}");
    }

    #[test]
    fn a_large_file_is_set_aside_at_the_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("platen.log");
        fs::write(&path, vec![b'x'; 6 * 1024 * 1024]).unwrap();
        LogSink::open(dir.path()).unwrap().push(line("new"));
        assert_eq!(
            fs::metadata(dir.path().join("platen.log.1")).unwrap().len(),
            6 * 1024 * 1024
        );
        assert!(fs::read_to_string(&path).unwrap().ends_with("test: new\n"));
    }

    #[test]
    fn one_run_cannot_fill_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let sink = LogSink::open(dir.path()).unwrap();
        let long = line(&"x".repeat(1024 * 1024));
        for _ in 0..40 {
            sink.push(long.clone());
        }
        let bytes = fs::metadata(sink.path().unwrap()).unwrap().len();
        assert!(bytes < RUN_LIMIT + 1024, "{bytes} bytes");
    }

    #[test]
    fn a_foreign_thread_never_breaks_the_log() {
        let sink = LogSink::in_memory();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    (0..100)
                        .for_each(|_| sink.log_foreign(LogLevel::Error, "llama.cpp", "x\u{0}y"));
                });
            }
        });
        assert_eq!(sink.take().len(), 400);
    }
}
