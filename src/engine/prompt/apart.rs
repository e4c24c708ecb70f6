//! A template rendered in a process of its own. It is the model file's program: what it does to memory and stack, and
//! how long it takes, then costs a message and not the chat. The process serves one template, a line of JSON each way
//! for each conversation, and is started again where it died.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::template::{Ending, RenderOptions, Template, TemplateError, TemplateMessage};
use crate::engine::expendable::be_expendable;
use crate::engine::token::Role;

/// The argument that makes the program render a template.
pub const ARGUMENT: &str = "__render";

/// What the process may allocate, in bytes.
const MOST_MEMORY: u64 = 1 << 30;
/// The slowest rendering that is waited for, in bytes of messages a second, besides the patience.
const SLOWEST: usize = 1 << 20;

/// What is rendered; the first line that the process gets.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Subject {
    source: String,
    bos: String,
    eos: String,
}

/// A conversation; every other line that the process gets.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    messages: Vec<(Role, String)>,
    ending: Ending,
    variables: BTreeMap<String, serde_json::Value>,
    now: jiff::civil::DateTime,
}

/// The way to the process.
#[derive(Debug)]
pub(super) struct Apart {
    program: PathBuf,
    subject: Subject,
    patience: Duration,
    process: Mutex<Option<Process>>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    input: ChildStdin,
    answers: Receiver<Result<String, TemplateError>>,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Apart {
    /// Renders this template by `program`, which takes [`ARGUMENT`]; a conversation may take this long.
    pub(super) fn new(
        program: PathBuf,
        (source, bos, eos): (&str, &str, &str),
        patience: Duration,
    ) -> Apart {
        Apart {
            program,
            subject: Subject {
                source: source.to_owned(),
                bos: bos.to_owned(),
                eos: eos.to_owned(),
            },
            patience,
            process: Mutex::new(None),
        }
    }

    /// Renders a conversation; `None` where no process can be started.
    pub(super) fn render(
        &self,
        messages: &[TemplateMessage],
        options: &RenderOptions,
    ) -> Option<Result<String, TemplateError>> {
        let mut slot = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            *slot = self
                .start()
                .inspect_err(|error| tracing::warn!("no process to render templates: {error}"))
                .ok();
        }
        let process = slot.as_mut()?;
        let bytes: usize = messages.iter().map(|message| message.content.len()).sum();
        let patience = self.patience + Duration::from_secs((bytes / SLOWEST) as u64);
        let answer = process.ask(&Request::of(messages, options), patience);
        if let Err(TemplateError::Endless | TemplateError::Died) = &answer {
            *slot = None;
        }
        Some(answer)
    }

    fn start(&self) -> std::io::Result<Process> {
        let mut child = Command::new(&self.program)
            .arg(ARGUMENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let missing = || std::io::Error::other("the process has no pipes");
        let mut input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let (sender, answers) = channel();
        std::thread::Builder::new()
            .name("platen-render".to_owned())
            .spawn(move || {
                for line in BufReader::new(output).lines() {
                    let answer = line.ok().and_then(|line| serde_json::from_str(&line).ok());
                    let Some(answer) = answer else { break };
                    if sender.send(answer).is_err() {
                        break;
                    }
                }
            })?;
        write_line(&mut input, &self.subject)?;
        Ok(Process {
            child,
            input,
            answers,
        })
    }
}

impl Process {
    fn ask(&mut self, request: &Request, patience: Duration) -> Result<String, TemplateError> {
        if write_line(&mut self.input, request).is_err() {
            return Err(TemplateError::Died);
        }
        match self.answers.recv_timeout(patience) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => Err(TemplateError::Endless),
            Err(RecvTimeoutError::Disconnected) => Err(TemplateError::Died),
        }
    }
}

impl Request {
    fn of(messages: &[TemplateMessage], options: &RenderOptions) -> Request {
        Request {
            messages: messages
                .iter()
                .map(|message| (message.role, message.content.clone()))
                .collect(),
            ending: options.ending,
            variables: options.variables.clone(),
            now: options.now,
        }
    }
}

fn write_line(to: &mut impl Write, value: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// The process's side: renders until there is nothing more to read.
///
/// # Errors
/// What comes is no request, or an answer can't be written.
pub fn run_child(input: impl BufRead + Send, output: impl Write + Send) -> std::io::Result<()> {
    be_expendable(Some(MOST_MEMORY));
    // On a stack as large as the engine's, so that what renders there renders here.
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(crate::engine::STACK_BYTES)
            .spawn_scoped(scope, || serve(input, output))?
            .join()
            .map_err(|_| std::io::Error::other("the template made the program panic"))?
    })
}

fn serve(input: impl BufRead, mut output: impl Write) -> std::io::Result<()> {
    let mut lines = input.lines();
    let Some(first) = lines.next().transpose()? else {
        return Ok(());
    };
    let subject: Subject = serde_json::from_str(&first)?;
    let template = Template::parse(&subject.source, &subject.bos, &subject.eos);
    for line in lines {
        let request: Request = serde_json::from_str(&line?)?;
        let messages: Vec<TemplateMessage> = request
            .messages
            .into_iter()
            .map(|(role, content)| TemplateMessage { role, content })
            .collect();
        let options = RenderOptions {
            ending: request.ending,
            variables: request.variables,
            now: request.now,
        };
        let answer = match &template {
            Ok(template) => template.render(&messages, &options),
            Err(error) => Err(error.clone()),
        };
        write_line(&mut output, &answer)?;
    }
    Ok(())
}
