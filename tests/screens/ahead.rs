//! When the draft is read while it is written.

use crossterm::event::KeyCode;
use platen::app::App;
use platen::app::message::{Effect, Msg};
use platen::engine::command::Command;
use platen::engine::event::{Event, StopReason};

use crate::person::Person;

fn asked(person: &Person) -> Vec<String> {
    person
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Engine(Command::ReadAhead {
                messages, draft, ..
            }) => Some(format!("{} {draft}", messages.len())),
            Effect::CancelThrough(_) => Some("stop".into()),
            _ => None,
        })
        .collect()
}

fn reading() -> Person {
    let mut person = Person::ready(80, 24);
    person.alter(App::with_read_ahead);
    person
}

fn quiet(person: &mut Person) {
    for _ in 0..4 {
        person.wait(100);
        person.tell(Msg::Tick);
    }
}

#[test]
fn a_draft_is_read_once_the_keyboard_is_quiet_and_only_once() {
    let mut person = reading();
    quiet(&mut person);
    assert_eq!(
        asked(&person),
        ["0 "],
        "a chat's beginning is read before the first key"
    );
    person.type_str("Why is");
    assert_eq!(asked(&person)[1..], ["stop"], "a key stops what runs");
    person.wait(100);
    person.tell(Msg::Tick);
    person.type_str(" the");
    person.wait(100);
    person.tell(Msg::Tick);
    assert_eq!(asked(&person).len(), 2, "not while keys come");
    quiet(&mut person);
    assert_eq!(asked(&person)[2..], ["0 Why is the"]);
    quiet(&mut person);
    assert_eq!(asked(&person).len(), 3, "it is read already");
}

#[test]
fn a_turn_needs_no_reading_ahead_and_what_follows_it_does() {
    let mut person = reading();
    person.say("Hello");
    quiet(&mut person);
    assert_eq!(asked(&person), [""; 0], "the engine is busy");
    person.prefill(57, 57, 298);
    person.token("Hi");
    person.finish(StopReason::Eog);
    quiet(&mut person);
    assert_eq!(asked(&person), ["2 "], "the end of the turn");
    let id = person.effects.iter().find_map(|effect| match effect {
        Effect::Engine(Command::ReadAhead { id, .. }) => Some(*id),
        _ => None,
    });
    person.hear(Event::ReadAhead {
        id: id.unwrap(),
        read: 12,
        total: 1_400,
    });
    person.sees("reading ahead 12/1,400");
    person.hear(Event::ReadAhead {
        id: id.unwrap(),
        read: 1_400,
        total: 1_400,
    });
    person.sees("idle");
}

#[test]
fn a_message_whose_reply_was_stopped_is_not_read_on() {
    let mut person = reading();
    person.say("A long message");
    person.press(KeyCode::Esc);
    person.finish(StopReason::Cancelled);
    quiet(&mut person);
    let read = asked(&person);
    assert!(read.iter().all(|what| what == "stop"), "{read:?}");
}

#[test]
fn a_command_is_no_draft_of_a_message() {
    let mut person = reading();
    quiet(&mut person);
    person.type_str("/temp 0.3");
    quiet(&mut person);
    assert_eq!(asked(&person), ["0 "]);
}

#[test]
fn without_the_wish_nothing_is_read() {
    let mut person = Person::ready(80, 24);
    person.type_str("Why");
    quiet(&mut person);
    assert_eq!(asked(&person), [""; 0]);
}
