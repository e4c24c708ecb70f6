//! Between the chat and the draft: what is queued, and what the user should know that no model said.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::app::App;
use crate::app::state::{Notice, NoticeLevel, Overlay, Turn};
use crate::keymap::Action;
use crate::text;

use super::parts::signed;

/// Queued messages shown.
const QUEUED: usize = 3;
/// Rows of one notice.
const NOTICE_ROWS: usize = 3;

/// How many rows there are to show.
#[must_use]
pub fn rows(app: &App) -> u16 {
    let width = usize::from(app.size.0.saturating_sub(4));
    u16::try_from(lines(app, width).len()).unwrap_or(u16::MAX)
}

/// Draws them, the latest ones where not all fit.
pub fn draw(frame: &mut Frame, app: &App, area: Rect) {
    let lines = lines(app, usize::from(area.width));
    let surplus = lines.len().saturating_sub(usize::from(area.height));
    for (line, row) in lines.into_iter().skip(surplus).zip(area.rows()) {
        frame.render_widget(line, row);
    }
}

fn lines(app: &App, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for notice in &app.notices {
        add_notice(app, notice, width, &mut lines);
    }
    add_queue(app, width, &mut lines);
    if app.overlay == Some(Overlay::ConfirmQuit) {
        let text = app.quit_question();
        lines.push(Line::styled(text::fit(&text, width), app.palette.busy()));
    }
    lines
}

fn add_notice(app: &App, notice: &Notice, width: usize, lines: &mut Vec<Line<'static>>) {
    let (sign, style): (_, Style) = match notice.level {
        NoticeLevel::Info => ("i ", app.palette.accent()),
        NoticeLevel::Error => ("! ", app.palette.error()),
    };
    let whole = format!("{} {}", notice.text, notice.hint);
    let mut rows = signed((sign, style), whole.trim(), width);
    if rows.len() > NOTICE_ROWS {
        rows.truncate(NOTICE_ROWS - 1);
        let log = app
            .keymap
            .hint(Action::Log)
            .map_or_else(String::new, |key| format!(" ({key})"));
        rows.push(Line::styled(
            text::fit(&format!("  … the log has the rest{log}"), width),
            app.palette.dim(),
        ));
    }
    lines.extend(rows);
}

fn add_queue(app: &App, width: usize, lines: &mut Vec<Line<'static>>) {
    let held = app.turn == Turn::Idle && app.facts().is_some();
    let label = if held { "held   " } else { "queued " };
    for text in app.queue.iter().take(QUEUED) {
        let text = text::fit(text, width.saturating_sub(7));
        lines.push(Line::from(vec![
            Span::styled(label, app.palette.busy()),
            Span::styled(text, app.palette.dim()),
        ]));
    }
    if app.queue.len() > QUEUED {
        let more = format!("       and {} more", app.queue.len() - QUEUED);
        lines.push(Line::styled(text::fit(&more, width), app.palette.dim()));
    }
}
