//! Stop strings in text that comes in pieces. Text that may be the beginning of one is held; the match that
//! begins first wins, however the pieces are cut.

/// One stop string, searched for by Knuth, Morris and Pratt's method: constant work a byte.
#[derive(Debug)]
struct Pattern {
    bytes: Vec<u8>,
    /// For each prefix, the length of its longest proper prefix that is also its suffix.
    borders: Vec<usize>,
    matched: usize,
    first_match: Option<usize>,
}

impl Pattern {
    fn new(text: &str) -> Pattern {
        let bytes = text.as_bytes().to_vec();
        let mut borders = vec![0; bytes.len()];
        let mut border = 0;
        for at in 1..bytes.len() {
            while border > 0 && bytes[at] != bytes[border] {
                border = borders[border - 1];
            }
            if bytes[at] == bytes[border] {
                border += 1;
            }
            borders[at] = border;
        }
        Pattern {
            bytes,
            borders,
            matched: 0,
            first_match: None,
        }
    }

    /// Takes the byte at `position` of the whole text.
    fn step(&mut self, byte: u8, position: usize) {
        if self.first_match.is_some() {
            return;
        }
        while self.matched > 0 && self.bytes[self.matched] != byte {
            self.matched = self.borders[self.matched - 1];
        }
        if self.bytes[self.matched] == byte {
            self.matched += 1;
        }
        if self.matched == self.bytes.len() {
            self.first_match = Some(position + 1 - self.matched);
            self.matched = 0;
        }
    }
}

/// Finds the first stop string.
#[derive(Debug)]
pub struct StopFinder {
    patterns: Vec<Pattern>,
    held: String,
    decoded_len: usize,
    stopped: bool,
}

impl StopFinder {
    /// For these strings; empty ones are ignored.
    pub fn new(stops: &[String]) -> StopFinder {
        let patterns = stops
            .iter()
            .filter(|stop| !stop.is_empty())
            .map(|stop| Pattern::new(stop))
            .collect();
        StopFinder {
            patterns,
            held: String::new(),
            decoded_len: 0,
            stopped: false,
        }
    }

    /// Takes more text and releases what belongs to no stop string.
    pub fn push(&mut self, text: &str) -> String {
        if self.stopped {
            return String::new();
        }
        for pattern in &mut self.patterns {
            for (offset, byte) in text.bytes().enumerate() {
                pattern.step(byte, self.decoded_len + offset);
            }
        }
        self.decoded_len += text.len();
        self.held.push_str(text);
        let candidate = self
            .patterns
            .iter()
            .filter(|pattern| pattern.matched > 0)
            .map(|pattern| self.decoded_len - pattern.matched)
            .min();
        let found = self.match_start();
        self.stopped =
            found.is_some_and(|found| candidate.is_none_or(|candidate| found <= candidate));
        let held_from = found
            .into_iter()
            .chain(candidate)
            .min()
            .unwrap_or(self.decoded_len);
        self.release(held_from)
    }

    /// Releases what is held, up to a stop string that waited for a longer one.
    pub fn finish(&mut self) -> String {
        if self.stopped {
            return String::new();
        }
        let found = self.match_start();
        self.stopped = found.is_some();
        self.release(found.unwrap_or(self.decoded_len))
    }

    fn release(&mut self, up_to: usize) -> String {
        let held_start = self.decoded_len - self.held.len();
        let rest = self.held.split_off(up_to - held_start);
        std::mem::replace(&mut self.held, rest)
    }

    /// Where the first stop string begins, in bytes of the whole text.
    pub fn match_start(&self) -> Option<usize> {
        self.patterns
            .iter()
            .filter_map(|pattern| pattern.first_match)
            .min()
    }

    /// Whether the text has ended.
    pub fn stopped(&self) -> bool {
        self.stopped
    }

    /// Bytes of text taken so far.
    pub fn decoded_len(&self) -> usize {
        self.decoded_len
    }
}
