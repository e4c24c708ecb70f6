//! The arrays that a decode call takes.

use llama_cpp_sys_2 as sys;

use super::{Logits, SeqId};
use crate::engine::token::TokenId;

/// The arrays of a batch, as long as the context allows, so that nothing can be written past their end.
#[derive(Debug)]
pub(super) struct Batch {
    tokens: Vec<i32>,
    positions: Vec<i32>,
    counts: Vec<i32>,
    sequence: Box<i32>,
    sequence_ptrs: Vec<*mut i32>,
    logits: Vec<i8>,
}

impl Batch {
    /// Room for `capacity` tokens.
    pub(super) fn with_capacity(capacity: usize) -> Batch {
        Batch {
            tokens: Vec::with_capacity(capacity),
            positions: Vec::with_capacity(capacity),
            counts: Vec::with_capacity(capacity),
            sequence: Box::new(0),
            sequence_ptrs: Vec::with_capacity(capacity),
            logits: Vec::with_capacity(capacity),
        }
    }

    pub(super) fn fill(&mut self, tokens: &[TokenId], start: i32, seq: SeqId, logits: Logits) {
        let len = tokens.len();
        self.tokens.clear();
        self.tokens.extend(tokens.iter().map(|token| token.0));
        self.positions.clear();
        self.positions.extend((start..).take(len));
        self.counts.clear();
        self.counts.resize(len, 1);
        *self.sequence = seq.0;
        let pointer: *mut i32 = &raw mut *self.sequence;
        self.sequence_ptrs.clear();
        self.sequence_ptrs.resize(len, pointer);
        self.logits.clear();
        self.logits.resize(len, 0);
        if logits == Logits::Last
            && let Some(last) = self.logits.last_mut()
        {
            *last = 1;
        }
    }

    pub(super) fn as_raw(&mut self) -> sys::llama_batch {
        sys::llama_batch {
            n_tokens: i32::try_from(self.tokens.len()).unwrap_or(0),
            token: self.tokens.as_mut_ptr(),
            embd: std::ptr::null_mut(),
            pos: self.positions.as_mut_ptr(),
            n_seq_id: self.counts.as_mut_ptr(),
            seq_id: self.sequence_ptrs.as_mut_ptr(),
            logits: self.logits.as_mut_ptr(),
        }
    }
}
