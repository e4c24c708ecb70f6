//! How a cluster is drawn: as it is where every way of counting gives the same width, else plainer or in parts.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{MAX_WIDTH, Piece, PieceKind};
use crate::text::sanitize::{REPLACEMENT, is_tag};

/// Marks that may sit on one base; more start a new base, lest one cell hold a megabyte.
const MAX_MARKS: usize = 8;
const DOTTED_CIRCLE: char = '◌';
const ZWNJ: char = '\u{200C}';
const ZWJ: char = '\u{200D}';

/// A cluster's drawn form while it is put together.
pub(super) struct Drawn {
    shown: String,
    width: usize,
    /// Bytes of the cluster that `shown` stands for.
    len: usize,
    marks: usize,
    tones: usize,
}

/// What becomes of a cluster's next character.
enum Step {
    /// It is drawn.
    Draw(char),
    /// It belongs to what is drawn already.
    Swallow,
    /// As [`Step::Swallow`], and the piece is complete.
    SwallowLast,
    /// It begins the next piece.
    Cut,
}

impl Drawn {
    /// Draws as much of the cluster as goes into one piece.
    pub fn of(base: char, cluster: &str) -> Self {
        let mut drawn = Drawn {
            shown: String::new(),
            width: 0,
            len: 0,
            marks: 0,
            tones: 0,
        };
        drawn.begin(base);
        let flag = tag_flag_len(cluster);
        if flag > 0 {
            drawn.len = flag;
            return drawn;
        }
        while let Some(next) = cluster[drawn.len..].chars().next() {
            let after = &cluster[drawn.len + next.len_utf8()..];
            match drawn.step(base, next, after) {
                Step::Draw(form) if drawn.push(form) => drawn.len += next.len_utf8(),
                Step::Draw(form) => {
                    // Lest the next piece's first character join this cluster after all.
                    if form == next && stands_alone(next) && form.width() != Some(0) {
                        drawn.shown.push(ZWNJ);
                    }
                    break;
                }
                Step::Swallow => drawn.len += next.len_utf8(),
                Step::SwallowLast => {
                    drawn.len += next.len_utf8();
                    break;
                }
                Step::Cut => break,
            }
        }
        drawn
    }

    fn begin(&mut self, base: char) {
        self.len = base.len_utf8();
        let form = drawn_mark(base);
        let width = form.width().unwrap_or(0);
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
            self.shown.push(form);
            self.width = width;
        }
    }

    fn step(&mut self, base: char, next: char, after: &str) -> Step {
        let behind_base = self.len == base.len_utf8();
        if is_tag(next) {
            Step::Cut
        } else if is_joiner(next) && joins_letters(base) {
            Step::Draw(next)
        } else if is_joiner(next) {
            // A joined emoji is drawn as its parts side by side, as Unicode asks where it is not known as one.
            let joins_emoji = next == ZWJ && has_emoji_form(base) && !after.is_empty();
            if joins_emoji {
                Step::SwallowLast
            } else {
                Step::Cut
            }
        } else if is_skin_tone(next) {
            self.tones += 1;
            if has_emoji_form(base) && self.tones == 1 {
                Step::Swallow
            } else {
                Step::Cut
            }
        } else if is_presentation(next) {
            if has_emoji_form(base) && behind_base {
                Step::Swallow
            } else {
                Step::Cut
            }
        } else if is_selector(next) {
            let varies = !is_ideograph_selector(next) || base.width() == Some(2);
            if varies && behind_base {
                Step::Draw(next)
            } else {
                Step::Cut
            }
        } else {
            Step::Draw(drawn_mark(next))
        }
    }

    /// Draws one more character; false where it does not fit, or where its width would be in doubt.
    fn push(&mut self, form: char) -> bool {
        let width = self.width + form.width().unwrap_or(0);
        let attached = !stands_alone(form);
        if width > MAX_WIDTH || (attached && self.marks == MAX_MARKS) {
            return false;
        }
        let clusters = |shown: &str| shown.graphemes(true).count();
        let before = if form.width() == Some(0) {
            clusters(&self.shown)
        } else {
            0
        };
        self.shown.push(form);
        // What has no width of its own must be drawn on something: a vowel of Hangul behind a stand-in is not.
        let floats = before > 0 && clusters(&self.shown) > before;
        if floats || self.shown.width() != width {
            self.shown.pop();
            return false;
        }
        self.marks += usize::from(attached);
        self.width = width;
        true
    }

    /// The piece.
    pub fn into_piece(self, cluster: &str) -> Piece<'_> {
        let kind = if self.shown == " " && cluster.starts_with(' ') {
            PieceKind::Space
        } else {
            PieceKind::Glyph
        };
        let raw = &cluster[..self.len];
        let shown = if self.shown == raw {
            Cow::Borrowed(raw)
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
pub(super) fn drawn_mark(c: char) -> char {
    match c {
        '\u{FF9E}' => '\u{309B}',
        '\u{FF9F}' => '\u{309C}',
        other => other,
    }
}

/// Whether the character begins a cluster of its own behind a letter.
pub(super) fn stands_alone(c: char) -> bool {
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

fn is_ideograph_selector(c: char) -> bool {
    matches!(c, '\u{E0100}'..='\u{E01EF}')
}

/// Whether the script of the letter needs joiners for its right spelling.
fn joins_letters(c: char) -> bool {
    matches!(c,
        '\u{0600}'..='\u{109F}' | '\u{1780}'..='\u{18AF}' | '\u{1900}'..='\u{1CFF}' | '\u{A800}'..='\u{ABFF}'
        | '\u{FB50}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}' | '\u{10A00}'..='\u{11FFF}')
}
