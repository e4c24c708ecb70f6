//! The pages that lie over the chat: the help and the log.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::app::App;
use crate::app::help;
use crate::app::layout::{Class, Layout};
use crate::keymap::Action;
use crate::logging::{LogLevel, LogLine};
use crate::text;

use super::{border, footer, put_lines};

/// Draws the frame of a page with its heading and its keys, and gives its insides.
pub fn draw_page(frame: &mut Frame, app: &App, heading: &str, keys: &[(Action, &str)]) -> Rect {
    let layout: Layout = app.layout();
    let dim = app.palette.dim();
    let top = layout.title.bottom();
    let buffer = frame.buffer_mut();
    match layout.class {
        Class::TooSmall => {}
        Class::Small => border::rule(buffer, Rect::new(0, top, layout.screen.width, 1), dim),
        Class::Medium | Class::Wide => {
            let around = Rect::new(0, top, layout.screen.width, layout.screen.height - top);
            border::draw_box(buffer, around, dim);
        }
    }
    let heading = format!(
        " {} ",
        text::fit(heading, usize::from(layout.screen.width.saturating_sub(6)))
    );
    border::write_at(buffer, (2, top), &heading, app.palette.accent());
    let hints: Vec<String> = keys
        .iter()
        .filter_map(|(action, does)| app.keymap.hint(*action).map(|key| format!("{key} {does}")))
        .collect();
    footer::draw_row(frame, app, &layout, (&[], &hints));
    layout.page()
}

/// Draws the help, from its row `top` on.
pub fn draw_help(frame: &mut Frame, app: &App, top: usize) {
    let keys = [
        (Action::Close, "close"),
        (Action::ListDown, "down"),
        (Action::ListUp, "up"),
        (Action::ListPageDown, "page"),
    ];
    let page = draw_page(frame, app, "Keys and commands", &keys);
    let top = top.min(help::last_top(&app.keymap, page));
    let columns = help::columns(&app.keymap, page);
    let width = page.width / u16::try_from(columns.len()).unwrap_or(1);
    for (x, column) in (page.x..).step_by(usize::from(width.max(1))).zip(&columns) {
        let area = Rect { x, width, ..page };
        put_lines(
            frame,
            area,
            column.iter().skip(top).map(|line| help_line(app, line)),
        );
    }
}

fn help_line<'a>(app: &App, line: &'a help::Line) -> Line<'a> {
    match line {
        help::Line::Blank => Line::default(),
        help::Line::Heading(text) => Line::styled(text.as_str(), app.palette.accent()),
        help::Line::Entry(keys, does) => Line::from(vec![
            Span::styled(keys.as_str(), app.palette.strong()),
            Span::raw(does.as_str()),
        ]),
    }
}

/// Draws the log, `below` of its latest lines left out.
pub fn draw_log(frame: &mut Frame, app: &App, below: usize) {
    let keys = [
        (Action::Close, "close"),
        (Action::ListUp, "older"),
        (Action::ListDown, "newer"),
    ];
    let heading = if below == 0 {
        "Log".to_owned()
    } else {
        format!("Log · {below} newer below")
    };
    let page = draw_page(frame, app, &heading, &keys);
    let width = usize::from(page.width);
    let height = usize::from(page.height);
    if app.log.is_empty() {
        put_lines(
            frame,
            page,
            [Line::styled("Nothing was logged yet.", app.palette.dim())],
        );
        return;
    }
    let mut rows: Vec<Line> = Vec::new();
    for line in app.log.newest_first(below) {
        if rows.len() >= height {
            break;
        }
        rows.extend(log_rows(app, line, width).into_iter().rev());
    }
    rows.truncate(height);
    put_lines(frame, page, rows.into_iter().rev());
}

fn log_rows(app: &App, line: &LogLine, width: usize) -> Vec<Line<'static>> {
    let (word, style) = match line.level {
        LogLevel::Debug => ("debug ", app.palette.dim()),
        LogLevel::Info => ("info  ", app.palette.text()),
        LogLevel::Warn => ("warn  ", app.palette.busy()),
        LogLevel::Error => ("error ", app.palette.error()),
    };
    let said = format!("{}: {}", line.target, line.text);
    text::wrap(&said, width.saturating_sub(word.len()))
        .into_iter()
        .enumerate()
        .map(|(index, row)| {
            let word = if index == 0 { word } else { "      " };
            Line::from(vec![Span::styled(word, style), Span::raw(row)])
        })
        .collect()
}
