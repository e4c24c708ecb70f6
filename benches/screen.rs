//! The whole program in a real terminal with a real model: how long a key takes to appear while a reply is being decoded
//! at full speed, what the interface's thread costs, the time to the first frame, and the memory beyond model and cache.
//! Prints figures; nothing here passes or fails by time.
//!
//! usage: `PLATEN_TEST_MODEL=model.gguf cargo bench --bench screen`
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a bench stops where it fails"
)]

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};

const KEYS: usize = 300;
const ROWS: NonZeroU16 = NonZeroU16::new(40).unwrap();
const COLUMNS: NonZeroU16 = NonZeroU16::new(140).unwrap();

struct Screen {
    parser: Arc<Mutex<vt100::Parser>>,
    bytes: Arc<Mutex<(u64, Option<Instant>)>>,
    input: Box<dyn Write + Send>,
    child: Box<dyn portable_pty::Child + Send + Sync>,
    started: Instant,
    _master: Box<dyn portable_pty::MasterPty + Send>,
}

impl Screen {
    fn start(model: &Path) -> Screen {
        let size = PtySize {
            rows: 40,
            cols: 140,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pty = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_platen"));
        command.args([
            "--model",
            model.to_str().unwrap(),
            "--temp",
            "1.5",
            "--max-tokens",
            "8000",
            "--seed",
            "1",
        ]);
        command.env("TERM", "xterm-256color");
        command.env("PLATEN_HOME", std::env::temp_dir().join("platen-bench"));
        let started = Instant::now();
        let child = pty.slave.spawn_command(command).unwrap();
        drop(pty.slave);
        let parser = Arc::new(Mutex::new(vt100::Parser::new(ROWS, COLUMNS, 0)));
        let bytes = Arc::new(Mutex::new((0, None)));
        let mut reader = pty.master.try_clone_reader().unwrap();
        let (shown, counted) = (Arc::clone(&parser), Arc::clone(&bytes));
        std::thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            while let Ok(len @ 1..) = reader.read(&mut buffer) {
                shown.lock().unwrap().process(&buffer[..len]);
                let mut counted = counted.lock().unwrap();
                counted.0 += len as u64;
                counted.1 = Some(Instant::now());
            }
        });
        Screen {
            parser,
            bytes,
            input: pty.master.take_writer().unwrap(),
            child,
            started,
            _master: pty.master,
        }
    }

    fn text(&self) -> String {
        self.parser.lock().unwrap().screen().contents()
    }

    fn wait(&self, what: &str, limit: Duration) -> Duration {
        let from = Instant::now();
        while !self.text().contains(what) {
            assert!(
                from.elapsed() < limit,
                "no {what:?} on the screen:\n{}",
                self.text()
            );
            std::thread::sleep(Duration::from_micros(200));
        }
        from.elapsed()
    }

    fn keys(&mut self, keys: &str) {
        self.input.write_all(keys.as_bytes()).unwrap();
        self.input.flush().unwrap();
    }

    fn pid(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// CPU time of the interface's thread, which is the process's first.
    fn ui_cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{0}/task/{0}/stat", self.pid())).unwrap();
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .unwrap()
            .1
            .split_whitespace()
            .collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 10)
    }

    fn status_kib(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

fn main() {
    let Some(model) = std::env::var_os("PLATEN_TEST_MODEL").map(PathBuf::from) else {
        println!("PLATEN_TEST_MODEL names no model; nothing to measure");
        return;
    };
    let mut screen = Screen::start(&model);
    while screen.bytes.lock().unwrap().1.is_none() {
        std::thread::sleep(Duration::from_micros(100));
    }
    println!(
        "first frame        {:6.1} ms after the start",
        screen.started.elapsed().as_secs_f64() * 1e3
    );
    screen.wait("idle", Duration::from_secs(30));
    idle(&screen);
    screen.keys("Write a very long story about a journey.\r");
    screen.wait("decoding", Duration::from_secs(30));
    typing(&mut screen);
    println!(
        "memory             peak {} MiB resident: {} MiB anonymous now, {} MiB of files",
        screen.status_kib("VmHWM:") >> 10,
        screen.status_kib("RssAnon:") >> 10,
        screen.status_kib("RssFile:") >> 10,
    );
    screen.keys("\u{1b}");
    screen.wait("idle", Duration::from_secs(10));
    screen.keys("\u{15}\u{4}");
    let status = screen.child.wait().unwrap();
    println!("left with          {status:?}");
}

fn idle(screen: &Screen) {
    std::thread::sleep(Duration::from_millis(500));
    let (before, cpu) = (screen.bytes.lock().unwrap().0, screen.ui_cpu());
    std::thread::sleep(Duration::from_secs(10));
    println!(
        "idle for 10 s      {} bytes drawn, {:.2} % of a core",
        screen.bytes.lock().unwrap().0 - before,
        screen.ui_cpu().saturating_sub(cpu).as_secs_f64() * 10.0
    );
}

fn typing(screen: &mut Screen) {
    let mut latencies = Vec::with_capacity(KEYS);
    let (from, cpu) = (Instant::now(), screen.ui_cpu());
    for at in 0..KEYS {
        if screen.text().contains("idle") {
            screen.keys("\u{15}Write another very long story.\r");
            screen.wait("decoding", Duration::from_secs(30));
        }
        // A marker that grows by one letter and is found at the cursor's row alone.
        let letter = char::from(b'a' + u8::try_from(at % 26).unwrap());
        let column = screen.parser.lock().unwrap().screen().cursor_position();
        let sent = Instant::now();
        screen.keys(&letter.to_string());
        while screen.parser.lock().unwrap().screen().cursor_position() == column {
            assert!(
                sent.elapsed() < Duration::from_secs(5),
                "the key never appeared"
            );
            std::thread::sleep(Duration::from_micros(100));
        }
        latencies.push(sent.elapsed());
        if at % 26 == 25 {
            screen.keys("\u{15}");
            std::thread::sleep(Duration::from_millis(100));
        }
        std::thread::sleep(Duration::from_millis(20 + (at as u64 * 7) % 60));
    }
    let span = from.elapsed();
    let used = screen.ui_cpu().saturating_sub(cpu);
    latencies.sort();
    let at = |percent: usize| latencies[(KEYS * percent).div_ceil(100) - 1].as_secs_f64() * 1e3;
    println!(
        "keys while decoding p50 {:.1} ms, p99 {:.1} ms, most {:.1} ms over {KEYS} keys",
        at(50),
        at(99),
        at(100)
    );
    println!(
        "interface thread   {:.1} % of a core while decoding and typing",
        used.as_secs_f64() / span.as_secs_f64() * 100.0
    );
    println!(
        "status             {}",
        screen.text().lines().next().unwrap_or_default().trim()
    );
}
