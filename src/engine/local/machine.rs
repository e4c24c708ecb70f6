//! What this machine has for a model: cores and memory.

use crate::engine::event::EngineError;
use crate::llama::context::ContextParams;
use crate::models::estimate::{KvLayout, WindowCache};

/// The cores this process may use. Two hardware threads of one core share its arithmetic, so only one of them counts.
pub(super) fn default_threads() -> u32 {
    let available = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let siblings = threads_a_core().max(1);
    u32::try_from((available / siblings).max(1)).unwrap_or(1)
}

#[cfg(target_os = "linux")]
fn threads_a_core() -> usize {
    let path = "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list";
    let list = std::fs::read_to_string(path).unwrap_or_default();
    list.trim()
        .split(',')
        .map(|range| match range.split_once('-') {
            Some((from, to)) => match (from.parse::<usize>(), to.parse::<usize>()) {
                (Ok(from), Ok(to)) => to.saturating_sub(from) + 1,
                _ => 1,
            },
            None => 1,
        })
        .sum()
}

#[cfg(not(target_os = "linux"))]
fn threads_a_core() -> usize {
    1
}

/// Refuses a context whose cache is larger than the memory that is free.
pub(super) fn check_memory(layout: &KvLayout, params: &ContextParams) -> Result<(), EngineError> {
    let needed = layout.capacity_bytes(
        u64::from(params.context),
        (params.type_k, params.type_v),
        WindowCache::Full,
    );
    let Some(free) = available_memory() else {
        return Ok(());
    };
    if needed <= free {
        return Ok(());
    }
    let per_token = layout.bytes_per_token(params.type_k, params.type_v).max(1);
    let fits = free.saturating_sub(layout.state_bytes()) / per_token / 256 * 256;
    Err(EngineError::new(
        format!(
            "A context of {} tokens needs {} MiB for its cache; {} MiB are free.",
            params.context,
            needed >> 20,
            free >> 20
        ),
        format!("Use --ctx {fits} or less, or a smaller --kv-type-k and --kv-type-v."),
    ))
}

/// Bytes that can be had without swapping, where the system tells.
fn available_memory() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}
