//! How commands write: sizes, tables, and JSON that is safe to show on a terminal.

use std::fmt::Write as _;
use std::io::Write;

use unicode_width::UnicodeWidthStr;

use crate::text::sanitize;

pub use crate::cli::Output as Format;

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

pub use crate::text::grouped;

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
    writeln!(out, "{}", escaped(&text))?;
    Ok(())
}

/// Any value as one line of JSON, as safe as [`json`]'s.
///
/// # Errors
/// A value that JSON can't hold.
pub fn json_line(value: &impl serde::Serialize) -> std::io::Result<String> {
    Ok(escaped(&serde_json::to_string(value)?))
}

/// JSON with every character escaped that could steer a terminal; inside its texts `serde_json` has escaped line
/// ends, and those left are its own.
fn escaped(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        if sanitize::is_dangerous(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(c);
        }
    }
    safe
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
        let grouped: Vec<String> = [0_u64, 999, 1000, 1_234_567].map(grouped).into();
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

    #[test]
    fn json_carries_no_control_and_reads_back_the_same() {
        let text = "a\u{1b}]52;c;QQ==\u{7}\u{9b}2J\u{202e}b\u{7f}\u{e0041}";
        let line = json_line(&text).unwrap();
        assert!(!line.contains(sanitize::is_dangerous), "{line:?}");
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
    }
}
