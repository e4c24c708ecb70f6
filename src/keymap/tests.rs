#![allow(clippy::unwrap_used, reason = "tests")]

use crossterm::event::{KeyCode, KeyModifiers};

use super::*;

fn overrides(pairs: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    pairs
        .iter()
        .map(|(name, keys)| {
            (
                (*name).to_owned(),
                keys.iter().map(|key| (*key).to_owned()).collect(),
            )
        })
        .collect()
}

fn error(pairs: &[(&str, &[&str])]) -> String {
    Keymap::with_overrides(&overrides(pairs))
        .unwrap_err()
        .to_string()
}

fn pressed(code: KeyCode, modifiers: KeyModifiers) -> Option<Action> {
    Keymap::default().action(KeyEvent::new(code, modifiers), Context::Chat)
}

#[test]
fn the_default_keys_name_every_action_and_clash_nowhere() {
    assert_eq!(DEFAULTS.keys().copied().collect::<Vec<_>>(), Action::ALL);
    Keymap::default().check().unwrap();
}

#[test]
fn the_name_of_every_action_is_the_one_that_serde_writes() {
    for action in Action::ALL {
        assert_eq!(serde_json::to_value(action).unwrap(), action.name());
    }
}

#[test]
fn keys_reach_their_actions_however_the_terminal_tells_them() {
    assert_eq!(
        pressed(KeyCode::Enter, KeyModifiers::NONE),
        Some(Action::Send)
    );
    assert_eq!(
        pressed(KeyCode::Enter, KeyModifiers::ALT),
        Some(Action::Newline)
    );
    assert_eq!(
        pressed(KeyCode::Enter, KeyModifiers::SHIFT),
        Some(Action::Newline)
    );
    assert_eq!(
        pressed(KeyCode::Char('j'), KeyModifiers::CONTROL),
        Some(Action::Newline)
    );
    assert_eq!(
        pressed(
            KeyCode::Char('C'),
            KeyModifiers::CONTROL | KeyModifiers::SHIFT
        ),
        Some(Action::Interrupt)
    );
    for sign in ['7', '_', '/'] {
        assert_eq!(
            pressed(KeyCode::Char(sign), KeyModifiers::CONTROL),
            Some(Action::Undo)
        );
    }
    assert_eq!(pressed(KeyCode::Char('k'), KeyModifiers::NONE), None);
}

#[test]
fn the_release_of_a_key_does_nothing() {
    let mut key = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
    key.kind = KeyEventKind::Release;
    assert_eq!(Keymap::default().action(key, Context::Chat), None);
}

#[test]
fn the_same_key_means_one_thing_in_the_chat_and_another_in_a_list() {
    let key = KeyEvent::new(KeyCode::Up, KeyModifiers::NONE);
    assert_eq!(
        Keymap::default().action(key, Context::Chat),
        Some(Action::CursorUp)
    );
    assert_eq!(
        Keymap::default().action(key, Context::Overlay),
        Some(Action::ListUp)
    );
}

#[test]
fn a_configured_key_replaces_the_defaults_of_its_action() {
    let keymap = Keymap::with_overrides(&overrides(&[("help", &["ctrl-g", "f12"])])).unwrap();
    let key = |code, modifiers| keymap.action(KeyEvent::new(code, modifiers), Context::Chat);
    assert_eq!(
        key(KeyCode::Char('g'), KeyModifiers::CONTROL),
        Some(Action::Help)
    );
    assert_eq!(key(KeyCode::F(12), KeyModifiers::NONE), Some(Action::Help));
    assert_eq!(key(KeyCode::F(1), KeyModifiers::NONE), None);
    assert_eq!(keymap.hint(Action::Help).as_deref(), Some("Ctrl-G"));
}

#[test]
fn an_unknown_action_is_refused_with_the_nearest_name() {
    assert_eq!(
        error(&[("sned", &["enter"])]),
        "keys.sned: there is no such action; F1 in the chat lists them (did you mean send?)"
    );
}

#[test]
fn a_key_that_cannot_be_read_is_refused_with_what_could() {
    let text = error(&[("send", &["ctrl-entr"])]);
    assert!(
        text.starts_with("keys.send: 'ctrl-entr' is no key; write modifiers"),
        "{text}"
    );
    assert!(
        text.contains("f1 to f12") && text.contains("pagedown"),
        "{text}"
    );
    for bad in ["", "f13", "f0", "ctrl-", "hyper-a", "ab"] {
        assert!(bad.parse::<Chord>().is_err(), "{bad:?}");
    }
}

#[test]
fn a_key_with_two_meanings_in_one_place_is_refused() {
    assert_eq!(
        error(&[("send", &["ctrl-j"])]),
        "keys: Ctrl-J would both send the message (keys.send) and start a new line (keys.newline); give one \
         of them another key"
    );
    assert!(error(&[("accept", &["f1"])]).contains("keys.help"));
}

#[test]
fn keys_are_shown_as_they_are_written_on_the_keyboard() {
    let shown = |text: &str| {
        text.parse::<Chord>()
            .map(|chord| (chord.to_string(), chord.short()))
            .unwrap()
    };
    assert_eq!(shown("alt-enter"), ("Alt-Enter".into(), "Alt-⏎".into()));
    assert_eq!(shown("CTRL-UP"), ("Ctrl-Up".into(), "Ctrl-↑".into()));
    assert_eq!(shown("pageup"), ("PageUp".into(), "PgUp".into()));
    assert_eq!(shown("alt-c"), ("Alt-C".into(), "Alt-C".into()));
    assert_eq!(shown("alt-C"), ("Alt-Shift-C".into(), "Alt-Shift-C".into()));
    assert_eq!(shown("G"), ("G".into(), "G".into()));
    assert_eq!(shown("-"), ("-".into(), "-".into()));
}
