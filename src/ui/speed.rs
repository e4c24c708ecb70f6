//! How fast it is, and where the time to the first token went.

use std::time::Duration;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::app::App;
use crate::app::state::Turn;
use crate::engine::event::PrefillProgress;
use crate::text;

use super::format::{self, NONE};
use super::parts::{bar, left, right, share, sparkline};

/// Cells of the names at the left.
const NAMES: usize = 9;
/// Cells of a rate with its unit, and of a number of tokens with its own.
const RATE: usize = 11;
const TOKENS: usize = 11;

/// The panel's rows.
pub fn lines(app: &App, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![named(
        app,
        "TTFT",
        &app.meter.ttft.map_or(NONE.into(), format::duration),
    )];
    if let (Turn::Prefill(_), Some((progress, _))) = (app.turn, &app.meter.prefill) {
        lines.extend(reading(app, progress, width));
    } else {
        lines.extend(ttft_parts(app));
    }
    lines.extend([prefill(app, width), decode(app, width), gaps(app, width)]);
    lines
}

fn named(app: &App, name: &str, value: &str) -> Line<'static> {
    Line::from(vec![
        Span::styled(left(name, NAMES), app.palette.dim()),
        Span::styled(value.to_owned(), app.palette.strong()),
    ])
}

/// While the prompt is read: how far, and how long still.
fn reading(app: &App, progress: &PrefillProgress, width: usize) -> [Line<'static>; 2] {
    let counts = format!(
        "{} / {}",
        format::count(progress.read_tokens),
        format::count(progress.to_read_tokens)
    );
    let left_over = app
        .meter
        .prefill_left(app.now)
        .map_or_else(String::new, |wait| format!("≈{} left", format::wait(wait)));
    let (full, rest) = bar(share(progress.read_tokens, progress.to_read_tokens), width);
    let gap = width.saturating_sub(text::width(&counts) + text::width(&left_over) + 8);
    [
        Line::from(vec![
            Span::styled(full, app.palette.busy()),
            Span::styled(rest, app.palette.dim()),
        ]),
        Line::from(vec![
            Span::styled("reading ", app.palette.busy()),
            Span::raw(counts),
            Span::raw(" ".repeat(gap)),
            Span::raw(left_over),
        ]),
    ]
}

/// The parts that the time to the first token is made of.
fn ttft_parts(app: &App) -> [Line<'static>; 2] {
    let stats = app.meter.stats.as_deref();
    let read = app
        .meter
        .prefill
        .as_ref()
        .filter(|_| app.meter.ttft.is_some());
    let so_far = |part: fn(&PrefillProgress) -> Duration| {
        read.map(|(progress, _)| part(progress).as_secs_f64() * 1e3)
    };
    // Until the engine says how long the first sample took, it is what is left of the whole.
    let rest = read.zip(app.meter.ttft).map(|((progress, _), ttft)| {
        let known = progress.queue + progress.template + progress.elapsed;
        ttft.saturating_sub(known).as_secs_f64() * 1e3
    });
    let parts = [
        [
            (
                "queue",
                stats
                    .map(|stats| stats.queue_ms)
                    .or_else(|| so_far(|read| read.queue)),
            ),
            (
                "template",
                stats
                    .map(|stats| stats.template_ms)
                    .or_else(|| so_far(|read| read.template)),
            ),
        ],
        [
            (
                "prefill",
                stats
                    .map(|stats| stats.prefill_ms)
                    .or_else(|| so_far(|read| read.elapsed)),
            ),
            ("sample", stats.map_or(rest, |stats| stats.first_sample_ms)),
        ],
    ];
    parts.map(|[one, two]| {
        let value =
            |part: Option<f64>, cells| right(&part.map_or(NONE.into(), format::millis), cells);
        Line::from(vec![
            Span::styled(format!("  {}", left(one.0, 8)), app.palette.dim()),
            Span::raw(value(one.1, 9)),
            Span::styled(format!("  {}", left(two.0, 9)), app.palette.dim()),
            Span::raw(value(two.1, 8)),
        ])
    })
}

fn prefill(app: &App, width: usize) -> Line<'static> {
    let meter = &app.meter;
    let read = match (&meter.stats, &meter.prefill) {
        (Some(stats), _) => Some(stats.read_tokens),
        (None, Some((progress, _))) => Some(progress.read_tokens),
        (None, None) => None,
    };
    let rates = sparkline(
        &meter.prefill_rates,
        width.saturating_sub(NAMES + RATE + TOKENS + 1),
    );
    rate_line(
        app,
        ("prefill", meter.prefill_tok_s()),
        read,
        (rates, app.palette.busy()),
    )
}

fn decode(app: &App, width: usize) -> Line<'static> {
    let meter = &app.meter;
    let tokens = (meter.generated > 0).then_some(meter.generated);
    let rates = sparkline(
        &meter.decode_rates,
        width.saturating_sub(NAMES + RATE + TOKENS + 1),
    );
    rate_line(
        app,
        ("decode", meter.decode_tok_s(app.now)),
        tokens,
        (rates, app.palette.good()),
    )
}

fn rate_line(
    app: &App,
    (name, rate): (&str, Option<f64>),
    tokens: Option<u32>,
    (rates, style): (String, Style),
) -> Line<'static> {
    let rate = rate.map_or(NONE.into(), |rate| format!("{} tok/s", format::rate(rate)));
    let tokens = tokens.map_or(NONE.into(), |tokens| {
        format!("{} tok", format::count(tokens))
    });
    Line::from(vec![
        Span::styled(left(name, NAMES), app.palette.dim()),
        Span::styled(left(&rate, RATE), app.palette.strong()),
        Span::raw(right(&tokens, TOKENS)),
        Span::raw(" "),
        Span::styled(rates, style),
    ])
}

fn gaps(app: &App, width: usize) -> Line<'static> {
    let said = app.meter.gaps().map_or(NONE.into(), |gaps| {
        let [p50, p95, p99] = [gaps.p50, gaps.p95, gaps.p99].map(format::bare_millis);
        let roomy = format!("p50 {p50} · p95 {p95} · p99 {p99} ms");
        if NAMES + text::width(&roomy) <= width {
            roomy
        } else {
            format!("p50 {p50} p95 {p95} p99 {p99} ms")
        }
    });
    Line::from(vec![
        Span::styled(left("gaps", NAMES), app.palette.dim()),
        Span::raw(said),
    ])
}
