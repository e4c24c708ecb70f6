//! Prompts of a fake vocabulary: what the tests share.

#![allow(clippy::unwrap_used, reason = "tests")]

mod generated;
mod properties;
mod templates;
mod written;

use jiff::civil::date;

use super::fake_vocabulary::FakeVocabulary;
use super::*;
use crate::engine::event::TemplateSource;

const CHATML: &str = include_str!("../../../assets/templates/chatml.jinja");
const GEMMA: &str = include_str!("../../../assets/templates/gemma.jinja");
const LLAMA3: &str = include_str!("../../../assets/templates/llama3.jinja");
const MISTRAL: &str = include_str!("../../../assets/templates/mistral.jinja");
/// Drops the thinking of earlier replies and trims what is left, as many thinking models' templates do.
const THINKER: &str = "{%- for m in messages -%}
{%- set text = m.content -%}
{%- if m.role == 'assistant' and '</think>' in text -%}
{%- set text = text.split('</think>')[-1].lstrip('\\n') -%}
{%- endif -%}
{{ '<|im_start|>' + m.role + '\\n' + text + '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n<think>\\n' }}{%- endif -%}";
/// Refuses everything but alternating turns that begin with the user's.
const STRICT: &str = "{{ bos_token }}{%- for m in messages -%}
{%- if m.role == 'system' -%}{{ raise_exception('no system role') }}{%- endif -%}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) -%}{{ raise_exception('roles must alternate') }}{%- endif -%}
{%- if m.role == 'user' -%}{{ '[INST] ' + m.content + ' [/INST]' }}{%- else -%}{{ ' ' + m.content | trim + eos_token }}{%- endif -%}
{%- endfor -%}";

fn chatml_vocabulary() -> FakeVocabulary {
    FakeVocabulary::new(
        &["<|im_start|>", "<|im_end|>", "<|endoftext|>"],
        &["<think>", "</think>", "<b>"],
    )
}

fn gemma_vocabulary() -> FakeVocabulary {
    FakeVocabulary {
        bos: Some("<bos>"),
        eos: Some("<end_of_turn>"),
        add_bos: true,
        ..FakeVocabulary::new(
            &["<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"],
            &["\n\n\n", "<b>"],
        )
    }
}

fn mistral_vocabulary() -> FakeVocabulary {
    FakeVocabulary {
        bos: Some("<s>"),
        eos: Some("</s>"),
        add_bos: true,
        space_prefix: true,
        ..FakeVocabulary::new(&["<s>", "</s>", "[INST]", "[/INST]"], &[])
    }
}

fn options() -> RenderOptions {
    RenderOptions::at(date(2026, 3, 1).at(9, 30, 0, 0))
}

fn chosen(source: Option<&str>, name: &str, vocabulary: &FakeVocabulary) -> ChosenTemplate {
    ChatTemplate::from_model(
        source,
        ModelIdentity {
            name,
            architecture: "llama",
        },
        vocabulary,
    )
    .unwrap()
}

fn builder(source: &str, vocabulary: &FakeVocabulary) -> PromptBuilder {
    let chosen = chosen(Some(source), "test", vocabulary);
    assert_eq!(chosen.source, TemplateSource::Model, "{:?}", chosen.notices);
    PromptBuilder::new(chosen.template, vocabulary)
}

fn build(source: &str, vocabulary: &FakeVocabulary, messages: &[PromptMessage]) -> Prompt {
    builder(source, vocabulary)
        .build(messages, vocabulary, &options())
        .unwrap()
}

fn user(text: &str) -> PromptMessage {
    PromptMessage::new(Role::User, text)
}

fn system(text: &str) -> PromptMessage {
    PromptMessage::new(Role::System, text)
}

fn written(text: &str) -> PromptMessage {
    PromptMessage::new(Role::Assistant, text)
}

/// A reply that came byte by byte, as no tokenizer would cut it.
fn generated(text: &str) -> PromptMessage {
    let ids = text.bytes().map(|byte| TokenId(i32::from(byte))).collect();
    PromptMessage {
        role: Role::Assistant,
        text: text.to_string(),
        tokens: Some(TokenRun {
            ids,
            text_len: text.len(),
        }),
    }
}

fn ids_of(text: &str) -> Vec<TokenId> {
    text.bytes().map(|byte| TokenId(i32::from(byte))).collect()
}

fn contains(tokens: &[TokenId], part: &[TokenId]) -> bool {
    tokens.windows(part.len()).any(|window| window == part)
}

fn control_count(vocabulary: &FakeVocabulary, prompt: &Prompt) -> usize {
    prompt
        .tokens
        .iter()
        .filter(|&&id| vocabulary.is_control(id))
        .count()
}
