//! The chat on the whole screen: puts the engine, the models of this machine, the log and the screen's state together.

mod begin;
mod power;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;

use crate::app::App;
use crate::app::state::Offer;
use crate::clock::SystemClock;
use crate::config::problem::ConfigError;
use crate::config::{Config, ReadAhead};
use crate::engine::event::EngineError;
use crate::engine::inference::Loader;
use crate::engine::local::LocalLoader;
use crate::engine::local::trial::TriedLoader;
use crate::llama::log;
use crate::logging::{LogSink, record};
use crate::models::catalogue;
use crate::models::discover::{FoundModel, Places, scan};
use crate::models::download::{DownloadEvent, PullRequest, pull};
use crate::paths::{NoHome, Paths};
use crate::runtime::{Ending, Library, Session};
use crate::ui::palette::Palette;

pub use begin::{Chosen, Resume};

/// Chats until the user leaves. `broken` is a configuration file that was left out; the screen says so.
///
/// # Errors
/// The terminal can't be taken over.
pub fn run(
    config: &Config,
    broken: Option<&ConfigError>,
    resume: Option<Resume>,
) -> anyhow::Result<Ending> {
    let paths = Paths::find();
    let sink = open_log(paths.as_ref().ok());
    sink.install().context("the log can't be set up")?;
    log::set_sink(record);
    let size = crossterm::terminal::size().unwrap_or((80, 24));
    let mut config = config.clone();
    let beginning = begin::begin(&mut config, paths.as_ref().ok(), resume)?;
    let mut app = App::new(&config, size)
        .with_palette(palette())
        .with_offers(offers());
    if let Some(error) = broken {
        app = app.with_problem(&EngineError::new(
            format!("The configuration file was left out: {error}."),
            "Mend it and start again; platen config check shows every problem.",
        ));
    }
    let reads_ahead = match config.generation.read_ahead {
        ReadAhead::On => true,
        ReadAhead::Off => false,
        ReadAhead::Auto => !power::is_on_battery(),
    };
    if reads_ahead {
        app = app.with_read_ahead();
    }
    let (app, chats) = beginning.apply(app);
    let loader = loader(paths.as_ref().ok());
    crate::runtime::run(Session {
        program: app,
        chats,
        spawn_engine: Box::new(move || {
            crate::engine::spawn(loader, Arc::new(SystemClock))
                .context("the engine thread can't be started")
        }),
        library: Arc::new(Machine { paths }),
        log: sink,
    })
}

/// Tries files that are new in a process of their own first, where the system says which program this is.
fn loader(paths: Option<&Paths>) -> Box<dyn Loader> {
    match std::env::current_exe() {
        Ok(program) => Box::new(TriedLoader::new(program, paths.map(Paths::tried_file))),
        Err(error) => {
            tracing::warn!("no trials, for this program's own file is unknown: {error}");
            Box::new(LocalLoader::default())
        }
    }
}

/// Colours, unless `NO_COLOR` says none (<https://no-color.org>: any value but an empty one).
fn palette() -> Palette {
    match std::env::var_os("NO_COLOR") {
        Some(value) if !value.is_empty() => Palette::Mono,
        _ => Palette::Ansi,
    }
}

/// The log in its file, or in memory where there is no file to be had.
fn open_log(paths: Option<&Paths>) -> LogSink {
    paths
        .and_then(|paths| LogSink::open(&paths.log_dir).ok())
        .unwrap_or_else(LogSink::in_memory)
}

fn offers() -> Vec<Offer> {
    let mut entries: Vec<_> = catalogue::entries().iter().collect();
    entries.sort_by_key(|entry| !entry.default);
    entries
        .into_iter()
        .map(|entry| Offer {
            name: entry.name.clone(),
            title: entry.title.clone(),
            bytes: entry.bytes,
            licence: entry.licence.clone(),
            description: entry.description.clone(),
        })
        .collect()
}

/// The models of this machine.
struct Machine {
    paths: Result<Paths, NoHome>,
}

impl Machine {
    fn models_dir(&self) -> Result<PathBuf, NoHome> {
        self.paths
            .as_ref()
            .map(|paths| paths.models_dir.clone())
            .map_err(|none| *none)
    }
}

impl Library for Machine {
    fn scan(&self) -> Vec<FoundModel> {
        // Without a home there are still the folders that the environment names.
        let own = self.models_dir().unwrap_or_default();
        scan(&Places::from_env(own, Vec::new()))
    }

    fn download(&self, name: &str, report: &mut dyn FnMut(DownloadEvent), cancelled: &AtomicBool) {
        let entry = catalogue::find(name);
        match (entry, self.models_dir()) {
            (Some(entry), Ok(folder)) => {
                // How it ended is its last event.
                let _ = pull(&PullRequest::from(entry), &folder, cancelled, report);
            }
            (None, _) => report(DownloadEvent::Failed {
                message: format!("The catalogue has no model called {name}."),
            }),
            (_, Err(none)) => report(DownloadEvent::Failed {
                message: none.to_string(),
            }),
        }
    }
}
