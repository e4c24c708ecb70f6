//! What decides the next token: the settings, their limits and their layers.

use serde::{Deserialize, Serialize};

/// The settings in force. Samplers run in this order: repeat penalty, top-k, top-p, min-p, temperature, draw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// Divides the logits before the draw; 0 always takes the likeliest token.
    pub temperature: f32,
    /// Keeps the k likeliest tokens; 0 keeps all.
    pub top_k: u32,
    /// Keeps the smallest set of likeliest tokens whose probabilities reach this sum; 1 keeps all.
    pub top_p: f32,
    /// Drops tokens less likely than this share of the likeliest one; 0 drops none.
    pub min_p: f32,
    /// Divides the logits of tokens seen lately; 1 leaves them.
    pub repeat_penalty: f32,
    /// How many of the latest tokens the repeat penalty looks at.
    pub repeat_last_n: u32,
    /// Seed of the draw; `None` takes a new one for each reply.
    pub seed: Option<u32>,
}

impl Default for Sampling {
    fn default() -> Self {
        Sampling {
            temperature: 0.7,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            repeat_penalty: 1.0,
            repeat_last_n: 64,
            seed: None,
        }
    }
}

/// One step of the temperature keys.
pub const TEMPERATURE_STEP: f32 = 0.05;
/// The highest temperature taken.
pub const TEMPERATURE_MAX: f32 = 5.0;

/// A value outside its limits.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{name} is {value}; it must be {expected}")]
pub struct InvalidSampling {
    /// The setting.
    pub name: &'static str,
    /// The value that was given.
    pub value: f32,
    /// What is allowed.
    pub expected: &'static str,
}

impl Sampling {
    /// Checks every value against its limits.
    ///
    /// # Errors
    /// The first setting that is out of its limits.
    pub fn validate(&self) -> Result<(), InvalidSampling> {
        let rules: [(&'static str, f32, bool, &'static str); 4] = [
            (
                "temperature",
                self.temperature,
                (0.0..=TEMPERATURE_MAX).contains(&self.temperature),
                "from 0 to 5",
            ),
            (
                "top_p",
                self.top_p,
                self.top_p > 0.0 && self.top_p <= 1.0,
                "above 0 and at most 1",
            ),
            (
                "min_p",
                self.min_p,
                (0.0..=1.0).contains(&self.min_p),
                "from 0 to 1",
            ),
            (
                "repeat_penalty",
                self.repeat_penalty,
                self.repeat_penalty > 0.0 && self.repeat_penalty <= 10.0,
                "above 0 and at most 10",
            ),
        ];
        match rules.into_iter().find(|(_, _, valid, _)| !valid) {
            Some((name, value, _, expected)) => Err(InvalidSampling {
                name,
                value,
                expected,
            }),
            None => Ok(()),
        }
    }

    /// Moves the temperature by `steps` of [`TEMPERATURE_STEP`], on the grid of steps and within the limits.
    pub fn nudge_temperature(&mut self, steps: i32) {
        let on_grid = (self.temperature / TEMPERATURE_STEP).round() + steps as f32;
        self.temperature = (on_grid * TEMPERATURE_STEP).clamp(0.0, TEMPERATURE_MAX);
    }

    /// These settings with those of `patch` laid over them.
    #[must_use]
    pub fn patched(&self, patch: &SamplingPatch) -> Sampling {
        Sampling {
            temperature: patch.temperature.unwrap_or(self.temperature),
            top_k: patch.top_k.unwrap_or(self.top_k),
            top_p: patch.top_p.unwrap_or(self.top_p),
            min_p: patch.min_p.unwrap_or(self.min_p),
            repeat_penalty: patch.repeat_penalty.unwrap_or(self.repeat_penalty),
            repeat_last_n: patch.repeat_last_n.unwrap_or(self.repeat_last_n),
            seed: patch.seed.or(self.seed),
        }
    }
}

/// Settings that one layer (the model's own metadata, the file, the environment, the flags) decides; the rest
/// is left to the layer below.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SamplingPatch {
    /// See [`Sampling::temperature`].
    pub temperature: Option<f32>,
    /// See [`Sampling::top_k`].
    pub top_k: Option<u32>,
    /// See [`Sampling::top_p`].
    pub top_p: Option<f32>,
    /// See [`Sampling::min_p`].
    pub min_p: Option<f32>,
    /// See [`Sampling::repeat_penalty`].
    pub repeat_penalty: Option<f32>,
    /// See [`Sampling::repeat_last_n`].
    pub repeat_last_n: Option<u32>,
    /// See [`Sampling::seed`].
    pub seed: Option<u32>,
}
