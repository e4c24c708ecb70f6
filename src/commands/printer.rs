//! What a reply looks like without a screen: its text or its events on standard output, its numbers on standard
//! error. Text comes from a model and goes to terminals, so it carries nothing that steers one.

use std::io::{self, Write};

use crate::cli::{Report, StatsFormat};
use crate::engine::event::Event;
use crate::engine::stats::TurnStats;
use crate::text::sanitize;

use super::headless::{Listener, notice};

/// Writes replies as they come.
pub struct Printer<'a> {
    out: &'a mut dyn Write,
    report: Report,
    ends_with_newline: bool,
}

impl<'a> Printer<'a> {
    /// A printer onto `out`.
    pub fn new(out: &'a mut dyn Write, report: Report) -> Self {
        Printer {
            out,
            report,
            ends_with_newline: true,
        }
    }

    /// Ends a reply: a newline where it has none, and its numbers.
    ///
    /// # Errors
    /// What it writes to is gone.
    pub fn end_reply(&mut self, stats: &TurnStats) -> io::Result<()> {
        if self.report.events.is_none() && !self.ends_with_newline {
            self.out.write_all(b"\n")?;
        }
        self.ends_with_newline = true;
        self.out.flush()?;
        match self.report.stats {
            StatsFormat::None => Ok(()),
            StatsFormat::Text => writeln!(io::stderr(), "{}", line_for_people(stats)),
            StatsFormat::Json => writeln!(io::stderr(), "{}", json_line(stats)?),
        }
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.ends_with_newline = text.ends_with('\n');
        self.out.write_all(sanitize::neutral(text).as_bytes())?;
        self.out.flush()
    }
}

impl Listener for Printer<'_> {
    fn on_event(&mut self, event: &Event) -> io::Result<()> {
        if let Event::Notice { text } = event {
            notice(text);
        }
        if self.report.events.is_some() {
            let line = json_line(event)?;
            writeln!(self.out, "{line}")?;
            return self.out.flush();
        }
        match event {
            Event::Token { token, .. } => self.text(&token.text),
            Event::Finished { tail, .. } => self.text(tail),
            _ => Ok(()),
        }
    }
}

/// A value as one line of JSON in which every character that could steer a terminal is escaped.
///
/// # Errors
/// A value that JSON can't hold.
pub fn json_line(value: &impl serde::Serialize) -> io::Result<String> {
    use std::fmt::Write as _;
    let json = serde_json::to_string(value)?;
    let mut line = String::with_capacity(json.len());
    for character in json.chars() {
        if sanitize::is_dangerous(character) {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                let _ = write!(line, "\\u{unit:04x}");
            }
        } else {
            line.push(character);
        }
    }
    Ok(line)
}

/// The numbers of a turn in one line.
#[must_use]
pub fn line_for_people(stats: &TurnStats) -> String {
    let rate = |rate: Option<f64>| rate.map_or("–".to_owned(), |rate| format!("{rate:.1}"));
    let ttft = stats
        .ttft_ms
        .map_or("–".to_owned(), |ttft| format!("{ttft:.0}"));
    format!(
        "TTFT {ttft} ms · prefill {} tok/s ({} read, {} reused) · decode {} tok/s ({} tok) · cache {}/{}",
        rate(stats.prefill_tok_s),
        stats.read_tokens,
        stats.reused_tokens,
        rate(stats.decode_tok_s),
        stats.generated_tokens,
        stats.cache.used,
        stats.cache.size,
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

    use super::*;

    #[test]
    fn json_carries_no_control_and_reads_back_the_same() {
        let text = "a\u{1b}]52;c;QQ==\u{7}\u{9b}2J\u{202e}b\u{7f}\u{e0041}";
        let line = json_line(&text).unwrap();
        assert!(
            line.chars()
                .all(|character| !sanitize::is_dangerous(character)),
            "{line:?}"
        );
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
    }
}
