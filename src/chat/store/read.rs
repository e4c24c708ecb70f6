//! What is in the store.

use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use rusqlite::{OptionalExtension, Row};

use super::rows::{self, COLUMNS, ROW_ID, blob, number, text, whole};
use super::{Store, StoreError};
use crate::chat::record::{ChatHead, ChatId, ChatSummary, MessageNo, ModelRef, Node, StoredChat};

const CHAT: &str = "SELECT id, title, created_ms, updated_ms, system, model, model_path, leaf \
     FROM chat WHERE id = ?1";

impl Store {
    /// All chats, the one that changed last first.
    ///
    /// # Errors
    /// SQLite fails.
    pub fn chats(&self) -> Result<Vec<ChatSummary>, StoreError> {
        let read = || {
            let mut statement = self.connection.prepare(
                "SELECT id, title, created_ms, updated_ms, model, \
                 (SELECT count(*) FROM message WHERE message.chat = chat.id) AS messages \
                 FROM chat WHERE messages > 0 ORDER BY updated_ms DESC, id DESC",
            )?;
            let rows = statement.query_map([], |row| {
                Ok(ChatSummary {
                    id: ChatId(row.get(0)?),
                    title: text(row, 1).unwrap_or_default(),
                    created_ms: number(row, 2).unwrap_or(0),
                    updated_ms: number(row, 3).unwrap_or(0),
                    model: text(row, 4),
                    messages: whole(row, 5).unwrap_or(0),
                })
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error: rusqlite::Error| self.failed(&error))
    }

    /// The chat that changed last.
    ///
    /// # Errors
    /// SQLite fails.
    pub fn latest(&self) -> Result<Option<ChatId>, StoreError> {
        self.connection
            .query_row(
                "SELECT id FROM chat WHERE EXISTS (SELECT 1 FROM message WHERE chat = chat.id) ORDER BY updated_ms DESC, id DESC LIMIT 1",
                [],
                |row| row.get(0).map(ChatId),
            )
            .optional()
            .map_err(|error| self.failed(&error))
    }

    /// A chat with everything in it; a reply whose end was never written has what of it was.
    ///
    /// # Errors
    /// SQLite fails.
    pub fn chat(&self, id: ChatId) -> Result<Option<StoredChat>, StoreError> {
        let read = || {
            let found = self
                .connection
                .query_row(CHAT, [id.0], |row| Ok(chat(row)))
                .optional()?;
            found.map(|chat| self.with_messages(chat)).transpose()
        };
        read().map_err(|error: rusqlite::Error| self.failed(&error))
    }

    fn with_messages(&self, mut chat: StoredChat) -> rusqlite::Result<StoredChat> {
        let mut statement = self.connection.prepare(&format!(
            "SELECT {COLUMNS} FROM message WHERE chat = ?1 ORDER BY no"
        ))?;
        let mut messages = statement.query([chat.id.0])?;
        while let Some(row) = messages.next()? {
            let Some(mut node) = rows::node(row) else {
                chat.unknown += 1;
                continue;
            };
            if node.message.stop.is_none() {
                self.add_growth(row.get(ROW_ID)?, &mut node)?;
            }
            chat.nodes.push(node);
        }
        Ok(chat)
    }

    /// Adds what a reply grew by. Tokens are taken up to the first row that has none.
    fn add_growth(&self, message: i64, node: &mut Node) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare_cached(
            "SELECT text, thinking_len, tokens, tokens_text_len FROM growth \
             WHERE message = ?1 ORDER BY id",
        )?;
        let mut growths = statement.query([message])?;
        let mut run = node.message.tokens.take().unwrap_or_default();
        while let Some(row) = growths.next()? {
            let thinking_len = whole(row, 1).and_then(|len| usize::try_from(len).ok());
            node.message
                .append(&text(row, 0).unwrap_or_default(), thinking_len.unwrap_or(0));
            let text_len = whole(row, 3).and_then(|len| usize::try_from(len).ok());
            if let (Some(ids), Some(text_len)) = (blob(row, 2), text_len) {
                run.ids.extend(rows::ids_of(&ids));
                run.text_len = text_len;
            }
        }
        let sound = !run.ids.is_empty() && node.message.text.is_char_boundary(run.text_len);
        node.message.tokens = sound.then_some(run);
        Ok(())
    }
}

fn chat(row: &Row<'_>) -> StoredChat {
    let path = blob(row, 6).map(|bytes| PathBuf::from(std::ffi::OsString::from_vec(bytes)));
    StoredChat {
        id: ChatId(number(row, 0).unwrap_or(0)),
        title: text(row, 1).unwrap_or_default(),
        created_ms: number(row, 2).unwrap_or(0),
        updated_ms: number(row, 3).unwrap_or(0),
        head: ChatHead {
            system: text(row, 4),
            model: text(row, 5).map(|name| ModelRef {
                name,
                path: path.unwrap_or_default(),
            }),
            leaf: whole(row, 7).map(MessageNo),
        },
        nodes: Vec::new(),
        unknown: 0,
    }
}
