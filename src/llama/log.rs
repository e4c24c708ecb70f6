//! llama.cpp's messages, line by line, to whoever listens, and never to the terminal. The last warnings and errors
//! are kept, since a failed load says why only here. Its debug messages, a hundred for each graph it builds, are left
//! out: they would drown all others.

use std::collections::VecDeque;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

use llama_cpp_sys_2 as sys;

use crate::logging::{LogLevel, LogLine};

/// Takes the lines; called from any thread.
pub type LineSink = fn(LogLine);

/// How many warnings and errors are kept.
const KEPT_PROBLEMS: usize = 16;
/// A line longer than this is cut, so that a runaway message can't fill the memory.
const LONGEST_LINE: usize = 4096;

static SINK: OnceLock<LineSink> = OnceLock::new();
static STATE: Mutex<Assembly> = Mutex::new(Assembly {
    level: LogLevel::Info,
    text: String::new(),
    problems: VecDeque::new(),
});

struct Assembly {
    level: LogLevel,
    text: String,
    problems: VecDeque<String>,
}

/// Sends the lines to `sink` from now on; the first sink stays.
pub fn set_sink(sink: LineSink) {
    let _ = SINK.set(sink);
}

/// Forgets the problems seen so far.
pub fn clear_problems() {
    STATE
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .problems
        .clear();
}

/// The latest warnings and errors, oldest first.
#[must_use]
pub fn problems() -> Vec<String> {
    STATE
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .problems
        .iter()
        .cloned()
        .collect()
}

/// Directs llama.cpp's and ggml's messages here.
pub(super) fn install() {
    // SAFETY: `on_message` is a plain function that lives forever and needs no user data.
    unsafe { sys::llama_log_set(Some(on_message), std::ptr::null_mut()) };
}

unsafe extern "C" fn on_message(level: sys::ggml_log_level, text: *const c_char, _: *mut c_void) {
    if text.is_null() {
        return;
    }
    // SAFETY: llama.cpp passes a NUL-terminated string that lives for the call.
    let piece = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let lines = {
        let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
        state.add(level, &piece)
    };
    if let Some(sink) = SINK.get() {
        lines.into_iter().for_each(sink);
    }
}

impl Assembly {
    fn add(&mut self, level: sys::ggml_log_level, piece: &str) -> Vec<LogLine> {
        if level != sys::GGML_LOG_LEVEL_CONT {
            self.level = match level {
                sys::GGML_LOG_LEVEL_ERROR => LogLevel::Error,
                sys::GGML_LOG_LEVEL_WARN => LogLevel::Warn,
                sys::GGML_LOG_LEVEL_INFO => LogLevel::Info,
                _ => LogLevel::Debug,
            };
        }
        self.text.push_str(piece);
        let mut lines = Vec::new();
        while let Some(end) = self.text.find('\n') {
            let line: String = self.text.drain(..=end).collect();
            lines.extend(self.finish(line.trim_end()));
        }
        if self.text.len() > LONGEST_LINE {
            let line = std::mem::take(&mut self.text);
            lines.extend(self.finish(&line));
        }
        lines
    }

    fn finish(&mut self, text: &str) -> Option<LogLine> {
        if text.is_empty() || self.level == LogLevel::Debug {
            return None;
        }
        if self.level >= LogLevel::Warn {
            if self.problems.len() == KEPT_PROBLEMS {
                self.problems.pop_front();
            }
            self.problems.push_back(text.to_owned());
        }
        Some(LogLine {
            level: self.level,
            target: "llama.cpp".to_owned(),
            text: text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Assembly {
        Assembly {
            level: LogLevel::Info,
            text: String::new(),
            problems: VecDeque::new(),
        }
    }

    #[test]
    fn pieces_become_one_line_with_the_level_of_the_first() {
        let mut state = empty();
        assert!(state.add(sys::GGML_LOG_LEVEL_ERROR, "tensor ").is_empty());
        let lines = state.add(sys::GGML_LOG_LEVEL_CONT, "lost\nnext");
        assert_eq!(lines.len(), 1);
        assert_eq!(
            (lines[0].level, lines[0].text.as_str()),
            (LogLevel::Error, "tensor lost")
        );
        assert_eq!(state.problems, ["tensor lost"]);
    }

    #[test]
    fn debug_messages_are_left_out_with_their_continuations() {
        let mut state = empty();
        assert!(state.add(sys::GGML_LOG_LEVEL_DEBUG, "graph").is_empty());
        assert!(state.add(sys::GGML_LOG_LEVEL_CONT, " node\n").is_empty());
        assert_eq!(state.add(sys::GGML_LOG_LEVEL_WARN, "odd\n").len(), 1);
        assert_eq!(state.problems, ["odd"]);
    }

    #[test]
    fn a_message_without_newline_is_cut_in_the_end() {
        let mut state = empty();
        let lines = state.add(sys::GGML_LOG_LEVEL_INFO, &"x".repeat(LONGEST_LINE + 1));
        assert_eq!(lines.len(), 1);
        assert!(state.text.is_empty());
    }

    #[test]
    fn a_continuation_as_the_very_first_message_is_an_ordinary_line() {
        assert_eq!(empty().add(sys::GGML_LOG_LEVEL_CONT, "hello\n").len(), 1);
    }
}
