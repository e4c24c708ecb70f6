//! The real loop, terminal and crash handling around an engine that needs no model: what the terminal tests drive.
//! `SCRIPT` says how the engine behaves; see `engine::Script`.

mod engine;
mod screen;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use platen::app::App;
use platen::chat::keeper::Setup;
use platen::chat::store::Store;
use platen::config::Config;
use platen::llama::crash;
use platen::logging::LogSink;
use platen::models::discover::FoundModel;
use platen::models::download::DownloadEvent;
use platen::runtime::{Library, Program, Session, run};
use platen::ui::palette::Palette;

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

/// Runs the program's own screen where `SCRIPT_SCREEN` is `app`, else the bare one.
fn main() -> anyhow::Result<ExitCode> {
    crash::silence_backtraces();
    let log = match std::env::var_os("SCRIPT_LOG") {
        Some(dir) => LogSink::open(&PathBuf::from(dir))?,
        None => LogSink::in_memory(),
    };
    log.install()?;
    let ending = match std::env::var("SCRIPT_SCREEN").as_deref() {
        Ok("app") => {
            let config = Config {
                model: Some("/scripted.gguf".into()),
                ..Config::default()
            };
            let palette = match std::env::var("NO_COLOR").as_deref() {
                Ok("") | Err(_) => Palette::Ansi,
                Ok(_) => Palette::Mono,
            };
            let mut app = App::new(&config, (80, 24)).with_palette(palette);
            let chats = std::env::var_os("SCRIPT_CHATS").map(|file| {
                let path = PathBuf::from(file);
                Setup {
                    store: Store::open(&path),
                    usual_path: Some(path.clone()),
                    path: Some(path),
                    resumed: None,
                }
            });
            if chats.is_some() {
                app = app.with_keeping();
            }
            run(session(app, chats, log))?
        }
        _ => run(session(screen::Screen::default(), None, log))?,
    };
    Ok(ExitCode::from(ending.exit_code()))
}

fn session<P: Program>(program: P, chats: Option<Setup>, log: LogSink) -> Session<P, engine::Link> {
    let script = engine::Script::of_environment();
    Session {
        program,
        spawn_engine: Box::new(move || Ok(engine::spawn(script))),
        library: Arc::new(EmptyLibrary),
        chats,
        log,
    }
}
