//! The vocabulary: text to tokens and back, every id checked. Special tokens such as BOS are `None` where the model
//! has none, so that llama.cpp's −1 never travels.

use std::ffi::CStr;

use llama_cpp_sys_2 as sys;

use super::model::Model;
use crate::engine::token::TokenId;

/// Whether the names of control tokens in a text become those tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Specials {
    /// They do: for a template's own text.
    Parse,
    /// They stay text: for what people write.
    AsText,
}

/// What kind of token it is, where it is no ordinary piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpecialKind {
    /// Never text: role markers, ends of turns.
    Control,
    /// The stand-in for what the vocabulary lacks.
    Unknown,
    /// Added by the model's makers; the tokenizer matches it in any text.
    UserDefined,
}

/// The text can't be tokenised.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenizeError {
    /// Larger than anything a context takes.
    #[error("the text is {0} bytes long; at most {LONGEST_TEXT} can be tokenised")]
    TooLong(usize),
    /// The model has no usable tokenizer.
    #[error("this model's tokenizer failed on the text")]
    Failed,
}

/// The longest text that is tokenised, in bytes.
pub const LONGEST_TEXT: usize = 64 << 20;
/// Some tokenizers recurse once a character over an unbroken run; longer runs are cut at this many characters.
const LONGEST_RUN: usize = 4096;
/// `SentencePiece` grows its output by one for each byte without a token of its own, which is quadratic; texts are cut
/// at the first space after this many bytes, or anywhere after four times as many.
const LONGEST_PIECE: usize = 16 << 10;

impl Model {
    fn vocab_ptr(&self) -> *const sys::llama_vocab {
        // SAFETY: the model is alive and owns its vocabulary.
        unsafe { sys::llama_model_get_vocab(self.as_ptr()) }
    }

    /// The number of tokens.
    #[must_use]
    pub fn vocab_size(&self) -> u32 {
        // SAFETY: the vocabulary lives as long as the model.
        unsafe { sys::llama_vocab_n_tokens(self.vocab_ptr()) }.unsigned_abs()
    }

    /// Whether `token` is in the vocabulary.
    #[must_use]
    pub fn knows(&self, token: TokenId) -> bool {
        u32::try_from(token.0).is_ok_and(|id| id < self.vocab_size())
    }

    /// The beginning-of-sequence token.
    #[must_use]
    pub fn bos(&self) -> Option<TokenId> {
        // SAFETY: the vocabulary lives as long as the model.
        self.valid(unsafe { sys::llama_vocab_bos(self.vocab_ptr()) })
    }

    /// The end-of-sequence token.
    #[must_use]
    pub fn eos(&self) -> Option<TokenId> {
        // SAFETY: the vocabulary lives as long as the model.
        self.valid(unsafe { sys::llama_vocab_eos(self.vocab_ptr()) })
    }

    fn valid(&self, id: i32) -> Option<TokenId> {
        Some(TokenId(id)).filter(|token| self.knows(*token))
    }

    /// Whether the model wants a BOS token before the prompt.
    #[must_use]
    pub fn adds_bos(&self) -> bool {
        // SAFETY: the vocabulary lives as long as the model.
        unsafe { sys::llama_vocab_get_add_bos(self.vocab_ptr()) }
    }

    /// Whether the tokenizer puts a space before a text (`SentencePiece` does by default).
    #[must_use]
    pub fn adds_space_prefix(&self) -> bool {
        self.is_sentencepiece()
            && self
                .metadata("tokenizer.ggml.add_space_prefix")
                .is_none_or(|value| value != "false")
    }

    fn is_sentencepiece(&self) -> bool {
        // SAFETY: the vocabulary lives as long as the model.
        unsafe { sys::llama_vocab_type(self.vocab_ptr()) == sys::LLAMA_VOCAB_TYPE_SPM }
    }

    /// Whether generation ends at `token`; false for one outside the vocabulary.
    #[must_use]
    pub fn is_eog(&self, token: TokenId) -> bool {
        // SAFETY: the id is in the vocabulary.
        self.knows(token) && unsafe { sys::llama_vocab_is_eog(self.vocab_ptr(), token.0) }
    }

    /// The kind of a token that is no ordinary text; `None` for ordinary ones and outside the vocabulary.
    #[must_use]
    pub fn special_kind(&self, token: TokenId) -> Option<SpecialKind> {
        if !self.knows(token) {
            return None;
        }
        // SAFETY: the id is in the vocabulary.
        let attr = unsafe { sys::llama_vocab_get_attr(self.vocab_ptr(), token.0) };
        let has = |flag| attr & flag != 0;
        if has(sys::LLAMA_TOKEN_ATTR_CONTROL) {
            Some(SpecialKind::Control)
        } else if has(sys::LLAMA_TOKEN_ATTR_UNKNOWN) {
            Some(SpecialKind::Unknown)
        } else if has(sys::LLAMA_TOKEN_ATTR_USER_DEFINED) {
            Some(SpecialKind::UserDefined)
        } else {
            None
        }
    }

    /// The token's entry in the vocabulary (for a control token, its name); empty outside it.
    #[must_use]
    pub fn entry(&self, token: TokenId) -> String {
        if !self.knows(token) {
            return String::new();
        }
        // SAFETY: the id is in the vocabulary; the string lives as long as the model.
        let text = unsafe { sys::llama_vocab_get_text(self.vocab_ptr(), token.0) };
        if text.is_null() {
            return String::new();
        }
        // SAFETY: not null and NUL-terminated.
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned()
    }

    /// The bytes that a token stands for; none for control tokens and outside the vocabulary.
    #[must_use]
    pub fn piece(&self, token: TokenId) -> Vec<u8> {
        if !self.knows(token) {
            return Vec::new();
        }
        let mut buffer = vec![0_u8; 32];
        loop {
            let len = i32::try_from(buffer.len()).unwrap_or(i32::MAX);
            // SAFETY: the id is in the vocabulary and the buffer has the length given.
            let written = unsafe {
                sys::llama_token_to_piece(
                    self.vocab_ptr(),
                    token.0,
                    buffer.as_mut_ptr().cast(),
                    len,
                    0,
                    false,
                )
            };
            if let Ok(written) = usize::try_from(written) {
                buffer.truncate(written);
                return buffer;
            }
            buffer.resize(written.unsigned_abs() as usize, 0);
        }
    }

    /// Tokenises a text, without BOS or EOS, in pieces where a tokenizer would recurse or take quadratic time.
    ///
    /// # Errors
    /// A text over [`LONGEST_TEXT`] bytes, or a tokenizer that fails.
    pub fn tokenize(&self, text: &str, specials: Specials) -> Result<Vec<TokenId>, TokenizeError> {
        if text.len() > LONGEST_TEXT {
            return Err(TokenizeError::TooLong(text.len()));
        }
        let pieces = if self.is_sentencepiece() {
            cut_at_spaces(text, LONGEST_PIECE, self.adds_space_prefix())
        } else {
            cut_runs(text, LONGEST_RUN)
        };
        let mut tokens = Vec::with_capacity(text.len() / 3);
        for piece in pieces {
            tokens.append(&mut self.tokenize_piece(piece, specials)?);
        }
        Ok(tokens)
    }

    fn tokenize_piece(
        &self,
        text: &str,
        specials: Specials,
    ) -> Result<Vec<TokenId>, TokenizeError> {
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let text_len = i32::try_from(text.len()).map_err(|_| TokenizeError::TooLong(text.len()))?;
        let mut ids = vec![0_i32; text.len() / 2 + 16];
        loop {
            let capacity = i32::try_from(ids.len()).map_err(|_| TokenizeError::Failed)?;
            // SAFETY: text and buffer have the lengths given; without `add_special` no BOS is looked up.
            let count = unsafe {
                sys::llama_tokenize(
                    self.vocab_ptr(),
                    text.as_ptr().cast(),
                    text_len,
                    ids.as_mut_ptr(),
                    capacity,
                    false,
                    specials == Specials::Parse,
                )
            };
            if let Ok(count) = usize::try_from(count) {
                ids.truncate(count);
                return Ok(ids.into_iter().map(TokenId).collect());
            }
            if count == i32::MIN {
                return Err(TokenizeError::Failed);
            }
            ids.resize(count.unsigned_abs() as usize, 0);
        }
    }
}

/// Cuts a text at the first single space after every `longest` bytes. Where the tokenizer puts a space before each
/// text, the one at the cut is left out for it.
fn cut_at_spaces(text: &str, longest: usize, space_is_added: bool) -> Vec<&str> {
    let bytes = text.as_bytes();
    let is_space = |at: usize| bytes.get(at) == Some(&b' ');
    let (mut pieces, mut start) = (Vec::new(), 0);
    let mut at = longest;
    while at < text.len() {
        let is_single_space = is_space(at) && !is_space(at - 1) && !is_space(at + 1);
        if is_single_space && at + 1 < text.len() {
            pieces.push(&text[start..at]);
            start = if space_is_added { at + 1 } else { at };
            at = start + longest;
        } else if at >= start + 4 * longest && text.is_char_boundary(at) {
            pieces.push(&text[start..at]);
            start = at;
            at += longest;
        } else {
            at += 1;
        }
    }
    pieces.push(&text[start..]);
    pieces
}

/// Cuts a text after every `longest` characters in which white space and other characters don't alternate.
fn cut_runs(text: &str, longest: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut run, mut run_is_space) = (0, 0, false);
    for (at, ch) in text.char_indices() {
        if ch.is_whitespace() != run_is_space {
            (run, run_is_space) = (0, ch.is_whitespace());
        }
        if run == longest {
            pieces.push(&text[start..at]);
            (start, run) = (at, 0);
        }
        run += 1;
    }
    pieces.push(&text[start..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::{cut_at_spaces, cut_runs};

    #[test]
    fn runs_are_cut_and_nothing_is_lost() {
        assert_eq!(cut_runs("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(cut_runs("ab cd ef", 3), ["ab cd ef"]);
        assert_eq!(cut_runs("a     b", 3), ["a   ", "  b"]);
        assert_eq!(cut_runs("", 3), [""]);
    }

    #[test]
    fn long_texts_are_cut_at_single_spaces_or_after_four_times_the_length() {
        assert_eq!(cut_at_spaces("ab cd ef", 2, true), ["ab", "cd", "ef"]);
        assert_eq!(cut_at_spaces("ab cd ef", 2, false), ["ab", " cd", " ef"]);
        assert_eq!(cut_at_spaces("ab  cd", 2, true), ["ab  cd"]);
        assert_eq!(cut_at_spaces("ab ", 2, true), ["ab "]);
        assert_eq!(cut_at_spaces(&"é".repeat(8), 2, false), ["éééé", "éééé"]);
        assert_eq!(cut_at_spaces("", 2, true), [""]);
    }
}
