//! Takes the terminal over and gives it back, whatever happens in between.
//!
//! The screen is drawn on a descriptor of its own. Standard output and standard error lead into the log meanwhile,
//! so that nothing that foreign code prints reaches the screen. Giving back is [`crash::release`]'s work alone: the
//! orderly end, a panic and a fatal signal all go through it.

mod backend;
mod keyboard;
mod panic;
mod tty_writer;

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use anyhow::Context as _;
use base64::Engine as _;
use ratatui::Frame;
use rustix::termios::{self, OptionalActions};

use crate::llama::crash::{self, Streams};
use crate::logging::LogSink;

use backend::TtyBackend;
pub use panic::report_panics;

/// Alternate screen, clear, cursor hidden, bracketed paste.
const ENTER: &str = "\x1b[?1049h\x1b[H\x1b[2J\x1b[?25l\x1b[?2004h";
/// Asks for unambiguous keys (the kitty keyboard protocol's first flag).
const PUSH_KEYBOARD: &str = "\x1b[>1u";
/// Ends a frame cut short, then undoes [`ENTER`]; mouse reporting, never asked for, is off whatever others did.
const RESTORE: &[u8] =
    b"\x1b[?2026l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[0m\x1b[?1049l\x1b[?25h";
/// The same where [`PUSH_KEYBOARD`] was sent: popped before the screen it was pushed on is left.
const RESTORE_KEYBOARD: &[u8] =
    b"\x1b[?2026l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[<1u\x1b[0m\x1b[?1049l\x1b[?25h";

/// The terminal while the program holds it. Dropping it gives it back.
pub struct Terminal {
    screen: ratatui::Terminal<TtyBackend>,
    tty: OwnedFd,
    keyboard: keyboard::Protocol,
    _streams: RedirectedStreams,
}

impl Terminal {
    /// Takes over the terminal on standard output.
    ///
    /// # Errors
    /// Standard output is no terminal, or the terminal refuses a setting; it is given back then.
    pub fn enter(log: &LogSink) -> anyhow::Result<Terminal> {
        let tty = duplicate(rustix::stdio::stdout())?;
        let streams = Streams {
            tty: tty.try_clone()?,
            stdout: duplicate(rustix::stdio::stdout())?,
            stderr: duplicate(rustix::stdio::stderr())?,
        };
        crash::install(streams, log.path())
            .context("cannot install the handlers for fatal signals")?;
        let screen = ratatui::Terminal::new(TtyBackend::new(tty.try_clone()?))
            .context("cannot read the terminal's size")?;
        let redirected = RedirectedStreams::into_log(log)?;
        let keyboard = keyboard::Protocol::of_environment();
        let mut terminal = Terminal {
            screen,
            tty,
            keyboard,
            _streams: redirected,
        };
        terminal.take()?;
        Ok(terminal)
    }

    /// Raw mode and the alternate screen, at the start and after a pause. The next frame is drawn whole.
    ///
    /// # Errors
    /// The terminal refuses a setting.
    pub fn take(&mut self) -> anyhow::Result<()> {
        let (enter, restore) = match self.keyboard {
            keyboard::Protocol::Kitty => (format!("{ENTER}{PUSH_KEYBOARD}"), RESTORE_KEYBOARD),
            keyboard::Protocol::Legacy => (ENTER.to_owned(), RESTORE),
        };
        crash::hold(restore).context("standard output is no terminal")?;
        self.make_raw()?;
        self.screen.backend_mut().emit(enter.as_bytes())?;
        self.redraw()?;
        Ok(())
    }

    /// Takes everything again that another process may have changed while this one was stopped without a warning: the
    /// mode, the screen, the kind of paste. What the keyboard sends was pushed once and stays pushed.
    ///
    /// # Errors
    /// The terminal refuses a setting.
    pub fn take_again(&mut self) -> anyhow::Result<()> {
        self.make_raw()?;
        self.screen.backend_mut().emit(ENTER.as_bytes())?;
        self.redraw()?;
        Ok(())
    }

    fn make_raw(&self) -> anyhow::Result<()> {
        // crossterm reads Ctrl-J as Enter unless it believes to have set raw mode itself.
        crossterm::terminal::enable_raw_mode().context("the terminal refuses raw mode")?;
        let mut raw = termios::tcgetattr(&self.tty)?;
        raw.make_raw();
        termios::tcsetattr(&self.tty, OptionalActions::Now, &raw)
            .context("the terminal refuses raw mode")
    }

    /// Forgets what the screen shows, so that the next frame is drawn whole.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn redraw(&mut self) -> io::Result<()> {
        let size = self.screen.size()?;
        self.screen.resize(size.into())
    }

    /// Draws one frame with one write.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn draw(&mut self, render: impl FnOnce(&mut Frame)) -> io::Result<()> {
        self.screen.draw(render).map(|_| ())
    }

    /// The size in columns and rows.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.screen.size()?;
        Ok((size.width, size.height))
    }

    /// Puts text on the clipboard of the terminal (OSC 52).
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn copy(&mut self, text: &str) -> io::Result<()> {
        let encoded = base64::engine::general_purpose::STANDARD.encode(text);
        self.screen
            .backend_mut()
            .emit(format!("\x1b]52;c;{encoded}\x07").as_bytes())
    }

    /// Gives the terminal back now; standard output and standard error still lead into the log until the drop.
    pub fn leave(&mut self) {
        crash::release();
    }

    /// The terminal's descriptor.
    #[must_use]
    pub fn tty(&self) -> BorrowedFd<'_> {
        self.tty.as_fd()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Standard output and standard error while they lead into the log; dropping it leads them back.
struct RedirectedStreams {
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl RedirectedStreams {
    fn into_log(log: &LogSink) -> anyhow::Result<RedirectedStreams> {
        let original = RedirectedStreams {
            stdout: duplicate(rustix::stdio::stdout())?,
            stderr: duplicate(rustix::stdio::stderr())?,
        };
        let target = match log.file() {
            Some(file) => file.try_clone(),
            None => OpenOptions::new().write(true).open("/dev/null"),
        }
        .context("cannot open what standard output is to lead into")?;
        rustix::stdio::dup2_stdout(&target).context("cannot redirect standard output")?;
        rustix::stdio::dup2_stderr(&target).context("cannot redirect standard error")?;
        Ok(original)
    }
}

impl Drop for RedirectedStreams {
    fn drop(&mut self) {
        let _ = rustix::stdio::dup2_stdout(&self.stdout);
        let _ = rustix::stdio::dup2_stderr(&self.stderr);
    }
}

fn duplicate(fd: BorrowedFd<'_>) -> anyhow::Result<OwnedFd> {
    fd.try_clone_to_owned()
        .context("cannot duplicate a standard stream")
}
