//! What chat templates use of Python and Jinja2 and the template engine lacks: string methods, and tests and
//! filters that answer otherwise there.

use minijinja::value::{Rest, Value, ValueKind, from_args};
use minijinja::{Environment, Error, ErrorKind, State};
use minijinja_contrib::pycompat;

/// Makes an environment understand Python's methods.
pub fn install(environment: &mut Environment<'_>) {
    environment.set_unknown_method_callback(call_method);
    environment.add_test("sequence", is_sequence);
    environment.add_test("iterable", is_iterable);
    environment.add_test("callable", |value: Value| value.kind() == ValueKind::Plain);
    environment.add_filter("int", to_int);
    environment.add_filter("wordcount", |text: &str| text.split_whitespace().count());
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the engine hands tests their values"
)]
fn is_sequence(value: Value) -> bool {
    matches!(
        value.kind(),
        ValueKind::Seq | ValueKind::String | ValueKind::Map
    )
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the engine hands tests their values"
)]
fn is_iterable(value: Value) -> bool {
    matches!(
        value.kind(),
        ValueKind::Seq | ValueKind::String | ValueKind::Map | ValueKind::Iterable
    )
}

/// As in Python, text that is no number gives the default.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the engine hands filters their values"
)]
fn to_int(value: Value, default: Option<i64>) -> i64 {
    let default = default.unwrap_or(0);
    match value.kind() {
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default().trim();
            text.parse()
                .ok()
                .or_else(|| text.parse::<f64>().ok().map(truncated))
                .unwrap_or(default)
        }
        ValueKind::Bool => i64::from(value.is_true()),
        _ => value
            .as_i64()
            .or_else(|| f64::try_from(value.clone()).ok().map(truncated))
            .unwrap_or(default),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a float's whole part, at the limits where it is larger"
)]
fn truncated(float: f64) -> i64 {
    float as i64
}

fn call_method(
    state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    let own = match value.kind() {
        ValueKind::String => string_method(value.as_str().unwrap_or_default(), method, args),
        ValueKind::Map | ValueKind::Seq if method == "copy" => Some(Ok(value.clone())),
        ValueKind::Seq if method == "index" => Some(index_in_list(value, args)),
        _ => None,
    };
    own.unwrap_or_else(|| pycompat::unknown_method_callback(state, value, method, args))
}

fn string_method(text: &str, method: &str, args: &[Value]) -> Option<Result<Value, Error>> {
    Some(match method {
        "removeprefix" => {
            one(args).map(|prefix| Value::from(text.strip_prefix(prefix).unwrap_or(text)))
        }
        "removesuffix" => {
            one(args).map(|suffix| Value::from(text.strip_suffix(suffix).unwrap_or(text)))
        }
        "partition" => one(args).map(|separator| match text.split_once(separator) {
            Some((before, after)) => triple(before, separator, after),
            None => triple(text, "", ""),
        }),
        "rpartition" => one(args).map(|separator| match text.rsplit_once(separator) {
            Some((before, after)) => triple(before, separator, after),
            None => triple("", "", text),
        }),
        "rsplit" => rsplit(text, args),
        "index" => one(args).and_then(|part| char_index(text, text.find(part))),
        "rindex" => one(args).and_then(|part| char_index(text, text.rfind(part))),
        "casefold" => Ok(Value::from(text.to_lowercase())),
        "swapcase" => Ok(Value::from(
            text.chars().map(swapped_case).collect::<String>(),
        )),
        "format" if has_wide_field(text) => Err(Error::new(
            ErrorKind::InvalidOperation,
            "a width of this format is too large",
        )),
        "zfill" => pad(text, args, |text, missing| {
            let (sign, digits) = text.split_at(usize::from(text.starts_with(['+', '-'])));
            format!("{sign}{}{digits}", "0".repeat(missing))
        }),
        "ljust" => pad(text, args, |text, missing| {
            format!("{text}{}", " ".repeat(missing))
        }),
        "rjust" => pad(text, args, |text, missing| {
            format!("{}{text}", " ".repeat(missing))
        }),
        _ => return None,
    })
}

/// Whether a format has a number of more digits than any width needs: the engine would make that many characters.
fn has_wide_field(format: &str) -> bool {
    format
        .split(|c: char| !c.is_ascii_digit())
        .any(|digits| digits.len() > 5)
}

fn one(args: &[Value]) -> Result<&str, Error> {
    let (argument,): (&str,) = from_args(args)?;
    if argument.is_empty() {
        return Err(Error::new(ErrorKind::InvalidOperation, "empty separator"));
    }
    Ok(argument)
}

fn triple(before: &str, separator: &str, after: &str) -> Value {
    [before, separator, after]
        .into_iter()
        .map(Value::from)
        .collect()
}

fn rsplit(text: &str, args: &[Value]) -> Result<Value, Error> {
    let (separator, most): (Option<&str>, Option<i64>) = from_args(args)?;
    let parts =
        usize::try_from(most.unwrap_or(-1)).map_or(usize::MAX, |most| most.saturating_add(1));
    let mut parts: Vec<&str> = match separator {
        Some("") => return Err(Error::new(ErrorKind::InvalidOperation, "empty separator")),
        Some(separator) => text.rsplitn(parts, separator).collect(),
        None => split_at_space_from_the_end(text, parts),
    };
    parts.reverse();
    Ok(parts.into_iter().map(Value::from).collect())
}

fn split_at_space_from_the_end(text: &str, most: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        if parts.len() + 1 == most {
            parts.push(rest);
            break;
        }
        let start = rest.rfind(char::is_whitespace).map_or(0, |at| {
            at + rest[at..].chars().next().map_or(0, char::len_utf8)
        });
        parts.push(&rest[start..]);
        rest = rest[..start].trim_end();
    }
    parts
}

fn char_index(text: &str, byte: Option<usize>) -> Result<Value, Error> {
    let byte =
        byte.ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "substring not found"))?;
    Ok(Value::from(text[..byte].chars().count()))
}

fn index_in_list(list: &Value, args: &[Value]) -> Result<Value, Error> {
    let (wanted,): (Value,) = from_args(args)?;
    let index = list.try_iter()?.position(|item| item == wanted);
    index
        .map(Value::from)
        .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "value is not in the list"))
}

fn swapped_case(character: char) -> char {
    let swapped = if character.is_uppercase() {
        character.to_lowercase().next()
    } else {
        character.to_uppercase().next()
    };
    swapped.unwrap_or(character)
}

const WIDEST: usize = 10_000;

fn pad(text: &str, args: &[Value], padded: impl Fn(&str, usize) -> String) -> Result<Value, Error> {
    let (width, _): (usize, Rest<Value>) = from_args(args)?;
    Ok(Value::from(padded(
        text,
        width.min(WIDEST).saturating_sub(text.chars().count()),
    )))
}
