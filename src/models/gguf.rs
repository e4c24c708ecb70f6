//! Reads what a GGUF file says about itself: its metadata and its list of tensors, never the weights.
//!
//! llama.cpp aborts the process on several kinds of broken header, so every file is read here first. Nothing
//! is allocated because a header asks for it: counts and lengths are checked against fixed limits and against
//! the bytes that the file has. The format is described in ggml's `docs/gguf.md`.

mod error;
mod reader;
mod rules;
mod tensor;
mod value;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

use reader::Share;

pub use error::{GgufError, GgufFault};
pub use tensor::{TensorInfo, TensorType};
pub use value::{Array, Value, ValueType};

/// The header of a GGUF file that has passed every check.
#[derive(Debug, Clone, PartialEq)]
pub struct GgufFile {
    path: PathBuf,
    file_bytes: u64,
    header: reader::Header,
}

/// Which part of a split model a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// Its number, from 0.
    pub index: u64,
    /// How many parts there are.
    pub count: u64,
}

impl GgufFile {
    /// Reads the header of the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, is no GGUF file of version 2 or 3, is cut short, or its header contradicts
    /// itself or asks for more than any real model needs.
    pub fn open(path: &Path) -> Result<GgufFile, GgufError> {
        GgufFile::open_share(path, Share::First)
    }

    /// Reads the header of a later part of a split model, which has tensors and little else.
    ///
    /// # Errors
    /// As [`GgufFile::open`].
    pub fn open_part(path: &Path) -> Result<GgufFile, GgufError> {
        GgufFile::open_share(path, Share::Later)
    }

    fn open_share(path: &Path, share: Share) -> Result<GgufFile, GgufError> {
        let fail = |fault| GgufError {
            path: path.to_owned(),
            fault,
        };
        let about = std::fs::metadata(path).map_err(|error| fail(error.into()))?;
        if !about.is_file() {
            return Err(fail(GgufFault::NotAFile));
        }
        let file = File::open(path).map_err(|error| fail(error.into()))?;
        let header = reader::read(file, about.len(), share).map_err(fail)?;
        Ok(GgufFile {
            path: path.to_owned(),
            file_bytes: about.len(),
            header,
        })
    }

    /// Reads a header from `source`, which holds `size` bytes; `path` only names it in errors.
    ///
    /// # Errors
    /// As [`GgufFile::open`].
    pub fn from_reader(
        source: impl Read + Seek,
        size: u64,
        path: &Path,
    ) -> Result<GgufFile, GgufError> {
        let header = reader::read(source, size, Share::First).map_err(|fault| GgufError {
            path: path.to_owned(),
            fault,
        })?;
        Ok(GgufFile {
            path: path.to_owned(),
            file_bytes: size,
            header,
        })
    }

    /// Where it was read from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The size of the file in bytes.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// The format's version: 2 or 3.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.header.version
    }

    /// All metadata, by key.
    #[must_use]
    pub fn metadata(&self) -> &BTreeMap<String, Value> {
        &self.header.metadata
    }

    /// All tensors, in the file's order.
    #[must_use]
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.header.tensors
    }

    /// A value.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.header.metadata.get(key)
    }

    /// A text; `None` where there is none, or none short enough to be kept.
    #[must_use]
    pub fn str(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// A whole number that is not negative, of any width.
    #[must_use]
    pub fn u64(&self, key: &str) -> Option<u64> {
        self.get(key)?.as_u64()
    }

    /// A float of any width.
    #[must_use]
    pub fn f64(&self, key: &str) -> Option<f64> {
        self.get(key)?.as_f64()
    }

    /// A truth value.
    #[must_use]
    pub fn bool(&self, key: &str) -> Option<bool> {
        self.get(key)?.as_bool()
    }

    /// An array.
    #[must_use]
    pub fn array(&self, key: &str) -> Option<&Array> {
        self.get(key)?.as_array()
    }

    /// A value whose key begins with the architecture, such as `llama.context_length` for `context_length`.
    #[must_use]
    pub fn arch(&self, key: &str) -> Option<&Value> {
        self.get(&format!("{}.{key}", self.architecture()))
    }

    /// A whole number whose key begins with the architecture.
    #[must_use]
    pub fn arch_u64(&self, key: &str) -> Option<u64> {
        self.arch(key)?.as_u64()
    }

    /// `general.architecture`, which every model has.
    #[must_use]
    pub fn architecture(&self) -> &str {
        self.str("general.architecture").unwrap_or_default()
    }

    /// The model's own name.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.str("general.name")
    }

    /// The quantisation's usual name, such as `Q4_K_M`; where the file does not say, the type that most weight
    /// bytes have.
    #[must_use]
    pub fn quantization(&self) -> String {
        self.u64("general.file_type")
            .and_then(tensor::file_type_name)
            .or_else(|| self.commonest_type().map(TensorType::name))
            .unwrap_or_default()
            .to_owned()
    }

    fn commonest_type(&self) -> Option<TensorType> {
        let mut bytes: BTreeMap<TensorType, u64> = BTreeMap::new();
        for tensor in self.tensors() {
            *bytes.entry(tensor.kind).or_default() += tensor.bytes;
        }
        bytes
            .into_iter()
            .max_by_key(|&(_, bytes)| bytes)
            .map(|(kind, _)| kind)
    }

    /// The bytes of all weights.
    #[must_use]
    pub fn tensor_bytes(&self) -> u64 {
        self.tensors().iter().map(|tensor| tensor.bytes).sum()
    }

    /// How many weights there are.
    #[must_use]
    pub fn parameters(&self) -> u64 {
        self.tensors().iter().map(|tensor| tensor.elements).sum()
    }

    /// The chat template, as minijinja or Jinja reads it.
    #[must_use]
    pub fn chat_template(&self) -> Option<&str> {
        self.str("tokenizer.chat_template")
    }

    /// The context that the model was trained on, in tokens.
    #[must_use]
    pub fn context_train(&self) -> Option<u64> {
        self.arch_u64("context_length")
    }

    /// How many layers there are.
    #[must_use]
    pub fn block_count(&self) -> Option<u64> {
        self.arch_u64("block_count")
    }

    /// How many tokens the vocabulary has.
    #[must_use]
    pub fn vocab_size(&self) -> Option<u64> {
        self.array("tokenizer.ggml.tokens")
            .map(|tokens| tokens.len)
            .or_else(|| self.arch_u64("vocab_size"))
    }

    /// Which part of a split model this is; `None` for a model of one file.
    #[must_use]
    pub fn split(&self) -> Option<Split> {
        let count = self.u64("split.count").filter(|&count| count > 1)?;
        Some(Split {
            index: self.u64("split.no").unwrap_or(0),
            count,
        })
    }

    /// Why this model cannot hold a chat; `None` where it can.
    #[must_use]
    pub fn not_chat(&self) -> Option<String> {
        /// Encoders, and decoders that don't write text from left to right.
        const NOT_CHAT: [&str; 21] = [
            "bert",
            "modern-bert",
            "nomic-bert",
            "nomic-bert-moe",
            "neo-bert",
            "jina-bert-v2",
            "jina-bert-v3",
            "eurobert",
            "gemma-embedding",
            "llama-embed",
            "t5",
            "t5encoder",
            "clip",
            "wavtokenizer-dec",
            "dream",
            "llada",
            "llada-moe",
            "rnd1",
            "clef",
            "gemma4-assistant",
            "dflash",
        ];
        let architecture = self.architecture();
        if NOT_CHAT.contains(&architecture) {
            return Some(format!(
                "models of the architecture {} write no replies",
                crate::text::sanitize::neutral_line(architecture)
            ));
        }
        if let Some(kind @ ("adapter" | "imatrix" | "mmproj" | "projector")) =
            self.str("general.type")
        {
            return Some(format!("it is no model but a file of the kind '{kind}'"));
        }
        if let Some(tokenizer @ ("none" | "no_vocab" | "bert")) = self.str("tokenizer.ggml.model") {
            return Some(format!(
                "with its tokenizer, '{tokenizer}', it writes no text"
            ));
        }
        let pooling = self.arch_u64("pooling_type").unwrap_or(0);
        match pooling {
            0 => None,
            4 => Some("it is a reranker: it scores texts and writes none".to_owned()),
            _ => Some(
                "it is an embedding model: it turns texts into numbers and writes none".to_owned(),
            ),
        }
    }
}

#[cfg(test)]
mod tests;
