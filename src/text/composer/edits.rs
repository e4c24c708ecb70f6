//! What was changed, for undo and redo. Typing runs together word by word, so that one undo takes back a word.

/// How an edit came about, and so whether it joins the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EditKind {
    /// A character was typed.
    Typed,
    /// A character was erased.
    Erased,
    /// A step of its own.
    Whole,
}

/// One change: at byte `at`, `removed` gave way to `inserted`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    pub at: usize,
    pub removed: String,
    pub inserted: String,
    /// Where the cursor was before.
    pub cursor: usize,
    kind: EditKind,
}

impl Edit {
    fn bytes(&self) -> usize {
        self.removed.len() + self.inserted.len()
    }
}

/// How many bytes of changes are kept; the last one is kept however long it is.
const MAX_BYTES: usize = 1 << 20;

/// The changes made and those taken back.
#[derive(Debug, Clone, Default)]
pub(super) struct Edits {
    done: std::collections::VecDeque<Edit>,
    undone: Vec<Edit>,
    bytes: usize,
}

impl Edits {
    /// Remembers a change; `how` is its kind and where the cursor was before.
    pub fn record(&mut self, at: usize, removed: &str, inserted: &str, how: (EditKind, usize)) {
        let (kind, cursor) = how;
        self.bytes -= self
            .undone
            .drain(..)
            .map(|edit| edit.bytes())
            .sum::<usize>();
        self.bytes += removed.len() + inserted.len();
        let joined = self
            .done
            .back_mut()
            .is_some_and(|last| last.kind == kind && join(last, at, removed, inserted));
        if !joined {
            let (removed, inserted) = (removed.to_owned(), inserted.to_owned());
            self.done.push_back(Edit {
                at,
                removed,
                inserted,
                cursor,
                kind,
            });
        }
        while self.bytes > MAX_BYTES && self.done.len() > 1 {
            self.bytes -= self.done.pop_front().map_or(0, |edit| edit.bytes());
        }
    }

    /// Ends a run of typing: what comes next is a step of its own.
    pub fn seal(&mut self) {
        if let Some(last) = self.done.back_mut() {
            last.kind = EditKind::Whole;
        }
    }

    /// The change to take back.
    pub fn undo(&mut self) -> Option<Edit> {
        let edit = self.done.pop_back()?;
        self.undone.push(edit.clone());
        Some(edit)
    }

    /// The change to make again.
    pub fn redo(&mut self) -> Option<Edit> {
        let mut edit = self.undone.pop()?;
        edit.kind = EditKind::Whole;
        self.done.push_back(edit.clone());
        Some(edit)
    }
}

fn join(last: &mut Edit, at: usize, removed: &str, inserted: &str) -> bool {
    match last.kind {
        EditKind::Typed => {
            let adjoins = at == last.at + last.inserted.len() && removed.is_empty();
            let new_word = last.inserted.ends_with(char::is_whitespace)
                && !inserted.starts_with(char::is_whitespace);
            if adjoins && !new_word {
                last.inserted.push_str(inserted);
            }
            adjoins && !new_word
        }
        EditKind::Erased if at + removed.len() == last.at => {
            last.at = at;
            last.removed.insert_str(0, removed);
            true
        }
        EditKind::Erased if at == last.at => {
            last.removed.push_str(removed);
            true
        }
        EditKind::Erased | EditKind::Whole => false,
    }
}
