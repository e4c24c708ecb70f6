//! Word wrap that always gets on: at spaces and between wide characters where it can, at graphemes where it must.
//! A row is found from its start alone, so that after a change only the rows around it are found anew.

use super::piece::{Piece, PieceKind, TOO_WIDE, first, pieces};
use super::width::drawn_width;

/// How many rows before a change may depend on what was changed.
const LOOK_BACK: usize = 2;

/// What ends a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowEnd {
    /// The width.
    Soft,
    /// A newline.
    Newline,
    /// The end of the text.
    Text,
}

/// A row, as byte offsets into the text. Spaces that would stick out stay at the row's end, undrawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Its first byte.
    pub start: usize,
    /// The byte after its last, without the newline.
    pub end: usize,
    /// Where the next row starts.
    pub next: usize,
    /// What ends it.
    pub ends: RowEnd,
}

/// The text in harmless lines of at most `width` cells. A width of 0 gives one empty line a paragraph.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    Rows::of(text, width)
        .iter()
        .map(|&row| shown(text, row, width))
        .collect()
}

/// The row that starts at byte `start`, a row's start.
#[must_use]
pub fn next_row(text: &str, start: usize, width: usize) -> Row {
    let soft = |end| Row {
        start,
        end,
        next: end,
        ends: RowEnd::Soft,
    };
    let mut at = start;
    let mut column = 0;
    let mut has_glyph = false;
    let mut after_wide = false;
    let mut after_opening = false;
    let mut break_at = None;
    while let Some(piece) = first(&text[at..]) {
        match piece.kind {
            PieceKind::Newline => {
                return Row {
                    start,
                    end: at,
                    next: at + piece.len,
                    ends: RowEnd::Newline,
                };
            }
            PieceKind::Space => {
                column += piece.width;
                after_wide = false;
                after_opening = false;
                if has_glyph {
                    break_at = Some(at + piece.len);
                }
            }
            PieceKind::Glyph => {
                let cells = fitted(&piece, width);
                let wide = piece.width > 1;
                if has_glyph && (wide || after_wide) && !after_opening && !clings(&piece) {
                    break_at = Some(at);
                }
                if width > 0 && at > start && column + cells > width {
                    return soft(break_at.unwrap_or(at));
                }
                column += cells;
                after_wide = wide;
                after_opening = opens(&piece);
                has_glyph = true;
            }
        }
        at += piece.len;
    }
    Row {
        start,
        end: at,
        next: at,
        ends: RowEnd::Text,
    }
}

/// The row as drawn, in at most `width` cells.
#[must_use]
pub fn shown(text: &str, row: Row, width: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    let mut at = row.start;
    // What follows the row may change how its last piece is drawn.
    for piece in pieces(&text[row.start..]) {
        if at >= row.end {
            break;
        }
        at += piece.len;
        match piece.kind {
            PieceKind::Newline => {}
            PieceKind::Space => {
                let cells = piece.width.min(width - column);
                out.extend(std::iter::repeat_n(' ', cells));
                column += cells;
            }
            PieceKind::Glyph => {
                let cells = fitted(&piece, width);
                if column + cells > width {
                    break;
                }
                out.push_str(if cells < piece.width {
                    TOO_WIDE
                } else {
                    &piece.shown
                });
                column += cells;
            }
        }
    }
    out
}

/// The cells from a row's start to byte `at`, at most `width`.
#[must_use]
pub fn column_of(text: &str, row: Row, at: usize, width: usize) -> usize {
    drawn_width(&text[row.start..at.clamp(row.start, row.end)], width).min(width)
}

/// A piece too wide for the whole width is drawn as a placeholder of one cell.
pub(super) fn fitted(piece: &Piece<'_>, width: usize) -> usize {
    match piece.kind {
        PieceKind::Glyph if piece.width > width => 1,
        PieceKind::Glyph | PieceKind::Space | PieceKind::Newline => piece.width,
    }
}

/// Whether a line must not begin with it.
fn clings(piece: &Piece<'_>) -> bool {
    piece.shown.starts_with([
        '、', '。', '，', '．', '・', '：', '；', '？', '！', '）', '］', '｝', '」', '』', '】',
        '〉', '》', 'ー', ',', '.', ':', ';', '?', '!', ')', ']', '}', '…', '”', '’',
    ])
}

/// Whether a line must not end with it.
fn opens(piece: &Piece<'_>) -> bool {
    piece.shown.starts_with([
        '（', '［', '｛', '「', '『', '【', '〈', '《', '(', '[', '{', '“', '‘',
    ])
}

/// The rows of a text, kept while the text changes. The default has none and stays so.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rows {
    rows: Vec<Row>,
    width: usize,
}

impl std::ops::Deref for Rows {
    type Target = [Row];

    fn deref(&self) -> &[Row] {
        &self.rows
    }
}

impl Rows {
    /// Wraps a whole text.
    #[must_use]
    pub fn of(text: &str, width: usize) -> Self {
        let mut rows = Rows {
            rows: Vec::new(),
            width,
        };
        rows.wrap_from(text, 0);
        rows
    }

    /// The width, in cells.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Follows a text that grew at its end.
    pub fn append(&mut self, text: &str) {
        self.rows
            .truncate(self.rows.len().saturating_sub(LOOK_BACK));
        let start = self.rows.last().map_or(0, |row| row.next);
        self.wrap_from(text, start);
    }

    /// Follows a text in which `removed` bytes at `at` gave way to `inserted` bytes.
    pub fn replace(&mut self, text: &str, at: usize, removed: usize, inserted: usize) {
        if self.rows.is_empty() {
            return;
        }
        let touched = self.rows.partition_point(|row| row.start <= at);
        let kept = touched.saturating_sub(1 + LOOK_BACK);
        let old = self.rows.split_off(kept);
        let mut start = self.rows.last().map_or(0, |row| row.next);
        // From a row that starts behind the change, and started there before it, the old rows hold.
        let mut old = old
            .into_iter()
            .skip_while(|row| row.start < at + removed)
            .peekable();
        loop {
            if start > at + inserted {
                let before = start - inserted + removed;
                while old.next_if(|row| row.start < before).is_some() {}
                if old.peek().is_some_and(|row| row.start == before) {
                    let shift = |offset: usize| offset - removed + inserted;
                    self.rows.extend(old.map(|row| Row {
                        start: shift(row.start),
                        end: shift(row.end),
                        next: shift(row.next),
                        ends: row.ends,
                    }));
                    return;
                }
            }
            let row = next_row(text, start, self.width);
            self.rows.push(row);
            match row.ends {
                RowEnd::Text => return,
                RowEnd::Soft | RowEnd::Newline => start = row.next,
            }
        }
    }

    /// The index of the row that byte `at` is in; at a row's start, that row.
    #[must_use]
    pub fn row_of(&self, at: usize) -> usize {
        self.rows
            .partition_point(|row| row.start <= at)
            .saturating_sub(1)
    }

    fn wrap_from(&mut self, text: &str, mut start: usize) {
        loop {
            let row = next_row(text, start, self.width);
            self.rows.push(row);
            match row.ends {
                RowEnd::Text => return,
                RowEnd::Soft | RowEnd::Newline => start = row.next,
            }
        }
    }
}

#[cfg(test)]
mod tests;
