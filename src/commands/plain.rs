//! Chat without a screen: a line of standard input is a turn, the answers go to standard output one after the other.

use std::io::{BufRead, IsTerminal, Write, stderr, stdin};
use std::path::Path;

use super::headless::{Headless, notice, opening};
use super::printer::Printer;
use crate::cli::Report;
use crate::config::Config;
use crate::engine::token::{PromptMessage, Role};
use crate::failure::told;

/// Chats until the input ends. A turn that fails is told on standard error and left out of the conversation.
///
/// # Errors
/// The model can't be loaded, a line is no text, or `out` is gone; after the input's end, if any turn failed.
pub fn run(
    path: &Path,
    config: &Config,
    report: Report,
    input: &mut dyn BufRead,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut printer = Printer::new(out, report);
    let mut engine = Headless::open(path, config, &mut printer)?;
    let mut messages = opening(config);
    let mut failed = 0_u32;
    let mut line = String::new();
    loop {
        prompt_sign()?;
        line.clear();
        if input.read_line(&mut line)? == 0 {
            break;
        }
        let text = line.trim_end_matches(['\n', '\r']);
        if text.trim().is_empty() {
            continue;
        }
        messages.push(PromptMessage::new(Role::User, text));
        match engine.reply(&messages, config, &mut printer) {
            Ok(reply) => {
                printer.end_reply(&reply.stats)?;
                if let Err(error) = reply.check() {
                    failed += 1;
                    notice(&told(&error));
                }
                messages.extend(reply.message);
            }
            Err(error) if error.is::<std::io::Error>() => return Err(error),
            Err(error) => {
                failed += 1;
                messages.pop();
                notice(&told(&error));
            }
        }
    }
    match failed {
        0 => Ok(()),
        1 => anyhow::bail!("one turn failed"),
        many => anyhow::bail!("{many} turns failed"),
    }
}

/// Where a person types, a sign that it is their turn.
fn prompt_sign() -> std::io::Result<()> {
    if stdin().is_terminal() && stderr().is_terminal() {
        stderr().write_all(b"> ")?;
    }
    Ok(())
}
