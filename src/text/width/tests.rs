use proptest::prelude::*;

use super::{fit, width};
use crate::text::samples::{cells_in_ratatui, cells_in_terminal, nasty_text};
use crate::text::visible_line;

#[test]
fn a_title_that_is_too_long_ends_in_an_ellipsis() {
    for (text, cells, fitted) in [
        ("SmolLM2", 7, "SmolLM2"),
        ("SmolLM2", 6, "SmolL…"),
        ("漢字", 3, "漢…"),
        ("漢字", 2, "…"),
        ("a\u{1b}[2J", 9, "a␛[2J"),
        ("two\nlines", 5, "two⏎…"),
        ("any", 1, "…"),
        ("any", 0, ""),
        ("", 0, ""),
    ] {
        assert_eq!(fit(text, cells), fitted);
    }
}

proptest! {
    #[test]
    fn ratatui_and_a_terminal_count_the_same_cells(text in nasty_text(40)) {
        let drawn = visible_line(&text);
        prop_assert_eq!(cells_in_ratatui(&drawn), width(&text), "ratatui: {:?}", drawn);
        prop_assert_eq!(cells_in_terminal(&drawn), width(&text), "terminal: {:?}", drawn);
    }

    #[test]
    fn a_fitted_text_is_never_too_wide(text in nasty_text(20), cells in 0_usize..12) {
        let fitted = fit(&text, cells);
        prop_assert!(cells_in_ratatui(&fitted) <= cells);
        prop_assert!(cells_in_terminal(&fitted) <= cells);
    }
}
