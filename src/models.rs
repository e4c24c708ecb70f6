//! Model files: what is on this machine, what can be fetched, what is in them. Nothing here calls llama.cpp.

pub mod catalogue;
pub mod discover;
pub mod download;
pub mod estimate;
pub mod gguf;
pub mod parts;

#[cfg(test)]
#[path = "../tests/support/tiny_gguf.rs"]
pub(crate) mod tiny_gguf;

/// Whether a file name ends as those of GGUF files do.
#[must_use]
pub fn is_gguf_name(name: &str) -> bool {
    std::path::Path::new(name)
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"))
}
