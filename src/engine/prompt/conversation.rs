//! Conversations as templates accept them. Many templates refuse a system message or two turns of one side in a
//! row; a cancelled reply must never leave a chat stuck, so the conversation is brought into a form that renders.

use super::template::TemplateMessage;
use crate::engine::token::{PromptMessage, Role};

/// One turn as the template sees it: a message, or several joined by a blank line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    role: Role,
    messages: Vec<usize>,
}

/// A change to the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    /// System messages stand at the head of the user turn that follows.
    FoldSystem,
    /// Replies without text are left out.
    DropEmpty,
    /// Turns of one side in a row become one.
    Merge,
}

impl Repair {
    /// What the user is told.
    pub fn notice(self) -> &'static str {
        match self {
            Repair::FoldSystem => {
                "The chat template takes no system message here; it is sent at the head of a user turn."
            }
            Repair::DropEmpty => "The chat template refuses empty replies; they are left out.",
            Repair::Merge => {
                "The chat template refuses two messages of one side in a row; they are sent as one."
            }
        }
    }
}

/// The combinations to try, the mildest first.
pub const REPAIRS: [&[Repair]; 7] = [
    &[Repair::FoldSystem],
    &[Repair::Merge],
    &[Repair::DropEmpty],
    &[Repair::DropEmpty, Repair::Merge],
    &[Repair::FoldSystem, Repair::Merge],
    &[Repair::FoldSystem, Repair::DropEmpty],
    &[Repair::FoldSystem, Repair::DropEmpty, Repair::Merge],
];

impl Turn {
    /// Every message as its own turn.
    pub fn of(messages: &[PromptMessage]) -> Vec<Turn> {
        messages
            .iter()
            .enumerate()
            .map(|(index, message)| Turn {
                role: message.role,
                messages: vec![index],
            })
            .collect()
    }

    /// The turn with the contents that `content` gives for its messages.
    pub fn render(&self, content: impl FnMut(usize) -> String) -> TemplateMessage {
        let parts: Vec<String> = self.messages.iter().copied().map(content).collect();
        TemplateMessage {
            role: self.role,
            content: parts.join("\n\n"),
        }
    }
}

/// The conversation after some repairs.
pub fn repaired(turns: &[Turn], messages: &[PromptMessage], repairs: &[Repair]) -> Vec<Turn> {
    repairs
        .iter()
        .fold(turns.to_vec(), |turns, repair| match repair {
            Repair::FoldSystem => fold_system(turns),
            Repair::DropEmpty => turns
                .into_iter()
                .filter(|turn| {
                    turn.role != Role::Assistant
                        || turn
                            .messages
                            .iter()
                            .any(|&index| !messages[index].text.trim().is_empty())
                })
                .collect(),
            Repair::Merge => merge(turns),
        })
}

fn fold_system(turns: Vec<Turn>) -> Vec<Turn> {
    let mut folded: Vec<Turn> = Vec::with_capacity(turns.len());
    let mut waiting: Vec<usize> = Vec::new();
    for mut turn in turns {
        match turn.role {
            Role::System => waiting.append(&mut turn.messages),
            Role::User => {
                waiting.append(&mut turn.messages);
                folded.push(Turn {
                    role: Role::User,
                    messages: std::mem::take(&mut waiting),
                });
            }
            Role::Assistant => folded.push(turn),
        }
    }
    if !waiting.is_empty() {
        match folded.iter_mut().rfind(|turn| turn.role == Role::User) {
            Some(last) => last.messages.append(&mut waiting),
            None => folded.push(Turn {
                role: Role::User,
                messages: waiting,
            }),
        }
    }
    folded
}

fn merge(turns: Vec<Turn>) -> Vec<Turn> {
    let mut merged: Vec<Turn> = Vec::with_capacity(turns.len());
    for mut turn in turns {
        match merged.last_mut() {
            Some(last) if last.role == turn.role => last.messages.append(&mut turn.messages),
            _ => merged.push(turn),
        }
    }
    merged
}
