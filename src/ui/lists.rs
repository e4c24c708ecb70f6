//! The lists of models: those of this machine, and those that can be fetched.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::app::App;
use crate::app::state::{Download, DownloadStage, Picker, Scan};
use crate::engine::event::EngineError;
use crate::keymap::Action;
use crate::models::discover::FoundModel;
use crate::text;

use super::pages::draw_page;
use super::parts::{bar, left, right, signed};
use super::title::fetched;
use super::{format, put_lines};

/// Cells of a size, a quantisation and a place at the right of a model's name.
const COLUMNS: [usize; 3] = [10, 9, 10];

/// The least cells of a name beside them.
const LEAST_NAME: usize = 16;

/// Draws the models of this machine.
pub fn draw_picker(frame: &mut Frame, app: &App, picker: &Picker) {
    let keys = [
        (Action::Accept, "load"),
        (Action::ListUp, "up"),
        (Action::ListDown, "down"),
        (Action::Close, "close"),
    ];
    let page = draw_page(frame, app, "Models on this machine", &keys);
    let width = usize::from(page.width);
    let mut head = picker
        .error
        .as_ref()
        .map_or_else(Vec::new, |error| error_lines(app, error, width));
    match (app.scan, app.models.is_empty()) {
        (Scan::Running, true) => head.push(Line::styled("Looking for models …", app.palette.dim())),
        (Scan::Done, true) => head.push(Line::raw("There is no model on this machine yet.")),
        (Scan::Running | Scan::Done, false) => {}
    }
    let mut rows: Vec<String> = app
        .models
        .iter()
        .map(|model| model_row(model, width))
        .collect();
    rows.push("Fetch a model …".to_owned());
    draw_rows(frame, app, page, head, (&rows, picker.selected));
}

fn error_lines(app: &App, error: &EngineError, width: usize) -> Vec<Line<'static>> {
    let mut lines = signed(("! ", app.palette.error()), &error.message, width);
    if !error.hint.is_empty() {
        lines.extend(signed(("  ", app.palette.text()), &error.hint, width));
    }
    lines.push(Line::default());
    lines
}

fn model_row(model: &FoundModel, width: usize) -> String {
    let columns = [
        right(&format::bytes(model.bytes), COLUMNS[0]),
        left(&model.quantization, COLUMNS[1]),
        left(&model.source, COLUMNS[2]),
    ];
    let mut tail = String::new();
    for column in columns {
        if text::width(&tail) + text::width(&column) + 2 + LEAST_NAME <= width {
            tail.push_str("  ");
            tail.push_str(&column);
        }
    }
    let name = left(&model.name, width.saturating_sub(text::width(&tail) + 2));
    name + &tail
}

/// Draws what stands above a list, and the rows round the chosen one that fit below it.
fn draw_rows(
    frame: &mut Frame,
    app: &App,
    page: Rect,
    mut head: Vec<Line<'static>>,
    (rows, selected): (&[String], usize),
) {
    head.truncate(usize::from(page.height / 2));
    let above = u16::try_from(head.len()).unwrap_or(0);
    put_lines(frame, page, head);
    let area = Rect {
        y: page.y + above,
        height: page.height - above,
        ..page
    };
    let first = (selected + 1).saturating_sub(usize::from(area.height));
    let width = usize::from(area.width);
    let lines = rows.iter().enumerate().skip(first).map(|(index, row)| {
        if index == selected {
            Line::styled(left(&format!("▸ {row}"), width), app.palette.chosen())
        } else {
            Line::raw(left(&format!("  {row}"), width))
        }
    });
    put_lines(frame, area, lines);
}

/// Draws the models that can be fetched, and how the fetching goes.
pub fn draw_catalogue(frame: &mut Frame, app: &App, selected: usize) {
    let running = app.download.as_ref().is_some_and(Download::is_running);
    let keys: &[(Action, &str)] = if running {
        &[(Action::Close, "stop"), (Action::Interrupt, "quit")]
    } else {
        &[
            (Action::Accept, "fetch"),
            (Action::ListUp, "up"),
            (Action::ListDown, "down"),
            (Action::Close, "close"),
        ]
    };
    let page = draw_page(frame, app, "Fetch a model", keys);
    let width = usize::from(page.width);
    let head = if app.models.is_empty() {
        "No model was found on this machine. Choose one to fetch, or start platen with a GGUF file."
    } else {
        "These models are small, free and known to work."
    };
    let mut lines: Vec<Line> = text::wrap(head, width).into_iter().map(Line::raw).collect();
    lines.push(Line::default());
    match &app.download {
        Some(download) => {
            lines.extend(download_lines(app, download, width));
            if !running {
                lines.push(Line::default());
                lines.extend(offer_lines(app, selected, width));
            }
        }
        None => lines.extend(offer_lines(app, selected, width)),
    }
    put_lines(frame, page, lines);
}

fn offer_lines(app: &App, selected: usize, width: usize) -> Vec<Line<'static>> {
    if app.offers.is_empty() {
        return vec![Line::styled(
            "There is nothing to fetch.",
            app.palette.dim(),
        )];
    }
    let mut lines = Vec::new();
    for (index, offer) in app.offers.iter().enumerate() {
        let size = right(&format::bytes(offer.bytes), 10);
        let row = format!("{}{size}", left(&offer.title, width.saturating_sub(12)));
        if index == selected {
            lines.push(Line::styled(format!("▸ {row}"), app.palette.chosen()));
            let about = format!("{} ({})", offer.description, offer.licence);
            let rows = text::wrap(&about, width.saturating_sub(4));
            let rows = rows
                .into_iter()
                .map(|row| Line::styled(format!("    {row}"), app.palette.dim()));
            lines.extend(rows);
        } else {
            lines.push(Line::raw(format!("  {row}")));
        }
    }
    lines
}

fn download_lines(app: &App, download: &Download, width: usize) -> Vec<Line<'static>> {
    let title = app
        .offers
        .iter()
        .find(|offer| offer.name == download.name)
        .map(|offer| offer.title.as_str());
    let mut lines = vec![
        Line::styled(
            text::fit(title.unwrap_or(&download.name), width),
            app.palette.strong(),
        ),
        Line::default(),
    ];
    match &download.stage {
        DownloadStage::Connecting { source } if source.is_empty() => {
            lines.push(Line::styled("Connecting …", app.palette.busy()));
        }
        DownloadStage::Connecting { source } => {
            lines.push(Line::styled(
                text::fit(&format!("Connecting to {source} …"), width),
                app.palette.busy(),
            ));
        }
        DownloadStage::Fetching { done, total, began } => {
            let (full, rest) = bar(fetched(*done, *total), width.saturating_sub(7).min(60));
            lines.push(Line::from(vec![
                Span::styled(full, app.palette.good()),
                Span::styled(rest, app.palette.dim()),
                Span::raw(right(
                    &format!("{:.0} %", fetched(*done, *total) * 100.0),
                    6,
                )),
            ]));
            let facts = fetch_facts(app, (*done, *total), *began);
            lines.push(Line::raw(super::parts::join_fitting(&facts, width)));
        }
        DownloadStage::Verifying => {
            lines.push(Line::styled(
                "All bytes are here; checking their SHA-256 …",
                app.palette.busy(),
            ));
        }
        DownloadStage::Failed { message } => {
            lines.extend(signed(("! ", app.palette.error()), message, width));
        }
    }
    lines
}

fn fetch_facts(
    app: &App,
    (done, total): (u64, u64),
    began: (crate::clock::Timestamp, u64),
) -> Vec<String> {
    let mut facts = vec![format!(
        "{} of {}",
        format::bytes(done),
        format::bytes(total)
    )];
    let seconds = app.now.since(began.0).as_secs_f64();
    let fresh = done.saturating_sub(began.1) as f64;
    if seconds > 0.0 && fresh > 0.0 {
        let rate = fresh / seconds;
        let left =
            std::time::Duration::from_secs_f64((total.saturating_sub(done) as f64 / rate).min(1e9));
        facts.push(format!(
            "{}/s",
            format::bytes(super::format::whole_bytes(rate))
        ));
        facts.push(format!("≈{} left", format::wait(left)));
    }
    facts
}
