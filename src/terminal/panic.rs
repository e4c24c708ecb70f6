//! What a panic shows: the terminal put back, what went wrong and where, and the way to the log, which has the
//! backtrace.

use std::backtrace::Backtrace;
use std::panic::PanicHookInfo;
use std::path::Path;

use crate::llama::crash;
use crate::logging::{LogLevel, LogLine, LogSink};
use crate::text::sanitize::neutral;

/// Makes every panic, in any thread, put the terminal back and say what happened; then calls `ending`, which has to
/// make the program end.
pub fn report_panics(log: LogSink, ending: impl Fn() + Send + Sync + 'static) {
    std::panic::set_hook(Box::new(move |info| {
        crash::release();
        crash::say(&neutral(&message(info, log.path())));
        let place = info
            .location()
            .map_or_else(String::new, ToString::to_string);
        let text = format!(
            "panicked at {place}: {}\n{}",
            without_quotes(info.payload_as_str().unwrap_or_default()),
            Backtrace::force_capture()
        );
        for text in text.lines() {
            log.push(LogLine {
                level: LogLevel::Error,
                target: "panic".to_owned(),
                text: text.to_owned(),
            });
        }
        ending();
    }));
}

/// What a panic says without what it quotes: the standard library quotes the text that it could not cut, and the log
/// holds nothing that was said.
fn without_quotes(message: &str) -> String {
    match (message.find('`'), message.rfind('`')) {
        (Some(from), Some(to)) if from < to => {
            format!("{}`…`{}", &message[..from], &message[to + 1..])
        }
        (None, _) | (_, None) | (Some(_), Some(_)) => message.to_owned(),
    }
}

fn message(info: &PanicHookInfo, log: Option<&Path>) -> String {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("without a name");
    let place = info
        .location()
        .map_or_else(String::new, |location| format!(" at {location}"));
    let cause = info.payload_as_str().unwrap_or("(no message)");
    let log = log.map_or_else(String::new, |path| {
        format!("The log is {}\n", path.display())
    });
    format!("platen failed in thread {name}{place}: {cause}\nThis is a bug in platen.\n{log}")
}
