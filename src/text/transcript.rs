//! The conversation as lines on the screen. Each item's lines are kept; a token that arrives wraps the last rows
//! of its own message and nothing else, so a frame costs the same at ten lines and at a hundred thousand.

mod block;
mod item;
mod scroll;

use std::fmt::Debug;

use block::{Block, Place};
pub use item::{Item, ItemKind, Items, Line, LineKind, Thinking};

/// What the top of the view holds on to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Anchor {
    /// The last line stays in sight.
    #[default]
    Follow,
    /// This place stays at the top, whatever arrives below and however wide the view becomes.
    Fixed { item: usize, id: u64, place: Place },
}

/// The wrapped lines of a conversation, and how far they are scrolled.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    blocks: Vec<Block>,
    /// For each item, how many lines there are up to its end.
    ends: Vec<usize>,
    width: u16,
    anchor: Anchor,
}

impl Transcript {
    /// An empty one, which follows what arrives.
    #[must_use]
    pub fn new() -> Self {
        Transcript::default()
    }

    /// Follows the items; only those that changed are wrapped again. Costs a comparison for each item.
    pub fn sync(&mut self, items: &(impl Items + ?Sized), width: u16) {
        self.sync_from(0, items, width);
    }

    /// As [`Transcript::sync`], where the items before `first` are known to be as they were: a streamed token
    /// costs nothing but its own item. After a change of width all items are wrapped again.
    pub fn sync_from(&mut self, first: usize, items: &(impl Items + ?Sized), width: u16) {
        let count = items.len();
        if width != self.width {
            self.blocks.clear();
            self.width = width;
        }
        self.blocks.truncate(count);
        let first = first.min(self.blocks.len());
        for index in first..count {
            let item = items.item(index);
            match self.blocks.get_mut(index) {
                Some(block) => block.follow(&item, index, width),
                None => self.blocks.push(Block::of(&item, index, width)),
            }
        }
        self.ends.truncate(first);
        let mut total = self.ends.last().copied().unwrap_or(0);
        for block in self.blocks.iter().skip(first) {
            total += block.lines().len();
            self.ends.push(total);
        }
        self.mend_anchor();
    }

    /// How many lines there are.
    #[must_use]
    pub fn total_lines(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The lines in sight in a view of `height` rows, from the top.
    pub fn visible(&self, height: u16) -> impl Iterator<Item = &Line> {
        let top = self.top(height);
        let item = self.ends.partition_point(|&end| end <= top);
        let before = item
            .checked_sub(1)
            .map_or(0, |previous| self.ends[previous]);
        let lines = self.blocks.iter().skip(item).flat_map(Block::lines);
        lines.skip(top - before).take(usize::from(height))
    }

    /// The item moved along with its place, or is gone.
    fn mend_anchor(&mut self) {
        let Anchor::Fixed { item, id, place } = self.anchor else {
            return;
        };
        if self.blocks.get(item).is_some_and(|block| block.id() == id) {
            return;
        }
        let moved = self.blocks.iter().position(|block| block.id() == id);
        self.anchor = match moved.or_else(|| (item < self.blocks.len()).then_some(item)) {
            Some(item) => Anchor::Fixed {
                item,
                id: self.blocks[item].id(),
                place,
            },
            None => Anchor::Follow,
        };
    }
}

#[cfg(test)]
mod tests;
