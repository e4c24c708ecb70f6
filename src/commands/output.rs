//! How commands write: sizes, tables, and JSON that is safe to show on a terminal.

use std::fmt::Write as _;
use std::io::Write;

use unicode_width::UnicodeWidthStr;

/// For whom a command writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Bytes in the largest binary unit that leaves a number of at least 1, such as `93.8 MiB`.
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A whole number with commas between thousands.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Writes rows in columns two spaces apart; the last column is as wide as it is.
///
/// # Errors
/// `out` can't be written to.
pub fn table(rows: &[Vec<String>], out: &mut dyn Write) -> std::io::Result<()> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.width())
                .max()
                .unwrap_or(0)
        })
        .collect();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let padding = width - cell.width() + 2;
            let _ = write!(line, "{cell}{:padding$}", "");
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Writes a value as JSON over several lines. Characters that steer terminals are escaped even where JSON
/// would allow them.
///
/// # Errors
/// `out` can't be written to.
pub fn json(value: &serde_json::Value, out: &mut dyn Write) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        // Inside texts serde_json has escaped line ends; those left are its own.
        if c == '\n' || crate::models::printable(c.encode_utf8(&mut [0; 4])).starts_with(c) {
            safe.push(c);
        } else {
            let _ = write!(safe, "\\u{:04x}", u32::from(c));
        }
    }
    writeln!(out, "{safe}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn sizes_are_short_and_numbers_are_grouped() {
        let sizes: Vec<String> = [0, 1023, 1024, 98_362_432, 1 << 30, (1 << 20) - 1, u64::MAX]
            .map(size)
            .into();
        assert_eq!(
            sizes,
            [
                "0 B",
                "1023 B",
                "1.0 KiB",
                "93.8 MiB",
                "1.0 GiB",
                "1.0 MiB",
                "16384.0 PiB"
            ]
        );
        let grouped: Vec<String> = [0, 999, 1000, 1_234_567].map(grouped).into();
        assert_eq!(grouped, ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn json_stays_json_and_steers_no_terminal() {
        let value = serde_json::json!({ "a": "x\u{1b}[2J\u{9b}\u{7f}\u{202e}\ny" });
        let mut out = Vec::new();
        json(&value, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            !text
                .replace('\n', "")
                .chars()
                .any(|c| c.is_control() || c == '\u{202e}'),
            "{text:?}"
        );
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            value
        );
    }

    #[test]
    fn wide_characters_keep_columns_straight() {
        let rows = [["名前", "b"], ["a", "c"]].map(|row| row.map(str::to_owned).to_vec());
        let mut out = Vec::new();
        table(&rows, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "名前  b\na     c\n");
    }
}
