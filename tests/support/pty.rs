//! A program in a terminal of its own: keys go in, the screen comes out, and everything that was written is kept.
//! Nothing here sleeps; every wait is for a condition, with a deadline that fails the test and shows the screen.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "shared by tests that each use a part"
)]

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};

/// The program of `examples` by that name, built anew where it is older than the code: Cargo does so by itself only
/// when it runs all tests.
pub fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let profile = tests.parent().and_then(Path::parent).unwrap();
    let release = profile.ends_with("release").then_some("--release");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--example", name])
        .args(release)
        .status()
        .unwrap();
    assert!(status.success(), "the example {name} does not build");
    profile.join("examples").join(name)
}

/// How long a condition is waited for; far more than anything takes.
const DEADLINE: Duration = Duration::from_secs(20);

/// How to start the program.
pub struct Spawn {
    command: CommandBuilder,
    columns: u16,
    rows: u16,
}

impl Spawn {
    /// `program` in an environment that holds only what every terminal has.
    pub fn new(program: impl AsRef<OsStr>) -> Spawn {
        let mut command = CommandBuilder::new(program);
        command.env_clear();
        for name in ["PATH", "HOME", "TMPDIR"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.env("TERM", "xterm-256color");
        command.cwd(std::env::temp_dir());
        Spawn {
            command,
            columns: 80,
            rows: 24,
        }
    }

    /// Runs in this folder.
    pub fn folder(mut self, folder: &std::path::Path) -> Spawn {
        self.command.cwd(folder);
        self
    }

    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Spawn {
        self.command.arg(argument);
        self
    }

    pub fn args(mut self, arguments: &[&str]) -> Spawn {
        self.command.args(arguments);
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Spawn {
        self.command.env(name, value);
        self
    }

    pub fn size(mut self, columns: u16, rows: u16) -> Spawn {
        (self.columns, self.rows) = (columns, rows);
        self
    }

    pub fn start(self) -> Pty {
        let size = PtySize {
            rows: self.rows,
            cols: self.columns,
            ..PtySize::default()
        };
        let pair = native_pty_system().openpty(size).unwrap();
        let settings = settings(pair.master.as_ref());
        let started = Instant::now();
        let child = pair.slave.spawn_command(self.command).unwrap();
        let output = Arc::new(Output {
            state: Mutex::new(State {
                raw: Vec::new(),
                screen: vt100::Parser::new(cells(self.rows), cells(self.columns), 1000),
                first_byte: None,
                ended: false,
                detach: false,
                paused: false,
            }),
            changed: Condvar::new(),
        });
        let reader = pair.master.try_clone_reader().unwrap();
        let sink = output.clone();
        thread::spawn(move || sink.fill(reader));
        let writer = Some(pair.master.take_writer().unwrap());
        Pty {
            child,
            master: Some(pair.master),
            writer,
            output,
            settings,
            started,
        }
    }
}

/// A running program and its terminal.
pub struct Pty {
    child: Box<dyn Child + Send + Sync>,
    master: Option<Box<dyn MasterPty + Send>>,
    writer: Option<Box<dyn Write + Send>>,
    output: Arc<Output>,
    settings: String,
    started: Instant,
}

struct Output {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    raw: Vec<u8>,
    screen: vt100::Parser,
    first_byte: Option<Instant>,
    ended: bool,
    detach: bool,
    paused: bool,
}

impl Output {
    fn fill(&self, mut reader: Box<dyn Read + Send>) {
        let mut buffer = vec![0; 65536];
        loop {
            let read = reader.read(&mut buffer).unwrap_or(0);
            let state = self.state.lock().unwrap();
            let mut state = self
                .changed
                .wait_while(state, |state| state.paused)
                .unwrap();
            if read > 0 {
                state.first_byte.get_or_insert_with(Instant::now);
                state.raw.extend_from_slice(&buffer[..read]);
                state.screen.process(&buffer[..read]);
            }
            let end = read == 0 || state.detach;
            if end {
                // Closed before anyone hears of it: a hang-up needs every copy of the master closed.
                drop(std::mem::replace(&mut reader, Box::new(std::io::empty())));
                state.ended = true;
            }
            self.changed.notify_all();
            if end {
                return;
            }
        }
    }
}

impl Pty {
    /// Types bytes, as a keyboard or a paste would send them.
    pub fn keys(&mut self, bytes: impl AsRef<[u8]>) {
        let writer = self.writer.as_mut().unwrap();
        writer.write_all(bytes.as_ref()).unwrap();
        writer.flush().unwrap();
    }

    /// Waits until the screen is as it should be.
    #[track_caller]
    pub fn wait_for(&self, what: &str, condition: impl Fn(&vt100::Screen) -> bool) {
        self.wait(what, |state| condition(state.screen.screen()));
    }

    /// Waits until the screen shows `text`.
    #[track_caller]
    pub fn wait_for_text(&self, text: &str) {
        self.wait_for(text, |screen| screen.contents().contains(text));
    }

    /// Waits until the output, escape codes and all, contains `bytes`.
    #[track_caller]
    pub fn wait_for_raw(&self, bytes: &str) {
        self.wait(bytes, |state| count(&state.raw, bytes) > 0);
    }

    #[track_caller]
    fn wait(&self, what: &str, condition: impl Fn(&State) -> bool) {
        let end = Instant::now() + DEADLINE;
        let mut state = self.state();
        while !condition(&state) {
            let left = end.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero() && !state.ended,
                "never came: {what}\n{}",
                shown(&state)
            );
            state = self.output.changed.wait_timeout(state, left).unwrap().0;
        }
    }

    /// Waits until nothing was written for `span`.
    #[track_caller]
    pub fn wait_for_quiet(&self, span: Duration) {
        let end = Instant::now() + DEADLINE;
        while self.bytes_within(span) > 0 {
            assert!(
                Instant::now() < end,
                "never quiet\n{}",
                shown(&self.state())
            );
        }
    }

    /// How many bytes are written within `span`, from now on.
    pub fn bytes_within(&self, span: Duration) -> usize {
        let end = Instant::now() + span;
        let mut state = self.state();
        let before = state.raw.len();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return state.raw.len() - before;
            }
            state = self.output.changed.wait_timeout(state, left).unwrap().0;
        }
    }

    /// Everything written so far, broken bytes replaced.
    pub fn raw(&self) -> String {
        String::from_utf8_lossy(&self.state().raw).into_owned()
    }

    /// Everything written so far, byte for byte.
    pub fn bytes(&self) -> Vec<u8> {
        self.state().raw.clone()
    }

    /// Forgets what was written so far; the screen stays.
    pub fn forget(&self) {
        self.state().raw = Vec::new();
    }

    /// How often `text` was written so far.
    pub fn raw_count(&self, text: &str) -> usize {
        count(&self.state().raw, text)
    }

    /// The parameters of every `ESC [ … m` so far.
    pub fn sgr(&self) -> Vec<String> {
        let parameter = |character: char| character.is_ascii_digit() || ";:".contains(character);
        let one = |rest: &str| {
            let end = rest.find(|character| !parameter(character))?;
            rest[end..].starts_with('m').then(|| rest[..end].to_owned())
        };
        self.raw().split("\x1b[").skip(1).filter_map(one).collect()
    }

    /// User and system time of the program so far, in hundredths of a second.
    pub fn cpu_ticks(&self) -> u64 {
        let stat = format!("/proc/{}/stat", self.pid().as_raw_nonzero());
        let stat = std::fs::read_to_string(stat).unwrap();
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .unwrap()
            .1
            .split_whitespace()
            .collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    /// What the screen shows.
    pub fn contents(&self) -> String {
        self.state().screen.screen().contents()
    }

    /// From the start of the program to its first byte.
    pub fn first_byte_after(&self) -> Option<Duration> {
        self.state().first_byte.map(|at| at - self.started)
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        let size = PtySize {
            rows,
            cols: columns,
            ..PtySize::default()
        };
        self.state().screen.set_size(cells(rows), cells(columns));
        self.master.as_ref().unwrap().resize(size).unwrap();
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.process_id().unwrap()).unwrap()).unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Waits for the program's end and for the last byte it wrote.
    #[track_caller]
    pub fn exit(&mut self) -> ExitStatus {
        self.exit_within(DEADLINE)
    }

    /// The same, with a deadline of its own.
    #[track_caller]
    pub fn exit_within(&mut self, deadline: Duration) -> ExitStatus {
        let end = Instant::now() + deadline;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > end {
                let _ = self.child.kill();
                panic!("still running after {deadline:?}\n{}", shown(&self.state()));
            }
            thread::sleep(Duration::from_millis(5));
        };
        let mut state = self.state();
        while !state.ended && !state.paused && self.master.is_some() {
            let (next, timeout) = self.output.changed.wait_timeout(state, DEADLINE).unwrap();
            state = next;
            assert!(
                !timeout.timed_out(),
                "a child of the program keeps the terminal open"
            );
        }
        status
    }

    /// Reads nothing more, as a terminal that hangs; what the program writes piles up until it has to wait.
    pub fn stop_reading(&mut self) {
        self.state().paused = true;
    }

    /// Reads again.
    pub fn resume_reading(&mut self) {
        self.state().paused = false;
        self.output.changed.notify_all();
    }

    /// Closes the terminal, as when its window is closed or its connection is lost.
    pub fn hang_up(&mut self) {
        self.state().detach = true;
        // The reader is waiting for bytes; a new size makes the program write some.
        self.resize(71, 19);
        let mut state = self.state();
        while !state.ended {
            let (next, timeout) = self.output.changed.wait_timeout(state, DEADLINE).unwrap();
            state = next;
            assert!(
                !timeout.timed_out(),
                "the program writes nothing after a change of size"
            );
        }
        drop(state);
        self.writer = None;
        self.master = None;
    }

    /// Leaves by `key`: the program ends well and gives the terminal back.
    #[track_caller]
    pub fn assert_quits_by(&mut self, key: impl AsRef<[u8]>) {
        self.keys(key);
        let status = self.exit();
        assert_eq!(
            (status.exit_code(), status.signal()),
            (0, None),
            "{}",
            self.contents()
        );
        self.assert_given_back();
    }

    /// The terminal is as it was before the program started: settings, screen, cursor, modes.
    #[track_caller]
    pub fn assert_given_back(&self) {
        let state = self.state();
        let screen = state.screen.screen();
        assert_eq!(
            settings(self.master.as_ref().unwrap().as_ref()),
            self.settings,
            "the terminal's settings"
        );
        assert!(
            !screen.alternate_screen(),
            "the alternate screen is left\n{}",
            shown(&state)
        );
        assert!(
            !screen.hide_cursor(),
            "the cursor is shown\n{}",
            shown(&state)
        );
        assert!(
            !screen.bracketed_paste(),
            "bracketed paste is off\n{}",
            shown(&state)
        );
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        for report in ["\x1b[?1000h", "\x1b[?1002h", "\x1b[?1003h"] {
            assert_eq!(
                count(&state.raw, report),
                0,
                "mouse reports are never asked for"
            );
        }
        let pushed = count(&state.raw, "\x1b[>1u");
        assert_eq!(
            count(&state.raw, "\x1b[<1u"),
            pushed,
            "keyboard flags are popped as often as pushed"
        );
        assert!(
            count(&state.raw, "\x1b[?2026l") >= count(&state.raw, "\x1b[?2026h"),
            "updates are ended"
        );
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.output.state.lock().unwrap()
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn cells(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number.max(1)).unwrap()
}

fn settings(master: &dyn MasterPty) -> String {
    format!("{:?}", master.get_termios().unwrap())
}

fn count(raw: &[u8], text: &str) -> usize {
    raw.windows(text.len())
        .filter(|window| *window == text.as_bytes())
        .count()
}

fn shown(state: &State) -> String {
    let tail = &state.raw[state.raw.len().saturating_sub(600)..];
    format!(
        "screen:\n{}\nlast bytes: {}",
        state.screen.screen().contents(),
        tail.escape_ascii()
    )
}
