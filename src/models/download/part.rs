//! The unfinished file: locked while it is written, checked before it gets its name.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::models::gguf::GgufFile;
use crate::paths::{lock, private_file};
use crate::text::hex;
use crate::text::secrets::without_secrets;

use super::{DownloadEvent, PullError, PullRequest, SourceError, Watch};

/// `FILE.part`, with a lock on it and, beside it, the address and version that its bytes come from.
pub(super) struct Part {
    file: File,
    path: PathBuf,
    origin: PathBuf,
    pub folder: PathBuf,
    pub name: String,
}

/// What the bytes of an unfinished file come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    /// The address without what may be secret in it: a new signature asks for the same file.
    address: String,
    /// A strong `ETag`.
    pub etag: String,
}

impl Origin {
    pub fn new(url: &str, etag: String) -> Origin {
        Origin {
            address: without_secrets(url).into_owned(),
            etag,
        }
    }

    /// Whether it is this address.
    pub fn is_at(&self, url: &str) -> bool {
        self.address == without_secrets(url)
    }
}

impl Part {
    /// Opens or creates the unfinished file and locks it.
    pub fn open(folder: &Path, name: &str) -> Result<Part, PullError> {
        let path = folder.join(format!("{name}.part"));
        let mut options = private_file();
        options.read(true).write(true).truncate(false);
        let locked = lock(&path, &options).map_err(PullError::io(&path))?;
        let Some(file) = locked else {
            return Err(PullError::Busy { path });
        };
        Ok(Part {
            file,
            origin: folder.join(format!("{name}.part.origin")),
            path,
            folder: folder.to_owned(),
            name: name.to_owned(),
        })
    }

    /// The bytes that are there.
    pub fn len(&self) -> Result<u64, PullError> {
        Ok(self
            .file
            .metadata()
            .map_err(PullError::io(&self.path))?
            .len())
    }

    /// Empties the file.
    pub fn restart(&mut self) -> Result<(), PullError> {
        let _ = std::fs::remove_file(&self.origin);
        self.file.set_len(0).map_err(PullError::io(&self.path))?;
        self.file.rewind().map_err(PullError::io(&self.path))
    }

    /// Puts the next write behind the last byte.
    pub fn seek_to_end(&mut self) -> Result<(), PullError> {
        self.file
            .seek(SeekFrom::End(0))
            .map_err(PullError::io(&self.path))?;
        Ok(())
    }

    /// Writes at the current place.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), PullError> {
        self.file.write_all(bytes).map_err(|error| {
            if is_full(&error) {
                PullError::DiskFull {
                    folder: self.folder.clone(),
                }
            } else {
                PullError::io(&self.path)(error)
            }
        })
    }

    /// What the bytes come from, where that is known.
    pub fn origin(&self) -> Option<Origin> {
        let text = std::fs::read_to_string(&self.origin).ok()?;
        let (address, etag) = text.split_once('\n')?;
        Some(Origin {
            address: address.to_owned(),
            etag: etag.to_owned(),
        })
    }

    /// Notes what the bytes come from.
    pub fn set_origin(&self, origin: &Origin) -> Result<(), PullError> {
        private_file()
            .write(true)
            .truncate(true)
            .open(&self.origin)
            .and_then(|mut file| write!(file, "{}\n{}", origin.address, origin.etag))
            .map_err(PullError::io(&self.origin))
    }

    /// Checks what has arrived against what was asked for; wrong bytes are thrown away.
    pub fn verify(&mut self, request: &PullRequest, watch: &mut Watch) -> Result<(), SourceError> {
        let checked = self.wrong(request, watch)?;
        if let Some(reason) = checked {
            self.restart()?;
            return Err(SourceError::Unusable(reason));
        }
        Ok(())
    }

    fn wrong(
        &mut self,
        request: &PullRequest,
        watch: &mut Watch,
    ) -> Result<Option<String>, PullError> {
        let bytes = self.len()?;
        if let Some(expected) = request.bytes.filter(|&expected| expected != bytes) {
            return Ok(Some(format!("it sent {bytes} bytes instead of {expected}")));
        }
        self.file.rewind().map_err(PullError::io(&self.path))?;
        let mut magic = Vec::new();
        Read::by_ref(&mut self.file)
            .take(4)
            .read_to_end(&mut magic)
            .map_err(PullError::io(&self.path))?;
        if magic != b"GGUF" {
            return Ok(Some("what it sent is no GGUF file".to_owned()));
        }
        let Some(expected) = &request.sha256 else {
            // Nobody publishes a checksum, but the file itself says how long it must be.
            let whole = GgufFile::open_part(&self.path);
            return Ok(whole
                .err()
                .map(|error| format!("what it sent is no whole GGUF file: {error}")));
        };
        let found = sha256(&self.file, &self.path, watch)?;
        Ok((found != *expected).then(|| format!("the checksum is {found} instead of {expected}")))
    }

    /// Gives the file its name.
    pub fn finish(self, target: &Path) -> Result<PathBuf, PullError> {
        self.file.sync_all().map_err(PullError::io(&self.path))?;
        std::fs::rename(&self.path, target).map_err(PullError::io(target))?;
        let _ = std::fs::remove_file(&self.origin);
        if let Ok(folder) = File::open(&self.folder) {
            let _ = folder.sync_all();
        }
        Ok(target.to_owned())
    }

    /// Removes the file.
    pub fn discard(self) {
        let _ = std::fs::remove_file(&self.origin);
        let _ = std::fs::remove_file(&self.path);
    }

    /// Removes the file where nothing is in it.
    pub fn discard_if_empty(self) {
        if self.len().is_ok_and(|len| len == 0) {
            self.discard();
        }
    }
}

/// Whether the disk, or what this user may use of it, is used up.
fn is_full(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded
    )
}

/// Whether the file is there already, whole and right.
pub(super) fn is_in_place(
    target: &Path,
    request: &PullRequest,
    watch: &mut Watch,
) -> Result<bool, PullError> {
    let Ok(about) = std::fs::metadata(target) else {
        return Ok(false);
    };
    let occupied = |reason: String| PullError::Occupied {
        path: target.to_owned(),
        reason,
    };
    if !about.is_file() {
        return Err(occupied("it is a folder or a device".to_owned()));
    }
    if let Some(bytes) = request.bytes.filter(|&bytes| bytes != about.len()) {
        return Err(occupied(format!(
            "it has {} bytes instead of {bytes}",
            about.len()
        )));
    }
    if let Some(expected) = &request.sha256 {
        let file = File::open(target).map_err(PullError::io(target))?;
        if sha256(&file, target, watch)? != *expected {
            return Err(occupied("its checksum differs".to_owned()));
        }
    } else if let Err(error) = GgufFile::open_part(target) {
        return Err(occupied(error.to_string()));
    }
    Ok(true)
}

/// The SHA-256 of a whole file, in hexadecimal.
fn sha256(mut file: &File, path: &Path, watch: &mut Watch) -> Result<String, PullError> {
    watch.event(DownloadEvent::Verifying);
    file.rewind().map_err(PullError::io(path))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        watch.check()?;
        match file.read(&mut buffer).map_err(PullError::io(path))? {
            0 => break,
            count => hasher.update(&buffer[..count]),
        }
    }
    Ok(hex(&hasher.finalize()))
}
