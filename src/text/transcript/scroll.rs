//! Scrolling: the view follows the end, or keeps one place at its top until the user moves it.

use super::{Anchor, Transcript};

impl Transcript {
    /// Whether the view keeps up with what arrives.
    #[must_use]
    pub fn is_following(&self) -> bool {
        self.anchor == Anchor::Follow
    }

    /// Moves by lines, down where positive, in a view of `height` rows. At the very end the view follows again.
    pub fn scroll_by(&mut self, lines: i64, height: u16) {
        let last = self.last_top(height);
        let top = self.top(height);
        let distance = usize::try_from(lines.unsigned_abs()).unwrap_or(usize::MAX);
        if lines < 0 {
            self.fix(top.saturating_sub(distance), last);
        } else if lines > 0 {
            let below = top.saturating_add(distance);
            if below >= last {
                self.to_end();
            } else {
                self.fix(below, last);
            }
        }
    }

    /// Moves up by a view of `height` rows, less one line.
    pub fn page_up(&mut self, height: u16) {
        self.scroll_by(-page(height), height);
    }

    /// Moves down by a view of `height` rows, less one line.
    pub fn page_down(&mut self, height: u16) {
        self.scroll_by(page(height), height);
    }

    /// Moves to the first line and stays there, unless all lines are in sight.
    pub fn to_start(&mut self, height: u16) {
        self.fix(0, self.last_top(height));
    }

    /// Moves to the end and follows what arrives.
    pub fn to_end(&mut self) {
        self.anchor = Anchor::Follow;
    }

    /// Brings an item's first line to the top of a view of `height` rows.
    pub fn show_item(&mut self, item: usize, height: u16) {
        let top = item.checked_sub(1).map_or(0, |before| {
            self.ends.get(before).copied().unwrap_or(usize::MAX)
        });
        let last = self.last_top(height);
        if top >= last {
            self.to_end();
        } else {
            self.fix(top, last);
        }
    }

    /// How many lines are out of sight below.
    #[must_use]
    pub fn lines_below(&self, height: u16) -> usize {
        self.last_top(height) - self.top(height)
    }

    /// The first line in sight, counted from 0.
    #[must_use]
    pub fn top(&self, height: u16) -> usize {
        let last = self.last_top(height);
        match self.anchor {
            Anchor::Follow => last,
            Anchor::Fixed { item, place, .. } => {
                let before = item
                    .checked_sub(1)
                    .map_or(0, |previous| self.ends[previous]);
                (before + self.blocks[item].line_at(place)).min(last)
            }
        }
    }

    fn last_top(&self, height: u16) -> usize {
        self.total_lines().saturating_sub(usize::from(height))
    }

    /// Keeps the line at the top, unless all lines fit.
    fn fix(&mut self, top: usize, last: usize) {
        let item = self.ends.partition_point(|&end| end <= top);
        let Some(block) = self.blocks.get(item).filter(|_| last > 0) else {
            return;
        };
        let before = item
            .checked_sub(1)
            .map_or(0, |previous| self.ends[previous]);
        self.anchor = Anchor::Fixed {
            item,
            id: block.id(),
            place: block.place(top - before),
        };
    }
}

fn page(height: u16) -> i64 {
    i64::from(height.max(2)) - 1
}
