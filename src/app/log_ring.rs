//! The latest lines of the log, for the log view.

use std::collections::VecDeque;

use crate::logging::LogLine;

/// Lines kept.
const KEPT: usize = 1_000;

/// The latest lines of the log.
#[derive(Debug, Clone, Default)]
pub struct LogRing {
    lines: VecDeque<LogLine>,
}

impl LogRing {
    /// Adds lines; the oldest ones make room. Returns how many came.
    pub fn extend(&mut self, lines: Vec<LogLine>) -> usize {
        let added = lines.len();
        self.lines.extend(lines);
        let surplus = self.lines.len().saturating_sub(KEPT);
        self.lines.drain(..surplus);
        added
    }

    /// How many lines there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The lines from the latest one back, `below` of them left out.
    pub fn newest_first(&self, below: usize) -> impl Iterator<Item = &LogLine> {
        self.lines.iter().rev().skip(below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logging::LogLevel;

    #[test]
    fn the_oldest_lines_make_room_for_the_newest() {
        let line = |number: usize| LogLine {
            level: LogLevel::Info,
            target: "platen".into(),
            text: number.to_string(),
        };
        let mut log = LogRing::default();
        log.extend((0..1_500).map(line).collect());
        assert_eq!(log.len(), 1_000);
        assert_eq!(log.newest_first(0).next(), Some(&line(1_499)));
        assert_eq!(log.newest_first(999).next(), Some(&line(500)));
        assert_eq!(log.newest_first(1_000).next(), None);
    }
}
