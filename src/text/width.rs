//! Widths in cells, counted as ratatui draws: grapheme by grapheme, in the drawn form.

use super::piece::{PieceKind, pieces};
use super::wrap::fitted;

/// The cells that the text takes when drawn in one line (see [`super::visible_line`]).
#[must_use]
pub fn width(text: &str) -> usize {
    pieces(text)
        .map(|piece| cells(piece.kind, piece.width))
        .sum()
}

/// The text in one line of at most `width` cells, harmless; what is cut off ends in `…`.
#[must_use]
pub fn fit(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    // Where the cut would go, should the text turn out too long.
    let mut cut = 0;
    for piece in pieces(text) {
        let cells = cells(piece.kind, piece.width);
        if used + cells > width {
            out.truncate(cut);
            if width > 0 {
                out.push('…');
            }
            return out;
        }
        match piece.kind {
            PieceKind::Newline => out.push('⏎'),
            PieceKind::Glyph | PieceKind::Space => out.push_str(&piece.shown),
        }
        used += cells;
        if used < width {
            cut = out.len();
        }
    }
    out
}

fn cells(kind: PieceKind, width: usize) -> usize {
    match kind {
        PieceKind::Newline => 1,
        PieceKind::Glyph | PieceKind::Space => width,
    }
}

/// The cells that part of a row takes where rows have `width` cells.
pub(super) fn drawn_width(text: &str, width: usize) -> usize {
    pieces(text).map(|piece| fitted(&piece, width)).sum()
}

#[cfg(test)]
mod tests;
