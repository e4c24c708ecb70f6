//! What can be wrong with a GGUF file, always with the field and both values.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::text::sanitize::neutral_line;

/// A file that cannot be used, and why.
#[derive(Debug)]
pub struct GgufError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub fault: GgufFault,
}

/// What is wrong with a file.
#[derive(Debug)]
pub enum GgufFault {
    /// The operating system refuses to read it.
    Io(io::Error),
    /// A folder, a pipe or a device.
    NotAFile,
    /// The first four bytes are not `GGUF`.
    Magic {
        /// Those bytes.
        found: [u8; 4],
    },
    /// A version that nobody can load.
    Version {
        /// The version the file gives.
        found: u32,
    },
    /// The file ends too early.
    Truncated {
        /// What does not fit.
        field: String,
        /// The size in bytes that the file needs at least.
        need: u64,
        /// The size in bytes that it has.
        have: u64,
    },
    /// A number beyond what any real model has.
    TooLarge {
        /// What it counts.
        field: String,
        /// The file's value.
        value: u64,
        /// The largest value accepted.
        most: u64,
    },
    /// A value that contradicts the format.
    Invalid {
        /// Where it stands.
        field: String,
        /// The file's value.
        value: String,
        /// What would be right.
        expected: String,
    },
    /// A name that must be unique appears twice.
    Duplicate {
        /// What is named.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A key that every model has is missing.
    Missing {
        /// The key.
        key: &'static str,
    },
}

impl From<io::Error> for GgufFault {
    fn from(error: io::Error) -> Self {
        GgufFault::Io(error)
    }
}

impl fmt::Display for GgufError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}",
            neutral_line(&self.path.display().to_string()),
            self.fault
        )
    }
}

impl std::error::Error for GgufError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.fault {
            GgufFault::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for GgufFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GgufFault::Io(error) => write!(f, "cannot be read: {error}"),
            GgufFault::NotAFile => f.write_str("is not a regular file"),
            GgufFault::Magic { found } => {
                write!(
                    f,
                    "is not a GGUF file: it begins with \"{}\", not \"GGUF\"",
                    found.escape_ascii()
                )
            }
            GgufFault::Version { found } if found.swap_bytes() <= 3 && *found != 0 => {
                f.write_str("is a GGUF file for big-endian machines; get the little-endian one")
            }
            GgufFault::Version { found } => {
                write!(f, "has GGUF version {found}; versions 2 and 3 can be read")
            }
            GgufFault::Truncated { field, need, have } => write!(
                f,
                "is cut short: {} needs {need} bytes, the file has {have}; download it again",
                neutral_line(field)
            ),
            GgufFault::TooLarge { field, value, most } => {
                write!(
                    f,
                    "is broken: {} is {value}, the most accepted is {most}",
                    neutral_line(field)
                )
            }
            GgufFault::Invalid {
                field,
                value,
                expected,
            } => {
                write!(
                    f,
                    "is broken: {} is {}, expected {expected}",
                    neutral_line(field),
                    neutral_line(value)
                )
            }
            GgufFault::Duplicate { what, name } => {
                write!(
                    f,
                    "is broken: the {what} '{}' appears twice",
                    neutral_line(name)
                )
            }
            GgufFault::Missing { key } => write!(f, "is no model: it has no '{key}'"),
        }
    }
}

/// Fails where `value` is more than `most`.
pub(super) fn at_most(field: &str, value: u64, most: u64) -> Result<(), GgufFault> {
    if value > most {
        return Err(GgufFault::TooLarge {
            field: field.to_owned(),
            value,
            most,
        });
    }
    Ok(())
}

/// A value that contradicts the format.
pub(super) fn invalid(field: &str, value: impl std::fmt::Display, expected: &str) -> GgufFault {
    GgufFault::Invalid {
        field: field.to_owned(),
        value: value.to_string(),
        expected: expected.to_owned(),
    }
}
