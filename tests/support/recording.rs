//! A model that keeps the decode calls behind every token it still holds, so that a cold context can be fed the same
//! tokens in the same chunks.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use platen::engine::event::{EngineError, ModelFacts};
use platen::engine::inference::{
    DecodeError, Inference, Interrupt, Loaded, Loader, Logits, Seq, StateError, StatePart,
    Truncation,
};
use platen::engine::local::LocalLoader;
use platen::engine::options::LoadOptions;
use platen::engine::prompt::{PromptBuilder, Vocabulary};
use platen::engine::token::TokenId;

/// The chunks behind the tokens of the sequence that was decoded last.
pub type Chunks = Arc<Mutex<Vec<Vec<TokenId>>>>;

/// How the decode calls to come fail: with what, after how many of their tokens.
pub type Failures = Arc<Mutex<VecDeque<Option<(DecodeError, usize)>>>>;

#[derive(Default)]
pub struct RecordingLoader {
    pub chunks: Chunks,
    pub failures: Failures,
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
            lines: HashMap::new(),
            saved: HashMap::new(),
            latest: Arc::clone(&self.chunks),
            failures: Arc::clone(&self.failures),
        };
        Ok(Loaded {
            model: Box::new(model),
            ..loaded
        })
    }
}

struct Recording {
    inner: Box<dyn Inference>,
    lines: HashMap<Seq, Vec<Vec<TokenId>>>,
    /// The chunks behind each state that was saved, by its bytes.
    saved: HashMap<Vec<u8>, Vec<Vec<TokenId>>>,
    latest: Chunks,
    failures: Failures,
}

impl Recording {
    fn cut(&mut self, seq: Seq, len: usize) {
        let mut left = len;
        let chunks = self.lines.entry(seq).or_default();
        chunks.retain_mut(|chunk| {
            chunk.truncate(left);
            left -= chunk.len();
            !chunk.is_empty()
        });
    }

    /// After something that may have emptied more than was asked for.
    fn follow(&mut self) {
        let sequences: Vec<Seq> = self.lines.keys().copied().collect();
        for seq in sequences {
            self.cut(seq, self.inner.len(seq));
        }
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

    fn sequences(&self) -> u32 {
        self.inner.sequences()
    }

    fn len(&self, seq: Seq) -> usize {
        self.inner.len(seq)
    }

    fn decode(
        &mut self,
        seq: Seq,
        tokens: &[TokenId],
        start: usize,
        logits: Logits,
    ) -> Result<(), DecodeError> {
        let failure = self.failures.lock().unwrap().pop_front().flatten();
        let outcome = match failure {
            Some((error, kept)) => {
                let kept = kept.min(tokens.len());
                let part = (kept > 0)
                    .then(|| self.inner.decode(seq, &tokens[..kept], start, Logits::None));
                Err(part.and_then(Result::err).unwrap_or(error))
            }
            None => self.inner.decode(seq, tokens, start, logits),
        };
        self.lines.entry(seq).or_default().push(tokens.to_vec());
        if outcome.is_err() {
            self.cut(seq, self.inner.len(seq));
        }
        let mut latest = self.latest.lock().unwrap();
        latest.clone_from(&self.lines[&seq]);
        drop(latest);
        outcome
    }

    fn logits(&self) -> Option<&[f32]> {
        self.inner.logits()
    }

    fn truncate(&mut self, seq: Seq, len: usize) -> Truncation {
        let outcome = self.inner.truncate(seq, len);
        self.cut(seq, self.inner.len(seq));
        outcome
    }

    fn share(&mut self, from: Seq, to: Seq, len: usize) -> bool {
        let shared = self.inner.share(from, to, len);
        if shared {
            let line = self.lines.get(&from).cloned().unwrap_or_default();
            self.lines.insert(to, line);
            self.cut(to, len);
        }
        shared
    }

    fn forget(&mut self, seq: Seq) {
        self.inner.forget(seq);
        self.follow();
    }

    fn clear(&mut self) {
        self.inner.clear();
        self.follow();
    }

    fn save(&mut self, seq: Seq, part: StatePart) -> Result<Vec<u8>, StateError> {
        let bytes = self.inner.save(seq, part)?;
        let line = self.lines.get(&seq).cloned().unwrap_or_default();
        self.saved.insert(bytes.clone(), line);
        Ok(bytes)
    }

    fn restore(&mut self, seq: Seq, part: StatePart, bytes: &[u8]) -> Result<(), StateError> {
        let outcome = self.inner.restore(seq, part, bytes);
        self.follow();
        if outcome.is_ok() {
            // A state read from a file is not known here: its chunks are whatever the test says they were.
            let line = self.saved.get(bytes).cloned().unwrap_or_default();
            self.lines.insert(seq, line);
        }
        outcome
    }
}

/// A cold context that is fed chunks; it goes on from what it was fed before where that is the beginning, in the same
/// chunks.
pub struct Replay {
    path: PathBuf,
    options: LoadOptions,
    model: Box<dyn Inference>,
    fed: Vec<Vec<TokenId>>,
    /// The likeliest token after each position at the end of a chunk.
    choices: Vec<(usize, TokenId)>,
    logits: Vec<(usize, Vec<f32>)>,
}

impl Replay {
    pub fn new(path: &Path, options: &LoadOptions) -> Replay {
        Replay {
            path: path.to_owned(),
            options: options.clone(),
            model: cold(path, options),
            fed: Vec::new(),
            choices: Vec::new(),
            logits: Vec::new(),
        }
    }

    pub fn ln_probability(&self, position: usize, token: TokenId) -> f32 {
        let found = self.logits.iter().find(|(len, _)| *len == position);
        let logits = &found.unwrap().1;
        let best = logits.iter().copied().fold(f32::MIN, f32::max);
        let sum: f32 = logits.iter().map(|logit| (logit - best).exp()).sum();
        logits[usize::try_from(token.0).unwrap()] - best - sum.ln()
    }

    /// How far a token's logit after `position` tokens is below the largest.
    pub fn short_of_best(&self, position: usize, token: TokenId) -> f32 {
        let found = self.logits.iter().find(|(len, _)| *len == position);
        let logits = &found.unwrap().1;
        let best = logits.iter().copied().fold(f32::MIN, f32::max);
        best - logits[usize::try_from(token.0).unwrap()]
    }

    /// The likeliest token after `position` tokens of `chunks`.
    pub fn choice_after(&mut self, chunks: &[Vec<TokenId>], position: usize) -> TokenId {
        if !chunks.starts_with(&self.fed) {
            self.model = cold(&self.path, &self.options);
            self.fed.clear();
            self.choices.clear();
            self.logits.clear();
        }
        for chunk in &chunks[self.fed.len()..] {
            let start = self.model.len(Seq(0));
            self.model
                .decode(Seq(0), chunk, start, Logits::Last)
                .unwrap();
            let best = likeliest(self.model.logits().unwrap());
            self.choices.push((start + chunk.len(), best));
            self.logits
                .push((start + chunk.len(), self.model.logits().unwrap().to_vec()));
            self.fed.push(chunk.clone());
        }
        let found = self.choices.iter().find(|(len, _)| *len == position);
        found.unwrap().1
    }
}

fn cold(path: &Path, options: &LoadOptions) -> Box<dyn Inference> {
    let interrupt = Arc::new(Interrupt::default());
    interrupt.begin(1);
    LocalLoader::default()
        .load(path, options, &interrupt, &mut |_| {})
        .unwrap()
        .model
}

fn likeliest(logits: &[f32]) -> TokenId {
    let best = logits
        .iter()
        .enumerate()
        .max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)))
        .map(|(id, _)| id)
        .unwrap();
    TokenId(i32::try_from(best).unwrap())
}

/// The likeliest token after each position of a cold context that is fed `chunks`.
pub fn cold_choices(
    path: &Path,
    options: &LoadOptions,
    chunks: &[Vec<TokenId>],
) -> Vec<(usize, TokenId)> {
    let mut replay = Replay::new(path, options);
    let len = chunks.iter().map(Vec::len).sum();
    replay.choice_after(chunks, len);
    replay.choices
}
