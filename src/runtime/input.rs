//! Keys and pastes, read by a thread of their own: crossterm waits for the rest of a half-arrived sequence, and
//! spins when the terminal is gone; neither may stop the loop.

use std::io;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::sync::mpsc;

use crate::app::message::Msg;

/// How long the end of reading is waited for; it takes longer only where a sequence stopped half-way.
const STOP_PATIENCE: Duration = Duration::from_millis(50);
/// How long a batch waits for another event.
const BATCH_WAIT: Duration = Duration::from_millis(1);
/// Most events of one batch.
const BATCH: usize = 4096;
/// How long after a paste or a burst what follows still belongs to it.
const BURST_TAIL: Duration = Duration::from_millis(50);
/// Text keys that arrive together are taken for a paste from this many on, if a line break is among them.
const BURST_MIN: usize = 3;
/// An Enter that follows text faster than this was not typed by hand.
const HASTE: Duration = Duration::from_millis(10);
/// How long such an Enter waits for more.
const ENTER_WAIT: Duration = Duration::from_millis(20);

/// Events that arrived together, and when.
pub(super) type Batch = (Instant, Vec<Event>);

/// The keyboard while it is read. Dropping it stops the reading, so that what is typed next reaches the shell.
pub(super) struct Keyboard {
    /// What arrives.
    pub(super) batches: mpsc::UnboundedReceiver<Batch>,
    /// Closed to end the thread.
    stop: Option<UnixStream>,
    stopped: std::sync::mpsc::Receiver<()>,
}

impl Keyboard {
    /// Starts to read.
    ///
    /// # Errors
    /// The thread can't be started.
    pub(super) fn open() -> io::Result<Keyboard> {
        let (sender, batches) = mpsc::unbounded_channel();
        let (stop, stop_heard) = UnixStream::pair()?;
        let (stopping, stopped) = std::sync::mpsc::channel();
        thread::Builder::new()
            .name("platen-keys".into())
            .spawn(move || {
                while wait(&stop_heard) == Waited::Input {
                    let Ok(batch) = read() else { break };
                    if !batch.is_empty() && sender.send((Instant::now(), batch)).is_err() {
                        break;
                    }
                }
                let _ = stopping.send(());
            })?;
        Ok(Keyboard {
            batches,
            stop: Some(stop),
            stopped,
        })
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.stop = None;
        let _ = self.stopped.recv_timeout(STOP_PATIENCE);
    }
}

/// What ended a wait.
#[derive(Debug, PartialEq, Eq)]
enum Waited {
    /// Bytes wait to be read.
    Input,
    /// Nobody listens any more, or the terminal is gone.
    End,
}

/// Waits for input, as long as there is any: also for what was there before the wait began.
fn wait(stop: &UnixStream) -> Waited {
    let stdin = rustix::stdio::stdin();
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    loop {
        let mut fds = [
            PollFd::new(&stdin, PollFlags::IN),
            PollFd::new(stop, PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Ok(_) if !fds[1].revents().is_empty() || fds[0].revents().intersects(gone) => {
                return Waited::End;
            }
            Ok(_) if fds[0].revents().contains(PollFlags::IN) => return Waited::Input,
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => {
                tracing::error!("cannot wait for keys: {error}");
                return Waited::End;
            }
        }
    }
}

/// Reads what is there, and what follows at once.
fn read() -> io::Result<Vec<Event>> {
    let mut batch = Vec::new();
    while batch.len() < BATCH && event::poll(BATCH_WAIT)? {
        batch.push(event::read()?);
    }
    Ok(batch)
}

/// Makes messages of batches. A terminal without bracketed paste sends pasted text as keys, where an Enter would
/// send half of it. So text keys that arrive together, with a line break before the last of them, are one paste;
/// and an Enter that comes faster after text than anyone types waits a moment for what follows.
#[derive(Debug, Default)]
pub(super) struct Digest {
    pasting_until: Option<Instant>,
    typed: Option<Instant>,
    held: Option<(KeyEvent, Instant)>,
}

impl Digest {
    /// The messages of one batch that arrived at `now`.
    pub(super) fn messages(&mut self, (now, events): Batch) -> Vec<Msg> {
        let mut messages = self.overdue(now);
        let mut keys: Vec<KeyEvent> = Vec::new();
        for event in events {
            match event {
                Event::Key(key) if key.kind == KeyEventKind::Release => {}
                Event::Key(key) if text_of(&key).is_some() => keys.push(key),
                Event::Key(key) => {
                    self.settle(now, &mut keys, &mut messages);
                    messages.extend(self.held.take().map(|(enter, _)| Msg::Key(enter)));
                    messages.push(Msg::Key(key));
                }
                Event::Paste(text) => {
                    self.settle(now, &mut keys, &mut messages);
                    let broken = self.held.take().map_or("", |_| "\n");
                    let text = text.replace("\r\n", "\n").replace('\r', "\n");
                    self.pasting_until = Some(now + BURST_TAIL);
                    messages.push(Msg::Paste(format!("{broken}{text}")));
                }
                // The size is read when it is needed; nothing else was asked for.
                Event::Resize(..) | Event::Mouse(_) | Event::FocusGained | Event::FocusLost => {}
            }
        }
        self.settle(now, &mut keys, &mut messages);
        messages
    }

    /// When [`Digest::overdue`] has something to say.
    pub(super) fn due(&self) -> Option<Instant> {
        self.held.map(|(_, until)| until)
    }

    /// An Enter after which nothing came.
    pub(super) fn overdue(&mut self, now: Instant) -> Vec<Msg> {
        let overdue = self.held.take_if(|(_, until)| *until <= now);
        overdue
            .map(|(enter, _)| Msg::Key(enter))
            .into_iter()
            .collect()
    }

    /// Decides what the text keys so far are: typed or pasted.
    fn settle(&mut self, now: Instant, keys: &mut Vec<KeyEvent>, messages: &mut Vec<Msg>) {
        let Some((last, before_last)) = keys.split_last() else {
            return;
        };
        let is_break = |key: &KeyEvent| text_of(key) == Some('\n');
        let burst = keys.len() >= BURST_MIN && before_last.iter().any(is_break);
        let follows =
            self.pasting_until.is_some_and(|until| now < until) && keys.iter().any(is_break);
        let hasty = !before_last.is_empty()
            || self
                .typed
                .is_some_and(|typed| now.duration_since(typed) < HASTE);
        let enter = (last.code == KeyCode::Enter && hasty).then_some(*last);
        self.typed = Some(now);
        if burst || follows || self.held.is_some() {
            let broken = self.held.take().map(|_| '\n');
            let text = keys.drain(..).filter_map(|key| text_of(&key));
            self.pasting_until = Some(now + BURST_TAIL);
            messages.push(Msg::Paste(broken.into_iter().chain(text).collect()));
        } else {
            if let Some(enter) = enter {
                keys.pop();
                self.held = Some((enter, now + ENTER_WAIT));
            }
            messages.extend(keys.drain(..).map(Msg::Key));
        }
    }
}

/// The character that a key stands for in pasted text.
fn text_of(key: &KeyEvent) -> Option<char> {
    match key.code {
        KeyCode::Char('j') if key.modifiers == KeyModifiers::CONTROL => Some('\n'),
        KeyCode::Char(character) if key.modifiers.difference(KeyModifiers::SHIFT).is_empty() => {
            Some(character)
        }
        KeyCode::Enter if key.modifiers.is_empty() => Some('\n'),
        KeyCode::Tab if key.modifiers.is_empty() => Some('\t'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: KeyCode) -> Event {
        Event::Key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn keys(text: &str) -> Vec<Event> {
        text.chars()
            .map(|character| {
                key(if character == '\r' {
                    KeyCode::Enter
                } else {
                    KeyCode::Char(character)
                })
            })
            .collect()
    }

    /// Pastes as `[text]`, Enter as `⏎`, other keys as their character.
    fn shown(messages: &[Msg]) -> String {
        let one = |message: &Msg| match message {
            Msg::Paste(text) => format!("[{text}]"),
            Msg::Key(KeyEvent {
                code: KeyCode::Char(character),
                ..
            }) => character.to_string(),
            Msg::Key(KeyEvent {
                code: KeyCode::Enter,
                ..
            }) => "⏎".to_owned(),
            other => format!("{other:?}"),
        };
        messages.iter().map(one).collect()
    }

    /// Each batch with its time in milliseconds; a second passes at the end.
    fn digest(batches: &[(u64, Vec<Event>)]) -> String {
        let start = Instant::now();
        let mut digest = Digest::default();
        let mut messages = Vec::new();
        for (ms, events) in batches {
            messages.extend(digest.messages((start + Duration::from_millis(*ms), events.clone())));
        }
        messages.extend(digest.overdue(start + Duration::from_secs(1)));
        shown(&messages)
    }

    #[test]
    fn typed_lines_are_sent() {
        assert_eq!(
            digest(&[(0, keys("h")), (90, keys("i")), (180, keys("\r"))]),
            "hi⏎"
        );
        assert_eq!(digest(&[(0, keys("hello\r"))]), "hello⏎");
    }

    #[test]
    fn keys_that_arrive_together_around_an_enter_are_a_paste() {
        assert_eq!(digest(&[(0, keys("a\rb"))]), "[a\nb]");
        assert_eq!(digest(&[(0, keys("one\rtwo\r"))]), "[one\ntwo\n]");
    }

    #[test]
    fn keys_that_arrive_one_by_one_faster_than_typed_are_a_paste() {
        let batches: Vec<(u64, Vec<Event>)> = "ab\rcd\re"
            .chars()
            .zip(0..)
            .map(|(key, ms)| (ms, keys(&key.to_string())))
            .collect();
        assert_eq!(digest(&batches), "ab[\nc]d[\n]e");
        assert_eq!(digest(&[(0, keys("ab\r")), (5, keys("cd"))]), "ab[\ncd]");
    }

    #[test]
    fn an_enter_that_waits_is_sent_before_a_later_key() {
        assert_eq!(digest(&[(0, keys("ab\r")), (300, keys("c"))]), "ab⏎c");
        let escape = digest(&[(0, keys("ab\r")), (5, vec![key(KeyCode::Esc)])]);
        assert!(escape.starts_with("ab⏎"), "{escape}");
    }

    #[test]
    fn the_rest_of_a_burst_belongs_to_it_for_a_moment() {
        assert_eq!(
            digest(&[(0, keys("a\rb")), (10, keys("c\r")), (500, keys("\r"))]),
            "[a\nb][c\n]⏎"
        );
    }

    #[test]
    fn an_enter_smuggled_behind_a_paste_sends_nothing() {
        let mut events = vec![Event::Paste("a\r\nb".into())];
        events.extend(keys("\rrm\r"));
        assert_eq!(digest(&[(0, events), (200, keys("\r"))]), "[a\nb][\nrm\n]⏎");
    }

    #[test]
    fn releases_are_left_out_and_commands_split_a_burst() {
        let mut release = KeyEvent::new(KeyCode::Char('x'), KeyModifiers::NONE);
        release.kind = KeyEventKind::Release;
        assert_eq!(digest(&[(0, vec![Event::Key(release)])]), "");
        let escape = digest(&[(
            0,
            [keys("ab"), vec![key(KeyCode::Esc)], keys("\r")].concat(),
        )]);
        assert!(
            escape.starts_with("ab") && escape.ends_with('⏎'),
            "{escape}"
        );
    }
}
