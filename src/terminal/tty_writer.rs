//! Writes to the terminal as long as it is held, and never after it was given back.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use crate::llama::crash;

/// The start and the end of a synchronised update: terminals that know it show what lies between at once.
const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";

pub(super) struct TtyWriter(pub(super) OwnedFd);

impl TtyWriter {
    /// Writes a frame as one synchronised update; nothing where it is empty.
    pub(super) fn present(&self, frame: &[u8]) -> io::Result<()> {
        if frame.is_empty() {
            return Ok(());
        }
        self.emit(&[BEGIN, frame, END].concat())
    }

    /// Writes bytes as they are; nothing once the terminal was given back.
    pub(super) fn emit(&self, mut bytes: &[u8]) -> io::Result<()> {
        let Some(_leave) = crash::may_write() else {
            return Ok(());
        };
        while !bytes.is_empty() {
            match rustix::io::write(&self.0, bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    rustix::event::poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], None)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
