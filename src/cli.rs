//! The command line. The derive structs hold what was typed; [`Invocation`] is what it asks for. Nothing here
//! reads a file or starts work.

pub mod flags;
mod invocation;
pub mod prompt_source;
pub mod terminals;

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::config::{Layer, Origin};
use crate::engine::options::KvType;
pub use invocation::{
    ChatSurface, ChatsRequest, EventsFormat, ExportFormat, Invocation, Output, Report, StatsFormat,
};

use flags::{ChatFlags, ChatName, ModelFlag, ReportFlags, RunFlags, SystemFlag, add_store};
use prompt_source::PromptSource;
use terminals::Terminals;

/// The line of help about what holds for all commands.
const AFTER_HELP: &str = "\
MODEL is a path or the name of a model on this machine (see platen models).
Every flag of a model has a key in the configuration file and a variable PLATEN_…; the flag is the strongest.
PLATEN_CONFIG names another configuration file; PLATEN_HOME holds all of platen's files below it.
Exit codes: 0 success, 1 the work failed, 2 wrong use.";

/// A terminal chat for local GGUF models that shows inference while it happens.
#[derive(Debug, Parser)]
#[command(name = "platen", version, about, after_help = AFTER_HELP, max_term_width = 100)]
#[command(disable_help_subcommand = true)]
#[command(override_usage = "platen [OPTIONS] [MODEL]\n       platen <COMMAND>")]
pub struct Cli {
    #[command(subcommand)]
    command: Option<CliCommand>,
    #[command(flatten)]
    chat: ChatArgs,
}

#[derive(Debug, clap::Args)]
struct ChatArgs {
    /// The model to chat with
    #[arg(value_name = "MODEL", conflicts_with = "model")]
    model_name: Option<String>,
    #[command(flatten)]
    model: ModelFlag,
    /// A line of standard input is a turn; the answers go to standard output (as when either is no terminal)
    #[arg(long)]
    plain: bool,
    #[command(flatten)]
    report: ReportFlags,
    #[command(flatten)]
    chats: ChatFlags,
    #[command(flatten)]
    run: RunFlags,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Answer one prompt
    #[command(after_help = "\
Without PROMPT, or with -, the prompt is read from standard input. With PROMPT and something piped in, what \
is piped in follows the prompt after a blank line:\n\n  platen ask \"Explain this error\" < build.log")]
    Ask {
        /// The prompt; - reads it from standard input
        #[arg(allow_hyphen_values = false)]
        prompt: Option<String>,
        #[command(flatten)]
        model: ModelFlag,
        #[command(flatten)]
        report: ReportFlags,
        #[command(flatten)]
        run: RunFlags,
    },
    /// List the models on this machine, whichever tool downloaded them
    Models {
        /// Write JSON
        #[arg(long)]
        json: bool,
    },
    /// Download a model
    Pull {
        /// A name of the catalogue, hf:ORG/REPO[:FILE], or a URL
        #[arg(value_name = "NAME|hf:ORG/REPO[:FILE]|URL")]
        source: String,
    },
    /// Show a model's metadata and the memory that a context will cost
    Inspect {
        /// A path or the name of a model
        model: String,
        /// Context sizes to reckon with, in tokens
        #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(16..=4_194_304))]
        ctx: Vec<u32>,
        #[arg(help = "Element types of the KV cache to reckon with: f32, f16, bf16, q8_0")]
        #[arg(long, value_name = "TYPE,TYPE", value_delimiter = ',')]
        kv: Vec<KvType>,
        /// Write JSON
        #[arg(long)]
        json: bool,
    },
    /// Show exactly what the model sees: the text and the token ids
    Prompt {
        /// A path or the name of a model
        model: String,
        /// A conversation: a JSON list of {"role", "content"}; - reads it from standard input
        #[arg(long, value_name = "FILE.json")]
        messages: Option<PathBuf>,
        #[command(flatten)]
        system: SystemFlag,
    },
    /// List, show or export the chats that were kept
    Chats {
        #[command(subcommand)]
        command: Option<ChatsCommand>,
        /// Write JSON
        #[arg(long, global = true)]
        json: bool,
        /// Look into this file
        #[arg(id = "chats_store", long = "store", value_name = "FILE", global = true)]
        store: Option<PathBuf>,
    },
    /// Show or check the configuration
    Config {
        #[command(subcommand)]
        command: Option<ConfigCommand>,
    },
    /// Write a completion script for a shell to standard output
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[derive(Debug, Subcommand)]
enum ChatsCommand {
    /// List all chats, the one that changed last first
    List,
    /// Show a chat
    Show {
        /// The chat's number, or last
        chat: ChatName,
    },
    /// Write a chat to standard output
    Export {
        /// The chat's number, or last
        chat: ChatName,
        /// md or json; json holds everything, alternatives and token ids included
        #[arg(long, value_name = "FORMAT", hide_possible_values = true)]
        format: Option<ExportFormat>,
    },
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Show every setting and where its value comes from
    Show {
        #[command(flatten)]
        model: ModelFlag,
        #[command(flatten)]
        run: RunFlags,
    },
    /// Show where the configuration file is
    Path,
    /// Check the configuration file and the environment
    Check,
}

impl Cli {
    /// What was asked for.
    ///
    /// # Errors
    /// Flags that don't go together, or a prompt that is missing.
    pub fn meaning(self, terminals: Terminals) -> Result<Invocation, clap::Error> {
        let Some(command) = self.command else {
            return self.chat.meaning(terminals);
        };
        if let Some(early) = self.chat.first_given() {
            return Err(wrong_use(&format!(
                "{early} stands before the command; it must stand after it"
            )));
        }
        Ok(match command {
            CliCommand::Ask {
                prompt,
                model,
                report,
                run,
            } => Invocation::Ask {
                flags: run.layer(model.model),
                prompt: PromptSource::new(prompt, terminals)
                    .map_err(|message| wrong_use(&message))?,
                report: report.into(),
            },
            CliCommand::Models { json } => Invocation::Models {
                output: output(json),
            },
            CliCommand::Pull { source } => Invocation::Pull { source },
            CliCommand::Inspect {
                model,
                ctx,
                kv,
                json,
            } => Invocation::Inspect {
                model,
                contexts: ctx,
                kv_types: kv,
                output: output(json),
            },
            CliCommand::Prompt {
                model,
                messages,
                system,
            } => Invocation::Prompt {
                flags: system.layer(model),
                messages,
            },
            CliCommand::Chats {
                command,
                json,
                store,
            } => {
                let mut flags = Layer::new();
                add_store(store, &mut flags);
                let request = chats(command.as_ref(), json);
                Invocation::Chats { flags, request }
            }
            CliCommand::Config { command } => match command {
                None => Invocation::ConfigShow {
                    flags: Layer::new(),
                },
                Some(ConfigCommand::Show { model, run }) => Invocation::ConfigShow {
                    flags: run.layer(model.model),
                },
                Some(ConfigCommand::Path) => Invocation::ConfigPath,
                Some(ConfigCommand::Check) => Invocation::ConfigCheck,
            },
            CliCommand::Completions { shell } => Invocation::Completions { shell },
        })
    }

    /// The command line's grammar, for completions.
    #[must_use]
    pub fn grammar() -> clap::Command {
        Cli::command()
    }
}

impl ChatArgs {
    fn first_given(&self) -> Option<String> {
        let model = self.model_name.as_ref().map(|name| format!("'{name}'"));
        let plain = self.plain.then(|| "--plain".to_owned());
        let report = self.report.first_given().map(str::to_owned);
        let flag = || {
            self.run
                .clone()
                .layer(self.model.model.clone())
                .into_values()
                .next()
        };
        let chats = self.chats.first_given().map(str::to_owned);
        model
            .or(plain)
            .or(report)
            .or(chats)
            .or_else(|| match flag()?.1 {
                Origin::Flag(flag) => Some(flag.to_owned()),
                Origin::Default | Origin::File { .. } | Origin::Environment(_) => None,
            })
    }

    fn meaning(self, terminals: Terminals) -> Result<Invocation, clap::Error> {
        let surface = if self.plain || !terminals.can_show_screen() {
            ChatSurface::Plain
        } else {
            ChatSurface::Screen
        };
        let report = Report::from(self.report);
        if surface == ChatSurface::Screen && report != Report::default() {
            return Err(wrong_use(
                "--stats and --events need --plain: the screen shows the numbers itself",
            ));
        }
        if surface == ChatSurface::Plain
            && let Some(flag) = self.chats.first_given()
        {
            return Err(wrong_use(&format!(
                "{flag} needs the screen: a plain chat is not kept"
            )));
        }
        let mut flags = self.run.layer(self.model_name.or(self.model.model));
        let resume = self.chats.resume();
        self.chats.add_to(&mut flags);
        Ok(Invocation::Chat {
            flags,
            resume,
            surface,
            report,
        })
    }
}

fn chats(command: Option<&ChatsCommand>, json: bool) -> ChatsRequest {
    match command {
        None | Some(ChatsCommand::List) => ChatsRequest::List(output(json)),
        Some(ChatsCommand::Show { chat }) => ChatsRequest::Show(*chat, output(json)),
        Some(ChatsCommand::Export { chat, format }) => {
            let by_flag = if json {
                ExportFormat::Json
            } else {
                ExportFormat::Md
            };
            ChatsRequest::Export(*chat, format.unwrap_or(by_flag))
        }
    }
}

fn output(json: bool) -> Output {
    if json { Output::Json } else { Output::Text }
}

fn wrong_use(message: &str) -> clap::Error {
    Cli::command().error(ErrorKind::MissingRequiredArgument, message)
}

#[cfg(test)]
mod tests;
