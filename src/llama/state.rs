//! The state of one sequence as bytes: what the cache holds, without logits and without the random state. Never as a
//! file of llama.cpp's: it aborts on a truncated one.

use llama_cpp_sys_2 as sys;

use super::context::{Context, SeqId};

/// `LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY` of llama.h; the bindings leave macros without a type out.
const PARTIAL_ONLY: sys::llama_state_seq_flags = 1;

/// How much of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatePart {
    /// All of it.
    Whole,
    /// Only what can't be cut back: the sliding window's cells, the recurrent state.
    Partial,
}

impl StatePart {
    fn flags(self) -> sys::llama_state_seq_flags {
        match self {
            StatePart::Whole => 0,
            StatePart::Partial => PARTIAL_ONLY,
        }
    }
}

/// Why a state could not be written or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The context has no such sequence.
    #[error("the context has no such sequence")]
    Sequence,
    /// llama.cpp wrote another number of bytes than it announced.
    #[error("the state could not be written")]
    Write,
    /// The bytes are no state of this model with these cache types; the sequence is now empty.
    #[error("the saved state does not fit this model or these cache types")]
    Mismatch,
}

impl Context {
    /// The state of a sequence.
    ///
    /// # Errors
    /// See [`StateError`].
    pub fn save_state(&mut self, seq: SeqId, part: StatePart) -> Result<Vec<u8>, StateError> {
        let seq = self.owned(seq)?;
        // SAFETY: the context is alive and the sequence in range.
        let size =
            unsafe { sys::llama_state_seq_get_size_ext(self.as_mut_ptr(), seq.0, part.flags()) };
        let mut bytes = vec![0_u8; size];
        // SAFETY: the buffer has the size given.
        let written = unsafe {
            sys::llama_state_seq_get_data_ext(
                self.as_mut_ptr(),
                bytes.as_mut_ptr(),
                size,
                seq.0,
                part.flags(),
            )
        };
        if written == size && size > 0 {
            Ok(bytes)
        } else {
            Err(StateError::Write)
        }
    }

    /// Puts a state back. The logits are not part of it: the last token must be read again.
    ///
    /// The bytes are trusted to be what [`Self::save_state`] returned, whole: whoever keeps them on disk checks
    /// them with a checksum first, since llama.cpp takes a flipped payload as it comes.
    ///
    /// # Errors
    /// Bytes that are cut off or of another model's shape; the sequence is empty then.
    pub fn restore_state(
        &mut self,
        seq: SeqId,
        part: StatePart,
        bytes: &[u8],
    ) -> Result<(), StateError> {
        let seq = self.owned(seq)?;
        self.forget_logits();
        // SAFETY: the slice has the length given; llama.cpp checks every read against it.
        let read = unsafe {
            sys::llama_state_seq_set_data_ext(
                self.as_mut_ptr(),
                bytes.as_ptr(),
                bytes.len(),
                seq.0,
                part.flags(),
            )
        };
        if read == bytes.len()
            && read > 0
            && (part == StatePart::Whole || self.drop_beyond_state(seq))
        {
            return Ok(());
        }
        self.forget(seq);
        Err(StateError::Mismatch)
    }

    fn owned(&self, seq: SeqId) -> Result<SeqId, StateError> {
        u32::try_from(seq.0)
            .ok()
            .and_then(|number| self.sequence(number))
            .ok_or(StateError::Sequence)
    }
}
