//! Text as a terminal can bear it: made harmless, measured, wrapped, edited and scrolled. No IO and no terminal
//! type; every other part of the screen draws only what has passed through here.
//!
//! A terminal and the screen's buffer must agree on the width of everything drawn, or borders break and residue
//! stays. They disagree on emoji sequences, so what is drawn is a plainer form whose width is the sum of its
//! characters' widths, by any way of counting: see [`sanitize`]. Stored text is never changed.

pub mod composer;
mod piece;
#[cfg(test)]
mod samples;
pub mod sanitize;
pub mod secrets;
pub mod transcript;
pub mod width;
pub mod wrap;

use std::fmt::Write as _;

pub use composer::{Composer, ComposerView, TooLong};
pub use sanitize::{visible, visible_line};
pub use transcript::{Item, ItemKind, Items, Line, LineKind, Thinking, Transcript};
pub use width::{fit, width};
pub use wrap::wrap;

/// Bytes in hexadecimal, two digits each.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// `1,204`: a whole number with commas between thousands.
#[must_use]
pub fn grouped(number: impl Into<u64>) -> String {
    let digits = number.into().to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
