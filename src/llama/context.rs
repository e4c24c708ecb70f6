//! A context: the KV cache (or the recurrent state) and what computes on it. Positions, sequence ids, token ids and
//! batch sizes are checked here, since llama.cpp aborts on most of them.

mod batch;
mod params;

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use llama_cpp_sys_2 as sys;

use super::interrupt::Interrupt;
use super::log;
use super::model::{Model, last_problem};
use crate::engine::options::{FlashAttention, SwaCache};
use crate::engine::token::TokenId;
use batch::Batch;
pub use params::{ContextError, ContextParams, LARGEST_CONTEXT, MOST_THREADS};
use params::{check, ggml_type};

/// llama.cpp has no lock of its own around making contexts of one model.
static CREATION: Mutex<()> = Mutex::new(());

/// Why a decode failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// No free cells; the cache is as before.
    #[error("the context is full")]
    Full,
    /// The interrupt fired; whole parts of the batch may have been read.
    #[error("the decode was cancelled")]
    Cancelled,
    /// The batch breaks a rule: it is empty, too large, has an unknown token or a wrong position. Nothing changed.
    #[error("the batch is invalid: {0}")]
    Invalid(&'static str),
    /// llama.cpp failed; part of the batch may have been read and no state is trusted.
    #[error("llama.cpp's decode failed with code {0}")]
    Failed(i32),
}

/// Which logits a decode computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logits {
    /// None: there is more of the prompt to come.
    None,
    /// Those after the last token.
    Last,
}

/// Whether the cache could be cut back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Truncation {
    /// It now ends where asked.
    Done,
    /// This kind of memory can't forget its end; it is unchanged.
    Impossible,
}

/// A sequence within a context: checked against the context it was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SeqId(pub(super) i32);

/// A context of one model.
#[derive(Debug)]
pub struct Context {
    raw: NonNull<sys::llama_context>,
    batch: Batch,
    params: ContextParams,
    has_logits: bool,
    interrupt: Arc<Interrupt>,
    /// Dropped after `raw` is freed.
    model: Arc<Model>,
}

// SAFETY: llama.cpp ties no context to a thread; `&mut self` keeps its use to one thread at a time.
unsafe impl Send for Context {}

unsafe extern "C" fn on_abort_poll(data: *mut c_void) -> bool {
    // SAFETY: `data` is the `Interrupt` that the context holds an `Arc` of, so it outlives every decode.
    unsafe { &*data.cast::<Interrupt>() }.is_cancelled()
}

impl Context {
    /// Makes a context; `interrupt` cancels its decodes, on a CPU in the middle of one.
    ///
    /// # Errors
    /// See [`ContextError`].
    pub fn new(
        model: Arc<Model>,
        params: ContextParams,
        interrupt: Arc<Interrupt>,
    ) -> Result<Context, ContextError> {
        check(&params)?;
        // SAFETY: returns a plain struct of defaults.
        let mut raw_params = unsafe { sys::llama_context_default_params() };
        raw_params.n_ctx = params.context;
        raw_params.n_batch = params.batch;
        raw_params.n_ubatch = params.ubatch;
        raw_params.n_seq_max = params.sequences;
        raw_params.n_threads = params.threads_decode.cast_signed();
        raw_params.n_threads_batch = params.threads_prefill.cast_signed();
        raw_params.type_k = ggml_type(params.type_k);
        raw_params.type_v = ggml_type(params.type_v);
        raw_params.flash_attn_type = match params.flash_attention {
            FlashAttention::Auto => sys::LLAMA_FLASH_ATTN_TYPE_AUTO,
            FlashAttention::On => sys::LLAMA_FLASH_ATTN_TYPE_ENABLED,
            FlashAttention::Off => sys::LLAMA_FLASH_ATTN_TYPE_DISABLED,
        };
        raw_params.swa_full = params.swa_cache == SwaCache::Full;
        raw_params.kv_unified = true;
        raw_params.abort_callback = Some(on_abort_poll);
        raw_params.abort_callback_data = Arc::as_ptr(&interrupt).cast_mut().cast();
        log::clear_problems();
        let raw = {
            let _one_at_a_time = CREATION.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: the model is alive and held by the context; the callback's data too.
            unsafe { sys::llama_init_from_model(model.as_mut_ptr(), raw_params) }
        };
        let raw = NonNull::new(raw).ok_or_else(|| ContextError::Refused {
            context: params.context,
            reason: last_problem(),
        })?;
        // SAFETY: the context is alive.
        let (context, batch, ubatch) = unsafe {
            (
                sys::llama_n_ctx_seq(raw.as_ptr()),
                sys::llama_n_batch(raw.as_ptr()),
                sys::llama_n_ubatch(raw.as_ptr()),
            )
        };
        Ok(Context {
            raw,
            batch: Batch::with_capacity(batch as usize),
            params: ContextParams {
                context,
                batch,
                ubatch,
                ..params
            },
            has_logits: false,
            interrupt,
            model,
        })
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// What it was made of, as llama.cpp rounded it.
    #[must_use]
    pub fn params(&self) -> &ContextParams {
        &self.params
    }

    /// The first sequence.
    #[must_use]
    pub fn first_sequence(&self) -> SeqId {
        SeqId(0)
    }

    /// The sequence of that number, where the context has it.
    #[must_use]
    pub fn sequence(&self, number: u32) -> Option<SeqId> {
        (number < self.params.sequences).then(|| SeqId(number.cast_signed()))
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut sys::llama_context {
        self.raw.as_ptr()
    }

    pub(super) fn forget_logits(&mut self) {
        self.has_logits = false;
    }

    fn memory(&self) -> sys::llama_memory_t {
        // SAFETY: the context is alive.
        unsafe { sys::llama_get_memory(self.raw.as_ptr()) }
    }

    fn check_sequence(&self, seq: SeqId) -> Option<SeqId> {
        u32::try_from(seq.0)
            .ok()
            .and_then(|number| self.sequence(number))
    }

    /// How many tokens the sequence holds: its last position plus one; 0 for a sequence of another context.
    #[must_use]
    pub fn len(&self, seq: SeqId) -> u32 {
        let Some(seq) = self.check_sequence(seq) else {
            return 0;
        };
        let memory = self.memory();
        if memory.is_null() {
            return 0;
        }
        // SAFETY: the memory lives as long as the context, and the sequence is in range.
        let last = unsafe { sys::llama_memory_seq_pos_max(memory, seq.0) };
        u32::try_from(last + 1).unwrap_or(0)
    }

    /// Reads tokens at the end of a sequence, where `start` must be its length.
    ///
    /// # Errors
    /// See [`DecodeError`]. After [`DecodeError::Cancelled`] and [`DecodeError::Failed`] ask [`Self::len`] what is
    /// left, and distrust it where the memory can't be cut back.
    pub fn decode(
        &mut self,
        seq: SeqId,
        tokens: &[TokenId],
        start: u32,
        logits: Logits,
    ) -> Result<(), DecodeError> {
        let seq = self
            .check_sequence(seq)
            .ok_or(DecodeError::Invalid("no such sequence"))?;
        if tokens.is_empty() {
            return Err(DecodeError::Invalid("no tokens"));
        }
        if tokens.len() > self.params.batch as usize {
            return Err(DecodeError::Invalid("more tokens than a batch takes"));
        }
        if !tokens.iter().all(|token| self.model.knows(*token)) {
            return Err(DecodeError::Invalid("a token outside the vocabulary"));
        }
        if start != self.len(seq) {
            return Err(DecodeError::Invalid("not at the end of the sequence"));
        }
        if start as usize + tokens.len() > self.params.context as usize {
            return Err(DecodeError::Full);
        }
        self.has_logits = false;
        self.batch.fill(tokens, start.cast_signed(), seq, logits);
        // SAFETY: every array of the batch has `n_tokens` entries, at most the context's batch size; ids, sequence
        // and positions are checked above.
        let code = unsafe { sys::llama_decode(self.raw.as_ptr(), self.batch.as_raw()) };
        match code {
            0 => {
                self.has_logits = logits == Logits::Last;
                Ok(())
            }
            1 => Err(DecodeError::Full),
            2 => Err(DecodeError::Cancelled),
            -1 => Err(DecodeError::Invalid("llama.cpp refused it")),
            code => Err(DecodeError::Failed(code)),
        }
    }

    /// The logits after the last decode's last token, one for each token of the vocabulary; `None` where that
    /// decode failed or computed none.
    #[must_use]
    pub fn logits(&self) -> Option<&[f32]> {
        if !self.has_logits {
            return None;
        }
        // SAFETY: the context is alive; −1 asks for the last output.
        let raw = unsafe { sys::llama_get_logits_ith(self.raw.as_ptr(), -1) };
        let len = self.model.vocab_size() as usize;
        // SAFETY: llama.cpp keeps one row of `n_vocab` values there until the next decode, which needs `&mut self`.
        (!raw.is_null()).then(|| unsafe { std::slice::from_raw_parts(raw, len) })
    }

    /// Cuts a sequence back to `len` tokens. Cutting nothing always works.
    pub fn truncate(&mut self, seq: SeqId, len: u32) -> Truncation {
        let Some(seq) = self.check_sequence(seq) else {
            return Truncation::Impossible;
        };
        if len >= self.len(seq) {
            return Truncation::Done;
        }
        if len == 0 {
            return self.clear_sequence(seq);
        }
        let memory = self.memory();
        // SAFETY: the memory lives as long as the context, and the sequence is in range.
        let first = unsafe { sys::llama_memory_seq_pos_min(memory, seq.0) };
        let needed = len.saturating_sub(self.model.sliding_window().saturating_sub(1));
        if self.model.sliding_window() > 0 && u32::try_from(first).is_ok_and(|first| first > needed)
        {
            return Truncation::Impossible;
        }
        self.has_logits = false;
        // SAFETY: as above; −1 means to the end.
        let removed = unsafe { sys::llama_memory_seq_rm(memory, seq.0, len.cast_signed(), -1) };
        if removed && self.len(seq) == len {
            Truncation::Done
        } else {
            Truncation::Impossible
        }
    }

    /// After a partial state came back: drops what the other part of the memory holds beyond it.
    pub(super) fn drop_beyond_state(&mut self, seq: SeqId) -> bool {
        let len = self.len(seq).cast_signed();
        // SAFETY: the memory lives as long as the context, and the sequence is in range.
        unsafe { sys::llama_memory_seq_rm(self.memory(), seq.0, len, -1) }
    }

    /// Lets the empty sequence `to` begin with the first `len` tokens of `from`, in the same cells. Tells whether it does
    /// now; a memory with one state for everything shares nothing.
    pub fn share(&mut self, from: SeqId, to: SeqId, len: u32) -> bool {
        let (Some(from), Some(to)) = (self.check_sequence(from), self.check_sequence(to)) else {
            return false;
        };
        let has_state = self.model.is_recurrent() || self.model.is_hybrid();
        if has_state || from == to || len > self.len(from) || self.len(to) > 0 {
            return false;
        }
        // SAFETY: the memory lives as long as the context, both sequences are in range, and the cache is one stream
        // for all of them, where any part may be copied.
        unsafe {
            sys::llama_memory_seq_cp(self.memory(), from.0, to.0, 0, len.cast_signed());
        }
        self.len(to) == len
    }

    /// Empties a sequence; where the memory can't, empties everything.
    pub fn forget(&mut self, seq: SeqId) {
        let Some(seq) = self.check_sequence(seq) else {
            return;
        };
        if self.clear_sequence(seq) == Truncation::Impossible {
            self.clear();
        }
    }

    fn clear_sequence(&mut self, seq: SeqId) -> Truncation {
        self.has_logits = false;
        // SAFETY: the memory lives as long as the context, the sequence is in range, the range is all of it.
        let removed = unsafe { sys::llama_memory_seq_rm(self.memory(), seq.0, -1, -1) };
        if removed && self.len(seq) == 0 {
            Truncation::Done
        } else {
            Truncation::Impossible
        }
    }

    /// Empties every sequence. The old contents are not overwritten, only forgotten.
    pub fn clear(&mut self) {
        self.has_logits = false;
        let memory = self.memory();
        if !memory.is_null() {
            // SAFETY: the memory lives as long as the context.
            unsafe { sys::llama_memory_clear(memory, true) };
        }
    }

    /// Changes the threads from the next decode on. At least one each.
    pub fn set_threads(&mut self, decode: u32, prefill: u32) {
        let (decode, prefill) = (
            decode.clamp(1, MOST_THREADS),
            prefill.clamp(1, MOST_THREADS),
        );
        self.params.threads_decode = decode;
        self.params.threads_prefill = prefill;
        // SAFETY: the context is alive; both counts are in range.
        unsafe {
            sys::llama_set_n_threads(
                self.raw.as_ptr(),
                decode.cast_signed(),
                prefill.cast_signed(),
            );
        }
    }

    /// The interrupt that cancels its decodes.
    #[must_use]
    pub fn interrupt(&self) -> &Arc<Interrupt> {
        &self.interrupt
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: nothing uses the context any more; the model is dropped after this.
        unsafe { sys::llama_free(self.raw.as_ptr()) };
    }
}
