//! What is wrong with the configuration, where, and what to do about it.

use std::fmt;

use super::Origin;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigProblem {
    /// Where it comes from.
    pub origin: Origin,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl ConfigProblem {
    /// A problem without a hint.
    #[must_use]
    pub fn new(origin: Origin, message: String) -> Self {
        ConfigProblem {
            origin,
            message,
            hint: None,
        }
    }

    /// The same problem with a hint.
    #[must_use]
    pub fn with_hint(self, hint: Option<String>) -> Self {
        ConfigProblem { hint, ..self }
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Default => f.write_str(&self.message)?,
            Origin::File { path, line: 0, .. } => {
                write!(f, "{}: {}", path.display(), self.message)?;
            }
            Origin::File { path, line, text } => {
                write!(
                    f,
                    "{}:{line}: {}\n  {line} | {text}",
                    path.display(),
                    self.message
                )?;
            }
            Origin::Environment(variable) => write!(f, "{variable}: {}", self.message)?,
            Origin::Flag(flag) => write!(f, "{flag}: {}", self.message)?,
        }
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// Everything that is wrong.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ConfigError {
    /// At least one problem: those of the file in its order, then those of the values.
    pub problems: Vec<ConfigProblem>,
}

impl ConfigError {
    /// Whether the file is at fault, in part at least.
    #[must_use]
    pub fn is_about_file(&self) -> bool {
        self.problems
            .iter()
            .any(|problem| matches!(problem.origin, Origin::File { .. }))
    }

    /// Whether a flag or an environment variable is at fault, in part at least: wrong use of the command line.
    #[must_use]
    pub fn is_about_use(&self) -> bool {
        self.problems
            .iter()
            .any(|problem| matches!(problem.origin, Origin::Environment(_) | Origin::Flag(_)))
    }
}
