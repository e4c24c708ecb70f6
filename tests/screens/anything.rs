//! Whatever is pressed and whatever the engine says, in any order: no panic, nothing raw on the screen, and
//! never two turns at once.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyModifiers};
use platen::app::message::{Effect, Msg};
use platen::config::Config;
use platen::engine::command::{Command, RequestId};
use platen::engine::event::{
    EngineError, Event, Gauges, PrefillProgress, SampledToken, StopReason,
};
use platen::engine::token::{TokenId, TokenRun};
use platen::models::download::DownloadEvent;
use proptest::prelude::*;

use crate::person::{Person, facts, model, stats};

const TEXTS: [&str; 8] = [
    "a",
    " word",
    "\n",
    "日本語",
    "♻️",
    "\u{301}",
    "\u{1b}[2J",
    "/model x",
];

/// What can happen in one step.
fn step() -> impl Strategy<Value = (u8, u8, u8)> {
    (0u8..22, any::<u8>(), any::<u8>())
}

fn key(person: &mut Person, which: u8, modifier: u8) {
    let codes = [
        KeyCode::Enter,
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Tab,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::PageUp,
        KeyCode::PageDown,
        KeyCode::Backspace,
        KeyCode::Delete,
        KeyCode::F(1),
        KeyCode::F(2),
        KeyCode::F(3),
        KeyCode::F(4),
        KeyCode::Char('c'),
        KeyCode::Char('r'),
        KeyCode::Char('u'),
        KeyCode::Char('w'),
        KeyCode::Char('y'),
        KeyCode::Char('/'),
        KeyCode::Char('x'),
        KeyCode::Char('n'),
    ];
    let modifiers = [
        KeyModifiers::NONE,
        KeyModifiers::NONE,
        KeyModifiers::CONTROL,
        KeyModifiers::ALT,
    ];
    let code = codes[usize::from(which) % codes.len()];
    person.press_with(modifiers[usize::from(modifier) % modifiers.len()], code);
}

/// The id of a request of the past, mostly the last one.
fn id_of(person: &Person, pick: u8) -> RequestId {
    let ids = person.effects.iter().filter_map(|effect| match effect {
        Effect::Engine(Command::Generate { id, .. } | Command::Load { id, .. }) => Some(*id),
        _ => None,
    });
    let ids: Vec<RequestId> = ids.collect();
    let back = if pick.is_multiple_of(5) {
        usize::from(pick / 5)
    } else {
        0
    };
    ids.len()
        .checked_sub(1 + back)
        .map_or(RequestId(99), |index| ids[index])
}

fn happen(person: &mut Person, (what, one, two): (u8, u8, u8)) {
    let id = id_of(person, one);
    let text = TEXTS[usize::from(two) % TEXTS.len()];
    match what {
        0..=6 => key(person, one, two),
        7 => person.type_str(text),
        8 => person.tell(Msg::Paste(text.repeat(usize::from(one)))),
        9 => person.say(text),
        10 => person.hear(Event::Ready {
            id,
            facts: Box::new(facts()),
            load: Duration::ZERO,
        }),
        11 => person.hear(Event::Failed {
            id,
            error: EngineError::new(text, text),
        }),
        12 => {
            let progress = PrefillProgress {
                read_tokens: u32::from(one),
                to_read_tokens: u32::from(two),
                elapsed: Duration::from_millis(u64::from(one)),
                ..PrefillProgress::default()
            };
            person.hear(Event::Prefill { id, progress });
        }
        13..=15 => {
            let token = SampledToken {
                id: TokenId(1),
                bytes: text.as_bytes().to_vec(),
                text: text.to_owned(),
                thinking_len: usize::from(one) % 7,
                probability: f32::from(two) / 255.0,
                alternatives: Vec::new(),
                at: platen::clock::Clock::now(&person.clock),
                temperature: f32::from(two % 4),
                sampling: None,
            };
            person.hear(Event::Token { id, token });
        }
        16 => {
            let stop =
                [StopReason::Eog, StopReason::Cancelled, StopReason::Context][usize::from(two) % 3];
            let (tail, tokens) = (text.to_owned(), TokenRun::default());
            let stats = Box::new(stats(stop, u32::from(one)));
            person.hear(Event::Finished {
                id,
                stop,
                tail,
                tail_thinking_len: usize::from(one) % 5,
                tokens,
                stats,
            });
        }
        17 => person.tell(Msg::Gauges(Gauges {
            decode_tok_s: Some(f64::from(one)),
            cache_used: u32::from(two),
            ..Gauges::default()
        })),
        18 => person.resize(u16::from(one), u16::from(two / 4)),
        19 => person.tell(Msg::Models((0..two % 3).map(|_| model(text)).collect())),
        20 => person.tell(Msg::Download(match two % 4 {
            0 => DownloadEvent::Progress {
                done: u64::from(one),
                total: u64::from(two),
            },
            1 => DownloadEvent::Verifying,
            2 => DownloadEvent::Failed {
                message: text.into(),
            },
            _ => DownloadEvent::Done { path: text.into() },
        })),
        _ => {
            person.wait(u64::from(one));
            person.tell(Msg::Tick);
        }
    }
}

/// Every request has a greater id than those before it, and none overtakes another.
fn requests_are_in_order(person: &Person) -> bool {
    let ids: Vec<RequestId> = person.requests().iter().map(|(id, _)| *id).collect();
    ids.is_sorted_by(|one, next| one < next)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_screen_is_drawn(steps in prop::collection::vec(step(), 1..80)) {
        let config = Config { model: Some("m.gguf".into()), ..Config::default() };
        let mut person = Person::at(80, 24, &config);
        person.start();
        for step in steps {
            happen(&mut person, step);
            let screen = person.screen();
            prop_assert!(!screen.chars().any(|c| c.is_control() && c != '\n'), "{screen:?}");
            prop_assert!(requests_are_in_order(&person));
        }
    }
}
