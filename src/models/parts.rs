//! All files of a model. llama.cpp opens the parts of a split model by itself and trusts them; so each is read and held
//! against the first one before it may.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::discover::{sibling, split_part};
use super::gguf::{GgufError, GgufFault, GgufFile};
use crate::paths::identity;

/// Most parts of a model.
const MOST_PARTS: u64 = 1_000;

/// A model whose every file has passed the checks.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFiles {
    /// The file that was named: the first one, which has the metadata.
    pub first: GgufFile,
    /// All files, the first one included.
    pub paths: Vec<PathBuf>,
    /// The bytes of all weights.
    pub tensor_bytes: u64,
}

impl ModelFiles {
    /// Reads the header of every file of the model that `path` is, or is the first part of.
    ///
    /// # Errors
    /// As [`GgufFile::open`], for any of the files; or the parts do not belong together.
    pub fn open(path: &Path) -> Result<ModelFiles, GgufError> {
        let first = GgufFile::open(path)?;
        let mut files = ModelFiles {
            tensor_bytes: first.tensor_bytes(),
            paths: vec![path.to_owned()],
            first,
        };
        if let Some(split) = files.first.split() {
            let count = split.count;
            if split.index != 0 {
                return Err(fault(
                    path,
                    "'split.no'",
                    &split.index,
                    "0: the first part is opened",
                ));
            }
            files.add_parts(path, count)?;
        }
        Ok(files)
    }

    fn add_parts(&mut self, path: &Path, count: u64) -> Result<(), GgufError> {
        if count > MOST_PARTS {
            return Err(GgufError {
                path: path.to_owned(),
                fault: GgufFault::TooLarge {
                    field: "'split.count'".into(),
                    value: count,
                    most: MOST_PARTS,
                },
            });
        }
        let name = path.file_name().and_then(|name| name.to_str());
        let named = name.and_then(split_part).map(|part| u64::from(part.count));
        if named != Some(count) {
            let expected = named.map_or_else(
                || "1: the file's name gives no part (NAME-00001-of-00003.gguf)".to_owned(),
                |named| format!("{named}, as the file's name says"),
            );
            return Err(fault(path, "'split.count'", &count, &expected));
        }
        let mut tensors = self.first.tensors().len() as u64;
        let on_disk = |path: &Path| path.metadata().ok().map(|about| identity(&about));
        let mut seen = BTreeSet::from([on_disk(path)]);
        for number in 2..=u32::try_from(count).unwrap_or(u32::MAX) {
            let Some(part) = sibling(path, number) else {
                break;
            };
            let file = GgufFile::open_part(&part)?;
            if !seen.insert(on_disk(&part)) {
                let what = format!("part {number}");
                return Err(fault(
                    &part,
                    &what,
                    &"another part again",
                    "a file of its own",
                ));
            }
            let index = u64::from(number) - 1;
            if file.u64("split.no") != Some(index) {
                let found = file
                    .u64("split.no")
                    .map_or_else(|| "missing".into(), |no| no.to_string());
                return Err(fault(&part, "'split.no'", &found, &index.to_string()));
            }
            if file.u64("split.count") != Some(count) {
                let found = file
                    .u64("split.count")
                    .map_or_else(|| "missing".into(), |count| count.to_string());
                return Err(fault(&part, "'split.count'", &found, &count.to_string()));
            }
            tensors += file.tensors().len() as u64;
            self.tensor_bytes = self.tensor_bytes.saturating_add(file.tensor_bytes());
            self.paths.push(part);
        }
        match self.first.u64("split.tensors.count") {
            Some(expected) if expected != tensors => Err(fault(
                path,
                "'split.tensors.count'",
                &expected,
                &format!("{tensors}, as many as all parts have"),
            )),
            Some(_) | None => Ok(()),
        }
    }
}

fn fault(path: &Path, field: &str, value: &dyn ToString, expected: &str) -> GgufError {
    GgufError {
        path: path.to_owned(),
        fault: GgufFault::Invalid {
            field: field.to_owned(),
            value: value.to_string(),
            expected: expected.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::models::tiny_gguf::{TinyGguf, TinyKind, Value};

    /// A model in `count` parts, each changed by `change`; the first part's path.
    fn split(folder: &Path, count: u16, change: impl Fn(u16, TinyGguf) -> TinyGguf) -> PathBuf {
        let whole = TinyGguf::new(TinyKind::Llama);
        let total = whole.tensors.len();
        let each = total.div_ceil(usize::from(count));
        for index in 0..count {
            let mut part = whole.clone();
            let from = (usize::from(index) * each).min(total);
            part.tensors = whole.tensors[from..(from + each).min(total)].to_vec();
            if index > 0 {
                part.metadata.clear();
            }
            let part = part
                .set("split.no", u16_value(index))
                .set("split.count", u16_value(count))
                .set(
                    "split.tensors.count",
                    Value::I32(i32::try_from(total).unwrap()),
                );
            change(index, part).write(&name(folder, index, count));
        }
        name(folder, 0, count)
    }

    /// A 16-bit number, as the tools that split models write it.
    fn u16_value(value: u16) -> Value {
        Value::Raw(2, value.to_le_bytes().to_vec())
    }

    fn name(folder: &Path, index: u16, count: u16) -> PathBuf {
        folder.join(format!("m-{:05}-of-{count:05}.gguf", index + 1))
    }

    fn refusal(path: &Path) -> String {
        ModelFiles::open(path).unwrap_err().to_string()
    }

    #[test]
    fn the_parts_of_a_split_model_count_together() {
        let folder = tempfile::tempdir().unwrap();
        let whole = folder.path().join("whole.gguf");
        TinyGguf::new(TinyKind::Llama).write(&whole);
        let first = split(folder.path(), 3, |_, part| part);
        let (whole, parts) = (
            ModelFiles::open(&whole).unwrap(),
            ModelFiles::open(&first).unwrap(),
        );
        assert_eq!((whole.paths.len(), parts.paths.len()), (1, 3));
        assert_eq!(whole.tensor_bytes, parts.tensor_bytes);
    }

    #[test]
    fn parts_that_do_not_belong_together_are_refused_with_both_values() {
        let folder = tempfile::tempdir().unwrap();
        let at = |index: u16, key: &'static str, value: u16| {
            move |part: u16, file: TinyGguf| {
                if part == index {
                    file.set(key, u16_value(value))
                } else {
                    file
                }
            }
        };
        let first = split(folder.path(), 3, at(1, "split.no", 2));
        let told = refusal(&first);
        assert!(
            told.contains("00002-of-00003") && told.contains("'split.no' is 2, expected 1"),
            "{told}"
        );
        let first = split(folder.path(), 3, at(2, "split.count", 9));
        let told = refusal(&first);
        assert!(told.contains("'split.count' is 9, expected 3"), "{told}");
        let first = split(folder.path(), 3, at(0, "split.count", 60_000));
        let told = refusal(&first);
        assert!(told.contains("60000"), "{told}");
        let first = split(folder.path(), 3, |index, mut file| {
            if index == 1 {
                file.tensors.pop();
            }
            file
        });
        assert!(refusal(&first).contains("'split.tensors.count'"));
    }

    #[test]
    fn a_part_that_is_missing_cut_short_or_another_one_again_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let first = split(folder.path(), 3, |_, part| part);
        let second = name(folder.path(), 1, 3);
        let bytes = std::fs::read(&second).unwrap();
        std::fs::write(&second, &bytes[..bytes.len() - 1]).unwrap();
        assert!(refusal(&first).contains("00002-of-00003"));
        std::fs::remove_file(&second).unwrap();
        assert!(refusal(&first).contains("00002-of-00003"));
        std::os::unix::fs::symlink(&first, &second).unwrap();
        assert!(refusal(&first).contains("another part again"));
        std::fs::remove_file(&second).unwrap();
        std::os::unix::fs::symlink(&second, &second).unwrap();
        assert!(
            refusal(&first).contains("00002-of-00003"),
            "a link to itself"
        );
    }

    #[test]
    fn a_later_part_is_not_opened_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        split(folder.path(), 2, |_, part| part);
        assert!(ModelFiles::open(&name(folder.path(), 1, 2)).is_err());
    }
}
