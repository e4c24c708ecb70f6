//! Where the prompt of `platen ask` comes from: the command line, standard input, or both.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::terminals::{Stream, Terminals};

/// Where the prompt comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptSource {
    /// The command line alone.
    Given(String),
    /// Standard input alone.
    Stdin,
    /// The command line, followed by a blank line and standard input, where that holds anything.
    GivenThenStdin(String),
}

/// A prompt that can't be had.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// Reading failed.
    #[error("standard input can't be read: {0}")]
    Read(#[from] std::io::Error),
    /// It is no text.
    #[error("standard input is not UTF-8 text (byte {0})")]
    NotText(usize),
    /// There is none.
    #[error("the prompt is empty; give it as platen ask \"PROMPT\" or pipe it in")]
    Empty,
}

impl PromptSource {
    /// Decides by what was typed and by what standard input is.
    ///
    /// # Errors
    /// What to do, where no prompt was given and standard input is a terminal.
    pub fn new(prompt: Option<String>, terminals: Terminals) -> Result<Self, String> {
        match (prompt, terminals.stdin) {
            (Some(dash), _) if dash == "-" => Ok(PromptSource::Stdin),
            (Some(prompt), Stream::Terminal) => Ok(PromptSource::Given(prompt)),
            (Some(prompt), Stream::Other) => Ok(PromptSource::GivenThenStdin(prompt)),
            (None, Stream::Other) => Ok(PromptSource::Stdin),
            (None, Stream::Terminal) => Err(
                "there is no PROMPT; give it as platen ask \"PROMPT\", pipe it \
                in, or use - to type it (end with Ctrl-D)"
                    .to_owned(),
            ),
        }
    }

    /// The prompt, from the process's own standard input where it needs that. Where nothing comes for a
    /// second, a line on standard error says what platen waits for.
    ///
    /// # Errors
    /// As [`PromptSource::read`].
    pub fn read_from_process(self) -> Result<String, PromptError> {
        let stdin = std::io::stdin();
        let needed = match self {
            PromptSource::Given(_) => false,
            PromptSource::Stdin | PromptSource::GivenThenStdin(_) => true,
        };
        if needed && is_silent(&stdin, PATIENCE) {
            let notice =
                "platen: waiting for standard input; end it with Ctrl-D, or run with </dev/null";
            // The notice is a courtesy; the prompt is read all the same.
            let _ = writeln!(std::io::stderr(), "{notice}");
        }
        self.read(stdin.lock())
    }

    /// The prompt. Line ends at the end of standard input are left out.
    ///
    /// # Errors
    /// Standard input can't be read or isn't UTF-8, or the prompt is empty.
    pub fn read(self, stdin: impl Read) -> Result<String, PromptError> {
        let prompt = match self {
            PromptSource::Given(prompt) => prompt,
            PromptSource::Stdin => text_of(stdin)?,
            PromptSource::GivenThenStdin(prompt) => match text_of(stdin)? {
                piped if piped.trim().is_empty() => prompt,
                piped => format!("{prompt}\n\n{piped}"),
            },
        };
        if prompt.trim().is_empty() {
            Err(PromptError::Empty)
        } else {
            Ok(prompt)
        }
    }
}

/// How long standard input may be silent before the user hears that platen waits for it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether a stream has nothing to read and no end for that long.
fn is_silent(stream: &impl AsFd, patience: Duration) -> bool {
    let patience = Timespec::try_from(patience).ok();
    let mut streams = [PollFd::new(stream, PollFlags::IN)];
    matches!(poll(&mut streams, patience.as_ref()), Ok(0))
}

fn text_of(mut stdin: impl Read) -> Result<String, PromptError> {
    let mut bytes = Vec::new();
    stdin.read_to_end(&mut bytes)?;
    let text = String::from_utf8(bytes)
        .map_err(|error| PromptError::NotText(error.utf8_error().valid_up_to()))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn with_stdin(stdin: Stream) -> Terminals {
        Terminals {
            stdin,
            stdout: Stream::Other,
        }
    }

    #[test]
    fn a_terminal_is_never_read_unless_asked_for() {
        let source = PromptSource::new(Some("hi".into()), with_stdin(Stream::Terminal)).unwrap();
        assert_eq!(source, PromptSource::Given("hi".into()));
        let source = PromptSource::new(Some("-".into()), with_stdin(Stream::Terminal)).unwrap();
        assert_eq!(source, PromptSource::Stdin);
        let error = PromptSource::new(None, with_stdin(Stream::Terminal)).unwrap_err();
        assert!(error.contains("platen ask \"PROMPT\""), "{error}");
    }

    #[test]
    fn what_is_piped_in_follows_the_prompt_after_a_blank_line() {
        let source = PromptSource::new(Some("Sum up".into()), with_stdin(Stream::Other)).unwrap();
        assert_eq!(
            source.read(&b"one\ntwo\r\n\n"[..]).unwrap(),
            "Sum up\n\none\ntwo"
        );
    }

    #[test]
    fn an_empty_pipe_adds_nothing_to_the_prompt() {
        let source = PromptSource::GivenThenStdin("hi".into());
        assert_eq!(source.read(&b"\n"[..]).unwrap(), "hi");
    }

    #[test]
    fn a_pipe_is_silent_until_something_comes_or_it_ends() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        assert!(is_silent(&reader, Duration::ZERO));
        writer.write_all(b"x").unwrap();
        assert!(!is_silent(&reader, Duration::ZERO));
        let (reader, writer) = std::io::pipe().unwrap();
        drop(writer);
        assert!(!is_silent(&reader, Duration::ZERO));
    }

    #[test]
    fn an_empty_prompt_and_one_that_is_no_text_are_refused() {
        assert!(matches!(
            PromptSource::Stdin.read(&b" \n"[..]),
            Err(PromptError::Empty)
        ));
        assert!(matches!(
            PromptSource::Stdin.read(&b"ab\xff"[..]),
            Err(PromptError::NotText(2))
        ));
        assert!(matches!(
            PromptSource::Given(String::new()).read(&b""[..]),
            Err(PromptError::Empty)
        ));
    }
}
