//! What a terminal shows after many frames, each of which wrote only what changed, is what one whole frame shows.

use std::cell::RefCell;
use std::io::{self, Write};
use std::num::NonZero;
use std::rc::Rc;

use crossterm::event::{KeyCode, KeyModifiers};
use platen::app::message::Msg;
use platen::engine::event::StopReason;
use proptest::prelude::*;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};

use crate::person::Person;

/// The bytes that a frame writes.
#[derive(Clone, Default)]
struct Wire(Rc<RefCell<Vec<u8>>>);

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A terminal that is only written what changes.
struct Emulator {
    wire: Wire,
    terminal: Terminal<CrosstermBackend<Wire>>,
    screen: vt100::Parser,
}

impl Emulator {
    fn new(width: u16, height: u16) -> Emulator {
        let wire = Wire::default();
        let options = TerminalOptions {
            viewport: Viewport::Fixed(Rect::new(0, 0, width, height)),
        };
        let cells = |count| NonZero::new(count).unwrap();
        Emulator {
            terminal: Terminal::with_options(CrosstermBackend::new(wire.clone()), options).unwrap(),
            wire,
            screen: vt100::Parser::new(cells(height), cells(width), 0),
        }
    }

    /// As the program does at another size: everything is drawn again.
    fn resize(&mut self, width: u16, height: u16) {
        let cells = |count| NonZero::new(count).unwrap();
        self.screen
            .screen_mut()
            .set_size(cells(height), cells(width));
        self.terminal
            .resize(Rect::new(0, 0, width, height))
            .unwrap();
    }

    fn draw(&mut self, person: &Person) -> String {
        self.terminal
            .draw(|frame| platen::ui::draw(frame, &person.app))
            .unwrap();
        let bytes = std::mem::take(&mut *self.wire.0.borrow_mut());
        // The emulator leaves U+FFFD out, which terminals draw in one cell.
        let text = String::from_utf8(bytes).unwrap().replace('\u{FFFD}', "?");
        self.screen.process(text.as_bytes());
        // A blank that was written and a cell that never was look alike.
        let contents = self.screen.screen().contents();
        let rows: Vec<&str> = contents.lines().map(str::trim_end).collect();
        rows.join("\n")
    }

    /// What stands in the last column, row by row, with what stands before it.
    fn rows(&self, width: u16) -> Vec<String> {
        let screen = self.screen.screen();
        let last = |row| {
            screen
                .cell(row, width - 1)
                .map_or("", vt100::Cell::contents)
        };
        let rows = screen.rows(0, width - 1).zip(0..);
        rows.map(|(text, row)| format!("{text}{}", last(row)))
            .collect()
    }
}

const WIDE: [&str; 12] = [
    "♻️♻️",
    "👩\u{200d}🚀",
    "👨\u{200d}👩\u{200d}👧",
    "👍🏽",
    "🇩🇪🇫🇷",
    "1️⃣",
    "❄️❄",
    "日本語",
    "한국어",
    "e\u{301}\u{323}",
    "a🌞b",
    "עברית مرحبا",
];

#[test]
fn nothing_is_left_of_wide_characters_that_were_drawn_over() {
    for (width, height) in [(60, 16), (61, 16), (100, 20), (33, 9)] {
        let mut person = Person::ready(width, height);
        let mut emulator = Emulator::new(width, height);
        let mut check = |person: &Person, step: &str| {
            let screen = emulator.draw(person);
            let fresh = Emulator::new(width, height).draw(person);
            assert_eq!(screen, fresh, "{width}×{height}, {step}");
            let framed = screen.lines().skip_while(|row| !row.starts_with('┌'));
            for row in framed {
                assert!(
                    row.ends_with(['┐', '│', '┤', '┘']),
                    "{width}×{height}, {step}: {row}"
                );
            }
        };
        for (at, sample) in WIDE.iter().enumerate() {
            // Rows that end at the border in every way that a pair of cells can.
            let text = format!("{}{}", "x".repeat(at % 4), sample.repeat(40));
            person.say(&text);
            check(&person, sample);
            person.prefill(57, 57, 298);
            for _ in 0..8 {
                person.token(sample);
                check(&person, sample);
            }
            person.finish(StopReason::Eog);
            check(&person, sample);
        }
        for key in [
            KeyCode::PageUp,
            KeyCode::PageUp,
            KeyCode::PageUp,
            KeyCode::PageDown,
        ] {
            person.press(key);
            check(&person, "scrolled");
        }
        person.press(KeyCode::F(1));
        check(&person, "help over it");
        person.press(KeyCode::Esc);
        person.press_with(KeyModifiers::CONTROL, KeyCode::End);
        check(&person, "back at the end");
        person.say("/new");
        check(&person, "a new chat");
        person.turn("only ASCII", ["plain", " text"]);
        check(&person, "ASCII instead");
    }
}

/// One thing that changes the screen.
#[derive(Debug, Clone)]
enum Step {
    Say(String),
    Reply(Vec<String>),
    Paste(String),
    Press(KeyCode),
    ToStart,
    ToEnd,
    Resize(u16, u16),
    New,
}

/// Text that stands at a border in every way: wide, joined, marked, from right to left, and plain.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(WIDE.to_vec()).prop_map(str::to_owned),
        2 => "[a-z ]{1,7}",
        1 => prop::sample::select(vec!["\n", "\t", "🏴\u{e0067}\u{e0062}\u{e007f}", "🇩", "ｶ\u{ff9e}", "\u{301}", "ก\u{e33}", "👩🏽\u{200d}💻", "\u{202e}אב"]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 1..40).prop_map(|pieces| pieces.concat())
}

fn step() -> impl Strategy<Value = Step> {
    let keys = vec![
        KeyCode::PageUp,
        KeyCode::PageDown,
        KeyCode::F(1),
        KeyCode::F(2),
        KeyCode::F(3),
        KeyCode::F(4),
        KeyCode::Esc,
        KeyCode::Up,
        KeyCode::Left,
        KeyCode::Backspace,
    ];
    prop_oneof![
        2 => text().prop_map(Step::Say),
        3 => prop::collection::vec(text(), 1..6).prop_map(Step::Reply),
        2 => text().prop_map(Step::Paste),
        4 => prop::sample::select(keys).prop_map(Step::Press),
        1 => Just(Step::ToStart),
        1 => Just(Step::ToEnd),
        2 => (33_u16..110, 9_u16..34).prop_map(|(width, height)| Step::Resize(width, height)),
        1 => Just(Step::New),
    ]
}

/// A person at the emulator, and how many of the messages sent were answered.
struct Desk {
    person: Person,
    emulator: Emulator,
    size: (u16, u16),
    answered: usize,
}

impl Desk {
    fn new(width: u16, height: u16) -> Desk {
        Desk {
            person: Person::ready(width, height),
            emulator: Emulator::new(width, height),
            size: (width, height),
            answered: 0,
        }
    }

    fn take(&mut self, step: Step) {
        let person = &mut self.person;
        match step {
            Step::Say(text) => person.say(&text.replace('\n', " ")),
            Step::Reply(tokens) => {
                person.say("go on");
                while person.requests().len() > self.answered {
                    for token in &tokens {
                        person.token(token);
                    }
                    person.finish(StopReason::Eog);
                    self.answered += 1;
                }
            }
            Step::Paste(text) => person.tell(Msg::Paste(text)),
            Step::Press(key) => person.press(key),
            Step::ToStart => person.press_with(KeyModifiers::CONTROL, KeyCode::Home),
            Step::ToEnd => person.press_with(KeyModifiers::CONTROL, KeyCode::End),
            Step::Resize(width, height) => {
                person.resize(width, height);
                self.emulator.resize(width, height);
                self.size = (width, height);
            }
            Step::New => person.say("/new"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_changes_alone_draws_the_same_screen_as_everything_anew(
        steps in prop::collection::vec(step(), 1..30)
    ) {
        let mut desk = Desk::new(80, 24);
        for step in steps {
            let told = format!("{step:?}");
            desk.take(step);
            let (width, height) = desk.size;
            let screen = desk.emulator.draw(&desk.person);
            let fresh = Emulator::new(width, height).draw(&desk.person);
            prop_assert_eq!(&screen, &fresh, "{}x{}, {}", width, height, told);
            let rows = desk.emulator.rows(width);
            // Small windows have no frame, only lists of commands over the text.
            let framed = |row: &&String| row.starts_with('┌') && row.ends_with('┐');
            for row in rows.iter().skip_while(|row| !framed(row)) {
                prop_assert!(
                    row.ends_with(['┐', '│', '┤', '┘']),
                    "{}x{}, {}: {:?}\n{}", width, height, told, row, screen
                );
            }
        }
    }
}
