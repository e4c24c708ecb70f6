//! How full the KV cache is, whose tokens it holds, and what it saved.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::app::App;
use crate::app::state::Turn;
use crate::engine::event::{CacheSpan, MemoryKind, ModelFacts, Reread, RereadReason};
use crate::engine::token::Role;
use crate::text;

use super::format::{self, NONE};
use super::parts::{bar, right, share, wrap_facts};

/// The fewest cells that the map covers.
const LEAST_MAPPED: u32 = 256;

/// Who holds a stretch of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Free,
    Template,
    Message(Role),
    /// Another branch or chat.
    Branch,
}

/// The panel's rows.
pub fn lines(app: &App, width: usize) -> Vec<Line<'static>> {
    let Some(facts) = app.facts() else {
        return vec![Line::styled(NONE, app.palette.dim())];
    };
    let mut lines = match facts.memory {
        MemoryKind::Recurrent => state(app, facts),
        MemoryKind::Attention | MemoryKind::SlidingWindow { .. } | MemoryKind::Hybrid => {
            cells(app, facts, width)
        }
    };
    lines.extend(wrap_facts(&kept(app), width).into_iter().map(Line::raw));
    lines.extend(wrap_facts(&reuse(app), width).into_iter().map(Line::raw));
    if let Some(reason) = why_reread(app) {
        lines.extend(
            text::wrap(&reason, width)
                .into_iter()
                .map(|row| Line::styled(row, app.palette.busy())),
        );
    }
    lines
}

/// What lies beside the chat on screen, so that it need not be read again.
fn kept(app: &App) -> Vec<String> {
    let cache = &app.cache;
    let mut facts = Vec::new();
    if cache.branches > 0 {
        facts.push(format!("other branches {}", format::count(cache.branches)));
    }
    if cache.parked.states > 0 {
        let tokens = u32::try_from(cache.parked.tokens).unwrap_or(u32::MAX);
        facts.push(format!(
            "set aside {} in {}",
            format::count(tokens),
            format::bytes(cache.parked.bytes)
        ));
    }
    if cache.checkpoints.states > 0 {
        facts.push(format!(
            "{} checkpoints in {}",
            cache.checkpoints.states,
            format::bytes(cache.checkpoints.bytes)
        ));
    }
    facts
}

/// Cells in use now: the engine's latest value while a turn runs.
pub fn used(app: &App) -> u32 {
    match app.turn {
        Turn::Idle if app.ahead.is_running() => app.gauges.cache_used,
        Turn::Idle | Turn::Waiting(_) => app.cache.used,
        Turn::Prefill(_) | Turn::Decoding(_) | Turn::Stopping(_) => {
            if app.gauges.cache_used > 0 {
                app.gauges.cache_used
            } else {
                app.cache.used
            }
        }
    }
}

fn bytes_used(app: &App, facts: &ModelFacts) -> u64 {
    let used = used(app);
    if used == app.cache.used {
        app.cache.bytes
    } else {
        u64::from(used) * facts.kv_bytes_per_token
    }
}

fn types(facts: &ModelFacts) -> String {
    if facts.type_k == facts.type_v {
        facts.type_k.to_string()
    } else {
        format!("{}/{}", facts.type_k, facts.type_v)
    }
}

/// A model with one state for everything has no cells to fill.
fn state(app: &App, facts: &ModelFacts) -> Vec<Line<'static>> {
    let bytes = app.cache.capacity_bytes.max(facts.kv_capacity_bytes);
    vec![
        Line::raw(format!("{} tokens read into it", format::count(used(app)))),
        Line::raw(format!("{} · state, not cells", format::bytes(bytes))),
    ]
}

fn cells(app: &App, facts: &ModelFacts, width: usize) -> Vec<Line<'static>> {
    let (used, size) = (used(app), app.cache.size);
    let counts = format!("{} / {}", format::count(used), format::count(size));
    let counts = right(&counts, 15);
    let (full, rest) = bar(
        share(used, size),
        width.saturating_sub(text::width(&counts) + 1),
    );
    let mut weight = vec![
        format!(
            "{} of {}",
            format::bytes(bytes_used(app, facts)),
            format::bytes(app.cache.capacity_bytes)
        ),
        types(facts),
        format::percent(u64::from(used), u64::from(size)),
    ];
    if facts.memory == MemoryKind::Hybrid {
        weight.push("and a state".into());
    }
    let mut lines = vec![Line::from(vec![
        Span::styled(full, app.palette.accent()),
        Span::styled(rest, app.palette.dim()),
        Span::raw(format!(" {counts}")),
    ])];
    lines.extend(wrap_facts(&weight, width).into_iter().map(Line::raw));
    let mapped = mapped(used, size);
    lines.push(map(app, used, mapped, width));
    let which = if mapped == size { "all" } else { "first" };
    let letters = if app.cache.branches > 0 {
        "s system u you a model b other"
    } else {
        "s system, u you, a model"
    };
    let legend = format!("{which} {}: {letters}", format::count(mapped));
    lines.push(Line::styled(text::fit(&legend, width), app.palette.dim()));
    lines
}

/// How many cells the map covers: a power of two that leaves room to grow.
fn mapped(used: u32, size: u32) -> u32 {
    (used.saturating_add(used / 4))
        .max(LEAST_MAPPED)
        .checked_next_power_of_two()
        .unwrap_or(size)
        .min(size)
}

/// Whose tokens the cells hold, a letter for each stretch of cells.
fn map(app: &App, used: u32, mapped: u32, width: usize) -> Line<'static> {
    let spans = spans(app, used);
    // Cells that other branches alone use lie somewhere between; they are drawn behind.
    let own: u32 = spans.iter().map(|span| span.tokens).sum();
    let others = u64::from(used.saturating_sub(own));
    let own = u64::from(own);
    let columns = (0..width).map(|column| {
        let edge =
            |column: usize| (column as u64 * u64::from(mapped)).div_ceil(width.max(1) as u64);
        let held = match owner(&spans, edge(column), edge(column + 1)) {
            Owner::Free if edge(column) < own + others => Owner::Branch,
            other => other,
        };
        let (letter, style) = sign(app, held);
        Span::styled(letter, style)
    });
    columns.collect()
}

/// The cells in use by whose message they hold. Where the last snapshot is older than the running turn, what was
/// reused is as the snapshot says, what was read since is the user's, and the rest is the reply.
fn spans(app: &App, used: u32) -> Vec<CacheSpan> {
    if app.cache.used == used {
        return app.cache.spans.clone();
    }
    let (reused, read) = app
        .meter
        .prefill
        .as_ref()
        .map_or((app.cache.used, 0), |(progress, _)| {
            let kept = progress.reused_tokens + progress.read_ahead_tokens;
            (kept, progress.read_tokens)
        });
    let used = used.saturating_sub(app.cache.branches);
    let mut spans = Vec::new();
    let mut room = reused.min(used);
    for span in &app.cache.spans {
        let tokens = span.tokens.min(room);
        room -= tokens;
        spans.push(CacheSpan { tokens, ..*span });
    }
    let read = read.min(used.saturating_sub(reused));
    spans.push(CacheSpan {
        role: None,
        tokens: room,
    });
    spans.push(CacheSpan {
        role: Some(Role::User),
        tokens: read,
    });
    let replied = used.saturating_sub(reused.saturating_add(read));
    spans.push(CacheSpan {
        role: Some(Role::Assistant),
        tokens: replied,
    });
    spans
}

/// Who holds the most of the cells from `from` on and before `to`.
fn owner(spans: &[CacheSpan], from: u64, to: u64) -> Owner {
    let mut start = 0;
    let mut most = (0, Owner::Free);
    for span in spans {
        let end = start + u64::from(span.tokens);
        let overlap = end.min(to.max(from + 1)).saturating_sub(start.max(from));
        if overlap > most.0 {
            most = (overlap, span.role.map_or(Owner::Template, Owner::Message));
        }
        start = end;
    }
    most.1
}

fn sign(app: &App, owner: Owner) -> (&'static str, Style) {
    match owner {
        Owner::Free => ("▒", app.palette.dim()),
        Owner::Template => ("·", app.palette.dim()),
        Owner::Branch => ("b", app.palette.dim()),
        Owner::Message(Role::System) => ("s", app.palette.system()),
        Owner::Message(Role::User) => ("u", app.palette.user()),
        Owner::Message(Role::Assistant) => ("a", app.palette.model()),
    }
}

/// What was in the cache already, what had to be read, and the time that saved.
pub fn reuse(app: &App) -> Vec<String> {
    let (reused, read, saved) = match (&app.meter.stats, &app.meter.prefill) {
        (Some(stats), _) => (stats.reused_tokens, stats.read_tokens, stats.saved_ms),
        (None, Some((progress, _))) => (progress.reused_tokens, progress.read_tokens, None),
        (None, None) => return Vec::new(),
    };
    let mut facts = vec![
        format!("reused {}", format::count(reused)),
        format!("read {}", format::count(read)),
    ];
    if let Some(stats) = app
        .meter
        .stats
        .as_ref()
        .filter(|stats| stats.read_ahead_tokens > 0)
    {
        facts.push(format!(
            "read ahead {}",
            format::count(stats.read_ahead_tokens)
        ));
    }
    if let Some(saved) = saved.filter(|_| reused > 0) {
        facts.push(format!("saved {}", saved_time(saved)));
    }
    facts
}

/// `0.3 s`, `6.0 s`: computed from a measured rate, and no more exact than that.
fn saved_time(millis: f64) -> String {
    format::wait(std::time::Duration::from_secs_f64(
        (millis / 1e3).clamp(0.0, 1e9),
    ))
}

/// Why tokens were read again.
pub fn why_reread(app: &App) -> Option<String> {
    let reread = match (&app.meter.stats, &app.meter.prefill) {
        (Some(stats), _) => {
            let reason = stats.reread_reason.clone()?;
            Reread {
                tokens: stats.reread_tokens,
                reason,
            }
        }
        (None, Some((progress, _))) => progress.reread.clone()?,
        (None, None) => return None,
    };
    let why = match reread.reason {
        RereadReason::Edited { message } if is_new_chat(app, message) => {
            "another chat was in the cache".into()
        }
        RereadReason::Edited { message } => format!("{} was changed", named(app, message)),
        RereadReason::TemplateChanged { message } => {
            format!("the template now writes {} otherwise", named(app, message))
        }
        RereadReason::CannotRollBack => "this model's memory can't be cut back".into(),
        RereadReason::DecodeFailed => "a decode was cut off before".into(),
    };
    Some(format!(
        "read {} again: {why}",
        format::count(reread.tokens)
    ))
}

/// Whether a prompt that differs from this message on is the first one of its chat.
fn is_new_chat(app: &App, message: usize) -> bool {
    let questions = app
        .conversation
        .messages()
        .iter()
        .filter(|other| other.role == Role::User);
    questions.count() == 1 && message == app.meter.first_message
}

/// A message of the prompt as the user counts them.
fn named(app: &App, message: usize) -> String {
    match message.checked_sub(app.meter.first_message) {
        Some(index) => format!("message {}", index + 1),
        None => "the system prompt".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_of_cells_belongs_to_who_holds_the_most_of_it() {
        let span = |role, tokens| CacheSpan { role, tokens };
        let spans = [
            span(Some(Role::System), 10),
            span(None, 2),
            span(Some(Role::User), 30),
        ];
        assert_eq!(owner(&spans, 0, 10), Owner::Message(Role::System));
        assert_eq!(owner(&spans, 8, 16), Owner::Message(Role::User));
        assert_eq!(owner(&spans, 10, 12), Owner::Template);
        assert_eq!(owner(&spans, 41, 60), Owner::Message(Role::User));
        assert_eq!(owner(&spans, 42, 60), Owner::Free);
    }

    #[test]
    fn the_map_zooms_out_as_the_cache_fills_and_never_past_its_end() {
        assert_eq!(
            [0, 100, 205, 300, 8_000].map(|used| mapped(used, 8_192)),
            [256, 256, 256, 512, 8_192]
        );
        assert_eq!(mapped(50, 128), 128);
    }
}
