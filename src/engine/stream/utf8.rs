//! Characters from bytes that come in pieces, as `String::from_utf8_lossy` would decode the whole.

/// Holds the bytes of a character that is not yet complete: three at most.
#[derive(Debug, Default)]
pub struct Utf8Decoder {
    pending: Vec<u8>,
}

impl Utf8Decoder {
    /// The characters that are complete with these bytes; each invalid sequence becomes U+FFFD.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let mut text = String::with_capacity(self.pending.len());
        let mut done = 0;
        for chunk in self.pending.utf8_chunks() {
            text.push_str(chunk.valid());
            done += chunk.valid().len();
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            let at_end = done + invalid.len() == self.pending.len();
            let unfinished =
                std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            if at_end && unfinished {
                break;
            }
            text.push(char::REPLACEMENT_CHARACTER);
            done += invalid.len();
        }
        self.pending.drain(..done);
        text
    }

    /// Whether a character has begun that is not complete.
    pub fn inside_character(&self) -> bool {
        !self.pending.is_empty()
    }

    /// U+FFFD where the bytes end inside a character.
    pub fn finish(&mut self) -> String {
        if std::mem::take(&mut self.pending).is_empty() {
            String::new()
        } else {
            "\u{FFFD}".to_string()
        }
    }
}
