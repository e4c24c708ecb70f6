//! What a streamed token costs, whatever came before it.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::{MODEL, items, numbered};
use crate::text::transcript::{Item, Items, Transcript};

/// Counts how often items are asked for.
struct Counted<'a>(&'a [Item<'a>], Cell<usize>);

impl Items for Counted<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn item(&self, index: usize) -> Item<'_> {
        self.1.set(self.1.get() + 1);
        self.0[index]
    }
}

#[test]
fn a_token_asks_for_its_own_item_alone() {
    let bodies = numbered();
    let items = items(&bodies);
    let counted = Counted(&items, Cell::new(0));
    let mut transcript = Transcript::new();
    transcript.sync(&counted, 20);
    assert_eq!(counted.1.take(), 10);
    transcript.sync_from(9, &counted, 20);
    assert_eq!(counted.1.take(), 1);
    transcript.sync_from(9, &counted, 21);
    assert_eq!(counted.1.take(), 10);
}

#[test]
fn a_hundred_thousand_lines_cost_a_token_no_more_than_ten() {
    let long = "a line of this long reply\n".repeat(100_000);
    let mut bodies = [long.clone(), long];
    let mut transcript = Transcript::new();
    transcript.sync(&items(&bodies), 80);
    assert_eq!(transcript.total_lines(), 200_001);
    let start = Instant::now();
    for _ in 0..1000 {
        bodies[1].push_str("token ");
        transcript.sync_from(1, &items(&bodies), 80);
        assert_eq!(transcript.visible(50).count(), 50);
    }
    // Wrapping it all a thousand times would take minutes.
    assert!(
        start.elapsed() < Duration::from_secs(30),
        "{:?}",
        start.elapsed()
    );
    transcript.to_start(50);
    transcript.scroll_by(150_000, 50);
    assert_eq!(transcript.top(50), 150_000);
    assert!(
        transcript
            .visible(50)
            .all(|line| line.text == "a line of this long reply")
    );
    transcript.to_end();
    assert!(
        transcript
            .visible(50)
            .last()
            .unwrap()
            .text
            .ends_with("token")
    );
}

#[test]
fn a_megabyte_without_spaces_streams_and_shows_its_last_line() {
    let mut bodies = ["x".repeat(1 << 20)];
    let mut transcript = Transcript::new();
    transcript.sync(&items(&bodies), 80);
    let start = Instant::now();
    for _ in 0..1000 {
        bodies[0].push('y');
        transcript.sync(&items(&bodies), 80);
    }
    assert!(
        start.elapsed() < Duration::from_secs(30),
        "{:?}",
        start.elapsed()
    );
    assert!(transcript.visible(20).last().unwrap().text.ends_with('y'));
}

#[test]
fn a_reply_after_thinking_costs_a_token_no_more_than_one_without() {
    let body = format!("thought\n{}", "word ".repeat(200_000));
    let item = |end| Item {
        thinking_len: 8,
        ..Item::new(1, MODEL, &body[..end])
    };
    let mut transcript = Transcript::new();
    transcript.sync(&[item(body.len() - 5000)][..], 80);
    let start = Instant::now();
    for end in body.len() - 5000..=body.len() {
        transcript.sync(&[item(end)][..], 80);
    }
    assert!(
        start.elapsed() < Duration::from_secs(30),
        "{:?}",
        start.elapsed()
    );
}
