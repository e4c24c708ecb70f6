//! The title bar: which model, and what it is doing.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::app::App;
use crate::app::state::{Download, DownloadStage, EngineState, Scan, Turn, Wish};
use crate::chat::keeper::Keeping;
use crate::text;

use super::format;
use super::parts::{DOT, share};
use super::put_lines;

/// Draws the title bar.
pub fn draw(frame: &mut Frame, app: &App, area: Rect) {
    let width = usize::from(area.width);
    let (sign, words, style) = phase(app, width);
    let warning = unsaved(app);
    let state = text::fit(
        &format!("{sign} {words}"),
        width.saturating_sub(text::width(warning) + 1),
    );
    let room = width.saturating_sub(text::width(&state) + text::width(warning) + 3);
    let name = text::fit(&model(app), room.saturating_sub(text::width(" platen · ")));
    let mut spans = Vec::new();
    let mut used = 0;
    if room >= 7 {
        spans.push(Span::styled(" platen", app.palette.accent()));
        used += 7;
        if text::width(&name) > 3 {
            used += text::width(DOT) + text::width(&name);
            spans.push(Span::styled(DOT, app.palette.dim()));
            spans.push(Span::styled(name, app.palette.strong()));
        }
    }
    spans.push(Span::raw(" ".repeat(width.saturating_sub(
        used + text::width(&state) + text::width(warning) + 1,
    ))));
    spans.push(Span::styled(text::fit(warning, width), app.palette.error()));
    spans.push(Span::styled(state, style));
    put_lines(frame, area, [Line::from(spans)]);
}

/// What is not saved is said all the time, and before anything else where there is little room.
fn unsaved(app: &App) -> &'static str {
    match app.chat.keeping {
        Keeping::NotSaved(_) => "! not saved  ",
        Keeping::Saved | Keeping::Off => "",
    }
}

fn model(app: &App) -> String {
    match &app.engine {
        EngineState::Ready(facts) if facts.quantization.is_empty() => facts.name.clone(),
        EngineState::Ready(facts) => format!("{}{DOT}{}", facts.name, facts.quantization),
        EngineState::Loading(load) => load
            .path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        EngineState::NoModel | EngineState::Failed(_) => String::new(),
    }
}

fn phase(app: &App, width: usize) -> (&'static str, String, Style) {
    let palette = app.palette;
    match (&app.engine, app.turn) {
        (EngineState::Loading(load), _) if load.wish == Wish::Stopped => {
            ("■", "stopping".into(), palette.busy())
        }
        (EngineState::Loading(load), _) => (
            "◌",
            format!("loading {:.0} %", load.progress.clamp(0.0, 1.0) * 100.0),
            palette.busy(),
        ),
        (EngineState::NoModel | EngineState::Failed(_), _) => match &app.download {
            Some(download) => ("↓", downloading(download), palette.busy()),
            None if app.scan == Scan::Running => ("◌", "searching".into(), palette.busy()),
            None => match app.engine {
                EngineState::Failed(_) => ("!", "no model".into(), palette.error()),
                EngineState::NoModel | EngineState::Loading(_) | EngineState::Ready(_) => {
                    ("○", "no model".into(), palette.dim())
                }
            },
        },
        (EngineState::Ready(_), Turn::Idle) => match app.ahead.progress {
            Some((read, total)) if read < total => {
                let words = format!(
                    "reading ahead {}/{}",
                    format::count(read),
                    format::count(total)
                );
                ("▷", words, palette.dim())
            }
            Some(_) | None => ("○", "idle".into(), palette.dim()),
        },
        (EngineState::Ready(_), Turn::Waiting(_)) => ("◌", "preparing".into(), palette.busy()),
        (EngineState::Ready(_), Turn::Prefill(_)) => ("▶", reading(app, width), palette.busy()),
        (EngineState::Ready(_), Turn::Decoding(_)) => ("●", decoding(app, width), palette.good()),
        (EngineState::Ready(_), Turn::Stopping(_)) => ("■", "stopping".into(), palette.busy()),
    }
}

fn reading(app: &App, width: usize) -> String {
    let Some((progress, _)) = &app.meter.prefill else {
        return "reading".into();
    };
    let words = format!(
        "reading {}/{}",
        format::count(progress.read_tokens),
        format::count(progress.to_read_tokens)
    );
    match app.meter.prefill_left(app.now) {
        Some(left) if width >= 36 => format!("{words}{DOT}≈{} left", format::wait(left)),
        Some(_) | None => words,
    }
}

fn decoding(app: &App, width: usize) -> String {
    match app.meter.decode_tok_s(app.now) {
        Some(rate) if width >= 30 => format!("decoding {:>5} tok/s", format::rate(rate)),
        Some(rate) => format!("{} tok/s", format::rate(rate)),
        None => "decoding".into(),
    }
}

/// How far a download is, in few words.
pub fn downloading(download: &Download) -> String {
    match &download.stage {
        DownloadStage::Connecting { .. } => "connecting".into(),
        DownloadStage::Fetching { done, total, .. } => {
            format!("fetching {:.0} %", fetched(*done, *total) * 100.0)
        }
        DownloadStage::Verifying => "checking".into(),
        DownloadStage::Failed { .. } => "download failed".into(),
    }
}

/// The share of the bytes that is here.
#[expect(clippy::cast_possible_truncation, reason = "thousandths of a whole")]
pub fn fetched(done: u64, total: u64) -> f64 {
    let thousandths = u128::from(done.min(total)) * 1_000 / u128::from(total.max(1));
    share(thousandths as u32, 1_000)
}
