//! ratatui's crossterm backend on our own descriptor: the size comes from that descriptor, cursor commands that
//! change nothing are left out, and a frame without changes writes nothing.

use std::io;
use std::os::fd::OwnedFd;

use ratatui::backend::{Backend, ClearType, CrosstermBackend, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Size};

use super::tty_writer::TtyWriter;

/// What is known of the terminal's cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cursor {
    /// It may look like anything and be anywhere.
    Unknown,
    Hidden,
    /// Shown, and where, as far as that is known.
    Shown(Option<Position>),
}

pub(super) struct TtyBackend {
    tty: TtyWriter,
    frame: Vec<u8>,
    cursor: Cursor,
}

impl TtyBackend {
    pub(super) fn new(tty: OwnedFd) -> TtyBackend {
        TtyBackend {
            tty: TtyWriter(tty),
            frame: Vec::new(),
            cursor: Cursor::Unknown,
        }
    }

    /// Writes bytes now, outside any frame; they may change the cursor.
    pub(super) fn emit(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.cursor = Cursor::Unknown;
        self.tty.emit(bytes)
    }

    fn commands(&mut self) -> CrosstermBackend<&mut Vec<u8>> {
        CrosstermBackend::new(&mut self.frame)
    }
}

impl Backend for TtyBackend {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut content = content.peekable();
        if content.peek().is_none() {
            return Ok(());
        }
        if let Cursor::Shown(_) = self.cursor {
            // Where synchronised updates are unknown, it would be seen running over the changed cells.
            self.hide_cursor()?;
        }
        self.commands().draw(content)
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        if self.cursor == Cursor::Hidden {
            return Ok(());
        }
        self.cursor = Cursor::Hidden;
        self.commands().hide_cursor()
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        if matches!(self.cursor, Cursor::Shown(_)) {
            return Ok(());
        }
        self.cursor = Cursor::Shown(None);
        self.commands().show_cursor()
    }

    /// Unknown: asking the terminal would wait for its answer, and nothing drawn full-screen needs it.
    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let position = position.into();
        if self.cursor == Cursor::Shown(Some(position)) {
            return Ok(());
        }
        if let Cursor::Shown(known) = &mut self.cursor {
            *known = Some(position);
        }
        self.commands().set_cursor_position(position)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        self.commands().clear_region(region)
    }

    fn size(&self) -> io::Result<Size> {
        let size = rustix::termios::tcgetwinsize(&self.tty.0)?;
        Ok(Size {
            width: size.ws_col,
            height: size.ws_row,
        })
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        let size = rustix::termios::tcgetwinsize(&self.tty.0)?;
        Ok(WindowSize {
            columns_rows: Size {
                width: size.ws_col,
                height: size.ws_row,
            },
            pixels: Size {
                width: size.ws_xpixel,
                height: size.ws_ypixel,
            },
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        let outcome = self.tty.present(&self.frame);
        self.frame.clear();
        outcome
    }
}
