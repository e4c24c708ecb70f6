//! Snapshots on disk: written beside their place and renamed, the ones used longest ago removed.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Basis, Snapshot, SnapshotError};
use crate::paths::{create_private, private_file};

/// How the name of a snapshot ends.
const SUFFIX: &str = "kv";
/// How the name of one ends that is being written.
const UNFINISHED: &str = "kv.new";

/// Writes a snapshot, whole or not at all, and removes those used longest ago where all in the folder take more than
/// `budget` bytes. Returns how many bytes it takes; `None` where it alone is larger than that.
///
/// # Errors
/// The file can't be written.
pub(in crate::engine) fn write(
    snapshot: &Snapshot,
    path: &Path,
    budget: u64,
) -> Result<Option<u64>, SnapshotError> {
    let front = snapshot.encode_front()?;
    let size = (front.len() + snapshot.state.len()) as u64;
    if size > budget {
        let _ = fs::remove_file(path);
        return Ok(None);
    }
    let Some(folder) = path.parent() else {
        return Err(SnapshotError::Missing);
    };
    create_private(folder).map_err(SnapshotError::Io)?;
    make_room(folder, path, budget - size);
    let unfinished = path.with_extension(UNFINISHED);
    let written = write_all(&unfinished, &[&front, &snapshot.state])
        .and_then(|()| fs::rename(&unfinished, path));
    if let Err(error) = written {
        let _ = fs::remove_file(&unfinished);
        return Err(SnapshotError::Io(error));
    }
    Ok(Some(size))
}

fn write_all(path: &Path, parts: &[&[u8]]) -> std::io::Result<()> {
    let _ = fs::remove_file(path);
    let mut file = private_file().write(true).create_new(true).open(path)?;
    for part in parts {
        file.write_all(part)?;
    }
    file.sync_all()
}

/// Reads a snapshot that must have this basis; from now on it is the one used last.
///
/// # Errors
/// See [`SnapshotError`].
pub(in crate::engine) fn read(path: &Path, basis: &Basis) -> Result<Snapshot, SnapshotError> {
    let bytes = fs::read(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => SnapshotError::Missing,
        _ => SnapshotError::Io(error),
    })?;
    let snapshot = Snapshot::decode(bytes, basis)?;
    if let Ok(file) = File::options().write(true).open(path) {
        let _ = file.set_modified(SystemTime::now());
    }
    Ok(snapshot)
}

/// Removes snapshots, the ones used longest ago first, until those in the folder but for `path` take at most `budget`
/// bytes; and what was left half written.
fn make_room(folder: &Path, path: &Path, budget: u64) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut found: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for entry in entries.flatten() {
        let other = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.ends_with(&format!(".{UNFINISHED}")) {
            let _ = fs::remove_file(&other);
        } else if name.ends_with(&format!(".{SUFFIX}"))
            && other != path
            && let Ok(about) = entry.metadata()
        {
            let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            found.push((used, about.len(), other));
        }
    }
    found.sort();
    let mut total: u64 = found.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, bytes, other) in found {
        if total <= budget {
            return;
        }
        if fs::remove_file(&other).is_ok() {
            total -= bytes;
        }
    }
}
