//! A loaded model's vocabulary, as prompts need it.

use std::sync::Arc;

use crate::engine::prompt::{SpecialKind, SpecialToken, SpecialTokens, TokenizeError, Vocabulary};
use crate::engine::token::TokenId;
use crate::llama::model::Model;
use crate::llama::vocab;

/// A model's vocabulary with its special tokens looked up once.
pub(super) struct LocalVocabulary {
    model: Arc<Model>,
    specials: Vec<SpecialToken>,
    space_prefix: bool,
}

impl LocalVocabulary {
    pub(super) fn of(model: Arc<Model>) -> Self {
        let ids = (0..model.vocab_size()).map(|id| TokenId(id.cast_signed()));
        let specials = ids
            .filter_map(|id| {
                let kind = match model.special_kind(id)? {
                    vocab::SpecialKind::Control => SpecialKind::Control,
                    vocab::SpecialKind::Unknown => SpecialKind::Unknown,
                    vocab::SpecialKind::UserDefined => SpecialKind::UserDefined,
                };
                Some(SpecialToken {
                    id,
                    text: model.entry(id),
                    kind,
                    ends_generation: model.is_eog(id),
                })
            })
            .collect();
        LocalVocabulary {
            specials,
            space_prefix: model.adds_space_prefix(),
            model,
        }
    }
}

impl Vocabulary for LocalVocabulary {
    fn tokenize(&self, text: &str, special: SpecialTokens) -> Result<Vec<TokenId>, TokenizeError> {
        let specials = match special {
            SpecialTokens::Parse => vocab::Specials::Parse,
            SpecialTokens::AsText => vocab::Specials::AsText,
        };
        self.model
            .tokenize(text, specials)
            .map_err(|error| TokenizeError {
                bytes: text.len(),
                reason: error.to_string(),
            })
    }

    fn piece(&self, id: TokenId) -> Vec<u8> {
        match self.model.special_kind(id) {
            Some(vocab::SpecialKind::Control | vocab::SpecialKind::Unknown) => {
                self.model.entry(id).into_bytes()
            }
            Some(vocab::SpecialKind::UserDefined) | None => self.model.piece(id),
        }
    }

    fn is_control(&self, id: TokenId) -> bool {
        matches!(
            self.model.special_kind(id),
            Some(vocab::SpecialKind::Control | vocab::SpecialKind::Unknown)
        )
    }

    fn is_eog(&self, id: TokenId) -> bool {
        self.model.is_eog(id)
    }

    fn specials(&self) -> &[SpecialToken] {
        &self.specials
    }

    fn add_bos(&self) -> bool {
        self.model.adds_bos()
    }

    fn bos(&self) -> Option<TokenId> {
        self.model.bos()
    }

    fn eos(&self) -> Option<TokenId> {
        self.model.eos()
    }

    fn space_prefix(&self) -> bool {
        self.space_prefix
    }
}
