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

use ratatui::Frame;

use crate::app::App;

/// Draws the whole screen.
pub fn draw(frame: &mut Frame, app: &App) {
    let layout = app.layout();
    notices::draw(frame, app, layout.notices.intersection(frame.area()));
}
