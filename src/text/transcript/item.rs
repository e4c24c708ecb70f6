//! What goes into a transcript and what comes out of it.

use crate::engine::token::Role;

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    /// A message of the conversation.
    Message(Role),
    /// Something the program says.
    Notice,
    /// Something that failed.
    Error,
}

/// Whether a message's thinking is unfolded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Thinking {
    /// Its lines are shown.
    #[default]
    Shown,
    /// One line stands for it.
    Folded,
}

/// One entry of the transcript, borrowed from where it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item<'a> {
    /// Names this text among the items: it must change when the text changes in any way but growing at its end.
    pub id: u64,
    /// What it is.
    pub kind: ItemKind,
    /// The header line (who speaks); no header where it is empty.
    pub label: &'a str,
    /// The text, raw.
    pub body: &'a str,
    /// The byte length of the thinking at the start of `body`.
    pub thinking_len: usize,
    /// How the thinking is shown.
    pub thinking: Thinking,
    /// What is said below the text (numbers, why it stopped).
    pub meta: Option<&'a str>,
}

impl<'a> Item<'a> {
    /// An item without header, thinking and meta line.
    #[must_use]
    pub fn new(id: u64, kind: ItemKind, body: &'a str) -> Self {
        Item {
            id,
            kind,
            label: "",
            body,
            thinking_len: 0,
            thinking: Thinking::Shown,
            meta: None,
        }
    }
}

/// Where items come from. An item is asked for only when it may have changed.
pub trait Items {
    /// How many there are.
    fn len(&self) -> usize;
    /// The item at `index`, below [`Items::len`].
    fn item(&self, index: usize) -> Item<'_>;
    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Items for [Item<'_>] {
    fn len(&self) -> usize {
        <[Item<'_>]>::len(self)
    }

    fn item(&self, index: usize) -> Item<'_> {
        self[index]
    }
}

impl Items for Vec<Item<'_>> {
    fn len(&self) -> usize {
        self.as_slice().len()
    }

    fn item(&self, index: usize) -> Item<'_> {
        self[index]
    }
}

/// What a line is, for its style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// Who speaks.
    Header(Role),
    /// The text.
    Body,
    /// The model's thinking, or the line that stands for it.
    Thinking,
    /// What is said below a message.
    Meta,
    /// Between items.
    Blank,
    /// Something the program says.
    Notice,
    /// Something that failed.
    Error,
}

/// One line on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What it is.
    pub kind: LineKind,
    /// The text, harmless and no wider than the view.
    pub text: String,
    /// The index of its item.
    pub item: usize,
}
