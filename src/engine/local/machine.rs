//! How many cores this machine has for a model.

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
