//! The scripted program at the moments at which things can go wrong.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "shared by tests that each use a part"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::pty::{self, Pty, Spawn};

pub const QUIT: &[u8] = b"\x11";
pub const PANIC: &[u8] = b"\x10";

pub fn scripted() -> &'static Path {
    static BUILT: LazyLock<PathBuf> = LazyLock::new(|| pty::example("scripted"));
    &BUILT
}

pub struct Run {
    pub pty: Pty,
    pub logs: tempfile::TempDir,
}

pub fn spawn(script: &str) -> (Spawn, tempfile::TempDir) {
    let logs = tempfile::tempdir().unwrap();
    (
        Spawn::new(scripted())
            .env("SCRIPT", script)
            .env("SCRIPT_LOG", logs.path()),
        logs,
    )
}

pub fn start(script: &str) -> Run {
    let (spawn, logs) = spawn(script);
    Run {
        pty: spawn.start(),
        logs,
    }
}

impl Run {
    pub fn log(&self) -> String {
        fs::read_to_string(self.logs.path().join("platen.log")).unwrap()
    }

    /// Waits until the thread that draws is held up in a write to the terminal.
    pub fn wait_until_stuck(&self) {
        let status = format!("/proc/{0}/task/{0}/status", self.pty.pid().as_raw_nonzero());
        let switches = || {
            let status = fs::read_to_string(&status).unwrap();
            let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
            counts.map(str::to_owned).collect::<Vec<_>>()
        };
        let end = Instant::now() + Duration::from_secs(20);
        let mut seen = switches();
        // While it can run it does so a thousand times a second, and each time is counted.
        loop {
            std::thread::sleep(Duration::from_millis(300));
            let now = switches();
            if now == seen {
                return;
            }
            assert!(Instant::now() < end, "never stuck: {now:?}");
            seen = now;
        }
    }
}

/// The moments at which things can go wrong.
#[derive(Debug, Clone, Copy)]
pub enum Moment {
    Idle,
    Loading,
    Generating,
}

pub const MOMENTS: [Moment; 3] = [Moment::Idle, Moment::Loading, Moment::Generating];

pub fn at(moment: Moment) -> Run {
    match moment {
        Moment::Idle => {
            let run = start("");
            run.pty.wait_for_text("state ready");
            run
        }
        Moment::Loading => {
            let run = start("load_ms=60000");
            run.pty.wait_for_text("state loading");
            run
        }
        Moment::Generating => {
            let mut run = start("rate=50,tokens=100000");
            run.pty.wait_for_text("state ready");
            run.pty.keys("hi\r");
            run.pty.wait_for_text("w9");
            run
        }
    }
}
