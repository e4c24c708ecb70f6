//! Tries a file in a short-lived child process before it is loaded here for the first time: what makes llama.cpp abort,
//! crash or use up the memory then costs a message, not the chat.

mod child;
mod record;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::engine::event::EngineError;
use crate::engine::inference::{Interrupt, Loaded, Loader};
use crate::engine::options::LoadOptions;
use crate::models::parts::ModelFiles;

use super::{LocalLoader, Templates};
pub use child::run as run_child;
use child::{Report, Request};
use record::Record;

/// The argument that makes the program try a file.
pub const ARGUMENT: &str = "__try-load";

/// How often the child is looked at.
const STEP: Duration = Duration::from_millis(10);
/// How long a trial may take, besides what reading the file does.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a model's template may render a conversation.
const TEMPLATE_PATIENCE: Duration = Duration::from_secs(5);
/// The slowest reading that is waited for, in bytes a second.
const SLOWEST: u64 = 10 << 20;
/// Most bytes of reports that are understood.
const LONGEST_REPORTS: u64 = 1 << 20;
/// Most bytes kept of what the child says last on standard error.
const KEPT_WORDS: usize = 16 << 10;

/// Loads GGUF files with llama.cpp, after a trial in a child process where they are new. A model's own template stays in
/// a process apart.
#[derive(Debug)]
pub struct TriedLoader {
    /// This program, which takes [`ARGUMENT`].
    program: PathBuf,
    record: Record,
    patience: Duration,
    loader: LocalLoader,
}

impl TriedLoader {
    /// A loader that starts `program` for trials and remembers in the file `record` what went well.
    #[must_use]
    pub fn new(program: PathBuf, record: Option<PathBuf>) -> TriedLoader {
        let templates = Templates {
            program: program.clone(),
            patience: TEMPLATE_PATIENCE,
        };
        TriedLoader {
            program,
            record: Record::new(record),
            patience: PATIENCE,
            loader: LocalLoader {
                templates: Some(templates),
            },
        }
    }

    /// The same, which gives a trial this long besides the time that reading the file takes, and as long to a template.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> TriedLoader {
        if let Some(templates) = &mut self.loader.templates {
            templates.patience = patience;
        }
        TriedLoader { patience, ..self }
    }
}

impl Loader for TriedLoader {
    fn load(
        &mut self,
        path: &Path,
        options: &LoadOptions,
        interrupt: &Arc<Interrupt>,
        report: &mut dyn FnMut(f32),
    ) -> Result<Loaded, EngineError> {
        // What these two can tell needs no trial.
        let files = ModelFiles::open(path).ok();
        let key = files
            .as_ref()
            .and_then(|files| record::key(&files.paths, options));
        let known = key.as_ref().is_some_and(|key| self.record.has(key));
        let (Some(files), Some(key), false, Some(text)) = (files, key, known, path.to_str()) else {
            return self.loader.load(path, options, interrupt, report);
        };
        let request = Request {
            path: text.to_owned(),
            options: options.clone(),
        };
        let patience = self.patience + Duration::from_secs(files.tensor_bytes / SLOWEST);
        drop(files);
        let mut first_half = |progress: f32| report(progress / 2.0);
        match try_in_child(
            &self.program,
            &request,
            patience,
            interrupt,
            &mut first_half,
        ) {
            Ok(Trial::Passed) => self.record.add(&key),
            Ok(Trial::Cancelled) => {
                return Err(EngineError::new("Loading was stopped.", ""));
            }
            Ok(Trial::Failed(error)) => return Err(error),
            // A system without room for a process: llama.cpp itself may still load it.
            Err(error) => tracing::warn!("no trial of {}: {error}", path.display()),
        }
        self.loader.load(path, options, interrupt, &mut |progress| {
            report(0.5 + progress / 2.0);
        })
    }
}

/// How a trial ended.
enum Trial {
    Passed,
    Cancelled,
    Failed(EngineError),
}

fn try_in_child(
    program: &Path,
    request: &Request,
    patience: Duration,
    interrupt: &Interrupt,
    report: &mut dyn FnMut(f32),
) -> std::io::Result<Trial> {
    tracing::info!("trying {} in a process of its own first", request.path);
    let mut child = Guard(
        Command::new(program)
            .arg(ARGUMENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?,
    );
    if let Some(mut input) = child.0.stdin.take() {
        // A child that died already says so by its status.
        let _ = input.write_all(&serde_json::to_vec(request)?);
    }
    let words = child.0.stderr.take().map(last_words);
    let reports = child.0.stdout.take().map(reports);
    let began = Instant::now();
    let mut verdict = None;
    let status = loop {
        let report_heard = match &reports {
            Some(reports) => reports.recv_timeout(STEP),
            None => Err(RecvTimeoutError::Disconnected),
        };
        match report_heard {
            Ok(Report::Progress(progress)) => report(progress),
            Ok(other) => verdict = Some(other),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(STEP),
        }
        if interrupt.is_cancelled() {
            return Ok(Trial::Cancelled);
        }
        if let Some(status) = child.0.try_wait()? {
            break status;
        }
        if began.elapsed() > patience {
            return Ok(Trial::Failed(EngineError::new(
                format!(
                    "Trying {} took longer than {} s and was ended.",
                    name(request),
                    patience.as_secs()
                ),
                "Choose another model with /model; the log (F2) may say more.",
            )));
        }
    };
    // The last report may have come with the end.
    for late in reports.iter().flatten() {
        match late {
            Report::Progress(progress) => report(progress),
            other => verdict = Some(other),
        }
    }
    let words = words
        .and_then(|words| words.recv_timeout(PATIENCE).ok())
        .unwrap_or_default();
    for line in words.lines() {
        tracing::info!("the trial said: {line}");
    }
    Ok(match verdict {
        Some(Report::Passed) if status.success() => Trial::Passed,
        Some(Report::Failed(error)) if status.success() => Trial::Failed(error),
        Some(Report::Passed | Report::Failed(_) | Report::Progress(_)) | None => {
            Trial::Failed(died(request, status, &words))
        }
    })
}

/// Kills the child where it is given up.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The child's reports as they come; the end of the channel is the end of its output.
fn reports(output: impl Read + Send + 'static) -> Receiver<Report> {
    let (sender, receiver) = channel();
    spawn("platen-trial-out", move || {
        let mut output = output;
        for line in BufReader::new(output.by_ref().take(LONGEST_REPORTS)).lines() {
            let report = line.ok().and_then(|line| serde_json::from_str(&line).ok());
            if let Some(report) = report
                && sender.send(report).is_err()
            {
                break;
            }
        }
        // What else it says is read and dropped, lest it wait for a reader.
        let _ = std::io::copy(&mut output, &mut std::io::sink());
    });
    receiver
}

/// The end of what the child says on standard error, once it says no more.
fn last_words(mut output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    spawn("platen-trial-err", move || {
        let mut kept = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = output.read(&mut buffer) {
            kept.extend_from_slice(&buffer[..count]);
            let surplus = kept.len().saturating_sub(KEPT_WORDS);
            kept.drain(..surplus);
        }
        let _ = sender.send(String::from_utf8_lossy(&kept).into_owned());
    });
    receiver
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) {
    if let Err(error) = std::thread::Builder::new().name(name.into()).spawn(work) {
        tracing::warn!("cannot start the thread {name}: {error}");
    }
}

fn name(request: &Request) -> String {
    let path = Path::new(&request.path);
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// What killed the child, as the user reads it.
fn died(request: &Request, status: ExitStatus, words: &str) -> EngineError {
    let name = name(request);
    let elsewhere =
        "Choose another model with /model, or download this one again; the log (F2) says more.";
    let Some(signal) = status.signal() else {
        return EngineError::new(format!("Trying {name} failed: {status}."), elsewhere);
    };
    match (signal, assertion(words)) {
        (libc::SIGABRT, Some(assertion)) => EngineError::new(
            format!("llama.cpp gave up on {name}: {assertion}."),
            elsewhere,
        ),
        (libc::SIGKILL, _) => EngineError::new(
            format!("Trying {name} was ended by the system; there was probably too little memory."),
            "Try a smaller --ctx or a smaller model.",
        ),
        (signal, _) => EngineError::new(
            format!("llama.cpp crashed on {name} ({}).", signal_name(signal)),
            elsewhere,
        ),
    }
}

/// What the last line with a reason says, without the path of the source file.
fn assertion(words: &str) -> Option<String> {
    let reason = |line: &&str| {
        [
            "GGML_ASSERT",
            "GGML_ABORT",
            "what():",
            "Assertion",
            "fatal error",
        ]
        .iter()
        .any(|sign| line.contains(sign))
    };
    let line = words.lines().rev().find(reason)?;
    let line = line.rsplit_once('/').map_or(line, |(_, end)| end);
    Some(line.trim().trim_end_matches('.').to_owned())
}

fn signal_name(signal: i32) -> String {
    match signal {
        libc::SIGABRT => "SIGABRT".into(),
        libc::SIGSEGV => "SIGSEGV: a bad memory access".into(),
        libc::SIGBUS => "SIGBUS: the file ends too early".into(),
        libc::SIGILL => "SIGILL: an unknown instruction".into(),
        libc::SIGFPE => "SIGFPE: an arithmetic fault".into(),
        other => format!("signal {other}"),
    }
}

#[cfg(test)]
mod tests;
