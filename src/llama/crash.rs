//! What puts the terminal back when the process is about to die.
//!
//! llama.cpp can end the process from any thread: a failed assertion, a C++ exception, a mapped file cut short.
//! Everything here that runs inside a signal handler is async-signal-safe: no allocation, no lock, no Rust I/O.
//! The same [`release`] serves the orderly way out and the panic hook, so that the terminal is put back once.
#![expect(
    unsafe_code,
    reason = "signal handlers and llama.cpp's abort callback exist only as C interfaces"
)]

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{IntoRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use crate::text::sanitize::neutral;

/// The signals that mean a fault in this process, with what they mean to the user.
const FATAL: [(c_int, &str); 8] = [
    (libc::SIGSEGV, "SIGSEGV (a bad memory access)"),
    (
        libc::SIGBUS,
        "SIGBUS (mapped memory is gone; was the model file changed or cut short while in use?)",
    ),
    (
        libc::SIGILL,
        "SIGILL (an instruction this processor does not know)",
    ),
    (libc::SIGFPE, "SIGFPE (an arithmetic fault)"),
    (
        libc::SIGTRAP,
        "SIGTRAP (foreign code gave up, or a debugger left)",
    ),
    (
        libc::SIGSYS,
        "SIGSYS (a call to the system that is forbidden here)",
    ),
    (
        libc::SIGXCPU,
        "SIGXCPU (the limit on processor time, ulimit -t)",
    ),
    (
        libc::SIGABRT,
        "SIGABRT (it gave up; the end of the log says why)",
    ),
];

/// Nobody has to put the terminal back.
const FREE: u8 = 0;
/// The terminal is raw and shows the alternate screen.
const HELD: u8 = 1;
/// Somebody is putting it back.
const RELEASING: u8 = 2;

/// How long a frame being written is waited for, in steps of a millisecond.
const WRITE_PATIENCE: u32 = 200;
/// How long another thread's release is waited for, in steps of a millisecond.
const RELEASE_PATIENCE: u32 = 1000;
/// Longest abort message kept, in bytes; llama.cpp cuts its own at 2,048.
const MESSAGE_CAPACITY: usize = 2048;

/// Longest line about the chat, in bytes.
const REOPEN_CAPACITY: usize = 512;

static STATE: AtomicU8 = AtomicU8::new(FREE);
static WRITING: AtomicBool = AtomicBool::new(false);
static TTY: AtomicI32 = AtomicI32::new(-1);
static STDOUT: AtomicI32 = AtomicI32::new(-1);
static STDERR: AtomicI32 = AtomicI32::new(-1);
static MESSAGE_LEN: AtomicUsize = AtomicUsize::new(0);
static INSTALL: Once = Once::new();
/// Which of [`REOPEN`] is in force, and its length: the number of the slot above the lowest 16 bits.
static REOPEN_AT: AtomicUsize = AtomicUsize::new(0);

/// A static that is written while no reader can be running; each use says why.
struct Cell<T>(UnsafeCell<T>);

// SAFETY: every access states the order of writes and reads that makes it free of races.
unsafe impl<T> Sync for Cell<T> {}

impl<T> Cell<T> {
    const fn new(value: T) -> Self {
        Cell(UnsafeCell::new(value))
    }
}

static TERMIOS: Cell<MaybeUninit<libc::termios>> = Cell::new(MaybeUninit::uninit());
static RESTORE: Cell<&'static [u8]> = Cell::new(b"");
static EPILOGUE: Cell<&'static [u8]> = Cell::new(b"");
static PREVIOUS: Cell<MaybeUninit<[libc::sigaction; FATAL.len()]>> =
    Cell::new(MaybeUninit::uninit());
static REOPEN: [Cell<[u8; REOPEN_CAPACITY]>; 2] = [
    Cell::new([0; REOPEN_CAPACITY]),
    Cell::new([0; REOPEN_CAPACITY]),
];
static MESSAGE: Cell<[u8; MESSAGE_CAPACITY]> = Cell::new([0; MESSAGE_CAPACITY]);

/// The streams as they were before the program took them over.
#[derive(Debug)]
pub struct Streams {
    /// The terminal that is drawn on.
    pub tty: OwnedFd,
    /// Standard output.
    pub stdout: OwnedFd,
    /// Standard error; messages go there.
    pub stderr: OwnedFd,
}

/// Keeps llama.cpp from starting a debugger to print a backtrace when it dies. Call it first in `main`: it changes
/// the environment, which is sound only without other threads; where there are some, it does nothing.
pub fn silence_backtraces() {
    let alone = std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1);
    if alone {
        // SAFETY: this is the only thread, so nobody can be reading the environment.
        unsafe { std::env::set_var("GGML_NO_BACKTRACE", "1") };
    }
}

/// Installs the handlers; once in a process, later calls change nothing. The streams stay open until the process
/// ends.
///
/// # Errors
/// The system refuses a handler.
pub fn install(streams: Streams, log: Option<&Path>) -> io::Result<()> {
    let mut outcome = Ok(());
    INSTALL.call_once(|| {
        let epilogue = log.map_or_else(String::new, |path| {
            neutral(&format!("The log is {}\n", path.display())).into_owned()
        });
        // SAFETY: no handler is installed yet and `INSTALL` lets one thread in.
        unsafe { *EPILOGUE.0.get() = Box::leak(epilogue.into_bytes().into_boxed_slice()) };
        TTY.store(streams.tty.into_raw_fd(), Ordering::SeqCst);
        STDOUT.store(streams.stdout.into_raw_fd(), Ordering::SeqCst);
        STDERR.store(streams.stderr.into_raw_fd(), Ordering::SeqCst);
        outcome = install_handlers();
        // SAFETY: the callback is a plain function that neither panics nor unwinds.
        unsafe { llama_cpp_sys_2::ggml_set_abort_callback(Some(on_ggml_abort)) };
    });
    outcome
}

/// Sets what the last lines say about the chat, such as how to open it again; an empty text clears it. What is longer
/// than 512 bytes is left out.
pub fn set_last_words(text: &str) {
    static WRITER: Mutex<()> = Mutex::new(());
    let _one_writer = WRITER.lock().unwrap_or_else(PoisonError::into_inner);
    let bytes = text.as_bytes();
    let len = if bytes.len() <= REOPEN_CAPACITY {
        bytes.len()
    } else {
        0
    };
    let slot = 1 - ((REOPEN_AT.load(Ordering::SeqCst) >> 16) & 1);
    // SAFETY: readers use the other slot, and the lock lets one writer in. A reader that took this slot's number two
    // calls ago may still print it: a mixture of two lines, all of it initialised bytes.
    unsafe {
        ptr::copy_nonoverlapping(bytes.as_ptr(), REOPEN[slot].0.get().cast::<u8>(), len);
    }
    REOPEN_AT.store((slot << 16) | len, Ordering::SeqCst);
}

/// Writes what [`set_last_words`] was given.
fn write_last_words(fd: RawFd) {
    let at = REOPEN_AT.load(Ordering::SeqCst);
    let (slot, len) = ((at >> 16) & 1, at & 0xFFFF);
    if len > 0 {
        // SAFETY: `len` bytes of this slot were written before its number was stored.
        write_raw(fd, unsafe {
            std::slice::from_raw_parts(REOPEN[slot].0.get().cast::<u8>(), len)
        });
        write_raw(fd, b"\n");
    }
}

/// Says what [`set_last_words`] was given, as [`say`] does.
pub fn say_last_words() {
    write_last_words(stderr());
}

extern "C" fn on_continue(_signal: c_int) {
    crate::clock::continued();
}

fn install_handlers() -> io::Result<()> {
    // SAFETY: as below; the handler reads a clock and stores numbers.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_continue as *const () as usize;
        action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        if libc::sigaction(libc::SIGCONT, &raw const action, ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    for (index, (signal, _)) in FATAL.into_iter().enumerate() {
        // SAFETY: `sigaction` is plain data for which zero is a value; the pointers are to live locals and to a
        // slot of `PREVIOUS` that only the handler being installed here reads.
        let refused = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_fatal_signal as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigfillset(&raw mut action.sa_mask);
            let previous = PREVIOUS.0.get().cast::<libc::sigaction>().add(index);
            libc::sigaction(signal, ptr::null(), previous) != 0
                || libc::sigaction(signal, &raw const action, ptr::null_mut()) != 0
        };
        if refused {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Saves the terminal's settings and marks the terminal as held: from here on [`release`] writes `restore` and
/// sets these settings again. Call it before the first change to the terminal.
///
/// # Errors
/// The terminal's settings can't be read.
pub fn hold(restore: &'static [u8]) -> io::Result<()> {
    // SAFETY: the state is `FREE`, so no handler reads these cells; the store below publishes them.
    unsafe {
        if libc::tcgetattr(TTY.load(Ordering::SeqCst), TERMIOS.0.get().cast()) != 0 {
            return Err(io::Error::last_os_error());
        }
        *RESTORE.0.get() = restore;
    }
    STATE.store(HELD, Ordering::SeqCst);
    Ok(())
}

/// Puts the terminal back if it is held. Safe in a signal handler and from any thread; whoever comes second waits
/// until the first one is done. Says whether this call did it.
pub fn release() -> bool {
    match STATE.compare_exchange(HELD, RELEASING, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => {}
        Err(RELEASING) => {
            wait_until(RELEASE_PATIENCE, || {
                STATE.load(Ordering::SeqCst) != RELEASING
            });
            return false;
        }
        Err(_) => return false,
    }
    wait_until(WRITE_PATIENCE, || !WRITING.load(Ordering::SeqCst));
    let tty = TTY.load(Ordering::SeqCst);
    // SAFETY: `hold` filled both cells before it published `HELD`, and this thread alone left that state.
    // Blocking SIGTTOU keeps a process in the background from being stopped by its own clean-up.
    unsafe {
        let mut ttou: libc::sigset_t = std::mem::zeroed();
        let mut mask: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut ttou);
        libc::sigaddset(&raw mut ttou, libc::SIGTTOU);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const ttou, &raw mut mask);
        libc::tcsetattr(tty, libc::TCSANOW, TERMIOS.0.get().cast());
        write_raw(tty, *RESTORE.0.get());
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, ptr::null_mut());
    }
    STATE.store(FREE, Ordering::SeqCst);
    true
}

/// Leave to write to the terminal; while it lives, [`release`] waits for it.
#[derive(Debug)]
pub struct WriteLeave(());

/// Asks for leave to write to the terminal. `None`: the terminal is no longer held and nothing may be drawn.
/// One thread draws.
#[must_use]
pub fn may_write() -> Option<WriteLeave> {
    WRITING.store(true, Ordering::SeqCst);
    let leave = WriteLeave(());
    (STATE.load(Ordering::SeqCst) == HELD).then_some(leave)
}

impl Drop for WriteLeave {
    fn drop(&mut self) {
        WRITING.store(false, Ordering::SeqCst);
    }
}

/// Writes a message to standard error as it was before the program took it over.
pub fn say(message: &str) {
    write_raw(stderr(), message.as_bytes());
}

/// Standard error as it was before the program took it over.
fn stderr() -> RawFd {
    match STDERR.load(Ordering::SeqCst) {
        taken_over @ 0.. => taken_over,
        _ => libc::STDERR_FILENO,
    }
}

/// Ends the process now, running no destructor: for when a thread hangs in foreign code.
pub fn exit_now(code: u8) -> ! {
    // SAFETY: `_exit` is always safe to call.
    unsafe { libc::_exit(c_int::from(code)) }
}

/// Stops this process and those started with it (`make`, a wrapper script), as a shell's Ctrl-Z does, and returns when
/// they are continued. Without a shell that could continue them nothing happens.
///
/// # Errors
/// The system refuses it.
pub fn stop_job() -> io::Result<()> {
    // SAFETY: `sigaction` is plain data for which zero is a value; the pointers are to live locals. For the moment of
    // the stop the signal has its default action, which the system leaves out in a group that nobody could continue.
    unsafe {
        let mut handler: libc::sigaction = std::mem::zeroed();
        let mut default: libc::sigaction = std::mem::zeroed();
        default.sa_sigaction = libc::SIG_DFL;
        if libc::sigaction(libc::SIGTSTP, &raw const default, &raw mut handler) != 0 {
            return Err(io::Error::last_os_error());
        }
        let stopped = libc::kill(0, libc::SIGTSTP);
        let refused = io::Error::last_os_error();
        libc::sigaction(libc::SIGTSTP, &raw const handler, ptr::null_mut());
        if stopped == 0 { Ok(()) } else { Err(refused) }
    }
}

/// Whether the process was started with `signal` ignored, as `nohup` does; it should stay ignored then.
#[must_use]
pub fn is_ignored(signal: c_int) -> bool {
    // SAFETY: `sigaction` is plain data for which zero is a value; a null action only reads.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

extern "C" fn on_ggml_abort(message: *const c_char) {
    if message.is_null() {
        return;
    }
    // SAFETY: llama.cpp hands over a NUL-terminated buffer of its own that lives during the call.
    let bytes = unsafe { CStr::from_ptr(message) }.to_bytes();
    let mut harmless = [0; MESSAGE_CAPACITY];
    let len = bytes.len().min(MESSAGE_CAPACITY);
    for (to, byte) in harmless.iter_mut().zip(bytes) {
        *to = printable(*byte);
    }
    // SAFETY: `len` is within both buffers. Two threads may abort at once; then the text is a mixture of two
    // messages, all of it initialised bytes.
    unsafe { ptr::copy_nonoverlapping(harmless.as_ptr(), MESSAGE.0.get().cast::<u8>(), len) };
    MESSAGE_LEN.store(len, Ordering::SeqCst);
    write_raw(libc::STDERR_FILENO, &harmless[..len]);
    write_raw(libc::STDERR_FILENO, b"\n");
}

/// The byte, or a question mark where it could steer a terminal: the message quotes names from the model's file, and
/// nothing that allocates may run here.
fn printable(byte: u8) -> u8 {
    match byte {
        b' '..=b'~' | b'\n' => byte,
        _ => b'?',
    }
}

extern "C" fn on_fatal_signal(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    if release() {
        report(signal, libc::STDERR_FILENO);
        // SAFETY: both calls are async-signal-safe and take any descriptor.
        unsafe {
            libc::dup2(STDOUT.load(Ordering::SeqCst), libc::STDOUT_FILENO);
            libc::dup2(STDERR.load(Ordering::SeqCst), libc::STDERR_FILENO);
        }
        report(signal, libc::STDERR_FILENO);
    }
    // SAFETY: the kernel passes a valid `info`; `PREVIOUS` was filled before this handler was installed. A fault
    // happens again on return and then meets the previous handler (Rust's own, which tells of a stack overflow);
    // a signal that was sent does not, so it is raised again under its default action.
    unsafe {
        let sent = (*info).si_code <= 0;
        if sent {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        } else if let Some(index) = FATAL.iter().position(|(fatal, _)| *fatal == signal) {
            libc::sigaction(
                signal,
                PREVIOUS.0.get().cast::<libc::sigaction>().add(index),
                ptr::null_mut(),
            );
        }
    }
}

fn report(signal: c_int, fd: RawFd) {
    write_raw(fd, b"platen died of ");
    for (fatal, meaning) in FATAL {
        if fatal == signal {
            write_raw(fd, meaning.as_bytes());
        }
    }
    write_raw(fd, b"\n");
    let len = MESSAGE_LEN.load(Ordering::SeqCst);
    if len > 0 && signal == libc::SIGABRT {
        write_raw(fd, b"llama.cpp: ");
        // SAFETY: `len` initialised bytes were stored before `MESSAGE_LEN`.
        write_raw(fd, unsafe {
            std::slice::from_raw_parts(MESSAGE.0.get().cast::<u8>(), len)
        });
        write_raw(fd, b"\n");
    }
    // SAFETY: written once, before any handler was installed.
    write_raw(fd, unsafe { *EPILOGUE.0.get() });
    write_last_words(fd);
}

/// Writes all of `bytes`, giving up on an error or where the reader takes nothing for a fifth of a second.
fn write_raw(fd: RawFd, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the pointers are to live locals of the lengths given.
        let written = unsafe {
            let mut poll = libc::pollfd {
                fd,
                events: libc::POLLOUT,
                revents: 0,
            };
            if libc::poll(&raw mut poll, 1, 200) == 0 {
                return;
            }
            libc::write(fd, bytes.as_ptr().cast(), bytes.len())
        };
        match usize::try_from(written) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(_) if io::Error::last_os_error().raw_os_error() == Some(libc::EINTR) => {}
            Err(_) => return,
        }
    }
}

fn wait_until(mut milliseconds: u32, done: impl Fn() -> bool) {
    let step = libc::timespec {
        tv_sec: 0,
        tv_nsec: 1_000_000,
    };
    while milliseconds > 0 && !done() {
        // SAFETY: `step` lives during the call; a null remainder is allowed.
        unsafe { libc::nanosleep(&raw const step, ptr::null_mut()) };
        milliseconds -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abort_message_keeps_no_byte_that_steers_a_terminal() {
        let text: Vec<u8> = "a\u{1b}[2J\u{9b}b\u{202e}\n"
            .bytes()
            .map(printable)
            .collect();
        assert_eq!(text, b"a?[2J??b???\n");
    }
}
