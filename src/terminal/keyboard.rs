//! Which terminals are asked for unambiguous keys (the kitty keyboard protocol).
//!
//! Asking whether a terminal knows it means waiting for an answer that old terminals never give, which would delay
//! the first frame; sending it blindly leaves stray letters on terminals that don't skip unknown sequences. So it
//! goes to terminals known by name, and to none behind a multiplexer, which answers for itself. Nothing depends on
//! it: Alt-Enter and Ctrl-J work everywhere.

use std::env;

/// How keys are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// The old way: Shift-Enter can't be told from Enter.
    Legacy,
    /// Disambiguated, by the kitty protocol.
    Kitty,
}

/// Values of `TERM` (as beginnings).
const TERMS: [&str; 6] = [
    "xterm-kitty",
    "xterm-ghostty",
    "foot",
    "alacritty",
    "rio",
    "contour",
];
/// Values of `TERM_PROGRAM`.
const PROGRAMS: [&str; 5] = ["ghostty", "WezTerm", "iTerm.app", "rio", "kitty"];

impl Protocol {
    pub(super) fn of_environment() -> Protocol {
        Protocol::of(|name| env::var(name).ok())
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Protocol {
        let term = variable("TERM").unwrap_or_default();
        let multiplexed = variable("TMUX").is_some()
            || variable("STY").is_some()
            || variable("ZELLIJ").is_some()
            || term.starts_with("screen")
            || term.starts_with("tmux");
        if multiplexed || matches!(term.as_str(), "" | "dumb" | "linux") {
            return Protocol::Legacy;
        }
        let program = variable("TERM_PROGRAM").unwrap_or_default();
        if TERMS.iter().any(|known| term.starts_with(known)) || PROGRAMS.contains(&program.as_str())
        {
            Protocol::Kitty
        } else {
            Protocol::Legacy
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protocol(environment: &[(&str, &str)]) -> Protocol {
        Protocol::of(|name| {
            environment
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn terminals_known_by_name_are_asked_for_unambiguous_keys() {
        assert_eq!(protocol(&[("TERM", "xterm-kitty")]), Protocol::Kitty);
        assert_eq!(protocol(&[("TERM", "foot-direct")]), Protocol::Kitty);
        assert_eq!(
            protocol(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "WezTerm")]),
            Protocol::Kitty
        );
    }

    #[test]
    fn others_and_all_behind_a_multiplexer_are_not() {
        assert_eq!(protocol(&[]), Protocol::Legacy);
        assert_eq!(protocol(&[("TERM", "xterm-256color")]), Protocol::Legacy);
        assert_eq!(
            protocol(&[("TERM", "linux"), ("TERM_PROGRAM", "kitty")]),
            Protocol::Legacy
        );
        assert_eq!(
            protocol(&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/tmux")]),
            Protocol::Legacy
        );
        assert_eq!(
            protocol(&[("TERM", "screen-256color"), ("TERM_PROGRAM", "iTerm.app")]),
            Protocol::Legacy
        );
    }
}
