//! A terminal's screen as SVG. Runs of cells in one style are a `tspan` each, placed at their own column, so that
//! a font with other widths can't shift what follows; lines and blocks are drawn as shapes, so that they meet.

use std::fmt::Write as _;

use vt100::{Cell, Color, Screen};

use crate::shapes;

/// A cell's size, in pixels.
pub const CELL: (f32, f32) = (8.4, 18.0);
/// Size of the letters, in pixels; their width in the usual monospace fonts is 0.6 of it.
const FONT: f32 = 14.0;
/// From a row's top to the line that letters stand on.
const BASELINE: f32 = 13.5;
/// Space between the window's edge and the text.
const PAD: f32 = 16.0;
/// Height of the bar above the text.
const BAR: f32 = 34.0;

const FOREGROUND: &str = "#d6d9e0";
const BACKGROUND: &str = "#16181d";
/// The sixteen colours.
const PALETTE: [&str; 16] = [
    "#2a2e37", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#c8ccd4",
    "#5c6370", "#ef7f88", "#a9d48a", "#f0cf8e", "#79bdf5", "#d48ee8", "#6bc9d4", "#ffffff",
];

/// How cells look.
#[derive(Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a terminal's attributes are independent"
)]
struct Style {
    colour: &'static str,
    background: Option<&'static str>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
}

impl Style {
    fn of(cell: &Cell) -> Style {
        let colour = shade(cell.fgcolor());
        let background = shade(cell.bgcolor());
        let (colour, background) = if cell.inverse() {
            (
                background.unwrap_or(BACKGROUND),
                Some(colour.unwrap_or(FOREGROUND)),
            )
        } else {
            (colour.unwrap_or(FOREGROUND), background)
        };
        Style {
            colour,
            background,
            bold: cell.bold(),
            dim: cell.dim(),
            italic: cell.italic(),
            underline: cell.underline(),
        }
    }

    fn attributes(&self) -> String {
        let mut text = format!(r#" fill="{}""#, self.colour);
        for (on, attribute) in [
            (self.bold, r#" font-weight="bold""#),
            (self.dim, r#" fill-opacity="0.55""#),
            (self.italic, r#" font-style="italic""#),
            (self.underline, r#" text-decoration="underline""#),
        ] {
            if on {
                text.push_str(attribute);
            }
        }
        text
    }
}

/// A colour of the palette; `None` for the terminal's own.
fn shade(colour: Color) -> Option<&'static str> {
    match colour {
        Color::Idx(index) => PALETTE.get(usize::from(index)).copied(),
        // The program draws with the sixteen colours and the terminal's own.
        Color::Default | Color::Rgb(..) => None,
    }
}

/// Letters in one style, from a column on.
struct Run {
    column: u16,
    cells: u16,
    text: String,
    style: Style,
}

/// The screen as an SVG file.
pub fn draw(screen: &Screen) -> String {
    let (rows, columns) = screen.size();
    let (rows, columns) = (rows.get(), columns.get());
    let width = f32::from(columns) * CELL.0 + 2.0 * PAD;
    let height = f32::from(rows) * CELL.1 + BAR + PAD;
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.1} {height:.1}" width="{width:.0}" height="{height:.0}">
<title>platen in a terminal</title>
<rect x="0.5" y="0.5" width="{:.1}" height="{:.1}" rx="9" fill="{BACKGROUND}" stroke="{}"/>
"#,
        width - 1.0,
        height - 1.0,
        PALETTE[0]
    );
    for (index, colour) in [PALETTE[1], PALETTE[3], PALETTE[2]].iter().enumerate() {
        let x = PAD + 6.0 + 20.0 * index as f32;
        let _ = writeln!(svg, r#"<circle cx="{x}" cy="17" r="6" fill="{colour}"/>"#);
    }
    let _ = writeln!(
        svg,
        r#"<g transform="translate({PAD} {BAR})" font-family="ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace" font-size="{FONT}" style="white-space: pre">"#
    );
    for row in 0..rows {
        draw_row(&mut svg, screen, row);
    }
    draw_cursor(&mut svg, screen);
    svg.push_str("</g>\n</svg>\n");
    svg
}

fn draw_row(svg: &mut String, screen: &Screen, row: u16) {
    let top = f32::from(row) * CELL.1;
    let mut runs: Vec<Run> = Vec::new();
    let mut lines = shapes::Strokes::default();
    for column in 0..screen.size().1.get() {
        let Some(cell) = screen
            .cell(row, column)
            .filter(|cell| !cell.is_wide_continuation())
        else {
            continue;
        };
        let style = Style::of(cell);
        let cells = if cell.is_wide() { 2 } else { 1 };
        let left = f32::from(column) * CELL.0;
        if let Some(background) = style.background {
            let width = f32::from(cells) * CELL.0;
            let _ = writeln!(
                svg,
                r#"<rect x="{left:.1}" y="{top:.1}" width="{width:.1}" height="{}" fill="{background}"/>"#,
                CELL.1
            );
        }
        let text = cell.contents();
        if lines.take(text, (left, top), &style.attributes()) {
            continue;
        }
        match runs.last_mut() {
            Some(run) if run.style == style && run.column + run.cells == column => {
                run.text.push_str(if text.is_empty() { " " } else { text });
                run.cells += cells;
            }
            _ if text.trim().is_empty() => {}
            _ => runs.push(Run {
                column,
                cells,
                text: text.to_owned(),
                style,
            }),
        }
    }
    svg.push_str(&lines.finish());
    draw_runs(svg, &runs, top + BASELINE);
}

fn draw_runs(svg: &mut String, runs: &[Run], y: f32) {
    if runs.is_empty() {
        return;
    }
    let _ = write!(svg, r#"<text y="{y:.1}" xml:space="preserve">"#);
    for run in runs {
        let kept = run.text.trim_end();
        let cells = run.cells - u16::try_from(run.text.len() - kept.len()).unwrap_or(0);
        let _ = write!(
            svg,
            r#"<tspan x="{:.1}" textLength="{:.1}" lengthAdjust="spacingAndGlyphs"{}>{}</tspan>"#,
            f32::from(run.column) * CELL.0,
            f32::from(cells) * CELL.0,
            run.style.attributes(),
            escaped(kept)
        );
    }
    svg.push_str("</text>\n");
}

fn draw_cursor(svg: &mut String, screen: &Screen) {
    if screen.hide_cursor() {
        return;
    }
    let (row, column) = screen.cursor_position();
    let _ = writeln!(
        svg,
        r#"<rect x="{:.1}" y="{:.1}" width="{}" height="{}" fill="{FOREGROUND}" opacity="0.75"/>"#,
        f32::from(column) * CELL.0,
        f32::from(row) * CELL.1,
        CELL.0,
        CELL.1
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
