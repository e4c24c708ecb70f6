//! The child's side of a trial: load, decode a token, say how it went.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::engine::event::EngineError;
use crate::engine::expendable::be_expendable;
use crate::engine::inference::{Interrupt, Loader, Logits, Seq};
use crate::engine::local::LocalLoader;
use crate::engine::local::memory::System;
use crate::engine::options::{LoadOptions, MemoryCheck};
use crate::engine::token::TokenId;
use crate::llama::{backend, log};
use crate::logging::LogLevel;

/// Longest request, in bytes.
const LONGEST_REQUEST: u64 = 1 << 20;
/// How much the load has to move before it is told again.
const PROGRESS_STEP: f32 = 0.02;

/// What to try; on standard input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Request {
    /// The file.
    pub path: String,
    /// How to load it.
    pub options: LoadOptions,
}

/// How it goes; a line of standard output each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    /// From 0 to 1.
    Progress(f32),
    /// The model loads and decodes.
    Passed,
    /// It is refused.
    Failed(EngineError),
}

/// Tries the file that `input` names. Ends with the process that started it, leaves no core file, and is the first to
/// go where memory runs out.
///
/// # Errors
/// The request can't be read, or a report can't be written.
pub fn run(input: impl Read, mut output: impl Write + Send) -> std::io::Result<()> {
    let mut text = Vec::new();
    input.take(LONGEST_REQUEST).read_to_end(&mut text)?;
    let request: Request = serde_json::from_slice(&text)?;
    be_expendable(most_memory(request.options.memory));
    log::set_sink(|line| {
        if matches!(line.level, LogLevel::Warn | LogLevel::Error) {
            eprintln!("{}", line.text);
        }
    });
    // On a stack as large as the engine's: some tokenizers and templates go deep.
    let verdict = std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(crate::engine::STACK_BYTES)
            .spawn_scoped(scope, || match attempt(&request, &mut output) {
                Ok(()) => Report::Passed,
                Err(error) => Report::Failed(error),
            })
            .map(std::thread::ScopedJoinHandle::join)
    })?;
    let verdict = verdict.map_err(|_| std::io::Error::other("the trial panicked"))?;
    say(&verdict, &mut output)
}

fn attempt(request: &Request, output: &mut (impl Write + Send)) -> Result<(), EngineError> {
    let interrupt = Arc::new(Interrupt::default());
    interrupt.begin(1);
    let mut told = 0.0;
    let mut report = |progress: f32| {
        if progress - told >= PROGRESS_STEP {
            told = progress;
            // Nobody listens any more: the parent's end is noticed elsewhere.
            let _ = say(&Report::Progress(progress), output);
        }
    };
    let path = Path::new(&request.path);
    let mut loaded =
        LocalLoader::default().load(path, &request.options, &interrupt, &mut report)?;
    let decoded = loaded.model.decode(Seq(0), &[TokenId(0)], 0, Logits::Last);
    decoded.map_err(|error| {
        EngineError::new(
            format!("The model loads, but can't compute: {error}."),
            "Choose another model with /model.",
        )
    })
}

fn say(report: &Report, output: &mut impl Write) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}

/// What a file makes the program ask for beyond what is free is refused, where otherwise the system would swap. The
/// weights are mapped from the file and don't count; drivers of other processors map more than they use.
fn most_memory(memory: MemoryCheck) -> Option<u64> {
    match memory {
        MemoryCheck::Check if !backend::has_gpu() => System::here().free(),
        MemoryCheck::Check | MemoryCheck::Force => None,
    }
}
