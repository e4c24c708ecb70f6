//! The template that a model's conversations are rendered with: its own where that works, else a stand-in, with a
//! notice that says so.

use std::path::PathBuf;
use std::time::Duration;

use jiff::civil::date;

use super::family::{Fallback, ModelIdentity, family, is_chat_model};
use super::template::{RenderOptions, Template, TemplateError, TemplateMessage};
use super::vocabulary::Vocabulary;
use crate::engine::event::TemplateSource;
use crate::engine::token::Role;

/// How the content of replies must be prepared for a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// As it is.
    Plain,
    /// Without the thinking: a Harmony template wants the final channel only.
    Harmony,
    /// With a space before it: plain text to be continued.
    Completion,
}

/// A model's template.
#[derive(Debug)]
pub struct ChatTemplate {
    template: Template,
    pub(super) dialect: Dialect,
}

/// A template with where it came from and what the user should know of it.
#[derive(Debug)]
pub struct ChosenTemplate {
    /// The template.
    pub template: ChatTemplate,
    /// Where it came from.
    pub source: TemplateSource,
    /// One sentence each; empty where the model's own template works.
    pub notices: Vec<String>,
}

/// Strings that end a reply in plain text: the model has begun to write the other side.
pub const COMPLETION_STOPS: [&str; 3] = ["\nUser:", "\nAssistant:", "\nSystem:"];

impl ChatTemplate {
    /// Takes the model's own template where there is one that works, else the one that fits best.
    ///
    /// # Errors
    /// Only where a template of our own does not parse, which is a fault of this program.
    pub fn from_model(
        source: Option<&str>,
        model: ModelIdentity<'_>,
        vocabulary: &dyn Vocabulary,
    ) -> Result<ChosenTemplate, TemplateError> {
        let special_text = |id| {
            String::from_utf8_lossy(&Option::map_or(id, Vec::new(), |id| vocabulary.piece(id)))
                .into_owned()
        };
        let bos = special_text(vocabulary.bos());
        let eos = special_text(vocabulary.eos());
        let own = source
            .filter(|source| !source.trim().is_empty())
            .map(|source| usable(source, &bos, &eos));
        let (fallback, notice) = match own {
            Some(Ok(template)) => {
                let dialect = if template.source().contains("<|channel|>") { Dialect::Harmony } else { Dialect::Plain };
                let template = ChatTemplate { template, dialect };
                return Ok(ChosenTemplate { template, source: TemplateSource::Model, notices: Vec::new() });
            }
            Some(Err(error)) => {
                let fallback = family(model, vocabulary);
                let stand_in = fallback.name();
                (fallback, format!("The model's {}; {stand_in} is used instead.", without_article(&error)))
            }
            None if is_chat_model(model, vocabulary) => {
                let fallback = family(model, vocabulary);
                (fallback, format!("The model has no chat template; {} is used.", fallback.name()))
            }
            None => (
                Fallback::Completion,
                "The model has no chat template and seems to be a base model; it continues the chat as plain text."
                    .to_string(),
            ),
        };
        let dialect = if fallback == Fallback::Completion {
            Dialect::Completion
        } else {
            Dialect::Plain
        };
        let template = ChatTemplate {
            template: Template::parse(fallback.source(), &bos, &eos)?,
            dialect,
        };
        Ok(ChosenTemplate {
            template,
            source: fallback.template_source(),
            notices: vec![notice],
        })
    }

    pub(super) fn apart(mut self, program: PathBuf, patience: Duration) -> ChatTemplate {
        self.template = self.template.apart(program, patience);
        self
    }

    /// The Jinja source.
    #[must_use]
    pub fn source(&self) -> &str {
        self.template.source()
    }

    /// Renders messages just as they are.
    ///
    /// # Errors
    /// What the template raises, and what breaks in it.
    pub fn render(
        &self,
        messages: &[TemplateMessage],
        options: &RenderOptions,
    ) -> Result<String, TemplateError> {
        self.template.render(messages, options)
    }

    /// Stop strings that the template needs.
    #[must_use]
    pub fn stops(&self) -> Vec<String> {
        match self.dialect {
            Dialect::Plain | Dialect::Harmony => Vec::new(),
            Dialect::Completion => COMPLETION_STOPS.map(str::to_string).to_vec(),
        }
    }
}

fn without_article(error: &TemplateError) -> String {
    let text = error.to_string();
    text.strip_prefix("the ").unwrap_or(&text).to_string()
}

/// The template, if it can render a simple conversation or has a reason of its own to refuse it.
fn usable(source: &str, bos: &str, eos: &str) -> Result<Template, TemplateError> {
    let template = Template::parse(source, bos, eos)?;
    let options = RenderOptions::at(date(2025, 1, 1).at(12, 0, 0, 0));
    let message = |role: Role| TemplateMessage {
        role,
        content: "Hello".to_string(),
    };
    let mut failure = None;
    for roles in [
        &[Role::User][..],
        &[Role::User, Role::Assistant, Role::User],
        &[Role::System, Role::User],
    ] {
        let messages: Vec<TemplateMessage> = roles.iter().copied().map(message).collect();
        match template.render(&messages, &options) {
            Ok(_) | Err(TemplateError::Raised { .. }) => return Ok(template),
            Err(error @ (TemplateError::Endless | TemplateError::Died)) => return Err(error),
            Err(error @ (TemplateError::Syntax { .. } | TemplateError::Failed { .. })) => {
                failure.get_or_insert(error);
            }
        }
    }
    failure.map_or(Ok(template), Err)
}
