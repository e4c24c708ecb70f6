//! llama.cpp's global state, set up with the first user and taken down with the last.

use std::sync::{Mutex, PoisonError};

use llama_cpp_sys_2 as sys;

use super::log;

static USERS: Mutex<usize> = Mutex::new(0);

/// Proof that llama.cpp is set up. Models keep one, so it always outlives them.
#[derive(Debug)]
pub struct Backend(());

impl Backend {
    /// Sets llama.cpp up where nobody has yet, with its messages going to [`log`].
    #[must_use]
    pub fn acquire() -> Backend {
        let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
        if *users == 0 {
            log::install();
            // SAFETY: the lock makes this the only caller, and no user is left from before.
            unsafe { sys::llama_backend_init() };
        }
        *users += 1;
        Backend(())
    }
}

/// Whether this build of llama.cpp can compute elsewhere than on the CPU.
#[must_use]
pub fn has_gpu() -> bool {
    // SAFETY: asks for a constant of the build and of the devices found.
    unsafe { sys::llama_supports_gpu_offload() }
}

impl Drop for Backend {
    fn drop(&mut self) {
        let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
        *users -= 1;
        if *users == 0 {
            // SAFETY: the lock makes this the only caller, and the last user is gone.
            unsafe { sys::llama_backend_free() };
        }
    }
}
