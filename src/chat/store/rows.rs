//! Rows as messages and messages as rows. A damaged or foreign row is read as far as it makes sense: what can't be
//! read is left out, never guessed.

use rusqlite::types::ValueRef;
use rusqlite::{Row, Statement, named_params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::chat::record::{MessageNo, Node};
use crate::chat::{Author, Message};
use crate::engine::token::{TokenId, TokenRun};

/// The columns of a message, in the order in which [`node`] reads them.
pub(super) const COLUMNS: &str = "no, parent, role, text, thinking_len, stop, tokens, tokens_text_len, \
     author_model, author_vocabulary, sampling, sampling_changes, stats, id";

/// Where [`COLUMNS`] has the row's own id.
pub(super) const ROW_ID: usize = 13;

/// A row of [`COLUMNS`] as a message; `None` where it can't be one.
pub(super) fn node(row: &Row<'_>) -> Option<Node> {
    let no = whole(row, 0)?;
    let role = from_name(&text(row, 2)?)?;
    let body = text(row, 3)?;
    let thinking_len = usize::try_from(whole(row, 4).unwrap_or(0)).ok();
    let author = match (text(row, 8), text(row, 9)) {
        (Some(model), Some(vocabulary)) => Some(Author { model, vocabulary }),
        (None, _) | (_, None) => None,
    };
    let text_len = whole(row, 7).and_then(|len| usize::try_from(len).ok());
    let tokens = blob(row, 6).zip(text_len).and_then(|(bytes, text_len)| {
        body.is_char_boundary(text_len).then(|| TokenRun {
            ids: ids_of(&bytes),
            text_len,
        })
    });
    Some(Node {
        no: MessageNo(no),
        parent: whole(row, 1).map(MessageNo).filter(|parent| parent.0 < no),
        message: Message {
            role,
            thinking_len: thinking_len
                .filter(|len| body.is_char_boundary(*len))
                .unwrap_or(0),
            text: body,
            tokens,
            stop: text(row, 5).and_then(|name| from_name(&name)),
            stats: json(row, 12),
            author,
            sampling: json(row, 10),
            sampling_changes: json(row, 11).unwrap_or_default(),
        },
    })
}

/// Puts a message into a statement with these names.
///
/// # Errors
/// As SQLite's.
pub(super) fn write(
    statement: &mut Statement<'_>,
    chat: i64,
    node: &Node,
    now_ms: i64,
) -> rusqlite::Result<i64> {
    let message = &node.message;
    let tokens = message.tokens.as_ref();
    statement.query_row(
        named_params! {
            ":chat": chat,
            ":no": signed(node.no.0),
            ":parent": node.parent.map(|parent| signed(parent.0)),
            ":role": message.role.name(),
            ":text": message.text,
            ":thinking_len": signed_len(message.thinking_len),
            ":created_ms": now_ms,
            ":stop": message.stop.as_ref().and_then(name_of),
            ":tokens": tokens.map(|run| bytes_of(&run.ids)),
            ":tokens_text_len": tokens.map(|run| signed_len(run.text_len)),
            ":author_model": message.author.as_ref().map(|author| &author.model),
            ":author_vocabulary": message.author.as_ref().map(|author| &author.vocabulary),
            ":sampling": message.sampling.as_ref().and_then(to_json),
            ":sampling_changes": (!message.sampling_changes.is_empty())
                .then(|| to_json(&message.sampling_changes))
                .flatten(),
            ":stats": message.stats.as_ref().and_then(to_json),
        },
        |row| row.get(0),
    )
}

/// Ids as bytes, four each, the lowest first.
pub(super) fn bytes_of(ids: &[TokenId]) -> Vec<u8> {
    ids.iter().flat_map(|id| id.0.to_le_bytes()).collect()
}

/// The ids in bytes; what is left of an incomplete one is dropped.
pub(super) fn ids_of(bytes: &[u8]) -> Vec<TokenId> {
    let (whole, _) = bytes.as_chunks::<4>();
    whole
        .iter()
        .map(|four| TokenId(i32::from_le_bytes(*four)))
        .collect()
}

pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn signed_len(len: usize) -> i64 {
    i64::try_from(len).unwrap_or(i64::MAX)
}

/// Text of a column, whatever its bytes; `None` for anything else.
pub(super) fn text(row: &Row<'_>, column: usize) -> Option<String> {
    match row.get_ref(column).ok()? {
        ValueRef::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => None,
    }
}

pub(super) fn blob(row: &Row<'_>, column: usize) -> Option<Vec<u8>> {
    match row.get_ref(column).ok()? {
        ValueRef::Blob(bytes) => Some(bytes.to_owned()),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_) => None,
    }
}

/// A number of a column that is not negative.
pub(super) fn whole(row: &Row<'_>, column: usize) -> Option<u64> {
    number(row, column).and_then(|number| u64::try_from(number).ok())
}

pub(super) fn number(row: &Row<'_>, column: usize) -> Option<i64> {
    match row.get_ref(column).ok()? {
        ValueRef::Integer(number) => Some(number),
        ValueRef::Null | ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_) => None,
    }
}

fn json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Option<T> {
    serde_json::from_str(&text(row, column)?).ok()
}

fn to_json<T: Serialize>(value: &T) -> Option<String> {
    serde_json::to_string(value).ok()
}

/// The name that a value of a plain enum has in JSON.
fn name_of<T: Serialize>(value: &T) -> Option<String> {
    match serde_json::to_value(value).ok()? {
        serde_json::Value::String(name) => Some(name),
        _ => None,
    }
}

fn from_name<T: DeserializeOwned>(name: &str) -> Option<T> {
    serde_json::from_value(serde_json::Value::String(name.to_owned())).ok()
}
