//! What can be saved of a damaged store. The damaged file is never written to: a copy of it is read row by row, what
//! can be read goes into a new file, and only when that is whole do the two change names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, params_from_iter};

use super::lock::Presence;
use super::schema::{STEPS, migrate};
use super::{StoreError, beside, create_private_file, sync, unwritable};

/// The tables and their columns, those that others refer to first; each column list begins with the row's own id.
const TABLES: [(&str, &str); 3] = [
    (
        "chat",
        "id, title, created_ms, updated_ms, system, model, model_path, leaf",
    ),
    (
        "message",
        "id, chat, no, parent, role, text, thinking_len, created_ms, stop, tokens, tokens_text_len, \
         author_model, author_vocabulary, sampling, sampling_changes, stats",
    ),
    (
        "growth",
        "id, message, text, thinking_len, tokens, tokens_text_len",
    ),
];

/// Rows that are missed in a row before the search between two readable parts of a table ends.
const MISSES: u32 = 5_000;

/// What became of a damaged store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// How its damage was noticed.
    pub reason: String,
    /// Where it is now.
    pub kept_as: PathBuf,
    /// Chats that were saved.
    pub chats: u64,
    /// Messages that were saved.
    pub messages: u64,
}

/// Makes a new store of what can be read of the one in `path`.
///
/// # Errors
/// Another process has it open, or the new one can't be made; the damaged one is where it was.
pub(super) fn recover(path: &Path, reason: &str) -> Result<Recovered, StoreError> {
    let refused = |error: &io::Error| unwritable(path, error);
    let damaged = || StoreError::Damaged {
        path: path.to_owned(),
        reason: format!("{reason}; another platen has it open, so it was left as it is"),
    };
    let alone = Presence::alone(path).map_err(|error| refused(&error))?;
    let _alone = alone.ok_or_else(damaged)?;
    let copy = beside(path, ".recovering");
    let fresh = beside(path, ".recovered");
    for left_over in [&copy, &fresh] {
        remove_with_companions(left_over);
    }
    let outcome = copy_with_log(path, &copy)
        .map_err(|error| refused(&error))
        .and_then(|()| refill(&copy, &fresh, path));
    remove_with_companions(&copy);
    let (chats, messages) = match outcome {
        Ok(saved) => saved,
        Err(error) => {
            remove_with_companions(&fresh);
            return Err(error);
        }
    };
    let kept_as = exchange(path, &fresh).map_err(|error| refused(&error))?;
    Ok(Recovered {
        reason: reason.to_owned(),
        kept_as,
        chats,
        messages,
    })
}

/// Fills a new store with the rows that can be read.
fn refill(copy: &Path, fresh: &Path, path: &Path) -> Result<(u64, u64), StoreError> {
    let fail = |error: rusqlite::Error| StoreError::of(path, &error);
    create_private_file(fresh).map_err(|error| unwritable(path, &error))?;
    let mut new = Connection::open(fresh).map_err(fail)?;
    migrate(&mut new, fresh, &STEPS)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if let Ok(old) = Connection::open_with_flags(copy, flags) {
        refuse_newer(&old, path)?;
        new.pragma_update(None, "foreign_keys", false)
            .map_err(fail)?;
        let transaction = new.transaction().map_err(fail)?;
        for (table, columns) in TABLES {
            let marks = vec!["?"; columns.split(',').count()].join(", ");
            let insert = format!("INSERT OR IGNORE INTO {table} ({columns}) VALUES ({marks})");
            let mut insert = transaction.prepare(&insert).map_err(fail)?;
            salvage(&old, table, columns, &mut |row| {
                // A row that breaks a rule of the table is lost alone.
                if let Err(error) = insert.execute(params_from_iter(row)) {
                    tracing::warn!("a row of {table} was left out: {error}");
                }
            });
        }
        transaction.execute_batch(MEND).map_err(fail)?;
        transaction.commit().map_err(fail)?;
    }
    let count = |table: &str| {
        new.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
            row.get::<_, i64>(0)
        })
    };
    let saved = (
        count("chat").map_err(fail)?,
        count("message").map_err(fail)?,
    );
    new.close().map_err(|(_, error)| fail(error))?;
    sync(fresh).map_err(|error| unwritable(path, &error))?;
    Ok((saved.0.unsigned_abs(), saved.1.unsigned_abs()))
}

/// A newer version may hold what this one would leave behind.
fn refuse_newer(old: &Connection, path: &Path) -> Result<(), StoreError> {
    let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    match old.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0)) {
        Ok(found) if found > known && (found - known) < 1_000 => Err(StoreError::Newer {
            path: path.to_owned(),
            found,
            known,
        }),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Makes whole what lost a part: messages without their chat get one, and nothing refers to what is gone.
const MEND: &str = "
    INSERT INTO chat (id, title, created_ms, updated_ms)
        SELECT chat, 'Recovered chat', min(created_ms), max(created_ms) FROM message
        WHERE chat NOT IN (SELECT id FROM chat) GROUP BY chat;
    DELETE FROM growth WHERE message NOT IN (SELECT id FROM message);
    UPDATE message SET parent = NULL WHERE parent IS NOT NULL AND NOT EXISTS
        (SELECT 1 FROM message AS other WHERE other.chat = message.chat AND other.no = message.parent);
    UPDATE chat SET leaf = NULL WHERE leaf IS NOT NULL AND NOT EXISTS
        (SELECT 1 FROM message WHERE message.chat = chat.id AND message.no = chat.leaf);";

/// Hands over every row that can be read: from the front up to the first page that can't, from the back likewise,
/// and what lies between one by one.
fn salvage(old: &Connection, table: &str, columns: &str, keep: &mut dyn FnMut(Vec<Value>)) {
    let front = scan(old, table, columns, "ASC", keep);
    let Err(front) = front else { return };
    let back = scan(old, table, columns, "DESC", keep);
    let Err(back) = back else { return };
    let from = front.unwrap_or(0);
    let query = format!("SELECT {columns} FROM {table} NOT INDEXED WHERE id = ?1");
    let mut misses = 0;
    for id in from.saturating_add(1)..back.unwrap_or(i64::MAX) {
        let row = old
            .prepare_cached(&query)
            .and_then(|mut statement| statement.query_row([id], |row| Ok(values(row))));
        match row {
            Ok(row) => {
                misses = 0;
                keep(row);
            }
            Err(_) if misses == MISSES => break,
            Err(_) => misses += 1,
        }
    }
}

/// Reads a table in one direction.
///
/// # Errors
/// The id of the last row that could be read, where one can't.
fn scan(
    old: &Connection,
    table: &str,
    columns: &str,
    direction: &str,
    keep: &mut dyn FnMut(Vec<Value>),
) -> Result<(), Option<i64>> {
    let mut last = None;
    let query = format!("SELECT {columns} FROM {table} NOT INDEXED ORDER BY id {direction}");
    let mut statement = old.prepare(&query).map_err(|_| None)?;
    let mut rows = statement.query([]).map_err(|_| None)?;
    loop {
        match rows.next() {
            Ok(Some(row)) => {
                last = row.get(0).ok().or(last);
                keep(values(row));
            }
            Ok(None) => return Ok(()),
            Err(error) => {
                tracing::warn!("the table {table} can't be read on: {error}");
                return Err(last);
            }
        }
    }
}

/// The columns of a row; what can't be read of it is NULL.
fn values(row: &rusqlite::Row<'_>) -> Vec<Value> {
    let count = row.as_ref().column_count();
    (0..count)
        .map(|column| row.get_ref(column).map_or(Value::Null, lossy))
        .collect()
}

/// A value with its text made UTF-8.
fn lossy(value: rusqlite::types::ValueRef<'_>) -> Value {
    use rusqlite::types::ValueRef;
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_owned()),
    }
}

/// Puts the new store in the place of the damaged one, which gets a name of its own.
fn exchange(path: &Path, fresh: &Path) -> io::Result<PathBuf> {
    let kept_as = (1..=u32::MAX)
        .map(|count| beside(path, &format!(".damaged-{count}")))
        .find(|name| !name.exists())
        .unwrap_or_else(|| beside(path, ".damaged"));
    for end in ["-wal", "-shm"] {
        match fs::rename(beside(path, end), beside(&kept_as, end)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    // With a second name for the damaged file there is a store at the path at every moment.
    if fs::hard_link(path, &kept_as).is_err() {
        fs::rename(path, &kept_as)?;
    }
    fs::rename(fresh, path)?;
    if let Some(folder) = path.parent() {
        let _ = sync(folder);
    }
    Ok(kept_as)
}

/// Copies a store with what its log holds.
fn copy_with_log(from: &Path, to: &Path) -> io::Result<()> {
    for end in ["", "-wal"] {
        let (from, to) = (beside(from, end), beside(to, end));
        match fs::File::open(&from) {
            Ok(mut source) => {
                create_private_file(&to)?;
                let mut target = fs::OpenOptions::new().write(true).open(&to)?;
                io::copy(&mut source, &mut target)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && !end.is_empty() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn remove_with_companions(path: &Path) {
    for end in ["", "-wal", "-shm", "-journal"] {
        let _ = fs::remove_file(beside(path, end));
    }
}
