//! Characters of several cells. A terminal may hold one as several characters of one cell each, as most do with a
//! flag: written over the first, it keeps the rest. So that every cell is written again, the covered ones are told
//! from blanks.

use ratatui::buffer::{Buffer, CellWidth};

/// What no cell shows; ratatui never writes a covered cell itself.
const COVERED: &str = "";

/// Marks the cells that wide characters cover.
pub fn mark_covered(buffer: &mut Buffer) {
    let columns = usize::from(buffer.area.width).max(1);
    for row in buffer.content.chunks_mut(columns) {
        let mut next = 0;
        while let Some(cell) = row.get(next) {
            let width = match cell.symbol().len() {
                0 | 1 => 1,
                _ => usize::from(cell.cell_width()).max(1),
            };
            for covered in row.iter_mut().take(next + width).skip(next + 1) {
                covered.set_symbol(COVERED);
            }
            next += width;
        }
    }
}

#[cfg(test)]
mod tests {
    use ratatui::style::Style;

    use super::*;

    #[test]
    fn every_cell_of_a_wide_character_is_written_when_it_goes() {
        let drawn = |text: &str| {
            let mut buffer = Buffer::with_lines(["          "]);
            buffer.set_string(0, 0, text, Style::new());
            mark_covered(&mut buffer);
            buffer
        };
        let written = |before: &str, after: &str| -> Vec<u16> {
            let (before, after) = (drawn(before), drawn(after));
            before.diff_iter(&after).map(|(x, ..)| x).collect()
        };
        assert_eq!(written("a🇩🇪b日c", "a"), [1, 2, 3, 4, 5, 6]);
        assert_eq!(written("🇩🇪", "日"), [0]);
        assert_eq!(written("🇩🇪", "a日"), [0, 1]);
        assert_eq!(written("🇩🇪", "🇩🇪"), [0_u16; 0]);
        assert_eq!(written("ab", "🇩🇪"), [0]);
    }
}
