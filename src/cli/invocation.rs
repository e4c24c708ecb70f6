//! What a command line can ask for, free of how it is typed.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use clap_complete::Shell;

use super::Cli;
use super::flags::ChatName;
use super::prompt_source::PromptSource;
use super::terminals::Terminals;
use crate::config::Layer;
use crate::engine::options::KvType;

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// What is written to standard error after a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum StatsFormat {
    /// Nothing.
    #[default]
    None,
    /// A line for people.
    Text,
    /// A line of JSON.
    Json,
}

/// Whether engine events are written to standard output in place of the reply's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EventsFormat {
    /// A line of JSON for each event.
    Json,
}

/// Where the chat takes place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatSurface {
    /// The whole screen.
    Screen,
    /// A line of standard input is a turn, the answers go to standard output.
    Plain,
}

/// What is reported besides the reply's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Numbers, on standard error.
    pub stats: StatsFormat,
    /// Events, on standard output.
    pub events: Option<EventsFormat>,
}

/// What is wanted of the chats that were kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatsRequest {
    /// A list.
    List(Output),
    /// One chat.
    Show(ChatName, Output),
    /// One chat, for elsewhere.
    Export(ChatName, ExportFormat),
}

/// How a chat is written for elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Markdown: the branch that the chat stands at.
    Md,
    /// JSON: everything.
    Json,
}

/// What the command line asks for. `flags` is the strongest layer of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub enum Invocation {
    /// Chat.
    Chat {
        /// The flags, the model among them.
        flags: Layer,
        /// The chat to go on with; `None` begins a new one.
        resume: Option<ChatName>,
        /// Where.
        surface: ChatSurface,
        /// What else is written.
        report: Report,
    },
    /// One answer.
    Ask {
        /// The flags, the model among them.
        flags: Layer,
        /// Where the prompt comes from.
        prompt: PromptSource,
        /// What else is written.
        report: Report,
    },
    /// Look at the chats that were kept.
    Chats {
        /// The flags.
        flags: Layer,
        /// What is wanted.
        request: ChatsRequest,
    },
    /// List models.
    Models {
        /// How.
        output: Output,
    },
    /// Download a model.
    Pull {
        /// A catalogue name, `hf:ORG/REPO[:FILE]` or a URL.
        source: String,
    },
    /// Describe a model.
    Inspect {
        /// A path or a name.
        model: String,
        /// Context sizes in tokens; empty: the usual ones.
        contexts: Vec<u32>,
        /// Cache types; empty: the usual ones.
        kv_types: Vec<KvType>,
        /// How.
        output: Output,
    },
    /// Show what the model sees.
    Prompt {
        /// The flags, the model among them.
        flags: Layer,
        /// The conversation's file; `-` is standard input.
        messages: Option<PathBuf>,
    },
    /// Show the configuration.
    ConfigShow {
        /// The flags.
        flags: Layer,
    },
    /// Show where the configuration file is.
    ConfigPath,
    /// Check the configuration.
    ConfigCheck,
    /// Write a completion script.
    Completions {
        /// For this shell.
        shell: Shell,
    },
}

impl Invocation {
    /// Takes the command line apart.
    ///
    /// # Errors
    /// Help and version, which clap counts as errors too, and wrong use.
    pub fn parse<I, T>(arguments: I, terminals: Terminals) -> Result<Self, clap::Error>
    where
        I: IntoIterator<Item = T>,
        T: Into<std::ffi::OsString> + Clone,
    {
        Cli::try_parse_from(arguments)?.meaning(terminals)
    }
}
