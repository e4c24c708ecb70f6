//! The figures in two lines, for a screen without room for panels.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::app::App;
use crate::app::state::Turn;
use crate::text;

use super::format::{self, NONE};
use super::parts::{DOT, bar, join_fitting, share};
use super::{cache, put_lines};

/// Cells of a bar.
const BAR: usize = 14;

/// Draws both lines.
pub fn draw(frame: &mut Frame, app: &App, area: Rect) {
    let width = usize::from(area.width).saturating_sub(2);
    put_lines(frame, area, [speed(app, width), cells(app, width)]);
}

fn speed(app: &App, width: usize) -> Line<'static> {
    let meter = &app.meter;
    let rate = |rate: Option<f64>| {
        rate.map_or(NONE.into(), |rate| format!("{} tok/s", format::rate(rate)))
    };
    if let (Turn::Prefill(_), Some((progress, _))) = (app.turn, &meter.prefill) {
        let (full, rest) = bar(share(progress.read_tokens, progress.to_read_tokens), BAR);
        let (read, all) = (
            format::count(progress.read_tokens),
            format::count(progress.to_read_tokens),
        );
        let mut facts = vec![format!("{read} / {all}"), rate(meter.prefill_tok_s())];
        facts.extend(
            meter
                .prefill_left(app.now)
                .map(|wait| format!("≈{} left", format::wait(wait))),
        );
        return Line::from(vec![
            Span::styled(" read ", app.palette.dim()),
            Span::styled(full, app.palette.busy()),
            Span::styled(rest, app.palette.dim()),
            Span::raw(format!(
                " {}",
                join_fitting(&facts, width.saturating_sub(BAR + 6))
            )),
        ]);
    }
    let mut facts = vec![
        format!("TTFT {}", meter.ttft.map_or(NONE.into(), format::duration)),
        format!("prefill {}", rate(meter.prefill_tok_s())),
        format!("decode {}", rate(meter.decode_tok_s(app.now))),
    ];
    if meter.generated > 0 {
        facts.push(format!("{} tok", format::count(meter.generated)));
    }
    facts.extend(
        meter
            .gaps()
            .map(|gaps| format!("p95 {} ms", format::bare_millis(gaps.p95))),
    );
    let mut spans = vec![Span::raw(" ")];
    spans.extend(labelled(app, &join_fitting(&facts, width)));
    Line::from(spans)
}

/// Facts with the names before their values dimmed.
fn labelled(app: &App, facts: &str) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    for fact in facts.split(DOT) {
        if !spans.is_empty() {
            spans.push(Span::styled(DOT, app.palette.dim()));
        }
        let named = fact
            .split_once(' ')
            .filter(|(name, _)| name.starts_with(char::is_alphabetic));
        if let Some((name, value)) = named {
            spans.push(Span::styled(format!("{name} "), app.palette.dim()));
            spans.push(Span::styled(value.to_owned(), app.palette.strong()));
        } else {
            spans.push(Span::raw(fact.to_owned()));
        }
    }
    spans
}

fn cells(app: &App, width: usize) -> Line<'static> {
    let (used, size) = (cache::used(app), app.cache.size);
    if size == 0 {
        return Line::from(vec![
            Span::styled(" KV   ", app.palette.dim()),
            Span::raw(NONE),
        ]);
    }
    let (full, rest) = bar(share(used, size), BAR);
    let room = width.saturating_sub(BAR + 6);
    let mut facts = vec![format!("{} / {}", format::count(used), format::count(size))];
    let percent = format::percent(u64::from(used), u64::from(size));
    // A sentence that does not fit is cut, not dropped.
    let said = if let Some(reason) = cache::why_reread(app) {
        facts.extend([percent, reason]);
        vec![Span::raw(text::fit(&facts.join(DOT), room))]
    } else {
        facts.extend(cache::reuse(app));
        facts.push(percent);
        labelled(app, &join_fitting(&facts, room))
    };
    let mut spans = vec![
        Span::styled(" KV   ", app.palette.dim()),
        Span::styled(full, app.palette.accent()),
        Span::styled(rest, app.palette.dim()),
        Span::raw(" "),
    ];
    spans.extend(said);
    Line::from(spans)
}
