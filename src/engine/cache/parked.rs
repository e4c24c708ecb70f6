//! States set aside in memory, for chats and branches that were left.

use crate::engine::event::Kept;
use crate::engine::ledger::{OwnedTokens, common_prefix};
use crate::engine::token::{ChatKey, TokenId};

/// A state set aside.
#[derive(Debug)]
pub(super) struct Entry {
    pub chat: ChatKey,
    pub held: OwnedTokens,
    pub bytes: Vec<u8>,
    pub used_at: u64,
}

/// The states set aside, within a budget.
#[derive(Debug)]
pub(super) struct Parked {
    entries: Vec<Entry>,
    budget: usize,
}

impl Parked {
    /// None yet; all together may take `budget` bytes.
    pub(super) fn new(budget: usize) -> Parked {
        Parked {
            entries: Vec::new(),
            budget,
        }
    }

    /// Whether a state of so many bytes would be kept at all.
    pub(super) fn would_take(&self, bytes: u64) -> bool {
        bytes <= self.budget as u64
    }

    /// Whether a state of these very tokens is there.
    pub(super) fn holds(&self, tokens: &[TokenId]) -> bool {
        self.entries.iter().any(|entry| entry.held.tokens == tokens)
    }

    /// The state that spares most of a prompt and how many of its tokens, at most `most`. Where the memory can't be
    /// cut, only a state that is a beginning of the prompt serves.
    pub(super) fn best(
        &self,
        prompt: &[TokenId],
        most: usize,
        cuts: bool,
    ) -> Option<(usize, usize)> {
        let reach = |entry: &Entry| {
            let common = common_prefix(&entry.held.tokens, prompt);
            if cuts {
                common.min(most)
            } else if common == entry.held.tokens.len() && common <= most {
                common
            } else {
                0
            }
        };
        let reaches = self.entries.iter().map(reach).enumerate();
        reaches
            .max_by_key(|(_, reach)| *reach)
            .filter(|(_, reach)| *reach > 0)
    }

    /// The state of a chat that was used last.
    pub(super) fn latest_of(&self, chat: ChatKey) -> Option<&Entry> {
        let own = self.entries.iter().filter(|entry| entry.chat == chat);
        own.max_by_key(|entry| entry.used_at)
    }

    pub(super) fn take(&mut self, at: usize) -> Entry {
        self.entries.remove(at)
    }

    /// Keeps a state. It takes the place of those that are a beginning of it in the same chat, and of the ones used
    /// longest ago where all would take more than the budget.
    pub(super) fn put(&mut self, entry: Entry) {
        if entry.bytes.len() > self.budget {
            return;
        }
        self.entries.retain(|other| {
            other.chat != entry.chat || !entry.held.tokens.starts_with(&other.held.tokens)
        });
        self.entries.push(entry);
        while self.bytes() > self.budget as u64 {
            let oldest = (0..self.entries.len()).min_by_key(|at| self.entries[*at].used_at);
            self.entries.remove(oldest.unwrap_or(0));
        }
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    fn bytes(&self) -> u64 {
        let each = self.entries.iter().map(|entry| entry.bytes.len() as u64);
        each.sum()
    }

    pub(super) fn summary(&self) -> Kept {
        Kept {
            states: u32::try_from(self.entries.len()).unwrap_or(u32::MAX),
            tokens: self
                .entries
                .iter()
                .map(|entry| entry.held.tokens.len() as u64)
                .sum(),
            bytes: self.bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(chat: u64, tokens: &[i32], bytes: usize, used_at: u64) -> Entry {
        let tokens: Vec<TokenId> = tokens.iter().copied().map(TokenId).collect();
        Entry {
            chat: ChatKey(chat),
            held: OwnedTokens {
                owners: vec![crate::engine::ledger::Owner::default(); tokens.len()],
                tokens,
            },
            bytes: vec![0; bytes],
            used_at,
        }
    }

    fn ids(tokens: &[i32]) -> Vec<TokenId> {
        tokens.iter().copied().map(TokenId).collect()
    }

    #[test]
    fn the_longest_common_beginning_wins_and_a_memory_that_cannot_be_cut_needs_all_of_it() {
        let mut parked = Parked::new(1_000);
        parked.put(entry(1, &[1, 2, 3, 4], 10, 1));
        parked.put(entry(2, &[1, 2], 10, 2));
        let prompt = ids(&[1, 2, 3, 9]);
        assert_eq!(parked.best(&prompt, 3, true), Some((0, 3)));
        assert_eq!(parked.best(&prompt, 3, false), Some((1, 2)));
        assert_eq!(parked.best(&ids(&[7]), 0, true), None);
    }

    #[test]
    fn the_one_used_longest_ago_gives_way_and_a_longer_state_replaces_its_beginning() {
        let mut parked = Parked::new(25);
        parked.put(entry(1, &[1], 10, 1));
        parked.put(entry(1, &[1, 2], 10, 2));
        assert_eq!(parked.entries.len(), 1);
        parked.put(entry(2, &[5], 10, 3));
        parked.put(entry(3, &[6], 10, 4));
        assert_eq!(parked.summary().bytes, 20);
        assert!(!parked.holds(&ids(&[1, 2])));
        parked.put(entry(4, &[7], 26, 5));
        assert_eq!(parked.summary().states, 2, "larger than the budget");
    }
}
