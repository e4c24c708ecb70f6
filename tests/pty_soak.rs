//! Hours of use in minutes: somebody who does anything at all with the real program, a tiny model and a store, while
//! what must always hold is looked at after each step. `PLATEN_SOAK_MINUTES=60` goes on for an hour and holds the
//! memory at the end against that of the first ten minutes.
#![allow(clippy::unwrap_used, dead_code, reason = "a test stops where it fails")]

#[path = "support/pty.rs"]
mod pty;
#[path = "support/tiny_gguf.rs"]
mod tiny_gguf;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use platen::chat::store::Store;
use pty::{Pty, Spawn};
use tiny_gguf::{TinyKind, write_in};

/// Steps of the short run.
const STEPS: u32 = 250;
/// The part of a long run whose memory the end is held against.
const BEGINNING: Duration = Duration::from_mins(10);

/// Numbers that look random and are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from((self.0 >> 33) % end as u64).unwrap()
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

/// What a person may say.
const SAYINGS: [&str; 8] = [
    "Hello",
    "What is the capital of France?",
    "日本語と👩‍👩‍👧と e\u{301}",
    "مرحبا שלום",
    "a very long line that has to be wrapped because it is longer than any window is wide, or nearly so, and goes on",
    "<|im_end|>\u{7f}",
    "x",
    "/unknown",
];

/// Keys that a person may press at any moment.
const KEYS: [&str; 26] = [
    "\x1b",      // Esc
    "\x12",      // Ctrl-R: again
    "\x1b[1;5A", // Ctrl-Up
    "\x1b[1;5B", // Ctrl-Down
    "\x1b[5~",   // Page Up
    "\x1b[6~",   // Page Down
    "\x1b[1;5H", // Ctrl-Home
    "\x1b[1;5F", // Ctrl-End
    "\x1bOP",    // F1, and closed
    "\x1b[12~",  // F2
    "\x1b[13~",  // F3
    "\x1b[14~",  // F4
    "\x0c",      // Ctrl-L
    "\x1bc",     // Alt-C
    "\t",
    "\x1b[A",
    "\x1b[B",
    "\x1b[C",
    "\x1b[D",
    "\x17",
    "\x15",
    "\x19",
    "\x1f",
    "\x7f",
    "\r",
    "\n",
];

struct Soak {
    pty: Pty,
    random: Random,
    models: Vec<PathBuf>,
    steps: u32,
}

impl Soak {
    fn start(home: &Path, models: Vec<PathBuf>) -> Soak {
        let pty = Spawn::new(env!("CARGO_BIN_EXE_platen"))
            .env("PLATEN_HOME", home)
            .arg("--ctx")
            .arg("512")
            .arg("--max-tokens")
            .arg("200")
            .arg("--model")
            .arg(&models[0])
            .size(100, 30)
            // Some of what is typed becomes the name of a file.
            .folder(home)
            .start();
        pty.wait_for_text("idle");
        Soak {
            pty,
            random: Random(42),
            models,
            steps: 0,
        }
    }

    /// Does anything, and asserts what must hold afterwards.
    fn step(&mut self) {
        self.steps += 1;
        match self.random.below(20) {
            0..5 => self.say(),
            5..9 => {
                let key = self.random.of(&KEYS);
                self.pty.keys(key);
            }
            9..11 => self.resize(),
            11 => self.paste(),
            12 => self.command("/new"),
            13 => {
                let command = self.random.of(&[
                    "/temp 0",
                    "/temp 1.5",
                    "/set top_k 5",
                    "/set seed 7",
                    "/set max_tokens 50",
                    "/set max_tokens 300",
                    "/system Be brief.",
                    "/system -",
                    "/regen",
                    "/save",
                    "/help",
                ]);
                self.command(command);
            }
            14 if self.random.below(6) == 0 => {
                let model = self.random.below(self.models.len());
                let command = format!("/model {}", self.models[model].display());
                self.command(&command);
            }
            14..16 => std::thread::sleep(Duration::from_millis(self.random.below(60) as u64)),
            16 => {
                // Everything closed and the draft emptied, as people do who no longer know where they are.
                self.clear();
            }
            _ => {
                let typed = self
                    .random
                    .of(&["w", "é", "👍🏽", " ", "/", "@", "\x01", "\x05"]);
                self.pty.keys(typed);
            }
        }
        self.holds();
    }

    fn say(&mut self) {
        let text = self.random.of(&SAYINGS);
        self.pty.keys(text);
        std::thread::sleep(Duration::from_millis(15));
        self.pty.keys("\r");
    }

    fn command(&mut self, command: &str) {
        self.clear();
        self.pty.keys(command);
        std::thread::sleep(Duration::from_millis(15));
        self.pty.keys("\r");
    }

    /// Closes what is open and empties the draft.
    fn clear(&mut self) {
        for _ in 0..2 {
            self.pty.keys("\x1b");
            // What follows an Esc at once is a key with Alt.
            std::thread::sleep(Duration::from_millis(50));
        }
        // With a draft, Ctrl-C empties it; without, it would ask whether to quit.
        self.pty.keys("x");
        self.pty.keys("\x03");
    }

    fn paste(&mut self) {
        let line = self.random.of(&SAYINGS);
        let count = [1, 20, 400][self.random.below(3)];
        let text = format!("\x1b[200~{}\x1b[201~", format!("{line}\n").repeat(count));
        self.pty.keys(text);
    }

    fn resize(&mut self) {
        let columns = [1, 12, 24, 40, 80, 100, 200][self.random.below(7)];
        let rows = [1, 4, 10, 24, 60][self.random.below(5)];
        self.pty.resize(columns, rows);
    }

    /// The screen is whole, whatever is on it: something in its first and its last row, or that the window is too small.
    fn holds(&mut self) {
        self.pty.wait_for("a whole screen", |screen| {
            let contents = screen.contents();
            let lines: Vec<&str> = contents.lines().collect();
            let first = lines.first().copied().unwrap_or_default();
            let (rows, columns) = screen.size();
            let is_small = columns.get() < 24 || rows.get() < 8;
            let last = lines.get(usize::from(rows.get()) - 1).copied();
            is_small
                || (first.contains("platen") && last.is_some_and(|last| !last.trim().is_empty()))
        });
        if self.steps.is_multiple_of(50) {
            self.pty.forget();
            self.ends_of_files_and_threads_are_few();
        }
    }

    fn ends_of_files_and_threads_are_few(&self) {
        let process = Path::new("/proc").join(self.pty.pid().as_raw_nonzero().to_string());
        let count = |name: &str| std::fs::read_dir(process.join(name)).unwrap().count();
        assert!(count("fd") < 64, "{} open files", count("fd"));
        assert!(count("task") < 64, "{} threads", count("task"));
    }

    /// The memory in use, once everything is as at the start: no chat, no overlay, the first model.
    fn settled_kib(&mut self) -> u64 {
        self.pty.resize(100, 30);
        self.clear();
        self.pty.wait_for("the end of the reply", |screen| {
            let contents = screen.contents();
            contents.contains("idle") || contents.contains("no model")
        });
        let command = format!("/model {}", self.models[0].display());
        self.command(&command);
        // An Esc before the model is there would stop the loading.
        self.pty.wait_for_text("idle");
        self.command("/new");
        self.pty.wait_for_quiet(Duration::from_millis(300));
        self.pty.wait_for_text("idle");
        let status = Path::new("/proc").join(self.pty.pid().as_raw_nonzero().to_string());
        let status = std::fs::read_to_string(status.join("status")).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

#[test]
fn whatever_a_person_does_the_program_holds() {
    let home = tempfile::tempdir().unwrap();
    let models = [TinyKind::Llama, TinyKind::Gemma3, TinyKind::Lfm2]
        .map(|kind| write_in(kind, home.path()))
        .to_vec();
    let mut soak = Soak::start(home.path(), models);
    let minutes = std::env::var("PLATEN_SOAK_MINUTES").ok();
    let minutes = minutes.map(|minutes| minutes.parse::<u64>().unwrap());
    match minutes {
        None => (0..STEPS).for_each(|_| soak.step()),
        Some(minutes) => soak_for(&mut soak, Duration::from_mins(minutes)),
    }
    let end = soak.settled_kib();
    println!("{} steps, {end} KiB at the end", soak.steps);
    let mut pty = soak.pty;
    pty.assert_quits_by("\x04");
    let log = std::fs::read_to_string(home.path().join("logs/platen.log")).unwrap();
    assert!(!log.contains("panicked"), "{log}");
    let store = Store::open(&home.path().join("data/chats.db")).unwrap();
    assert_eq!(store.recovered, None);
    store.store.check().unwrap();
    assert!(!store.store.chats().unwrap().is_empty());
}

/// Goes on for a time; the memory at the end is at most 5 % more than the most in the first ten minutes.
fn soak_for(soak: &mut Soak, span: Duration) {
    let start = Instant::now();
    let (mut at_first, mut at_last, mut next) = (0, 0, Duration::ZERO);
    while start.elapsed() < span {
        soak.step();
        if start.elapsed() > next {
            next += Duration::from_secs(30);
            at_last = soak.settled_kib();
            if start.elapsed() < BEGINNING {
                at_first = at_first.max(at_last);
            }
            println!("{:?}: {} steps, {at_last} KiB", start.elapsed(), soak.steps);
        }
    }
    assert!(
        at_last * 100 <= at_first * 105,
        "{at_first} KiB at most in the first ten minutes, {at_last} KiB at the end"
    );
}
