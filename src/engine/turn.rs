//! One turn: the prompt is rendered, compared with the ledger, the rest is read in chunks, and tokens are sampled
//! until something ends the reply.

mod figures;

use super::cache::Start;
use super::command::{GenerateRequest, RequestId};
use super::event::{
    Alternative, EngineError, Event, Phase, PrefillProgress, Reread, SampledToken, StopReason,
};
use super::inference::{DecodeError, Logits};
use super::ledger::{OwnedTokens, Owner};
use super::prompt::{Prompt, Vocabulary};
use super::stream::{Pushed, ReplyStream};
use super::timer::{Sampled, TurnTimer};
use super::token::{ChatKey, TokenId, TokenRun};
use super::worker::{Session, Worker};
use crate::llama::sampler::{Choice, Sampler};
use crate::text::grouped;

/// Tokens of a session's first prefill call, where the batch allows.
const FIRST_CHUNK: usize = 64;
/// How long a prefill call should take, in seconds. Shorter calls read a few per cent slower.
const CHUNK_SECONDS: f64 = 2.0;
/// Prefill calls take a multiple of this many tokens.
const CHUNK_STEP: usize = 32;
/// How many candidates come with each token.
const SHOWN_CANDIDATES: usize = 8;

/// Serves a generate request and hands the session back.
pub(super) fn run(
    worker: &mut Worker,
    session: Session,
    id: RequestId,
    request: &GenerateRequest,
) -> Session {
    let timer = TurnTimer::start(request.submitted, worker.now());
    let mut turn = Turn {
        worker,
        session,
        id,
        timer,
        prefill: PrefillProgress::default(),
        run: TokenRun::default(),
        message: request.messages.len(),
    };
    if let Err(error) = turn.serve(request) {
        turn.worker.emit(Event::Failed { id, error });
    }
    turn.session
}

struct Turn<'a> {
    worker: &'a mut Worker,
    session: Session,
    id: RequestId,
    timer: TurnTimer,
    prefill: PrefillProgress,
    run: TokenRun,
    /// The reply's number among the messages.
    message: usize,
}

impl Turn<'_> {
    fn serve(&mut self, request: &GenerateRequest) -> Result<(), EngineError> {
        let vocab = self.session.model.facts().vocab;
        let seed = request.sampling.seed.unwrap_or_else(fresh_seed);
        let mut sampler = Sampler::new(vocab, &request.sampling, seed)
            .map_err(|error| EngineError::new(error.to_string(), "Change it with /set."))?;
        self.worker.phase(Phase::Templating);
        let prompt = self.session.prompt(request.chat, &request.messages)?;
        for notice in &prompt.notices {
            if self.session.is_news(notice) {
                self.worker.emit(Event::Notice {
                    text: notice.clone(),
                });
            }
        }
        let owned = owned_tokens(&prompt);
        self.timer.templated(self.worker.now());
        self.check_size(&owned)?;
        for token in &owned.tokens {
            sampler.accept(*token);
        }
        let stops: Vec<String> = request.stop.iter().chain(&prompt.stop).cloned().collect();
        let mut stream = ReplyStream::new(&stops, prompt.opens_thinking);
        let stop = match self.read(&owned, prompt.changed, request.chat)? {
            Some(stop) => stop,
            None => self.reply(&mut sampler, &mut stream, request.max_tokens)?,
        };
        self.finish(stop, &mut stream, &sampler);
        Ok(())
    }

    fn check_size(&self, prompt: &OwnedTokens) -> Result<(), EngineError> {
        let context = self.session.model.facts().context as usize;
        let needed = prompt.tokens.len();
        if needed == 0 {
            return Err(EngineError::new("The prompt is empty.", "Write a message."));
        }
        if needed <= context {
            return Ok(());
        }
        let newest = self.message.saturating_sub(1);
        let own = prompt
            .owners
            .iter()
            .filter(|owner| owner.message == Some(newest))
            .count();
        Err(EngineError::new(
            format!(
                "The conversation needs {} tokens, {} of them for the last message; the context holds {}.",
                grouped(needed as u64),
                grouped(own as u64),
                grouped(context as u64),
            ),
            "Shorten the message, begin a new chat with /new, or start with a larger --ctx.",
        ))
    }

    /// Reads what the cache lacks. Returns why the turn is already over, where it is.
    fn read(
        &mut self,
        prompt: &OwnedTokens,
        changed: Option<usize>,
        chat: ChatKey,
    ) -> Result<Option<StopReason>, EngineError> {
        let Session { model, cache, .. } = &mut self.session;
        let Start { plan, read_ahead } = cache.prepare(model.as_mut(), prompt, changed, chat);
        cache.leave_others(model.as_mut());
        cache.checkpoint(model.as_mut());
        let total = prompt.tokens.len();
        let tokens = count(plan.read_again(prompt));
        let reread = plan.reason.clone().map(|reason| Reread { tokens, reason });
        self.prefill = PrefillProgress {
            prompt_tokens: count(total),
            reused_tokens: count(plan.keep - read_ahead),
            read_ahead_tokens: count(read_ahead),
            read_tokens: 0,
            to_read_tokens: count(total - plan.keep),
            elapsed: std::time::Duration::ZERO,
            queue: self.timer.queue(),
            template: self.timer.template(),
            reread: reread.filter(|reread| reread.tokens > 0),
        };
        self.worker.phase(Phase::Prefill);
        self.report_prefill();
        let mut start = plan.keep;
        while start < total {
            if self.worker.interrupt.is_cancelled() {
                return Ok(Some(StopReason::Cancelled));
            }
            let end = self.chunk_end(start, total);
            let logits = if end == total {
                Logits::Last
            } else {
                Logits::None
            };
            self.timer.prefill_begins(self.worker.now());
            let outcome = self.decode(
                &prompt.tokens[start..end],
                &prompt.owners[start..end],
                logits,
            );
            let read = self.session.cache.len().saturating_sub(start);
            self.timer.prefill_read(count(read), self.worker.now());
            if !matches!(outcome, Ok(None)) {
                self.note_prefill();
            }
            if let Some(stop) = outcome? {
                return Ok(Some(stop));
            }
            start = end;
            if start < total {
                let Session { model, cache, .. } = &mut self.session;
                cache.checkpoint(model.as_mut());
            }
            self.report_prefill();
        }
        self.note_prefill();
        Ok(None)
    }

    /// Takes what was read into the session's rate.
    fn note_prefill(&mut self) {
        let (tokens, seconds) = &mut self.session.prefill_so_far;
        *tokens += u64::from(self.timer.read_tokens());
        *seconds += self.timer.prefill().as_secs_f64();
    }

    /// Where the next prefill call ends. A memory that can't be cut back has a checkpoint before the prompt's last
    /// token, so that a reply can be made anew by reading that one alone.
    fn chunk_end(&self, start: usize, total: usize) -> usize {
        let end = (start + self.chunk_len()).min(total);
        let can_cut = self.session.model.facts().memory.can_cut();
        if end == total && !can_cut && start + 1 < total {
            total - 1
        } else {
            end
        }
    }

    /// How many tokens the next prefill call takes: about two seconds' work, so that progress is seen and a cancel is
    /// soon heard where it can't interrupt a call; few while nothing has been measured yet.
    fn chunk_len(&self) -> usize {
        let (tokens, seconds) = self.session.prefill_so_far;
        let tokens = tokens as f64 + f64::from(self.timer.read_tokens());
        let seconds = seconds + self.timer.prefill().as_secs_f64();
        let wanted = if tokens > 0.0 && seconds > 0.0 {
            whole(tokens / seconds * CHUNK_SECONDS)
        } else {
            FIRST_CHUNK
        };
        let steps = (wanted / CHUNK_STEP).max(1);
        (steps * CHUNK_STEP).min(self.session.model.facts().batch as usize)
    }

    /// Decodes tokens at the end of what is held and keeps the ledger in step, whatever comes of it.
    fn decode(
        &mut self,
        tokens: &[TokenId],
        owners: &[Owner],
        logits: Logits,
    ) -> Result<Option<StopReason>, EngineError> {
        let Session { model, cache, .. } = &mut self.session;
        let Err(error) = cache.decode(model.as_mut(), tokens, owners, logits) else {
            return Ok(None);
        };
        match error {
            DecodeError::Cancelled => Ok(Some(StopReason::Cancelled)),
            DecodeError::Full => Ok(Some(StopReason::Context)),
            DecodeError::Invalid(_) | DecodeError::Failed(_) if self.run.ids.is_empty() => {
                Err(EngineError::new(
                    format!("Reading the prompt failed: {error}."),
                    "Send the message again; the log (F2) says more.",
                ))
            }
            DecodeError::Invalid(_) | DecodeError::Failed(_) => {
                tracing::error!("decode failed in mid-reply: {error}");
                Ok(Some(StopReason::Error))
            }
        }
    }

    fn report_prefill(&mut self) {
        let now = self.worker.now();
        self.prefill.read_tokens = self.timer.read_tokens();
        self.prefill.elapsed = self.timer.prefill_elapsed(now);
        let rate = self.timer.prefill_rate();
        let used = count(self.session.cache.used());
        self.worker.gauge(|gauges| {
            gauges.prefill_tok_s = rate;
            gauges.cache_used = used;
        });
        self.worker.emit(Event::Prefill {
            id: self.id,
            progress: self.prefill.clone(),
        });
    }

    /// Samples and decodes until the reply ends.
    fn reply(
        &mut self,
        sampler: &mut Sampler,
        stream: &mut ReplyStream,
        max_tokens: u32,
    ) -> Result<StopReason, EngineError> {
        self.worker.phase(Phase::Decode);
        loop {
            if self.worker.interrupt.is_cancelled() {
                return Ok(StopReason::Cancelled);
            }
            let changed = self.worker.live_sampling().filter(|settings| {
                let outcome = sampler.set(settings);
                if let Err(error) = &outcome {
                    tracing::warn!("sampling not changed: {error}");
                }
                outcome.is_ok()
            });
            let Some(logits) = self.session.model.logits() else {
                return Err(EngineError::new(
                    "The model computed no logits.",
                    "The log (F2) says more.",
                ));
            };
            let choice = sampler.choose(logits, SHOWN_CANDIDATES).map_err(|error| {
                EngineError::new(error.to_string(), "Choose another model with /model.")
            })?;
            let now = self.worker.now();
            let vocabulary = self.session.model.vocabulary();
            if vocabulary.is_eog(choice.token) {
                self.timer.sampled(Sampled::EndOfGeneration, now);
                return Ok(StopReason::Eog);
            }
            self.timer.sampled(Sampled::Text, now);
            let bytes = visible_bytes(vocabulary, choice.token);
            let pushed = stream.push(&bytes);
            self.run.ids.push(choice.token);
            let mut token = self.sampled(&choice, bytes, &pushed, sampler);
            token.sampling = changed.map(Box::new);
            self.worker.emit(Event::Token { id: self.id, token });
            if pushed.stopped {
                return Ok(StopReason::Stop);
            }
            if self.timer.generated() >= max_tokens {
                return Ok(StopReason::MaxTokens);
            }
            if self.session.cache.len() >= self.session.model.facts().context as usize {
                return Ok(StopReason::Context);
            }
            let owner = Owner {
                message: Some(self.message),
                role: Some(super::token::Role::Assistant),
            };
            if let Some(stop) = self.decode(&[choice.token], &[owner], Logits::Last)? {
                return Ok(stop);
            }
            let (rate, used) = (
                self.timer.live_decode_rate(),
                count(self.session.cache.used()),
            );
            self.worker.gauge(|gauges| {
                gauges.decode_tok_s = rate;
                gauges.cache_used = used;
            });
        }
    }

    fn sampled(
        &self,
        choice: &Choice,
        bytes: Vec<u8>,
        pushed: &Pushed,
        sampler: &Sampler,
    ) -> SampledToken {
        let vocabulary = self.session.model.vocabulary();
        let (text, thinking_len) = joined(pushed);
        SampledToken {
            id: choice.token,
            bytes,
            text,
            thinking_len,
            probability: choice.probability,
            alternatives: choice
                .candidates
                .iter()
                .map(|candidate| Alternative {
                    id: candidate.token,
                    text: String::from_utf8_lossy(&vocabulary.piece(candidate.token)).into_owned(),
                    probability: candidate.probability,
                    chance: candidate.chance,
                })
                .collect(),
            at: self.timer.last_sampled(),
            temperature: sampler.settings().temperature,
            sampling: None,
        }
    }

    fn finish(&mut self, stop: StopReason, stream: &mut ReplyStream, sampler: &Sampler) {
        let (tail, tail_thinking_len) = joined(&stream.finish());
        let kept = stream.kept();
        self.run.ids.truncate(kept.tokens);
        self.run.text_len = kept.text_len;
        if stop == StopReason::Stop {
            self.drop_stop_text();
        }
        let stats = self.stats(stop, sampler);
        self.worker.emit(Event::Finished {
            id: self.id,
            stop,
            tail,
            tail_thinking_len,
            tokens: self.run.clone(),
            stats: Box::new(stats),
        });
    }

    /// Takes the tokens of a stop string out of the cache, where the model can, so that it holds the reply alone.
    fn drop_stop_text(&mut self) {
        let reply_start = self.prefill.prompt_tokens as usize;
        let wanted = reply_start + self.run.ids.len();
        let Session { model, cache, .. } = &mut self.session;
        cache.truncate(model.as_mut(), wanted);
    }
}

/// The whole part of a positive number, at most a batch of any size.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive and below 2^24"
)]
pub(super) fn whole(number: f64) -> usize {
    number.clamp(0.0, f64::from(1 << 24)) as usize
}

fn count(tokens: usize) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

/// The bytes that a token adds to the reply: none for a control token, unless it tells thinking from answer.
fn visible_bytes(vocabulary: &dyn Vocabulary, token: TokenId) -> Vec<u8> {
    let bytes = vocabulary.piece(token);
    let hidden = vocabulary.is_control(token)
        && !std::str::from_utf8(&bytes).is_ok_and(ReplyStream::wants_control_text);
    if hidden { Vec::new() } else { bytes }
}

/// The new text, and how many bytes at its start are thinking.
fn joined(pushed: &Pushed) -> (String, usize) {
    let thinking = pushed.segments.iter().filter(|segment| segment.thinking);
    (
        pushed.text(),
        thinking.map(|segment| segment.text.len()).sum(),
    )
}

/// A seed that differs from run to run.
fn fresh_seed() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    #[expect(clippy::cast_possible_truncation, reason = "any 32 bits will do")]
    let seed = RandomState::new().hash_one(std::process::id()) as u32;
    // llama.cpp takes the largest value to mean a random seed, which could then not be reported.
    seed.min(u32::MAX - 1)
}

/// One owner for each token of a prompt.
pub(super) fn owned_tokens(prompt: &Prompt) -> OwnedTokens {
    let mut owners = vec![Owner::default(); prompt.tokens.len()];
    for span in &prompt.spans {
        for owner in &mut owners[span.tokens.clone()] {
            *owner = Owner {
                message: span.message,
                role: span.role,
            };
        }
    }
    OwnedTokens {
        tokens: prompt.tokens.clone(),
        owners,
    }
}
