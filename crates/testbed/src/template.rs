//! Placeholders in system files: `{name}` stands for a value.
//!
//! A name is small letters, digits, `-` and `_`, beginning with a letter; braces around anything
//! else are text, so that most configuration languages need no escapes. `{{name}}` is the text
//! `{name}`.

use std::collections::BTreeMap;

/// Placeholders that every system file may use: the executable, the private folder, the user that
/// pubgauge runs as, the folder of downloaded systems, pubgauge's own program, the application's
/// settings, the address at which clients reach the system, and the files of a certificate of the run.
pub const ALWAYS: [&str; 10] = [
    "exe", "dir", "user", "cache", "pubgauge", "settings", HOST, CA_FILE, CERT_FILE, KEY_FILE,
];

/// The placeholder of the certificate of the authority that has signed that of the run.
pub const CA_FILE: &str = "ca-file";

/// The placeholder of the server's certificate of the run: where a system names it, one is made.
pub const CERT_FILE: &str = "cert-file";

/// The placeholder of that certificate's private key.
pub const KEY_FILE: &str = "key-file";

/// The placeholder of the address at which clients reach a system: 127.0.0.1, or that of its host on a
/// network.
pub const HOST: &str = "host";

/// The placeholder of a DDS domain that no other participant is in.
pub const DOMAIN: &str = "dds-domain";

/// Replaces the placeholders of a template by their values. One without a value stays as it is:
/// [`names`] finds those earlier.
pub fn fill(template: &str, values: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(template.len());
    for piece in split(template) {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Name(name) if values.contains_key(name) => out.push_str(&values[name]),
            Piece::Name(name) | Piece::Escaped(name) => out += &format!("{{{name}}}"),
        }
    }
    out
}

/// As [`fill`], where more is filled in later: the text `{{name}}` stays as it is.
pub(crate) fn fill_known(template: &str, values: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(template.len());
    for piece in split(template) {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Name(name) => match values.get(name) {
                Some(value) => out.push_str(value),
                None => out += &format!("{{{name}}}"),
            },
            Piece::Escaped(name) => out += &format!("{{{{{name}}}}}"),
        }
    }
    out
}

/// As [`fill`], of each of several templates.
pub fn fill_all(templates: &[String], values: &BTreeMap<String, String>) -> Vec<String> {
    templates.iter().map(|text| fill(text, values)).collect()
}

/// The names of the placeholders in a template.
pub fn names(template: &str) -> impl Iterator<Item = &str> {
    split(template).filter_map(|piece| match piece {
        Piece::Name(name) => Some(name),
        _ => None,
    })
}

/// Whether `name` may be the name of a placeholder.
pub fn is_name(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.bytes().all(inner)
}

enum Piece<'a> {
    Text(&'a str),
    Name(&'a str),
    Escaped(&'a str),
}

fn split(mut rest: &str) -> impl Iterator<Item = Piece<'_>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let at = rest.find('{').unwrap_or(rest.len());
        if at > 0 {
            let (text, tail) = rest.split_at(at);
            rest = tail;
            return Some(Piece::Text(text));
        }
        if let Some(name) = rest.strip_prefix("{{").and_then(name_before_brace)
            && rest[2 + name.len()..].starts_with("}}")
        {
            let escaped = Piece::Escaped(name);
            rest = &rest[name.len() + 4..];
            return Some(escaped);
        }
        if let Some(name) = name_before_brace(&rest[1..]) {
            let piece = Piece::Name(name);
            rest = &rest[name.len() + 2..];
            return Some(piece);
        }
        let (brace, tail) = rest.split_at(1);
        rest = tail;
        Some(Piece::Text(brace))
    })
}

/// The name of a placeholder at the start of `text`, if a closing brace follows it.
fn name_before_brace(text: &str) -> Option<&str> {
    let name = &text[..text.find('}')?];
    is_name(name).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values() -> BTreeMap<String, String> {
        [("port", "1883"), ("dir", "/x")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into()
    }

    #[test]
    fn names_are_replaced_and_other_braces_are_text() {
        let cases = [
            ("listener {port} 127.0.0.1", "listener 1883 127.0.0.1"),
            ("{dir}/a{port}", "/x/a1883"),
            (
                "jetstream { store_dir: \"{dir}/js\" }",
                "jetstream { store_dir: \"/x/js\" }",
            ),
            ("{127,0,0,1} {} {", "{127,0,0,1} {} {"),
            ("{{port}} {{{port}", "{port} {{1883"),
            ("{Port} {unknown}", "{Port} {unknown}"),
            ("é{port}é", "é1883é"),
        ];
        for (template, expected) in cases {
            assert_eq!(fill(template, &values()), expected, "{template}");
        }
        assert_eq!(names("{a} {{b}} {c-1}").collect::<Vec<_>>(), ["a", "c-1"]);
        // In two steps it is the same.
        let early = fill_known(
            "{early} {port} {{port}} {{early}} {1}",
            &[("early".to_owned(), "7".to_owned())].into(),
        );
        assert_eq!(early, "7 {port} {{port}} {{early}} {1}");
        assert_eq!(fill(&early, &values()), "7 1883 {port} {early} {1}");
    }

    proptest! {
        #[test]
        fn any_text_is_understood(text in "[{}a-z é]{0,40}") {
            let filled = fill(&text, &values());
            if names(&text).count() == 0 && !text.contains("{{") {
                prop_assert_eq!(filled, text);
            }
        }
    }
}
