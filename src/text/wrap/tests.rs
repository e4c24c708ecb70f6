#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::{RowEnd, Rows, next_row, wrap};
use crate::text::samples::{cells_in_ratatui, cells_in_terminal, is_harmless, nasty_text};
use crate::text::visible;

#[test]
fn lines_break_at_spaces_and_long_words_where_they_must() {
    for (text, width, lines) in [
        ("the quick brown fox", 10, vec!["the quick ", "brown fox"]),
        ("the quick brown fox", 9, vec!["the quick", "brown fox"]),
        (
            "see https://example.org/path now",
            12,
            vec!["see ", "https://exam", "ple.org/path", "now"],
        ),
        ("abcdef", 2, vec!["ab", "cd", "ef"]),
        ("one\n\ntwo\n", 9, vec!["one", "", "two", ""]),
        ("    let x = 1;", 9, vec!["    let x", "= 1;"]),
        ("\tindented", 20, vec!["    indented"]),
        ("", 5, vec![""]),
    ] {
        assert_eq!(wrap(text, width), lines, "{text:?} at {width}");
    }
}

#[test]
fn wide_characters_break_between_each_other_but_not_before_a_full_stop() {
    assert_eq!(wrap("漢字漢字。", 8), ["漢字漢", "字。"]);
    assert_eq!(wrap("see 漢字漢字", 8), ["see 漢字", "漢字"]);
    assert_eq!(wrap("漢字漢「字」", 8), ["漢字漢", "「字」"]);
}

#[test]
fn what_is_wider_than_the_width_becomes_a_placeholder() {
    assert_eq!(wrap("a🌞b", 1), ["a", "…", "b"]);
    assert_eq!(wrap("a🌞b", 2), ["a", "🌞", "b"]);
    assert_eq!(wrap("\u{301}a", 1), ["◌\u{301}", "a"]);
    assert_eq!(wrap("some words\nmore", 0), ["", ""]);
}

#[test]
fn a_family_wraps_between_its_members() {
    assert_eq!(wrap("👨\u{200D}👩\u{200D}👧", 4), ["👨👩", "👧"]);
}

#[test]
fn a_megabyte_wraps_in_linear_time() {
    for text in [
        "x".repeat(1 << 20),
        "漢".repeat(1 << 18),
        format!("a{}", "\u{301}".repeat(1 << 19)),
        "👨\u{200D}".repeat(1 << 17),
        "\u{1100}".repeat(1 << 18),
        "🇩".repeat(1 << 18),
        " ".repeat(1 << 20),
        "\u{1b}".repeat(1 << 20),
        "क्".repeat(1 << 17),
    ] {
        let start = Instant::now();
        let rows = Rows::of(&text, 80);
        assert_eq!(rows.last().map(|row| row.end), Some(text.len()));
        let bound = Duration::from_secs(50);
        assert!(
            start.elapsed() < bound,
            "{:?} took {:?}",
            text.chars().nth(1),
            start.elapsed()
        );
    }
}

/// Only what is seen: spaces come and go at breaks.
fn ink(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, ' ' | '\n')).collect()
}

proptest! {
    #[test]
    fn lines_are_never_too_wide_nor_dangerous(text in nasty_text(60), width in 0_usize..=12) {
        for line in wrap(&text, width) {
            prop_assert!(cells_in_ratatui(&line) <= width, "ratatui: {:?}", line);
            prop_assert!(cells_in_terminal(&line) <= width, "terminal: {:?}", line);
            prop_assert!(is_harmless(&line), "{:?}", line);
        }
    }

    #[test]
    fn nothing_seen_is_lost(text in nasty_text(60), width in 2_usize..40) {
        prop_assert_eq!(ink(&wrap(&text, width).concat()), ink(&visible(&text)));
    }

    #[test]
    fn rows_follow_on_each_other_and_always_get_on(text in nasty_text(60), width in 0_usize..=12) {
        let rows = Rows::of(&text, width);
        let mut at = 0;
        for row in rows.iter() {
            prop_assert_eq!(row.start, at);
            prop_assert!(row.next > at || row.ends == RowEnd::Text);
            prop_assert_eq!(*row, next_row(&text, row.start, width));
            at = row.next;
        }
        prop_assert_eq!(at, text.len());
    }

    #[test]
    fn a_streamed_text_wraps_as_a_whole_one(
        text in nasty_text(40),
        width in 0_usize..=12,
        token in 1_usize..5,
    ) {
        let mut rows = Rows::of("", width);
        let mut end = 0;
        while end < text.len() {
            end = text.ceil_char_boundary(end + token);
            rows.append(&text[..end]);
            prop_assert_eq!(&rows, &Rows::of(&text[..end], width), "{:?}", &text[..end]);
        }
    }

    #[test]
    fn an_edited_text_wraps_as_a_new_one(
        text in nasty_text(40),
        with in nasty_text(4),
        width in 1_usize..=12,
        (from, to) in any::<(Index, Index)>(),
    ) {
        let place = |index: Index| text.floor_char_boundary(index.index(text.len() + 1));
        let (from, to) = (place(from).min(place(to)), place(from).max(place(to)));
        let mut rows = Rows::of(&text, width);
        let mut edited = text.clone();
        edited.replace_range(from..to, &with);
        rows.replace(&edited, from, to - from, with.len());
        prop_assert_eq!(rows, Rows::of(&edited, width), "{:?}", edited);
    }
}

#[test]
fn a_hundred_thousand_random_characters_wrap_at_every_small_width() {
    let mut random = TestRunner::deterministic();
    let any = prop::collection::vec(any::<char>(), 70_000)
        .new_tree(&mut random)
        .unwrap()
        .current();
    let hard = nasty_text(20_000).new_tree(&mut random).unwrap().current();
    let text = any.into_iter().chain(hard.chars()).collect::<String>();
    for width in 1..=12 {
        let lines = wrap(&text, width);
        assert_eq!(lines.iter().find(|line| !is_harmless(line)), None);
        assert_eq!(
            lines.iter().find(|line| cells_in_ratatui(line) > width),
            None,
            "at {width}"
        );
        assert_eq!(
            Rows::of(&text, width).last().map(|row| row.end),
            Some(text.len())
        );
    }
}
