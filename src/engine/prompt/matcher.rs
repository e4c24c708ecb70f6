//! Finds the texts of special tokens in other text, so that what people write never turns into one.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use super::vocabulary::{SpecialKind, Vocabulary};
use crate::engine::token::TokenId;

/// The special tokens that written text must not become.
#[derive(Debug)]
pub struct SpecialMatcher {
    texts: HashSet<String>,
    ids: HashSet<TokenId>,
    lengths_by_first_byte: HashMap<u8, BTreeSet<usize>>,
}

impl SpecialMatcher {
    /// All control and unknown tokens, and of the user-defined ones those that the template speaks or that end a
    /// reply; the others (runs of newlines, HTML tags) are ordinary text.
    pub fn new(vocabulary: &dyn Vocabulary, template: &str) -> SpecialMatcher {
        let mut matcher = SpecialMatcher {
            texts: HashSet::new(),
            ids: HashSet::new(),
            lengths_by_first_byte: HashMap::new(),
        };
        for special in vocabulary.specials() {
            let guarded = match special.kind {
                SpecialKind::Control | SpecialKind::Unknown => true,
                SpecialKind::UserDefined => {
                    special.ends_generation
                        || (!special.text.trim().is_empty()
                            && template.contains(special.text.as_str()))
                }
            };
            let Some(&first) = special.text.as_bytes().first().filter(|_| guarded) else {
                continue;
            };
            matcher
                .lengths_by_first_byte
                .entry(first)
                .or_default()
                .insert(special.text.len());
            matcher.texts.insert(special.text.clone());
            matcher.ids.insert(special.id);
        }
        matcher
    }

    /// Whether a token is one of those guarded against.
    pub fn guards(&self, id: TokenId) -> bool {
        self.ids.contains(&id)
    }

    /// Every occurrence from left to right, the longest at each place, none overlapping.
    pub fn find_all(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < text.len() {
            match self.match_length(text, at) {
                Some(length) => {
                    found.push(at..at + length);
                    at += length;
                }
                None => at += 1,
            }
        }
        found
    }

    fn match_length(&self, text: &str, at: usize) -> Option<usize> {
        let lengths = self.lengths_by_first_byte.get(&text.as_bytes()[at])?;
        lengths.iter().rev().copied().find(|length| {
            text.get(at..at + length)
                .is_some_and(|candidate| self.texts.contains(candidate))
        })
    }
}
