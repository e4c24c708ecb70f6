//! What there is to know of a loaded model.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::engine::event::{MemoryKind, ModelFacts, TemplateSource};
use crate::engine::options::LoadOptions;
use crate::engine::sampling::{Sampling, SamplingPatch};
use crate::engine::token::TokenId;
use crate::llama::context::Context;
use crate::llama::model::Model;
use crate::llama::vocab::SpecialKind;
use crate::models::estimate::{KvLayout, WindowCache};
use crate::models::gguf::GgufFile;
use crate::text::hex;

/// What there is to know of a loaded model, but for its chat template.
pub(super) fn facts(
    file: &GgufFile,
    layout: Option<&KvLayout>,
    context: &Context,
    options: &LoadOptions,
    paths: &[PathBuf],
) -> ModelFacts {
    let (model, params) = (context.model(), context.params());
    let path = model.path().to_owned();
    let memory = if model.is_hybrid() {
        MemoryKind::Hybrid
    } else if model.is_recurrent() {
        MemoryKind::Recurrent
    } else if model.sliding_window() > 0 {
        MemoryKind::SlidingWindow {
            window: model.sliding_window(),
            cells: params.swa_cache,
        }
    } else {
        MemoryKind::Attention
    };
    let context_len = u64::from(params.context);
    ModelFacts {
        name: display_name(&path, file.name()),
        architecture: file.architecture().to_owned(),
        quantization: file.quantization(),
        parameters: model.parameters(),
        model_bytes: model.bytes(),
        layers: model.layers(),
        fingerprint: fingerprint(paths).unwrap_or_default(),
        vocab: model.vocab_size(),
        vocabulary: vocabulary_name(model),
        context_train: model.context_train(),
        context: params.context,
        batch: params.batch,
        ubatch: params.ubatch,
        threads_prefill: params.threads_prefill,
        threads_decode: params.threads_decode,
        type_k: params.type_k,
        type_v: params.type_v,
        flash_attention: options.flash_attention,
        memory,
        kv_bytes_per_token: layout.map_or(0, |layout| {
            layout.bytes_per_token(params.type_k, params.type_v)
        }),
        state_bytes: layout.map_or(0, KvLayout::state_bytes),
        kv_capacity_bytes: layout.map_or(0, |layout| {
            layout.capacity_bytes(
                context_len,
                (params.type_k, params.type_v),
                WindowCache::of(params.swa_cache, params.ubatch),
            )
        }),
        template: TemplateSource::Model,
        recommended: recommended(file),
        path,
    }
}

/// Blocks of a file that its fingerprint takes in, spread over all of it.
const SAMPLES: u64 = 64;
/// Bytes of each.
const SAMPLE_BYTES: u64 = 4 << 10;
/// Bytes of the file's beginning, where its header is.
const HEADER_BYTES: u64 = 1 << 20;

/// SHA-256 over the sizes of the files, their beginnings and samples of the rest: all of a large model would take
/// longer than reading a chat anew.
fn fingerprint(paths: &[PathBuf]) -> io::Result<String> {
    let mut hash = Sha256::new();
    for path in paths {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        hash.update(size.to_le_bytes());
        let mut take = |at: u64, bytes: u64| -> io::Result<()> {
            file.seek(SeekFrom::Start(at))?;
            let mut sample = Vec::new();
            Read::by_ref(&mut file)
                .take(bytes)
                .read_to_end(&mut sample)?;
            hash.update(&sample);
            Ok(())
        };
        take(0, HEADER_BYTES)?;
        for sample in 1..=SAMPLES {
            take(
                (size / SAMPLES * sample).saturating_sub(SAMPLE_BYTES),
                SAMPLE_BYTES,
            )?;
        }
    }
    Ok(hex(&hash.finalize()))
}

/// The first 64 bits of SHA-256 over every token's text and kind: models of one family share it, whatever their size
/// and quantisation.
fn vocabulary_name(model: &Model) -> String {
    let mut hash = Sha256::new();
    for id in (0..model.vocab_size()).map(|id| TokenId(id.cast_signed())) {
        let text = model.entry(id);
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
        hash.update([match model.special_kind(id) {
            None => 0,
            Some(SpecialKind::Control) => 1,
            Some(SpecialKind::Unknown) => 2,
            Some(SpecialKind::UserDefined) => 3,
        }]);
    }
    hex(&hash.finalize()[..8])
}

/// The name people know a model by: its file's, without the quantisation and the part number. Metadata often hold a
/// training run's name instead; it serves where the file has none, as with ollama's blobs.
fn display_name(path: &Path, metadata: Option<&str>) -> String {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let Some((stem, _)) = file
        .rsplit_once('.')
        .filter(|(_, end)| end.eq_ignore_ascii_case("gguf"))
    else {
        return metadata.map_or_else(|| file.clone().into_owned(), str::to_owned);
    };
    let mut name = match stem.rsplit_once("-of-") {
        Some((first, count)) if count.bytes().all(|byte| byte.is_ascii_digit()) => {
            first.rsplit_once('-').map_or(first, |(name, _)| name)
        }
        _ => stem,
    };
    while let Some((shorter, end)) = name.rsplit_once(['.', '-'])
        && is_quantization(end)
        && !shorter.is_empty()
    {
        name = shorter;
    }
    name.to_owned()
}

fn is_quantization(text: &str) -> bool {
    let upper = text.to_ascii_uppercase();
    let numbered = ["IQ", "Q", "TQ", "MXFP", "NVFP"].iter().any(|prefix| {
        upper
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    numbered || matches!(upper.as_str(), "F16" | "F32" | "BF16" | "UD" | "GGUF")
}

/// The sampling that the model's makers recommend in its metadata; values out of their limits are left out.
fn recommended(file: &GgufFile) -> SamplingPatch {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a sampling value has few digits"
    )]
    let number = |key: &str| {
        file.f64(&format!("general.sampling.{key}"))
            .map(|value| value as f32)
    };
    let whole = |key: &str| {
        file.u64(&format!("general.sampling.{key}"))
            .and_then(|value| u32::try_from(value).ok())
    };
    let each = [
        SamplingPatch {
            temperature: number("temp"),
            ..SamplingPatch::default()
        },
        SamplingPatch {
            top_k: whole("top_k"),
            ..SamplingPatch::default()
        },
        SamplingPatch {
            top_p: number("top_p"),
            ..SamplingPatch::default()
        },
        SamplingPatch {
            min_p: number("min_p"),
            ..SamplingPatch::default()
        },
        SamplingPatch {
            repeat_penalty: number("penalty_repeat"),
            ..SamplingPatch::default()
        },
        SamplingPatch {
            repeat_last_n: whole("penalty_last_n"),
            ..SamplingPatch::default()
        },
    ];
    each.into_iter()
        .filter(|patch| Sampling::default().patched(patch).validate().is_ok())
        .fold(SamplingPatch::default(), |all, one| SamplingPatch {
            temperature: one.temperature.or(all.temperature),
            top_k: one.top_k.or(all.top_k),
            top_p: one.top_p.or(all.top_p),
            min_p: one.min_p.or(all.min_p),
            repeat_penalty: one.repeat_penalty.or(all.repeat_penalty),
            repeat_last_n: one.repeat_last_n.or(all.repeat_last_n),
            seed: None,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_called_by_their_files() {
        for (file, expected) in [
            ("SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2-135M-Instruct"),
            ("gemma-3-270m-q4_k_m.gguf", "gemma-3-270m"),
            ("Qwen3-0.6B-Q8_0.gguf", "Qwen3-0.6B"),
            ("Big-UD-IQ2_XXS-00001-of-00003.gguf", "Big"),
            ("Q4_0.gguf", "Q4_0"),
            ("phi-2.GGUF", "phi-2"),
        ] {
            assert_eq!(display_name(Path::new(file), Some("mix1-ep2")), expected);
        }
        assert_eq!(
            display_name(Path::new("/blobs/sha256-ab12"), Some("Llama 3.2 1B")),
            "Llama 3.2 1B"
        );
        assert_eq!(
            display_name(Path::new("/blobs/sha256-ab12"), None),
            "sha256-ab12"
        );
    }
}
