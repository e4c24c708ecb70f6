//! Parse, run, exit code.

use std::io::{Write, stdout};
use std::process::ExitCode;

use platen::cli::Invocation;
use platen::cli::terminals::Terminals;
use platen::commands;
use platen::config::file::ConfigFile;
use platen::config::{Layer, Sources, environment};
use platen::failure;
use platen::paths::Paths;

fn main() -> ExitCode {
    let invocation = match Invocation::parse(std::env::args_os(), Terminals::of_process()) {
        Ok(invocation) => invocation,
        Err(error) => return failure::report_clap(&error),
    };
    let result = run(invocation).and_then(|()| Ok(stdout().flush()?));
    result.map_or_else(|error| failure::report(&error), |()| ExitCode::SUCCESS)
}

fn run(invocation: Invocation) -> anyhow::Result<()> {
    match invocation {
        Invocation::Chat { .. }
        | Invocation::Ask { .. }
        | Invocation::Models { .. }
        | Invocation::Pull { .. }
        | Invocation::Inspect { .. }
        | Invocation::Prompt { .. } => anyhow::bail!("this build can't run models"),
        Invocation::ConfigShow { flags } => commands::config::show(&sources(flags), &mut stdout()),
        Invocation::ConfigPath => commands::config::path(&config_file(), &mut stdout()),
        Invocation::ConfigCheck => commands::config::check(&sources(Layer::new()), &mut stdout()),
        Invocation::Completions { shell } => commands::completions::run(shell, &mut stdout()),
    }
}

fn sources(flags: Layer) -> Sources {
    Sources {
        file: config_file(),
        variables: environment::variables(),
        flags,
        check_binding: |_, _| Ok(()),
    }
}

fn config_file() -> ConfigFile {
    ConfigFile::choose(
        std::env::var_os("PLATEN_CONFIG"),
        Paths::find().ok().map(|paths| paths.config_file()),
    )
}
