//! Texts that break terminals and wrapping, for the property tests.

use std::num::NonZero;

use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Wider than any line that the tests make.
const COLUMNS: NonZero<u16> = NonZero::new(2000).unwrap();

const NASTY: &[&str] = &[
    "a",
    "word",
    " ",
    "  ",
    "\n",
    "\t",
    "\r\n",
    "\r",
    "漢",
    "字。",
    "「",
    "한국",
    "\u{1112}\u{1161}\u{11AB}",
    "\u{1100}",
    "\u{1161}",
    "🌞",
    "♻\u{FE0F}",
    "❄\u{FE0F}",
    "⌚\u{FE0E}",
    "1\u{FE0F}\u{20E3}",
    "👍🏽",
    "🏽",
    "👨\u{200D}👩\u{200D}👧",
    "🏳\u{FE0F}\u{200D}🌈",
    "🇩🇪",
    "🇩",
    "🏴\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
    "\u{E0041}",
    "\u{301}",
    "e\u{301}",
    "\u{200B}",
    "\u{200C}",
    "\u{200D}",
    "\u{202E}",
    "\u{2066}",
    "\u{FEFF}",
    "\u{AD}",
    "\u{FE0F}",
    "\u{E0100}",
    "葛\u{E0100}",
    "שלום",
    "א\u{200D}ל",
    "السلام",
    "لا",
    "क्षत्रिय",
    "स्त्र्य",
    "\u{93E}",
    "ကျွန်",
    "\u{17D8}",
    "ខ្មែរ",
    "ก\u{E33}",
    "\u{600}",
    "\u{605}",
    "ｶ\u{FF9E}",
    "\u{FF9F}",
    "\u{1b}[2J",
    "\u{1b}]0;x\u{7}",
    "\u{9b}31m",
    "\u{9d}",
    "\u{7f}",
    "\0",
    "\u{2028}",
    "https://example.org/a/long/path",
    "“",
    "”\u{FE01}",
    "\u{1F3F4}",
    "ꓹꓼ",
];

/// Text made of everything that is hard.
pub fn nasty_text(parts: usize) -> impl Strategy<Value = String> {
    let part = prop_oneof![
        6 => proptest::sample::select(NASTY).prop_map(str::to_owned),
        2 => "[ -~]{1,9}",
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(part, 0..parts).prop_map(|parts| parts.concat())
}

/// The cells that ratatui uses for a line.
pub fn cells_in_ratatui(line: &str) -> usize {
    let mut buffer = Buffer::empty(Rect::new(0, 0, COLUMNS.get(), 1));
    buffer
        .set_stringn(0, 0, line, COLUMNS.get().into(), Style::new())
        .0
        .into()
}

/// The cells that a terminal uses for a line when it counts character by character.
pub fn cells_in_terminal(line: &str) -> usize {
    let mut terminal = vt100::Parser::new(NonZero::<u16>::MIN, COLUMNS, 0);
    // The emulator leaves U+FFFD out, which terminals draw in one cell.
    terminal.process(line.replace('\u{FFFD}', "?").as_bytes());
    terminal.screen().cursor_position().1.into()
}

/// Whether a terminal would obey or hide any of it.
pub fn is_harmless(line: &str) -> bool {
    !line.chars().any(|c| {
        c.is_control()
            || matches!(c, '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}')
            || matches!(c, '\u{61C}' | '\u{AD}' | '\u{FEFF}' | '\u{2028}' | '\u{2029}' | '\u{E0000}'..='\u{E00FF}')
    })
}
