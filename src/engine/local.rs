//! The real engine room: a GGUF file on this machine, run by llama.cpp.

mod facts;
mod machine;
mod memory;
pub mod trial;
mod vocabulary;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::event::{EngineError, ModelFacts, TemplateSource};
use super::inference::{
    DecodeError, Inference, Interrupt, Loaded, Loader, Logits, Seq, StateError, StatePart,
    Truncation,
};
use super::options::{DEFAULT_CONTEXT, DEFAULT_RAM_MIB, LoadOptions, MemoryCheck, SwaCache};
use super::prompt::{ChatTemplate, ModelIdentity, PromptBuilder, Vocabulary};
use super::token::TokenId;
use crate::llama::context::{Context, ContextError, ContextParams, SeqId};
use crate::llama::model::{Model, ModelError, ModelParams};
use crate::models::estimate::KvLayout;
use crate::models::gguf::GgufFile;
use crate::models::parts::ModelFiles;
use facts::facts;
use machine::default_threads;
use memory::{Need, System};
use vocabulary::LocalVocabulary;

/// Most tokens handed to one decode call, where nothing else is asked for.
const DEFAULT_BATCH: u32 = 512;
/// Branches and chats that lie side by side in a cache, where they can share what they have in common.
const SEQUENCES: u32 = 16;
/// The smallest context taken, in tokens.
const SMALLEST_CONTEXT: u32 = 16;

/// Loads GGUF files with llama.cpp.
#[derive(Debug, Default)]
pub struct LocalLoader {
    /// Where the model's own template is rendered, if not in this process.
    templates: Option<Templates>,
}

/// Renders models' own templates in a process of its own.
#[derive(Debug, Clone)]
struct Templates {
    /// This program, which takes [`apart::ARGUMENT`](super::prompt::apart::ARGUMENT).
    program: PathBuf,
    /// How long one conversation may take.
    patience: Duration,
}

impl Loader for LocalLoader {
    fn load(
        &mut self,
        path: &Path,
        options: &LoadOptions,
        interrupt: &Arc<Interrupt>,
        report: &mut dyn FnMut(f32),
    ) -> Result<Loaded, EngineError> {
        let files = ModelFiles::open(path).map_err(|error| {
            EngineError::new(
                error.to_string(),
                "Choose another file, or download it again.",
            )
        })?;
        let file = &files.first;
        if let Some(reason) = file.not_chat() {
            return Err(EngineError::new(
                format!("{} can't chat: {reason}.", path.display()),
                "Choose another model with /model.",
            ));
        }
        let layout = KvLayout::of(file).ok();
        let mut context_params = context_params(file, options)?;
        let mut notices = Vec::new();
        if let Some(layout) = &layout {
            notices.extend(check_memory(
                &files,
                layout,
                &context_params,
                options.memory,
            )?);
        }
        let params = ModelParams {
            gpu_layers: options.gpu_layers,
        };
        let model =
            Model::load(path, params, interrupt, report).map_err(|error| model_error(&error))?;
        context_params.sequences = sequences(&model, &context_params);
        let context = Context::new(Arc::clone(&model), context_params, Arc::clone(interrupt))
            .map_err(|error| context_error(&error))?;
        let vocabulary = LocalVocabulary::of(model);
        let mut facts = facts(file, layout.as_ref(), &context, options, &files.paths);
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
        let mut prompts = PromptBuilder::new(chosen.template, &vocabulary);
        if let (TemplateSource::Model, Some(templates)) = (&facts.template, &self.templates) {
            prompts = prompts.apart(templates.program.clone(), templates.patience);
        }
        let model = Box::new(LocalModel {
            context,
            vocabulary,
            prompts,
            facts,
        });
        notices.extend(chosen.notices);
        Ok(Loaded {
            model,
            notices,
            spare_ram: spare_ram(options.cache_ram),
        })
    }
}

/// Sequences cost nothing where they share one cache. A recurrent state takes as much again for each, and so does the
/// window of a small cache.
fn sequences(model: &Model, params: &ContextParams) -> u32 {
    let each_costs =
        model.is_recurrent() || model.is_hybrid() || params.swa_cache == SwaCache::Small;
    if each_costs {
        1
    } else {
        SEQUENCES.min(params.batch)
    }
}

/// What states set aside may take: what is asked for, else at most a quarter of what is free.
fn spare_ram(asked: Option<u32>) -> usize {
    let mib = |count: u32| u64::from(count) << 20;
    let bytes = asked.map_or_else(
        || {
            let quarter = System::here().free().map_or(u64::MAX, |free| free / 4);
            mib(DEFAULT_RAM_MIB).min(quarter)
        },
        mib,
    );
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn model_error(error: &ModelError) -> EngineError {
    let hint = match error {
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

/// Refuses what needs more memory than is free; where it is wanted all the same, there is something to tell.
fn check_memory(
    files: &ModelFiles,
    layout: &KvLayout,
    params: &ContextParams,
    check: MemoryCheck,
) -> Result<Option<String>, EngineError> {
    let Some(free) = System::here().free() else {
        return Ok(None);
    };
    let need = Need::of(files, layout, params);
    match (memory::check(need, layout, params, free), check) {
        (Ok(()), _) => Ok(None),
        (Err(error), MemoryCheck::Check) => Err(error),
        (Err(error), MemoryCheck::Force) => Ok(Some(error.message)),
    }
}

fn context_params(file: &GgufFile, options: &LoadOptions) -> Result<ContextParams, EngineError> {
    let trained = file
        .context_train()
        .map_or(SMALLEST_CONTEXT, |trained| {
            u32::try_from(trained).unwrap_or(u32::MAX)
        })
        .max(SMALLEST_CONTEXT);
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
        swa_cache: options.swa_cache,
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

impl LocalModel {
    fn id(&self, seq: Seq) -> Option<SeqId> {
        self.context.sequence(seq.0)
    }
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

    fn sequences(&self) -> u32 {
        self.context.params().sequences
    }

    fn len(&self, seq: Seq) -> usize {
        self.id(seq).map_or(0, |id| self.context.len(id) as usize)
    }

    fn decode(
        &mut self,
        seq: Seq,
        tokens: &[TokenId],
        start: usize,
        logits: Logits,
    ) -> Result<(), DecodeError> {
        let start = u32::try_from(start).map_err(|_| DecodeError::Full)?;
        let id = self
            .id(seq)
            .ok_or(DecodeError::Invalid("no such sequence"))?;
        self.context.decode(id, tokens, start, logits)
    }

    fn logits(&self) -> Option<&[f32]> {
        self.context.logits()
    }

    fn truncate(&mut self, seq: Seq, len: usize) -> Truncation {
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        match self.id(seq) {
            Some(id) => self.context.truncate(id, len),
            None => Truncation::Impossible,
        }
    }

    fn share(&mut self, from: Seq, to: Seq, len: usize) -> bool {
        match (self.id(from), self.id(to), u32::try_from(len)) {
            (Some(from), Some(to), Ok(len)) => self.context.share(from, to, len),
            _ => false,
        }
    }

    fn forget(&mut self, seq: Seq) {
        if let Some(id) = self.id(seq) {
            self.context.forget(id);
        }
    }

    fn clear(&mut self) {
        self.context.clear();
    }

    fn save(&mut self, seq: Seq, part: StatePart) -> Result<Vec<u8>, StateError> {
        let id = self.id(seq).ok_or(StateError::Sequence)?;
        self.context.save_state(id, part)
    }

    fn restore(&mut self, seq: Seq, part: StatePart, bytes: &[u8]) -> Result<(), StateError> {
        let id = self.id(seq).ok_or(StateError::Sequence)?;
        self.context.restore_state(id, part, bytes)
    }
}
