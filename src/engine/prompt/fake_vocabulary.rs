//! A vocabulary for tests: bytes, some longer tokens taken greedily, and special tokens cut out first, as
//! llama.cpp does it.

#![allow(clippy::unwrap_used, reason = "tests")]

use super::vocabulary::{SpecialKind, SpecialToken, SpecialTokens, TokenizeError, Vocabulary};
use crate::engine::token::TokenId;

const FIRST_WORD: i32 = 1000;
const FIRST_SPECIAL: i32 = 5000;
const WORDS: [&str; 14] = [
    "user",
    "assistant",
    "system",
    "model",
    "Hello",
    " Paris",
    "Paris",
    "\n\n",
    "the ",
    "ing",
    "im_",
    "end",
    "  ",
    ".\n",
];

/// See the module.
#[derive(Debug, Clone)]
pub struct FakeVocabulary {
    pub specials: Vec<SpecialToken>,
    pub bos: Option<&'static str>,
    pub eos: Option<&'static str>,
    pub add_bos: bool,
    pub space_prefix: bool,
}

impl FakeVocabulary {
    pub fn new(control: &[&str], user_defined: &[&str]) -> FakeVocabulary {
        let all = control
            .iter()
            .map(|text| (text, SpecialKind::Control))
            .chain(
                user_defined
                    .iter()
                    .map(|text| (text, SpecialKind::UserDefined)),
            );
        let specials = all
            .zip(FIRST_SPECIAL..)
            .map(|((text, kind), id)| SpecialToken {
                id: TokenId(id),
                text: (*text).to_string(),
                kind,
                ends_generation: text.contains("end") && !text.contains("header"),
            })
            .collect();
        FakeVocabulary {
            specials,
            bos: None,
            eos: None,
            add_bos: false,
            space_prefix: false,
        }
    }

    pub fn special(&self, text: &str) -> TokenId {
        self.specials
            .iter()
            .find(|special| special.text == text)
            .map(|special| special.id)
            .unwrap()
    }

    pub fn text(&self, ids: &[TokenId]) -> String {
        let bytes: Vec<u8> = ids.iter().flat_map(|&id| self.piece(id)).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn words(&self, text: &str, ids: &mut Vec<TokenId>) {
        let prefix = if self.space_prefix && !text.is_empty() {
            " "
        } else {
            ""
        };
        let text = format!("{prefix}{text}");
        let mut rest = text.as_bytes();
        while let Some(&byte) = rest.first() {
            let word = WORDS
                .iter()
                .zip(FIRST_WORD..)
                .filter(|(word, _)| rest.starts_with(word.as_bytes()))
                .max_by_key(|(word, _)| word.len());
            let (id, length) = word.map_or((i32::from(byte), 1), |(word, id)| (id, word.len()));
            ids.push(TokenId(id));
            rest = &rest[length..];
        }
    }
}

impl Vocabulary for FakeVocabulary {
    fn tokenize(&self, text: &str, special: SpecialTokens) -> Result<Vec<TokenId>, TokenizeError> {
        let mut ids = Vec::new();
        let mut plain_from = 0;
        let mut at = 0;
        while at < text.len() {
            let found = self
                .specials
                .iter()
                .filter(|token| {
                    special == SpecialTokens::Parse || token.kind == SpecialKind::UserDefined
                })
                .filter(|token| text[at..].starts_with(&token.text))
                .max_by_key(|token| token.text.len());
            match found {
                Some(token) => {
                    self.words(&text[plain_from..at], &mut ids);
                    ids.push(token.id);
                    at += token.text.len();
                    plain_from = at;
                }
                None => at += text[at..].chars().next().map_or(1, char::len_utf8),
            }
        }
        self.words(&text[plain_from..], &mut ids);
        Ok(ids)
    }

    fn piece(&self, id: TokenId) -> Vec<u8> {
        if let Ok(byte) = u8::try_from(id.0) {
            return vec![byte];
        }
        let word = usize::try_from(id.0 - FIRST_WORD)
            .ok()
            .and_then(|index| WORDS.get(index));
        match word {
            Some(word) => word.as_bytes().to_vec(),
            None => self
                .specials
                .iter()
                .find(|special| special.id == id)
                .map(|special| special.text.clone().into_bytes())
                .unwrap_or_default(),
        }
    }

    fn is_control(&self, id: TokenId) -> bool {
        self.specials
            .iter()
            .any(|special| special.id == id && special.kind == SpecialKind::Control)
    }

    fn specials(&self) -> &[SpecialToken] {
        &self.specials
    }

    fn add_bos(&self) -> bool {
        self.add_bos
    }

    fn bos(&self) -> Option<TokenId> {
        self.bos.map(|text| self.special(text))
    }

    fn eos(&self) -> Option<TokenId> {
        self.eos.map(|text| self.special(text))
    }

    fn space_prefix(&self) -> bool {
        self.space_prefix
    }
}
