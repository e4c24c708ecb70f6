//! The lines of one item, and how they follow a text that grows.

use std::ops::Range;

use super::item::{Item, ItemKind, Line, LineKind, Thinking};
use crate::text::width::fit;
use crate::text::wrap::{RowEnd, next_row, shown};

/// What stands for folded thinking.
const FOLDED: &str = "▸ thinking";
/// How much of a text's end is kept to notice that it did not merely grow, in bytes.
const TAIL: usize = 32;

/// The parts of an item, from the top.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Section {
    Blank,
    Header,
    Thinking,
    Body,
    Meta,
}

/// A place in an item that outlives wrapping: the section and the byte in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    section: Section,
    at: usize,
}

/// An item's lines.
#[derive(Debug, Clone)]
pub(super) struct Block {
    item: Known,
    lines: Vec<Line>,
    /// Where each line begins.
    places: Vec<Place>,
    /// The thinking that was wrapped.
    thought: Range<usize>,
}

/// What is known of the item that was wrapped.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    id: u64,
    kind: ItemKind,
    label: String,
    meta: Option<String>,
    thinking: Thinking,
    thinking_len: usize,
    len: usize,
    tail: Vec<u8>,
}

impl Known {
    fn of(item: &Item<'_>) -> Self {
        Known {
            id: item.id,
            kind: item.kind,
            label: item.label.to_owned(),
            meta: item.meta.map(str::to_owned),
            thinking: item.thinking,
            thinking_len: item.thinking_len,
            len: item.body.len(),
            tail: item.body.as_bytes()[item.body.len().saturating_sub(TAIL)..].to_vec(),
        }
    }

    /// Whether the item is this one, its text grown at the end or as it was.
    fn became(&self, item: &Item<'_>) -> bool {
        let same_head = self.id == item.id && self.kind == item.kind && self.label == item.label;
        let still_thinking = self.thinking_len == self.len && item.thinking_len > self.thinking_len;
        let same_parts = self.thinking == item.thinking
            && (self.thinking_len == item.thinking_len || still_thinking);
        let old = item.body.as_bytes().get(..self.len);
        same_head && same_parts && old.is_some_and(|old| old.ends_with(&self.tail))
    }
}

impl Block {
    /// Wraps an item.
    pub fn of(item: &Item<'_>, index: usize, width: u16) -> Self {
        let mut block = Block {
            item: Known::of(item),
            lines: Vec::new(),
            places: Vec::new(),
            thought: 0..0,
        };
        block.head(item, index, usize::from(width));
        block.tail(item, index, usize::from(width));
        block
    }

    /// Wraps again what changed since.
    pub fn follow(&mut self, item: &Item<'_>, index: usize, width: u16) {
        if !self.item.became(item) {
            *self = Block::of(item, index, width);
            return;
        }
        if self.item.len != item.body.len() || self.item.meta.as_deref() != item.meta {
            self.item = Known::of(item);
            self.tail(item, index, usize::from(width));
        }
    }

    pub fn id(&self) -> u64 {
        self.item.id
    }

    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Where the line begins.
    pub fn place(&self, line: usize) -> Place {
        self.places[line]
    }

    /// The line that holds the place.
    pub fn line_at(&self, place: Place) -> usize {
        self.places
            .partition_point(|&start| start <= place)
            .saturating_sub(1)
    }

    fn push(&mut self, line: Line, section: Section, at: usize) {
        self.lines.push(line);
        self.places.push(Place { section, at });
    }

    /// The lines above the text, which do not change while it grows.
    fn head(&mut self, item: &Item<'_>, index: usize, width: usize) {
        if index > 0 {
            self.push(
                Line {
                    kind: LineKind::Blank,
                    text: String::new(),
                    item: index,
                },
                Section::Blank,
                0,
            );
        }
        if let ItemKind::Message(role) = item.kind
            && !item.label.is_empty()
        {
            let line = Line {
                kind: LineKind::Header(role),
                text: fit(item.label, width),
                item: index,
            };
            self.push(line, Section::Header, 0);
        }
    }

    /// The text's lines and those below it, from the first row that may have changed.
    fn tail(&mut self, item: &Item<'_>, index: usize, width: usize) {
        let (thinking, body) = parts(item);
        // What lies below the thinking is wrapped anew with it, so it is left alone once it is complete.
        if self.thought != thinking {
            self.thought = thinking.clone();
            match item.thinking {
                Thinking::Shown => {
                    self.grow(
                        Section::Thinking,
                        (item.body, thinking),
                        (index, LineKind::Thinking),
                        width,
                    );
                }
                Thinking::Folded => {
                    self.cut(Place {
                        section: Section::Thinking,
                        at: 0,
                    });
                    let line = Line {
                        kind: LineKind::Thinking,
                        text: fit(FOLDED, width),
                        item: index,
                    };
                    self.push(line, Section::Thinking, 0);
                }
            }
        }
        let kind = match item.kind {
            ItemKind::Message(_) => LineKind::Body,
            ItemKind::Notice => LineKind::Notice,
            ItemKind::Error => LineKind::Error,
        };
        self.grow(Section::Body, (item.body, body), (index, kind), width);
        self.cut(Place {
            section: Section::Meta,
            at: 0,
        });
        if let Some(meta) = item.meta {
            self.grow(
                Section::Meta,
                (meta, 0..meta.len()),
                (index, LineKind::Meta),
                width,
            );
        }
    }

    /// Wraps a section of a text anew from its last row but one.
    fn grow(
        &mut self,
        section: Section,
        (text, range): (&str, Range<usize>),
        line: (usize, LineKind),
        width: usize,
    ) {
        let begin = self.places.partition_point(|place| place.section < section);
        let end = self
            .places
            .partition_point(|place| place.section <= section);
        if range.is_empty() {
            return;
        }
        let keep = end.saturating_sub(2).max(begin);
        let mut start = if end > begin {
            self.places[keep].at
        } else {
            range.start
        };
        self.lines.truncate(keep);
        self.places.truncate(keep);
        let text = &text[..range.end];
        loop {
            let row = next_row(text, start, width);
            let (item, kind) = line;
            self.push(
                Line {
                    kind,
                    text: shown(text, row, width),
                    item,
                },
                section,
                start,
            );
            match row.ends {
                RowEnd::Text => return,
                RowEnd::Soft | RowEnd::Newline => start = row.next,
            }
        }
    }

    /// Drops all lines from the place on.
    fn cut(&mut self, place: Place) {
        let keep = self.places.partition_point(|&start| start < place);
        self.lines.truncate(keep);
        self.places.truncate(keep);
    }
}

/// The ranges of the thinking and of what follows it, without the blank lines around them.
fn parts(item: &Item<'_>) -> (Range<usize>, Range<usize>) {
    let split = item.body.floor_char_boundary(item.thinking_len);
    (
        trimmed(item.body, 0..split),
        trimmed(item.body, split..item.body.len()),
    )
}

fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let end = range.start + part.trim_end_matches([' ', '\t', '\r', '\n']).len();
    let start = range.end - part.trim_start_matches(['\r', '\n']).len();
    start.min(end)..end
}
