//! A conversation with an engine, as a test drives it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use platen::clock::{Clock, Timestamp};
use platen::engine::command::{Command, GenerateRequest, RequestId};
use platen::engine::event::{
    CacheSnapshot, EngineError, Event, PrefillProgress, SampledToken, StopReason,
};
use platen::engine::inference::Loader;
use platen::engine::options::LoadOptions;
use platen::engine::sampling::Sampling;
use platen::engine::stats::TurnStats;
use platen::engine::token::{ChatKey, PromptMessage, Role, TokenRun};
use platen::engine::{EngineHandle, EngineOutput};

/// A running engine with a conversation.
pub struct Session {
    pub engine: EngineHandle,
    pub output: EngineOutput,
    pub clock: Arc<dyn Clock>,
    pub messages: Vec<PromptMessage>,
    pub sampling: Sampling,
    pub stop: Vec<String>,
    pub max_tokens: u32,
    pub chat: ChatKey,
    next_id: u64,
}

/// A reply with everything that was told about it.
#[derive(Debug)]
pub struct Reply {
    pub text: String,
    pub thinking_len: usize,
    pub stop: StopReason,
    pub tokens: TokenRun,
    pub stats: TurnStats,
    pub sampled: Vec<SampledToken>,
    pub prefill: Vec<PrefillProgress>,
    pub cache: CacheSnapshot,
    pub notices: Vec<String>,
}

/// A state that was taken back.
#[derive(Debug)]
pub struct Restored {
    pub tokens: u32,
    pub saved: Option<Duration>,
}

impl Session {
    pub fn start(loader: Box<dyn Loader>, clock: Arc<dyn Clock>) -> Session {
        let (engine, output) = platen::engine::spawn(loader, Arc::clone(&clock)).unwrap();
        Session {
            engine,
            output,
            clock,
            messages: Vec::new(),
            sampling: Sampling {
                temperature: 0.0,
                ..Sampling::default()
            },
            stop: Vec::new(),
            max_tokens: 64,
            chat: ChatKey::default(),
            next_id: 1,
        }
    }

    pub fn next_id(&mut self) -> RequestId {
        self.next_id += 1;
        RequestId(self.next_id)
    }

    pub fn event(&mut self) -> Event {
        self.output
            .events
            .blocking_recv()
            .expect("the engine thread ended")
    }

    pub fn load(
        &mut self,
        path: impl Into<PathBuf>,
        options: LoadOptions,
    ) -> Result<(), EngineError> {
        let id = self.next_id();
        self.engine.send(Command::Load {
            id,
            path: path.into(),
            options,
        });
        let mut ready = Ok(());
        loop {
            match self.event() {
                Event::Failed { error, .. } => {
                    ready = Err(error);
                    break;
                }
                Event::Cache { cache } if cache.size > 0 => break,
                _ => {}
            }
        }
        ready
    }

    pub fn ask(&mut self, text: &str) -> RequestId {
        self.messages.push(PromptMessage::new(Role::User, text));
        self.generate()
    }

    pub fn generate(&mut self) -> RequestId {
        let id = self.next_id();
        let submitted: Timestamp = self.clock.now();
        self.engine.send(Command::Generate {
            id,
            request: GenerateRequest {
                chat: self.chat,
                messages: self.messages.clone(),
                sampling: self.sampling.clone(),
                stop: self.stop.clone(),
                max_tokens: self.max_tokens,
                submitted,
            },
        });
        id
    }

    /// Takes the state of the chat back from a file; how many tokens it has, or why it was not taken.
    pub fn restore(&mut self, file: &Path) -> Result<Restored, Option<String>> {
        let id = self.next_id();
        self.engine.send(Command::Restore {
            id,
            chat: self.chat,
            file: file.to_owned(),
            messages: self.messages.clone(),
        });
        loop {
            match self.event() {
                Event::Restored { tokens, saved, .. } => return Ok(Restored { tokens, saved }),
                Event::NotRestored { reason, .. } => return Err(reason),
                _ => {}
            }
        }
    }

    /// Writes the state of the chat to a file.
    pub fn save(&mut self, file: &Path, budget: u64) {
        self.engine.send(Command::Save {
            chat: self.chat,
            file: file.to_owned(),
            budget,
        });
    }

    /// Waits for the end of a request; the reply joins the conversation where it has tokens.
    pub fn finish(&mut self, wanted: RequestId) -> Result<Reply, EngineError> {
        self.finish_with(wanted, |_, _| {})
    }

    pub fn finish_with(
        &mut self,
        wanted: RequestId,
        mut on_token: impl FnMut(&Session, &SampledToken),
    ) -> Result<Reply, EngineError> {
        let (mut text, mut thinking_len) = (String::new(), 0);
        let (mut sampled, mut prefill, mut notices) = (Vec::new(), Vec::new(), Vec::new());
        let mut ended = None;
        loop {
            match self.event() {
                Event::Token { id, token } if id == wanted => {
                    on_token(self, &token);
                    text.push_str(&token.text);
                    thinking_len += token.thinking_len;
                    sampled.push(token);
                }
                Event::Prefill { id, progress } if id == wanted => prefill.push(progress),
                Event::Notice { text } => notices.push(text),
                Event::Finished {
                    id,
                    stop,
                    tail,
                    tail_thinking_len,
                    tokens,
                    stats,
                } if id == wanted => {
                    text.push_str(&tail);
                    thinking_len += tail_thinking_len;
                    ended = Some((stop, tokens, stats));
                }
                Event::Failed { id, error } if id == wanted => return Err(error),
                Event::Cache { cache } => {
                    let Some((stop, tokens, stats)) = ended.take() else {
                        continue;
                    };
                    if !tokens.ids.is_empty() {
                        self.messages.push(PromptMessage {
                            role: Role::Assistant,
                            text: text.clone(),
                            tokens: Some(tokens.clone()),
                        });
                    }
                    return Ok(Reply {
                        text,
                        thinking_len,
                        stop,
                        tokens,
                        stats: *stats,
                        sampled,
                        prefill,
                        cache,
                        notices,
                    });
                }
                _ => {}
            }
        }
    }

    pub fn say(&mut self, text: &str) -> Reply {
        let id = self.ask(text);
        self.finish(id).unwrap()
    }
}
