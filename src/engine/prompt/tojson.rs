//! The `tojson` filter as the Hugging Face libraries set it up: Python's `json.dumps` with its separators and its
//! number format, keys in their own order, nothing escaped for HTML.

use std::fmt::Write as _;

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind};

struct Style {
    escape_non_ascii: bool,
    indent: Option<String>,
    between_items: String,
    after_key: String,
    sort_keys: bool,
}

/// `value | tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
///
/// # Errors
/// Values that JSON can't hold, and arguments that the filter does not know.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the engine hands filters their values"
)]
pub fn tojson(value: Value, arguments: Kwargs) -> Result<Value, Error> {
    let indent: Option<Value> = arguments.get("indent")?;
    let separators: Option<Vec<String>> = arguments.get("separators")?;
    let escape_non_ascii: Option<bool> = arguments.get("ensure_ascii")?;
    let sort_keys: Option<bool> = arguments.get("sort_keys")?;
    arguments.assert_all_used()?;
    let indent = indent
        .filter(|indent| !indent.is_none() && !indent.is_undefined())
        .map(|indent| {
            indent.as_str().map_or_else(
                || " ".repeat(indent.as_usize().unwrap_or(0).min(64)),
                str::to_string,
            )
        });
    let (between_items, after_key) = match separators.as_deref() {
        Some([items, keys]) => (items.clone(), keys.clone()),
        Some(_) => {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                "separators must be a pair",
            ));
        }
        None if indent.is_some() => (",".to_string(), ": ".to_string()),
        None => (", ".to_string(), ": ".to_string()),
    };
    let style = Style {
        escape_non_ascii: escape_non_ascii.unwrap_or(false),
        indent,
        between_items,
        after_key,
        sort_keys: sort_keys.unwrap_or(false),
    };
    let mut out = String::new();
    write_value(&mut out, &value, &style, 0)?;
    Ok(Value::from(out))
}

const MAX_DEPTH: usize = 100;

fn write_value(out: &mut String, value: &Value, style: &Style, depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "tojson: nested too deeply",
        ));
    }
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&number(value)),
        ValueKind::String => write_string(out, value.as_str().unwrap_or_default(), style),
        ValueKind::Seq | ValueKind::Iterable => {
            let items: Vec<Value> = value.try_iter()?.collect();
            write_container(out, ('[', ']'), &items, style, depth, |out, item| {
                write_value(out, item, style, depth + 1)
            })?;
        }
        ValueKind::Map => {
            let mut keys: Vec<Value> = value.try_iter()?.collect();
            if style.sort_keys {
                keys.sort();
            }
            write_container(out, ('{', '}'), &keys, style, depth, |out, key| {
                write_string(out, &key_text(key)?, style);
                out.push_str(&style.after_key);
                write_value(out, &value.get_item(key)?, style, depth + 1)
            })?;
        }
        kind
        @ (ValueKind::Undefined | ValueKind::Bytes | ValueKind::Plain | ValueKind::Invalid) => {
            return Err(not_json(kind));
        }
        // The enum belongs to the template engine and may grow.
        kind => return Err(not_json(kind)),
    }
    Ok(())
}

fn not_json(kind: ValueKind) -> Error {
    Error::new(
        ErrorKind::InvalidOperation,
        format!("tojson: {kind} can't be written as JSON"),
    )
}

fn key_text(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().to_string()),
        ValueKind::None => Ok("null".to_string()),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.to_string()),
        ValueKind::Number => Ok(number(key)),
        kind => Err(not_json(kind)),
    }
}

fn write_container(
    out: &mut String,
    brackets: (char, char),
    items: &[Value],
    style: &Style,
    depth: usize,
    mut write_item: impl FnMut(&mut String, &Value) -> Result<(), Error>,
) -> Result<(), Error> {
    out.push(brackets.0);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(&style.between_items);
        }
        write_break(out, style, depth + 1);
        write_item(out, item)?;
    }
    if !items.is_empty() {
        write_break(out, style, depth);
    }
    out.push(brackets.1);
    Ok(())
}

fn write_break(out: &mut String, style: &Style, depth: usize) {
    if let Some(indent) = &style.indent {
        out.push('\n');
        for _ in 0..depth {
            out.push_str(indent);
        }
    }
}

fn write_string(out: &mut String, text: &str, style: &Style) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' => write_escape(out, character),
            ' '..='~' => out.push(character),
            _ if style.escape_non_ascii => write_escape(out, character),
            _ => out.push(character),
        }
    }
    out.push('"');
}

fn write_escape(out: &mut String, character: char) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        // Writing to a string never fails.
        let _ = write!(out, "\\u{unit:04x}");
    }
}

/// A number as Python's `repr` writes it.
fn number(value: &Value) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    let Ok(float) = f64::try_from(value.clone()) else {
        return value.to_string();
    };
    if float.is_nan() {
        return "NaN".to_string();
    }
    if float.is_infinite() {
        return if float > 0.0 { "Infinity" } else { "-Infinity" }.to_string();
    }
    let scientific = format!("{float:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if float != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    format!("{float:?}")
}
