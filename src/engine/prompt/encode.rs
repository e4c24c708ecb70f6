//! Turns a laid-out prompt into tokens: template and contents together in long runs, as the model was trained,
//! interrupted only where generated ids stand in and where someone wrote the text of a special token.

use std::ops::Range;

use super::matcher::SpecialMatcher;
use super::vocabulary::{SpecialTokens, TokenizeError, Vocabulary};
use crate::engine::token::TokenId;

/// Some tokenizers recurse for each character of a stretch without whitespace; longer ones are cut.
const LONGEST_UNBROKEN_CHARS: usize = 8192;

/// Generated tokens that stand for a stretch of the text.
#[derive(Debug)]
pub struct Splice<'a> {
    /// The stretch.
    pub range: Range<usize>,
    /// The tokens.
    pub ids: &'a [TokenId],
}

/// Tokens, each with the byte of the text at which it begins (about so inside a run of plain text).
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// The tokens.
    pub ids: Vec<TokenId>,
    /// Where each begins.
    pub starts: Vec<usize>,
}

/// What is tokenised.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The whole text.
    pub text: &'a str,
    /// Where people's and models' words stand, in order.
    pub contents: &'a [Range<usize>],
    /// Further stretches that must stay text, in order.
    pub written_specials: &'a [Range<usize>],
    /// Generated tokens that stand in, in order.
    pub splices: &'a [Splice<'a>],
}

/// The tokens of a prompt, without BOS unless the text has it.
///
/// # Errors
/// What the tokenizer refuses.
pub fn encode(
    source: Source<'_>,
    vocabulary: &dyn Vocabulary,
    matcher: &SpecialMatcher,
) -> Result<Encoded, TokenizeError> {
    let mut anchors = Vec::new();
    if vocabulary.space_prefix() {
        for anchor in ["\n", "\u{1}", "a"] {
            anchors.push((anchor, vocabulary.tokenize(anchor, SpecialTokens::AsText)?));
        }
    }
    let mut encoder = Encoder {
        text: source.text,
        vocabulary,
        matcher,
        anchors,
        encoded: Encoded::default(),
    };
    let mut done = 0;
    for splice in source.splices {
        encoder.stretch(done..splice.range.start, source)?;
        encoder.encoded.ids.extend_from_slice(splice.ids);
        encoder
            .encoded
            .starts
            .resize(encoder.encoded.ids.len(), splice.range.start);
        done = splice.range.end;
    }
    encoder.stretch(done..source.text.len(), source)?;
    Ok(encoder.encoded)
}

struct Encoder<'a> {
    text: &'a str,
    vocabulary: &'a dyn Vocabulary,
    matcher: &'a SpecialMatcher,
    anchors: Vec<(&'static str, Vec<TokenId>)>,
    encoded: Encoded,
}

impl Encoder<'_> {
    fn stretch(&mut self, stretch: Range<usize>, source: Source<'_>) -> Result<(), TokenizeError> {
        let mut done = stretch.start;
        let mut specials: Vec<usize> = Vec::new();
        for (found, kind) in self.specials_in(&stretch, source) {
            match kind {
                Found::OfTemplate => specials.push(found.start),
                Found::Written => {
                    self.run(done..found.start, &specials)?;
                    self.literal(found.clone())?;
                    specials.clear();
                    done = found.end;
                }
            }
        }
        self.run(done..stretch.end, &specials)
    }

    /// Special texts of a stretch from left to right, those that someone wrote told from the template's own.
    fn specials_in(
        &self,
        stretch: &Range<usize>,
        source: Source<'_>,
    ) -> Vec<(Range<usize>, Found)> {
        let touches = |ranges: &[Range<usize>], found: &Range<usize>| {
            let first = ranges.partition_point(|range| range.end <= found.start);
            ranges
                .get(first)
                .is_some_and(|range| range.start < found.end)
        };
        let mut all = Vec::new();
        for found in self.matcher.find_all(&self.text[stretch.clone()]) {
            let found = found.start + stretch.start..found.end + stretch.start;
            let written =
                touches(source.contents, &found) || touches(source.written_specials, &found);
            all.push((
                found,
                if written {
                    Found::Written
                } else {
                    Found::OfTemplate
                },
            ));
        }
        all
    }

    /// Text in which the template's special texts become tokens.
    fn run(&mut self, run: Range<usize>, specials: &[usize]) -> Result<(), TokenizeError> {
        let mut done = run.start;
        let mut unbroken = 0;
        let mut specials = specials.iter().copied().peekable();
        let text = self.text;
        for (offset, character) in text[run.clone()].char_indices() {
            let at = run.start + offset;
            let special = specials.next_if(|&special| special <= at).is_some();
            unbroken = if special || character.is_whitespace() {
                0
            } else {
                unbroken + 1
            };
            if unbroken > LONGEST_UNBROKEN_CHARS {
                self.piece(done..at, SpecialTokens::Parse)?;
                done = at;
                unbroken = 1;
            }
        }
        self.piece(done..run.end, SpecialTokens::Parse)
    }

    /// Text that stays text, even where it reads like a special token.
    fn literal(&mut self, range: Range<usize>) -> Result<(), TokenizeError> {
        let ids_before = self.encoded.ids.len();
        self.piece(range.clone(), SpecialTokens::AsText)?;
        let special = self.encoded.ids[ids_before..]
            .iter()
            .any(|&id| self.matcher.guards(id));
        let middle = middle(&self.text[range.clone()]);
        if special && middle > 0 {
            self.encoded.ids.truncate(ids_before);
            self.encoded.starts.truncate(ids_before);
            self.literal(range.start..range.start + middle)?;
            self.literal(range.start + middle..range.end)?;
        }
        Ok(())
    }

    fn piece(&mut self, range: Range<usize>, special: SpecialTokens) -> Result<(), TokenizeError> {
        let text = &self.text[range.clone()];
        if text.is_empty() {
            return Ok(());
        }
        let ids = if self.vocabulary.space_prefix() && range.start > 0 {
            self.tokenize_without_prefix(text, special)?
        } else {
            self.vocabulary.tokenize(text, special)?
        };
        let lengths: Vec<usize> = ids
            .iter()
            .map(|&id| self.vocabulary.piece(id).len())
            .collect();
        // Tokenizers that rewrite the text have pieces of another length altogether: shared out in proportion.
        let total = lengths.iter().sum::<usize>().max(1);
        let mut at = 0;
        for (id, length) in ids.into_iter().zip(lengths) {
            self.encoded.ids.push(id);
            self.encoded
                .starts
                .push(range.start + at * range.len() / total);
            at += length;
        }
        Ok(())
    }

    /// The tokens of text that goes on from other text: behind an anchor, whose own tokens are then taken off.
    fn tokenize_without_prefix(
        &self,
        text: &str,
        special: SpecialTokens,
    ) -> Result<Vec<TokenId>, TokenizeError> {
        for (anchor, anchor_ids) in &self.anchors {
            let ids = self
                .vocabulary
                .tokenize(&format!("{anchor}{text}"), special)?;
            let Some(ids) = ids.strip_prefix(anchor_ids.as_slice()) else {
                continue;
            };
            let first = ids
                .first()
                .map(|&id| self.vocabulary.piece(id))
                .unwrap_or_default();
            if !first.is_empty() && text.as_bytes().starts_with(&first) {
                return Ok(ids.to_vec());
            }
        }
        self.vocabulary.tokenize(text, special)
    }
}

enum Found {
    OfTemplate,
    Written,
}

/// The character boundary nearest the middle; 0 where there is none inside.
fn middle(text: &str) -> usize {
    (1..=text.len() / 2)
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or_else(|| text.chars().next().map_or(0, char::len_utf8) % text.len().max(1))
}
