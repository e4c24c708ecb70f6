//! The C heap, which llama.cpp and this program share.

/// Keeps all threads to two heaps. Each thread would else get one of its own, and what one of them leaves scattered in
/// it stays there. To be called before threads are started.
pub fn share() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes two numbers; a value that is refused changes nothing.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}

/// Gives memory that is free back to the system. Without it, what one long paste or one model took stays with the
/// process for good, spread over the heaps of its threads.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes no pointers and may be called from any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
