//! The panels at the side, one over the other; what does not fit is left out from the bottom.

use ratatui::Frame;
use ratatui::layout::Rect;

use crate::app::App;
use crate::app::layout::Layout;

use super::{border, cache, next_token, put_lines, speed};

/// The fewest rows that the list of next tokens is worth.
const LEAST_TOKENS: u16 = 3;

/// Draws the panels that fit.
pub fn draw(frame: &mut Frame, app: &App, layout: &Layout) {
    if layout.side.is_empty() {
        return;
    }
    let width = usize::from(layout.side.width).saturating_sub(2);
    let mut y = layout.side.y - 1;
    for (heading, lines) in [
        ("Speed", speed::lines(app, width)),
        ("KV cache", cache::lines(app, width)),
    ] {
        let rows = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        if y + 1 + rows > layout.side.bottom() && y >= layout.side.y {
            return;
        }
        border::draw_heading(
            frame,
            app,
            Rect {
                y,
                height: 1,
                ..layout.side
            },
            heading,
        );
        put_lines(frame, inside(layout, y + 1), lines);
        y = (y + 1 + rows).min(layout.side.bottom());
    }
    if y + 1 + LEAST_TOKENS <= layout.side.bottom() {
        border::draw_heading(
            frame,
            app,
            Rect {
                y,
                height: 1,
                ..layout.side
            },
            "Next token",
        );
        put_lines(frame, inside(layout, y + 1), next_token::lines(app, width));
    }
}

fn inside(layout: &Layout, top: u16) -> Rect {
    Rect {
        x: layout.side.x + 1,
        y: top,
        width: layout.side.width.saturating_sub(2),
        height: layout.side.bottom().saturating_sub(top),
    }
}
