//! Makes any text harmless for a terminal, character by character, so that a sequence split over tokens is as
//! harmless as a whole one. What a terminal would obey or hide becomes a placeholder of one cell; stored text
//! keeps what it held.
//!
//! Emoji sequences are drawn in the plain form on whose width all terminals agree: without presentation
//! selectors and skin tones, and joined emoji as their parts side by side.

use std::borrow::Cow;

use super::piece::{PieceKind, pieces};

/// The placeholder of what has no picture of its own: another control picture, and not U+FFFD, whose width
/// depends on the terminal.
pub(super) const REPLACEMENT: char = '␦';

/// The text as it may be drawn: newlines are kept, tabs are spaces, everything else is safe to print.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    drawn(text, "\n")
}

/// The text as it may be drawn in one line (a title, a name): newlines become `⏎`.
#[must_use]
pub fn visible_line(text: &str) -> Cow<'_, str> {
    drawn(text, "⏎")
}

fn drawn<'a>(text: &'a str, newline: &str) -> Cow<'a, str> {
    let plain = text
        .bytes()
        .all(|b| matches!(b, 0x20..0x7f) || (b == b'\n' && newline == "\n"));
    if plain {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece.kind {
            PieceKind::Newline => out.push_str(newline),
            PieceKind::Glyph | PieceKind::Space => out.push_str(&piece.shown),
        }
    }
    if out == text {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(out)
    }
}

/// The text for a stream that may end on a terminal: what would steer one is a placeholder, everything else,
/// emoji sequences and tabs too, stays as it is.
#[must_use]
pub fn neutral(text: &str) -> Cow<'_, str> {
    if !text.contains(is_dangerous) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        text.chars()
            .map(|c| {
                if is_dangerous(c) {
                    placeholder(c).unwrap_or(REPLACEMENT)
                } else {
                    c
                }
            })
            .collect(),
    )
}

/// The same for a name or another text of one line: newlines and tabs are pictures too.
#[must_use]
pub fn neutral_line(text: &str) -> String {
    text.chars().map(|c| placeholder(c).unwrap_or(c)).collect()
}

/// Whether a terminal would obey the character or hide text by it. Newlines, tabs and what joins emoji are harmless.
#[must_use]
pub fn is_dangerous(c: char) -> bool {
    !matches!(c, '\n' | '\t') && placeholder(c).is_some()
}

/// What stands for a character that a terminal would obey or hide; none for a harmless one.
pub(super) fn placeholder(c: char) -> Option<char> {
    match c {
        '\0'..='\u{1F}' => char::from_u32(u32::from(c) + 0x2400),
        '\u{7F}' => Some('\u{2421}'),
        '\u{2028}' | '\u{2029}' => Some('\u{2424}'),
        '\u{80}'..='\u{9F}'
        | '\u{AD}'
        | '\u{61C}'
        | '\u{180E}'
        | '\u{200B}'
        | '\u{200E}'..='\u{200F}'
        | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}'
        | '\u{FEFF}'
        | '\u{FFF9}'..='\u{FFFB}'
        | '\u{115F}'..='\u{1160}'
        | '\u{3164}'
        | '\u{FFA0}'
        | '\u{1D173}'..='\u{1D17A}' => Some(REPLACEMENT),
        other => is_tag(other).then_some(REPLACEMENT),
    }
}

/// Whether the character is of the invisible copy of ASCII or its unassigned neighbours.
pub(super) fn is_tag(c: char) -> bool {
    matches!(c, '\u{E0000}'..='\u{E00FF}' | '\u{E01F0}'..='\u{E0FFF}')
}

#[cfg(test)]
mod tests;
