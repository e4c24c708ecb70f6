use proptest::prelude::*;

use super::{PieceKind, pieces};
use crate::text::samples::nasty_text;

proptest! {
    #[test]
    fn pieces_cover_the_text_and_every_one_but_a_newline_is_seen(text in nasty_text(40)) {
        let mut covered = 0;
        for piece in pieces(&text) {
            covered += piece.len;
            prop_assert!(piece.len > 0);
            prop_assert_eq!(piece.width == 0, piece.kind == PieceKind::Newline);
            prop_assert!(piece.kind != PieceKind::Glyph || piece.width <= 2, "{:?}", piece);
        }
        prop_assert_eq!(covered, text.len());
    }

    #[test]
    fn measuring_can_begin_at_any_piece(text in nasty_text(20)) {
        let all: Vec<_> = pieces(&text).collect();
        let mut at = 0;
        for (index, piece) in all.iter().enumerate() {
            prop_assert!(pieces(&text[at..]).eq(all[index..].iter().cloned()));
            at += piece.len;
        }
    }
}
