//! The prompt being written: a text with a cursor that moves by what the eye sees as one character, undo, a kill
//! buffer and the history of what was sent. It holds exactly what was typed or pasted; only its view is made
//! harmless.

mod edits;
mod history;
mod motion;
mod paste;
mod view;

use std::cell::{Cell, RefCell};
use std::ops::Range;

use super::wrap::Rows;
use edits::{EditKind, Edits};
use history::History;
pub use paste::TooLong;
pub use view::ComposerView;

/// A prompt of any number of lines, with its cursor.
#[derive(Debug, Clone, Default)]
pub struct Composer {
    text: String,
    /// A byte offset, on a grapheme's edge.
    cursor: usize,
    /// The column that moves up and down aim for.
    goal: Option<usize>,
    killed: String,
    edits: Edits,
    history: History,
    /// The wrapped rows at the width last asked for.
    rows: RefCell<Rows>,
    first_row: Cell<usize>,
}

impl Composer {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Composer::default()
    }

    /// The text, whole and unchanged.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The cursor, as a byte offset into the text.
    #[must_use]
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// Types one character.
    pub fn insert_char(&mut self, c: char) {
        let mut buffer = [0; 4];
        self.replace(
            self.cursor..self.cursor,
            c.encode_utf8(&mut buffer),
            EditKind::Typed,
        );
    }

    /// Pastes: line ends become `\n`; NUL and paste markers are left out; all else is kept as it is.
    ///
    /// # Errors
    /// [`TooLong`] where the text would pass [`TooLong::LIMIT`] bytes; nothing is changed then.
    pub fn insert_str(&mut self, text: &str) -> Result<(), TooLong> {
        let pasted = paste::normalised(text);
        TooLong::check(self.text.len() + pasted.len())?;
        self.replace(self.cursor..self.cursor, &pasted, EditKind::Whole);
        Ok(())
    }

    /// Starts a new line.
    pub fn newline(&mut self) {
        self.replace(self.cursor..self.cursor, "\n", EditKind::Whole);
    }

    /// Removes the grapheme before the cursor.
    pub fn backspace(&mut self) {
        self.replace(self.before(self.cursor)..self.cursor, "", EditKind::Erased);
    }

    /// Removes the grapheme after the cursor.
    pub fn delete(&mut self) {
        self.replace(self.cursor..self.after(self.cursor), "", EditKind::Erased);
    }

    /// Removes the rest of the line, or the newline where there is no rest; [`Composer::yank`] brings it back.
    pub fn kill_to_end(&mut self) {
        let end = self.line_end(self.cursor);
        self.kill(
            self.cursor..if end == self.cursor {
                self.after(end)
            } else {
                end
            },
        );
    }

    /// Removes the line up to the cursor, or the newline before it where there is nothing.
    pub fn kill_to_start(&mut self) {
        let start = self.line_start(self.cursor);
        self.kill(
            if start == self.cursor {
                self.before(start)
            } else {
                start
            }..self.cursor,
        );
    }

    /// Removes the word before the cursor.
    pub fn kill_word_back(&mut self) {
        self.kill(self.word_start(self.cursor)..self.cursor);
    }

    /// Removes the word after the cursor.
    pub fn kill_word_forward(&mut self) {
        self.kill(self.cursor..self.word_end(self.cursor));
    }

    /// Inserts what was killed last.
    ///
    /// # Errors
    /// [`TooLong`], as for [`Composer::insert_str`].
    pub fn yank(&mut self) -> Result<(), TooLong> {
        TooLong::check(self.text.len() + self.killed.len())?;
        let killed = self.killed.clone();
        self.replace(self.cursor..self.cursor, &killed, EditKind::Whole);
        Ok(())
    }

    /// Takes back the last change; false where there is none.
    pub fn undo(&mut self) -> bool {
        let Some(edit) = self.edits.undo() else {
            return false;
        };
        self.splice(edit.at..edit.at + edit.inserted.len(), &edit.removed);
        self.move_to(edit.cursor);
        true
    }

    /// Makes the change again that was last taken back; false where there is none.
    pub fn redo(&mut self) -> bool {
        let Some(edit) = self.edits.redo() else {
            return false;
        };
        self.splice(edit.at..edit.at + edit.removed.len(), &edit.inserted);
        self.move_to(edit.at + edit.inserted.len());
        true
    }

    /// Takes the text out and remembers it in the history.
    pub fn submit(&mut self) -> String {
        let text = std::mem::take(&mut self.text);
        self.history.push(&text);
        self.forget();
        text
    }

    /// Replaces everything, with the cursor at the end; can be undone.
    pub fn set_text(&mut self, text: &str) {
        let text = paste::normalised(text);
        self.replace(0..self.text.len(), &text, EditKind::Whole);
    }

    /// Fills the history, oldest first, with what was sent in an earlier session.
    pub fn remember<'a>(&mut self, sent: impl IntoIterator<Item = &'a str>) {
        for text in sent {
            self.history.push(text);
        }
    }

    /// Shows the text sent before; false where there is none.
    pub fn history_prev(&mut self) -> bool {
        let Some(text) = self.history.older(&self.text) else {
            return false;
        };
        self.show(text);
        true
    }

    /// Shows the text sent next, at last the unfinished draft; false where the draft is there already.
    pub fn history_next(&mut self) -> bool {
        let Some(text) = self.history.newer() else {
            return false;
        };
        self.show(text);
        true
    }

    fn show(&mut self, text: String) {
        self.text = text;
        self.forget();
        self.cursor = self.text.len();
    }

    fn forget(&mut self) {
        self.cursor = 0;
        self.goal = None;
        self.edits = Edits::default();
        self.rows.replace(Rows::default());
        self.first_row.set(0);
    }

    fn kill(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.text[range.clone()].clone_into(&mut self.killed);
            self.replace(range, "", EditKind::Whole);
        }
    }

    fn replace(&mut self, range: Range<usize>, with: &str, kind: EditKind) {
        if range.is_empty() && with.is_empty() {
            return;
        }
        self.edits.record(
            range.start,
            &self.text[range.clone()],
            with,
            (kind, self.cursor),
        );
        let end = range.start + with.len();
        self.splice(range, with);
        self.move_to(end);
    }

    fn splice(&mut self, range: Range<usize>, with: &str) {
        self.text.replace_range(range.clone(), with);
        self.rows
            .get_mut()
            .replace(&self.text, range.start, range.len(), with.len());
    }
}

#[cfg(test)]
mod tests;
