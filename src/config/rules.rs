//! The limits of the values, one rule a function. A rule answers with the settings that it is about and what
//! is wrong; the strongest of their origins is where the user has to look.

use std::ops::RangeInclusive;

use super::problem::ConfigProblem;
use super::settings::find;
use super::{CheckBinding, Config, Loaded, Origin};
use crate::engine::options::{FlashAttention, KvType};
use crate::engine::sampling::{Sampling, SamplingPatch};

const DEFAULT_BATCH: u32 = 512;
/// llama.cpp counts in signed 32-bit numbers.
const SIGNED_MAX: u32 = i32::MAX.cast_unsigned();

/// A broken rule.
struct Violation {
    settings: &'static [&'static str],
    message: String,
    hint: Option<String>,
}

type Rule = fn(&Config) -> Option<Violation>;

const RULES: [Rule; 21] = [
    model_is_not_empty,
    context_is_in_limits,
    threads_are_in_limits,
    prefill_threads_are_in_limits,
    batch_is_in_limits,
    ubatch_is_not_zero,
    ubatch_fits_in_batch,
    cache_ram_is_in_limits,
    cache_disk_is_in_limits,
    gpu_layers_are_in_limits,
    quantised_v_has_flash_attention,
    temperature_is_in_limits,
    top_k_is_in_limits,
    top_p_is_in_limits,
    min_p_is_in_limits,
    repeat_penalty_is_in_limits,
    repeat_last_n_is_in_limits,
    max_tokens_are_in_limits,
    stop_texts_are_not_empty,
    system_has_no_nul,
    stop_texts_have_no_nul,
];

/// Everything that is out of its limits.
#[must_use]
pub fn check(loaded: &Loaded, check_binding: CheckBinding) -> Vec<ConfigProblem> {
    let limits = RULES
        .iter()
        .filter_map(|rule| rule(&loaded.config))
        .map(|violation| {
            ConfigProblem::new(
                strongest_origin(loaded, violation.settings),
                violation.message,
            )
            .with_hint(violation.hint)
        });
    let bindings = loaded.config.keys.iter().filter_map(|(action, keys)| {
        let message = check_binding(action, keys).err()?;
        let origin = loaded
            .origins
            .get(&format!("keys.{action}"))
            .cloned()
            .unwrap_or_default();
        Some(ConfigProblem::new(origin, message))
    });
    limits.chain(bindings).collect()
}

fn strongest_origin(loaded: &Loaded, settings: &[&str]) -> Origin {
    settings
        .iter()
        .filter_map(|name| loaded.origins.get(*name))
        .max_by_key(|origin| origin.rank())
        .cloned()
        .unwrap_or_default()
}

fn out_of_limits(settings: &'static [&'static str; 1], value: impl std::fmt::Display) -> Violation {
    let expects = find(settings[0]).map_or("something else", |setting| setting.expects);
    Violation {
        settings,
        message: format!("{} is {value}; it must be {expects}", settings[0]),
        hint: None,
    }
}

fn within(
    settings: &'static [&'static str; 1],
    value: Option<u32>,
    limits: RangeInclusive<u32>,
) -> Option<Violation> {
    value
        .filter(|value| !limits.contains(value))
        .map(|value| out_of_limits(settings, value))
}

fn model_is_not_empty(config: &Config) -> Option<Violation> {
    let empty = config
        .model
        .as_ref()
        .is_some_and(|model| model.trim().is_empty());
    empty.then(|| out_of_limits(&["model"], "empty"))
}

fn context_is_in_limits(config: &Config) -> Option<Violation> {
    within(
        &["load.context"],
        config.load.context.filter(|tokens| *tokens != 0),
        16..=4_194_304,
    )
}

fn threads_are_in_limits(config: &Config) -> Option<Violation> {
    within(&["load.threads"], config.load.threads, 1..=1024)
}

fn prefill_threads_are_in_limits(config: &Config) -> Option<Violation> {
    within(
        &["load.threads_prefill"],
        config.load.threads_prefill,
        1..=1024,
    )
}

fn batch_is_in_limits(config: &Config) -> Option<Violation> {
    within(&["load.batch"], config.load.batch, 1..=65_536)
}

fn ubatch_is_not_zero(config: &Config) -> Option<Violation> {
    within(&["load.ubatch"], config.load.ubatch, 1..=u32::MAX)
}

fn ubatch_fits_in_batch(config: &Config) -> Option<Violation> {
    let ubatch = config.load.ubatch?;
    let batch = config.load.batch.unwrap_or(DEFAULT_BATCH);
    (ubatch > batch).then(|| Violation {
        settings: &["load.batch", "load.ubatch"],
        message: format!(
            "load.ubatch is {ubatch}; it must be at most load.batch, which is {batch}"
        ),
        hint: Some(format!("raise the batch as well: --batch {ubatch}")),
    })
}

fn cache_ram_is_in_limits(config: &Config) -> Option<Violation> {
    within(&["load.cache_ram"], config.load.cache_ram, 0..=1 << 20)
}

fn cache_disk_is_in_limits(config: &Config) -> Option<Violation> {
    let disk = Some(config.chats.cache_disk);
    within(&["chats.cache_disk"], disk, 0..=1 << 24)
}

fn gpu_layers_are_in_limits(config: &Config) -> Option<Violation> {
    within(&["load.gpu_layers"], config.load.gpu_layers, 0..=65_536)
}

fn quantised_v_has_flash_attention(config: &Config) -> Option<Violation> {
    let quantised = match config.load.kv_type_v {
        KvType::Q8_0 => true,
        KvType::F32 | KvType::F16 | KvType::Bf16 => false,
    };
    (quantised && config.load.flash_attention == FlashAttention::Off).then(|| Violation {
        settings: &["load.flash_attention", "load.kv_type_v"],
        message: format!(
            "load.kv_type_v is {}; a quantised V cache needs flash attention",
            config.load.kv_type_v
        ),
        hint: Some("use --flash-attn auto, or --kv-type-v f16".to_owned()),
    })
}

fn sampling_is_valid(
    setting: &'static [&'static str; 1],
    patch: &SamplingPatch,
) -> Option<Violation> {
    let error = Sampling::default().patched(patch).validate().err()?;
    Some(out_of_limits(setting, error.value))
}

fn temperature_is_in_limits(config: &Config) -> Option<Violation> {
    let patch = SamplingPatch {
        temperature: config.sampling.temperature,
        ..SamplingPatch::default()
    };
    sampling_is_valid(&["sampling.temperature"], &patch)
}

fn top_k_is_in_limits(config: &Config) -> Option<Violation> {
    within(&["sampling.top_k"], config.sampling.top_k, 0..=SIGNED_MAX)
}

fn top_p_is_in_limits(config: &Config) -> Option<Violation> {
    let patch = SamplingPatch {
        top_p: config.sampling.top_p,
        ..SamplingPatch::default()
    };
    sampling_is_valid(&["sampling.top_p"], &patch)
}

fn min_p_is_in_limits(config: &Config) -> Option<Violation> {
    let patch = SamplingPatch {
        min_p: config.sampling.min_p,
        ..SamplingPatch::default()
    };
    sampling_is_valid(&["sampling.min_p"], &patch)
}

fn repeat_penalty_is_in_limits(config: &Config) -> Option<Violation> {
    let patch = SamplingPatch {
        repeat_penalty: config.sampling.repeat_penalty,
        ..SamplingPatch::default()
    };
    sampling_is_valid(&["sampling.repeat_penalty"], &patch)
}

fn repeat_last_n_is_in_limits(config: &Config) -> Option<Violation> {
    within(
        &["sampling.repeat_last_n"],
        config.sampling.repeat_last_n,
        0..=SIGNED_MAX,
    )
}

fn max_tokens_are_in_limits(config: &Config) -> Option<Violation> {
    within(
        &["generation.max_tokens"],
        Some(config.generation.max_tokens),
        1..=SIGNED_MAX,
    )
}

fn stop_texts_are_not_empty(config: &Config) -> Option<Violation> {
    let empty = config.generation.stop.iter().any(String::is_empty);
    empty.then(|| Violation {
        settings: &["generation.stop"],
        message: "a stop text is empty; it would end every reply before its first token".to_owned(),
        hint: None,
    })
}

fn system_has_no_nul(config: &Config) -> Option<Violation> {
    let found = config
        .system
        .as_ref()
        .is_some_and(|system| system.contains('\0'));
    found.then(|| Violation {
        settings: &["system"],
        message: "system holds a NUL character, which no model can read".to_owned(),
        hint: None,
    })
}

fn stop_texts_have_no_nul(config: &Config) -> Option<Violation> {
    let found = config
        .generation
        .stop
        .iter()
        .any(|text| text.contains('\0'));
    found.then(|| Violation {
        settings: &["generation.stop"],
        message: "a stop text holds a NUL character, which no model writes".to_owned(),
        hint: None,
    })
}
