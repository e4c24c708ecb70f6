//! The sampling in force, and the keys that matter now.

use ratatui::Frame;
use ratatui::text::{Line, Span};
use ratatui::widgets::Clear;

use crate::app::App;
use crate::app::layout::{Class, Layout};
use crate::app::state::{EngineState, Turn};
use crate::keymap::Action;
use crate::text;

use super::format;
use super::parts::join_fitting;
use super::put_lines;

/// Draws the last row of the screen.
pub fn draw(frame: &mut Frame, app: &App, layout: &Layout) {
    let left = sampling(app);
    draw_row(frame, app, layout, (&left, &hints(app)));
}

/// Facts at the left and keys at the right of the last row, as many as fit.
pub fn draw_row(
    frame: &mut Frame,
    app: &App,
    layout: &Layout,
    (left, right): (&[String], &[String]),
) {
    let width = usize::from(layout.footer.width);
    // Corners, lines and spaces round both texts.
    let (corner, around) = match layout.class {
        Class::TooSmall | Class::Small => ("", 3),
        Class::Medium | Class::Wide => ("└", 7),
    };
    let room = width.saturating_sub(around);
    // The first fact and the first two keys stay longest, then the other facts, then the other keys.
    let first = left.first().map_or(0, |fact| text::width(fact));
    let keys = join_fitting(&right[..right.len().min(2)], room.saturating_sub(first));
    let left = join_fitting(left, room.saturating_sub(text::width(&keys)));
    let right = join_fitting(right, room.saturating_sub(text::width(&left)));
    let dim = app.palette.dim();
    let fill = room - text::width(&left) - text::width(&right);
    let line = if corner.is_empty() {
        Line::from(vec![
            Span::raw(left),
            Span::raw(" ".repeat(fill + around)),
            Span::styled(right, dim),
        ])
    } else {
        Line::from(vec![
            Span::styled(corner, dim),
            if left.is_empty() {
                Span::styled("──", dim)
            } else {
                Span::raw(format!(" {left} "))
            },
            Span::styled("─".repeat(fill), dim),
            Span::styled(format!(" {right} "), dim),
            Span::styled("─┘", dim),
        ])
    };
    frame.render_widget(Clear, layout.footer);
    put_lines(frame, layout.footer, [line]);
}

fn sampling(app: &App) -> Vec<String> {
    let sampling = app.settings.sampling();
    let mut facts = vec![
        format!("temp {:.2} ▲▼", sampling.temperature),
        format!("top-p {:.2}", sampling.top_p),
        format!("min-p {:.2}", sampling.min_p),
    ];
    if app.size.0 >= 100 {
        facts.push(format!("top-k {}", sampling.top_k));
    }
    facts.push(format!("max {}", format::count(app.settings.max_tokens)));
    if let Some(seed) = sampling.seed {
        facts.push(format!("seed {seed}"));
    }
    facts
}

fn hints(app: &App) -> Vec<String> {
    let key = |action, does: &str| app.keymap.hint(action).map(|key| format!("{key} {does}"));
    let loading = matches!(app.engine, EngineState::Loading(_));
    let keys = match app.turn {
        Turn::Idle if loading => [
            key(Action::Send, "queue"),
            key(Action::Interrupt, "stop"),
            key(Action::Help, "help"),
        ],
        Turn::Idle => [
            key(Action::Send, "send"),
            key(Action::Help, "help"),
            key(Action::Newline, "new line"),
        ],
        Turn::Waiting(_) | Turn::Prefill(_) | Turn::Decoding(_) | Turn::Stopping(_) => [
            key(Action::Send, "queue"),
            key(Action::Stop, "stop"),
            key(Action::Help, "help"),
        ],
    };
    keys.into_iter().flatten().collect()
}
