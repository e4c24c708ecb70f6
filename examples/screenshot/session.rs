//! A program in a terminal of its own: keys go in, the screen comes out.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// How long one condition is waited for; a busy machine reads and writes a few tokens a second.
const DEADLINE: Duration = Duration::from_mins(5);

/// A running program and what its terminal shows.
pub struct Session {
    child: Box<dyn Child + Send + Sync>,
    writer: Box<dyn Write + Send>,
    output: Receiver<Vec<u8>>,
    parser: vt100::Parser,
    // Closing it would hang up.
    _terminal: Box<dyn MasterPty + Send>,
}

impl Session {
    /// Starts a program in a terminal of `size` columns and rows.
    pub fn start(
        program: &Path,
        flags: &[&str],
        size: (NonZeroU16, NonZeroU16),
    ) -> anyhow::Result<Session> {
        let (columns, rows) = (size.0.get(), size.1.get());
        let pair = native_pty_system().openpty(PtySize {
            rows,
            cols: columns,
            ..PtySize::default()
        })?;
        let program = program
            .canonicalize()
            .with_context(|| format!("there is no program {}", program.display()))?;
        let mut command = CommandBuilder::new(program);
        command.args(flags);
        command.env("TERM", "xterm-256color");
        command.env_remove("NO_COLOR");
        command.cwd(std::env::current_dir()?);
        let child = pair.slave.spawn_command(command)?;
        let mut reader = pair.master.try_clone_reader()?;
        let (sink, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 65536];
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                if sink.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Ok(Session {
            child,
            writer: pair.master.take_writer()?,
            output,
            parser: vt100::Parser::new(size.1, size.0, 0),
            _terminal: pair.master,
        })
    }

    /// Presses keys, as a terminal sends them.
    pub fn keys(&mut self, keys: &str) -> anyhow::Result<()> {
        self.writer.write_all(keys.as_bytes())?;
        Ok(self.writer.flush()?)
    }

    /// Types a message letter by letter, each once the one before it is shown, and sends it: what arrives at once
    /// with its Enter is taken for a paste and not sent.
    pub fn say(&mut self, message: &str) -> anyhow::Result<()> {
        for (start, letter) in message.char_indices() {
            let end = start + letter.len_utf8();
            self.keys(&message[start..end])?;
            let typed = format!("> {}", message[..end].trim_end());
            self.wait("what was typed", |screen| screen.contains(&typed))?;
        }
        self.keys("\r")
    }

    /// Takes in output until the screen is as it should be.
    pub fn wait(&mut self, what: &str, condition: impl Fn(&str) -> bool) -> anyhow::Result<()> {
        let end = Instant::now() + DEADLINE;
        loop {
            let text = self.parser.screen().contents();
            if condition(&text) {
                return Ok(());
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.parser.process(&bytes),
                Err(RecvTimeoutError::Timeout) => bail!("never came: {what}\n{text}"),
                Err(RecvTimeoutError::Disconnected) => bail!("ended before {what}\n{text}"),
            }
        }
    }

    /// What the terminal shows now.
    pub fn screen(&self) -> vt100::Screen {
        self.parser.screen().clone()
    }

    /// Waits until the program has ended.
    pub fn ended(mut self) -> anyhow::Result<()> {
        let status = self.child.wait()?;
        anyhow::ensure!(status.success(), "the program failed: {status}");
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // It has ended already unless something failed here.
        let _ = self.child.kill();
    }
}
