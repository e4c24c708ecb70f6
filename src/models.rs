//! Model files: what is on this machine, what can be fetched, what is in them. Nothing here calls llama.cpp.

pub mod catalogue;
pub mod discover;
pub mod download;
pub mod estimate;
pub mod gguf;
pub mod parts;

use std::fmt::Write;

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

/// The text with every character that could steer a terminal written as an escape, such as `\u{1b}`: file
/// names and metadata come from strangers.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let steers = c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if steers {
            let _ = write!(out, "{}", c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}
