//! The real loop, terminal and crash handling around an engine that needs no model: what the terminal tests drive.
//! `SCRIPT` says how the engine behaves; see `engine::Script`.

mod engine;
mod screen;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use platen::llama::crash;
use platen::logging::LogSink;
use platen::models::discover::FoundModel;
use platen::models::download::DownloadEvent;
use platen::runtime::{Library, Session, run};

struct EmptyLibrary;

impl Library for EmptyLibrary {
    fn scan(&self) -> Vec<FoundModel> {
        Vec::new()
    }

    fn download(&self, name: &str, report: &mut dyn FnMut(DownloadEvent), _: &AtomicBool) {
        report(DownloadEvent::Failed {
            message: format!("no source for {name}"),
        });
    }
}

fn main() -> anyhow::Result<ExitCode> {
    crash::silence_backtraces();
    let log = match std::env::var_os("SCRIPT_LOG") {
        Some(dir) => LogSink::open(&PathBuf::from(dir))?,
        None => LogSink::in_memory(),
    };
    log.install()?;
    let script = engine::Script::of_environment();
    let session = Session {
        program: screen::Screen::default(),
        spawn_engine: Box::new(move || Ok(engine::spawn(script))),
        library: Arc::new(EmptyLibrary),
        log,
    };
    Ok(ExitCode::from(run(session)?.exit_code()))
}
