//! Models split into several files: `NAME-00001-of-00003.gguf`. The first part stands for the whole.

use std::io;
use std::path::{Path, PathBuf};

/// What a part's file name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitPart<'name> {
    /// The name without the part's number.
    pub stem: &'name str,
    /// The part's number, from 1.
    pub number: u32,
    /// How many parts there are.
    pub count: u32,
}

/// Reads a file name as that of a part.
pub fn split_part(name: &str) -> Option<SplitPart<'_>> {
    let ending = name.len().checked_sub(".gguf".len())?;
    if !name.is_char_boundary(ending) || !name[ending..].eq_ignore_ascii_case(".gguf") {
        return None;
    }
    let (rest, count) = name[..ending].rsplit_once("-of-")?;
    let (stem, number) = rest.rsplit_once('-')?;
    let five_digits = |text: &str| {
        (text.len() == 5)
            .then(|| text.parse::<u32>().ok())
            .flatten()
    };
    let (number, count) = (five_digits(number)?, five_digits(count)?);
    (1..=count).contains(&number).then_some(SplitPart {
        stem,
        number,
        count,
    })
}

/// The file of part `number` beside `path`, which is a part itself.
pub fn sibling(path: &Path, number: u32) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let part = split_part(name)?;
    let ending = &name[name.len() - ".gguf".len()..];
    Some(path.with_file_name(format!(
        "{}-{number:05}-of-{:05}{ending}",
        part.stem, part.count
    )))
}

/// The size of a model in bytes, all parts counted; an error where one is missing.
pub fn whole_bytes(path: &Path) -> io::Result<u64> {
    let count = path
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(split_part)
        .map_or(1, |part| part.count);
    let mut bytes = std::fs::metadata(path)?.len();
    for number in 2..=count {
        if let Some(part) = sibling(path, number) {
            bytes += std::fs::metadata(part)?.len();
        }
    }
    Ok(bytes)
}
