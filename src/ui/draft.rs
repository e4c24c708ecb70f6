//! The draft, and the completions of a command above it.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Clear;

use crate::app::App;
use crate::app::layout::Layout;
use crate::app::slash::Completion;
use crate::text;

use super::border;
use super::parts::left;
use super::put_lines;

/// Completions in sight at once.
const COMPLETIONS: usize = 8;
/// Cells that the prompt sign takes.
const SIGN: u16 = 2;

/// Draws the draft with its cursor, and the completions.
pub fn draw(frame: &mut Frame, app: &App, layout: &Layout) {
    let area = layout.composer;
    let width = Layout::composer_width(app.size, app.panels);
    let view = app.composer.view(width, area.height);
    let is_empty = app.composer.is_empty();
    let lines = view.lines.into_iter().enumerate().map(|(index, row)| {
        let sign = if index == 0 && view.first_row == 0 {
            "> "
        } else {
            "  "
        };
        let text = if is_empty {
            let hint = text::fit("Type a message, or / for commands", usize::from(width));
            Span::styled(hint, app.palette.dim())
        } else {
            Span::raw(row)
        };
        Line::from(vec![Span::styled(sign, app.palette.accent()), text])
    });
    put_lines(frame, area, lines);
    if app.overlay.is_none() {
        let (column, row) = view.cursor;
        let place = Position::new(area.x + SIGN + column, area.y + row);
        if area.contains(place) {
            frame.set_cursor_position(place);
        }
        draw_completion(frame, app, layout);
    }
}

fn draw_completion(frame: &mut Frame, app: &App, layout: &Layout) {
    let Completion { items, selected } = &app.completion;
    let room = usize::from(layout.chat.height.saturating_sub(2)).min(COMPLETIONS);
    let rows = items.len().min(room);
    if rows == 0 {
        return;
    }
    let first = (selected + 1).saturating_sub(rows);
    let names = items
        .iter()
        .map(|(name, _)| text::width(name))
        .max()
        .unwrap_or(0);
    let words = items
        .iter()
        .map(|(_, words)| text::width(words))
        .max()
        .unwrap_or(0);
    let wanted = u16::try_from(names + words + 6).unwrap_or(u16::MAX);
    let width = wanted.min(layout.chat.width);
    let height = u16::try_from(rows).unwrap_or(0) + 2;
    let area = Rect::new(layout.chat.x, layout.divider - height, width, height);
    frame.render_widget(Clear, area);
    border::draw_box(frame.buffer_mut(), area, app.palette.dim());
    let inside = Rect::new(area.x + 1, area.y + 1, width.saturating_sub(2), height - 2);
    let lines = items
        .iter()
        .enumerate()
        .skip(first)
        .map(|(index, (name, words))| {
            let row = left(
                &format!(" {}  {words}", left(name, names)),
                usize::from(inside.width),
            );
            if index == *selected {
                Line::styled(row, app.palette.chosen())
            } else {
                Line::raw(row)
            }
        });
    put_lines(frame, inside, lines.take(rows));
}
