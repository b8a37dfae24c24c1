//! Topic names and topic filters (MQTT 5 and 3.1.1, section 4.7).

/// Deepest topic or filter the broker takes, in levels. The tree is walked
/// recursively, so without a bound a hostile filter could overflow the stack;
/// mosquitto has the same limit.
pub(crate) const MAX_LEVELS: usize = 200;

/// Whether a topic or filter has at most [`MAX_LEVELS`] levels.
pub(crate) fn is_shallow(topic: &[u8]) -> bool {
    topic.iter().filter(|&&b| b == b'/').count() < MAX_LEVELS
}

/// Whether the filter names exactly one topic.
pub(crate) fn is_exact(filter: &[u8]) -> bool {
    !filter.iter().any(|b| matches!(b, b'+' | b'#'))
}

/// The levels of a topic or filter, in order; empty levels count.
pub(crate) fn levels(topic: &[u8]) -> impl Iterator<Item = &[u8]> {
    topic.split(|&b| b == b'/')
}

/// The first level of a topic or filter, and the rest.
pub(crate) fn split(path: &[u8]) -> (&[u8], Option<&[u8]>) {
    match path.iter().position(|&b| b == b'/') {
        Some(cut) => (&path[..cut], Some(&path[cut + 1..])),
        None => (path, None),
    }
}

/// A subscription's filter, parsed.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum ParsedFilter<'a> {
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

impl<'a> ParsedFilter<'a> {
    /// Parses a filter that the codec has found valid.
    pub(crate) fn parse(raw: &'a str) -> ParsedFilter<'a> {
        match pubgauge_mqtt_codec::topic::split_shared(raw) {
            Some((group, filter)) => ParsedFilter::Shared {
                group: group.as_bytes(),
                filter: filter.as_bytes(),
            },
            None => ParsedFilter::Plain(raw.as_bytes()),
        }
    }

    /// The filter that topics are matched with.
    pub(crate) fn pattern(self) -> &'a [u8] {
        match self {
            ParsedFilter::Plain(filter) | ParsedFilter::Shared { filter, .. } => filter,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth() {
        assert!(is_shallow("/".repeat(MAX_LEVELS - 1).as_bytes()));
        assert!(!is_shallow("/".repeat(MAX_LEVELS).as_bytes()));
    }

    #[test]
    fn shares() {
        let shared = ParsedFilter::parse("$share/g/a/#");
        assert_eq!(
            shared,
            ParsedFilter::Shared {
                group: b"g",
                filter: b"a/#"
            }
        );
        assert_eq!(shared.pattern(), b"a/#");
        assert_eq!(
            ParsedFilter::parse("$shared/a"),
            ParsedFilter::Plain(b"$shared/a")
        );
        assert!(is_exact(b"a/b") && !is_exact(b"a/+") && !is_exact(b"#"));
    }
}
