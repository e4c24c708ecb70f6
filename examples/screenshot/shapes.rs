//! Lines and blocks as shapes of exactly a cell, so that they meet at every font and line height.

use std::fmt::Write as _;

use crate::svg::CELL;

/// Thickness of a line, in pixels.
const LINE: f32 = 1.2;

/// The shapes of a row; neighbours that look the same are one.
#[derive(Default)]
pub struct Strokes {
    done: String,
    open: Option<Rect>,
}

#[derive(Clone)]
struct Rect {
    x: f32,
    y: f32,
    width: f32,
    height: f32,
    attributes: String,
}

impl Strokes {
    /// Takes a cell that is a line or a block; any other is left to the letters.
    pub fn take(&mut self, text: &str, at: (f32, f32), attributes: &str) -> bool {
        if let Some(arms) = arms(text) {
            self.lines(arms, at, attributes);
            return true;
        }
        let Some((x, y, width, height, strength)) = block(text) else {
            return false;
        };
        let attributes = match strength {
            Some(strength) => format!(r#"{attributes} opacity="{strength}""#),
            None => attributes.to_owned(),
        };
        self.rect(Rect {
            x: at.0 + x * CELL.0,
            y: at.1 + y * CELL.1,
            width: width * CELL.0,
            height: height * CELL.1,
            attributes,
        });
        true
    }

    /// The shapes as SVG.
    pub fn finish(mut self) -> String {
        self.close();
        self.done
    }

    fn lines(&mut self, [up, right, down, left]: [bool; 4], at: (f32, f32), attributes: &str) {
        let (across, along) = (CELL.0 / 2.0, CELL.1 / 2.0);
        let half = LINE / 2.0;
        if up || down {
            let top = if up { 0.0 } else { along - half };
            let bottom = if down { CELL.1 } else { along + half };
            self.rect(Rect {
                x: at.0 + across - half,
                y: at.1 + top,
                width: LINE,
                height: bottom - top,
                attributes: attributes.to_owned(),
            });
        }
        if left || right {
            let start = if left { 0.0 } else { across - half };
            let end = if right { CELL.0 } else { across + half };
            self.rect(Rect {
                x: at.0 + start,
                y: at.1 + along - half,
                width: end - start,
                height: LINE,
                attributes: attributes.to_owned(),
            });
        }
    }

    fn rect(&mut self, next: Rect) {
        let same = |a: f32, b: f32| (a - b).abs() < 0.01;
        if let Some(open) = &mut self.open
            && same(open.x + open.width, next.x)
            && same(open.y, next.y)
            && same(open.height, next.height)
            && open.attributes == next.attributes
        {
            open.width += next.width;
            return;
        }
        self.close();
        self.open = Some(next);
    }

    fn close(&mut self) {
        if let Some(rect) = self.open.take() {
            let _ = writeln!(
                self.done,
                r#"<rect x="{:.2}" y="{:.2}" width="{:.2}" height="{:.2}"{}/>"#,
                rect.x, rect.y, rect.width, rect.height, rect.attributes
            );
        }
    }
}

/// Where the lines of a box-drawing character lead: up, right, down, left.
fn arms(text: &str) -> Option<[bool; 4]> {
    let leads = match text {
        "─" => "rl",
        "│" => "ud",
        "┌" => "rd",
        "┐" => "dl",
        "└" => "ur",
        "┘" => "ul",
        "├" => "urd",
        "┤" => "udl",
        "┬" => "rdl",
        "┴" => "url",
        "┼" => "urdl",
        _ => return None,
    };
    Some(['u', 'r', 'd', 'l'].map(|way| leads.contains(way)))
}

/// The part of a cell that a block element fills: left, top, width, height and, for a shade, its strength.
fn block(text: &str) -> Option<(f32, f32, f32, f32, Option<f32>)> {
    let mut letters = text.chars();
    let (letter, None) = (letters.next()?, letters.next()) else {
        return None;
    };
    // A gap above and below keeps bars of neighbouring rows apart.
    let shade = |strength| Some((0.0, 0.16, 1.0, 0.68, strength));
    match letter {
        '▁'..='▇' => {
            let height = (letter as u32 - '▁' as u32 + 1) as f32 / 8.0;
            Some((0.06, 0.84 - 0.68 * height, 0.88, 0.68 * height, None))
        }
        '█' => shade(None),
        '░' => shade(Some(0.4)),
        '▒' => shade(Some(0.55)),
        '▓' => shade(Some(0.8)),
        '▌' => Some((0.0, 0.0, 0.5, 1.0, None)),
        _ => None,
    }
}
