//! What keys do. One [`Action`] enum feeds the keys, the help, the hints at the foot of the screen and the
//! `keys` table of the configuration, so that none of them can disagree. The defaults are assets/keymap.toml.

pub mod chord;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crossterm::event::{KeyEvent, KeyEventKind};
use serde::{Deserialize, Serialize};

use chord::Chord;

static DEFAULTS: LazyLock<BTreeMap<Action, Vec<Chord>>> = LazyLock::new(|| {
    let names: BTreeMap<String, Vec<String>> =
        toml::from_str(include_str!("../assets/keymap.toml"))
            .expect("assets/keymap.toml is a table of lists of keys");
    parse(&names).expect("assets/keymap.toml names actions and keys")
});

/// Where on the help screen an action stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Sending and stopping.
    Messages,
    /// Changing the sampling.
    Steering,
    /// What is on screen.
    View,
    /// Editing the draft.
    Draft,
    /// Lists and pages that lie over the chat.
    Lists,
}

impl Group {
    /// All groups, in the order of the help screen.
    pub const ALL: [Group; 5] = [
        Group::Messages,
        Group::Steering,
        Group::View,
        Group::Draft,
        Group::Lists,
    ];

    /// Its heading.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Group::Messages => "Messages",
            Group::Steering => "Steering",
            Group::View => "View",
            Group::Draft => "Draft",
            Group::Lists => "Lists and pages",
        }
    }
}

/// Where a key is pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// In the chat, the draft has the keys.
    Chat,
    /// A list or page lies over the chat.
    Overlay,
}

/// Where an action's keys work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Chat,
    Overlay,
    Everywhere,
}

impl Scope {
    fn covers(self, context: Context) -> bool {
        match self {
            Scope::Chat => context == Context::Chat,
            Scope::Overlay => context == Context::Overlay,
            Scope::Everywhere => true,
        }
    }

    fn meets(self, other: Scope) -> bool {
        self == other || self == Scope::Everywhere || other == Scope::Everywhere
    }
}

macro_rules! actions {
    ($($variant:ident, $name:literal, $group:ident, $scope:ident, $description:literal;)*) => {
        /// What a key can do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Action {
            $(#[doc = $description] $variant,)*
        }

        impl Action {
            /// All actions, in the order of the help screen.
            pub const ALL: &[Action] = &[$(Action::$variant,)*];

            /// The name used in the configuration.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Action::$variant => $name,)* }
            }

            /// What it does, for the help screen.
            #[must_use]
            pub fn description(self) -> &'static str {
                match self { $(Action::$variant => $description,)* }
            }

            /// Where it stands on the help screen.
            #[must_use]
            pub fn group(self) -> Group {
                match self { $(Action::$variant => Group::$group,)* }
            }

            fn scope(self) -> Scope {
                match self { $(Action::$variant => Scope::$scope,)* }
            }
        }
    };
}

actions! {
    Send, "send", Messages, Chat, "send the message, or queue it while the model is busy";
    Newline, "newline", Messages, Chat, "start a new line";
    Stop, "stop", Messages, Chat, "stop the reply";
    Interrupt, "interrupt", Messages, Everywhere, "stop the reply or the loading, else empty the draft, else quit";
    Quit, "quit", Messages, Chat, "quit when the draft is empty, else delete a character";
    Regenerate, "regenerate", Messages, Chat, "answer the last message again";
    CopyReply, "copy_reply", Messages, Chat, "copy the last reply";
    Complete, "complete", Messages, Chat, "complete a command";
    Warmer, "warmer", Steering, Chat, "raise the temperature by 0.05, also in mid-reply";
    Cooler, "cooler", Steering, Chat, "lower the temperature by 0.05, also in mid-reply";
    ScrollPageUp, "scroll_page_up", View, Chat, "scroll up a page";
    ScrollPageDown, "scroll_page_down", View, Chat, "scroll down a page";
    ScrollToStart, "scroll_to_start", View, Chat, "go to the start of the chat";
    ScrollToEnd, "scroll_to_end", View, Chat, "go to the end of the chat and follow it";
    Help, "help", View, Everywhere, "show these keys";
    Log, "log", View, Everywhere, "show the log";
    Panels, "panels", View, Everywhere, "show or hide the panels";
    Models, "models", View, Everywhere, "choose a model";
    Suspend, "suspend", View, Everywhere, "stop platen and go to the shell; fg there comes back";
    Redraw, "redraw", View, Everywhere, "draw the screen again";
    CursorLeft, "cursor_left", Draft, Chat, "move left";
    CursorRight, "cursor_right", Draft, Chat, "move right";
    CursorUp, "cursor_up", Draft, Chat, "move up, at the top to earlier messages";
    CursorDown, "cursor_down", Draft, Chat, "move down, at the bottom to later messages";
    WordLeft, "word_left", Draft, Chat, "move a word left";
    WordRight, "word_right", Draft, Chat, "move a word right";
    LineStart, "line_start", Draft, Chat, "go to the start of the line";
    LineEnd, "line_end", Draft, Chat, "go to the end of the line; with no draft, of the chat";
    Backspace, "backspace", Draft, Chat, "delete the character before the cursor";
    Delete, "delete", Draft, Chat, "delete the character under the cursor";
    DeleteWord, "delete_word", Draft, Chat, "delete the word before the cursor";
    DeleteToStart, "delete_to_start", Draft, Chat, "delete to the start of the line";
    DeleteToEnd, "delete_to_end", Draft, Chat, "delete to the end of the line";
    Yank, "yank", Draft, Chat, "put back what was deleted last";
    Undo, "undo", Draft, Chat, "undo the last change";
    ListUp, "list_up", Lists, Overlay, "move up";
    ListDown, "list_down", Lists, Overlay, "move down";
    ListPageUp, "list_page_up", Lists, Overlay, "move up a page";
    ListPageDown, "list_page_down", Lists, Overlay, "move down a page";
    ListStart, "list_start", Lists, Overlay, "go to the first line";
    ListEnd, "list_end", Lists, Overlay, "go to the last line";
    Accept, "accept", Lists, Overlay, "choose";
    Close, "close", Lists, Overlay, "close";
}

impl Action {
    /// The action of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Action> {
        Action::ALL
            .iter()
            .copied()
            .find(|action| action.name() == name)
    }
}

/// What is wrong with the `keys` table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeymapError {
    /// A name that no action has.
    #[error("keys.{name}: there is no such action; F1 in the chat lists them{}", hint(*.nearest))]
    UnknownAction {
        /// The name.
        name: String,
        /// The action that was probably meant.
        nearest: Option<&'static str>,
    },
    /// A key that can't be read.
    #[error("keys.{action}: {reason}")]
    Key {
        /// The action's name.
        action: String,
        /// What can't be read and what could be.
        reason: String,
    },
    /// A key with two meanings in one place.
    #[error("keys: {chord} would both {} (keys.{first}) and {} (keys.{second}); give one of them another key",
        describe(.first), describe(.second))]
    Twice {
        /// The key.
        chord: Chord,
        /// One action's name.
        first: &'static str,
        /// The other's.
        second: &'static str,
    },
}

fn hint(nearest: Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean {name}?)"))
}

fn describe(name: &str) -> &'static str {
    Action::from_name(name).map_or("", |action| {
        action
            .description()
            .split([',', ';'])
            .next()
            .unwrap_or_default()
    })
}

fn parse(
    names: &BTreeMap<String, Vec<String>>,
) -> Result<BTreeMap<Action, Vec<Chord>>, KeymapError> {
    names
        .iter()
        .map(|(name, keys)| {
            let action = Action::from_name(name).ok_or_else(|| KeymapError::UnknownAction {
                name: name.clone(),
                nearest: crate::app::nearest(name, Action::ALL.iter().map(|action| action.name())),
            })?;
            let chords = keys
                .iter()
                .map(|key| key.parse())
                .collect::<Result<Vec<Chord>, String>>()
                .map_err(|reason| KeymapError::Key {
                    action: name.clone(),
                    reason,
                })?;
            Ok((action, chords))
        })
        .collect()
}

/// Which key does what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keymap {
    chords: BTreeMap<Action, Vec<Chord>>,
}

impl Default for Keymap {
    fn default() -> Self {
        Keymap {
            chords: DEFAULTS.clone(),
        }
    }
}

impl Keymap {
    /// The defaults with the keys of some actions replaced.
    ///
    /// # Errors
    /// An unknown action, a key that can't be read, a key with two meanings in one place.
    pub fn with_overrides(overrides: &BTreeMap<String, Vec<String>>) -> Result<Self, KeymapError> {
        let mut keymap = Keymap::default();
        keymap.chords.extend(parse(overrides)?);
        keymap.check()?;
        Ok(keymap)
    }

    fn check(&self) -> Result<(), KeymapError> {
        let bound: Vec<(Action, Chord)> = self
            .chords
            .iter()
            .flat_map(|(action, chords)| chords.iter().map(|chord| (*action, *chord)))
            .collect();
        for (index, (first, chord)) in bound.iter().enumerate() {
            let twin = bound[index + 1..].iter().find(|(second, other)| {
                other == chord && second != first && second.scope().meets(first.scope())
            });
            if let Some((second, _)) = twin {
                return Err(KeymapError::Twice {
                    chord: *chord,
                    first: first.name(),
                    second: second.name(),
                });
            }
        }
        Ok(())
    }

    /// What a key does there; `None` where nothing is bound and for the release of a key.
    #[must_use]
    pub fn action(&self, key: KeyEvent, context: Context) -> Option<Action> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        let chord = Chord::from(key);
        self.chords
            .iter()
            .find(|(action, chords)| action.scope().covers(context) && chords.contains(&chord))
            .map(|(action, _)| *action)
    }

    /// The keys of an action, the first one being the one to show.
    #[must_use]
    pub fn chords(&self, action: Action) -> &[Chord] {
        self.chords.get(&action).map_or(&[], Vec::as_slice)
    }

    /// The key to show for an action, as short as can be; `None` where it has none.
    #[must_use]
    pub fn hint(&self, action: Action) -> Option<String> {
        self.chords(action).first().map(Chord::short)
    }
}

#[cfg(test)]
mod tests;
