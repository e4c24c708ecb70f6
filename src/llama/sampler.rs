//! From logits to a token. Candidates are narrowed here in one pass over the logits; llama.cpp's samplers then work on
//! the few that are left, one by one, so that a setting can change between two tokens while the random state and the
//! penalties' memory stay.

use std::collections::VecDeque;

use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;

use crate::engine::sampling::{InvalidSampling, Sampling};
use crate::engine::token::TokenId;

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

/// The `count` largest values with their indices, the largest first, the lower index first among equals.
fn largest(values: &[f32], count: usize) -> Vec<(i32, f32)> {
    let order = |a: &(i32, f32), b: &(i32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    let with_ids = (0_i32..).zip(values.iter().copied());
    let count = count.min(values.len());
    if count == 0 {
        return Vec::new();
    }
    let mut kept: Vec<(i32, f32)>;
    if count * 4 >= values.len() {
        kept = with_ids.collect();
    } else {
        // A buffer of twice the size is cut to the best whenever it is full; the threshold keeps most values out.
        let room = (count * 2).max(64);
        kept = Vec::with_capacity(room);
        let mut threshold = f32::NEG_INFINITY;
        for entry in with_ids {
            if entry.1 > threshold || kept.len() < count {
                kept.push(entry);
                if kept.len() == room {
                    kept.select_nth_unstable_by(count - 1, order);
                    kept.truncate(count);
                    threshold = kept[count - 1].1;
                }
            }
        }
    }
    if count < kept.len() {
        kept.select_nth_unstable_by(count - 1, order);
    }
    kept.truncate(count);
    kept.sort_unstable_by(order);
    kept
}

/// The softmax's denominator, with the largest logit taken out.
#[derive(Debug, Clone, Copy)]
struct Normaliser {
    max: f32,
    sum: f32,
}

impl Normaliser {
    fn of(logits: &[f32]) -> Result<Normaliser, SampleError> {
        let lanes = logits.chunks(LANES);
        let mut maxima = [f32::NEG_INFINITY; LANES];
        for lane in lanes.clone() {
            for (max, value) in maxima.iter_mut().zip(lane) {
                *max = if *value > *max { *value } else { *max };
            }
        }
        let max = maxima.into_iter().fold(f32::NEG_INFINITY, f32::max);
        let mut sums = [0.0_f32; LANES];
        for lane in lanes {
            for (sum, value) in sums.iter_mut().zip(lane) {
                *sum += exp_of_negative(*value - max);
            }
        }
        let sum: f32 = sums.into_iter().sum();
        if max.is_finite() && sum.is_finite() && sum > 0.0 {
            Ok(Normaliser { max, sum })
        } else {
            Err(SampleError::NotNumbers)
        }
    }

    fn probability(self, logit: f32) -> f32 {
        ((logit - self.max).exp() / self.sum).min(1.0)
    }
}

/// Sums in this many independent lanes keep the processor's vector units busy and the rounding error small.
const LANES: usize = 32;

/// e^x for x ≤ 0 in straight-line code that the compiler turns into vector instructions, to within 1 part in a
/// million. x = n·ln 2 + r with |r| ≤ ln 2 ∕ 2; e^r by its Taylor polynomial of degree 6, 2^n by the exponent bits.
/// A NaN stays a NaN.
#[inline]
fn exp_of_negative(x: f32) -> f32 {
    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    /// ln 2 in two parts: n times the first is exact.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    const LOWEST: f32 = -87.0;
    /// 1.5 × 2^23: adding and taking it away rounds to the nearest integer.
    const ROUND: f32 = 12_582_912.0;
    let clamped = if x < LOWEST { LOWEST } else { x };
    let n = (clamped * LOG2_E + ROUND) - ROUND;
    let r = (clamped - n * LN_2_HIGH) - n * LN_2_LOW;
    let polynomial = 1.0
        + r * (1.0
            + r * (0.5
                + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0))))));
    #[expect(
        clippy::cast_possible_truncation,
        reason = "n is an integer from −126 to 0, or a NaN"
    )]
    let scale = f32::from_bits(((n as i32 + 127) << 23).cast_unsigned());
    polynomial * scale
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

    use super::*;

    fn plain(temperature: f32) -> Sampling {
        Sampling {
            temperature,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            ..Sampling::default()
        }
    }

    fn noise(len: usize) -> Vec<f32> {
        let mut state = 1_u32;
        (0..len)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / 1_000_000.0
            })
            .collect()
    }

    #[test]
    fn the_fast_exponential_is_within_a_millionth() {
        for step in 0..=8_000 {
            let x = -step as f32 / 100.0;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp_of_negative(x)) - exact).abs() / exact;
            assert!(error < 1e-6, "{x}: {error}");
        }
        assert!(exp_of_negative(f32::NEG_INFINITY) < 1e-37);
        assert!(exp_of_negative(f32::NAN).is_nan());
    }

    #[test]
    fn probabilities_are_the_softmax_of_the_raw_logits() {
        let logits = noise(5_000);
        let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = logits.iter().map(|l| f64::from(l - max).exp()).sum();
        let normaliser = Normaliser::of(&logits).unwrap();
        for logit in &logits {
            let exact = f64::from(logit - max).exp() / sum;
            assert!(
                (f64::from(normaliser.probability(*logit)) - exact).abs() < 1e-5 * exact + 1e-9
            );
        }
    }

    #[test]
    fn the_largest_are_found_in_order_for_every_count() {
        let values = noise(2_000);
        let mut sorted: Vec<(i32, f32)> = (0..).zip(values.iter().copied()).collect();
        sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        for count in [0, 1, 2, 40, 63, 64, 65, 499, 500, 1_999, 2_000, usize::MAX] {
            assert_eq!(
                largest(&values, count),
                sorted[..count.min(2_000)],
                "{count}"
            );
        }
    }

    #[test]
    fn equal_values_keep_the_lower_id() {
        assert_eq!(
            largest(&vec![1.0; 1_000], 3),
            [(0, 1.0), (1, 1.0), (2, 1.0)]
        );
    }

    #[test]
    fn temperature_zero_takes_the_likeliest_token() {
        let mut sampler = Sampler::new(
            4,
            &Sampling {
                temperature: 0.0,
                ..Sampling::default()
            },
            1,
        )
        .unwrap();
        let choice = sampler.choose(&[0.0, 3.0, 1.0, 2.0], 2).unwrap();
        assert_eq!(choice.token, TokenId(1));
        assert_eq!(choice.candidates[0].chance.to_bits(), 1.0_f32.to_bits());
        assert_eq!(choice.candidates[1].token, TokenId(3));
    }

    #[test]
    fn a_penalty_lets_greedy_pick_the_next_best() {
        let settings = Sampling {
            temperature: 0.0,
            repeat_penalty: 2.0,
            ..Sampling::default()
        };
        let mut sampler = Sampler::new(4, &settings, 1).unwrap();
        let logits = [0.1, 3.0, 1.0, 2.0];
        assert_eq!(sampler.choose(&logits, 1).unwrap().token, TokenId(1));
        assert_eq!(sampler.choose(&logits, 1).unwrap().token, TokenId(3));
        assert_eq!(sampler.choose(&logits, 1).unwrap().token, TokenId(1));
    }

    #[test]
    fn a_penalty_turned_on_later_knows_the_tokens_before() {
        let mut sampler = Sampler::new(4, &plain(0.0), 1).unwrap();
        let logits = [0.1, 3.0, 1.0, 2.0];
        assert_eq!(sampler.choose(&logits, 1).unwrap().token, TokenId(1));
        sampler
            .set(&Sampling {
                repeat_penalty: 2.0,
                ..plain(0.0)
            })
            .unwrap();
        assert_eq!(sampler.choose(&logits, 1).unwrap().token, TokenId(3));
    }

    #[test]
    fn each_token_is_remembered_once() {
        let mut sampler = Sampler::new(4, &plain(0.8), 1).unwrap();
        for _ in 0..5 {
            sampler.choose(&[0.1, 0.3, 0.1, 0.2], 1).unwrap();
        }
        assert_eq!(sampler.memory.len(), 5);
    }

    #[test]
    fn narrowing_first_draws_the_same_tokens_as_the_whole_chain() {
        let logits = noise(3_000);
        let settings = Sampling {
            temperature: 0.9,
            top_k: 40,
            top_p: 0.9,
            min_p: 0.02,
            repeat_penalty: 1.3,
            repeat_last_n: 32,
            seed: None,
        };
        let mut ours = Sampler::new(3_000, &settings, 7).unwrap();
        let mut chain = LlamaSampler::chain_simple([
            LlamaSampler::penalties(3_000, 32, 1.3, 0.0, 0.0),
            LlamaSampler::top_k(40),
            LlamaSampler::top_p(0.9, 1),
            LlamaSampler::min_p(0.02, 1),
            LlamaSampler::temp(0.9),
            LlamaSampler::dist(7),
        ]);
        for _ in 0..200 {
            let mut all = LlamaTokenDataArray::from_iter(
                (0..)
                    .zip(&logits)
                    .map(|(id, logit)| LlamaTokenData::new(LlamaToken(id), *logit, 0.0)),
                false,
            );
            all.apply_sampler(&mut chain);
            let theirs = all.selected_token().unwrap();
            chain.try_accept(theirs).unwrap();
            assert_eq!(ours.choose(&logits, 8).unwrap().token.0, theirs.0);
        }
    }

    #[test]
    fn a_live_change_keeps_the_random_state() {
        let logits = noise(100);
        let run = |change: bool| -> Vec<i32> {
            let mut sampler = Sampler::new(100, &plain(0.8), 42).unwrap();
            (0..40)
                .map(|step| {
                    if change && step == 10 {
                        sampler.set(&plain(0.8)).unwrap();
                    }
                    sampler.choose(&logits, 1).unwrap().token.0
                })
                .collect()
        };
        assert_eq!(run(false), run(true));
    }

    #[test]
    fn the_chances_of_the_draw_add_up_and_removed_tokens_have_none() {
        let settings = Sampling {
            temperature: 1.0,
            top_k: 2,
            top_p: 1.0,
            min_p: 0.0,
            ..Sampling::default()
        };
        let mut sampler = Sampler::new(4, &settings, 1).unwrap();
        let choice = sampler.choose(&[0.0, 3.0, 1.0, 2.0], 4).unwrap();
        let chances: Vec<f32> = choice.candidates.iter().map(|c| c.chance).collect();
        assert!((chances[0] + chances[1] - 1.0).abs() < 1e-6);
        assert_eq!(chances[2..], [0.0, 0.0]);
    }

    #[test]
    fn logits_that_are_no_numbers_are_an_error() {
        let mut sampler = Sampler::new(3, &plain(0.8), 1).unwrap();
        assert_eq!(
            sampler.choose(&[0.0, f32::NAN, 1.0], 1),
            Err(SampleError::NotNumbers)
        );
        assert_eq!(
            sampler.choose(&[f32::NEG_INFINITY; 3], 1),
            Err(SampleError::NotNumbers)
        );
        assert_eq!(sampler.choose(&[], 1), Err(SampleError::NotNumbers));
        assert!(sampler.choose(&[0.0, f32::NEG_INFINITY, 1.0], 1).is_ok());
    }

    #[test]
    fn limits_at_their_edges_always_choose_a_token() {
        let logits = noise(50);
        for (top_k, top_p, min_p, penalty) in [
            (0, 1.0, 1.0, 1.0),
            (1, 0.01, 0.0, 1.0),
            (u32::MAX, 1.0, 0.0, 10.0),
            (0, f32::MIN_POSITIVE, 1.0, 0.1),
        ] {
            let settings = Sampling {
                temperature: 5.0,
                top_k,
                top_p,
                min_p,
                repeat_penalty: penalty,
                ..Sampling::default()
            };
            let mut sampler = Sampler::new(50, &settings, 3).unwrap();
            for _ in 0..20 {
                assert!(sampler.choose(&logits, 5).unwrap().token.0 < 50);
            }
        }
    }
}
