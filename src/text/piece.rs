//! The unit of measuring and wrapping: a short stretch of text with the form in which it is drawn. Each piece is
//! found from the text that follows alone, so that measuring can begin at any piece; and only a bounded stretch
//! is looked at, so that no text takes more than linear time.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::sanitize::{REPLACEMENT, is_tag, placeholder};

/// Cells that a tab takes.
pub(super) const TAB_WIDTH: usize = 4;
/// What a piece becomes that is wider than all the room there is.
pub(super) const TOO_WIDE: &str = "…";
/// How far ahead a cluster is looked at, in bytes; more than the longest piece.
const WINDOW: usize = 96;
/// Marks that may sit on one base; more start a new base, lest one cell hold a megabyte.
const MAX_MARKS: usize = 8;
/// Widest piece, in cells.
const MAX_WIDTH: usize = 2;
const DOTTED_CIRCLE: char = '◌';
const ZWNJ: char = '\u{200C}';
const ZWJ: char = '\u{200D}';

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
    if cluster.len() == base.len_utf8()
        && (1..=MAX_WIDTH).contains(&base_width)
        && stands_alone(base)
    {
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

/// A cluster's drawn form while it is put together.
struct Drawn {
    shown: String,
    width: usize,
    /// Bytes of the cluster that `shown` stands for.
    len: usize,
    marks: usize,
    selectors: usize,
}

impl Drawn {
    fn of(base: char, cluster: &str) -> Self {
        let mut drawn = Drawn {
            shown: String::new(),
            width: 0,
            len: 0,
            marks: 0,
            selectors: 0,
        };
        drawn.begin(base);
        let flag = tag_flag_len(cluster);
        if flag > 0 {
            drawn.len = flag;
            return drawn;
        }
        while let Some(next) = cluster[drawn.len..].chars().next() {
            if !drawn.take(base, next, &cluster[drawn.len + next.len_utf8()..]) {
                break;
            }
        }
        drawn
    }

    fn begin(&mut self, base: char) {
        self.len = base.len_utf8();
        let width = base.width().unwrap_or(0);
        let invisible = is_joiner(base) || is_selector(base) || is_skin_tone(base);
        if !invisible && !stands_alone(base) && width < MAX_WIDTH {
            self.shown.push(DOTTED_CIRCLE);
            self.shown.push(base);
            self.width = 1 + width;
            self.marks = 1;
        } else if invisible || width == 0 || width > MAX_WIDTH {
            self.shown.push(REPLACEMENT);
            self.width = 1;
        } else {
            self.shown.push(drawn_mark(base));
            self.width = width;
        }
    }

    /// Takes one more character of the cluster; false where it must begin the next piece.
    fn take(&mut self, base: char, next: char, after: &str) -> bool {
        if is_tag(next) {
            return false;
        }
        if next == ZWJ && !joins_letters(base) {
            // A joined emoji is drawn as its parts side by side, as Unicode asks where it is not known as one.
            let joins_emoji = has_emoji_form(base) && self.selectors < 3;
            if joins_emoji {
                self.len += next.len_utf8();
                self.selectors = 3;
            }
            return false;
        }
        if is_joiner(next) && !joins_letters(base) {
            return false;
        }
        if is_skin_tone(next) || is_presentation(next) {
            let swallowed = has_emoji_form(base) && self.selectors < 2;
            if swallowed {
                self.len += next.len_utf8();
                self.selectors += 1;
            }
            return swallowed;
        }
        if is_selector(next) {
            self.selectors += 1;
            if self.selectors > 1 {
                return false;
            }
        }
        let drawn = drawn_mark(next);
        let width = drawn.width().unwrap_or(0);
        let attached = !stands_alone(next);
        if self.width + width > MAX_WIDTH || (attached && self.marks == MAX_MARKS) {
            if !attached && !after.starts_with(ZWNJ) {
                self.shown.push(ZWNJ);
            }
            return false;
        }
        self.marks += usize::from(attached);
        self.shown.push(drawn);
        self.width += width;
        self.len += next.len_utf8();
        true
    }

    /// The piece; a replacement where the ways of counting would still disagree.
    fn into_piece(self, cluster: &str) -> Piece<'_> {
        if self.shown.width() != self.width {
            return Piece::replaced(self.len, REPLACEMENT);
        }
        let kind = if cluster.starts_with(' ') && self.shown == " " {
            PieceKind::Space
        } else {
            PieceKind::Glyph
        };
        let shown = if self.shown == cluster[..self.len] {
            Cow::Borrowed(&cluster[..self.len])
        } else {
            Cow::Owned(self.shown)
        };
        Piece {
            kind,
            len: self.len,
            shown,
            width: self.width,
        }
    }
}

/// The byte length of a well-formed flag of a part of a country (a black flag spelt out in tags); 0 for all else.
fn tag_flag_len(cluster: &str) -> usize {
    let Some(tags) = cluster.strip_prefix('\u{1F3F4}') else {
        return 0;
    };
    let spelt = tags
        .chars()
        .take_while(|c| matches!(c, '\u{E0030}'..='\u{E0039}' | '\u{E0061}'..='\u{E007A}'));
    let spelt = spelt.count();
    match tags.chars().nth(spelt) {
        Some('\u{E007F}') if (3..=6).contains(&spelt) => '\u{1F3F4}'.len_utf8() + (spelt + 1) * 4,
        Some(_) | None => 0,
    }
}

/// Halfwidth sound marks are counted as one, two or no cell; their full forms are not in doubt.
fn drawn_mark(c: char) -> char {
    match c {
        '\u{FF9E}' => '\u{309B}',
        '\u{FF9F}' => '\u{309C}',
        other => other,
    }
}

/// Whether the character begins a cluster of its own behind a letter.
fn stands_alone(c: char) -> bool {
    if c < '\u{300}'
        || matches!(c, '\u{370}'..'\u{483}' | '\u{3041}'..='\u{3096}' | '\u{30A0}'..='\u{A66E}' | '\u{AC00}'..='\u{D7A3}')
    {
        return true;
    }
    if matches!(c, '\u{FF9E}' | '\u{FF9F}') {
        return true;
    }
    let mut buffer = [b'a'; 5];
    let len = c.encode_utf8(&mut buffer[1..]).len();
    std::str::from_utf8(&buffer[..=len]).is_ok_and(|pair| pair.graphemes(true).nth(1).is_some())
}

/// Whether a selector could turn the character into an emoji of two cells.
fn has_emoji_form(c: char) -> bool {
    let mut pair = String::from(c);
    pair.push('\u{FE0F}');
    pair.width() == 2
}

fn is_joiner(c: char) -> bool {
    matches!(c, ZWNJ | ZWJ)
}

fn is_skin_tone(c: char) -> bool {
    matches!(c, '\u{1F3FB}'..='\u{1F3FF}')
}

fn is_presentation(c: char) -> bool {
    matches!(c, '\u{FE0E}' | '\u{FE0F}')
}

fn is_selector(c: char) -> bool {
    matches!(c, '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}')
}

/// Whether the script of the letter needs joiners for its right spelling.
fn joins_letters(c: char) -> bool {
    matches!(c,
        '\u{0600}'..='\u{109F}' | '\u{1780}'..='\u{18AF}' | '\u{1900}'..='\u{1CFF}' | '\u{A800}'..='\u{ABFF}'
        | '\u{FB50}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}' | '\u{10A00}'..='\u{11FFF}')
}
