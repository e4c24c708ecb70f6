//! What could have come instead of the last token: the chance in the draw, and behind it what the model thought.

use ratatui::text::{Line, Span};

use crate::app::App;
use crate::engine::event::{Alternative, SampledToken};

use super::chat::quoted;
use super::format::NONE;
use super::parts::{cells, left, right};

/// Cells of a token's text.
const TEXT: usize = 12;
/// Cells of a percentage.
const PERCENT: usize = 6;

/// The panel's rows.
pub fn lines(app: &App, width: usize) -> Vec<Line<'static>> {
    let Some(token) = &app.meter.token else {
        return vec![Line::styled("no token yet", app.palette.dim())];
    };
    let bar = width.saturating_sub(2 + TEXT + 1 + 2 * PERCENT);
    let head = format!(
        "  {}{}{}",
        left("token", TEXT + 1 + bar),
        right("draw", PERCENT),
        right("model", PERCENT)
    );
    let mut lines = vec![Line::styled(head, app.palette.dim())];
    if !token.alternatives.iter().any(|other| other.id == token.id) {
        lines.push(outsider(app, token, bar));
    }
    lines.extend(
        token
            .alternatives
            .iter()
            .map(|other| row(app, token, other, bar)),
    );
    lines
}

fn row(app: &App, token: &SampledToken, other: &Alternative, bar: usize) -> Line<'static> {
    let chosen = other.id == token.id;
    let removed = other.chance <= 0.0;
    let (sign, style) = match (chosen, removed) {
        (true, _) => ("▸ ", app.palette.accent()),
        (false, true) => ("  ", app.palette.dim()),
        (false, false) => ("  ", app.palette.text()),
    };
    let drawn = cells(f64::from(other.chance), bar);
    let thought = cells(f64::from(other.probability), bar).max(drawn);
    let chance = if removed {
        "cut".into()
    } else {
        percent(other.chance)
    };
    Line::from(vec![
        Span::styled(
            format!("{sign}{} ", left(&quoted(&other.text), TEXT)),
            style,
        ),
        Span::styled("█".repeat(drawn), app.palette.good()),
        Span::styled("░".repeat(thought - drawn), app.palette.dim()),
        Span::raw(" ".repeat(bar - thought)),
        Span::styled(right(&chance, PERCENT), style),
        Span::styled(
            right(&percent(other.probability), PERCENT),
            app.palette.dim(),
        ),
    ])
}

/// The sampled token where it is none of the likeliest: its chance in the draw was not told.
fn outsider(app: &App, token: &SampledToken, bar: usize) -> Line<'static> {
    let text = quoted(&String::from_utf8_lossy(&token.bytes));
    let thought = cells(f64::from(token.probability), bar);
    Line::from(vec![
        Span::styled(format!("▸ {} ", left(&text, TEXT)), app.palette.accent()),
        Span::styled("░".repeat(thought), app.palette.dim()),
        Span::raw(" ".repeat(bar - thought)),
        Span::styled(right(NONE, PERCENT), app.palette.accent()),
        Span::styled(
            right(&percent(token.probability), PERCENT),
            app.palette.dim(),
        ),
    ])
}

/// `92 %`, `0.4 %`
fn percent(share: f32) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.05 {
        "<0.1 %".into()
    } else if percent < 0.95 && percent > 0.0 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}
