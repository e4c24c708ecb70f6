//! What stands in for a missing chat template: the template of the model's family where its vocabulary shows one,
//! plain text to be continued where the model was never taught to chat.

use super::vocabulary::Vocabulary;
use crate::engine::event::TemplateSource;

/// A template of our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// `<start_of_turn>`
    Gemma,
    /// `<|start_header_id|>`
    Llama3,
    /// `<|im_start|>`
    ChatMl,
    /// `<|user|>` and `<|end|>`
    Phi3,
    /// `[INST]`
    Mistral,
    /// `<|im_start|>` without a sign of it in the vocabulary.
    AssumedChatMl,
    /// `User:` and `Assistant:`, for models that only continue text.
    Completion,
}

/// What a model calls itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelIdentity<'a> {
    /// Its name, from its metadata or else its file name.
    pub name: &'a str,
    /// `general.architecture`.
    pub architecture: &'a str,
}

const CHAT_MARKS: [&str; 22] = [
    "instruct",
    "chat",
    "it",
    "sft",
    "dpo",
    "rlhf",
    "orpo",
    "assistant",
    "inst",
    "zephyr",
    "vicuna",
    "hermes",
    "tulu",
    "alpaca",
    "openchat",
    "dolphin",
    "thinking",
    "reasoning",
    "r1",
    "wizardlm",
    "openhermes",
    "samantha",
];

const TURN_ENDS: [&str; 6] = [
    "<|im_end|>",
    "<end_of_turn>",
    "<|eot_id|>",
    "<|end|>",
    "<|eom_id|>",
    "<|end_of_turn|>",
];

/// Whether a model without a template was taught to chat: its name says so, or its EOS ends a turn.
pub fn is_chat_model(model: ModelIdentity<'_>, vocabulary: &dyn Vocabulary) -> bool {
    let name = model.name.to_lowercase();
    let named = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| {
            CHAT_MARKS.contains(&word)
                || word.starts_with("instruct")
                || word.ends_with("instruct")
                || word.ends_with("chat")
        });
    let eos = vocabulary
        .eos()
        .map(|id| vocabulary.piece(id))
        .unwrap_or_default();
    named || TURN_ENDS.iter().any(|end| end.as_bytes() == eos)
}

/// The family that a vocabulary shows.
pub fn family(model: ModelIdentity<'_>, vocabulary: &dyn Vocabulary) -> Fallback {
    let has = |text: &str| {
        vocabulary
            .specials()
            .iter()
            .any(|special| special.text == text)
    };
    let named = |part: &str| model.name.to_lowercase().contains(part);
    if has("<start_of_turn>") {
        Fallback::Gemma
    } else if has("<|start_header_id|>") {
        Fallback::Llama3
    } else if has("<|im_start|>") {
        Fallback::ChatMl
    } else if has("<|end|>") && has("<|assistant|>") {
        Fallback::Phi3
    } else if has("[INST]")
        || named("mistral")
        || named("mixtral")
        || (model.architecture == "llama" && named("llama-2"))
    {
        Fallback::Mistral
    } else if model.architecture.starts_with("gemma") {
        Fallback::Gemma
    } else {
        Fallback::AssumedChatMl
    }
}

impl Fallback {
    /// The Jinja source.
    pub fn source(self) -> &'static str {
        match self {
            Fallback::Gemma => include_str!("../../../assets/templates/gemma.jinja"),
            Fallback::Llama3 => include_str!("../../../assets/templates/llama3.jinja"),
            Fallback::ChatMl | Fallback::AssumedChatMl => {
                include_str!("../../../assets/templates/chatml.jinja")
            }
            Fallback::Phi3 => include_str!("../../../assets/templates/phi3.jinja"),
            Fallback::Mistral => include_str!("../../../assets/templates/mistral.jinja"),
            Fallback::Completion => include_str!("../../../assets/templates/completion.jinja"),
        }
    }

    /// How the choice is reported.
    pub fn template_source(self) -> TemplateSource {
        match self {
            Fallback::Completion => TemplateSource::Completion,
            Fallback::AssumedChatMl => TemplateSource::ChatMl,
            Fallback::Gemma
            | Fallback::Llama3
            | Fallback::ChatMl
            | Fallback::Phi3
            | Fallback::Mistral => TemplateSource::Family {
                name: self.name().to_string(),
            },
        }
    }

    /// The name shown to the user.
    pub fn name(self) -> &'static str {
        match self {
            Fallback::Gemma => "Gemma",
            Fallback::Llama3 => "Llama 3",
            Fallback::ChatMl | Fallback::AssumedChatMl => "ChatML",
            Fallback::Phi3 => "Phi-3",
            Fallback::Mistral => "Mistral",
            Fallback::Completion => "plain text",
        }
    }
}
