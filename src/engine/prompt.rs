//! From a conversation to the tokens that the model reads. Three rules hold: what people write never becomes a
//! control token; what the model generated goes back in as the very ids it sampled; everything else is tokenised
//! in the long runs that the model was trained on.

pub mod apart;
mod chat_template;
mod conversation;
mod encode;
mod family;
mod generation_tag;
mod layout;
mod limits;
mod marks;
mod matcher;
mod python;
mod render;
mod template;
mod tojson;
mod vocabulary;

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

pub use chat_template::{COMPLETION_STOPS, ChatTemplate, ChosenTemplate};
pub use family::ModelIdentity;
pub use template::{Ending, RenderOptions, TemplateError, TemplateMessage};
pub use vocabulary::{SpecialKind, SpecialToken, SpecialTokens, TokenizeError, Vocabulary};

use super::token::{PromptMessage, Role, TokenId, TokenRun};
use chat_template::Dialect;
use encode::{Encoded, Source, Splice, encode};
use layout::{Layout, Place};
use matcher::SpecialMatcher;
use render::{Rendered, edges, render};

use crate::engine::stream::THINKING_OPENERS;

/// A conversation as the model reads it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prompt {
    /// The rendered text.
    pub text: String,
    /// Its tokens, generated ones as they were sampled.
    pub tokens: Vec<TokenId>,
    /// Whose the tokens are: consecutive, together all of them.
    pub spans: Vec<PromptSpan>,
    /// Strings that must end the reply besides the user's own.
    pub stop: Vec<String>,
    /// Whether the prompt ends inside the model's thinking.
    pub opens_thinking: bool,
    /// What had to be changed for the template, one sentence each.
    pub notices: Vec<String>,
    /// The first generated message whose ids could not be used, because the template renders it differently now.
    pub changed: Option<usize>,
}

/// The tokens of one message, with the template's own before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptSpan {
    /// The message, counted from 0; `None` for what stands after the last.
    pub message: Option<usize>,
    /// Whose it is; for the start of a reply, the assistant's.
    pub role: Option<Role>,
    /// The tokens.
    pub tokens: Range<usize>,
}

/// Why there is no prompt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// The template renders the conversation in no form.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The tokenizer failed.
    #[error(transparent)]
    Tokenize(#[from] TokenizeError),
}

/// Builds prompts for one model.
#[derive(Debug)]
pub struct PromptBuilder {
    template: ChatTemplate,
    matcher: SpecialMatcher,
}

impl PromptBuilder {
    /// For a model's template and vocabulary.
    #[must_use]
    pub fn new(template: ChatTemplate, vocabulary: &dyn Vocabulary) -> PromptBuilder {
        let matcher = SpecialMatcher::new(vocabulary, template.source());
        PromptBuilder { template, matcher }
    }

    /// The same, whose template is rendered by a process of `program`, the program that takes [`apart::ARGUMENT`]; a
    /// conversation may take `patience`.
    #[must_use]
    pub fn apart(mut self, program: PathBuf, patience: Duration) -> PromptBuilder {
        self.template = self.template.apart(program, patience);
        self
    }

    /// The template in use.
    #[must_use]
    pub fn template(&self) -> &ChatTemplate {
        &self.template
    }

    /// Builds the prompt of a conversation. `vocabulary` is the one given to [`PromptBuilder::new`].
    ///
    /// # Errors
    /// A template that refuses the conversation in every form tried, and a tokenizer that fails.
    pub fn build(
        &self,
        messages: &[PromptMessage],
        vocabulary: &dyn Vocabulary,
        options: &RenderOptions,
    ) -> Result<Prompt, PromptError> {
        let rendered = render(&self.template, &self.matcher, messages, options)?;
        let splices = self.splices(&rendered, messages, options.ending);
        let contents = contents(&rendered.layout, &splices);
        let source = Source {
            text: &rendered.layout.text,
            contents: &contents,
            written_specials: &rendered.layout.written_specials,
            splices: &splices
                .iter()
                .map(MessageSplice::tokens)
                .collect::<Vec<_>>(),
        };
        let mut encoded = encode(source, vocabulary, &self.matcher)?;
        begin_with_bos(&mut encoded, vocabulary);
        let kept_ids = |index: usize| splices.iter().any(|splice| splice.message == index);
        let changed = messages.iter().enumerate().find(|(index, message)| {
            message
                .tokens
                .as_ref()
                .is_some_and(|run| !run.ids.is_empty())
                && !kept_ids(*index)
        });
        Ok(Prompt {
            spans: spans(&encoded, &rendered.layout.places, messages, options.ending),
            opens_thinking: opens_thinking(&rendered.layout, options.ending),
            stop: self.template.stops(),
            notices: rendered.notices,
            changed: changed.map(|(index, _)| index),
            tokens: encoded.ids,
            text: rendered.layout.text,
        })
    }

    fn splices<'a>(
        &self,
        rendered: &Rendered,
        messages: &'a [PromptMessage],
        ending: Ending,
    ) -> Vec<MessageSplice<'a>> {
        let layout = &rendered.layout;
        let opening = opening(layout, ending);
        let mut glue_start = 0;
        let mut splices = Vec::new();
        for place in &layout.places {
            let message = &messages[place.message];
            let unaltered = rendered.texts[place.message] == message.text;
            if let (Some(start), Some(run), true) =
                (place.start, self.usable_run(message), unaltered)
            {
                let glue = &layout.text[glue_start..start];
                let start_of_ids = start - repeated_space(glue, opening, place, &message.text);
                let end = start + run.text_len.saturating_sub(place.lead_cut);
                splices.push(MessageSplice {
                    message: place.message,
                    range: start_of_ids..end.clamp(start, place.end),
                    ids: &run.ids,
                });
            }
            glue_start = place.end;
        }
        splices
    }

    /// The tokens of a generated message that can stand for its text. Channel markup can't: the template writes
    /// its own.
    fn usable_run<'a>(&self, message: &'a PromptMessage) -> Option<&'a TokenRun> {
        let markup = |run: &TokenRun| match self.template.dialect {
            Dialect::Harmony => run.ids.iter().any(|&id| self.matcher.guards(id)),
            Dialect::Plain | Dialect::Completion => false,
        };
        message.tokens.as_ref().filter(|run| {
            !run.ids.is_empty() && message.text.is_char_boundary(run.text_len) && !markup(run)
        })
    }
}

/// A generated message whose ids stand in for its text.
struct MessageSplice<'a> {
    message: usize,
    range: Range<usize>,
    ids: &'a [TokenId],
}

impl<'a> MessageSplice<'a> {
    fn tokens(&self) -> Splice<'a> {
        Splice {
            range: self.range.clone(),
            ids: self.ids,
        }
    }
}

/// Some templates trim a reply and write the space themselves that the model generates. The bytes at the end of
/// the glue that the ids already stand for: those that come on top of what a reply is opened with.
fn repeated_space(glue: &str, opening: Option<&str>, place: &Place, text: &str) -> usize {
    let lead = edges(text).0;
    let added = opening
        .and_then(|opening| glue.strip_prefix(opening))
        .unwrap_or_default();
    let repeated = !added.is_empty() && place.lead_cut == lead.len() && lead.ends_with(added);
    if repeated { added.len() } else { 0 }
}

/// The stretches of text that someone or some model wrote and that are tokenised.
fn contents(layout: &Layout, splices: &[MessageSplice<'_>]) -> Vec<Range<usize>> {
    let after_ids = |place: &Place| {
        splices
            .iter()
            .find(|splice| splice.message == place.message)
            .map(|splice| splice.range.end)
    };
    layout
        .places
        .iter()
        .filter_map(|place| Some(after_ids(place).or(place.start)?..place.end))
        .filter(|range| !range.is_empty())
        .collect()
}

/// BOS once at the start where the model wants it, whatever the template wrote.
fn begin_with_bos(encoded: &mut Encoded, vocabulary: &dyn Vocabulary) {
    let Some(bos) = vocabulary.bos().filter(|_| vocabulary.add_bos()) else {
        return;
    };
    let blank = |id: TokenId| vocabulary.piece(id).iter().all(u8::is_ascii_whitespace);
    let lead = encoded
        .ids
        .iter()
        .take_while(|&&id| id == bos || blank(id))
        .count();
    if let Some(last) = encoded.ids[..lead].iter().rposition(|&id| id == bos) {
        encoded.ids.drain(..last);
        encoded.starts.drain(..last);
    } else {
        encoded.ids.insert(0, bos);
        encoded.starts.insert(0, 0);
    }
}

fn spans(
    encoded: &Encoded,
    places: &[Place],
    messages: &[PromptMessage],
    ending: Ending,
) -> Vec<PromptSpan> {
    let mut spans: Vec<PromptSpan> = Vec::new();
    let mut done = 0;
    for place in places {
        let end = encoded
            .starts
            .partition_point(|&start| start < place.end)
            .max(done);
        if end > done {
            let role = Some(messages[place.message].role);
            spans.push(PromptSpan {
                message: Some(place.message),
                role,
                tokens: done..end,
            });
            done = end;
        }
    }
    let all = encoded.ids.len();
    match (ending, spans.last_mut()) {
        _ if done == all => {}
        (Ending::LastMessage, Some(last)) => last.tokens.end = all,
        (Ending::LastMessage, None) => spans.push(PromptSpan {
            message: None,
            role: None,
            tokens: done..all,
        }),
        (Ending::Reply, _) => {
            spans.push(PromptSpan {
                message: None,
                role: Some(Role::Assistant),
                tokens: done..all,
            });
        }
    }
    spans
}

/// The template's text after the last message: what a reply is opened with.
fn opening(layout: &Layout, ending: Ending) -> Option<&str> {
    let last_end = layout.places.last().map_or(0, |place| place.end);
    (ending == Ending::Reply).then(|| &layout.text[last_end..])
}

fn opens_thinking(layout: &Layout, ending: Ending) -> bool {
    let opening = opening(layout, ending).unwrap_or_default().trim_end();
    THINKING_OPENERS
        .iter()
        .any(|opener| opening.ends_with(opener))
}

#[cfg(test)]
mod fake_vocabulary;
#[cfg(test)]
mod published;
#[cfg(test)]
mod tests;
