//! Topic names and topic filters (MQTT 5 and 3.1.1, section 4.7).

/// Deepest topic or filter the broker takes, in levels. The tree is walked
/// recursively, so a bound is what keeps a hostile filter from the stack's end;
/// mosquitto uses the same figure.
pub(crate) const MAX_LEVELS: usize = 200;

/// Whether `topic` may be published to: not empty, UTF-8, no wildcard, no NUL,
/// at most [`MAX_LEVELS`] levels.
pub(crate) fn is_name(topic: &[u8]) -> bool {
    let mut slashes = 0;
    for &b in topic {
        match b {
            b'+' | b'#' | 0 => return false,
            b'/' => slashes += 1,
            _ => {}
        }
    }
    !topic.is_empty() && slashes < MAX_LEVELS && std::str::from_utf8(topic).is_ok()
}

/// Whether `filter` may be subscribed to (the part after `$share/group/` where
/// there is one): wildcards fill whole levels, and `#` is the last level.
pub(crate) fn is_filter(filter: &[u8]) -> bool {
    if filter.is_empty() || filter.contains(&0) || std::str::from_utf8(filter).is_err() {
        return false;
    }
    let mut depth = 0;
    let mut ended = false;
    for level in levels(filter) {
        depth += 1;
        if ended || depth > MAX_LEVELS {
            return false;
        }
        match level {
            b"#" => ended = true,
            b"+" => {}
            other => {
                if other.iter().any(|b| matches!(b, b'+' | b'#')) {
                    return false;
                }
            }
        }
    }
    true
}

/// Whether the filter names exactly one topic.
pub(crate) fn is_exact(filter: &[u8]) -> bool {
    !filter.iter().any(|b| matches!(b, b'+' | b'#'))
}

/// The levels of a topic or filter, in order; empty levels count.
pub(crate) fn levels(topic: &[u8]) -> impl Iterator<Item = &[u8]> {
    topic.split(|&b| b == b'/')
}

/// A subscription's filter, taken apart.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Filter<'a> {
    /// Every subscriber gets every message.
    Plain(&'a [u8]),
    /// One member of the group gets each message (MQTT 5 section 4.8.2).
    Shared {
        /// The share name.
        group: &'a [u8],
        /// The filter behind it.
        filter: &'a [u8],
    },
}

impl<'a> Filter<'a> {
    /// Takes a filter apart as the client sent it; `None` if it is malformed.
    pub(crate) fn parse(raw: &'a [u8]) -> Option<Filter<'a>> {
        let Some(rest) = raw.strip_prefix(b"$share/") else {
            return is_filter(raw).then_some(Filter::Plain(raw));
        };
        let cut = rest.iter().position(|&b| b == b'/')?;
        let (group, filter) = (&rest[..cut], &rest[cut + 1..]);
        let good_group = !group.is_empty() && is_exact(group) && std::str::from_utf8(group).is_ok();
        (good_group && is_filter(filter)).then_some(Filter::Shared { group, filter })
    }
}

/// Whether `filter` matches `topic`, level by level: the plain reading of the
/// specification that the tree and the retained store are tested against.
#[cfg(test)]
pub(crate) fn matches(filter: &[u8], topic: &[u8]) -> bool {
    if topic.first() == Some(&b'$') && matches!(filter.first(), Some(b'+' | b'#')) {
        return false;
    }
    let mut topic = levels(topic);
    for level in levels(filter) {
        if level == b"#" {
            return true;
        }
        match topic.next() {
            Some(t) if level == b"+" || level == t => {}
            _ => return false,
        }
    }
    topic.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for good in ["a", "/", "a//b", "a b/ü", "$SYS/x"] {
            assert!(is_name(good.as_bytes()), "{good}");
        }
        for bad in [&b""[..], b"a/+", b"#", b"a\0", b"\xff"] {
            assert!(!is_name(bad), "{bad:?}");
        }
        assert!(is_name("/".repeat(MAX_LEVELS - 1).as_bytes()));
        assert!(!is_name("/".repeat(MAX_LEVELS).as_bytes()));
    }

    #[test]
    fn filters() {
        for good in ["a", "+", "#", "a/+/b", "a/#", "/", "+/+", "+/#"] {
            assert!(is_filter(good.as_bytes()), "{good}");
        }
        for bad in ["", "a+", "a/#/b", "#/", "a#", "a/b+/c", "a\0"] {
            assert!(!is_filter(bad.as_bytes()), "{bad}");
        }
        assert!(!is_filter("/".repeat(MAX_LEVELS).as_bytes()));
    }

    #[test]
    fn shares() {
        assert_eq!(
            Filter::parse(b"$share/g/a/#"),
            Some(Filter::Shared {
                group: b"g",
                filter: b"a/#"
            })
        );
        for bad in [
            "$share/",
            "$share/g",
            "$share//a",
            "$share/g/",
            "$share/+/a",
            "$share/g/a#",
        ] {
            assert_eq!(Filter::parse(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(
            Filter::parse(b"$shared/a"),
            Some(Filter::Plain(b"$shared/a"))
        );
    }

    #[test]
    fn the_specifications_own_examples() {
        let table = [
            ("sport/tennis/player1/#", "sport/tennis/player1", true),
            (
                "sport/tennis/player1/#",
                "sport/tennis/player1/score/wimbledon",
                true,
            ),
            ("sport/#", "sport", true),
            ("#", "a/b", true),
            ("sport/tennis/+", "sport/tennis/player1", true),
            ("sport/tennis/+", "sport/tennis/player1/ranking", false),
            ("sport/+", "sport", false),
            ("sport/+", "sport/", true),
            ("+/+", "/finance", true),
            ("/+", "/finance", true),
            ("+", "/finance", false),
            ("#", "$SYS/x", false),
            ("+/monitor/Clients", "$SYS/monitor/Clients", false),
            ("$SYS/#", "$SYS/x", true),
            ("$SYS/monitor/+", "$SYS/monitor/Clients", true),
        ];
        for (filter, topic, expected) in table {
            assert_eq!(
                matches(filter.as_bytes(), topic.as_bytes()),
                expected,
                "{filter} {topic}"
            );
        }
    }
}
