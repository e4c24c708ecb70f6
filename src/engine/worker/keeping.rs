//! States of chats on disk: written when a chat is left, read back when it is opened again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Session, Worker};
use crate::engine::command::RequestId;
use crate::engine::event::{EngineError, Event};
use crate::engine::ledger::common_prefix;
use crate::engine::prompt::Ending;
use crate::engine::snapshot::{self, Basis, Snapshot, SnapshotError};
use crate::engine::token::{ChatKey, PromptMessage};

/// How many tokens a state must spare.
const WORTH_IT: usize = 32;

impl Worker {
    pub(super) fn save(&mut self, chat: ChatKey, file: PathBuf, budget: u64) {
        let Some(session) = &mut self.session else {
            return;
        };
        let snapshot = match session.state_of(chat) {
            Ok(Some(snapshot)) => snapshot,
            Ok(None) => return,
            Err(error) => return tracing::warn!("the chat's state can't be saved: {error}"),
        };
        let write = move || match snapshot::write(&snapshot, &file, budget) {
            Ok(Some(bytes)) => {
                let tokens = snapshot.held.tokens.len();
                tracing::info!("kept the state of {tokens} tokens on disk: {bytes} bytes");
            }
            Ok(None) => tracing::info!("the chat's state is larger than what may be kept on disk"),
            Err(error) => tracing::warn!("the chat's state was not kept: {error}"),
        };
        self.writing.retain(|writer| !writer.is_finished());
        let writer = std::thread::Builder::new()
            .name("platen-snapshot".to_owned())
            .spawn(write);
        match writer {
            Ok(writer) => self.writing.push(writer),
            Err(error) => tracing::warn!("the chat's state was not kept: {error}"),
        }
    }

    pub(super) fn restore(
        &mut self,
        id: RequestId,
        chat: ChatKey,
        file: &Path,
        messages: &[PromptMessage],
    ) {
        let began = self.now();
        // One that is being written may be the one that is asked for.
        for writer in self.writing.drain(..) {
            let _ = writer.join();
        }
        let Some(session) = &mut self.session else {
            return;
        };
        let event = match session.take_back(chat, file, messages) {
            Ok(Taken { tokens, saved }) => Event::Restored {
                id,
                tokens: u32::try_from(tokens).unwrap_or(u32::MAX),
                took: self.now().since(began),
                saved,
            },
            Err(NotTaken::Snapshot(SnapshotError::Missing)) => {
                Event::NotRestored { id, reason: None }
            }
            Err(error) => Event::NotRestored {
                id,
                reason: Some(error.to_string()),
            },
        };
        let cache = self.session.as_ref().map(Session::snapshot);
        if let Some(cache) = cache {
            self.gauge(|gauges| gauges.cache_used = cache.used);
            self.emit(event);
            self.emit(Event::Cache { cache });
        }
    }
}

/// What a state spares.
struct Taken {
    tokens: usize,
    saved: Option<Duration>,
}

/// Why a state was not taken.
#[derive(Debug, thiserror::Error)]
enum NotTaken {
    #[error("{0}")]
    Snapshot(#[from] SnapshotError),
    #[error("{0}")]
    Prompt(#[from] EngineError),
    #[error("the chat is another one by now")]
    OtherChat,
    #[error("it does not fit into this context")]
    TooLarge,
    #[error("{0}")]
    State(#[from] crate::engine::inference::StateError),
}

impl Session {
    fn state_of(&mut self, chat: ChatKey) -> Result<Option<Snapshot>, NotTaken> {
        let exported = self.cache.export(self.model.as_mut(), chat)?;
        let (tokens, seconds) = self.prefill_so_far;
        Ok(exported.map(|(held, state)| Snapshot {
            basis: Basis::of(self.model.facts()),
            chat_time: self.time_of(chat),
            prefill_tok_s: (seconds > 0.0).then(|| tokens as f64 / seconds),
            held,
            state,
        }))
    }

    fn take_back(
        &mut self,
        chat: ChatKey,
        file: &Path,
        messages: &[PromptMessage],
    ) -> Result<Taken, NotTaken> {
        let facts = self.model.facts();
        let (context, can_cut) = (facts.context as usize, facts.memory.can_cut());
        let mut snapshot = snapshot::read(file, &Basis::of(facts))?;
        // The date of the chat's first prompt is part of what was read.
        self.chat_times.insert(chat, snapshot.chat_time);
        let prompt = self.prompt_ending(chat, messages, Ending::LastMessage)?;
        let common = common_prefix(&snapshot.held.tokens, &prompt.tokens);
        let len = snapshot.held.tokens.len();
        if common < WORTH_IT || (!can_cut && common < len) {
            return Err(NotTaken::OtherChat);
        }
        if len > context {
            return Err(NotTaken::TooLarge);
        }
        let saved = snapshot
            .prefill_tok_s
            .filter(|rate| rate.is_finite() && *rate > 0.0)
            .map(|rate| Duration::from_secs_f64((common as f64 / rate).min(1e9)));
        let state = std::mem::take(&mut snapshot.state);
        self.cache
            .import(self.model.as_mut(), chat, snapshot.held, state)?;
        if common < len {
            self.cache.truncate(self.model.as_mut(), common);
        }
        Ok(Taken {
            tokens: common,
            saved,
        })
    }
}
