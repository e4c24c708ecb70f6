//! The sampling in force, from its layers: the defaults, what the model recommends, the configuration, and
//! what the user changed since, which outlives a change of model.

use crate::engine::sampling::{Sampling, SamplingPatch};

/// The names that `/set` knows.
pub const KEYS: [&str; 8] = [
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repeat_penalty",
    "repeat_last_n",
    "seed",
    "max_tokens",
];

/// The settings of the next token.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What the loaded model recommends.
    pub recommended: SamplingPatch,
    configured: SamplingPatch,
    live: SamplingPatch,
    seed: Seed,
    /// Most tokens of a reply.
    pub max_tokens: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seed {
    AsLayered,
    Random,
}

impl Settings {
    /// The settings that the configuration asks for.
    #[must_use]
    pub fn new(configured: SamplingPatch, max_tokens: u32) -> Self {
        Settings {
            recommended: SamplingPatch::default(),
            configured,
            live: SamplingPatch::default(),
            seed: Seed::AsLayered,
            max_tokens,
        }
    }

    /// All layers laid over each other.
    #[must_use]
    pub fn sampling(&self) -> Sampling {
        let mut sampling = Sampling::default()
            .patched(&self.recommended)
            .patched(&self.configured)
            .patched(&self.live);
        if self.seed == Seed::Random {
            sampling.seed = None;
        }
        sampling
    }

    /// Moves the temperature by steps of 0.05.
    pub fn nudge_temperature(&mut self, steps: i32) {
        let mut sampling = self.sampling();
        sampling.nudge_temperature(steps);
        self.live.temperature = Some(sampling.temperature);
    }

    /// Sets one value from text.
    ///
    /// # Errors
    /// An unknown name, a value that is no number or out of its limits; the settings stay as they were.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let mut changed = self.clone();
        match key {
            "temperature" | "temp" => changed.live.temperature = Some(number(key, value)?),
            "top_k" => changed.live.top_k = Some(whole(key, value)?),
            "top_p" => changed.live.top_p = Some(number(key, value)?),
            "min_p" => changed.live.min_p = Some(number(key, value)?),
            "repeat_penalty" => changed.live.repeat_penalty = Some(number(key, value)?),
            "repeat_last_n" => changed.live.repeat_last_n = Some(whole(key, value)?),
            "seed" if value == "random" => changed.seed = Seed::Random,
            "seed" => {
                changed.live.seed = Some(whole(key, value)?);
                changed.seed = Seed::AsLayered;
            }
            "max_tokens" => match whole(key, value)? {
                0 => return Err("max_tokens is 0; it must be at least 1".into()),
                tokens => changed.max_tokens = tokens,
            },
            unknown => {
                let meant = super::nearest(unknown, KEYS)
                    .map_or_else(String::new, |name| format!("; did you mean {name}?"));
                return Err(format!(
                    "there is no setting '{unknown}'{meant} (there are {})",
                    KEYS.join(", ")
                ));
            }
        }
        changed
            .sampling()
            .validate()
            .map_err(|invalid| invalid.to_string())?;
        *self = changed;
        Ok(())
    }
}

fn number(key: &str, value: &str) -> Result<f32, String> {
    value
        .parse()
        .ok()
        .filter(|number: &f32| number.is_finite())
        .ok_or_else(|| format!("{key} is '{value}'; it must be a number such as 0.7"))
}

fn whole(key: &str, value: &str) -> Result<u32, String> {
    let or_random = if key == "seed" { " or random" } else { "" };
    value.parse().map_err(|_| {
        format!("{key} is '{value}'; it must be a whole number from 0 to 4,294,967,295{or_random}")
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn each_layer_lies_over_the_one_below_and_live_changes_over_all() {
        let configured = SamplingPatch {
            top_p: Some(0.9),
            ..SamplingPatch::default()
        };
        let mut settings = Settings::new(configured, 512);
        settings.recommended = SamplingPatch {
            temperature: Some(0.3),
            top_p: Some(0.5),
            ..SamplingPatch::default()
        };
        assert!((settings.sampling().temperature - 0.3).abs() < 1e-6);
        assert!((settings.sampling().top_p - 0.9).abs() < 1e-6);
        assert_eq!(settings.sampling().top_k, Sampling::default().top_k);
        settings.nudge_temperature(2);
        settings.recommended = SamplingPatch::default();
        assert!((settings.sampling().temperature - 0.4).abs() < 1e-6);
    }

    #[test]
    fn a_wrong_value_is_refused_with_what_is_right_and_changes_nothing() {
        let mut settings = Settings::new(SamplingPatch::default(), 512);
        let before = settings.clone();
        let mut refused = |key: &str, value: &str| settings.set(key, value).unwrap_err();
        assert_eq!(
            refused("top_p", "2"),
            "top_p is 2; it must be above 0 and at most 1"
        );
        assert_eq!(
            refused("temperature", "hot"),
            "temperature is 'hot'; it must be a number such as 0.7"
        );
        assert_eq!(
            refused("temperature", "NaN"),
            "temperature is 'NaN'; it must be a number such as 0.7"
        );
        assert_eq!(
            refused("top_k", "-1"),
            "top_k is '-1'; it must be a whole number from 0 to 4,294,967,295"
        );
        assert_eq!(
            refused("max_tokens", "0"),
            "max_tokens is 0; it must be at least 1"
        );
        assert!(
            refused("topp", "1").starts_with("there is no setting 'topp'; did you mean top_p?")
        );
        assert_eq!(settings, before);
    }

    #[test]
    fn a_seed_can_be_fixed_and_freed_again() {
        let mut settings = Settings::new(SamplingPatch::default(), 512);
        settings.set("seed", "42").unwrap();
        assert_eq!(settings.sampling().seed, Some(42));
        settings.set("seed", "random").unwrap();
        assert_eq!(settings.sampling().seed, None);
    }
}
