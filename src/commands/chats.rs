//! `platen chats`: the chats that were kept, as a list, one by one, and for elsewhere.

use std::io::Write;
use std::path::Path;

use anyhow::Context as _;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::output::{self, Format};
use crate::chat::export;
use crate::chat::record::{ChatSummary, StoredChat};
use crate::chat::store::{Access, Store};
use crate::cli::flags::ChatName;
use crate::cli::{ChatsRequest, ExportFormat};
use crate::engine::token::Role;
use crate::text::sanitize;

/// Where results go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// A terminal: nothing may steer it.
    Terminal,
    /// A file or a program: texts stay what they are.
    Program,
}

/// Carries out a request on the store in `path`; `err` gets what should be known besides.
///
/// # Errors
/// The store can't be read, there is no such chat, or `out` or `err` can't be written to.
pub fn run(
    path: &Path,
    request: ChatsRequest,
    reader: Reader,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<()> {
    let store = open(path, err)?;
    match request {
        ChatsRequest::List(format) => list(store.as_ref(), format, out, err),
        ChatsRequest::Show(name, Format::Json) | ChatsRequest::Export(name, ExportFormat::Json) => {
            let chat = find(store.as_ref(), name, path)?;
            output::json(&export::json(&chat), out)
        }
        ChatsRequest::Show(name, Format::Text) => {
            let chat = find(store.as_ref(), name, path)?;
            Ok(show(&chat, out)?)
        }
        ChatsRequest::Export(name, ExportFormat::Md) => {
            let text = export::markdown(&find(store.as_ref(), name, path)?);
            match reader {
                Reader::Terminal => write!(out, "{}", sanitize::neutral(&text))?,
                Reader::Program => write!(out, "{text}")?,
            }
            Ok(())
        }
    }
}

fn open(path: &Path, err: &mut dyn Write) -> anyhow::Result<Option<Store>> {
    let opened = Store::open_existing(path).with_context(|| "the chats can't be read")?;
    let Some(opened) = opened else {
        return Ok(None);
    };
    if let Some(recovered) = &opened.recovered {
        writeln!(
            err,
            "the store was damaged: {} chats with {} messages could be read; the damaged file is kept as {}",
            recovered.chats,
            recovered.messages,
            sanitize::neutral(&recovered.kept_as.display().to_string())
        )?;
    }
    if let Access::ReadOnly(reason) = opened.store.access() {
        tracing::info!("the store is open for reading only: {reason}");
    }
    Ok(Some(opened.store))
}

fn find(store: Option<&Store>, name: ChatName, path: &Path) -> anyhow::Result<StoredChat> {
    let path = path.display();
    let Some(store) = store else {
        anyhow::bail!("no chats are kept in {path} yet");
    };
    let id = match name {
        ChatName::Number(id) => id,
        ChatName::Last => match store.latest()? {
            Some(id) => id,
            None => anyhow::bail!("no chats are kept in {path} yet"),
        },
    };
    match store.chat(id)? {
        Some(chat) => Ok(chat),
        None => anyhow::bail!("there is no chat {id} in {path}; platen chats lists them"),
    }
}

fn list(
    store: Option<&Store>,
    format: Format,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<()> {
    let chats = store.map(Store::chats).transpose()?.unwrap_or_default();
    match format {
        Format::Json => return output::json(&chats.iter().map(to_json).collect(), out),
        Format::Text if chats.is_empty() => {
            writeln!(err, "no chats are kept yet; platen begins one")?;
        }
        Format::Text => {
            let heading = ["CHAT", "CHANGED", "MESSAGES", "MODEL", "TITLE"]
                .map(str::to_owned)
                .to_vec();
            let rows: Vec<Vec<String>> = std::iter::once(heading)
                .chain(chats.iter().map(row))
                .collect();
            output::table(&rows, out)?;
        }
    }
    Ok(())
}

fn row(chat: &ChatSummary) -> Vec<String> {
    let plain = |text: &str| sanitize::visible_line(text).into_owned();
    vec![
        chat.id.to_string(),
        local_time(chat.updated_ms),
        chat.messages.to_string(),
        chat.model.as_deref().map_or_else(|| "-".into(), plain),
        plain(&chat.title),
    ]
}

fn to_json(chat: &ChatSummary) -> Value {
    json!({
        "id": chat.id.0,
        "title": chat.title,
        "created": export::time(chat.created_ms),
        "updated": export::time(chat.updated_ms),
        "model": chat.model,
        "messages": chat.messages,
    })
}

/// A moment in milliseconds since 1970, by the clock on the wall here.
fn local_time(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map_or_else(
        |_| "-".to_owned(),
        |moment| {
            let local = moment.to_zoned_datetime(TimeZone::system());
            local.strftime("%Y-%m-%d %H:%M").to_string()
        },
    )
}

/// The branch that a chat stands at, as it would be read on the screen.
fn show(chat: &StoredChat, out: &mut dyn Write) -> std::io::Result<()> {
    let title = sanitize::visible_line(&chat.title);
    writeln!(out, "{title}\n")?;
    if let Some(system) = &chat.head.system {
        writeln!(out, "system\n{}\n", sanitize::neutral(system.trim_end()))?;
    }
    for node in chat.branch() {
        let message = &node.message;
        let speaker = match (message.role, &message.author) {
            (Role::User, _) => "you",
            (Role::Assistant, Some(author)) => &author.model,
            (Role::Assistant, None) => "model",
            (Role::System, _) => "system",
        };
        writeln!(out, "{}", sanitize::visible_line(speaker))?;
        writeln!(out, "{}", sanitize::neutral(message.text.trim()))?;
        if let Some(note) = export::note(message) {
            writeln!(out, "({note})")?;
        }
        writeln!(out)?;
    }
    Ok(())
}
