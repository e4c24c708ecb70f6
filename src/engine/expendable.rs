//! What a process does to itself that exists to be lost: it ends with the one that started it, leaves no core file, and
//! is the first to go where memory runs out.

/// Makes this process expendable; it may allocate `most` bytes, where that is given. Each of these is a courtesy: where
/// the system refuses one, the process goes on without.
#[cfg(target_os = "linux")]
pub(super) fn be_expendable(most: Option<u64>) {
    use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    let at_most = |bytes: u64| Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    let _ = setrlimit(Resource::Core, at_most(0));
    if let Some(most) = most {
        let _ = setrlimit(Resource::Data, at_most(most));
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn be_expendable(_: Option<u64>) {}
