//! Checkpoints: what can't be cut back of a memory, kept as it was after certain tokens.

use crate::engine::event::Kept;

/// The checkpoints of one sequence, by how many tokens it held.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    kept: Vec<(usize, Vec<u8>)>,
}

impl Checkpoints {
    /// Whether there is one after so many tokens.
    pub(super) fn has(&self, len: usize) -> bool {
        self.kept.iter().any(|(at, _)| *at == len)
    }

    /// The last one after at most so many tokens.
    pub(super) fn last_within(&self, most: usize) -> Option<(usize, &[u8])> {
        let within = self.kept.iter().filter(|(at, _)| *at <= most);
        within
            .max_by_key(|(at, _)| *at)
            .map(|(at, bytes)| (*at, bytes.as_slice()))
    }

    /// Keeps one; where all take more than `budget` bytes, one goes whose neighbours are close together. The first
    /// and the last stay.
    pub(super) fn put(&mut self, len: usize, bytes: Vec<u8>, budget: usize) {
        if bytes.len() > budget {
            return;
        }
        self.kept.retain(|(at, _)| *at != len);
        let place = self.kept.partition_point(|(at, _)| *at < len);
        self.kept.insert(place, (len, bytes));
        while self.bytes() > budget as u64 && self.kept.len() > 1 {
            let inner = 1..self.kept.len() - 1;
            let closest = inner.min_by_key(|at| self.kept[at + 1].0 - self.kept[at - 1].0);
            self.kept.remove(closest.unwrap_or(0));
        }
    }

    pub(super) fn forget(&mut self, len: usize) {
        self.kept.retain(|(at, _)| *at != len);
    }

    /// Forgets those after more tokens.
    pub(super) fn truncate(&mut self, len: usize) {
        self.kept.retain(|(at, _)| *at <= len);
    }

    fn bytes(&self) -> u64 {
        self.kept.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }

    pub(super) fn summary(&self) -> Kept {
        Kept {
            states: u32::try_from(self.kept.len()).unwrap_or(u32::MAX),
            tokens: self.kept.last().map_or(0, |(at, _)| *at as u64),
            bytes: self.bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(checkpoints: &Checkpoints) -> Vec<usize> {
        checkpoints.kept.iter().map(|(at, _)| *at).collect()
    }

    #[test]
    fn the_last_one_within_reach_serves() {
        let mut checkpoints = Checkpoints::default();
        for at in [10, 30, 20] {
            checkpoints.put(at, vec![0; 8], 1_000);
        }
        assert_eq!(checkpoints.last_within(9), None);
        assert_eq!(checkpoints.last_within(29).map(|(at, _)| at), Some(20));
        checkpoints.truncate(20);
        assert_eq!(places(&checkpoints), [10, 20]);
    }

    #[test]
    fn over_the_budget_the_closest_neighbours_give_way_and_the_ends_stay() {
        let mut checkpoints = Checkpoints::default();
        for at in [10, 500, 510, 520, 1_000] {
            checkpoints.put(at, vec![0; 10], 40);
        }
        assert_eq!(places(&checkpoints), [10, 500, 520, 1_000]);
        checkpoints.put(1_001, vec![0; 100], 40);
        assert_eq!(
            places(&checkpoints),
            [10, 500, 520, 1_000],
            "one that is larger than the budget is not kept"
        );
    }
}
