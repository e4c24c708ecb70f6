//! What was sent before, to be sent again. The draft waits below the newest entry.

/// How many texts are kept.
const MAX_ENTRIES: usize = 1000;
/// How many bytes they may take together; the last one is kept however long it is.
const MAX_BYTES: usize = 1 << 20;

/// The texts sent, and which one is shown.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    entries: Vec<String>,
    bytes: usize,
    shown: Option<usize>,
    draft: String,
}

impl History {
    /// Remembers a text that was sent, unless it is blank or the same as the last.
    pub fn push(&mut self, text: &str) {
        self.shown = None;
        self.draft.clear();
        if text.trim().is_empty() || self.entries.last().is_some_and(|last| last == text) {
            return;
        }
        self.entries.push(text.to_owned());
        self.bytes += text.len();
        let mut gone = 0;
        while self.entries.len() - gone > MAX_ENTRIES
            || (self.bytes > MAX_BYTES && self.entries.len() - gone > 1)
        {
            self.bytes -= self.entries[gone].len();
            gone += 1;
        }
        self.entries.drain(..gone);
    }

    /// The entry before the one shown; `current` is kept as the draft when leaving it.
    pub fn older(&mut self, current: &str) -> Option<String> {
        let index = self.shown.unwrap_or(self.entries.len()).checked_sub(1)?;
        if self.shown.is_none() {
            current.clone_into(&mut self.draft);
        }
        self.shown = Some(index);
        self.entries.get(index).cloned()
    }

    /// The entry after the one shown, or the draft.
    pub fn newer(&mut self) -> Option<String> {
        let index = self.shown? + 1;
        if let Some(entry) = self.entries.get(index) {
            self.shown = Some(index);
            return Some(entry.clone());
        }
        self.shown = None;
        Some(std::mem::take(&mut self.draft))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_forgotten_early_but_the_last_one_stays() {
        let mut history = History::default();
        for letter in ["a", "b", "c"] {
            history.push(&letter.repeat(MAX_BYTES / 2));
        }
        assert_eq!(history.entries.len(), 2);
        assert!(history.entries[0].starts_with('b'));
        history.push(&"d".repeat(3 * MAX_BYTES));
        assert_eq!(history.entries.len(), 1);
        history.push("e");
        assert_eq!((history.entries.len(), history.bytes), (1, 1));
        for number in 0..=MAX_ENTRIES {
            history.push(&number.to_string());
        }
        assert_eq!(history.entries.len(), MAX_ENTRIES);
        let bytes: usize = history.entries.iter().map(String::len).sum();
        assert_eq!(history.bytes, bytes);
    }
}
