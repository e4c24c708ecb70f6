//! Where the cursor can go: by graphemes, words, lines, and by the rows on the screen.

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use super::Composer;
use crate::text::wrap::{Row, RowEnd, column_of};

/// Up or down a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vertical {
    Up,
    Down,
}

impl Composer {
    /// Moves one grapheme left.
    pub fn left(&mut self) {
        self.go(self.before(self.cursor));
    }

    /// Moves one grapheme right.
    pub fn right(&mut self) {
        self.go(self.after(self.cursor));
    }

    /// Moves to the start of this word or the one before.
    pub fn word_left(&mut self) {
        self.go(self.word_start(self.cursor));
    }

    /// Moves to the end of this word or the next.
    pub fn word_right(&mut self) {
        self.go(self.word_end(self.cursor));
    }

    /// Moves to the start of the line (of the text, not of the row).
    pub fn home(&mut self) {
        self.go(self.line_start(self.cursor));
    }

    /// Moves to the end of the line (of the text, not of the row).
    pub fn end(&mut self) {
        self.go(self.line_end(self.cursor));
    }

    /// Moves to the start of the text.
    pub fn text_start(&mut self) {
        self.go(0);
    }

    /// Moves to the end of the text.
    pub fn text_end(&mut self) {
        self.go(self.text.len());
    }

    /// Moves up a row of the view at `width` cells, keeping the column; false in the first row.
    pub fn up(&mut self, width: u16) -> bool {
        self.vertical(width, Vertical::Up)
    }

    /// Moves down a row of the view at `width` cells, keeping the column; false in the last row.
    pub fn down(&mut self, width: u16) -> bool {
        self.vertical(width, Vertical::Down)
    }

    fn vertical(&mut self, width: u16, direction: Vertical) -> bool {
        let rows = self.rows_at(width);
        let here = rows.row_of(self.cursor);
        let there = match direction {
            Vertical::Up => here.checked_sub(1),
            Vertical::Down => Some(here + 1),
        };
        let Some(target) = there.and_then(|there| rows.get(there)).copied() else {
            return false;
        };
        let goal = self
            .goal
            .unwrap_or_else(|| column_of(&self.text, rows[here], self.cursor, rows.width()));
        let at = self.at_column(target, goal, rows.width());
        drop(rows);
        // A row may begin within a cluster that is wider than a row.
        self.go(match direction {
            Vertical::Up => self.edge_at_or_before(at),
            Vertical::Down => self.edge_at_or_after(at),
        });
        self.goal = Some(goal);
        true
    }

    /// The last grapheme's edge in the row that is not past the column.
    fn at_column(&self, row: Row, goal: usize, width: usize) -> usize {
        let mut at = row.start;
        let mut column = 0;
        for grapheme in self.text[row.start..row.end].graphemes(true) {
            column += crate::text::width::drawn_width(grapheme, width);
            let next = at + grapheme.len();
            let past_row = row.ends == RowEnd::Soft && next == row.end;
            if column > goal || past_row {
                break;
            }
            at = next;
        }
        at
    }

    /// Moves the cursor, which ends a run of typing.
    fn go(&mut self, at: usize) {
        self.edits.seal();
        self.move_to(at);
    }

    /// Puts the cursor on the grapheme's edge at or after `at`.
    pub(super) fn move_to(&mut self, at: usize) {
        self.cursor = self.edge_at_or_after(at);
        self.goal = None;
    }

    pub(super) fn before(&self, at: usize) -> usize {
        let mut cursor = GraphemeCursor::new(at, self.text.len(), true);
        cursor
            .prev_boundary(&self.text, 0)
            .ok()
            .flatten()
            .unwrap_or(0)
    }

    pub(super) fn after(&self, at: usize) -> usize {
        let mut cursor = GraphemeCursor::new(at, self.text.len(), true);
        cursor
            .next_boundary(&self.text, 0)
            .ok()
            .flatten()
            .unwrap_or(self.text.len())
    }

    pub(super) fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |newline| newline + 1)
    }

    pub(super) fn line_end(&self, at: usize) -> usize {
        self.text[at..]
            .find('\n')
            .map_or(self.text.len(), |offset| at + offset)
    }

    pub(super) fn word_start(&self, at: usize) -> usize {
        let blanks_off = self.text[..at].trim_end_matches(|c| !is_word(c));
        let start = blanks_off.trim_end_matches(is_word).len();
        self.edge_at_or_before(start)
    }

    pub(super) fn word_end(&self, at: usize) -> usize {
        let rest = self.text[at..]
            .trim_start_matches(|c| !is_word(c))
            .trim_start_matches(is_word);
        self.edge_at_or_after(self.text.len() - rest.len())
    }

    fn edge_at_or_before(&self, at: usize) -> usize {
        if self.is_edge(at) {
            at
        } else {
            self.before(at)
        }
    }

    fn edge_at_or_after(&self, at: usize) -> usize {
        if self.is_edge(at) { at } else { self.after(at) }
    }

    fn is_edge(&self, at: usize) -> bool {
        GraphemeCursor::new(at, self.text.len(), true)
            .is_boundary(&self.text, 0)
            .unwrap_or(true)
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || !c.is_ascii() && !c.is_whitespace() && !c.is_control()
}
