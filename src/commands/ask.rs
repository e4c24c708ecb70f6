//! `platen ask`: one prompt, one answer.

use std::io::Write;
use std::path::Path;

use super::headless::{Headless, opening};
use super::printer::Printer;
use crate::cli::Report;
use crate::config::Config;
use crate::engine::token::{PromptMessage, Role};

/// Answers `prompt` with the model at `path`.
///
/// # Errors
/// The model can't be loaded, the answer failed, or `out` is gone.
pub fn run(
    path: &Path,
    config: &Config,
    prompt: String,
    report: Report,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut printer = Printer::new(out, report);
    let mut engine = Headless::open(path, config, &mut printer)?;
    let mut messages = opening(config);
    messages.push(PromptMessage::new(Role::User, prompt));
    let reply = engine.reply(&messages, config, &mut printer)?;
    printer.end_reply(&reply.stats)?;
    reply.check()
}
