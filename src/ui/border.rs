//! The lines between the parts of the screen, and the headings in them.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;

use crate::app::App;
use crate::app::layout::{Class, Layout};
use crate::keymap::Action;
use crate::text;

use super::format;

/// Draws the frame round chat, panels and draft, as the class of the screen has it.
pub fn draw_chat(frame: &mut Frame, app: &App, layout: &Layout) {
    let style = app.palette.dim();
    let buffer = frame.buffer_mut();
    match layout.class {
        Class::TooSmall => return,
        Class::Small => rule(
            buffer,
            Rect::new(0, layout.divider, layout.screen.width, 1),
            style,
        ),
        Class::Medium | Class::Wide => {
            draw_box(buffer, layout.frame, style);
            cross(buffer, layout, style);
        }
    }
    if layout.class == Class::Wide {
        let x = layout.side.x - 1;
        for y in layout.frame.y..=layout.divider {
            let sign = match y {
                _ if y == layout.frame.y => "┬",
                _ if y == layout.divider => "┴",
                _ => "│",
            };
            sign_at(buffer, (x, y), sign, style);
        }
    }
    draw_below(frame, app, layout);
}

/// A frame of single lines along the edges of the area.
pub fn draw_box(buffer: &mut Buffer, area: Rect, style: Style) {
    if area.width < 2 || area.height < 2 {
        return;
    }
    let (right, bottom) = (area.right() - 1, area.bottom() - 1);
    for y in [area.y, bottom] {
        rule(buffer, Rect::new(area.x, y, area.width, 1), style);
    }
    for y in area.y + 1..bottom {
        sign_at(buffer, (area.x, y), "│", style);
        sign_at(buffer, (right, y), "│", style);
    }
    sign_at(buffer, (area.x, area.y), "┌", style);
    sign_at(buffer, (right, area.y), "┐", style);
    sign_at(buffer, (area.x, bottom), "└", style);
    sign_at(buffer, (right, bottom), "┘", style);
}

fn cross(buffer: &mut Buffer, layout: &Layout, style: Style) {
    rule(
        buffer,
        Rect::new(0, layout.divider, layout.screen.width, 1),
        style,
    );
    sign_at(buffer, (0, layout.divider), "├", style);
    sign_at(
        buffer,
        (layout.frame.right() - 1, layout.divider),
        "┤",
        style,
    );
}

/// A line across the panels at their side, with a heading in it.
pub fn draw_heading(frame: &mut Frame, app: &App, place: Rect, heading: &str) {
    let style = app.palette.dim();
    let top = place.y == app.layout().frame.y;
    let buffer = frame.buffer_mut();
    if !top {
        rule(buffer, place, style);
        sign_at(buffer, (place.x - 1, place.y), "├", style);
        sign_at(buffer, (place.right(), place.y), "┤", style);
    }
    write_at(buffer, (place.x, place.y), "─ ", style);
    let room = usize::from(place.width).saturating_sub(3);
    let heading = text::fit(heading, room);
    write_at(
        buffer,
        (place.x + 2, place.y),
        &format!("{heading} "),
        app.palette.accent(),
    );
}

/// How much of the conversation is out of sight below, in the line between chat and draft.
fn draw_below(frame: &mut Frame, app: &App, layout: &Layout) {
    let below = app.transcript.lines_below(layout.chat.height);
    if below == 0 {
        return;
    }
    let key = app
        .keymap
        .hint(Action::ScrollToEnd)
        .map_or_else(String::new, |key| format!(" · {key}"));
    let note = format!(" ↓ {} more{key} ", format::count(below as u64));
    let room = usize::from(layout.chat.width).saturating_sub(2);
    let at = (layout.chat.x + 1, layout.divider);
    write_at(
        frame.buffer_mut(),
        at,
        &text::fit(&note, room),
        app.palette.busy(),
    );
}

/// A line across an area of one row.
pub fn rule(buffer: &mut Buffer, area: Rect, style: Style) {
    for x in area.left()..area.right() {
        sign_at(buffer, (x, area.y), "─", style);
    }
}

/// Text from a place on, within the screen, in place of what was there.
pub fn write_at(buffer: &mut Buffer, (x, y): (u16, u16), text: &str, style: Style) {
    if buffer.area.contains(Position { x, y }) {
        let room = usize::from(buffer.area.right() - x);
        buffer.set_stringn(x, y, text, room, Style::reset().patch(style));
    }
}

fn sign_at(buffer: &mut Buffer, place: (u16, u16), sign: &str, style: Style) {
    if let Some(cell) = buffer.cell_mut(place) {
        cell.set_symbol(sign).set_style(style);
    }
}
