//! The tables, and the way from each version to the next: forward only, in one transaction, after a backup.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, TransactionBehavior};

use super::error::StoreError;

/// Marks the file as platen's: "plat".
const APPLICATION_ID: i32 = 0x706C_6174;

/// What each version adds to the one before; the first makes everything.
pub(super) const STEPS: [&str; 1] = [include_str!("schema.sql")];

/// What a file turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// The version that is written here.
    Current,
    /// A newer version, which is not written to.
    Newer(i64),
}

/// Brings a database to the version that `steps` end at. What is there is copied to `PATH.vN` first.
///
/// # Errors
/// The file belongs to another program, or SQLite fails; the file is as it was then.
pub(super) fn migrate(
    connection: &mut Connection,
    path: &Path,
    steps: &[&str],
) -> Result<Found, StoreError> {
    let fail = |error: rusqlite::Error| StoreError::of(path, &error);
    let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    let version = version_of(connection, path)?;
    if version > known {
        return Ok(Found::Newer(version));
    }
    if version == known {
        return Ok(Found::Current);
    }
    if version > 0 {
        back_up(connection, path, version)?;
    }
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(fail)?;
    // Another platen may have done it meanwhile.
    let version = version_of(&transaction, path)?;
    if version < known {
        for step in steps.iter().skip(usize::try_from(version).unwrap_or(0)) {
            transaction.execute_batch(step).map_err(fail)?;
        }
        transaction
            .pragma_update(None, "application_id", APPLICATION_ID)
            .map_err(fail)?;
        transaction
            .pragma_update(None, "user_version", known)
            .map_err(fail)?;
        tracing::info!("the store of chats went from version {version} to {known}");
    }
    transaction.commit().map_err(fail)?;
    Ok(Found::Current)
}

/// The version of platen's that a database has; 0 where it is empty.
fn version_of(connection: &Connection, path: &Path) -> Result<i64, StoreError> {
    let fail = |error: rusqlite::Error| StoreError::of(path, &error);
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let application = number("application_id").map_err(fail)?;
    let version = number("user_version").map_err(fail)?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(fail)?;
    let path = path.to_owned();
    match (application == i64::from(APPLICATION_ID), version, tables) {
        (true, 1.., 1..) => Ok(version),
        (true, 1.., _) => Err(StoreError::Damaged {
            path,
            reason: "its tables are gone".into(),
        }),
        (true, _, _) => Err(StoreError::Damaged {
            path,
            reason: format!("its version is {version}"),
        }),
        (false, 0, 0) if application == 0 => Ok(0),
        (false, _, _) => Err(StoreError::Foreign { path }),
    }
}

/// Copies the database to `PATH.vN`, where there is no copy of that version yet.
fn back_up(connection: &Connection, path: &Path, version: i64) -> Result<(), StoreError> {
    let copy = backup_path(path, version);
    if copy.exists() {
        return Ok(());
    }
    let half = super::beside(&copy, ".part");
    let _ = std::fs::remove_file(&half);
    super::create_private_file(&half).map_err(|error| super::unwritable(&half, &error))?;
    connection
        .backup(
            rusqlite::MAIN_DB,
            &half,
            None::<fn(rusqlite::backup::Progress)>,
        )
        .map_err(|error| StoreError::of(path, &error))?;
    std::fs::rename(&half, &copy).map_err(|error| super::unwritable(&copy, &error))
}

/// Where the copy of a version is.
pub(super) fn backup_path(path: &Path, version: i64) -> PathBuf {
    super::beside(path, &format!(".v{version}"))
}
