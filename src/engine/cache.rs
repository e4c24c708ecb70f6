//! The KV cache over all its sequences: which one serves a prompt, what of it is kept, what is set aside so that it need
//! not be read again, and where that has to give way.
//!
//! Prompts are matched by their tokens alone. A branch shares the cells of what it has in common with the one that it
//! leaves; a chat that is left is set aside in memory; a memory that can't be cut back has checkpoints.

mod checkpoint;
mod parked;
mod sequence;

use super::event::{CacheSnapshot, ModelFacts, RereadReason};
use super::inference::{DecodeError, Inference, Logits, Seq, StateError, StatePart, Truncation};
use super::ledger::{OwnedTokens, Owner, Plan};
use super::token::{ChatKey, TokenId};
use parked::{Entry, Parked};
use sequence::Sequence;

/// A state set aside saves so many tokens, or it is not worth putting back.
const WORTH_RESTORING: usize = 32;
/// So many tokens at the end of a sequence are worth a branch of their own.
const WORTH_KEEPING: usize = 16;

/// What the context holds, sequence by sequence, and what was set aside.
#[derive(Debug)]
pub(super) struct Cache {
    sequences: Vec<Sequence>,
    active: usize,
    parked: Parked,
    /// Grows with every use.
    uses: u64,
    /// Grows with every token read: names cells.
    read: u64,
    /// Bytes that checkpoints may take.
    checkpoint_budget: usize,
}

/// How the cache begins to serve a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Start {
    /// What is kept of the prompt and why no more.
    pub plan: Plan,
    /// How many of the tokens kept were read ahead of it.
    pub read_ahead: usize,
}

impl Cache {
    /// An empty cache of `sequences` sequences, which may set `ram` bytes aside.
    pub(super) fn new(sequences: u32, ram: usize) -> Cache {
        let count = sequences.max(1);
        Cache {
            sequences: (0..count)
                .map(|number| Sequence::new(Seq(number)))
                .collect(),
            active: 0,
            parked: Parked::new(ram),
            uses: 0,
            read: 0,
            checkpoint_budget: ram / 4,
        }
    }

    fn active(&self) -> &Sequence {
        &self.sequences[self.active]
    }

    /// The sequence that serves the last prompt.
    pub(super) fn seq(&self) -> Seq {
        self.active().seq
    }

    /// How many tokens that sequence holds.
    pub(super) fn len(&self) -> usize {
        self.active().ledger.len()
    }

    /// Cells in use; what several sequences share counts once.
    pub(super) fn used(&self) -> usize {
        let whole: usize = self.sequences.iter().map(|one| one.ledger.len()).sum();
        let shared: usize = self
            .sequences
            .iter()
            .enumerate()
            .map(|(at, one)| one.shared_with_any(&self.sequences[..at]))
            .sum();
        whole - shared
    }

    /// Cells that no other sequence shares with this one.
    fn own_cells(&self, at: usize) -> usize {
        let others = self.sequences.iter().enumerate();
        let shared = others
            .filter(|(other, _)| *other != at)
            .map(|(_, other)| self.sequences[at].shared_with(other))
            .max();
        self.sequences[at].ledger.len() - shared.unwrap_or(0)
    }

    /// Whether a sequence of this chat holds all of these tokens at its beginning.
    pub(super) fn holds(&self, tokens: &[TokenId], chat: ChatKey) -> bool {
        let mut own = self.sequences.iter().filter(|one| one.chat == chat);
        own.any(|one| one.ledger.tokens().starts_with(tokens))
    }

    /// Makes the best of what is held for a prompt: afterwards the active sequence holds the first
    /// [`Plan::keep`] tokens of it and nothing else.
    pub(super) fn prepare(
        &mut self,
        model: &mut dyn Inference,
        prompt: &OwnedTokens,
        changed: Option<usize>,
        chat: ChatKey,
    ) -> Start {
        self.uses += 1;
        let best = self.best(prompt, chat);
        let mut plan = self.sequences[best].ledger.plan(prompt, changed);
        if let Some(from) = self.sequences[best].ahead() {
            // What was read ahead was nobody's message yet.
            plan.newest_held = self.sequences[best].ledger.newest_within(from);
        }
        if self.sequences[best].chat != chat {
            (plan.reason, plan.newest_held) = (None, None);
        }
        let could_hold = plan.keep;
        self.active = best;
        let reach = self.reach(model.facts(), plan.keep);
        plan.keep = if let Some(keep) = self.unpark(model, prompt, reach) {
            keep
        } else {
            // The attempt may have cost the sequence that was to serve.
            self.active = self.best(prompt, chat);
            let common = self.active().common(&prompt.tokens);
            self.cut(model, plan.keep.min(common))
        };
        if plan.keep < could_hold {
            plan.reason = Some(RereadReason::CannotRollBack);
        }
        let active = &mut self.sequences[self.active];
        active.chat = chat;
        active.used_at = self.uses;
        active.ledger.keep(&prompt.owners[..plan.keep]);
        let read_ahead = active.take_read_ahead();
        self.make_room(model, prompt.tokens.len() + 1 - plan.keep);
        Start { plan, read_ahead }
    }

    /// The sequence that shares the most with a prompt; among equals the chat's own, then the latest used.
    fn best(&self, prompt: &OwnedTokens, chat: ChatKey) -> usize {
        let rank = |one: &Sequence| (one.common(&prompt.tokens), one.chat == chat, one.used_at);
        (0..self.sequences.len())
            .max_by_key(|at| rank(&self.sequences[*at]))
            .unwrap_or(0)
    }

    /// How many of its first `keep` tokens the active sequence can be brought down to.
    fn reach(&self, facts: &ModelFacts, keep: usize) -> usize {
        let active = self.active();
        if facts.memory.can_cut() || keep == active.ledger.len() {
            return keep;
        }
        let checkpoint = active.checkpoints.last_within(keep);
        checkpoint.map_or(0, |(len, _)| len)
    }

    /// Puts a state back that was set aside, where that spares enough of the prompt. Returns how much of the prompt
    /// the active sequence holds then.
    fn unpark(
        &mut self,
        model: &mut dyn Inference,
        prompt: &OwnedTokens,
        keep: usize,
    ) -> Option<usize> {
        let most = prompt.tokens.len().saturating_sub(1);
        let cuts = model.facts().memory.can_cut();
        let (at, reach) = self.parked.best(&prompt.tokens, most, cuts)?;
        if reach < keep + WORTH_RESTORING {
            return None;
        }
        let entry = self.parked.take(at);
        let target = self.free_sequence(model, Some(self.active));
        self.clear_sequence(model, target);
        let needed = entry.held.tokens.len();
        self.active = target;
        self.make_room(model, needed);
        if self.used() + needed > model.facts().context as usize {
            self.parked.put(entry);
            return None;
        }
        if let Err(error) = self.fill(model, target, &entry) {
            tracing::warn!("a state set aside could not be put back: {error}");
            return None;
        }
        let len = self.sequences[target].ledger.len();
        let kept = if reach < len {
            self.cut(model, reach)
        } else {
            len
        };
        (kept > 0).then_some(kept)
    }

    /// Fills an empty sequence with a state.
    fn fill(
        &mut self,
        model: &mut dyn Inference,
        at: usize,
        entry: &Entry,
    ) -> Result<(), StateError> {
        let seq = self.sequences[at].seq;
        let restored = model.restore(seq, StatePart::Whole, &entry.bytes);
        if let Err(error) = restored {
            self.follow(model);
            return Err(error);
        }
        if model.len(seq) != entry.held.tokens.len() {
            self.clear_sequence(model, at);
            return Err(StateError::Mismatch);
        }
        let cells = self.read..self.read + entry.held.tokens.len() as u64;
        self.read = cells.end;
        let sequence = &mut self.sequences[at];
        sequence.hold(&entry.held, cells, entry.chat);
        Ok(())
    }

    /// Brings the active sequence down to the first `keep` tokens of the prompt, which it begins with. What it held
    /// beyond stays in a sequence of its own or is set aside, where there is room. Returns how many tokens are kept.
    fn cut(&mut self, model: &mut dyn Inference, keep: usize) -> usize {
        let len = self.len();
        if keep == len {
            return keep;
        }
        let worth = self.active().tail_worth(keep) >= WORTH_KEEPING;
        if worth && self.branch(model, keep) {
            return keep;
        }
        if worth && !model.facts().memory.can_cut() {
            self.park(model, self.active);
        }
        let seq = self.seq();
        if model.truncate(seq, keep) == Truncation::Done {
            self.sequences[self.active].truncate(keep);
            return keep;
        }
        if let Some(kept) = self.roll_back(model, keep) {
            return kept;
        }
        self.lose(model, RereadReason::CannotRollBack);
        0
    }

    /// Leaves the active sequence as it is and goes on in another one that shares its first `keep` tokens, if any.
    fn branch(&mut self, model: &mut dyn Inference, keep: usize) -> bool {
        if self.sequences.len() < 2 {
            return false;
        }
        let from = self.active;
        let to = self.free_sequence(model, Some(from));
        self.clear_sequence(model, to);
        let (from_seq, to_seq) = (self.sequences[from].seq, self.sequences[to].seq);
        if keep > 0 && !model.share(from_seq, to_seq, keep) {
            self.clear_sequence(model, to);
            return false;
        }
        let shared = self.sequences[from].first(keep);
        self.sequences[to].take_over(shared);
        self.active = to;
        true
    }

    /// A sequence to fill anew: an empty one, else the one used longest ago, which is set aside first.
    fn free_sequence(&mut self, model: &mut dyn Inference, spare: Option<usize>) -> usize {
        if let Some(empty) = self.sequences.iter().position(|one| one.ledger.is_empty()) {
            return empty;
        }
        let oldest = (0..self.sequences.len())
            .filter(|at| Some(*at) != spare)
            .min_by_key(|at| self.sequences[*at].used_at)
            .unwrap_or(self.active);
        self.park(model, oldest);
        oldest
    }

    /// Sets a sequence aside, where its end is worth it and the budget allows.
    fn park(&mut self, model: &mut dyn Inference, at: usize) {
        let sequence = &self.sequences[at];
        let own = if self.sequences.len() == 1 {
            sequence.ledger.len()
        } else {
            self.own_cells(at)
        };
        if own < WORTH_RESTORING {
            return;
        }
        let held = sequence.held();
        if self.parked.holds(&held.tokens) {
            return;
        }
        let estimate =
            held.tokens.len() as u64 * model.facts().kv_bytes_per_token + model.facts().state_bytes;
        if !self.parked.would_take(estimate) {
            return;
        }
        match model.save(sequence.seq, StatePart::Whole) {
            Ok(bytes) => self.parked.put(Entry {
                chat: sequence.chat,
                held,
                bytes,
                used_at: sequence.used_at,
            }),
            Err(error) => tracing::warn!("a state could not be set aside: {error}"),
        }
    }

    /// Frees cells until `needed` are free, from the sequence used longest ago on; the active one stays.
    pub(super) fn make_room(&mut self, model: &mut dyn Inference, needed: usize) {
        let size = model.facts().context as usize;
        while self.used() + needed > size {
            let victim = (0..self.sequences.len())
                .filter(|at| *at != self.active && self.own_cells(*at) > 0)
                .min_by_key(|at| self.sequences[*at].used_at);
            let Some(victim) = victim else { return };
            self.park(model, victim);
            self.clear_sequence(model, victim);
        }
    }

    /// Sets everything aside that belongs to other chats: their cells would slow every step down. What was read ahead in
    /// a sequence that then did not serve is dropped.
    pub(super) fn leave_others(&mut self, model: &mut dyn Inference) {
        let chat = self.active().chat;
        for at in 0..self.sequences.len() {
            let other = &self.sequences[at];
            if at == self.active || other.ledger.is_empty() {
                continue;
            }
            if other.chat != chat {
                self.park(model, at);
                self.clear_sequence(model, at);
            } else if let Some(from) = other.ahead()
                && model.truncate(other.seq, from) == Truncation::Done
            {
                self.sequences[at].truncate(from);
            }
        }
    }

    fn clear_sequence(&mut self, model: &mut dyn Inference, at: usize) {
        if !self.sequences[at].ledger.is_empty() || model.len(self.sequences[at].seq) > 0 {
            model.forget(self.sequences[at].seq);
        }
        self.sequences[at].clear();
    }

    /// Decodes tokens at the end of the active sequence and keeps the ledger in step, whatever comes of it.
    pub(super) fn decode(
        &mut self,
        model: &mut dyn Inference,
        tokens: &[TokenId],
        owners: &[Owner],
        logits: Logits,
    ) -> Result<(), DecodeError> {
        self.make_room(model, tokens.len());
        let start = self.len();
        let outcome = model.decode(self.seq(), tokens, start, logits);
        let cells = self.read..self.read + tokens.len() as u64;
        self.read = cells.end;
        self.sequences[self.active].append(tokens, owners, cells);
        if let Err(error) = outcome {
            self.resync(model, start, error);
        }
        outcome
    }

    /// Notes that what the active sequence holds from `start` on was read before it was asked for.
    pub(super) fn note_read_ahead(&mut self, start: usize) {
        self.sequences[self.active].note_read_ahead(start);
    }

    /// Brings the ledger in step with the context after a decode of what stands behind `start` failed; where the
    /// context can't be trusted, goes back to a checkpoint or empties both.
    fn resync(&mut self, model: &mut dyn Inference, start: usize, error: DecodeError) {
        let held = model.len(self.seq());
        let untouched = match error {
            DecodeError::Full | DecodeError::Invalid(_) => held == start,
            DecodeError::Cancelled | DecodeError::Failed(_) => false,
        };
        let trusted = model.facts().memory.can_cut() && held <= self.len();
        if untouched || trusted {
            self.sequences[self.active].truncate(held);
        } else if self.roll_back(model, start).is_none() {
            self.lose(model, RereadReason::DecodeFailed);
        }
    }

    /// Goes back to the last checkpoint within the first `most` tokens of the active sequence. Returns where it is.
    fn roll_back(&mut self, model: &mut dyn Inference, most: usize) -> Option<usize> {
        let active = &mut self.sequences[self.active];
        while let Some((len, bytes)) = active.checkpoints.last_within(most) {
            // What can be cut is cut first; what can't comes back with the checkpoint.
            let _ = model.truncate(active.seq, len);
            let restored = model.restore(active.seq, StatePart::Partial, bytes);
            if restored.is_ok() && model.len(active.seq) == len {
                active.truncate(len);
                return Some(len);
            }
            tracing::warn!("the checkpoint at token {len} could not be put back");
            active.checkpoints.forget(len);
            if model.len(active.seq) == 0 {
                break;
            }
        }
        None
    }

    /// Keeps the part of the state that can't be cut back, where there is one.
    pub(super) fn checkpoint(&mut self, model: &mut dyn Inference) {
        if model.facts().memory.can_cut() {
            return;
        }
        let active = &mut self.sequences[self.active];
        let len = active.ledger.len();
        if len == 0 || active.checkpoints.has(len) {
            return;
        }
        match model.save(active.seq, StatePart::Partial) {
            Ok(bytes) => active.checkpoints.put(len, bytes, self.checkpoint_budget),
            Err(error) => tracing::warn!("no checkpoint at token {len}: {error}"),
        }
    }

    /// Cuts the active sequence back, where the model can; tells whether it could.
    pub(super) fn truncate(&mut self, model: &mut dyn Inference, len: usize) -> bool {
        if self.len() <= len {
            return true;
        }
        let done = model.truncate(self.seq(), len) == Truncation::Done;
        if done {
            self.sequences[self.active].truncate(len);
        }
        done
    }

    /// What is held of a chat, with its state; the sequence of it that was used last, else what was set aside.
    pub(super) fn export(
        &self,
        model: &mut dyn Inference,
        chat: ChatKey,
    ) -> Result<Option<(OwnedTokens, Vec<u8>)>, StateError> {
        let own = self.sequences.iter().filter(|one| one.chat == chat);
        let live = own
            .filter(|one| one.ledger.len() >= WORTH_RESTORING)
            .max_by_key(|one| one.used_at);
        match live {
            Some(one) => Ok(Some((one.held(), model.save(one.seq, StatePart::Whole)?))),
            None => Ok(self
                .parked
                .latest_of(chat)
                .map(|entry| (entry.held.clone(), entry.bytes.clone()))),
        }
    }

    /// Takes in a state that was kept elsewhere.
    pub(super) fn import(
        &mut self,
        model: &mut dyn Inference,
        chat: ChatKey,
        held: OwnedTokens,
        bytes: Vec<u8>,
    ) -> Result<(), StateError> {
        self.uses += 1;
        let target = self.free_sequence(model, None);
        self.clear_sequence(model, target);
        self.active = target;
        self.make_room(model, held.tokens.len());
        let entry = Entry {
            chat,
            held,
            bytes,
            used_at: self.uses,
        };
        self.fill(model, target, &entry)?;
        self.sequences[target].used_at = self.uses;
        Ok(())
    }

    /// Brings every ledger in step after something that may have emptied the whole context.
    fn follow(&mut self, model: &dyn Inference) {
        for sequence in &mut self.sequences {
            if model.len(sequence.seq) != sequence.ledger.len() {
                sequence.clear();
            }
        }
    }

    /// Empties the active sequence because it could not serve.
    fn lose(&mut self, model: &mut dyn Inference, reason: RereadReason) {
        let active = &mut self.sequences[self.active];
        model.forget(active.seq);
        active.lose(reason);
        self.follow(model);
    }

    /// Forgets everything, what was set aside too.
    pub(super) fn clear(&mut self, model: &mut dyn Inference) {
        model.clear();
        for sequence in &mut self.sequences {
            sequence.clear();
        }
        self.parked.clear();
    }

    /// What the cache holds.
    pub(super) fn snapshot(&self, facts: &ModelFacts) -> CacheSnapshot {
        let count = |tokens: usize| u32::try_from(tokens).unwrap_or(u32::MAX);
        let used = count(self.used());
        CacheSnapshot {
            used,
            size: facts.context,
            bytes: u64::from(used) * facts.kv_bytes_per_token
                + if used > 0 { facts.state_bytes } else { 0 },
            capacity_bytes: facts.kv_capacity_bytes,
            spans: self.active().ledger.spans(),
            branches: used.saturating_sub(count(self.len())),
            parked: self.parked.summary(),
            checkpoints: self.active().checkpoints.summary(),
        }
    }
}
