//! What a template's source may be before it is parsed. The parser and the compiler go as deep as the source nests, and
//! a chain of operators nests as deep as it is long; a stack ends, and with it the process.

use super::TemplateError;

/// Most words and signs within one `{{ … }}` or `{% … %}`. The longest of any published template has some hundred.
const MOST_SIGNS: usize = 4_000;
/// Most digits of a number, so that it stays far from the limits of 64 bits.
const MOST_DIGITS: usize = 18;
/// Statements about other templates: a model's is alone, and the engine panics on some forms of them.
const OF_OTHERS: [&str; 4] = ["import", "from", "include", "extends"];
/// Most `{% … %}` in all: each may nest in the one before.
const MOST_BLOCKS: usize = 4_000;

/// Refuses a source that nests too deeply.
///
/// # Errors
/// [`TemplateError::Syntax`] that says where.
pub(super) fn check(source: &str) -> Result<(), TemplateError> {
    let refused = |reason: String| Err(TemplateError::Syntax { reason });
    let mut blocks = 0;
    let mut rest = source;
    while let Some(open) = next_tag(rest) {
        let line = || {
            let before = source.len() - rest.len() + open;
            1 + source[..before].matches('\n').count()
        };
        let tag = &rest[open..];
        let inside = &tag[2..];
        let len = match &tag[..2] {
            "{#" => inside.find("#}").unwrap_or(inside.len()),
            kind => {
                blocks += usize::from(kind == "{%");
                let (len, signs) = measure(inside);
                let code = &inside[..len];
                if kind == "{%" && OF_OTHERS.contains(&first_word(code)) {
                    return refused(format!(
                        "it wants another template, and there is none (line {})",
                        line()
                    ));
                }
                if has_long_number(code) {
                    return refused(format!("a number is too long (line {})", line()));
                }
                if signs > MOST_SIGNS {
                    return refused(format!(
                        "an expression has more than {MOST_SIGNS} words and signs (line {})",
                        line()
                    ));
                }
                len
            }
        };
        if blocks > MOST_BLOCKS {
            return refused(format!(
                "it has more than {MOST_BLOCKS} blocks (line {})",
                line()
            ));
        }
        rest = &inside[len..];
    }
    Ok(())
}

/// The first word of a tag's inside.
fn first_word(code: &str) -> &str {
    let code = code.trim_start_matches(['-', '+']).trim_start();
    let end = code.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    &code[..end.unwrap_or(code.len())]
}

/// Whether a number outside of quotes has more digits than any template needs.
fn has_long_number(code: &str) -> bool {
    let bytes = code.as_bytes();
    let (mut at, mut digits, mut in_word) = (0, 0, false);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' | b'\'' => {
                at = end_of_text(bytes, at);
                digits = 0;
                in_word = false;
            }
            b'0'..=b'9' if !in_word => digits += 1,
            b'_' if digits > 0 => {}
            _ => {
                digits = 0;
                in_word = byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
            }
        }
        if digits > MOST_DIGITS {
            return true;
        }
        at += 1;
    }
    false
}

/// Where the next tag or comment begins.
fn next_tag(text: &str) -> Option<usize> {
    text.match_indices('{')
        .map(|(at, _)| at)
        .find(|at| matches!(text.as_bytes().get(at + 1), Some(b'{' | b'%' | b'#')))
}

/// How long the inside of a tag is, and how many words and signs it has. Texts in quotes count as one.
fn measure(inside: &str) -> (usize, usize) {
    let bytes = inside.as_bytes();
    let (mut at, mut signs) = (0, 0);
    let mut in_word = false;
    while let Some(&byte) = bytes.get(at) {
        let closes = matches!(byte, b'}' | b'%') && bytes.get(at + 1) == Some(&b'}');
        if closes {
            return (at, signs);
        }
        let word_part = byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
        match byte {
            b'"' | b'\'' => {
                signs += 1;
                at = end_of_text(bytes, at);
            }
            _ if word_part => signs += usize::from(!in_word),
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => signs += 1,
        }
        in_word = word_part;
        at += 1;
    }
    (bytes.len(), signs)
}

/// Where the text in quotes that begins at `start` ends: at its closing quote, or with the bytes.
fn end_of_text(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            _ if byte == bytes[start] => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn what_nests_too_deeply_is_refused_with_its_line() {
        let told = |source: &str| check(source).unwrap_err().to_string();
        let deep = format!("a\nb {{{{ {}1{} }}}}", "(".repeat(5_000), ")".repeat(5_000));
        assert!(
            told(&deep).ends_with("words and signs (line 2)"),
            "{}",
            told(&deep)
        );
        let chain = format!("{{{{ a{} }}}}", ".a".repeat(5_000));
        assert!(told(&chain).contains("words and signs"));
        assert!(told(&format!("{{{{ {} 1 }}}}", "not ".repeat(5_000))).contains("words"));
        assert!(told(&"{% if 1 %}".repeat(5_000)).contains("blocks"));
        assert!(
            told(&format!("{{% if 0 %}}{}", "\n{% elif 0 %}".repeat(5_000))).contains("line 4001")
        );
    }

    #[test]
    fn other_templates_and_endless_numbers_are_refused() {
        let told = |source: &str| check(source).unwrap_err().to_string();
        for source in [
            "{% import 'x' as nd|t2 %}",
            "{%- include 'chat_template' %}",
            "a{% extends 'x' %}",
            "{%+ from 'x' import y %}",
        ] {
            assert!(told(source).contains("another template"), "{source}");
        }
        for source in [
            "{{ 'abc'[::-9223372036854775808] }}",
            "{% if 1_000_000_000_000_000_000_0 %}",
        ] {
            assert!(
                told(source).contains("a number is too long (line 1)"),
                "{source}"
            );
        }
        for fine in [
            "{{ '99999999999999999999' }}",
            "{{ a12345678901234567890 }}",
            "{% set important = 100000 %}",
            "{{ 3.141592653589793 }}",
        ] {
            check(fine).unwrap();
        }
    }

    #[test]
    fn long_texts_comments_and_quotes_are_no_nesting() {
        for fine in [
            "x".repeat(1_000_000),
            format!("{{{{ \"{}\" }}}}", ".( ".repeat(10_000)),
            format!("{{# {} #}}", "{% if %}".repeat(10_000)),
            "{{ 'unclosed".to_owned(),
            "{{ 'a\\'}}' }}{".to_owned(),
            "{{".to_owned(),
        ] {
            check(&fine).unwrap();
        }
    }
}
