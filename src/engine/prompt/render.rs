//! Renders a conversation so that the place of every message is known: in the first form that the template
//! accepts, marked as far as the template leaves the marks alone.

use super::chat_template::{ChatTemplate, Dialect};
use super::conversation::{REPAIRS, Repair, Turn, repaired};
use super::layout::{Layout, Misfit, fit, unmarked};
use super::marks::{Marking, Marks};
use super::matcher::SpecialMatcher;
use super::template::{RenderOptions, TemplateError, TemplateMessage};
use crate::engine::stream::{THINKING_TAGS, strip_thinking};
use crate::engine::token::{PromptMessage, Role};

pub use super::layout::edges;

/// A rendered conversation.
#[derive(Debug)]
pub struct Rendered {
    /// The text and the places of the messages in it.
    pub layout: Layout,
    /// The messages' texts as the template got them.
    pub texts: Vec<String>,
    /// What had to be changed.
    pub notices: Vec<String>,
}

/// How often messages are marked less before all marks are given up.
const ROUNDS: usize = 8;

/// Renders a conversation.
///
/// # Errors
/// What the template says to the conversation as it is, when it takes it in no other form either.
pub fn render(
    template: &ChatTemplate,
    matcher: &SpecialMatcher,
    messages: &[PromptMessage],
    options: &RenderOptions,
) -> Result<Rendered, TemplateError> {
    let texts: Vec<String> = messages
        .iter()
        .map(|message| prepared(message, template.dialect))
        .collect();
    let conversation = Conversation {
        template,
        matcher,
        messages,
        options,
        texts: &texts,
    };
    let (turns, plain, repairs) = conversation.accepted()?;
    let layout = conversation.lay_out(&turns, plain)?;
    let notices = repairs
        .iter()
        .map(|repair| repair.notice().to_string())
        .collect();
    Ok(Rendered {
        layout,
        texts,
        notices,
    })
}

/// A message's text as the template should get it.
fn prepared(message: &PromptMessage, dialect: Dialect) -> String {
    match (dialect, message.role) {
        (Dialect::Harmony, Role::Assistant) => strip_thinking(&message.text).to_string(),
        (Dialect::Completion, Role::Assistant) if message.tokens.is_none() => {
            format!(" {}", message.text.trim_start())
        }
        (
            Dialect::Plain | Dialect::Harmony | Dialect::Completion,
            Role::System | Role::User | Role::Assistant,
        ) => message.text.clone(),
    }
}

struct Conversation<'a> {
    template: &'a ChatTemplate,
    matcher: &'a SpecialMatcher,
    messages: &'a [PromptMessage],
    options: &'a RenderOptions,
    texts: &'a [String],
}

impl Conversation<'_> {
    fn render(
        &self,
        turns: &[Turn],
        content: impl Fn(usize) -> String,
    ) -> Result<String, TemplateError> {
        let messages: Vec<TemplateMessage> =
            turns.iter().map(|turn| turn.render(&content)).collect();
        self.template.render(&messages, self.options)
    }

    /// The first form of the conversation that the template renders whole, its text, and what was changed.
    fn accepted(&self) -> Result<(Vec<Turn>, String, &'static [Repair]), TemplateError> {
        let as_is = Turn::of(self.messages);
        let plain = |turns: &[Turn]| self.render(turns, |index| self.texts[index].clone());
        let first = plain(&as_is);
        if let Ok(text) = &first
            && self.is_whole(text)
        {
            return Ok((as_is, first?, &[]));
        }
        if let Err(error @ (TemplateError::Endless | TemplateError::Died)) = first {
            return Err(error);
        }
        let mut tried = vec![as_is.clone()];
        for repairs in REPAIRS {
            let turns = repaired(&as_is, self.messages, repairs);
            if tried.contains(&turns) {
                continue;
            }
            if let Ok(text) = plain(&turns)
                && (first.is_err() || self.is_whole(&text))
            {
                return Ok((turns, text, repairs));
            }
            tried.push(turns);
        }
        // A template may change texts for reasons of its own; one that refuses has the last word.
        first.map(|text| (as_is, text, [].as_slice()))
    }

    /// Whether every written system and user message appears; some templates drop those they do not expect.
    fn is_whole(&self, text: &str) -> bool {
        self.messages
            .iter()
            .zip(self.texts)
            .all(|(message, content)| match message.role {
                Role::System | Role::User => text.contains(content.trim()),
                Role::Assistant => true,
            })
    }

    fn lay_out(&self, turns: &[Turn], plain: String) -> Result<Layout, TemplateError> {
        let used = self
            .texts
            .iter()
            .map(String::as_str)
            .chain([plain.as_str(), self.template.source()]);
        let marks = Marks::absent_from(used).ok_or_else(|| TemplateError::Failed {
            reason: "the messages use up the private-use characters".to_string(),
        })?;
        let mut markings: Vec<Marking> = self
            .texts
            .iter()
            .map(|text| match text.trim() {
                "" => Marking::Off,
                _ => Marking::Full,
            })
            .collect();
        let mut plain = plain;
        for _ in 0..ROUNDS {
            let marked = self.render(turns, |index| self.marked(index, markings[index], marks));
            let fitted = match marked {
                Ok(marked) => fit(&plain, &marked, marks, self.texts, &markings),
                Err(_) => Err(Misfit::Unknown),
            };
            match fitted {
                Ok(layout) => return Ok(layout),
                Err(misfit) => {
                    let misfits = self.to_weaken(misfit, &markings);
                    if misfits.is_empty() {
                        break;
                    }
                    for index in misfits {
                        markings[index] = markings[index].weaker();
                    }
                }
            }
            plain = self.render(turns, |index| self.unmarked(index, markings[index], marks))?;
        }
        let escaped = self.render(turns, |index| self.unmarked(index, Marking::Off, marks))?;
        Ok(unmarked(&escaped, marks))
    }

    /// The messages to mark less. Where it is in doubt which: written ones before generated ones, which alone
    /// save reading, and those that had to be marked less before.
    fn to_weaken(&self, misfit: Misfit, markings: &[Marking]) -> Vec<usize> {
        let marked = |index: &usize| {
            markings
                .get(*index)
                .is_some_and(|&marking| marking != Marking::Off)
        };
        let messages: Vec<usize> = match misfit {
            Misfit::Unknown => return Vec::new(),
            Misfit::Lost(messages) => return messages.into_iter().filter(marked).collect(),
            Misfit::Beside(messages) => messages.into_iter().filter(marked).collect(),
        };
        let written = |index: &usize| self.messages[*index].tokens.is_none();
        let suspect = |index: &usize| markings[*index] == Marking::EndOnly;
        let those = |wanted: &dyn Fn(&usize) -> bool| {
            messages.iter().copied().filter(wanted).collect::<Vec<_>>()
        };
        [those(&written), those(&suspect)]
            .into_iter()
            .find(|found| !found.is_empty())
            .unwrap_or(messages)
    }

    fn marked(&self, index: usize, marking: Marking, marks: Marks) -> String {
        let text = &self.texts[index];
        match marking {
            Marking::Full => marks.around(index, edges(text).1),
            Marking::EndOnly => marks.after(index, &self.escaped(index, text.trim_end(), marks)),
            Marking::Off => self.escaped(index, text, marks),
        }
    }

    fn unmarked(&self, index: usize, marking: Marking, marks: Marks) -> String {
        match marking {
            Marking::Full => self.texts[index].clone(),
            Marking::EndOnly | Marking::Off => self.escaped(index, &self.texts[index], marks),
        }
    }

    /// Thinking tags of replies stay as they are: the template looks for them.
    fn escaped(&self, index: usize, text: &str, marks: Marks) -> String {
        let allowed: &[&str] = match self.messages[index].role {
            Role::Assistant => &THINKING_TAGS,
            Role::System | Role::User => &[],
        };
        marks.escape(text, self.matcher, allowed)
    }
}
