//! `platen config`: what holds and where it comes from, where the file is, and whether it is right.

use std::io::Write;

use crate::config::file::ConfigFile;
use crate::config::{Sources, load, show};
use crate::text::sanitize::neutral_line;

/// Writes every setting as TOML, with its origin as a comment.
///
/// # Errors
/// The configuration is wrong, or `out` can't be written to.
pub fn show(sources: &Sources, out: &mut impl Write) -> anyhow::Result<()> {
    let loaded = load(sources)?;
    if let Some(path) = sources.file.path() {
        let state = if path.exists() {
            ""
        } else {
            " (there is none)"
        };
        writeln!(out, "# The file: {}{state}\n", shown(path))?;
    }
    out.write_all(show::render(&loaded).as_bytes())?;
    Ok(())
}

/// Writes the path of the configuration file, which need not exist.
///
/// # Errors
/// `out` can't be written to.
pub fn path(file: &ConfigFile, out: &mut impl Write) -> anyhow::Result<()> {
    if let Some(path) = file.path() {
        writeln!(out, "{}", shown(path))?;
    }
    Ok(())
}

/// Checks the file and the environment.
///
/// # Errors
/// Everything that is wrong, or `out` can't be written to.
pub fn check(sources: &Sources, out: &mut impl Write) -> anyhow::Result<()> {
    load(sources)?;
    match sources.file.path() {
        Some(path) if path.exists() => writeln!(out, "{}: good", shown(path))?,
        Some(path) => writeln!(
            out,
            "{}: there is no such file; the defaults hold",
            shown(path)
        )?,
        None => writeln!(out, "no configuration file; the defaults hold")?,
    }
    Ok(())
}

fn shown(path: &std::path::Path) -> String {
    neutral_line(&path.display().to_string())
}
