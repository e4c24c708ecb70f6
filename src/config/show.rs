//! The configuration as TOML, each value with where it comes from. What is written reads back as the same
//! configuration.

use std::fmt::Write as _;

use toml::{Table, Value};

use crate::text::sanitize::is_dangerous;

use super::settings::{SETTINGS, split};
use super::{Config, Loaded, Origin};

/// The whole configuration as TOML; what nothing decides stands there as a comment.
#[must_use]
pub fn render(loaded: &Loaded) -> String {
    let values = Table::try_from(&loaded.config).unwrap_or_default();
    let mut out = String::new();
    let mut open = "";
    for setting in &SETTINGS {
        let (table, key) = split(setting.name);
        if table != open {
            let _ = write!(out, "\n[{table}]\n");
            open = table;
        }
        let origin = loaded.origins.get(setting.name).unwrap_or(&Origin::Default);
        let _ = match value_at(&values, setting.name) {
            Some(value) => writeln!(out, "{key} = {} # {}", literal(value), described(origin)),
            None => writeln!(out, "# {key}: {} # default", setting.unset),
        };
    }
    out.push_str(&bindings(loaded));
    out
}

fn bindings(loaded: &Loaded) -> String {
    let Config { keys, .. } = &loaded.config;
    let mut out = String::new();
    for (position, (action, keys)) in keys.iter().enumerate() {
        if position == 0 {
            out.push_str("\n[keys]\n");
        }
        let origin = loaded
            .origins
            .get(&format!("keys.{action}"))
            .unwrap_or(&Origin::Default);
        let keys = Value::Array(keys.iter().cloned().map(Value::String).collect());
        let _ = writeln!(
            out,
            "{} = {} # {}",
            quoted(action),
            literal(&keys),
            described(origin)
        );
    }
    out
}

fn value_at<'a>(values: &'a Table, name: &str) -> Option<&'a Value> {
    let (table, key) = split(name);
    if table.is_empty() {
        values.get(key)
    } else {
        values.get(table)?.get(key)
    }
}

fn described(origin: &Origin) -> String {
    match origin {
        Origin::Default => "default".to_owned(),
        Origin::File { line, .. } => format!("file, line {line}"),
        Origin::Environment(name) => format!("env {name}"),
        Origin::Flag(name) => format!("flag {name}"),
    }
}

/// A value as TOML on one line, free of control characters. Numbers with a fraction are our `f32` settings,
/// so they are written as short as an `f32` allows.
#[must_use]
pub fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Float(number) => float(*number),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(literal).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Integer(_) | Value::Boolean(_) | Value::Datetime(_) | Value::Table(_) => {
            value.to_string()
        }
    }
}

fn float(number: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the value is an f32 that TOML widened"
    )]
    let short = number as f32;
    if short.is_nan() {
        "nan".to_owned()
    } else {
        format!("{short:?}")
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            control if control.is_control() || is_dangerous(control) => {
                let _ = write!(out, "\\U{:08X}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
