//! What the engine needs of a loaded model. The real one wraps llama.cpp; tests script one, so that every failure can
//! be provoked.

use std::path::Path;
use std::sync::Arc;

use super::event::{EngineError, ModelFacts};
use super::options::LoadOptions;
use super::prompt::{PromptBuilder, Vocabulary};
pub use crate::llama::context::{DecodeError, Logits, Truncation};
pub use crate::llama::interrupt::Interrupt;

use super::token::TokenId;

/// A model with one sequence of context.
pub trait Inference: Send {
    /// What it is.
    fn facts(&self) -> &ModelFacts;

    /// Its vocabulary.
    fn vocabulary(&self) -> &dyn Vocabulary;

    /// How its prompts are built.
    fn prompts(&self) -> &PromptBuilder;

    /// How many tokens the context holds, by its own word.
    fn len(&self) -> usize;

    /// Whether the context is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads tokens behind the `start` tokens that are held.
    ///
    /// # Errors
    /// See [`DecodeError`]; afterwards [`Self::len`] tells what is held.
    fn decode(
        &mut self,
        tokens: &[TokenId],
        start: usize,
        logits: Logits,
    ) -> Result<(), DecodeError>;

    /// The logits after the last token, where the last decode computed them.
    fn logits(&self) -> Option<&[f32]>;

    /// Cuts the context back to `len` tokens.
    fn truncate(&mut self, len: usize) -> Truncation;

    /// Forgets everything held.
    fn clear(&mut self);
}

/// Makes models.
pub trait Loader: Send {
    /// Loads a model; what was loaded before is already dropped.
    ///
    /// # Errors
    /// What failed and what to do. Where `interrupt` cancelled it, any error will do.
    fn load(
        &mut self,
        path: &Path,
        options: &LoadOptions,
        interrupt: &Arc<Interrupt>,
        report: &mut dyn FnMut(f32),
    ) -> Result<Loaded, EngineError>;
}

/// A model as the loader hands it over.
pub struct Loaded {
    /// The model.
    pub model: Box<dyn Inference>,
    /// What the user should know about it.
    pub notices: Vec<String>,
}
