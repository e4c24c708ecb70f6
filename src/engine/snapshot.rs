//! The state of a chat as a file, so that the chat is read once and not again at every start. A snapshot is disposable:
//! whatever is wrong with one costs reading the chat anew, and is told.
//!
//! The file: ten bytes of magic, the length of the header (32 bits, little endian), the header as JSON, then the
//! tokens (32 bits each), their owners (a message's number and a role, 40 bits each), and llama.cpp's state.

mod disk;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::event::ModelFacts;
use super::ledger::{OwnedTokens, Owner};
use super::options::{KvType, SwaCache};
use super::token::{Role, TokenId};

pub(super) use disk::{read, write};

const MAGIC: &[u8; 10] = b"platenkv1\n";
/// The longest header that is understood, in bytes.
const LONGEST_HEADER: usize = 64 << 10;
/// Bytes of a token and its owner.
const TOKEN_BYTES: usize = 4 + 5;
/// A token of no message.
const NO_MESSAGE: u32 = u32::MAX;

/// What a state depends on: it is of use only where all of this is the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Basis {
    /// The model's content, see [`ModelFacts::fingerprint`].
    pub model: String,
    /// The version of llama.cpp's bindings: the form of a state is its own.
    pub llama_cpp: String,
    /// Element types of the cache.
    pub types: (KvType, KvType),
    /// Cells of sliding windows.
    pub swa_cache: SwaCache,
}

impl Basis {
    /// That of a loaded model.
    pub(super) fn of(facts: &ModelFacts) -> Basis {
        use super::event::MemoryKind;
        Basis {
            model: facts.fingerprint.clone(),
            llama_cpp: crate::llama::VERSION.to_owned(),
            types: (facts.type_k, facts.type_v),
            swa_cache: match facts.memory {
                MemoryKind::SlidingWindow { cells, .. } => cells,
                MemoryKind::Attention | MemoryKind::Recurrent | MemoryKind::Hybrid => {
                    SwaCache::Full
                }
            },
        }
    }
}

/// A chat's state.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Snapshot {
    pub basis: Basis,
    /// The date that the chat's prompts name.
    pub chat_time: jiff::civil::DateTime,
    /// Prefill rate measured when it was written, in tokens a second.
    pub prefill_tok_s: Option<f64>,
    pub held: OwnedTokens,
    pub state: Vec<u8>,
}

/// Why a snapshot was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum SnapshotError {
    /// There is none.
    #[error("there is none")]
    Missing,
    /// The file can't be read or written.
    #[error("{0}")]
    Io(std::io::Error),
    /// It is no snapshot, or one of another version.
    #[error("it is no snapshot of this version")]
    Foreign,
    /// It is cut off or changed.
    #[error("it is damaged")]
    Damaged,
    /// It is of another model or of other options.
    #[error("it was made with {0}")]
    Other(&'static str),
}

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    basis: Basis,
    chat_time: jiff::civil::DateTime,
    prefill_tok_s: Option<f64>,
    tokens: u64,
    state_bytes: u64,
    /// XXH3 over all that follows the header.
    checksum: u64,
}

impl Snapshot {
    /// The bytes before the state: everything else. The state follows them in the file.
    fn encode_front(&self) -> Result<Vec<u8>, SnapshotError> {
        let body = self.body();
        let mut hash = Xxh3::new();
        hash.update(&body);
        hash.update(&self.state);
        let header = Header {
            basis: self.basis.clone(),
            chat_time: self.chat_time,
            prefill_tok_s: self.prefill_tok_s,
            tokens: self.held.tokens.len() as u64,
            state_bytes: self.state.len() as u64,
            checksum: hash.digest(),
        };
        let header = serde_json::to_vec(&header)
            .map_err(|error| SnapshotError::Io(std::io::Error::other(error)))?;
        let len = u32::try_from(header.len()).map_err(|_| SnapshotError::Foreign)?;
        let mut front = MAGIC.to_vec();
        front.extend(len.to_le_bytes());
        front.extend(header);
        front.extend(body);
        Ok(front)
    }

    fn body(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.held.tokens.len() * TOKEN_BYTES);
        for token in &self.held.tokens {
            body.extend(token.0.to_le_bytes());
        }
        for owner in &self.held.owners {
            let message = owner
                .message
                .and_then(|message| u32::try_from(message).ok())
                .unwrap_or(NO_MESSAGE);
            body.extend(message.to_le_bytes());
            body.push(match owner.role {
                None => 0,
                Some(Role::System) => 1,
                Some(Role::User) => 2,
                Some(Role::Assistant) => 3,
            });
        }
        body
    }

    /// Reads a snapshot that must have this basis. The state takes over the memory of `bytes`.
    fn decode(mut bytes: Vec<u8>, basis: &Basis) -> Result<Snapshot, SnapshotError> {
        let front = MAGIC.len() + 4;
        if !bytes.starts_with(MAGIC) || bytes.len() < front {
            return Err(SnapshotError::Foreign);
        }
        let len = <[u8; 4]>::try_from(&bytes[MAGIC.len()..front]).unwrap_or_default();
        let len = u32::from_le_bytes(len) as usize;
        if len > LONGEST_HEADER {
            return Err(SnapshotError::Damaged);
        }
        let header = bytes
            .get(front..front + len)
            .ok_or(SnapshotError::Damaged)?;
        let header: Header = serde_json::from_slice(header).map_err(|_| SnapshotError::Damaged)?;
        header.basis.check(basis)?;
        let tokens = usize::try_from(header.tokens).map_err(|_| SnapshotError::Damaged)?;
        let body = front + len;
        let state = tokens
            .checked_mul(TOKEN_BYTES)
            .and_then(|bytes| bytes.checked_add(body))
            .ok_or(SnapshotError::Damaged)?;
        let whole = (state as u64).checked_add(header.state_bytes);
        if whole != Some(bytes.len() as u64) {
            return Err(SnapshotError::Damaged);
        }
        let mut hash = Xxh3::new();
        hash.update(&bytes[body..]);
        if hash.digest() != header.checksum {
            return Err(SnapshotError::Damaged);
        }
        let (ids, owners) = bytes[body..state].split_at(tokens * 4);
        let held = OwnedTokens {
            tokens: ids.chunks_exact(4).map(token).collect(),
            owners: owners.chunks_exact(5).map(owner).collect(),
        };
        bytes.drain(..state);
        Ok(Snapshot {
            basis: header.basis,
            chat_time: header.chat_time,
            prefill_tok_s: header.prefill_tok_s,
            held,
            state: bytes,
        })
    }
}

fn token(bytes: &[u8]) -> TokenId {
    TokenId(i32::from_le_bytes(bytes.try_into().unwrap_or_default()))
}

fn owner(bytes: &[u8]) -> Owner {
    let message = u32::from_le_bytes(bytes[..4].try_into().unwrap_or_default());
    Owner {
        message: (message != NO_MESSAGE).then_some(message as usize),
        role: match bytes[4] {
            1 => Some(Role::System),
            2 => Some(Role::User),
            3 => Some(Role::Assistant),
            _ => None,
        },
    }
}

impl Basis {
    fn check(&self, wanted: &Basis) -> Result<(), SnapshotError> {
        let differs = [
            (self.model != wanted.model, "another model"),
            (self.llama_cpp != wanted.llama_cpp, "another llama.cpp"),
            (self.types != wanted.types, "other cache types"),
            (
                self.swa_cache != wanted.swa_cache,
                "another size of the sliding window's cache",
            ),
        ];
        match differs.into_iter().find(|(differs, _)| *differs) {
            Some((_, what)) => Err(SnapshotError::Other(what)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
