//! What a prompt needs to know of a model's vocabulary. A trait, so that prompts are built and tested without a
//! model.

use crate::engine::token::TokenId;

/// Whether the texts of special tokens become those tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecialTokens {
    /// They do: the text comes from a chat template.
    Parse,
    /// They stay text. User-defined tokens are matched all the same; see [`SpecialKind::UserDefined`].
    AsText,
}

/// What a special token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecialKind {
    /// It steers the model and stands for no text.
    Control,
    /// It stands for what has no token.
    Unknown,
    /// Text added to the vocabulary as one token; the tokenizer matches it in any text.
    UserDefined,
}

/// A token whose text the tokenizer treats apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecialToken {
    /// The token.
    pub id: TokenId,
    /// Its text.
    pub text: String,
    /// What it is for.
    pub kind: SpecialKind,
    /// Whether it ends a reply.
    pub ends_generation: bool,
}

/// A text that the tokenizer refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the tokenizer failed on {bytes} bytes of text: {reason}")]
pub struct TokenizeError {
    /// How long the text is.
    pub bytes: usize,
    /// What the tokenizer says.
    pub reason: String,
}

/// A model's vocabulary.
pub trait Vocabulary {
    /// The tokens of a text; never adds BOS or EOS.
    ///
    /// # Errors
    /// What the tokenizer refuses.
    fn tokenize(&self, text: &str, special: SpecialTokens) -> Result<Vec<TokenId>, TokenizeError>;

    /// The bytes of a token; a special token's text. Empty for an id outside the vocabulary.
    fn piece(&self, id: TokenId) -> Vec<u8>;

    /// Whether it is a control token.
    fn is_control(&self, id: TokenId) -> bool;

    /// Whether a reply ends at it.
    fn is_eog(&self, id: TokenId) -> bool {
        self.specials()
            .iter()
            .any(|special| special.id == id && special.ends_generation)
    }

    /// All special tokens.
    fn specials(&self) -> &[SpecialToken];

    /// Whether the model wants BOS at the start of its prompt.
    fn add_bos(&self) -> bool;

    /// The token that begins a text.
    fn bos(&self) -> Option<TokenId>;

    /// The token that ends a text or a turn.
    fn eos(&self) -> Option<TokenId>;

    /// Whether the tokenizer puts a space before each text it is given.
    fn space_prefix(&self) -> bool;
}
