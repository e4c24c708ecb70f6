//! What stands in the chat before the first message: the model, or how its loading goes.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::app::App;
use crate::app::state::{EngineState, Load, Scan};
use crate::engine::event::{MemoryKind, ModelFacts};
use crate::keymap::Action;
use crate::text;

use super::format;
use super::parts::{bar, wrap_facts};
use super::put_lines;

/// Draws it in the middle of the area.
pub fn draw(frame: &mut Frame, app: &App, area: Rect) {
    let width = usize::from(area.width);
    let lines = match &app.engine {
        EngineState::Ready(facts) => model(app, facts, width),
        EngineState::Loading(load) => loading(app, load, width),
        EngineState::NoModel if app.scan == Scan::Running => {
            vec![Line::styled(
                text::fit("Looking for models …", width),
                app.palette.dim(),
            )]
        }
        EngineState::NoModel => vec![hint(app, "No model is loaded; {} shows the models.", width)],
        EngineState::Failed(error) => {
            let mut lines: Vec<_> = text::wrap(&error.message, width)
                .into_iter()
                .map(|row| Line::styled(row, app.palette.error()))
                .collect();
            lines.extend(text::wrap(&error.hint, width).into_iter().map(Line::raw));
            lines
        }
    };
    let count = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let top = area.height.saturating_sub(count) / 2;
    let middle = Rect {
        y: area.y + top,
        height: area.height - top,
        ..area
    };
    put_lines(frame, middle, lines.into_iter().map(Line::centered));
}

fn hint(app: &App, sentence: &str, width: usize) -> Line<'static> {
    let key = app
        .keymap
        .hint(Action::Models)
        .unwrap_or_else(|| "/model".into());
    Line::styled(
        text::fit(&sentence.replace("{}", &key), width),
        app.palette.dim(),
    )
}

fn loading(app: &App, load: &Load, width: usize) -> Vec<Line<'static>> {
    let name = load.path.file_name().unwrap_or_default().to_string_lossy();
    let bar_width = width.saturating_sub(8).min(40);
    let (full, rest) = bar(f64::from(load.progress), bar_width);
    let percent = format!(" {:>3.0} %", load.progress.clamp(0.0, 1.0) * 100.0);
    vec![
        Line::styled(text::fit(&name, width), app.palette.strong()),
        Line::default(),
        Line::from(vec![
            Span::styled(full, app.palette.busy()),
            Span::styled(rest, app.palette.dim()),
            Span::raw(percent),
        ]),
        Line::default(),
        Line::styled(
            text::fit("You can type already; what you send waits.", width),
            app.palette.dim(),
        ),
    ]
}

fn model(app: &App, facts: &ModelFacts, width: usize) -> Vec<Line<'static>> {
    let memory = match facts.memory {
        MemoryKind::Attention => format!("{} a token", format::bytes(facts.kv_bytes_per_token)),
        MemoryKind::SlidingWindow { window, .. } => {
            format!("sliding window of {}", format::count(window))
        }
        MemoryKind::Recurrent => "one state, no cells".to_owned(),
        MemoryKind::Hybrid => "cells and a state".to_owned(),
    };
    let weights = [
        format!("{} parameters", parameters(facts.parameters)),
        format!("{} layers", facts.layers),
        format::bytes(facts.model_bytes),
        facts.architecture.clone(),
    ];
    let context = [
        format!(
            "context {} of {}",
            format::count(facts.context),
            format::count(facts.context_train)
        ),
        format!("KV cache {}", format::bytes(facts.kv_capacity_bytes)),
        memory,
    ];
    let threads = [
        format!("threads {} decode", facts.threads_decode),
        format!("{} prefill", facts.threads_prefill),
        format!(
            "batch {}/{}",
            format::count(facts.batch),
            format::count(facts.ubatch)
        ),
    ];
    let mut lines = vec![
        Line::styled(text::fit(&facts.name, width), app.palette.accent()),
        Line::default(),
    ];
    for group in [&weights[..], &context[..], &threads[..]] {
        lines.extend(styled(&wrap_facts(group, width), app.palette.text()));
    }
    lines.push(Line::default());
    let help = app
        .keymap
        .hint(Action::Help)
        .unwrap_or_else(|| "/help".into());
    let sentence = format!("Type a message. {help} shows keys and commands.");
    lines.extend(styled(&text::wrap(&sentence, width), app.palette.dim()));
    lines
}

fn styled(rows: &[String], style: Style) -> Vec<Line<'static>> {
    rows.iter()
        .map(|row| Line::styled(row.clone(), style))
        .collect()
}

/// `135 M`, `1.24 B`
fn parameters(count: u64) -> String {
    let millions = count as f64 / 1e6;
    if millions < 1e3 {
        format!("{millions:.0} M")
    } else {
        format!("{:.2} B", millions / 1e3)
    }
}
