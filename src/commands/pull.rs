//! `platen pull`: downloads a model and writes its path to standard output.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::output;
use crate::failure;
use crate::models::download::{DownloadEvent, Network, PullError, PullRequest, pull_from};
use crate::runtime::signals;
use crate::text::sanitize::neutral_line;
use crate::text::secrets::without_secrets;

/// How long a stopped download may take to end by itself.
const PATIENCE: Duration = Duration::from_secs(1);

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressStyle {
    /// One line that is written over: for a terminal.
    Bar,
    /// A few plain lines: for anything else.
    Lines,
}

/// Fetches `what` (a catalogue name, `hf:ORG/REPO[:FILE]` or an address) into `folder`. The path goes to `out`,
/// progress to `err`.
///
/// # Errors
/// The model can't be had, or `out` can't be written to.
pub fn run(
    what: &str,
    folder: &Path,
    style: ProgressStyle,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    watch_for_signals(Arc::clone(&stop)).context("cannot watch for signals")?;
    let what = (what, folder);
    run_on(&Network::from_env(), what, &stop, style, (out, err))
}

/// Sets `stop` when the user or the system asks the program to end. A source that keeps silent would notice only after
/// seconds: then the program ends by itself, and what has arrived is kept as after any other end.
fn watch_for_signals(stop: Arc<AtomicBool>) -> std::io::Result<()> {
    signals(move |signal| {
        stop.store(true, Ordering::Relaxed);
        std::thread::sleep(PATIENCE);
        let _ = failure::report(&PullError::Cancelled.into());
        std::process::exit(128 + signal.number());
    })
}

fn run_on(
    network: &Network,
    (what, folder): (&str, &Path),
    stop: &AtomicBool,
    style: ProgressStyle,
    (out, err): (&mut dyn Write, &mut dyn Write),
) -> anyhow::Result<()> {
    let request = PullRequest::parse(what, network)?;
    let mut progress = Progress {
        style,
        err,
        shown: None,
        measured: None,
        tenth: 0,
    };
    if request.sha256.is_none() {
        progress.line(&format!(
            "{}: no checksum is published for it, so its content can't be checked",
            neutral_line(&without_secrets(what))
        ));
    }
    let path = pull_from(network, &request, folder, stop, &mut |event| {
        progress.show(&event);
    })?;
    writeln!(out, "{}", neutral_line(&path.display().to_string()))?;
    Ok(())
}

struct Progress<'err> {
    style: ProgressStyle,
    err: &'err mut dyn Write,
    /// When the bar was last drawn, while it stands.
    shown: Option<Instant>,
    /// The first bytes seen and when: the rate is measured from there.
    measured: Option<(u64, Instant)>,
    tenth: u64,
}

impl Progress<'_> {
    fn show(&mut self, event: &DownloadEvent) {
        match event {
            DownloadEvent::Trying { source } => {
                self.measured = None;
                self.tenth = 0;
                self.line(&format!("from {}", neutral_line(source)));
            }
            DownloadEvent::Progress { done, total } => self.progress(*done, *total),
            DownloadEvent::Verifying => self.line("checking the checksum"),
            // The command's result says these.
            DownloadEvent::Done { .. } | DownloadEvent::Failed { .. } => self.end_bar(),
        }
    }

    fn progress(&mut self, done: u64, total: u64) {
        let now = Instant::now();
        let (first, since) = *self.measured.get_or_insert((done, now));
        let percent = (done * 100).checked_div(total);
        match self.style {
            ProgressStyle::Lines => {
                let tenth = percent.unwrap_or(0) / 10;
                if tenth > self.tenth {
                    self.tenth = tenth;
                    self.line(&format!("{} %", tenth * 10));
                }
            }
            ProgressStyle::Bar => {
                let soon = self
                    .shown
                    .is_some_and(|shown| now.duration_since(shown) < Duration::from_millis(100));
                if soon && done != total {
                    return;
                }
                self.shown = Some(now);
                let seconds = now.duration_since(since).as_secs_f64();
                let rate = match done.checked_sub(first) {
                    Some(bytes) if seconds >= 0.5 => per_second(bytes, seconds),
                    _ => String::new(),
                };
                let text = match percent {
                    Some(percent) => {
                        format!(
                            "{} {percent:>3} %  {} of {}{rate}",
                            bar(percent),
                            output::size(done),
                            output::size(total)
                        )
                    }
                    None => format!("{}{rate}", output::size(done)),
                };
                let _ = write!(self.err, "\r{text}\x1b[K").and_then(|()| self.err.flush());
            }
        }
    }

    /// Progress that can't be shown is no reason to stop.
    fn line(&mut self, text: &str) {
        self.end_bar();
        let _ = writeln!(self.err, "{text}");
    }

    fn end_bar(&mut self) {
        if self.shown.take().is_some() {
            let _ = writeln!(self.err);
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate in whole bytes is exact enough"
)]
fn per_second(bytes: u64, seconds: f64) -> String {
    format!("  {}/s", output::size((bytes as f64 / seconds) as u64))
}

fn bar(percent: u64) -> String {
    const WIDTH: usize = 25;
    let full = usize::try_from(percent.min(100)).unwrap_or(0) * WIDTH / 100;
    format!("{}{}", "█".repeat(full), "░".repeat(WIDTH - full))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn offline() -> Network {
        Network {
            hub: "http://127.0.0.1:1".to_owned(),
            hub_token: None,
            pip: Vec::new(),
        }
    }

    fn shown(style: ProgressStyle, events: &[DownloadEvent]) -> String {
        let mut err = Vec::new();
        let mut progress = Progress {
            style,
            err: &mut err,
            shown: None,
            measured: None,
            tenth: 0,
        };
        for event in events {
            progress.show(event);
        }
        String::from_utf8(err).unwrap()
    }

    fn events() -> Vec<DownloadEvent> {
        let progress = (0..=100).map(|done| DownloadEvent::Progress {
            done: done << 20,
            total: 100 << 20,
        });
        let trying = DownloadEvent::Trying {
            source: "pip\u{1b}".to_owned(),
        };
        let done = DownloadEvent::Done { path: "x".into() };
        [trying]
            .into_iter()
            .chain(progress)
            .chain([DownloadEvent::Verifying, done])
            .collect()
    }

    #[test]
    fn without_a_terminal_progress_is_a_few_plain_lines() {
        let text = shown(ProgressStyle::Lines, &events());
        assert_eq!(text.lines().count(), 12, "{text}");
        assert!(text.starts_with("from pip␛\n10 %\n20 %\n"), "{text}");
        assert!(!text.contains(['\u{1b}', '\r']), "{text:?}");
    }

    #[test]
    fn on_a_terminal_progress_is_one_line_that_ends_before_the_next() {
        let text = shown(ProgressStyle::Bar, &events());
        assert!(text.contains(" 100 %  100.0 MiB of 100.0 MiB"), "{text:?}");
        assert!(
            text.ends_with("\x1b[K\nchecking the checksum\n"),
            "{text:?}"
        );
    }

    #[test]
    fn a_name_that_nobody_knows_is_an_error_and_prints_no_path() {
        let folder = tempfile::tempdir().unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let error = run_on(
            &offline(),
            ("nothing", folder.path()),
            &AtomicBool::new(false),
            ProgressStyle::Lines,
            (&mut out, &mut err),
        )
        .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("'nothing' is not in the catalogue (smollm2-135m"),
            "{error}"
        );
        assert_eq!((out, err), (Vec::new(), Vec::new()));
    }

    #[test]
    fn an_address_without_a_checksum_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let what = ("http://127.0.0.1:1/m.gguf", folder.path());
        let stop = AtomicBool::new(false);
        run_on(
            &offline(),
            what,
            &stop,
            ProgressStyle::Lines,
            (&mut out, &mut err),
        )
        .unwrap_err();
        let err = String::from_utf8(err).unwrap();
        assert!(err.contains("m.gguf: no checksum is published"), "{err}");
    }
}
