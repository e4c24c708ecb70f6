//! Which files have passed a trial: a line of hex each. A line that makes no sense is passed over, and a file that can't
//! be read or written only costs trials.

use std::collections::HashSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::engine::options::LoadOptions;
use crate::paths::{create_private, identity, private_file};
use crate::text::hex;

/// Most entries kept; the newest stay.
const MOST: usize = 1_000;
/// Longest file read, in bytes.
const LONGEST: u64 = 1 << 20;

/// The record.
#[derive(Debug)]
pub(super) struct Record {
    path: Option<PathBuf>,
    /// What passed in this run, whether or not it could be written.
    here: HashSet<String>,
}

impl Record {
    pub(super) fn new(path: Option<PathBuf>) -> Record {
        Record {
            path,
            here: HashSet::new(),
        }
    }

    /// Whether this passed before.
    pub(super) fn has(&self, key: &str) -> bool {
        self.here.contains(key) || self.lines().iter().any(|line| line == key)
    }

    /// Remembers that this passed.
    pub(super) fn add(&mut self, key: &str) {
        self.here.insert(key.to_owned());
        if let Some(path) = &self.path
            && let Err(error) = self.write(path, key)
        {
            tracing::warn!(
                "can't remember in {} what was tried: {error}",
                path.display()
            );
        }
    }

    fn lines(&self) -> Vec<String> {
        let short = |path: &&PathBuf| {
            path.metadata()
                .is_ok_and(|about| about.is_file() && about.len() <= LONGEST)
        };
        let text = self
            .path
            .as_ref()
            .filter(short)
            .and_then(|path| fs::read(path).ok());
        let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
        text.lines().map(str::to_owned).collect()
    }

    fn write(&self, path: &Path, key: &str) -> std::io::Result<()> {
        if let Some(folder) = path.parent() {
            create_private(folder)?;
        }
        let mut lines = self.lines();
        if lines.len() < MOST {
            // One short write to the end: two processes at once lose nothing.
            let mut file = private_file().append(true).open(path)?;
            return file.write_all(format!("{key}\n").as_bytes());
        }
        lines.drain(..lines.len() - MOST / 2);
        lines.push(key.to_owned());
        let half = path.with_extension(format!("{}.part", std::process::id()));
        let mut file = private_file().write(true).truncate(true).open(&half)?;
        file.write_all((lines.join("\n") + "\n").as_bytes())?;
        file.sync_all()?;
        fs::rename(&half, path)
    }
}

/// Names these files as they are now, loaded so by this version; `None` where one can't be looked at. Threads and the
/// like change nothing that could fail.
pub(super) fn key(paths: &[PathBuf], options: &LoadOptions) -> Option<String> {
    let mut hash = Sha256::new();
    hash.update(env!("CARGO_PKG_VERSION"));
    let LoadOptions {
        context,
        threads: _,
        threads_prefill: _,
        batch,
        ubatch,
        kv_type_k,
        kv_type_v,
        flash_attention,
        swa_cache,
        cache_ram: _,
        gpu_layers,
        memory: _,
    } = options;
    hash.update(format!(
        "{context:?} {batch:?} {ubatch:?} {kv_type_k:?} {kv_type_v:?} {flash_attention:?} {swa_cache:?} {gpu_layers:?}"
    ));
    for path in paths {
        let whole = path.canonicalize().ok()?;
        let about = whole.metadata().ok()?;
        hash.update(whole.as_os_str().as_encoded_bytes());
        let (device, number) = identity(&about);
        let numbers = [
            i64::try_from(about.len()).unwrap_or(i64::MAX),
            device.cast_signed(),
            number.cast_signed(),
            about.mtime(),
            about.mtime_nsec(),
            about.ctime(),
            about.ctime_nsec(),
        ];
        for number in numbers {
            hash.update(number.to_le_bytes());
        }
    }
    Some(hex(&hash.finalize()))
}
