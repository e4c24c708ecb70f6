//! The unit of measuring and wrapping: a short stretch of text with the form in which it is drawn. Each piece is
//! found from the text that follows alone, so that measuring can begin at any piece; and only a bounded stretch
//! is looked at, so that no text takes more than linear time.

mod cluster;

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthChar;

use super::sanitize::{REPLACEMENT, is_tag, placeholder};
use cluster::{Drawn, drawn_mark, stands_alone};

/// Cells that a tab takes.
pub(super) const TAB_WIDTH: usize = 4;
/// What a piece becomes that is wider than all the room there is.
pub(super) const TOO_WIDE: &str = "…";
/// How far ahead a cluster is looked at, in bytes; more than the longest piece.
const WINDOW: usize = 96;
/// Widest piece, in cells.
const MAX_WIDTH: usize = 2;

/// What a piece does in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PieceKind {
    /// Something to see.
    Glyph,
    /// A space or tab, at which lines may break.
    Space,
    /// The end of a line.
    Newline,
}

/// A stretch of text and its drawn form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub kind: PieceKind,
    /// Bytes of the text.
    pub len: usize,
    /// What is drawn; empty for a newline.
    pub shown: Cow<'a, str>,
    /// Cells that it takes; 0 for a newline only.
    pub width: usize,
}

impl<'a> Piece<'a> {
    fn glyph(len: usize, shown: impl Into<Cow<'a, str>>, width: usize) -> Self {
        Piece {
            kind: PieceKind::Glyph,
            len,
            shown: shown.into(),
            width,
        }
    }

    fn replaced(len: usize, by: char) -> Self {
        Piece::glyph(len, by.to_string(), 1)
    }
}

/// The first piece of `text`; none where it is empty.
pub(super) fn first(text: &str) -> Option<Piece<'_>> {
    let bytes = text.as_bytes();
    let alone = bytes.get(1).is_none_or(u8::is_ascii);
    Some(match *bytes.first()? {
        b'\n' => Piece {
            kind: PieceKind::Newline,
            len: 1,
            shown: Cow::Borrowed(""),
            width: 0,
        },
        b'\r' if bytes.get(1) == Some(&b'\n') => Piece {
            kind: PieceKind::Newline,
            len: 2,
            shown: Cow::Borrowed(""),
            width: 0,
        },
        b'\t' => Piece {
            kind: PieceKind::Space,
            len: 1,
            shown: Cow::Borrowed("    "),
            width: TAB_WIDTH,
        },
        b' ' if alone => Piece {
            kind: PieceKind::Space,
            len: 1,
            shown: Cow::Borrowed(" "),
            width: 1,
        },
        0x21..0x7f if alone => Piece::glyph(1, &text[..1], 1),
        _ => cluster_piece(text),
    })
}

/// All pieces of `text`, in order.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let piece = first(rest)?;
        rest = &rest[piece.len..];
        Some(piece)
    })
}

fn cluster_piece(text: &str) -> Piece<'_> {
    let window = &text[..text.floor_char_boundary(WINDOW)];
    let cluster = window.graphemes(true).next().unwrap_or(window);
    let base = cluster.chars().next().unwrap_or(REPLACEMENT);
    if is_tag(base) {
        let run = window
            .chars()
            .take_while(|&c| is_tag(c))
            .map(char::len_utf8)
            .sum();
        return Piece::replaced(run, REPLACEMENT);
    }
    if let Some(placeholder) = placeholder(base) {
        return Piece::replaced(base.len_utf8(), placeholder);
    }
    let base_width = base.width().unwrap_or(0);
    let alone = cluster.len() == base.len_utf8() && drawn_mark(base) == base;
    if alone && (1..=MAX_WIDTH).contains(&base_width) && stands_alone(base) {
        return match base {
            ' ' => Piece {
                kind: PieceKind::Space,
                len: 1,
                shown: Cow::Borrowed(" "),
                width: 1,
            },
            _ => Piece::glyph(cluster.len(), cluster, base_width),
        };
    }
    Drawn::of(base, cluster).into_piece(cluster)
}

#[cfg(test)]
mod tests;
