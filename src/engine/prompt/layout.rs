//! Finds each message's text in the rendered prompt: a marked rendering is laid over the plain one. Where the
//! two differ, the template looks at the text of some message; that message is named, to be marked less.

use std::collections::BTreeSet;
use std::ops::Range;

use super::marks::{Marking, Marks, Segment};

/// The rendered prompt with the places of its messages.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The text.
    pub text: String,
    /// The messages found, in the order of the text.
    pub places: Vec<Place>,
    /// Texts of special tokens that someone wrote, in messages whose place is not known exactly.
    pub written_specials: Vec<Range<usize>>,
}

/// Where a message came out.
#[derive(Debug, PartialEq, Eq)]
pub struct Place {
    /// The message.
    pub message: usize,
    /// Where its text begins; `None` where the template changed the beginning.
    pub start: Option<usize>,
    /// Where its text ends.
    pub end: usize,
    /// Bytes of leading whitespace that the template removed.
    pub lead_cut: usize,
    /// Bytes of trailing whitespace that the template removed.
    pub trail_cut: usize,
}

/// Messages that must be marked less.
#[derive(Debug, PartialEq, Eq)]
pub enum Misfit {
    /// These: their marks were lost, or their texts altered.
    Lost(BTreeSet<usize>),
    /// One of these: they stand on both sides of a difference.
    Beside(BTreeSet<usize>),
    /// It can't be told which.
    Unknown,
}

struct Anchor<'a> {
    message: usize,
    glue: &'a str,
    core: Option<&'a str>,
}

/// A message's text taken apart: whitespace, core, whitespace.
pub fn edges(text: &str) -> (&str, &str, &str) {
    let core = text.trim();
    let lead = text.len() - text.trim_start().len();
    if core.is_empty() {
        (text, "", "")
    } else {
        (&text[..lead], core, &text[lead + core.len()..])
    }
}

/// Lays the marked rendering over the plain one. `texts` and `markings` are those of the messages.
pub fn fit(
    plain: &str,
    marked: &str,
    marks: Marks,
    texts: &[String],
    markings: &[Marking],
) -> Result<Layout, Misfit> {
    let segments = marks.segments(marked).ok_or(Misfit::Unknown)?;
    let (anchors, ending) = anchors(&segments, texts, markings)?;
    let mut layout = LayoutBuilder {
        marks,
        layout: Layout::default(),
        open: None,
    };
    let mut rest = plain;
    for (index, anchor) in anchors.iter().enumerate() {
        let next = anchors.get(index + 1);
        let misfit = |other: Option<&Anchor<'_>>| {
            let named = std::iter::once(anchor.message).chain(other.map(|other| other.message));
            Misfit::Beside(named.collect())
        };
        let previous = index.checked_sub(1).map(|index| &anchors[index]);
        rest = rest
            .strip_prefix(anchor.glue)
            .ok_or_else(|| misfit(previous))?;
        layout.push_template_text(anchor.glue);

        let (lead, _, trail) = edges(&texts[anchor.message]);
        let start = layout.layout.text.len();
        let mut lead_cut = 0;
        if let Some(core) = anchor.core {
            let kept = &rest[..rest.len() - rest.trim_start().len()];
            let altered = || Misfit::Lost(BTreeSet::from([anchor.message]));
            rest = rest[kept.len()..].strip_prefix(core).ok_or_else(altered)?;
            lead_cut = lead.strip_suffix(kept).ok_or_else(altered)?.len();
            layout.layout.text.push_str(kept);
            layout.layout.text.push_str(core);
        }
        let goes_on = |after: &str| match next {
            Some(next) => after.starts_with(next.glue),
            None => after == ending,
        };
        let kept = kept_trail(trail, rest, goes_on).ok_or_else(|| misfit(next))?;
        layout.layout.text.push_str(&rest[..kept]);
        rest = &rest[kept..];
        layout.layout.places.push(Place {
            message: anchor.message,
            start: anchor.core.map(|_| start),
            end: layout.layout.text.len(),
            lead_cut,
            trail_cut: trail.len() - kept,
        });
    }
    if rest != ending {
        return Err(Misfit::Unknown);
    }
    layout.push_template_text(ending);
    Ok(layout.layout)
}

/// A rendering without any message marked.
pub fn unmarked(plain: &str, marks: Marks) -> Layout {
    let mut layout = LayoutBuilder {
        marks,
        layout: Layout::default(),
        open: None,
    };
    layout.push_template_text(plain);
    layout.layout
}

/// How much of a message's trailing whitespace the template kept: the longest that lets the text go on.
fn kept_trail(trail: &str, rest: &str, goes_on: impl Fn(&str) -> bool) -> Option<usize> {
    const CANDIDATES: usize = 64;
    let common = trail
        .bytes()
        .zip(rest.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let candidates = (0..=common)
        .rev()
        .filter(|&kept| rest.is_char_boundary(kept));
    candidates
        .take(CANDIDATES)
        .chain(std::iter::once(0))
        .find(|&kept| goes_on(&rest[kept..]))
}

/// The messages found in the marked rendering, each with the template text before it, and the text after the last.
fn anchors<'a>(
    segments: &[Segment<'a>],
    texts: &[String],
    markings: &[Marking],
) -> Result<(Vec<Anchor<'a>>, &'a str), Misfit> {
    let mut anchors: Vec<Anchor<'a>> = Vec::new();
    let mut lost: BTreeSet<usize> = BTreeSet::new();
    let mut seen: BTreeSet<usize> = BTreeSet::new();
    let mut glue = "";
    let mut rest = segments;
    while let Some((segment, after)) = rest.split_first() {
        rest = after;
        match (segment, after) {
            (Segment::Text(text), _) => glue = text,
            (Segment::Start(message), [Segment::Text(core), Segment::End(end), after @ ..])
                if end == message =>
            {
                let whole = texts
                    .get(*message)
                    .is_some_and(|text| edges(text).1 == *core);
                if !seen.insert(*message) || !whole {
                    lost.insert(*message);
                }
                anchors.push(Anchor {
                    message: *message,
                    glue,
                    core: Some(core),
                });
                glue = "";
                rest = after;
            }
            (Segment::Start(message), _) => {
                lost.insert(*message);
            }
            (Segment::End(message), _) => {
                let expected = markings.get(*message) == Some(&Marking::EndOnly);
                if !seen.insert(*message) || !expected {
                    lost.insert(*message);
                }
                anchors.push(Anchor {
                    message: *message,
                    glue,
                    core: None,
                });
                glue = "";
            }
        }
    }
    for (message, marking) in markings.iter().enumerate() {
        if *marking != Marking::Off && !texts[message].trim().is_empty() && !seen.contains(&message)
        {
            lost.insert(message);
        }
    }
    if lost.is_empty() {
        Ok((anchors, glue))
    } else {
        Err(Misfit::Lost(lost))
    }
}

struct LayoutBuilder {
    marks: Marks,
    layout: Layout,
    open: Option<usize>,
}

impl LayoutBuilder {
    /// Appends text that may hold wrapped special texts.
    fn push_template_text(&mut self, text: &str) {
        for character in text.chars() {
            if character == self.marks.open() {
                self.open = Some(self.layout.text.len());
            } else if character == self.marks.close() {
                if let Some(start) = self.open.take() {
                    self.layout
                        .written_specials
                        .push(start..self.layout.text.len());
                }
            } else {
                self.layout.text.push(character);
            }
        }
    }
}
