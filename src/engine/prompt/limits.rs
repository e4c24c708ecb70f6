//! What a template's source may be before it is parsed. The parser and the compiler go as deep as the source nests, and
//! a chain of operators nests as deep as it is long; a stack ends, and with it the process.

use super::TemplateError;

/// Most words and signs within one `{{ … }}` or `{% … %}`. The longest of any published template has some hundred.
const MOST_SIGNS: usize = 4_000;
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
