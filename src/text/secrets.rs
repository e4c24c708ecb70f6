//! Addresses as they may be told and written down: without the user and password in front of the host, and without
//! the query and what follows it, where signatures and tokens stand.

use std::borrow::Cow;

/// What stands for what is left out.
const LEFT_OUT: char = '…';

/// The text with every address in it (`SCHEME://…`) free of what may be secret.
#[must_use]
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, address) = rest.split_at(at + "://".len());
        out.push_str(before);
        let end = address.find(ends_address).unwrap_or(address.len());
        push_address(&mut out, &address[..end]);
        rest = &address[end..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// What follows the scheme. A password may hold any sign that an address must spell otherwise, so the host begins
/// behind the last `@` that comes before a query.
fn push_address(out: &mut String, address: &str) {
    let query = address.find(['?', '#']).unwrap_or(address.len());
    // A password with a `?` in it is no address any more, but it is a secret all the same.
    let host = match address[..query].rfind('@') {
        Some(sign) => sign,
        None => address.rfind('@').map_or(0, |sign| sign.max(query)),
    };
    if host > query {
        out.push(LEFT_OUT);
        return;
    }
    if host > 0 || address.starts_with('@') {
        out.push(LEFT_OUT);
    }
    out.push_str(&address[host..query]);
    if query < address.len() {
        out.push_str(&address[query..=query]);
        out.push(LEFT_OUT);
    }
}

fn ends_address(c: char) -> bool {
    c.is_whitespace() || c.is_control() || matches!(c, '\'' | '"' | '`' | '<' | '>')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_address_is_told_without_its_password_and_query() {
        for (text, told) in [
            ("no address: a ? b", "no address: a ? b"),
            ("https://h/org/m.gguf", "https://h/org/m.gguf"),
            ("https://u:p@h:8/m.gguf", "https://…@h:8/m.gguf"),
            ("https://tok@h/m.gguf?a=1&b=2#c", "https://…@h/m.gguf?…"),
            ("https://h/m.gguf#frag", "https://h/m.gguf#…"),
            ("'https://u:a/b@h/m': gone", "'https://…@h/m': gone"),
            ("https://u:a?b@h/m", "https://…"),
            ("http://@h", "http://…@h"),
            (
                "socks5://u:p@h then ftp://v@i?x=1 end",
                "socks5://…@h then ftp://…@i?… end",
            ),
            ("://", "://"),
        ] {
            assert_eq!(without_secrets(text), told);
        }
    }

    proptest! {
        #[test]
        fn no_password_and_no_signature_is_ever_told(
            before in "[a-z ]{0,5}", path in "[a-z/.]{0,9}", user in "[a-z]{0,4}", tail in "[a-z&=#?]{0,5}"
        ) {
            let text = format!("{before}https://{user}:SECRET@host/{path}?{tail}sig=SECRET");
            prop_assert!(!without_secrets(&text).contains("SECRET"));
        }

        #[test]
        fn any_text_is_taken(text in "[:/@?#'x é…]{0,20}") {
            let once = without_secrets(&text).into_owned();
            prop_assert_eq!(without_secrets(&once), once.as_str());
        }
    }
}
