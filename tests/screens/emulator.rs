//! What a terminal shows after many frames, each of which wrote only what changed, is what one whole frame shows.

use std::cell::RefCell;
use std::io::{self, Write};
use std::num::NonZero;
use std::rc::Rc;

use crossterm::event::{KeyCode, KeyModifiers};
use platen::engine::event::StopReason;
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

    fn draw(&mut self, person: &Person) -> String {
        self.terminal
            .draw(|frame| platen::ui::draw(frame, &person.app))
            .unwrap();
        let bytes = std::mem::take(&mut *self.wire.0.borrow_mut());
        self.screen.process(&bytes);
        // A blank that was written and a cell that never was look alike.
        let contents = self.screen.screen().contents();
        let rows: Vec<&str> = contents.lines().map(str::trim_end).collect();
        rows.join("\n")
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
