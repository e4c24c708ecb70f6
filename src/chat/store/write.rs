//! What goes into the store: all of a batch or nothing of it.

use std::os::unix::ffi::OsStrExt;
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Transaction, TransactionBehavior, params};

use super::rows::{self, bytes_of, signed, signed_len};
use super::{Access, Store, StoreError};
use crate::chat::record::{ChatHead, ChatId, MessageNo, Node};
use crate::engine::token::TokenId;

/// What happened to one chat since it was last written.
#[derive(Debug, Default)]
pub struct Batch<'a> {
    /// The chat; `None` where the store doesn't know it yet.
    pub chat: Option<ChatId>,
    /// For a new chat, its title.
    pub title: String,
    /// What holds for the whole.
    pub head: ChatHead,
    /// Messages to forget.
    pub removed: Vec<MessageNo>,
    /// Messages that are new or changed, parents first.
    pub put: Vec<&'a Node>,
    /// Replies that grew.
    pub grown: Vec<Growths<'a>>,
}

/// What a reply grew by since it was last written.
#[derive(Debug)]
pub struct Growths<'a> {
    /// The reply.
    pub no: MessageNo,
    /// The text that was added.
    pub text: &'a str,
    /// How many bytes at its start are the model's thinking.
    pub thinking_len: usize,
    /// The tokens that were added.
    pub ids: &'a [TokenId],
    /// How many bytes of the whole reply all its tokens in the store stand for.
    pub ids_text_len: usize,
}

/// How sure a write must be before it counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Durability {
    /// It outlives the process.
    Process,
    /// It outlives a power cut.
    Power,
}

impl Store {
    /// Writes a batch and returns the chat's name. Messages and their ends outlive a power cut; the growth of a reply
    /// outlives the process.
    ///
    /// # Errors
    /// See [`StoreError`]; nothing of the batch was written.
    pub fn write(&mut self, batch: &Batch<'_>) -> Result<ChatId, StoreError> {
        if let Access::ReadOnly(reason) = &self.access {
            return Err(reason.clone());
        }
        if !self.is_in_place() {
            return Err(StoreError::Gone {
                path: self.path.clone(),
            });
        }
        let durability = if batch.put.is_empty() && batch.removed.is_empty() {
            Durability::Process
        } else {
            Durability::Power
        };
        self.write_with(batch, durability)
            .map_err(|error| match error {
                rusqlite::Error::QueryReturnedNoRows => StoreError::ChatGone {
                    path: self.path.clone(),
                },
                error => self.failed(&error),
            })
    }

    fn write_with(
        &mut self,
        batch: &Batch<'_>,
        durability: Durability,
    ) -> rusqlite::Result<ChatId> {
        let level = match durability {
            Durability::Process => "normal",
            Durability::Power => "full",
        };
        self.connection.pragma_update(None, "synchronous", level)?;
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        let now = now_ms();
        let chat = put_chat(&transaction, batch, now)?;
        for no in &batch.removed {
            remove(&transaction, chat, *no)?;
        }
        put_messages(&transaction, chat, batch, now)?;
        for growth in &batch.grown {
            grow(&transaction, chat, growth)?;
        }
        transaction.commit()?;
        Ok(ChatId(chat))
    }
}

fn put_chat(transaction: &Transaction<'_>, batch: &Batch<'_>, now: i64) -> rusqlite::Result<i64> {
    let head = &batch.head;
    let model = head.model.as_ref();
    let path = model.map(|model| model.path.as_os_str().as_bytes().to_owned());
    let name = model.map(|model| &model.name);
    let leaf = head.leaf.map(|leaf| signed(leaf.0));
    if let Some(ChatId(id)) = batch.chat {
        let known = transaction
            .prepare_cached(
                "UPDATE chat SET updated_ms = ?2, system = ?3, model = ?4, model_path = ?5, \
                 leaf = ?6 WHERE id = ?1",
            )?
            .execute(params![id, now, head.system, name, path, leaf])?;
        if known == 1 {
            return Ok(id);
        }
        return Err(rusqlite::Error::QueryReturnedNoRows);
    }
    transaction
        .prepare_cached(
            "INSERT INTO chat (title, created_ms, updated_ms, system, model, model_path, leaf) \
             VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?6)",
        )?
        .insert(params![batch.title, now, head.system, name, path, leaf])
}

fn put_messages(
    transaction: &Transaction<'_>,
    chat: i64,
    batch: &Batch<'_>,
    now: i64,
) -> rusqlite::Result<()> {
    let mut put = transaction.prepare_cached(
        "INSERT INTO message (chat, no, parent, role, text, thinking_len, created_ms, stop, tokens, \
         tokens_text_len, author_model, author_vocabulary, sampling, sampling_changes, stats) \
         VALUES (:chat, :no, :parent, :role, :text, :thinking_len, :created_ms, :stop, :tokens, \
         :tokens_text_len, :author_model, :author_vocabulary, :sampling, :sampling_changes, :stats) \
         ON CONFLICT (chat, no) DO UPDATE SET text = excluded.text, \
         thinking_len = excluded.thinking_len, stop = excluded.stop, tokens = excluded.tokens, \
         tokens_text_len = excluded.tokens_text_len, author_model = excluded.author_model, \
         author_vocabulary = excluded.author_vocabulary, sampling = excluded.sampling, \
         sampling_changes = excluded.sampling_changes, stats = excluded.stats RETURNING id",
    )?;
    let mut settle = transaction.prepare_cached("DELETE FROM growth WHERE message = ?1")?;
    for node in &batch.put {
        let row = rows::write(&mut put, chat, node, now)?;
        settle.execute([row])?;
    }
    Ok(())
}

fn grow(transaction: &Transaction<'_>, chat: i64, growth: &Growths<'_>) -> rusqlite::Result<()> {
    let written = transaction
        .prepare_cached(
            "INSERT INTO growth (message, text, thinking_len, tokens, tokens_text_len) \
             SELECT id, ?3, ?4, ?5, ?6 FROM message WHERE chat = ?1 AND no = ?2",
        )?
        .execute(params![
            chat,
            signed(growth.no.0),
            growth.text,
            signed_len(growth.thinking_len),
            bytes_of(growth.ids),
            signed_len(growth.ids_text_len),
        ])?;
    if written == 1 {
        return Ok(());
    }
    Err(rusqlite::Error::QueryReturnedNoRows)
}

/// Forgets a message, unless another one answers it.
fn remove(transaction: &Transaction<'_>, chat: i64, no: MessageNo) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "DELETE FROM message WHERE chat = ?1 AND no = ?2 AND NOT EXISTS \
             (SELECT 1 FROM message AS answer WHERE answer.chat = ?1 AND answer.parent = ?2)",
        )?
        .execute(params![chat, signed(no.0)])
        .map(|_| ())
}

/// Now, in milliseconds since 1970.
fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_millis()).ok())
        .unwrap_or(0)
}
