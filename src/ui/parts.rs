//! Small pieces that several panels are made of: bars, sparklines, lists of facts that shrink to their room.

use std::collections::VecDeque;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::text;

/// What stands between two facts.
pub const DOT: &str = " · ";

/// A bar of `width` cells, filled by this share: the filled part and the rest.
pub fn bar(share: f64, width: usize) -> (String, String) {
    let filled = cells(share, width);
    ("█".repeat(filled), "░".repeat(width - filled))
}

/// How many of `width` cells a share takes: at least one where there is something, all only where it is whole.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share between 0 and 1 of a number of cells"
)]
pub fn cells(share: f64, width: usize) -> usize {
    if share.is_nan() || share <= 0.0 || width == 0 {
        return 0;
    }
    if share >= 1.0 {
        return width;
    }
    ((share * width as f64).round() as usize).clamp(1, (width - 1).max(1))
}

/// A part of a whole, from 0 to 1.
pub fn share(part: u32, whole: u32) -> f64 {
    if whole == 0 {
        0.0
    } else {
        (f64::from(part) / f64::from(whole)).clamp(0.0, 1.0)
    }
}

/// The latest rates, each as high as its share of the highest one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share between 0 and 1 of eight steps"
)]
pub fn sparkline(rates: &VecDeque<f64>, width: usize) -> String {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = rates.iter().skip(rates.len().saturating_sub(width));
    let highest = shown.clone().copied().fold(0.0, f64::max);
    if highest <= 0.0 {
        return String::new();
    }
    shown
        .map(|rate| STEPS[((rate / highest * 7.0).round() as usize).min(7)])
        .collect()
}

/// As many facts, from the first on, as fit into `width` cells.
pub fn join_fitting(facts: &[String], width: usize) -> String {
    let mut line = String::new();
    for fact in facts {
        let gap = if line.is_empty() { "" } else { DOT };
        let fact = text::visible_line(fact);
        if text::width(&line) + text::width(gap) + text::width(&fact) > width {
            break;
        }
        line.push_str(gap);
        line.push_str(&fact);
    }
    line
}

/// Facts in lines of at most `width` cells, broken between facts.
pub fn wrap_facts(facts: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for fact in facts {
        let fact = text::fit(fact, width);
        match lines.last_mut() {
            Some(last) if text::width(last) + text::width(DOT) + text::width(&fact) <= width => {
                last.push_str(DOT);
                last.push_str(&fact);
            }
            _ => lines.push(fact),
        }
    }
    lines
}

/// Text in lines of at most `width` cells behind a sign of two cells, which the first line alone shows.
pub fn signed(sign: (&'static str, Style), text: &str, width: usize) -> Vec<Line<'static>> {
    let rows = text::wrap(text, width.saturating_sub(2))
        .into_iter()
        .enumerate();
    rows.map(|(index, row)| {
        let sign = if index == 0 { sign } else { ("  ", sign.1) };
        Line::from(vec![Span::styled(sign.0, sign.1), Span::raw(row)])
    })
    .collect()
}

/// The text in exactly `width` cells, at the left.
pub fn left(text: &str, width: usize) -> String {
    let text = text::fit(text, width);
    let gap = width.saturating_sub(text::width(&text));
    text + &" ".repeat(gap)
}

/// The text in at least `width` cells, at the right.
pub fn right(text: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(text::width(text))) + text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_empty_only_at_nothing_and_full_only_at_the_whole() {
        assert_eq!(
            [0.0, 0.001, 0.5, 0.999, 1.0, 7.0, f64::NAN].map(|share| cells(share, 10)),
            [0, 1, 5, 9, 10, 10, 0]
        );
        assert_eq!(bar(0.3, 10), ("███".into(), "░░░░░░░".into()));
        assert_eq!([cells(0.5, 0), cells(0.1, 1)], [0, 1]);
    }

    #[test]
    fn a_sparkline_shows_the_latest_rates_against_the_highest() {
        assert_eq!(
            sparkline(&VecDeque::from([400.0, 10.0, 50.0, 100.0]), 3),
            "▂▅█"
        );
        assert_eq!(sparkline(&VecDeque::new(), 3), "");
    }

    #[test]
    fn facts_are_dropped_or_wrapped_whole() {
        let facts = [
            "reused 1,147".to_owned(),
            "read 57".to_owned(),
            "saved 6.0 s".to_owned(),
        ];
        assert_eq!(join_fitting(&facts, 24), "reused 1,147 · read 57");
        assert_eq!(
            wrap_facts(&facts, 24),
            ["reused 1,147 · read 57", "saved 6.0 s"]
        );
    }
}
