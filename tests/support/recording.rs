//! A model that keeps the decode calls behind every token it still holds, so that a cold context can be fed the same
//! tokens in the same chunks.

use std::path::Path;
use std::sync::{Arc, Mutex};

use platen::engine::event::{EngineError, ModelFacts};
use platen::engine::inference::{
    DecodeError, Inference, Interrupt, Loaded, Loader, Logits, Truncation,
};
use platen::engine::local::LocalLoader;
use platen::engine::options::LoadOptions;
use platen::engine::prompt::{PromptBuilder, Vocabulary};
use platen::engine::token::TokenId;

/// The chunks held.
pub type Chunks = Arc<Mutex<Vec<Vec<TokenId>>>>;

#[derive(Default)]
pub struct RecordingLoader {
    pub chunks: Chunks,
}

impl Loader for RecordingLoader {
    fn load(
        &mut self,
        path: &Path,
        options: &LoadOptions,
        interrupt: &Arc<Interrupt>,
        report: &mut dyn FnMut(f32),
    ) -> Result<Loaded, EngineError> {
        let loaded = LocalLoader::default().load(path, options, interrupt, report)?;
        let model = Recording {
            inner: loaded.model,
            chunks: Arc::clone(&self.chunks),
        };
        Ok(Loaded {
            model: Box::new(model),
            notices: loaded.notices,
        })
    }
}

struct Recording {
    inner: Box<dyn Inference>,
    chunks: Chunks,
}

impl Recording {
    fn cut(&self, len: usize) {
        let mut chunks = self.chunks.lock().unwrap();
        let mut left = len;
        chunks.retain_mut(|chunk| {
            chunk.truncate(left);
            left -= chunk.len();
            !chunk.is_empty()
        });
    }
}

impl Inference for Recording {
    fn facts(&self) -> &ModelFacts {
        self.inner.facts()
    }

    fn vocabulary(&self) -> &dyn Vocabulary {
        self.inner.vocabulary()
    }

    fn prompts(&self) -> &PromptBuilder {
        self.inner.prompts()
    }

    fn len(&self) -> usize {
        self.inner.len()
    }

    fn decode(
        &mut self,
        tokens: &[TokenId],
        start: usize,
        logits: Logits,
    ) -> Result<(), DecodeError> {
        let outcome = self.inner.decode(tokens, start, logits);
        self.chunks.lock().unwrap().push(tokens.to_vec());
        if outcome.is_err() {
            self.cut(self.inner.len());
        }
        outcome
    }

    fn logits(&self) -> Option<&[f32]> {
        self.inner.logits()
    }

    fn truncate(&mut self, len: usize) -> Truncation {
        let outcome = self.inner.truncate(len);
        if outcome == Truncation::Done {
            self.cut(len);
        }
        outcome
    }

    fn clear(&mut self) {
        self.inner.clear();
        self.cut(0);
    }
}

/// The likeliest token after each position of a cold context that is fed `chunks`.
pub fn cold_choices(
    path: &Path,
    options: &LoadOptions,
    chunks: &[Vec<TokenId>],
) -> Vec<(usize, TokenId)> {
    let interrupt = Arc::new(Interrupt::default());
    interrupt.begin(1);
    let mut model = LocalLoader::default()
        .load(path, options, &interrupt, &mut |_| {})
        .unwrap()
        .model;
    let mut choices = Vec::new();
    for chunk in chunks {
        let start = model.len();
        model.decode(chunk, start, Logits::Last).unwrap();
        let logits = model.logits().unwrap();
        let best = logits
            .iter()
            .enumerate()
            .max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)))
            .map(|(id, _)| TokenId(i32::try_from(id).unwrap()))
            .unwrap();
        choices.push((model.len(), best));
    }
    choices
}
