//! `{% generation %}` marks what a model is trained on; it renders as its contents. The template engine does not
//! know the tag, so it is replaced by one that it knows and that opens a scope just so.

/// The template's source with every `generation` tag replaced.
pub fn replace_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    let mut raw = false;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        rest = &rest[open..];
        let length = if raw && !rest.starts_with("{%") {
            1
        } else if rest.starts_with("{#") {
            rest.find("#}").map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with("{{") {
            end_of_code(rest, "}}")
        } else if rest.starts_with("{%") {
            end_of_code(rest, "%}")
        } else {
            1
        };
        let tag = &rest[..length];
        match tag_name(tag) {
            Some("raw") => raw = true,
            Some("endraw") => raw = false,
            Some("generation") if !raw => {
                out.push_str(&tag.replacen("generation", "with", 1));
                rest = &rest[length..];
                continue;
            }
            Some("endgeneration") if !raw => {
                out.push_str(&tag.replacen("endgeneration", "endwith", 1));
                rest = &rest[length..];
                continue;
            }
            Some(_) if raw => {
                out.push_str("{%");
                rest = &rest[2..];
                continue;
            }
            Some(_) | None => {}
        }
        out.push_str(tag);
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}

/// The byte length of the code that `text` begins with, quoted strings respected.
fn end_of_code(text: &str, end: &str) -> usize {
    let mut quote: Option<u8> = None;
    let mut escaped = false;
    for (index, byte) in text.bytes().enumerate().skip(2) {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if byte == b'\\' => escaped = true,
            Some(open) if byte == open => quote = None,
            None if text.as_bytes()[index..].starts_with(end.as_bytes()) => {
                return index + end.len();
            }
            None if byte == b'"' || byte == b'\'' => quote = Some(byte),
            Some(_) | None => {}
        }
    }
    text.len()
}

fn tag_name(tag: &str) -> Option<&str> {
    let inner = tag
        .strip_prefix("{%")?
        .trim_start_matches(['-', '+'])
        .trim_start();
    let length = inner
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(inner.len());
    Some(&inner[..length])
}

#[cfg(test)]
mod tests {
    use super::replace_generation_tags as replaced;

    #[test]
    fn every_spelling_of_the_tag_is_replaced() {
        assert_eq!(
            replaced("{% generation %}a{%- endgeneration -%}{%generation%}b{%+ endgeneration %}"),
            "{% with %}a{%- endwith -%}{%with%}b{%+ endwith %}"
        );
    }

    #[test]
    fn text_comments_strings_and_raw_blocks_keep_the_word() {
        for source in [
            "generation {# {% generation %} #}",
            "{{ '{% generation %}' }}",
            "{% if x == '%} {% generation %}' %}{% endif %}",
            "{% raw %}{% generation %}{{{% endraw %}",
            "{% set generation = 1 %}{{ generation }}",
            "{ % generation %} {",
            "{% unclosed",
        ] {
            assert_eq!(replaced(source), source);
        }
    }
}
