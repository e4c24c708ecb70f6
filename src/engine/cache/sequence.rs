//! One sequence of the context: its tokens, and which cells they are in.

use std::ops::Range;

use super::checkpoint::Checkpoints;
use crate::engine::event::RereadReason;
use crate::engine::inference::Seq;
use crate::engine::ledger::{Ledger, OwnedTokens, Owner, common_prefix};
use crate::engine::token::{ChatKey, TokenId};

/// A sequence.
#[derive(Debug)]
pub(super) struct Sequence {
    pub seq: Seq,
    pub ledger: Ledger,
    /// The cell of each token. Sequences share cells from their start on, up to where they part.
    cells: Vec<u64>,
    /// The chat that used it last.
    pub chat: ChatKey,
    /// When it was last used.
    pub used_at: u64,
    pub checkpoints: Checkpoints,
    /// Tokens from here on were read before they were asked for.
    ahead: Option<usize>,
}

impl Sequence {
    pub(super) fn new(seq: Seq) -> Sequence {
        Sequence {
            seq,
            ledger: Ledger::default(),
            cells: Vec::new(),
            chat: ChatKey::default(),
            used_at: 0,
            checkpoints: Checkpoints::default(),
            ahead: None,
        }
    }

    /// How many tokens it has in common with a prompt, from the start on.
    pub(super) fn common(&self, prompt: &[TokenId]) -> usize {
        common_prefix(self.ledger.tokens(), prompt)
    }

    /// How many cells it shares with another one.
    pub(super) fn shared_with(&self, other: &Sequence) -> usize {
        let most = self.cells.len().min(other.cells.len());
        // Once two sequences have parted they share nothing more, so the place can be halved for.
        let (mut low, mut high) = (0, most);
        while low < high {
            let middle = low.midpoint(high);
            if self.cells[middle] == other.cells[middle] {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The most that it shares with one of these.
    pub(super) fn shared_with_any(&self, others: &[Sequence]) -> usize {
        let shared = others.iter().map(|other| self.shared_with(other));
        shared.max().unwrap_or(0)
    }

    /// How many tokens behind the first `keep` somebody said or a model generated: what was only read ahead can be
    /// read again.
    pub(super) fn tail_worth(&self, keep: usize) -> usize {
        let end = self.ahead.unwrap_or(self.ledger.len());
        end.saturating_sub(keep)
    }

    /// From which token on what it holds was read ahead.
    pub(super) fn ahead(&self) -> Option<usize> {
        self.ahead
    }

    pub(super) fn note_read_ahead(&mut self, start: usize) {
        let from = self.ahead.unwrap_or(start).min(start);
        self.ahead = Some(from);
    }

    /// How many of the tokens held were read ahead; from now on they count as read.
    pub(super) fn take_read_ahead(&mut self) -> usize {
        let from = self.ahead.take();
        from.map_or(0, |from| self.ledger.len().saturating_sub(from))
    }

    pub(super) fn append(&mut self, tokens: &[TokenId], owners: &[Owner], cells: Range<u64>) {
        self.ledger.append(tokens, owners);
        self.cells.extend(cells);
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.ledger.truncate(len);
        self.cells.truncate(len);
        self.checkpoints.truncate(len);
        self.ahead = self.ahead.filter(|from| *from < len);
    }

    pub(super) fn clear(&mut self) {
        self.ledger.clear();
        self.forget_rest();
    }

    pub(super) fn lose(&mut self, reason: RereadReason) {
        self.ledger.lose(reason);
        self.forget_rest();
    }

    fn forget_rest(&mut self) {
        self.cells.clear();
        self.checkpoints = Checkpoints::default();
        self.ahead = None;
    }

    /// Tokens and owners of all that it holds.
    pub(super) fn held(&self) -> OwnedTokens {
        self.ledger.held().clone()
    }

    /// Fills an empty sequence.
    pub(super) fn hold(&mut self, held: &OwnedTokens, cells: Range<u64>, chat: ChatKey) {
        self.clear();
        self.append(&held.tokens, &held.owners, cells);
        self.chat = chat;
    }

    /// Its first `keep` tokens with their cells.
    pub(super) fn first(&self, keep: usize) -> (OwnedTokens, Vec<u64>) {
        let held = self.ledger.held();
        let first = OwnedTokens {
            tokens: held.tokens[..keep].to_vec(),
            owners: held.owners[..keep].to_vec(),
        };
        (first, self.cells[..keep].to_vec())
    }

    /// Fills an empty sequence with what another one shares.
    pub(super) fn take_over(&mut self, (held, cells): (OwnedTokens, Vec<u64>)) {
        self.clear();
        self.ledger.append(&held.tokens, &held.owners);
        self.cells = cells;
    }
}
