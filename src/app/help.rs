//! The help page: the keys as the keymap has them, the commands, and what the signs on the screen mean.

use ratatui::layout::Rect;

use crate::keymap::{Action, Group, Keymap};
use crate::text;

use super::slash::COMMANDS;

/// Rows that explain the screen.
const LEGEND: &str = include_str!("../../assets/help.txt");
/// Columns of the page from which on it has two halves.
const TWO_HALVES: u16 = 110;
/// Cells between the halves, a half each.
const GAP: u16 = 1;

/// One row of the help page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// A heading.
    Heading(String),
    /// Keys or a command, and what they do.
    Entry {
        /// What to press or type.
        keys: String,
        /// What it does.
        does: String,
    },
    /// Nothing.
    Blank,
}

/// All rows.
#[must_use]
pub fn rows(keymap: &Keymap) -> Vec<Row> {
    let mut rows = Vec::new();
    for group in Group::ALL {
        rows.push(Row::Heading(group.title().to_owned()));
        for action in Action::ALL.iter().filter(|action| action.group() == group) {
            let keys: Vec<String> = keymap
                .chords(*action)
                .iter()
                .map(ToString::to_string)
                .collect();
            let keys = if keys.is_empty() {
                "–".to_owned()
            } else {
                keys.join(", ")
            };
            rows.push(Row::Entry {
                keys,
                does: action.description().to_owned(),
            });
        }
        rows.push(Row::Blank);
    }
    rows.push(Row::Heading("Commands".to_owned()));
    rows.extend(COMMANDS.iter().map(|command| {
        Row::Entry {
            keys: format!("/{} {}", command.name, command.arguments)
                .trim_end()
                .to_owned(),
            does: command.description.to_owned(),
        }
    }));
    rows.extend(LEGEND.lines().map(legend));
    rows
}

/// A row of assets/help.txt: nothing, a heading, or a sign and its meaning behind two spaces or more.
fn legend(line: &str) -> Row {
    match line.split_once("  ") {
        Some((sign, meaning)) => Row::Entry {
            keys: sign.to_owned(),
            does: meaning.trim_start().to_owned(),
        },
        None if line.is_empty() => Row::Blank,
        None => Row::Heading(line.to_owned()),
    }
}

/// A row as drawn: what is at the left, what at the right of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A heading.
    Heading(String),
    /// Keys or a command, in exactly the cells of their column, and what they do.
    Entry(String, String),
    /// Nothing.
    Blank,
}

/// The page's columns of lines: two where there is room, split where a group begins.
#[must_use]
pub fn columns(keymap: &Keymap, page: Rect) -> Vec<Vec<Line>> {
    let wide = page.width >= TWO_HALVES;
    let width = usize::from(if wide {
        page.width / 2 - GAP
    } else {
        page.width
    });
    let mut first: Vec<Line> = rows(keymap)
        .iter()
        .flat_map(|row| lines(row, width))
        .collect();
    if !wide {
        return vec![first];
    }
    let middle = first.len() / 2;
    let split = (0..first.len())
        .filter(|index| matches!(first[*index], Line::Heading(_)))
        .min_by_key(|index| index.abs_diff(middle));
    let second = first.split_off(split.unwrap_or(middle));
    vec![first, second]
}

fn lines(row: &Row, width: usize) -> Vec<Line> {
    match row {
        Row::Blank => vec![Line::Blank],
        Row::Heading(text) => vec![Line::Heading(text::fit(text, width))],
        Row::Entry { keys, does } => {
            let column = (width * 2 / 5).clamp(10, 28);
            let keys = text::wrap(keys, column);
            let does = text::wrap(does, width.saturating_sub(column + 1));
            let count = keys.len().max(does.len());
            let at = |rows: &[String], index: usize| rows.get(index).cloned().unwrap_or_default();
            (0..count)
                .map(|index| {
                    let keys = at(&keys, index);
                    let gap = " ".repeat((column + 1).saturating_sub(text::width(&keys)));
                    Line::Entry(keys + &gap, at(&does, index))
                })
                .collect()
        }
    }
}

/// The furthest that the page can be scrolled.
#[must_use]
pub fn last_top(keymap: &Keymap, page: Rect) -> usize {
    let tallest = columns(keymap, page)
        .iter()
        .map(Vec::len)
        .max()
        .unwrap_or(0);
    tallest.saturating_sub(usize::from(page.height))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_and_command_has_its_row() {
        let rows = rows(&Keymap::default());
        for does in Action::ALL
            .iter()
            .map(|action| action.description())
            .chain(COMMANDS.iter().map(|command| command.description))
        {
            assert!(
                rows.iter()
                    .any(|row| matches!(row, Row::Entry { does: text, .. } if text == does)),
                "{does}"
            );
        }
    }
}
