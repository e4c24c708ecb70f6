//! Nothing panics at any size, in any state.

use crossterm::event::KeyCode;
use platen::app::message::Msg;
use platen::config::Config;
use platen::engine::event::{EngineError, Event, StopReason};
use platen::logging::{LogLevel, LogLine};

use crate::person::{Person, model};

fn states() -> Vec<(&'static str, Person)> {
    let ready = || Person::ready(80, 24);
    let with = |mut person: Person, change: &dyn Fn(&mut Person)| {
        change(&mut person);
        person
    };
    let decoding = |person: &mut Person| {
        person.turn("♻️♻️ ❄️ 日本語", ["🌞 a", "\u{301}b"]);
        person.say("A question of some length that wraps on small screens");
        person.prefill(57, 57, 298);
        person.token("word ");
        person.token("🌞");
        person.say("queued");
        person.type_str("a draft\n");
    };
    let failing = |person: &mut Person| {
        let id = person.load_id();
        person.hear(Event::Failed {
            id,
            error: EngineError::new("The file is cut off.", "Fetch it again."),
        });
        person.tell(Msg::Models(vec![model("one"), model("two")]));
    };
    let logged = |person: &mut Person| {
        let line = LogLine {
            level: LogLevel::Warn,
            target: "llama.cpp".into(),
            text: "日本語 ".repeat(30),
        };
        person.tell(Msg::Log(vec![line; 9]));
        person.press(KeyCode::F(2));
        person.press(KeyCode::Up);
    };
    let empty = |person: &mut Person| {
        person.start();
        person.tell(Msg::Models(Vec::new()));
    };
    vec![
        ("loading", Person::loading(80, 24)),
        ("idle", ready()),
        (
            "prefill",
            with(ready(), &|person| {
                person.say("hello");
                person.prefill(10, 57, 100);
            }),
        ),
        ("decoding", with(ready(), &decoding)),
        (
            "finished",
            with(ready(), &|person| {
                decoding(person);
                person.finish(StopReason::MaxTokens);
                person.press(KeyCode::PageUp);
            }),
        ),
        ("completing", with(ready(), &|person| person.type_str("/"))),
        ("help", with(ready(), &|person| person.press(KeyCode::F(1)))),
        ("log", with(ready(), &logged)),
        ("failed", with(Person::loading(80, 24), &failing)),
        (
            "catalogue",
            with(Person::at(80, 24, &Config::default()), &empty),
        ),
        (
            "downloading",
            with(Person::at(80, 24, &Config::default()), &|person| {
                empty(person);
                person.press(KeyCode::Enter);
            }),
        ),
        ("quitting", with(ready(), &|person| person.ctrl('c'))),
    ]
}

#[test]
fn every_state_is_drawn_at_every_small_size() {
    for (_, mut person) in states() {
        for (width, height) in
            (0..=30).flat_map(|width| (0..=12).map(move |height| (width, height)))
        {
            person.resize(width, height);
            person.screen();
        }
        for (width, height) in [
            (59, 16),
            (60, 16),
            (99, 16),
            (100, 16),
            (100, 20),
            (130, 25),
            (300, 4),
        ] {
            person.resize(width, height);
            person.screen();
        }
    }
}

#[test]
fn every_state_recovers_from_a_screen_of_one_cell() {
    for (name, mut person) in states() {
        let before = person.screen();
        person.resize(1, 1);
        person.screen();
        person.resize(80, 24);
        assert_eq!(person.screen(), before, "{name}");
    }
}

#[test]
fn no_row_is_wider_than_the_screen_and_no_frame_is_ragged() {
    for (name, mut person) in states() {
        for width in [60, 61, 80, 99, 100, 101, 129, 130, 160] {
            person.resize(width, 30);
            let screen = person.screen();
            let rows: Vec<&str> = screen.lines().collect();
            let framed = rows.iter().skip_while(|row| !row.starts_with('┌'));
            for row in framed {
                assert_eq!(
                    platen::text::width(row),
                    usize::from(width),
                    "{name} at {width}: {row}\n{screen}"
                );
                assert!(
                    row.ends_with(['┐', '│', '┤', '┘']),
                    "{name} at {width}: {row}\n{screen}"
                );
            }
        }
    }
}

#[test]
fn a_screen_too_small_says_so() {
    let mut person = Person::ready(80, 24);
    person.resize(19, 6);
    person.sees("needs\n20 × 5.");
    person.resize(20, 5);
    person.sees_not("needs");
}
