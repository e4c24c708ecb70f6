//! The layer of the file: TOML, in which every mistake is reported at once, each with its line.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, Value};

use super::problem::ConfigProblem;
use super::settings::{TABLES, find, fits};
use super::suggest::{nearest_key, siblings};
use super::{Layer, LayerRead, Origin};

/// The largest file, in bytes. A device may have no end.
const LARGEST: u64 = 1 << 20;

/// The file to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigFile {
    /// The usual one; it need not exist.
    Usual(PathBuf),
    /// One that the user named by `PLATEN_CONFIG`; it must exist.
    Named(PathBuf),
    /// None at all.
    None,
}

impl ConfigFile {
    /// The file that `PLATEN_CONFIG` names, where it holds something, else the usual one, where there is a
    /// place for it.
    #[must_use]
    pub fn choose(named: Option<OsString>, usual: Option<PathBuf>) -> Self {
        match (named.filter(|path| !path.is_empty()), usual) {
            (Some(path), _) => ConfigFile::Named(path.into()),
            (None, Some(path)) => ConfigFile::Usual(path),
            (None, None) => ConfigFile::None,
        }
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            ConfigFile::Usual(path) | ConfigFile::Named(path) => Some(path),
            ConfigFile::None => None,
        }
    }
}

/// The layer that the file makes, empty where there is no file, and everything that is wrong in it.
#[must_use]
pub fn read(file: &ConfigFile) -> LayerRead {
    let Some(path) = file.path() else {
        return LayerRead::default();
    };
    let bytes = match bytes_of(path) {
        Ok(bytes) if bytes.len() as u64 > LARGEST => {
            return unreadable(path, "is larger than 1 MiB; that is no configuration");
        }
        Ok(bytes) => bytes,
        Err(error)
            if error.kind() == ErrorKind::NotFound && matches!(file, ConfigFile::Usual(_)) =>
        {
            return LayerRead::default();
        }
        Err(error) => return unreadable(path, &format!("can't be read: {error}")),
    };
    match String::from_utf8(bytes) {
        Ok(text) => parse(path, &text),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let lines = error.as_bytes()[..valid].split(|byte| *byte == b'\n');
            let line = lines.count();
            unreadable(
                path,
                &format!("line {line} is not UTF-8 text (byte {valid} of the file)"),
            )
        }
    }
}

/// All bytes, or one more than there may be.
fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(LARGEST + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn unreadable(path: &Path, message: &str) -> LayerRead {
    let origin = Origin::File {
        path: path.to_owned(),
        line: 0,
        text: String::new(),
    };
    LayerRead {
        layer: Layer::new(),
        problems: vec![ConfigProblem::new(origin, message.to_owned())],
    }
}

/// The layer that the text of a file makes, and everything that is wrong in it.
#[must_use]
pub fn parse(path: &Path, text: &str) -> LayerRead {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reading = Reading {
        path,
        text,
        read: LayerRead::default(),
    };
    match DeTable::parse(text) {
        Ok(spans) => reading.top(spans.get_ref()),
        Err(error) => {
            let span = error.span().unwrap_or(0..0);
            reading.problem(&span, error.message().replace('\n', "; "), None);
        }
    }
    reading.read
}

struct Reading<'a> {
    path: &'a Path,
    text: &'a str,
    read: LayerRead,
}

impl Reading<'_> {
    fn top(&mut self, spans: &DeTable<'_>) {
        for (key, node) in spans {
            let name = key.get_ref().as_ref();
            match (TABLES.contains(&name), node.get_ref()) {
                (true, DeValue::Table(inner)) => self.table(name, inner),
                (true, _) => {
                    let message = format!("{name} is {}; it must be a table", self.shown(node));
                    let hint = format!("write [{name}] above its keys");
                    self.problem(&node.span(), message, Some(hint));
                }
                (false, _) => self.leaf(name, &key.span(), node),
            }
        }
    }

    fn table(&mut self, table: &str, spans: &DeTable<'_>) {
        for (key, node) in spans {
            self.leaf(&format!("{table}.{}", key.get_ref()), &key.span(), node);
        }
    }

    fn leaf(&mut self, name: &str, key: &Range<usize>, node: &Spanned<DeValue<'_>>) {
        let expects = match find(name) {
            Some(setting) => setting.expects,
            None if name.starts_with("keys.") => "a list of keys, such as [\"ctrl+s\"]",
            None => {
                let message = format!("there is no key {name}");
                return self.problem(key, message, Some(hint(name)));
            }
        };
        // A whole number past 64 bits is no value of TOML's.
        let value = Value::deserialize(ValueDeserializer::from(node.clone())).ok();
        if let Some(value) = value.filter(|value| fits(name, value)) {
            let origin = self.origin(&node.span());
            self.read.layer.insert(name.to_owned(), (value, origin));
        } else {
            let message = format!("{name} is {}; it must be {expects}", self.shown(node));
            self.problem(&node.span(), message, None);
        }
    }

    fn shown(&self, node: &Spanned<DeValue<'_>>) -> &str {
        match node.get_ref() {
            DeValue::Table(_) => "a table",
            DeValue::Array(_) => "a list of other things",
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => self.text.get(node.span()).unwrap_or("something else"),
        }
    }

    fn problem(&mut self, span: &Range<usize>, message: String, hint: Option<String>) {
        let origin = self.origin(span);
        self.read
            .problems
            .push(ConfigProblem::new(origin, message).with_hint(hint));
    }

    fn origin(&self, span: &Range<usize>) -> Origin {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = 1 + before.matches('\n').count();
        let text = self
            .text
            .lines()
            .nth(line - 1)
            .unwrap_or_default()
            .trim()
            .to_owned();
        Origin::File {
            path: self.path.to_owned(),
            line,
            text,
        }
    }
}

fn hint(name: &str) -> String {
    match nearest_key(name) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("the keys there are: {}", siblings(name).join(", ")),
    }
}
