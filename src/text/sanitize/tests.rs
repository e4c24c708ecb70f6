use proptest::prelude::*;

use super::{visible, visible_line};
use crate::text::samples::{is_harmless, nasty_text};
use crate::text::width;

#[test]
fn terminal_sequences_become_pictures() {
    for (text, drawn) in [
        ("\u{1b}[2J", "␛[2J"),
        ("\u{1b}]52;c;QQ==\u{7}", "␛]52;c;QQ==␇"),
        ("\u{1b}]8;;u\u{1b}\\", "␛]8;;u␛\\"),
        ("a\u{8}\u{7f}\0", "a␈␡␀"),
        ("\u{9b}31m\u{9d}0;x\u{85}", "␦31m␦0;x␦"),
        ("one\rtwo", "one␍two"),
    ] {
        assert_eq!(visible(text), drawn);
    }
}

#[test]
fn a_sequence_split_over_tokens_is_as_harmless_as_a_whole_one() {
    let split: String = ["\u{1b}", "]", "0;title", "\u{7}"]
        .map(|token| visible(token).into_owned())
        .concat();
    assert_eq!(split, visible("\u{1b}]0;title\u{7}"));
}

#[test]
fn what_would_turn_or_hide_text_is_shown() {
    for hidden in [
        '\u{202E}',
        '\u{2066}',
        '\u{200E}',
        '\u{61C}',
        '\u{200B}',
        '\u{FEFF}',
        '\u{2060}',
        '\u{2064}',
        '\u{AD}',
        '\u{200D}',
        '\u{200C}',
        '\u{FE0F}',
        '\u{E0100}',
        '\u{E0041}',
        '\u{180E}',
        '\u{3164}',
    ] {
        assert_eq!(
            visible(&format!("a{hidden}b")),
            "a␦b",
            "U+{:04X}",
            u32::from(hidden)
        );
    }
    assert_eq!(visible("a\u{2028}b\u{2029}c"), "a␤b␤c");
    assert_eq!(visible("😀\u{FE0F}\u{FE0F}\u{FE0E}\u{E0100}"), "😀␦␦␦");
}

#[test]
fn a_message_spelt_in_tags_becomes_one_placeholder() {
    let tags: String = "hi"
        .chars()
        .filter_map(|c| char::from_u32(0xE0000 + u32::from(c)))
        .collect();
    assert_eq!(visible(&format!("a{tags}b")), "a␦b");
    assert_eq!(visible(&format!("🏴{tags}")), "🏴␦");
}

#[test]
fn sequences_are_drawn_in_the_form_whose_width_nobody_doubts() {
    for (text, drawn, cells) in [
        ("♻\u{FE0F}♻\u{FE0F}", "♻♻", 2),
        ("❄\u{FE0F}", "❄", 1),
        ("⌚\u{FE0E}", "⌚", 2),
        ("1\u{FE0F}\u{20E3}", "1\u{20E3}", 1),
        ("👍🏽", "👍", 2),
        ("🇩🇪", "🇩🇪", 2),
        ("👨\u{200D}👩\u{200D}👧", "👨👩👧", 6),
        ("👩🏽\u{200D}💻", "👩💻", 4),
        (
            "🏴\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
            "🏴",
            2,
        ),
        ("ｶ\u{FF9E}", "ｶ゛", 3),
        ("ខ្មែ", "ខ្\u{200C}មែ", 3),
    ] {
        assert_eq!(visible(text), drawn);
        assert_eq!(width(text), cells, "{drawn}");
    }
}

#[test]
fn letters_keep_the_joiners_that_their_script_needs() {
    for text in [
        "می\u{200C}خواهم",
        "क्\u{200D}ष",
        "שלום",
        "Ünïcödé e\u{301}",
        "葛\u{E0100}飾",
        "ก\u{E33}",
    ] {
        assert_eq!(visible(text), text);
    }
}

#[test]
fn a_mark_without_a_letter_gets_a_circle_to_sit_on() {
    assert_eq!(visible("\u{301}a"), "◌\u{301}a");
    assert_eq!(visible("\u{1b}\u{301}"), "␛◌\u{301}");
}

#[test]
fn marks_without_end_are_spread_over_many_cells() {
    let text = format!("a{}", "\u{301}".repeat(100));
    assert_eq!(visible(&text).matches('\u{301}').count(), 100);
    assert_eq!(width(&text), 1 + 92_usize.div_ceil(8));
}

#[test]
fn newlines_are_kept_or_shown_and_tabs_are_spaces() {
    assert_eq!(visible("a\r\n\tb\n"), "a\n    b\n");
    assert_eq!(visible_line("a\r\n\tb\n"), "a⏎    b⏎");
}

#[test]
fn harmless_text_is_borrowed() {
    assert!(matches!(
        visible("plain\ntext"),
        std::borrow::Cow::Borrowed(_)
    ));
    assert!(matches!(
        visible("Grüße, 世界"),
        std::borrow::Cow::Borrowed(_)
    ));
}

proptest! {
    #[test]
    fn nothing_dangerous_is_ever_drawn(text in nasty_text(40)) {
        prop_assert!(is_harmless(&visible(&text).replace('\n', "")));
        prop_assert!(is_harmless(&visible_line(&text)));
    }

    #[test]
    fn what_is_drawn_is_harmless_when_it_arrives_in_any_pieces(text in nasty_text(12)) {
        let drawn: String = text.chars().map(|c| visible_line(&c.to_string()).into_owned()).collect();
        prop_assert!(is_harmless(&drawn));
    }
}
