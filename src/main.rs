//! Parse, run, exit code.

use std::io::{BufReader, IsTerminal, Write, stderr, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use platen::cli::flags::ChatName;
use platen::cli::terminals::Terminals;
use platen::cli::{ChatSurface, Invocation};
use platen::commands::chat::{Chosen, Resume};
use platen::commands::chats::Reader;
use platen::commands::pull::ProgressStyle;
use platen::commands::{self, ask, chats, inspect, models, plain, prompt, pull};
use platen::config::file::ConfigFile;
use platen::config::{Config, Layer, Sources, environment};
use platen::engine::local::trial;
use platen::engine::prompt::apart;
use platen::failure;
use platen::keymap::Keymap;
use platen::llama::{crash, heap};
use platen::models::discover::{Places, resolve, resolve_default};
use platen::paths::Paths;

fn main() -> ExitCode {
    crash::silence_backtraces();
    heap::share();
    let first = std::env::args_os().nth(1);
    if first.as_deref() == Some(trial::ARGUMENT.as_ref()) {
        return match trial::run_child(stdin().lock(), stdout()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failure::report(&error.into()),
        };
    }
    if first.as_deref() == Some(apart::ARGUMENT.as_ref()) {
        return match apart::run_child(BufReader::new(stdin()), stdout()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failure::report(&error.into()),
        };
    }
    let invocation = match Invocation::parse(std::env::args_os(), Terminals::of_process()) {
        Ok(invocation) => invocation,
        Err(error) => return failure::report_clap(&error),
    };
    run(invocation).unwrap_or_else(|error| failure::report(&error))
}

fn run(invocation: Invocation) -> anyhow::Result<ExitCode> {
    let out = &mut stdout();
    match invocation {
        Invocation::Chat {
            flags,
            surface: ChatSurface::Plain,
            report,
            ..
        } => {
            let config = config(flags)?;
            plain::run(
                &model_of(&config)?,
                &config,
                report,
                &mut stdin().lock(),
                out,
            )
        }
        Invocation::Chat {
            flags,
            resume,
            surface: ChatSurface::Screen,
            ..
        } => return screen(flags, resume),
        Invocation::Ask {
            flags,
            prompt,
            report,
        } => {
            let config = config(flags)?;
            let model = model_of(&config)?;
            ask::run(&model, &config, prompt.read_from_process()?, report, out)
        }
        Invocation::Chats { flags, request } => {
            let config = config(flags)?;
            let path = match config.chats.file {
                Some(path) => path,
                None => Paths::find()?.chats_file(),
            };
            chats::run(&path, request, reader(), out, &mut stderr())
        }
        Invocation::Models { output } => models::run(&places()?, output, out, &mut stderr()),
        Invocation::Pull { source } => {
            let folder = Paths::find()?.models_dir;
            pull::run(&source, &folder, progress_style(), out, &mut stderr())
        }
        Invocation::Inspect {
            model,
            contexts,
            kv_types,
            output,
        } => inspect::run(
            &resolve(&model, &places()?)?,
            &contexts,
            &kv_types,
            output,
            out,
        ),
        Invocation::Prompt { flags, messages } => {
            let config = config(flags)?;
            prompt::run(&model_of(&config)?, &config, messages.as_deref(), out)
        }
        Invocation::ConfigShow { flags } => commands::config::show(&sources(flags), out),
        Invocation::ConfigPath => commands::config::path(&config_file(), out),
        Invocation::ConfigCheck => commands::config::check(&sources(Layer::new()), out),
        Invocation::Completions { shell } => commands::completions::run(shell, out),
    }?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The chat on the whole screen. A bad file is told there, so that it never keeps anybody from chatting.
fn screen(flags: Layer, resume: Option<ChatName>) -> anyhow::Result<ExitCode> {
    let chosen = Chosen {
        model: flags.contains_key("model"),
        system: flags.contains_key("system"),
    };
    let (loaded, broken) = platen::config::load_despite_file(&sources(flags))?;
    let resume = resume.map(|name| Resume { name, chosen });
    let ending = commands::chat::run(&loaded.config, broken.as_ref(), resume)?;
    Ok(ExitCode::from(ending.exit_code()))
}

fn config(flags: Layer) -> anyhow::Result<Config> {
    Ok(platen::config::load(&sources(flags))?.config)
}

fn model_of(config: &Config) -> anyhow::Result<PathBuf> {
    let places = places()?;
    Ok(match &config.model {
        Some(name) => resolve(name, &places)?,
        None => resolve_default(&places)?,
    })
}

fn places() -> anyhow::Result<Places> {
    Ok(Places::from_env(Paths::find()?.models_dir, Vec::new()))
}

fn reader() -> Reader {
    if stdout().is_terminal() {
        Reader::Terminal
    } else {
        Reader::Program
    }
}

fn progress_style() -> ProgressStyle {
    if stderr().is_terminal() {
        ProgressStyle::Bar
    } else {
        ProgressStyle::Lines
    }
}

fn sources(flags: Layer) -> Sources {
    Sources {
        file: config_file(),
        variables: environment::variables(),
        flags,
        check_binding,
    }
}

fn check_binding(action: &str, keys: &[String]) -> Result<(), String> {
    let binding = [(action.to_owned(), keys.to_vec())].into();
    Keymap::with_overrides(&binding)
        .map(|_| ())
        .map_err(|error| error.to_string())
}

fn config_file() -> ConfigFile {
    ConfigFile::choose(
        std::env::var_os("PLATEN_CONFIG"),
        Paths::find().ok().map(|paths| paths.config_file()),
    )
}
