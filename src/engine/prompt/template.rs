//! Chat templates: the Jinja program that comes with a model, rendered as the Hugging Face libraries do. It is
//! the model file's code, so it runs on a budget: no loop without end, no text without limit.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::fmt::strtime;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, Error, ErrorKind};

use serde::{Deserialize, Serialize};

use super::apart::Apart;
use super::generation_tag::replace_generation_tags;
use super::python;
use super::tojson::tojson;
use crate::engine::token::Role;

const NAME: &str = "chat_template";
const RECURSION_LIMIT: usize = 200;
const OUTPUT_LIMIT_BYTES: usize = 16 << 20;

/// Why a template gave no text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum TemplateError {
    /// It is no valid Jinja.
    #[error("the chat template can't be parsed: {reason}")]
    Syntax {
        /// What the parser says.
        reason: String,
    },
    /// It refuses the conversation, in its own words.
    #[error("the chat template refuses this conversation: {reason}")]
    Raised {
        /// The template's message.
        reason: String,
    },
    /// It broke while rendering.
    #[error("the chat template fails: {reason}")]
    Failed {
        /// What the engine says.
        reason: String,
    },
    /// It ran too long or wrote too much.
    #[error("the chat template runs without end")]
    Endless,
    /// The process that rendered it died of it.
    #[error("the chat template uses up memory or stack")]
    Died,
}

/// A message as templates see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateMessage {
    /// Who speaks.
    pub role: Role,
    /// The text.
    pub content: String,
}

/// Where a prompt ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Ending {
    /// With the start of a reply, for the model to go on from.
    #[default]
    Reply,
    /// With the last message.
    LastMessage,
}

/// What a rendering depends on besides the messages.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderOptions {
    /// Where the prompt ends.
    pub ending: Ending,
    /// More variables, such as `enable_thinking`.
    pub variables: BTreeMap<String, serde_json::Value>,
    /// The local time, for templates that name the date. Keep one for a whole chat: a new date is a new prompt.
    pub now: DateTime,
}

impl RenderOptions {
    /// The start of a reply at a given time.
    #[must_use]
    pub fn at(now: DateTime) -> Self {
        RenderOptions {
            ending: Ending::Reply,
            variables: BTreeMap::new(),
            now,
        }
    }
}

/// A parsed template.
#[derive(Debug)]
pub struct Template {
    environment: Environment<'static>,
    source: String,
    bos: String,
    eos: String,
    /// Where it is rendered, if not here.
    apart: Option<Apart>,
}

impl Template {
    /// Parses a template; `bos` and `eos` are the texts it gets as `bos_token` and `eos_token`.
    ///
    /// # Errors
    /// Source that is no valid Jinja.
    pub fn parse(source: &str, bos: &str, eos: &str) -> Result<Template, TemplateError> {
        super::limits::check(source)?;
        let syntax_error = |error: Error| TemplateError::Syntax {
            reason: describe(&error),
        };
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build();
        environment.set_syntax(syntax.map_err(syntax_error)?);
        environment.set_recursion_limit(RECURSION_LIMIT);
        python::install(&mut environment);
        environment.add_filter("tojson", tojson);
        environment.add_function("raise_exception", raise_exception);
        environment
            .add_template_owned(NAME, replace_generation_tags(source))
            .map_err(syntax_error)?;
        Ok(Template {
            environment,
            source: source.to_string(),
            bos: bos.to_string(),
            eos: eos.to_string(),
            apart: None,
        })
    }

    /// The same, rendered by a process of `program`.
    pub(super) fn apart(mut self, program: PathBuf, patience: Duration) -> Template {
        let subject = (self.source.as_str(), self.bos.as_str(), self.eos.as_str());
        self.apart = Some(Apart::new(program, subject, patience));
        self
    }

    /// The text it was parsed from.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Renders a conversation.
    ///
    /// # Errors
    /// What the template raises, and what breaks in it.
    pub fn render(
        &self,
        messages: &[TemplateMessage],
        options: &RenderOptions,
    ) -> Result<String, TemplateError> {
        if let Some(rendered) = self
            .apart
            .as_ref()
            .and_then(|apart| apart.render(messages, options))
        {
            return rendered;
        }
        let content_bytes: usize = messages.iter().map(|message| message.content.len()).sum();
        let mut environment = self.environment.clone();
        environment.set_fuel(Some(fuel_for(messages.len(), content_bytes)));
        let template = environment
            .get_template(NAME)
            .map_err(|error| classify(&error))?;
        let limit = OUTPUT_LIMIT_BYTES + 8 * content_bytes;
        let mut output = LimitedOutput {
            bytes: Vec::with_capacity(content_bytes + 1024),
            limit,
        };
        let rendered = template
            .render_captured_to(self.context(messages, options), &mut output)
            .map(drop);
        if output.bytes.len() >= limit {
            return Err(TemplateError::Endless);
        }
        rendered.map_err(|error| classify(&error))?;
        String::from_utf8(output.bytes).map_err(|error| TemplateError::Failed {
            reason: error.to_string(),
        })
    }

    fn context(&self, messages: &[TemplateMessage], options: &RenderOptions) -> Value {
        let messages: Value = messages
            .iter()
            .map(|message| {
                Value::from_pairs([
                    ("role", Value::from(message.role.name())),
                    ("content", Value::from(message.content.as_str())),
                ])
            })
            .collect();
        let now = options.now;
        let mut variables: BTreeMap<&str, Value> = BTreeMap::from([
            ("messages", messages),
            (
                "add_generation_prompt",
                Value::from(options.ending == Ending::Reply),
            ),
            ("bos_token", Value::from(self.bos.as_str())),
            ("eos_token", Value::from(self.eos.as_str())),
            (
                "strftime_now",
                Value::from_function(move |format: &str| strftime(now, format)),
            ),
        ]);
        for (name, value) in &options.variables {
            variables.insert(name, Value::from(Serde(value)));
        }
        Value::from_pairs(variables)
    }
}

/// The work that a template may do: enough for several passes over every pair of messages.
fn fuel_for(messages: usize, content_bytes: usize) -> u64 {
    let messages = messages as u64;
    2_000_000 + 20_000 * messages + 64 * messages * messages + content_bytes as u64
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Raised(String);

fn raise_exception(message: &str) -> Result<String, Error> {
    Err(
        Error::new(ErrorKind::InvalidOperation, "raised by the template")
            .with_source(Raised(message.to_string())),
    )
}

fn strftime(now: DateTime, format: &str) -> Result<String, Error> {
    let config = strtime::Config::new().lenient(true);
    strtime::BrokenDownTime::from(now)
        .to_string_with_config(&config, format)
        .map_err(|error| {
            Error::new(
                ErrorKind::InvalidOperation,
                format!("strftime_now: {error}"),
            )
        })
}

fn classify(error: &Error) -> TemplateError {
    let mut innermost = error;
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if let Some(Raised(reason)) = current.downcast_ref() {
            return TemplateError::Raised {
                reason: reason.clone(),
            };
        }
        if let Some(inner) = current.downcast_ref::<Error>() {
            if inner.kind() == ErrorKind::OutOfFuel {
                return TemplateError::Endless;
            }
            innermost = inner;
        }
        cause = current.source();
    }
    TemplateError::Failed {
        reason: describe(innermost),
    }
}

fn describe(error: &Error) -> String {
    let what = error
        .detail()
        .map_or_else(|| error.kind().to_string(), str::to_string);
    match error.line() {
        Some(line) => format!("{what} (line {line})"),
        None => what,
    }
}

struct LimitedOutput {
    bytes: Vec<u8>,
    limit: usize,
}

impl io::Write for LimitedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.limit - self.bytes.len();
        let taken = bytes.len().min(room);
        self.bytes.extend_from_slice(&bytes[..taken]);
        if taken < bytes.len() {
            return Err(io::Error::other("the output is too long"));
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
