//! The threads that watch for the outside world ending the program, while the loop itself may be stuck.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::task::Poll;
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use super::ending::{Ending, Endings, Signal};
use crate::llama::crash;

/// Watches the terminal for its end.
///
/// # Errors
/// The thread can't be started.
pub(super) fn terminal(tty: OwnedFd, endings: Endings) -> io::Result<()> {
    thread::Builder::new()
        .name("platen-tty".into())
        .spawn(move || {
            loop {
                let mut fds = [PollFd::new(&tty, PollFlags::empty())];
                match poll(&mut fds, None) {
                    Ok(_)
                        if fds[0]
                            .revents()
                            .intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) =>
                    {
                        return endings.begin(Ending::TerminalLost);
                    }
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return tracing::warn!("cannot watch the terminal: {error}"),
                }
            }
        })?;
    Ok(())
}

/// Watches for signals that ask the program to end, and tells the first. One that was ignored when the program started
/// stays so.
///
/// # Errors
/// The thread can't be started.
pub fn signals(heard: impl FnOnce(Signal) + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let mut streams: Vec<(Signal, Stream)> = Vec::new();
    {
        let _context = runtime.enter();
        for kind in Signal::ALL
            .into_iter()
            .filter(|kind| !crash::is_ignored(kind.number()))
        {
            streams.push((kind, signal(SignalKind::from_raw(kind.number()))?));
        }
    }
    thread::Builder::new()
        .name("platen-signals".into())
        .spawn(move || {
            runtime.block_on(async {
                let first = poll_fn(|context| {
                    streams
                        .iter_mut()
                        .find_map(|(kind, stream)| {
                            stream.poll_recv(context).is_ready().then_some(*kind)
                        })
                        .map_or(Poll::Pending, Poll::Ready)
                });
                heard(first.await);
            });
        })?;
    Ok(())
}
