//! How a command ends that did not succeed: what is written to standard error, and the exit code. 1: the work
//! failed; 2: wrong use; 130: it was stopped. A reader that stops reading is no failure.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use crate::cli::prompt_source::PromptError;
use crate::config::problem::ConfigError;
use crate::models::download::PullError;
use crate::text::sanitize::neutral;
use crate::text::secrets::without_secrets;

const FAILED: u8 = 1;
const WRONG_USE: u8 = 2;
/// As a shell tells the end by Ctrl-C.
const STOPPED: u8 = 130;

/// The command line asks for something that can't be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WrongUse(pub String);

/// Writes the error to standard error and gives the exit code.
#[must_use]
pub fn report(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    write_error(&told(error));
    ExitCode::from(exit_code(error))
}

/// Writes what clap has to say: help and version to standard output, the rest to standard error.
#[must_use]
pub fn report_clap(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        return match error.print() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => report(&error.into()),
        };
    }
    let text = error.render().to_string();
    write_error(text.strip_prefix("error: ").unwrap_or(&text).trim_end());
    ExitCode::from(WRONG_USE)
}

/// The error and its causes in one line. A cause that was said already, as part of what it caused, is left out.
#[must_use]
pub fn told(error: &anyhow::Error) -> String {
    let mut told = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !told.contains(&cause) {
            told = format!("{told}: {cause}");
        }
    }
    told
}

/// The exit code of an error: 2 for wrong use, 130 for work that was stopped, else 1.
#[must_use]
pub fn exit_code(error: &anyhow::Error) -> u8 {
    let wrong_use = error.is::<WrongUse>()
        || error
            .downcast_ref::<ConfigError>()
            .is_some_and(ConfigError::is_about_use)
        || matches!(
            error.downcast_ref::<PromptError>(),
            Some(PromptError::Empty)
        );
    let stopped = matches!(error.downcast_ref(), Some(PullError::Cancelled));
    if wrong_use {
        WRONG_USE
    } else if stopped {
        STOPPED
    } else {
        FAILED
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    })
}

fn write_error(message: &str) {
    let line = format!("platen: error: {message}");
    let line = without_secrets(&line);
    let line = neutral(&line);
    // Where standard error is gone as well, the exit code is all that is left to say.
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

    use super::*;

    #[test]
    fn an_error_carries_no_control_characters_to_the_terminal() {
        assert_eq!(neutral("a\x1b[2J\u{9b}b\u{202e}\n\tc"), "a␛[2J␦b␦\n\tc");
    }

    #[test]
    fn every_cause_of_an_error_is_told_once() {
        let io = || std::io::Error::from(ErrorKind::NotFound);
        let missing = crate::models::gguf::GgufFile::open("none.gguf".as_ref()).unwrap_err();
        let missing = crate::models::discover::ResolveError::from(missing);
        let line = told(&anyhow::Error::from(missing).context("loading"));
        assert_eq!(
            line,
            "loading: none.gguf cannot be read: No such file or directory (os error 2)"
        );
        let line = told(&anyhow::Error::from(io()).context("the log"));
        assert_eq!(line, format!("the log: {}", io()));
    }

    #[test]
    fn a_broken_pipe_is_found_behind_its_context() {
        let error =
            anyhow::Error::from(std::io::Error::from(ErrorKind::BrokenPipe)).context("writing");
        assert!(is_broken_pipe(&error));
    }

    #[test]
    fn wrong_use_is_told_from_failed_work_behind_its_context() {
        assert_eq!(
            exit_code(&anyhow::Error::from(WrongUse("no".into())).context("x")),
            WRONG_USE
        );
        assert_eq!(
            exit_code(&anyhow::Error::from(PromptError::Empty)),
            WRONG_USE
        );
        assert_eq!(exit_code(&anyhow::anyhow!("the work failed")), FAILED);
    }
}
