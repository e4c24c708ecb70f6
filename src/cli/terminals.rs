//! Which of the standard streams are terminals: it decides between the screen and plain text.

use std::io::IsTerminal;

/// What a standard stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// A terminal.
    Terminal,
    /// A pipe, a file or nothing.
    Other,
}

/// Standard input and output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminals {
    /// Standard input.
    pub stdin: Stream,
    /// Standard output.
    pub stdout: Stream,
}

impl Terminals {
    /// Those of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Terminals {
            stdin: stream(&std::io::stdin()),
            stdout: stream(&std::io::stdout()),
        }
    }

    /// Whether a screen can be shown and keys can be read.
    #[must_use]
    pub fn can_show_screen(self) -> bool {
        self.stdin == Stream::Terminal && self.stdout == Stream::Terminal
    }
}

fn stream(stream: &impl IsTerminal) -> Stream {
    if stream.is_terminal() {
        Stream::Terminal
    } else {
        Stream::Other
    }
}
