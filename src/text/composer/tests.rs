#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{Composer, TooLong};
use crate::text::samples::{cells_in_ratatui, cells_in_terminal, is_harmless, nasty_text};

/// A composer from a text with its cursor as `|`.
fn composer(marked: &str) -> Composer {
    let mut composer = Composer::new();
    let cursor = marked.find('|').unwrap();
    composer.set_text(&marked.replacen('|', "", 1));
    while composer.cursor() > cursor {
        composer.left();
    }
    assert_eq!(marked_text(&composer), marked);
    composer
}

fn marked_text(composer: &Composer) -> String {
    let (before, after) = composer.text().split_at(composer.cursor());
    format!("{before}|{after}")
}

/// Does what the keys are named after; any other word is typed.
fn press(composer: &mut Composer, keys: &str) {
    for key in keys.split(' ') {
        match key {
            "left" => composer.left(),
            "right" => composer.right(),
            "word-left" => composer.word_left(),
            "word-right" => composer.word_right(),
            "home" => composer.home(),
            "end" => composer.end(),
            "start" => composer.text_start(),
            "finish" => composer.text_end(),
            "up" => drop(composer.up(11)),
            "down" => drop(composer.down(11)),
            "enter" => composer.newline(),
            "backspace" => composer.backspace(),
            "delete" => composer.delete(),
            "kill" => composer.kill_to_end(),
            "kill-back" => composer.kill_to_start(),
            "kill-word" => composer.kill_word_forward(),
            "rubout" => composer.kill_word_back(),
            "yank" => composer.yank().unwrap(),
            "undo" => drop(composer.undo()),
            "redo" => drop(composer.redo()),
            "space" => composer.insert_char(' '),
            typed => typed.chars().for_each(|c| composer.insert_char(c)),
        }
    }
}

#[track_caller]
fn check(triples: &[(&str, &str, &str)]) {
    for (before, keys, after) in triples {
        let mut composer = composer(before);
        press(&mut composer, keys);
        assert_eq!(marked_text(&composer), *after, "{before:?}, {keys}");
    }
}

#[test]
fn typing_and_erasing_go_by_what_the_eye_sees() {
    check(&[
        ("|", "hi space you", "hi you|"),
        ("a|c", "b", "ab|c"),
        ("ab|", "enter c", "ab\nc|"),
        ("👨\u{200D}👩\u{200D}👧|", "backspace", "|"),
        ("e\u{301}|x", "backspace", "|x"),
        ("|🇩🇪🇫🇷", "delete", "|🇫🇷"),
        ("|", "backspace delete left right", "|"),
        ("one\n|two", "backspace", "one|two"),
    ]);
}

#[test]
fn the_cursor_moves_by_graphemes_words_and_lines() {
    check(&[
        ("a👍🏽|", "left", "a|👍🏽"),
        ("a|👍🏽b", "right", "a👍🏽|b"),
        ("one two-three|", "word-left", "one two-|three"),
        ("one two-three|", "word-left word-left", "one |two-three"),
        ("|one  two", "word-right", "one|  two"),
        ("one|  two", "word-right", "one  two|"),
        ("é漢|", "word-left", "|é漢"),
        ("one\ntw|o\nthree", "home", "one\n|two\nthree"),
        ("one\ntw|o\nthree", "end", "one\ntwo|\nthree"),
        ("one\ntw|o", "start", "|one\ntwo"),
        ("o|ne\ntwo", "finish", "one\ntwo|"),
        ("one\n|", "word-left", "|one\n"),
    ]);
}

#[test]
fn up_and_down_go_by_rows_and_keep_the_column() {
    check(&[
        (
            "long line\nab\nlong line|",
            "up up",
            "long line|\nab\nlong line",
        ),
        (
            "long l|ine\nab\nlong line",
            "down",
            "long line\nab|\nlong line",
        ),
        (
            "long l|ine\nab\nlong line",
            "down down",
            "long line\nab\nlong l|ine",
        ),
        ("0123456789abc|", "up", "012|3456789abc"),
        ("01234567|89ab", "down", "0123456789ab|"),
        ("漢字|\nabcdef", "down", "漢字\nabcd|ef"),
        ("abc|\n漢字", "down", "abc\n漢|字"),
        ("\ta|\n012345", "down", "\ta\n01234|5"),
        ("|one", "up", "|one"),
        ("one|", "down", "one|"),
    ]);
}

#[test]
fn up_and_down_say_whether_there_was_a_row() {
    let mut composer = composer("one\ntw|o");
    assert!(!composer.down(20));
    assert!(composer.up(20));
    assert!(!composer.up(20));
}

#[test]
fn what_is_killed_can_be_brought_back() {
    check(&[
        ("one| two\nthree", "kill", "one|\nthree"),
        ("one|\ntwo", "kill", "one|two"),
        (
            "one two| three",
            "kill-back yank yank",
            "one twoone two| three",
        ),
        ("one two|", "rubout", "one |"),
        ("one |two", "kill-word start yank", "two|one "),
        ("one\n|two", "kill-back", "one|two"),
        ("|", "kill kill-back rubout kill-word yank", "|"),
    ]);
}

#[test]
fn undo_takes_back_words_and_whole_steps() {
    check(&[
        ("|", "one space two undo", "one |"),
        ("|", "one space two undo undo", "|"),
        ("|", "one space two undo undo redo redo", "one two|"),
        ("|", "one undo undo undo", "|"),
        ("abc|", "backspace backspace undo", "abc|"),
        ("a|bc", "delete delete undo", "a|bc"),
        ("one two|", "rubout undo redo undo", "one two|"),
        ("|", "ab left x undo", "a|b"),
        ("|", "ab undo c redo", "c|"),
        ("|", "ab enter undo", "ab|"),
    ]);
}

#[test]
fn a_paste_keeps_its_lines_and_its_markers_do_nothing() {
    for (pasted, text) in [
        ("a\nb\r\nc\rd", "a\nb\nc\nd"),
        ("a\u{1b}[201~b\u{1b}[200~c", "abc"),
        ("a\u{1b}[20\u{1b}[201~1~b", "ab"),
        ("a\0b", "ab"),
        ("tab\t\u{1b}[2J", "tab\t\u{1b}[2J"),
    ] {
        let mut composer = Composer::new();
        composer.insert_str(pasted).unwrap();
        assert_eq!(composer.text(), text);
    }
}

#[test]
fn a_paste_past_the_limit_is_refused_and_the_draft_kept() {
    let mut composer = composer("draft|");
    let refused = composer
        .insert_str(&"x".repeat(TooLong::LIMIT))
        .unwrap_err();
    assert_eq!(
        refused,
        TooLong {
            bytes: TooLong::LIMIT + 5
        }
    );
    assert_eq!(marked_text(&composer), "draft|");
    assert!(
        refused.to_string().starts_with("10.0 MiB is too long"),
        "{refused}"
    );
    composer
        .insert_str(&"x".repeat(TooLong::LIMIT - 5))
        .unwrap();
    press(&mut composer, "kill-back yank");
    assert!(composer.yank().is_err());
}

#[test]
fn a_megabyte_is_pasted_and_edited_without_delay() {
    for pasted in [
        "x".repeat(1 << 20),
        "漢".repeat(1 << 18),
        "a line of words\n".repeat(1 << 16),
    ] {
        let mut composer = Composer::new();
        let start = Instant::now();
        composer.insert_str(&pasted).unwrap();
        assert_eq!(composer.view(80, 5).lines.len(), 5);
        composer.backspace();
        press(&mut composer, "up up left z start y undo redo");
        assert_eq!(composer.view(80, 5).cursor, (1, 0));
        assert_eq!(
            composer.text().len(),
            pasted.len() + 2 - pasted.chars().next_back().unwrap().len_utf8()
        );
        // A tenth of this where nothing else runs.
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "{:?}",
            start.elapsed()
        );
    }
}

#[test]
fn the_history_gives_back_what_was_sent_and_at_last_the_draft() {
    let mut composer = Composer::new();
    composer.remember(["older"]);
    for text in ["one", "two", "two", "  "] {
        composer.set_text(text);
        assert_eq!(composer.submit(), text);
    }
    press(&mut composer, "dra");
    for expected in ["two|", "one|", "older|"] {
        assert!(composer.history_prev());
        assert_eq!(marked_text(&composer), expected);
    }
    assert!(!composer.history_prev());
    assert!(composer.history_next());
    press(&mut composer, "!");
    for expected in ["two|", "dra|"] {
        assert!(composer.history_next());
        assert_eq!(marked_text(&composer), expected);
    }
    assert!(!composer.history_next());
    assert_eq!(marked_text(&composer), "dra|");
}

#[test]
fn the_view_shows_the_rows_around_the_cursor() {
    let mut composer = composer("one\ntwo\nthree\nfour|");
    let view = composer.view(10, 2);
    assert_eq!(view.lines, ["three", "four"]);
    assert_eq!(
        (view.cursor, view.first_row, view.total_rows),
        ((4, 1), 2, 4)
    );
    press(&mut composer, "up");
    assert_eq!(composer.view(10, 2).cursor, (4, 0));
    press(&mut composer, "up up");
    let view = composer.view(10, 2);
    assert_eq!(view.lines, ["one", "two"]);
    assert_eq!((view.cursor, view.first_row), ((3, 0), 0));
    assert_eq!(composer.view(10, 9).lines.len(), 4);
}

#[test]
fn the_view_is_harmless_while_the_text_is_kept() {
    let mut composer = Composer::new();
    composer.insert_str("a\u{1b}[2J\u{202E}").unwrap();
    assert_eq!(composer.view(20, 1).lines, ["a␛[2J␦"]);
    assert_eq!(composer.submit(), "a\u{1b}[2J\u{202E}");
    assert!(composer.is_empty());
}

#[test]
fn a_full_row_leaves_a_cell_for_the_cursor() {
    let composer = composer("abcd|");
    assert_eq!(composer.view(5, 3).cursor, (4, 0));
    assert_eq!(composer.view(4, 3).lines, ["abc", "d"]);
    assert_eq!(composer.view(0, 3).lines, [""; 0]);
    assert_eq!(composer.view(1, 3).cursor, (0, 2));
}

const KEYS: &[&str] = &[
    "left",
    "right",
    "word-left",
    "word-right",
    "home",
    "end",
    "start",
    "finish",
    "up",
    "down",
    "enter",
    "backspace",
    "delete",
    "kill",
    "kill-back",
    "kill-word",
    "rubout",
    "undo",
    "redo",
    "space",
    "x",
    "漢",
    "🏽",
    "\u{301}",
    "\u{200D}",
    "🇩",
];

proptest! {
    #[test]
    fn any_keys_leave_the_cursor_in_sight_and_the_view_true(
        pasted in nasty_text(12),
        keys in prop::collection::vec(prop::sample::select(KEYS), 0..20),
        (width, height) in (1_u16..14, 1_u16..5),
    ) {
        let mut composer = Composer::new();
        composer.insert_str(&pasted).unwrap();
        for key in keys {
            press(&mut composer, key);
            let view = composer.view(width, height);
            prop_assert!(view.cursor.0 < width && usize::from(view.cursor.1) < view.lines.len());
            for line in &view.lines {
                prop_assert!(cells_in_ratatui(line) <= width.into() && is_harmless(line));
                prop_assert!(cells_in_terminal(line) <= width.into());
            }
            let mut fresh = Composer::new();
            fresh.set_text(composer.text());
            prop_assert_eq!(fresh.row_count(width), view.total_rows);
        }
    }

    #[test]
    fn undoing_everything_gives_nothing_and_redoing_everything_all(
        pasted in nasty_text(6),
        keys in prop::collection::vec(prop::sample::select(KEYS), 0..20),
    ) {
        let mut composer = Composer::new();
        composer.insert_str(&pasted).unwrap();
        for key in keys {
            press(&mut composer, key);
        }
        while composer.redo() {}
        let text = composer.text().to_owned();
        while composer.undo() {}
        prop_assert_eq!(composer.text(), "");
        while composer.redo() {}
        prop_assert_eq!(composer.text(), text);
    }
}

#[test]
fn long_changes_are_forgotten_early_but_the_last_one_can_be_undone() {
    let mut composer = Composer::new();
    let long = "x".repeat(3 << 20);
    composer.insert_str("kept a moment").unwrap();
    composer.set_text("");
    composer.insert_str(&long).unwrap();
    composer.set_text("");
    assert!(composer.undo());
    assert_eq!(composer.text().len(), long.len());
    assert!(!composer.undo(), "what came before is forgotten");
    composer.set_text("");
    for word in ["a", "b", "c"] {
        composer.insert_str(word).unwrap();
    }
    for left in ["ab", "a", ""] {
        assert!(composer.undo());
        assert_eq!(composer.text(), left);
    }
}
