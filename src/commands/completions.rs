//! `platen completions`: the shell's own way to complete platen's flags and commands.

use std::io::Write;

use clap_complete::Shell;

use crate::cli::Cli;

/// Writes the completion script of a shell.
///
/// # Errors
/// `out` can't be written to.
pub fn run(shell: Shell, out: &mut impl Write) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::grammar(), "platen", &mut script);
    out.write_all(&script)?;
    Ok(())
}
