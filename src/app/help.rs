//! The help page: the keys as the keymap has them, the commands, and what the signs on the screen mean.

use ratatui::layout::Rect;

use crate::keymap::{Action, Group, Keymap};

use super::slash::COMMANDS;

/// Rows that explain the screen.
const LEGEND: &str = include_str!("../../assets/help.txt");
/// Columns of the page from which on it has two halves.
const TWO_HALVES: u16 = 110;

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
            let keys: Vec<String> = keymap.chords(*action).iter().map(ToString::to_string).collect();
            let keys = if keys.is_empty() { "–".to_owned() } else { keys.join(", ") };
            rows.push(Row::Entry { keys, does: action.description().to_owned() });
        }
        rows.push(Row::Blank);
    }
    rows.push(Row::Heading("Commands".to_owned()));
    rows.extend(COMMANDS.iter().map(|command| Row::Entry {
        keys: format!("/{} {}", command.name, command.arguments).trim_end().to_owned(),
        does: command.description.to_owned(),
    }));
    rows.extend(LEGEND.lines().map(legend));
    rows
}

/// A row of assets/help.txt: nothing, a heading, or a sign and its meaning behind two spaces or more.
fn legend(line: &str) -> Row {
    match line.split_once("  ") {
        Some((sign, meaning)) => {
            Row::Entry { keys: sign.to_owned(), does: meaning.trim_start().to_owned() }
        }
        None if line.is_empty() => Row::Blank,
        None => Row::Heading(line.to_owned()),
    }
}

/// How many halves the page has.
#[must_use]
pub fn halves(page: Rect) -> usize {
    if page.width >= TWO_HALVES { 2 } else { 1 }
}

/// The furthest that the page can be scrolled.
#[must_use]
pub fn last_top(page: Rect) -> usize {
    let count = rows(&Keymap::default()).len();
    count.div_ceil(halves(page)).saturating_sub(usize::from(page.height))
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
                rows.iter().any(|row| matches!(row, Row::Entry { does: text, .. } if text == does)),
                "{does}"
            );
        }
    }
}
