//! The real engine room: a GGUF file on this machine, run by llama.cpp.

use std::path::Path;
use std::sync::Arc;

use super::event::{EngineError, MemoryKind, ModelFacts};
use super::inference::{DecodeError, Inference, Interrupt, Loaded, Loader, Logits, Truncation};
use super::options::{DEFAULT_CONTEXT, LoadOptions};
use super::prompt::{
    ChatTemplate, ModelIdentity, PromptBuilder, SpecialKind, SpecialToken, SpecialTokens,
    TokenizeError, Vocabulary,
};
use super::sampling::{Sampling, SamplingPatch};
use super::token::TokenId;
use crate::llama::context::{Context, ContextError, ContextParams};
use crate::llama::model::{Model, ModelError, ModelParams};
use crate::llama::vocab;
use crate::models::estimate::{KvLayout, WindowCache};
use crate::models::gguf::GgufFile;

/// Most tokens handed to one decode call, where nothing else is asked for.
const DEFAULT_BATCH: u32 = 512;
/// The smallest context taken, in tokens.
const SMALLEST_CONTEXT: u32 = 16;

/// Loads GGUF files with llama.cpp.
#[derive(Debug, Default)]
pub struct LocalLoader;

impl Loader for LocalLoader {
    fn load(
        &mut self,
        path: &Path,
        options: &LoadOptions,
        interrupt: &Arc<Interrupt>,
        report: &mut dyn FnMut(f32),
    ) -> Result<Loaded, EngineError> {
        let file = GgufFile::open(path).map_err(|error| {
            EngineError::new(
                error.to_string(),
                "Choose another file, or download it again.",
            )
        })?;
        if let Some(reason) = file.not_chat() {
            return Err(EngineError::new(
                format!("{} can't chat: {reason}.", path.display()),
                "Choose another model with /model.",
            ));
        }
        let params = ModelParams {
            gpu_layers: options.gpu_layers,
        };
        let model = Model::load(path, params, interrupt, report).map_err(model_error)?;
        let layout = KvLayout::of(&file).ok();
        let context_params = context_params(&model, options)?;
        if let Some(layout) = &layout {
            check_memory(layout, &context_params)?;
        }
        let context = Context::new(Arc::clone(&model), context_params, Arc::clone(interrupt))
            .map_err(|error| context_error(&error))?;
        let vocabulary = LocalVocabulary::of(model);
        let mut facts = facts(&file, layout.as_ref(), &context, options);
        let identity = ModelIdentity {
            name: &facts.name,
            architecture: &facts.architecture,
        };
        let chosen = ChatTemplate::from_model(file.chat_template(), identity, &vocabulary)
            .map_err(|error| {
                EngineError::new(
                    format!(
                        "The chat template of {} is not usable: {error}.",
                        path.display()
                    ),
                    "Choose another model with /model.",
                )
            })?;
        facts.template = chosen.source;
        let prompts = PromptBuilder::new(chosen.template, &vocabulary);
        let model = Box::new(LocalModel {
            context,
            vocabulary,
            prompts,
            facts,
        });
        Ok(Loaded {
            model,
            notices: chosen.notices,
        })
    }
}

fn model_error(error: ModelError) -> EngineError {
    let hint = match &error {
        ModelError::File(_) => "Choose another file, or download it again.",
        ModelError::Path(_) => "Rename the file.",
        ModelError::Unsupported(_) | ModelError::Cancelled => "Choose another model with /model.",
        ModelError::Refused { .. } => {
            "The log (F2) says more. The file may be newer than this program's llama.cpp."
        }
    };
    EngineError::new(error.to_string(), hint)
}

fn context_error(error: &ContextError) -> EngineError {
    let hint = match error {
        ContextError::Limit { .. } => "Change the option.",
        ContextError::NeedsFlashAttention(_) => "Use --flash-attn auto or --kv-type-v f16.",
        ContextError::Refused { .. } => {
            "Try a smaller --ctx, or --kv-type-k f16 --kv-type-v f16. The log (F2) says more."
        }
    };
    EngineError::new(error.to_string(), hint)
}

fn context_params(model: &Model, options: &LoadOptions) -> Result<ContextParams, EngineError> {
    let trained = model.context_train().max(SMALLEST_CONTEXT);
    let context = match options.context {
        None => trained.min(DEFAULT_CONTEXT),
        Some(0) => trained,
        Some(asked) if asked < SMALLEST_CONTEXT => {
            return Err(EngineError::new(
                format!("A context of {asked} tokens is too small."),
                format!("Use --ctx {SMALLEST_CONTEXT} or more, or 0 for the model's own."),
            ));
        }
        Some(asked) => asked,
    };
    let threads = options.threads.unwrap_or_else(default_threads);
    let batch = options.batch.unwrap_or(DEFAULT_BATCH).min(context);
    Ok(ContextParams {
        context,
        batch,
        ubatch: options.ubatch.unwrap_or(DEFAULT_BATCH).min(batch),
        sequences: 1,
        threads_decode: threads,
        threads_prefill: options.threads_prefill.unwrap_or(threads),
        type_k: options.kv_type_k,
        type_v: options.kv_type_v,
        flash_attention: options.flash_attention,
    })
}

/// The cores this process may use. Two hardware threads of one core share its arithmetic, so only one of them counts.
fn default_threads() -> u32 {
    let available = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let siblings = threads_a_core().max(1);
    u32::try_from((available / siblings).max(1)).unwrap_or(1)
}

#[cfg(target_os = "linux")]
fn threads_a_core() -> usize {
    let path = "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list";
    let list = std::fs::read_to_string(path).unwrap_or_default();
    list.trim()
        .split(',')
        .map(|range| match range.split_once('-') {
            Some((first, last)) => match (first.parse::<usize>(), last.parse::<usize>()) {
                (Ok(first), Ok(last)) => last.saturating_sub(first) + 1,
                _ => 1,
            },
            None => 1,
        })
        .sum()
}

#[cfg(not(target_os = "linux"))]
fn threads_a_core() -> usize {
    1
}

fn check_memory(layout: &KvLayout, params: &ContextParams) -> Result<(), EngineError> {
    let needed = layout.capacity_bytes(
        u64::from(params.context),
        (params.type_k, params.type_v),
        WindowCache::Full,
    );
    let Some(free) = available_memory() else {
        return Ok(());
    };
    if needed <= free {
        return Ok(());
    }
    let per_token = layout.bytes_per_token(params.type_k, params.type_v).max(1);
    let fits = free.saturating_sub(layout.state_bytes()) / per_token / 256 * 256;
    Err(EngineError::new(
        format!(
            "A context of {} tokens needs {} MiB for its cache; {} MiB are free.",
            params.context,
            needed >> 20,
            free >> 20
        ),
        format!("Use --ctx {fits} or less, or a smaller --kv-type-k and --kv-type-v."),
    ))
}

/// Bytes that can be had without swapping, where the system tells.
fn available_memory() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

fn facts(
    file: &GgufFile,
    layout: Option<&KvLayout>,
    context: &Context,
    options: &LoadOptions,
) -> ModelFacts {
    let (model, params) = (context.model(), context.params());
    let path = model.path().to_owned();
    let stem = path
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    let memory = if model.is_hybrid() {
        MemoryKind::Hybrid
    } else if model.is_recurrent() {
        MemoryKind::Recurrent
    } else if model.sliding_window() > 0 {
        MemoryKind::SlidingWindow {
            window: model.sliding_window(),
        }
    } else {
        MemoryKind::Attention
    };
    let context_len = u64::from(params.context);
    ModelFacts {
        name: file
            .name()
            .map(str::to_owned)
            .or(stem)
            .unwrap_or_else(|| "model".to_owned()),
        architecture: file.architecture().to_owned(),
        quantization: file.quantization(),
        parameters: model.parameters(),
        model_bytes: model.bytes(),
        layers: model.layers(),
        vocab: model.vocab_size(),
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
        kv_capacity_bytes: layout.map_or(0, |layout| {
            layout.capacity_bytes(
                context_len,
                (params.type_k, params.type_v),
                WindowCache::Full,
            )
        }),
        template: super::event::TemplateSource::Model,
        recommended: recommended(file),
        path,
    }
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

/// A model with its one context.
struct LocalModel {
    // Dropped in this order: the context before the vocabulary's handle on the model.
    context: Context,
    vocabulary: LocalVocabulary,
    prompts: PromptBuilder,
    facts: ModelFacts,
}

impl Inference for LocalModel {
    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    fn vocabulary(&self) -> &dyn Vocabulary {
        &self.vocabulary
    }

    fn prompts(&self) -> &PromptBuilder {
        &self.prompts
    }

    fn len(&self) -> usize {
        self.context.len(self.context.first_sequence()) as usize
    }

    fn decode(
        &mut self,
        tokens: &[TokenId],
        start: usize,
        logits: Logits,
    ) -> Result<(), DecodeError> {
        let start = u32::try_from(start).map_err(|_| DecodeError::Full)?;
        self.context
            .decode(self.context.first_sequence(), tokens, start, logits)
    }

    fn logits(&self) -> Option<&[f32]> {
        self.context.logits()
    }

    fn truncate(&mut self, len: usize) -> Truncation {
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        self.context.truncate(self.context.first_sequence(), len)
    }

    fn clear(&mut self) {
        self.context.clear();
    }
}

/// A model's vocabulary with its special tokens looked up once.
struct LocalVocabulary {
    model: Arc<Model>,
    specials: Vec<SpecialToken>,
    space_prefix: bool,
}

impl LocalVocabulary {
    fn of(model: Arc<Model>) -> Self {
        let ids = (0..model.vocab_size()).map(|id| TokenId(id.cast_signed()));
        let specials = ids
            .filter_map(|id| {
                let kind = match model.special_kind(id)? {
                    vocab::SpecialKind::Control => SpecialKind::Control,
                    vocab::SpecialKind::Unknown => SpecialKind::Unknown,
                    vocab::SpecialKind::UserDefined => SpecialKind::UserDefined,
                };
                Some(SpecialToken {
                    id,
                    text: model.entry(id),
                    kind,
                    ends_generation: model.is_eog(id),
                })
            })
            .collect();
        LocalVocabulary {
            specials,
            space_prefix: model.adds_space_prefix(),
            model,
        }
    }
}

impl Vocabulary for LocalVocabulary {
    fn tokenize(&self, text: &str, special: SpecialTokens) -> Result<Vec<TokenId>, TokenizeError> {
        let specials = match special {
            SpecialTokens::Parse => vocab::Specials::Parse,
            SpecialTokens::AsText => vocab::Specials::AsText,
        };
        self.model
            .tokenize(text, specials)
            .map_err(|error| TokenizeError {
                bytes: text.len(),
                reason: error.to_string(),
            })
    }

    fn piece(&self, id: TokenId) -> Vec<u8> {
        match self.model.special_kind(id) {
            Some(vocab::SpecialKind::Control | vocab::SpecialKind::Unknown) => {
                self.model.entry(id).into_bytes()
            }
            Some(vocab::SpecialKind::UserDefined) | None => self.model.piece(id),
        }
    }

    fn is_control(&self, id: TokenId) -> bool {
        matches!(
            self.model.special_kind(id),
            Some(vocab::SpecialKind::Control | vocab::SpecialKind::Unknown)
        )
    }

    fn is_eog(&self, id: TokenId) -> bool {
        self.model.is_eog(id)
    }

    fn specials(&self) -> &[SpecialToken] {
        &self.specials
    }

    fn add_bos(&self) -> bool {
        self.model.adds_bos()
    }

    fn bos(&self) -> Option<TokenId> {
        self.model.bos()
    }

    fn eos(&self) -> Option<TokenId> {
        self.model.eos()
    }

    fn space_prefix(&self) -> bool {
        self.space_prefix
    }
}
