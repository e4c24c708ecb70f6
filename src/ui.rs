//! Draws the state. One panel a file; nothing here changes anything.
//!
//! ```text
//!  title                                                        phase, rate
//! ┌ chat ────────────────────────────────────┬ Speed ──────────────────────┐
//! │                                          ├ KV cache ───────────────────┤
//! │                                          ├ Next token ─────────────────┤
//! ├──────────────────────────────────────────┴─────────────────────────────┤
//! │ notices, queued messages, draft                                        │
//! └ sampling ──────────────────────────────────────────────────────── keys ┘
//! ```

pub mod format;
pub mod notices;
pub mod palette;

mod border;
mod cache;
mod chat;
mod draft;
mod footer;
mod lists;
mod next_token;
mod pages;
mod parts;
mod side;
mod speed;
mod strip;
mod title;
mod welcome;
mod wide;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use crate::app::App;
use crate::app::layout::{Class, LEAST, Layout};
use crate::app::state::Overlay;
use crate::text;

/// Draws the whole screen.
pub fn draw(frame: &mut Frame, app: &App) {
    draw_all(frame, app);
    wide::mark_covered(frame.buffer_mut());
}

fn draw_all(frame: &mut Frame, app: &App) {
    let layout = app.layout();
    if layout.class == Class::TooSmall || layout.screen != frame.area() {
        draw_too_small(frame);
        return;
    }
    title::draw(frame, app, layout.title);
    match &app.overlay {
        Some(Overlay::Help { top }) => pages::draw_help(frame, app, *top),
        Some(Overlay::Log { below }) => pages::draw_log(frame, app, *below),
        Some(Overlay::ModelPicker(picker)) => lists::draw_picker(frame, app, picker),
        Some(Overlay::Catalogue { selected }) => lists::draw_catalogue(frame, app, *selected),
        Some(Overlay::ConfirmQuit) | None => draw_chat(frame, app, &layout),
    }
}

fn draw_chat(frame: &mut Frame, app: &App, layout: &Layout) {
    strip::draw(frame, app, layout.strip);
    border::draw_chat(frame, app, layout);
    chat::draw(frame, app, layout);
    side::draw(frame, app, layout);
    notices::draw(frame, app, layout.notices);
    draft::draw(frame, app, layout);
    footer::draw(frame, app, layout);
}

fn draw_too_small(frame: &mut Frame) {
    let area = frame.area();
    let sentence = format!(
        "The window is too small: platen needs {} × {}.",
        LEAST.0, LEAST.1
    );
    put_lines(
        frame,
        area,
        text::wrap(&sentence, usize::from(area.width))
            .into_iter()
            .map(Line::raw),
    );
}

/// Draws lines from the top of the area; what does not fit is left out.
fn put_lines<'a>(frame: &mut Frame, area: Rect, lines: impl IntoIterator<Item = Line<'a>>) {
    let area = area.intersection(frame.area());
    if area.is_empty() {
        return;
    }
    for (line, row) in lines.into_iter().zip(area.rows()) {
        frame.render_widget(line, row);
    }
}
