#![allow(clippy::unwrap_used, reason = "tests")]

mod cost;

use proptest::prelude::*;

use super::{Item, ItemKind, LineKind, Thinking, Transcript};
use crate::engine::token::Role;
use crate::text::samples::{cells_in_ratatui, cells_in_terminal, is_harmless, nasty_text};

const USER: ItemKind = ItemKind::Message(Role::User);
const MODEL: ItemKind = ItemKind::Message(Role::Assistant);

fn message(id: u64, kind: ItemKind, body: &str) -> Item<'_> {
    let label = match kind {
        ItemKind::Message(role) => role.name(),
        ItemKind::Notice | ItemKind::Error => "",
    };
    Item {
        label,
        ..Item::new(id, kind, body)
    }
}

/// Everything there is, with a letter for its kind.
fn lines(transcript: &Transcript) -> Vec<String> {
    seen(transcript, u16::MAX)
}

fn seen(transcript: &Transcript, height: u16) -> Vec<String> {
    let letter = |kind| match kind {
        LineKind::Header(_) => 'h',
        LineKind::Body => ' ',
        LineKind::Thinking => 't',
        LineKind::Meta => 'm',
        LineKind::Blank => '-',
        LineKind::Notice => 'n',
        LineKind::Error => 'e',
    };
    transcript
        .visible(height)
        .map(|line| format!("{}{}", letter(line.kind), line.text))
        .collect()
}

/// Ten items of ten lines (and a blank one between two), named by item and line.
fn numbered() -> Vec<String> {
    (0..10)
        .map(|item| {
            (0..10)
                .map(|line| format!("{item}.{line}"))
                .collect::<Vec<_>>()
                .join("\n")
        })
        .collect()
}

fn items(bodies: &[String]) -> Vec<Item<'_>> {
    (0..)
        .zip(bodies)
        .map(|(id, body)| Item::new(id, MODEL, body))
        .collect()
}

#[test]
fn an_item_shows_its_parts_in_order() {
    let mut transcript = Transcript::new();
    let reply = Item {
        thinking_len: "hm, let me see\n\n".len(),
        meta: Some("12 tok · 60 tok/s"),
        ..message(2, MODEL, "hm, let me see\n\n\nParis.\n")
    };
    let items = [
        message(1, USER, "capital\nof France?"),
        reply,
        message(3, ItemKind::Notice, "new"),
        message(4, ItemKind::Error, "bad"),
    ];
    transcript.sync(&items[..], 10);
    let expected = [
        "huser",
        " capital",
        " of France?",
        "-",
        "hassistant",
        "thm, let me",
        "tsee",
        " Paris.",
        "m12 tok · ",
        "m60 tok/s",
        "-",
        "nnew",
        "-",
        "ebad",
    ];
    assert_eq!(lines(&transcript), expected);
    assert_eq!(transcript.total_lines(), expected.len());
    let folded = Item {
        thinking: Thinking::Folded,
        ..reply
    };
    transcript.sync(&[items[0], folded][..], 10);
    assert_eq!(
        lines(&transcript)[4..7],
        ["hassistant", "t▸ thinking", " Paris."]
    );
}

#[test]
fn labels_and_text_are_made_harmless() {
    let mut transcript = Transcript::new();
    let item = Item {
        label: "m\u{1b}[2J",
        meta: Some("\u{7}"),
        ..Item::new(1, MODEL, "a\u{9b}b")
    };
    transcript.sync(&vec![item], 20);
    assert_eq!(lines(&transcript), ["hm␛[2J", " a␦b", "m␇"]);
}

#[test]
fn a_text_that_changed_under_its_id_is_noticed_by_its_end() {
    let mut transcript = Transcript::new();
    for body in ["one two", "one six", "nine", "", "nine"] {
        transcript.sync(&[Item::new(1, MODEL, body)][..], 20);
        let expected: Vec<_> = (!body.is_empty())
            .then(|| format!(" {body}"))
            .into_iter()
            .collect();
        assert_eq!(lines(&transcript), expected);
    }
}

#[test]
fn the_view_follows_what_arrives_until_it_is_scrolled_and_again_from_the_end() {
    let mut bodies = numbered();
    let mut transcript = Transcript::new();
    transcript.sync(&items(&bodies), 20);
    assert_eq!(seen(&transcript, 3), [" 9.7", " 9.8", " 9.9"]);
    transcript.page_up(3);
    assert_eq!(seen(&transcript, 3), [" 9.5", " 9.6", " 9.7"]);
    assert_eq!(transcript.lines_below(3), 2);
    for _ in 0..100 {
        bodies[9].push_str(" token\n");
        transcript.sync_from(9, &items(&bodies), 20);
        assert_eq!(seen(&transcript, 3), [" 9.5", " 9.6", " 9.7"]);
        assert!(!transcript.is_following());
    }
    assert_eq!(transcript.lines_below(3), 2 + 99);
    transcript.scroll_by(100, 3);
    assert!(!transcript.is_following());
    transcript.scroll_by(1, 3);
    assert!(transcript.is_following());
    bodies[9].push_str("last");
    transcript.sync(&items(&bodies), 20);
    assert_eq!(seen(&transcript, 1), [" last"]);
}

#[test]
fn the_top_line_holds_when_lines_above_or_below_it_are_wrapped_anew() {
    let words: String = (0..2000)
        .map(|word| format!("w{word}"))
        .collect::<Vec<_>>()
        .join(" ");
    let bodies = vec![words.clone(), words];
    let mut transcript = Transcript::new();
    transcript.sync(&items(&bodies), 40);
    transcript.show_item(1, 10);
    transcript.scroll_by(8, 10);
    let word = |transcript: &Transcript| {
        seen(transcript, 10)[0]
            .split_whitespace()
            .next()
            .unwrap()
            .to_owned()
    };
    let before = word(&transcript);
    for width in [39, 20, 77, 12, 40] {
        transcript.sync(&items(&bodies), width);
        assert!(seen(&transcript, 10)[0].contains(&before), "at {width}");
    }
    assert_eq!(word(&transcript), before);
}

#[test]
fn folding_the_thinking_above_leaves_the_top_line() {
    let mut bodies = numbered();
    bodies[3].insert_str(0, "let me think\n");
    let mut folded = items(&bodies);
    folded[3].thinking_len = 13;
    let mut transcript = Transcript::new();
    transcript.sync(&folded, 8);
    transcript.show_item(5, 4);
    let before = seen(&transcript, 4);
    folded[3].thinking = Thinking::Folded;
    transcript.sync(&folded, 8);
    assert_eq!(seen(&transcript, 4), before);
}

#[test]
fn the_top_line_moves_along_with_its_item() {
    let bodies = numbered();
    let mut shown = items(&bodies);
    let mut transcript = Transcript::new();
    transcript.sync(&shown, 20);
    transcript.show_item(5, 4);
    let before = seen(&transcript, 4);
    shown.insert(2, Item::new(77, ItemKind::Notice, "saved"));
    transcript.sync(&shown, 20);
    assert_eq!(seen(&transcript, 4), before);
    shown.truncate(3);
    transcript.sync(&shown, 20);
    assert!(transcript.is_following());
    assert_eq!(seen(&transcript, 2), ["-", "nsaved"]);
}

#[test]
fn scrolling_stops_at_both_ends() {
    let bodies = numbered();
    let mut transcript = Transcript::new();
    transcript.sync(&items(&bodies), 20);
    transcript.to_start(5);
    transcript.scroll_by(-9, 5);
    assert_eq!(seen(&transcript, 2), [" 0.0", " 0.1"]);
    transcript.page_down(5);
    assert_eq!(seen(&transcript, 1), [" 0.4"]);
    transcript.scroll_by(i64::MAX, 5);
    assert!(transcript.is_following());
    transcript.scroll_by(i64::MIN, 5);
    assert_eq!(transcript.top(5), 0);
    assert_eq!(seen(&transcript, 0).len(), 0);
    transcript.to_end();
    assert_eq!(seen(&transcript, 1), [" 9.9"]);
}

#[test]
fn a_conversation_that_fits_keeps_following() {
    let bodies = ["short".to_owned()];
    let mut transcript = Transcript::new();
    for scroll in [
        Transcript::page_up,
        Transcript::page_down,
        Transcript::to_start,
    ] {
        transcript.sync(&items(&bodies), 20);
        scroll(&mut transcript, 10);
        assert!(transcript.is_following());
        assert_eq!(transcript.lines_below(10), 0);
    }
    let mut empty = Transcript::new();
    empty.scroll_by(-1, 5);
    assert_eq!(empty.visible(5).count(), 0);
}

proptest! {
    #[test]
    fn a_streamed_reply_looks_like_a_whole_one(
        thinking in nasty_text(12),
        body in nasty_text(30),
        (width, token) in (0_u16..=12, 1_usize..6),
    ) {
        let text = format!("{thinking}{body}");
        let mut streamed = Transcript::new();
        let mut end = 0;
        loop {
            let thinking_len = thinking.len().min(end);
            let meta = (end == text.len()).then_some("done");
            let item = Item { thinking_len, meta, ..message(1, MODEL, &text[..end]) };
            streamed.sync(&[item][..], width);
            let mut whole = Transcript::new();
            whole.sync(&[item][..], width);
            prop_assert_eq!(lines(&streamed), lines(&whole), "{:?}", item);
            if end == text.len() {
                break;
            }
            end = text.ceil_char_boundary(end + token);
        }
        for line in streamed.visible(u16::MAX) {
            prop_assert!(cells_in_ratatui(&line.text) <= width.into() && is_harmless(&line.text));
            prop_assert!(cells_in_terminal(&line.text) <= width.into());
        }
    }

    #[test]
    fn whatever_is_scrolled_and_resized_the_view_is_full(
        bodies in prop::collection::vec(nasty_text(30), 0..6),
        moves in prop::collection::vec((-30_i64..30, 0_u16..12, 0_u16..20), 1..12),
    ) {
        let items = items(&bodies);
        let mut transcript = Transcript::new();
        for (lines, width, height) in moves {
            transcript.sync(&items, width);
            transcript.scroll_by(lines, height);
            let total = transcript.total_lines();
            prop_assert_eq!(transcript.visible(height).count(), total.min(height.into()));
            let below = transcript.top(height) + usize::from(height) + transcript.lines_below(height);
            prop_assert!(below == total || total < usize::from(height));
            prop_assert!(!transcript.is_following() || transcript.lines_below(height) == 0);
        }
    }
}
