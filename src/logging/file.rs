//! The log file: private, appended to, and set aside as `platen.log.1` when it has grown at the start of a run.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::paths::{create_private, private_file};

/// The file's name in the log folder.
const NAME: &str = "platen.log";
/// The name of the one before.
const OLDER: &str = "platen.log.1";
/// Above this size, in bytes, a new run starts a new file.
const ROTATE_ABOVE: u64 = 5 * 1024 * 1024;

/// Opens the log in `dir` for appending, making the folder where it is missing.
pub(super) fn open(dir: &Path) -> io::Result<(File, PathBuf)> {
    create_private(dir)?;
    let path = dir.join(NAME);
    if fs::metadata(&path).is_ok_and(|meta| meta.len() > ROTATE_ABOVE) {
        fs::rename(&path, dir.join(OLDER))?;
    }
    let file = private_file().append(true).open(&path)?;
    Ok((file, path))
}
