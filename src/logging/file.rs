//! The log file: private, appended to, and set aside as `platen.log.1` when it has grown at the start of a run.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The file's name in the log folder.
const NAME: &str = "platen.log";
/// The name of the one before.
const OLDER: &str = "platen.log.1";
/// Above this size, in bytes, a new run starts a new file.
const ROTATE_ABOVE: u64 = 5 * 1024 * 1024;

/// Opens the log in `dir` for appending, making the folder where it is missing.
pub(super) fn open(dir: &Path) -> io::Result<(File, PathBuf)> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let path = dir.join(NAME);
    if fs::metadata(&path).is_ok_and(|meta| meta.len() > ROTATE_ABOVE) {
        fs::rename(&path, dir.join(OLDER))?;
    }
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&path)?;
    Ok((file, path))
}
