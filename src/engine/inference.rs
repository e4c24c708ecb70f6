//! What the engine needs of a loaded model. The real one wraps llama.cpp; tests script one, so that every failure can
//! be provoked.

use std::path::Path;
use std::sync::Arc;

use super::event::{EngineError, ModelFacts};
use super::options::LoadOptions;
use super::prompt::{PromptBuilder, Vocabulary};
pub use crate::llama::context::{DecodeError, Logits, Truncation};
pub use crate::llama::interrupt::Interrupt;
pub use crate::llama::state::{StateError, StatePart};

use super::token::TokenId;

/// A sequence of a context, by its number from 0: a line of tokens with a beginning of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seq(pub u32);

/// A model with its context. A sequence that the context does not have is empty and takes nothing.
pub trait Inference: Send {
    /// What it is.
    fn facts(&self) -> &ModelFacts;

    /// Its vocabulary.
    fn vocabulary(&self) -> &dyn Vocabulary;

    /// How its prompts are built.
    fn prompts(&self) -> &PromptBuilder;

    /// How many sequences the context holds side by side.
    fn sequences(&self) -> u32;

    /// How many tokens a sequence holds, by the context's own word.
    fn len(&self, seq: Seq) -> usize;

    /// Reads tokens behind the `start` tokens that the sequence holds.
    ///
    /// # Errors
    /// See [`DecodeError`]; afterwards [`Self::len`] tells what is held.
    fn decode(
        &mut self,
        seq: Seq,
        tokens: &[TokenId],
        start: usize,
        logits: Logits,
    ) -> Result<(), DecodeError>;

    /// The logits after the last token, where the last decode computed them.
    fn logits(&self) -> Option<&[f32]>;

    /// Cuts a sequence back to `len` tokens.
    fn truncate(&mut self, seq: Seq, len: usize) -> Truncation;

    /// Lets the empty sequence `to` begin with the first `len` tokens of `from`, in the same cells. Tells whether it
    /// does now.
    fn share(&mut self, from: Seq, to: Seq, len: usize) -> bool;

    /// Empties a sequence.
    fn forget(&mut self, seq: Seq);

    /// Empties every sequence.
    fn clear(&mut self);

    /// The state of a sequence.
    ///
    /// # Errors
    /// See [`StateError`].
    fn save(&mut self, seq: Seq, part: StatePart) -> Result<Vec<u8>, StateError>;

    /// Puts a state back that [`Self::save`] returned, instead of what the sequence holds. There are no logits then.
    ///
    /// # Errors
    /// See [`StateError`]; the sequence is empty then, and all of them may be.
    fn restore(&mut self, seq: Seq, part: StatePart, bytes: &[u8]) -> Result<(), StateError>;
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
    /// Bytes of memory that states set aside may take.
    pub spare_ram: usize,
}
