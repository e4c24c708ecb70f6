//! What a reply looks like without a screen: its text or its events on standard output, its numbers on standard
//! error. Text comes from a model and goes to terminals, so it carries nothing that steers one.

use std::io::{self, Write};

use crate::cli::{Report, StatsFormat};
use crate::engine::event::{Event, StopReason};
use crate::engine::stats::TurnStats;
use crate::text::sanitize;

use super::headless::{Listener, notice};
use super::output::json_line;

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
        if self.report.events.is_none()
            && self.report.stats != StatsFormat::Json
            && let Some(text) = cut_off(stats.stop, stats.generated_tokens, stats.cache.size)
        {
            notice(&text);
        }
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

/// What a reader should know of a reply that is not whole, and what to do. Both counts are tokens.
fn cut_off(stop: StopReason, generated: u32, context: u32) -> Option<String> {
    match stop {
        StopReason::MaxTokens => Some(format!(
            "the reply was cut after {generated} tokens; --max-tokens allows more"
        )),
        StopReason::Context => Some(format!(
            "the context of {context} tokens is full and the reply was cut; --ctx allows more"
        )),
        StopReason::Eog | StopReason::Stop if generated == 0 => {
            Some("the model ended its turn without a word".to_owned())
        }
        StopReason::Eog
        | StopReason::Stop
        | StopReason::Cancelled
        | StopReason::Error
        | StopReason::Interrupted => None,
    }
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
    fn what_a_model_writes_steers_no_terminal_however_it_is_cut() {
        let evil = "a\u{1b}]52;c;QQ==\u{7}\u{1b}[2J\u{9b}31m\u{8}\u{7f}\u{202e}é\n\tb";
        let mut out = Vec::new();
        let report = Report {
            stats: StatsFormat::None,
            events: None,
        };
        let mut printer = Printer::new(&mut out, report);
        for letter in evil.chars() {
            printer.text(&letter.to_string()).unwrap();
        }
        let text = String::from_utf8(out).unwrap();
        let steers = |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || c == '\u{202e}';
        assert!(!text.contains(steers), "{text:?}");
        assert!(
            text.starts_with('a') && text.ends_with("é\n\tb"),
            "{text:?}"
        );
    }

    #[test]
    fn a_reply_that_is_not_whole_says_why_and_what_to_do() {
        let told = |stop, generated| cut_off(stop, generated, 256);
        assert_eq!(
            told(StopReason::MaxTokens, 5).as_deref(),
            Some("the reply was cut after 5 tokens; --max-tokens allows more")
        );
        assert_eq!(
            told(StopReason::Context, 5).as_deref(),
            Some("the context of 256 tokens is full and the reply was cut; --ctx allows more")
        );
        assert_eq!(
            told(StopReason::Eog, 0).as_deref(),
            Some("the model ended its turn without a word")
        );
        assert_eq!(told(StopReason::Eog, 5), None);
        assert_eq!(told(StopReason::Stop, 5), None);
    }
}
