//! The prompt as drawn: wrapped, harmless, scrolled so that the cursor is in sight.

use std::cell::Ref;

use super::Composer;
use crate::text::wrap::{Rows, column_of, shown};

/// What to draw of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ComposerView {
    /// The rows in sight, harmless, each narrower than the width.
    pub lines: Vec<String>,
    /// The cursor's column and row, in cells from the view's corner.
    pub cursor: (u16, u16),
    /// How many rows are out of sight above.
    pub first_row: usize,
    /// How many rows there are.
    pub total_rows: usize,
}

impl Composer {
    /// The prompt in at most `max_rows` rows of `width` cells. One cell a row is left free for the cursor.
    #[must_use]
    pub fn view(&self, width: u16, max_rows: u16) -> ComposerView {
        let rows = self.rows_at(width);
        let height = usize::from(max_rows);
        let here = rows.row_of(self.cursor);
        if height == 0 || width == 0 {
            return ComposerView {
                total_rows: rows.len(),
                first_row: here,
                ..ComposerView::default()
            };
        }
        let lowest = here.saturating_sub(height - 1);
        let highest = here.min(rows.len().saturating_sub(height));
        let first_row = self.first_row.get().clamp(lowest, highest.max(lowest));
        self.first_row.set(first_row);
        let seen = rows[first_row..].iter().take(height);
        let column = column_of(&self.text, rows[here], self.cursor, rows.width())
            .min(usize::from(width) - 1);
        ComposerView {
            lines: seen
                .map(|&row| shown(&self.text, row, rows.width()))
                .collect(),
            cursor: (clamped(column), clamped(here - first_row)),
            first_row,
            total_rows: rows.len(),
        }
    }

    /// How many rows the prompt takes at `width` cells.
    #[must_use]
    pub fn row_count(&self, width: u16) -> usize {
        self.rows_at(width).len()
    }

    pub(super) fn rows_at(&self, width: u16) -> Ref<'_, Rows> {
        let wrap_width = usize::from(width).saturating_sub(1).max(1);
        if self.rows.borrow().width() != wrap_width {
            self.rows.replace(Rows::of(&self.text, wrap_width));
        }
        self.rows.borrow()
    }
}

fn clamped(cells: usize) -> u16 {
    u16::try_from(cells).unwrap_or(u16::MAX)
}
