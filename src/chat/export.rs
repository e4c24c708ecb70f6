//! Chats as text for elsewhere: Markdown for people, JSON with everything in it for programs.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::record::{Node, StoredChat};
use super::{Message, cut_short};
use crate::engine::event::StopReason;
use crate::engine::token::Role;

/// The version of the JSON.
const FORMAT: u32 = 1;

/// The branch that a chat stands at, as Markdown. Replies stand as they came: Markdown, where the model wrote any.
#[must_use]
pub fn markdown(chat: &StoredChat) -> String {
    let title = if chat.title.is_empty() {
        "Chat"
    } else {
        &chat.title
    };
    let mut text = format!("# {title}\n\n");
    if let Some(model) = &chat.head.model {
        let _ = writeln!(text, "Model: {}  ", model.name);
    }
    let _ = writeln!(text, "Begun: {}", time(chat.created_ms));
    if let Some(system) = &chat.head.system {
        let _ = write!(text, "\n## System\n\n{}\n", system.trim_end());
    }
    for Node { message, .. } in chat.branch() {
        let speaker = match message.role {
            Role::System => "System".to_owned(),
            Role::User => "You".to_owned(),
            Role::Assistant => message
                .author
                .as_ref()
                .map_or_else(|| "Model".to_owned(), |author| author.model.clone()),
        };
        let (thinking, answer) = message.text.split_at(message.thinking_len);
        let _ = write!(text, "\n## {speaker}\n\n");
        if !thinking.trim().is_empty() {
            let _ = write!(
                text,
                "<details><summary>Thinking</summary>\n\n{}\n\n</details>\n\n",
                thinking.trim()
            );
        }
        let _ = writeln!(text, "{}", answer.trim());
        if let Some(note) = note(message) {
            let _ = write!(text, "\n*({note})*\n");
        }
    }
    text
}

/// Why a reply is not whole, where it isn't.
#[must_use]
pub fn note(message: &Message) -> Option<&'static str> {
    match (message.role, message.stop) {
        // An end that was asked for takes nothing away.
        (_, Some(StopReason::Stop)) | (Role::System | Role::User, None) => None,
        (_, Some(stop)) => cut_short(stop),
        (Role::Assistant, None) => cut_short(StopReason::Interrupted),
    }
}

/// A whole chat: every message, alternatives and token ids included.
#[must_use]
pub fn json(chat: &StoredChat) -> Value {
    json!({
        "platen_chat": FORMAT,
        "id": chat.id.0,
        "title": chat.title,
        "created": time(chat.created_ms),
        "updated": time(chat.updated_ms),
        "system": chat.head.system,
        "model": chat.head.model.as_ref().map(|model| json!({
            "name": model.name,
            "path": model.path.to_string_lossy(),
        })),
        "leaf": chat.head.leaf.map(|leaf| leaf.0),
        "messages": chat.nodes.iter().map(node).collect::<Vec<_>>(),
    })
}

fn node(node: &Node) -> Value {
    let mut value = json!({
        "no": node.no.0,
        "parent": node.parent.map(|parent| parent.0),
    });
    if let (Some(into), Ok(Value::Object(message))) =
        (value.as_object_mut(), serde_json::to_value(&node.message))
    {
        into.extend(message);
    }
    value
}

/// A moment in milliseconds since 1970, as RFC 3339.
#[must_use]
pub fn time(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map_or_else(|_| String::new(), |moment| moment.to_string())
}
