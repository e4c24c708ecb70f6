//! From logits to a token. Candidates are narrowed here in one pass over the logits; llama.cpp's samplers then work on
//! the few that are left, one by one, so that a setting can change between two tokens while the random state and the
//! penalties' memory stay.

mod softmax;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;

use crate::engine::sampling::{InvalidSampling, Sampling};
use crate::engine::token::TokenId;
use softmax::{Normaliser, largest};

/// The most tokens that the repeat penalty can look back on.
pub const LONGEST_MEMORY: usize = 4096;

/// A chosen token.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The token.
    pub token: TokenId,
    /// Softmax of the raw logits for it.
    pub probability: f32,
    /// The likeliest candidates by raw logits, the likeliest first.
    pub candidates: Vec<Candidate>,
}

/// A candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The token.
    pub token: TokenId,
    /// Softmax of the raw logits.
    pub probability: f32,
    /// Its chance in the draw; 0 where a sampler removed it.
    pub chance: f32,
}

/// Why no token could be chosen.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SampleError {
    /// A setting out of its limits.
    #[error(transparent)]
    Settings(#[from] InvalidSampling),
    /// The model computed no numbers.
    #[error("the model's logits are not numbers; the file may be damaged")]
    NotNumbers,
}

/// The samplers of one reply.
#[derive(Debug)]
pub struct Sampler {
    settings: Sampling,
    seed: u32,
    vocab: i32,
    draw: LlamaSampler,
    penalties: Option<LlamaSampler>,
    filters: Vec<LlamaSampler>,
    /// The latest tokens, for penalties that are turned on or lengthened in mid-reply.
    memory: VecDeque<TokenId>,
}

impl Sampler {
    /// The samplers for `settings`, drawing by `seed`.
    ///
    /// # Errors
    /// Settings out of their limits.
    pub fn new(vocab: u32, settings: &Sampling, seed: u32) -> Result<Sampler, InvalidSampling> {
        settings.validate()?;
        let mut sampler = Sampler {
            settings: settings.clone(),
            seed,
            vocab: i32::try_from(vocab).unwrap_or(i32::MAX),
            draw: LlamaSampler::dist(seed),
            penalties: None,
            filters: Vec::new(),
            memory: VecDeque::new(),
        };
        sampler.rebuild();
        Ok(sampler)
    }

    /// The settings in force.
    #[must_use]
    pub fn settings(&self) -> &Sampling {
        &self.settings
    }

    /// The seed that is drawn by.
    #[must_use]
    pub fn seed(&self) -> u32 {
        self.seed
    }

    /// Changes the settings from the next token on; the random state goes on, whatever the new seed.
    ///
    /// # Errors
    /// Settings out of their limits; the old ones stay.
    pub fn set(&mut self, settings: &Sampling) -> Result<(), InvalidSampling> {
        settings.validate()?;
        self.settings = settings.clone();
        self.rebuild();
        Ok(())
    }

    fn rebuild(&mut self) {
        let Sampling {
            temperature,
            top_k,
            top_p,
            min_p,
            repeat_penalty,
            repeat_last_n,
            seed: _,
        } = self.settings;
        let last_n = (repeat_last_n as usize).min(LONGEST_MEMORY);
        self.penalties = (is_other(repeat_penalty, 1.0) && last_n > 0).then(|| {
            let window = i32::try_from(last_n).unwrap_or(i32::MAX);
            LlamaSampler::penalties(self.vocab, window, repeat_penalty, 0.0, 0.0)
                .with_tokens(self.memory.iter().map(|token| LlamaToken(token.0)))
        });
        self.filters.clear();
        if top_k > 0 {
            self.filters.push(LlamaSampler::top_k(
                i32::try_from(top_k).unwrap_or(i32::MAX),
            ));
        }
        if top_p < 1.0 {
            self.filters.push(LlamaSampler::top_p(top_p, 1));
        }
        if min_p > 0.0 {
            self.filters.push(LlamaSampler::min_p(min_p, 1));
        }
        if temperature > 0.0 {
            self.filters.push(LlamaSampler::temp(temperature));
        }
    }

    /// Chooses the next token from the logits of the whole vocabulary and remembers it, once. `shown` likeliest
    /// candidates come with it.
    ///
    /// # Errors
    /// Logits that are no numbers.
    pub fn choose(&mut self, logits: &[f32], shown: usize) -> Result<Choice, SampleError> {
        let normaliser = Normaliser::of(logits)?;
        let likeliest = largest(logits, shown);
        let mut array = self.candidates(logits);
        if let Some(penalties) = &mut self.penalties {
            array.apply_sampler(penalties);
            array.sorted = false;
        }
        if self.settings.temperature > 0.0 {
            for filter in &mut self.filters {
                array.apply_sampler(filter);
            }
            array.apply_sampler(&mut self.draw);
        } else {
            array.apply_sampler(&mut LlamaSampler::greedy());
        }
        let token = array.selected_token().ok_or(SampleError::NotNumbers)?;
        let greedy = self.settings.temperature <= 0.0;
        let chance = |wanted: i32| {
            if greedy {
                return f32::from(u8::from(wanted == token.0));
            }
            array
                .data
                .iter()
                .find(|data| data.id().0 == wanted)
                .map_or(0.0, LlamaTokenData::p)
        };
        let choice = Choice {
            token: TokenId(token.0),
            probability: usize::try_from(token.0)
                .ok()
                .and_then(|at| logits.get(at))
                .map_or(0.0, |logit| normaliser.probability(*logit)),
            candidates: likeliest
                .into_iter()
                .map(|(id, logit)| Candidate {
                    token: TokenId(id),
                    probability: normaliser.probability(logit),
                    chance: chance(id),
                })
                .collect(),
        };
        self.accept(choice.token);
        Ok(choice)
    }

    /// Remembers a token of the conversation for the penalties.
    pub fn accept(&mut self, token: TokenId) {
        if self.memory.len() == LONGEST_MEMORY {
            self.memory.pop_front();
        }
        self.memory.push_back(token);
        if let Some(penalties) = &mut self.penalties {
            // Only grammars refuse a token, and there is none here.
            let _ = penalties.try_accept(LlamaToken(token.0));
        }
    }

    /// The candidates that can matter: all without top-k; with it the k likeliest, and room for those that penalties
    /// push down or pull up.
    fn candidates(&self, logits: &[f32]) -> LlamaTokenDataArray {
        let data = |(id, logit): (i32, f32)| LlamaTokenData::new(LlamaToken(id), logit, 0.0);
        let penalised = match &self.penalties {
            Some(_) => (self.settings.repeat_last_n as usize).min(self.memory.len()),
            None => 0,
        };
        let kept = match self.settings.top_k as usize {
            _ if self.settings.temperature <= 0.0 => 1 + penalised,
            0 => {
                let all = (0..).zip(logits.iter().copied()).map(data);
                return LlamaTokenDataArray::new(all.collect(), false);
            }
            k => k.saturating_add(penalised),
        };
        let mut chosen = largest(logits, kept);
        for token in self.memory.iter().rev().take(penalised) {
            let seen = chosen.iter().any(|(id, _)| *id == token.0);
            if let Some(logit) = usize::try_from(token.0).ok().and_then(|at| logits.get(at))
                && !seen
            {
                chosen.push((token.0, *logit));
            }
        }
        LlamaTokenDataArray::new(chosen.into_iter().map(data).collect(), penalised == 0)
    }
}

fn is_other(value: f32, neutral: f32) -> bool {
    (value - neutral).abs() > f32::EPSILON
}
