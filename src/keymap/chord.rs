//! One key with its modifiers: read from the configuration, compared with what the terminal sends, shown.

use std::fmt;
use std::str::FromStr;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key with its modifiers, in the one form that everything is compared in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Chord {
    code: KeyCode,
    modifiers: KeyModifiers,
}

const NAMED: [(&str, KeyCode, &str); 14] = [
    ("Enter", KeyCode::Enter, "⏎"),
    ("Esc", KeyCode::Esc, "Esc"),
    ("Tab", KeyCode::Tab, "Tab"),
    ("Space", KeyCode::Char(' '), "Space"),
    ("Backspace", KeyCode::Backspace, "⌫"),
    ("Delete", KeyCode::Delete, "Del"),
    ("Home", KeyCode::Home, "Home"),
    ("End", KeyCode::End, "End"),
    ("PageUp", KeyCode::PageUp, "PgUp"),
    ("PageDown", KeyCode::PageDown, "PgDn"),
    ("Up", KeyCode::Up, "↑"),
    ("Down", KeyCode::Down, "↓"),
    ("Left", KeyCode::Left, "←"),
    ("Right", KeyCode::Right, "→"),
];

const MODIFIERS: [(&str, KeyModifiers, &str); 3] = [
    ("ctrl", KeyModifiers::CONTROL, "Ctrl"),
    ("alt", KeyModifiers::ALT, "Alt"),
    ("shift", KeyModifiers::SHIFT, "Shift"),
];

impl Chord {
    /// Terminals tell the same key in several ways: a letter with or without Shift, Ctrl-_ as Ctrl-7 or Ctrl-/.
    fn new(code: KeyCode, modifiers: KeyModifiers) -> Self {
        let mut modifiers =
            modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT);
        let code = match code {
            KeyCode::Char(letter) => {
                modifiers.remove(KeyModifiers::SHIFT);
                KeyCode::Char(if !modifiers.contains(KeyModifiers::CONTROL) {
                    letter
                } else if matches!(letter, '7' | '/' | '-') {
                    '_'
                } else {
                    letter.to_ascii_lowercase()
                })
            }
            KeyCode::BackTab => {
                modifiers.insert(KeyModifiers::SHIFT);
                KeyCode::Tab
            }
            other => other,
        };
        Chord { code, modifiers }
    }

    fn key_name(self, pick: fn(&(&'static str, KeyCode, &'static str)) -> String) -> String {
        if let Some(named) = NAMED.iter().find(|(_, code, _)| *code == self.code) {
            return pick(named);
        }
        match self.code {
            KeyCode::F(number) => format!("F{number}"),
            KeyCode::Char(letter) if self.modifiers.is_empty() => letter.to_string(),
            KeyCode::Char(letter) if letter.is_ascii_uppercase() => format!("Shift-{letter}"),
            KeyCode::Char(letter) => letter.to_ascii_uppercase().to_string(),
            _ => String::from("?"),
        }
    }

    fn with_modifiers(self, key: &str) -> String {
        let mut text = String::new();
        for (_, modifier, shown) in MODIFIERS {
            if self.modifiers.contains(modifier) {
                text.push_str(shown);
                text.push('-');
            }
        }
        text + key
    }

    /// The key in few columns: `⏎`, `Ctrl-↑`.
    #[must_use]
    pub fn short(&self) -> String {
        self.with_modifiers(&self.key_name(|(_, _, sign)| (*sign).to_owned()))
    }
}

impl From<KeyEvent> for Chord {
    fn from(key: KeyEvent) -> Self {
        Chord::new(key.code, key.modifiers)
    }
}

impl fmt::Display for Chord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with_modifiers(&self.key_name(|(name, _, _)| (*name).to_owned())))
    }
}

impl FromStr for Chord {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unreadable = || {
            format!(
                "'{text}' is no key; write modifiers (ctrl-, alt-, shift-) and a character, f1 to f12, or one \
                 of {}",
                NAMED
                    .map(|(name, _, _)| name.to_ascii_lowercase())
                    .join(", ")
            )
        };
        let mut modifiers = KeyModifiers::NONE;
        let mut rest = text;
        while let Some((name, key)) = rest.split_once('-').filter(|(_, key)| !key.is_empty()) {
            let Some((_, modifier, _)) = MODIFIERS
                .iter()
                .find(|(known, _, _)| known.eq_ignore_ascii_case(name))
            else {
                break;
            };
            modifiers.insert(*modifier);
            rest = key;
        }
        let named = NAMED
            .iter()
            .find(|(name, _, _)| name.eq_ignore_ascii_case(rest));
        let mut letters = rest.chars();
        let code = match (named, letters.next(), letters.as_str()) {
            (Some((_, code, _)), _, _) => *code,
            (None, Some(letter), "") if !letter.is_whitespace() => KeyCode::Char(letter),
            (None, Some('f' | 'F'), number) => {
                let number = number
                    .parse()
                    .ok()
                    .filter(|number| (1..=12).contains(number));
                KeyCode::F(number.ok_or_else(unreadable)?)
            }
            (None, _, _) => return Err(unreadable()),
        };
        Ok(Chord::new(code, modifiers))
    }
}
