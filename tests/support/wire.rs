//! What may reach a terminal, byte by byte: text that is seen, and the control sequences that this program is known
//! to write. Everything else is foreign. The lists stand here on their own, so that a fault in the program's own
//! rule doesn't hide itself.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "shared by tests that each use a part"
)]

/// Everything that steers a terminal or hides text, as a model or a file may say it. It holds no sequence that the
/// program writes itself.
pub const HOSTILE: &str = "\u{1b}]52;c;QQ==\u{7}\u{1b}]0;x\u{7}\u{1b}]8;;u\u{1b}\\\u{1b}[3J\u{1b}[6n\u{1b}c\
    \u{1b}Pq\u{1b}\\\u{9b}2J\u{9d}0;x\u{9c}\u{8}\u{7f}\r\u{202e}\u{2066}\u{61c}\u{200e}\u{200f}\u{200b}\u{feff}\
    \u{e0041}\u{1b}]cut";

/// Where bytes end up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// A file or a pipe: text alone.
    Pipe,
    /// A terminal that a command writes lines to: also progress that overwrites itself, and the help's styles.
    Lines,
    /// A terminal that the screen was drawn on.
    Screen,
}

/// The modes that the screen sets or unsets.
const MODES: [&str; 8] = [
    "?25", "?1000", "?1002", "?1003", "?1006", "?1049", "?2004", "?2026",
];

/// The first thing in `bytes` that doesn't belong there, with what surrounds it.
pub fn foreign(bytes: &[u8], stream: Stream) -> Option<String> {
    let around = |at: usize| {
        let from = at.saturating_sub(60);
        let to = (at + 60).min(bytes.len());
        Some(format!("byte {at}: {}", bytes[from..to].escape_ascii()))
    };
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return around(error.valid_up_to()),
    };
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at + c.len_utf8()..];
        let len = match c {
            '\n' => Some(1),
            '\t' if stream != Stream::Screen => Some(1),
            '\r' | '\u{1b}' if stream == Stream::Pipe => None,
            // The terminal's own line end, or a line that is written anew.
            '\r' => returns(rest, stream).then_some(1),
            '\u{1b}' => own_sequence(rest, stream).map(|len| 1 + len),
            c if is_foreign(c) => None,
            c => Some(c.len_utf8()),
        };
        match len {
            Some(len) => at += len,
            None => return around(at),
        }
    }
    None
}

fn returns(rest: &str, stream: Stream) -> bool {
    rest.starts_with('\n')
        || rest.starts_with("\r\n")
        || (stream == Stream::Lines
            && (rest.starts_with("loading ") || rest.starts_with("\u{1b}[K")))
}

/// How many bytes of `rest` end a sequence of our own that an escape character began.
fn own_sequence(rest: &str, stream: Stream) -> Option<usize> {
    let body = rest.strip_prefix('[')?;
    let end = body.find(|c: char| c.is_ascii_alphabetic())?;
    let (parameters, letter) = (&body[..end], &body[end..=end]);
    let numbers = parameters.chars().all(|c| c.is_ascii_digit() || c == ';');
    let own = match (letter, stream) {
        ("m", _) | ("H", Stream::Screen) => numbers,
        ("K", Stream::Lines) => parameters.is_empty(),
        ("J", Stream::Screen) => matches!(parameters, "" | "2"),
        ("h" | "l", Stream::Screen) => MODES.contains(&parameters),
        ("u", Stream::Screen) => matches!(parameters, ">1" | "<1"),
        _ => false,
    };
    own.then_some(2 + end)
}

/// Controls, and what turns or hides text; joiners and selectors, which spell words and emoji, are neither.
fn is_foreign(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}' | '\u{ad}'
        )
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}')
        || matches!(c, '\u{e0000}'..='\u{e007f}')
}

#[test]
fn the_reader_of_bytes_knows_what_is_foreign() {
    for stream in [Stream::Pipe, Stream::Lines, Stream::Screen] {
        assert_eq!(
            foreign("plain é 漢 👩\u{200d}🚀\n".as_bytes(), stream),
            None
        );
        for (at, c) in HOSTILE.char_indices() {
            if c == '\u{1b}' || is_foreign(c) {
                assert!(
                    foreign(&HOSTILE.as_bytes()[at..], stream).is_some(),
                    "{:?}",
                    &HOSTILE[at..]
                );
            }
        }
        assert!(foreign(b"\xff", stream).is_some());
    }
    assert_eq!(
        foreign(b"\x1b[?2026h\x1b[3;4Hx\x1b[1;38;5;2m\r\n", Stream::Screen),
        None
    );
    assert_eq!(foreign(b"\rloading  3 %\r\x1b[K\r\n", Stream::Lines), None);
    assert!(foreign(b"a\rb", Stream::Lines).is_some());
    assert!(foreign(b"\x1b[1m", Stream::Pipe).is_some());
}
