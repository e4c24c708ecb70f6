//! What a paste may bring in: line ends of any kind, markers that pretend the paste is over, and more text than
//! anyone can mean to send.

use std::borrow::Cow;

/// A text past the limit was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{} is too long: the prompt takes up to {} of text; attach less", Size(*.bytes), Size(TooLong::LIMIT))]
pub struct TooLong {
    /// How long the prompt would have become, in bytes.
    pub bytes: usize,
}

struct Size(usize);

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.1} MiB", self.0 as f64 / f64::from(1 << 20))
    }
}

impl TooLong {
    /// The longest prompt, in bytes.
    pub const LIMIT: usize = 10 << 20;

    pub(super) fn check(bytes: usize) -> Result<(), TooLong> {
        if bytes > Self::LIMIT {
            Err(TooLong { bytes })
        } else {
            Ok(())
        }
    }
}

const MARKERS: [&str; 2] = ["\u{1b}[201~", "\u{1b}[200~"];

/// The text with `\n` as its only line end, without NUL and paste markers (nor those that their removal makes).
pub(super) fn normalised(text: &str) -> Cow<'_, str> {
    if !text.contains(['\r', '\0', '\u{1b}']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\0' => {}
            '\r' => {
                chars.next_if_eq(&'\n');
                out.push('\n');
            }
            _ => out.push(c),
        }
        if c == '~' && MARKERS.iter().any(|marker| out.ends_with(marker)) {
            out.truncate(out.len() - MARKERS[0].len());
        }
    }
    Cow::Owned(out)
}
