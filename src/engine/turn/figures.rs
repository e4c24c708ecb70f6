//! The numbers of a finished turn, gathered from the timer, the ledger and the model.

use super::Turn;
use crate::engine::event::StopReason;
use crate::engine::stats::{CacheStats, SamplingStats, Threads, TurnStats};
use crate::engine::timer::millis;
use crate::llama::sampler::Sampler;

impl Turn<'_> {
    /// The turn's numbers at its end.
    pub(super) fn stats(&self, stop: StopReason, sampler: &Sampler) -> TurnStats {
        let facts = self.session.model.facts();
        let cache = self.session.snapshot();
        let (tokens, seconds) = self.session.prefill_so_far;
        TurnStats {
            model: facts.name.clone(),
            prompt_tokens: self.prefill.prompt_tokens,
            reused_tokens: self.prefill.reused_tokens,
            read_tokens: self.timer.read_tokens(),
            read_ahead_tokens: self.prefill.read_ahead_tokens,
            reread_reason: self
                .prefill
                .reread
                .as_ref()
                .map(|reread| reread.reason.clone()),
            reread_tokens: self
                .prefill
                .reread
                .as_ref()
                .map_or(0, |reread| reread.tokens),
            generated_tokens: self.timer.generated(),
            stop,
            load_ms: self.session.load_ms,
            ttft_ms: self.timer.ttft().map(millis),
            queue_ms: millis(self.timer.queue()),
            template_ms: millis(self.timer.template()),
            prefill_ms: millis(self.timer.prefill()),
            first_sample_ms: self.timer.first_sample().map(millis),
            prefill_tok_s: self.timer.prefill_rate(),
            decode_tok_s: self.timer.decode_rate(),
            gap_ms: self.timer.gaps(),
            saved_ms: (tokens > 0)
                .then(|| f64::from(self.prefill.reused_tokens) * seconds / tokens as f64 * 1_000.0),
            cache: CacheStats {
                used: cache.used,
                size: cache.size,
                bytes: cache.bytes,
                capacity_bytes: cache.capacity_bytes,
                type_k: facts.type_k,
                type_v: facts.type_v,
            },
            threads: Threads {
                prefill: facts.threads_prefill,
                decode: facts.threads_decode,
            },
            sampling: SamplingStats {
                temperature: sampler.settings().temperature,
                seed: sampler.seed(),
            },
        }
    }
}
