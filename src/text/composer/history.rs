//! What was sent before, to be sent again. The draft waits below the newest entry.

/// How many texts are kept.
const MAX_ENTRIES: usize = 1000;

/// The texts sent, and which one is shown.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    entries: Vec<String>,
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
        if self.entries.len() == MAX_ENTRIES {
            self.entries.remove(0);
        }
        self.entries.push(text.to_owned());
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
