//! One chat as the store should hold it, and what of it the store has.

use std::collections::BTreeMap;

use crate::chat::record::{Change, ChatHead, ChatId, Growth, MessageNo, Node};
use crate::chat::store::{Batch, ChatLock, Growths};
use crate::chat::{Growing, title_of};
use crate::engine::event::StopReason;
use crate::engine::token::Role;

use super::{Resumed, Resumption};

/// A chat in memory.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    /// Its name in the store.
    pub(super) id: Option<ChatId>,
    /// The right to write to it there.
    pub(super) lock: Option<ChatLock>,
    title: String,
    head: ChatHead,
    rows: BTreeMap<MessageNo, Row>,
    removed: Vec<MessageNo>,
    /// Whether anything happened that the store doesn't know.
    stale: bool,
}

/// A message in memory.
#[derive(Debug)]
struct Row {
    node: Node,
    written: Written,
    growing: Growing,
}

/// What the store has of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    /// Nothing, or something else.
    Nothing,
    /// All of it.
    All,
    /// Its beginning.
    Up {
        /// Bytes of text.
        text: usize,
        /// Tokens.
        ids: usize,
    },
}

impl Mirror {
    /// A chat that goes on. A reply that was cut off is marked so where the chat is this process's to write.
    pub(super) fn of(resumed: Resumed) -> Mirror {
        let (id, lock, written) = match resumed.standing {
            Resumption::Itself(lock) => (Some(resumed.chat.id), lock, Written::All),
            Resumption::Copy => (None, None, Written::Nothing),
        };
        let mut mirror = Mirror {
            id,
            lock,
            title: resumed.chat.title,
            head: resumed.chat.head,
            ..Mirror::default()
        };
        for mut node in resumed.chat.nodes {
            let cut_off = node.message.role == Role::Assistant && node.message.stop.is_none();
            let mut written = written;
            if cut_off {
                node.message.stop = Some(StopReason::Interrupted);
                written = Written::Nothing;
                mirror.stale |= id.is_some();
            }
            mirror.rows.insert(node.no, Row::of(node, written));
        }
        mirror
    }

    /// Takes what happened.
    pub(super) fn apply(&mut self, head: ChatHead, changes: Vec<Change>) {
        // What holds for the whole makes no copy by itself.
        self.stale |= !changes.is_empty() || (self.id.is_some() && self.head != head);
        self.head = head;
        for change in changes {
            match change {
                Change::Put(node) => {
                    if self.title.is_empty() && node.message.role == Role::User {
                        self.title = title_of(&node.message.text);
                    }
                    self.removed.retain(|no| *no != node.no);
                    self.rows.insert(node.no, Row::of(*node, Written::Nothing));
                }
                Change::Grow(no, growth) => {
                    if let Some(row) = self.rows.get_mut(&no) {
                        row.grow(&growth);
                    }
                }
                Change::Remove(no) => {
                    if self.rows.remove(&no).is_some() {
                        self.removed.push(no);
                    }
                }
            }
        }
    }

    /// Whether there is something to write.
    pub(super) fn is_stale(&self) -> bool {
        self.stale && (self.id.is_some() || !self.rows.is_empty())
    }

    /// What to write.
    pub(super) fn batch(&self) -> Batch<'_> {
        let mut batch = Batch {
            chat: self.id,
            title: self.title.clone(),
            head: self.head.clone(),
            removed: self.removed.clone(),
            put: Vec::new(),
            grown: Vec::new(),
        };
        for (no, row) in &self.rows {
            match row.written {
                Written::All => {}
                Written::Nothing => batch.put.push(&row.node),
                Written::Up { text, ids } => batch.grown.push(row.growths(*no, text, ids)),
            }
        }
        batch
    }

    /// It was written.
    pub(super) fn written(&mut self, id: ChatId) {
        self.id = Some(id);
        self.stale = false;
        self.removed.clear();
        for row in self.rows.values_mut() {
            row.written = Written::All;
        }
    }

    /// The store has nothing of it; it is written whole and under a new name, with the next write.
    pub(super) fn forget_store(&mut self) {
        self.lock = None;
        self.id = None;
        self.write_again();
    }

    /// What the store has of it can't be relied on.
    pub(super) fn write_again(&mut self) {
        self.stale = !self.rows.is_empty();
        for row in self.rows.values_mut() {
            row.written = Written::Nothing;
        }
    }
}

impl Row {
    fn of(node: Node, written: Written) -> Row {
        Row {
            node,
            written,
            growing: Growing::default(),
        }
    }

    fn grow(&mut self, growth: &Growth) {
        let message = &mut self.node.message;
        if self.written == Written::All {
            self.written = Written::Up {
                text: message.text.len(),
                ids: message.tokens.as_ref().map_or(0, |run| run.ids.len()),
            };
        }
        self.growing.grow(message, growth);
    }

    fn growths(&self, no: MessageNo, text: usize, ids: usize) -> Growths<'_> {
        let message = &self.node.message;
        let run = message.tokens.as_ref();
        Growths {
            no,
            text: &message.text[text..],
            thinking_len: message.thinking_len.saturating_sub(text),
            ids: run.map_or(&[][..], |run| &run.ids[ids..]),
            ids_text_len: run.map_or(0, |run| run.text_len),
        }
    }
}
