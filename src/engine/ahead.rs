//! Reading ahead: while a message is still being written, what of the prompt can't change any more is read already, so
//! that after Enter only the rest is left.

use super::cache::Start;
use super::command::RequestId;
use super::event::{EngineError, Event};
use super::inference::Logits;
use super::ledger::{OwnedTokens, common_prefix};
use super::prompt::Ending;
use super::token::{ChatKey, PromptMessage, Role};
use super::turn::owned_tokens;
use super::worker::{Session, Worker};

/// How long a call should take, in seconds. It can be interrupted, but then what it read is lost.
const CALL_SECONDS: f64 = 0.25;
/// The same where a call can't be interrupted: Enter waits so long.
const WHOLE_CALL_SECONDS: f64 = 0.05;
/// The fewest tokens of a call: fewer cost nearly as much.
const FEWEST: usize = 16;
/// What may follow a draft; how they are tokenised differs in whether the end of the draft joins them.
const FOLLOWING: [&str; 3] = ["a", " a", "\n\n1"];

/// Reads what is stable of a conversation with a draft. Ends early when it is cancelled or when anything else is asked
/// for.
pub(super) fn run(
    worker: &mut Worker,
    mut session: Session,
    id: RequestId,
    (chat, messages, draft): (ChatKey, &[PromptMessage], &str),
) -> Session {
    match stable(&mut session, chat, messages, draft) {
        Ok(prompt) => read(worker, &mut session, id, chat, &prompt),
        // The turn itself will say what is wrong with the conversation.
        Err(error) => tracing::debug!("nothing is read ahead: {error}"),
    }
    session
}

/// The beginning of the prompt that stays whatever is typed next.
fn stable(
    session: &mut Session,
    chat: ChatKey,
    messages: &[PromptMessage],
    draft: &str,
) -> Result<OwnedTokens, EngineError> {
    let mut stable: Option<OwnedTokens> = None;
    for following in FOLLOWING {
        let message = PromptMessage::new(Role::User, format!("{draft}{following}"));
        let whole: Vec<PromptMessage> = messages.iter().cloned().chain([message]).collect();
        let prompt = owned_tokens(&session.prompt_ending(chat, &whole, Ending::Reply)?);
        stable = Some(match stable {
            None => prompt,
            Some(so_far) => common(so_far, &prompt),
        });
    }
    Ok(stable.unwrap_or_default())
}

fn common(mut a: OwnedTokens, b: &OwnedTokens) -> OwnedTokens {
    let len = common_prefix(&a.tokens, &b.tokens);
    a.tokens.truncate(len);
    a.owners.truncate(len);
    a
}

fn read(
    worker: &mut Worker,
    session: &mut Session,
    id: RequestId,
    chat: ChatKey,
    prompt: &OwnedTokens,
) {
    let facts = session.model.facts();
    let (batch, can_cut) = (facts.batch as usize, facts.memory.can_cut());
    let total = prompt.tokens.len();
    // A prompt that does not fit is the turn's to tell; and one more token must fit behind it.
    if total + 1 >= facts.context as usize || session.cache.holds(&prompt.tokens, chat) {
        return report(worker, session, id, total, total);
    }
    let Session { model, cache, .. } = session;
    let Start { plan, read_ahead } = cache.prepare(model.as_mut(), prompt, None, chat);
    cache.checkpoint(model.as_mut());
    cache.note_read_ahead(plan.keep - read_ahead);
    let mut start = plan.keep;
    while start < total {
        if worker.interrupt.covers(id.0) || worker.has_waiting() {
            break;
        }
        let end = (start + call_len(session)).min(start + batch).min(total);
        // A call that is cut off leaves a state that can't be trusted where it can't be cut back.
        worker
            .interrupt
            .begin(if can_cut { id.0 } else { u64::MAX });
        let began = worker.now();
        let Session { model, cache, .. } = &mut *session;
        let outcome = cache.decode(
            model.as_mut(),
            &prompt.tokens[start..end],
            &prompt.owners[start..end],
            Logits::None,
        );
        let held = cache.len();
        let (tokens, seconds) = &mut session.prefill_so_far;
        *tokens += held.saturating_sub(start) as u64;
        *seconds += worker.now().since(began).as_secs_f64();
        if let Err(error) = outcome {
            tracing::debug!("reading ahead ended: {error}");
            start = held;
            break;
        }
        start = end;
        report(worker, session, id, start, total);
    }
    report(worker, session, id, start, total);
}

fn report(worker: &Worker, session: &Session, id: RequestId, read: usize, total: usize) {
    let count = |tokens: usize| u32::try_from(tokens).unwrap_or(u32::MAX);
    let used = count(session.cache.used());
    worker.gauge(|gauges| gauges.cache_used = used);
    worker.emit(Event::ReadAhead {
        id,
        read: count(read),
        total: count(total),
    });
}

/// How many tokens the next call takes.
fn call_len(session: &Session) -> usize {
    let (tokens, seconds) = session.prefill_so_far;
    if tokens == 0 || seconds <= 0.0 {
        return FEWEST;
    }
    let wanted = if session.model.facts().memory.can_cut() {
        CALL_SECONDS
    } else {
        WHOLE_CALL_SECONDS
    };
    super::turn::whole(tokens as f64 / seconds * wanted).max(FEWEST)
}
