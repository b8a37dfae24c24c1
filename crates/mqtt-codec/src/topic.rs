//! Checks of topic names and topic filters (5.0 §4.7, §4.8).

use crate::error::DecodeError;
use crate::reason::ReasonCode;

const SECTION_NAME: &str = "5.0 §3.3.2.1 and §4.7, 3.1.1 §3.3.2.1 and §4.7";
const SECTION_FILTER: &str = "5.0 §4.7.1, 3.1.1 §4.7.1";
const SECTION_SHARED: &str = "5.0 §4.8.2";

/// Checks a topic name: at least one character, at most 65,535 bytes, no wildcard, no U+0000.
///
/// # Errors
/// Says which of the rules is broken.
#[inline]
pub fn check_name(name: &str) -> Result<(), DecodeError> {
    if name.is_empty() {
        return Err(bad_name("a topic name is empty"));
    }
    check_response_topic(name)
}

/// The rules of a topic name that hold for an empty one as well, which a PUBLISH with a topic
/// alias may have.
#[inline]
pub(crate) fn check_response_topic(name: &str) -> Result<(), DecodeError> {
    // One pass over the bytes: this runs for every message.
    let mut wildcard = false;
    let mut nul = false;
    for &b in name.as_bytes() {
        wildcard |= b == b'+' || b == b'#';
        nul |= b == 0;
    }
    if wildcard {
        return Err(bad_name("a topic name has a wildcard (+ or #) in it"));
    }
    if nul {
        return Err(bad_name("a topic name has the character U+0000 in it"));
    }
    if name.len() > 65_535 {
        return Err(bad_name("a topic name is longer than 65,535 bytes"));
    }
    Ok(())
}

#[cold]
fn bad_name(what: &'static str) -> DecodeError {
    DecodeError::malformed(what, SECTION_NAME).with_reason(ReasonCode::TOPIC_NAME_INVALID)
}

/// Checks a topic filter, shared or not: at least one character, at most 65,535 bytes, `+` and
/// `#` only as whole levels, `#` only at the end, no U+0000; after `$share/` a name without
/// wildcards and a filter.
///
/// # Errors
/// Says which of the rules is broken.
pub fn check_filter(filter: &str) -> Result<(), DecodeError> {
    let bad_by = |section| {
        move |what| {
            DecodeError::malformed(what, section).with_reason(ReasonCode::TOPIC_FILTER_INVALID)
        }
    };
    let (bad, bad_share) = (bad_by(SECTION_FILTER), bad_by(SECTION_SHARED));
    if filter.len() > 65_535 {
        return Err(bad("a topic filter is longer than 65,535 bytes"));
    }
    if filter.contains('\0') {
        return Err(bad("a topic filter has the character U+0000 in it"));
    }
    let mut plain = filter;
    if let Some(shared) = filter.strip_prefix("$share/") {
        let Some((group, rest)) = shared.split_once('/') else {
            return Err(bad_share("a shared subscription has no topic filter"));
        };
        if group.is_empty() || group.contains(['+', '#']) {
            return Err(bad_share("the share name is empty or has a wildcard in it"));
        }
        plain = rest;
    }
    if plain.is_empty() {
        return Err(bad("a topic filter is empty"));
    }
    let mut levels = plain.split('/').peekable();
    while let Some(level) = levels.next() {
        if level.len() > 1 && level.contains(['+', '#']) {
            return Err(bad("a wildcard shares its level with other characters"));
        }
        if level == "#" && levels.peek().is_some() {
            return Err(bad("the wildcard # is not the last level"));
        }
    }
    Ok(())
}

/// The group and the filter of a shared subscription `$share/GROUP/FILTER` (5.0 §4.8.2), `None`
/// of any other.
pub fn split_shared(filter: &str) -> Option<(&str, &str)> {
    filter.strip_prefix("$share/")?.split_once('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_filters_are_told_from_what_is_none() {
        for name in ["a", "/", "a b/ü", "$SYS/x", "//"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "a/+", "#", "a\0b", &"x".repeat(65_536)] {
            assert!(check_name(name).is_err(), "{name}");
        }
        for filter in [
            "a",
            "/",
            "+",
            "#",
            "a/+/b/#",
            "$share/g/a/#",
            "$share/g//",
            "+/+",
            "$share",
        ] {
            assert!(check_filter(filter).is_ok(), "{filter}");
        }
        for filter in [
            "",
            "a+",
            "a#",
            "#/a",
            "a/#/b",
            "+a/b",
            "$share/",
            "$share/g",
            "$share/g/",
            "$share//a",
            "$share/g+/a",
            "a\0",
        ] {
            assert!(check_filter(filter).is_err(), "{filter}");
        }
        assert_eq!(split_shared("$share/g/a/b"), Some(("g", "a/b")));
        assert_eq!(split_shared("a/b"), None);
    }
}
