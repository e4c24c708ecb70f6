//! An engine without a screen: what `ask`, plain chat and `prompt` share. Results go to standard output, everything
//! else to standard error.

use std::io::{IsTerminal, Write, stderr};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};

use crate::clock::{Clock, SystemClock};
use crate::config::Config;
use crate::engine::command::{Command, GenerateRequest, RequestId};
use crate::engine::event::{EngineError, Event, ModelFacts, StopReason};
use crate::engine::local::LocalLoader;
use crate::engine::sampling::Sampling;
use crate::engine::stats::TurnStats;
use crate::engine::token::{ChatKey, PromptMessage, Role, TokenRun};
use crate::engine::{EngineHandle, EngineOutput};
use crate::text::sanitize::neutral;
use crate::text::secrets::without_secrets;

/// A running engine with a model loaded.
pub struct Headless {
    engine: EngineHandle,
    output: EngineOutput,
    clock: Arc<dyn Clock>,
    next_id: u64,
    /// What is loaded.
    pub facts: ModelFacts,
}

/// A finished reply.
#[derive(Debug)]
pub struct Reply {
    /// The reply, as the conversation keeps it; `None` where nothing was generated.
    pub message: Option<PromptMessage>,
    /// Why it ended.
    pub stop: StopReason,
    /// Its numbers.
    pub stats: TurnStats,
}

impl Reply {
    /// Fails where the reply broke off.
    ///
    /// # Errors
    /// What broke it.
    pub fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.stop != StopReason::Error,
            "the answer broke off: a decode failed; the log says more"
        );
        Ok(())
    }
}

/// Hears what happens in the engine as it happens.
pub trait Listener {
    /// An event came.
    ///
    /// # Errors
    /// What it writes to is gone.
    fn on_event(&mut self, event: &Event) -> std::io::Result<()>;
}

impl Headless {
    /// Starts an engine and loads a model.
    ///
    /// # Errors
    /// The model can't be loaded, with what to do.
    pub fn open(
        path: &Path,
        config: &Config,
        listener: &mut dyn Listener,
    ) -> anyhow::Result<Headless> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let (engine, mut output) =
            crate::engine::spawn(Box::new(LocalLoader::default()), Arc::clone(&clock))
                .context("the engine thread can't be started")?;
        let id = RequestId(1);
        engine.send(Command::Load {
            id,
            path: path.to_owned(),
            options: config.load.clone(),
        });
        let mut progress = LoadProgress::new();
        let facts = loop {
            let event = next(&mut output)?;
            progress.show(&event);
            listener.on_event(&event)?;
            match event {
                Event::Ready { facts, .. } => break *facts,
                Event::Failed { error, .. } => bail!(told(&error)),
                _ => {}
            }
        };
        Ok(Headless {
            engine,
            output,
            clock,
            next_id: 2,
            facts,
        })
    }

    /// Answers a conversation.
    ///
    /// # Errors
    /// The engine's own, and those of the listener.
    pub fn reply(
        &mut self,
        messages: &[PromptMessage],
        config: &Config,
        listener: &mut dyn Listener,
    ) -> anyhow::Result<Reply> {
        let submitted = self.clock.now();
        let sampling = Sampling::default()
            .patched(&self.facts.recommended)
            .patched(&config.sampling);
        let id = self.fresh_id();
        self.engine.send(Command::Generate {
            id,
            request: GenerateRequest {
                chat: ChatKey::default(),
                messages: messages.to_vec(),
                sampling,
                stop: config.generation.stop.clone(),
                max_tokens: config.generation.max_tokens,
                submitted,
            },
        });
        let mut text = String::new();
        let mut first_token_at = None;
        loop {
            let event = next(&mut self.output)?;
            if matches!(event, Event::Token { .. }) {
                first_token_at.get_or_insert_with(|| self.clock.now());
            }
            listener.on_event(&event)?;
            match event {
                Event::Token { token, .. } => text.push_str(&token.text),
                Event::Failed { error, .. } => bail!(told(&error)),
                Event::Finished {
                    stop,
                    tail,
                    tokens,
                    stats,
                    ..
                } => {
                    text.push_str(&tail);
                    let mut stats = *stats;
                    if let Some(at) = first_token_at {
                        stats.ttft_ms = Some(crate::engine::timer::millis(at.since(submitted)));
                    }
                    return Ok(Reply {
                        message: reply_message(text, tokens),
                        stop,
                        stats,
                    });
                }
                _ => {}
            }
        }
    }

    /// A conversation as the model would see it: the answer is an [`Event::Prompt`].
    ///
    /// # Errors
    /// The engine's own.
    pub fn prompt(&mut self, messages: Vec<PromptMessage>) -> anyhow::Result<Event> {
        let id = self.fresh_id();
        self.engine.send(Command::Tokenize { id, messages });
        loop {
            match next(&mut self.output)? {
                event @ Event::Prompt { .. } => return Ok(event),
                Event::Failed { error, .. } => bail!(told(&error)),
                _ => {}
            }
        }
    }

    fn fresh_id(&mut self) -> RequestId {
        self.next_id += 1;
        RequestId(self.next_id)
    }
}

/// A new conversation: the system prompt, where there is one.
#[must_use]
pub fn opening(config: &Config) -> Vec<PromptMessage> {
    config
        .system
        .iter()
        .map(|system| PromptMessage::new(Role::System, system.clone()))
        .collect()
}

fn reply_message(text: String, tokens: TokenRun) -> Option<PromptMessage> {
    (!tokens.ids.is_empty()).then_some(PromptMessage {
        role: Role::Assistant,
        text,
        tokens: Some(tokens),
    })
}

fn next(output: &mut EngineOutput) -> anyhow::Result<Event> {
    output
        .events
        .blocking_recv()
        .context("the engine ended unexpectedly; the log says more")
}

fn told(error: &EngineError) -> String {
    if error.hint.is_empty() {
        error.message.clone()
    } else {
        format!("{}\n{}", error.message, error.hint)
    }
}

/// Loading, in per cent on a terminal and not at all elsewhere.
struct LoadProgress {
    shown: bool,
}

impl LoadProgress {
    fn new() -> Self {
        LoadProgress {
            shown: stderr().is_terminal(),
        }
    }

    fn show(&mut self, event: &Event) {
        if !self.shown {
            return;
        }
        // Progress that can't be shown is no failure.
        let _ = match event {
            Event::Loading { progress, .. } => {
                write!(stderr(), "\rloading {:3.0} %", progress * 100.0)
            }
            Event::Ready { .. } | Event::Failed { .. } => write!(stderr(), "\r\u{1b}[K"),
            _ => Ok(()),
        };
    }
}

/// Writes a notice to standard error.
pub fn notice(text: &str) {
    // Where standard error is gone there is nowhere to say it.
    let _ = writeln!(stderr(), "platen: {}", neutral(&without_secrets(text)));
}
