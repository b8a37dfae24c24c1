//! Topics and filters on the wire.
//!
//! ZeroMQ has no topics: a subscription is a prefix of the message's first frame (RFC 29,
//! "Publish-Subscribe"). So that one prefix says exactly what a filter says, every level of a topic
//! is ended by `/` and the topic as a whole by a zero byte:
//!
//! | | on the wire |
//! |---|---|
//! | topic `a/b` | `a/b/` NUL, then the payload |
//! | filter `a/b` | prefix `a/b/` NUL: neither `a/bc` nor `a/b/c` begins like this |
//! | filter `a/#` | prefix `a/`: `a` itself and everything below, but not `ab` |
//! | filter `#` | the empty prefix |
//!
//! `+` cannot be a prefix. It is refused, unless the user asks for filtering at the receiver
//! (`native.zeromq.plus-wildcard = "filter-at-receiver"`): then the prefix ends before the first
//! `+` and the subscriber drops what does not match, as a ZeroMQ application would have to; the
//! excess messages cross the wire and cost CPU.

use pubgauge_driver::topic::filter_fault;
use pubgauge_driver::{DriverError, Subscription};

use crate::options::ZeromqOptions;

/// Ends a topic; can therefore not be part of one.
const END: u8 = 0;

/// The bytes before the payload of every message of `topic`.
///
/// # Errors
/// An empty topic, or one with a wildcard or a zero byte.
pub(crate) fn wire_topic(topic: &str) -> Result<Box<[u8]>, DriverError> {
    if topic.is_empty() {
        return Err(DriverError::new("a topic is empty"));
    }
    if topic.bytes().any(|b| matches!(b, END | b'+' | b'#')) {
        return Err(DriverError::with_hint(
            format!("the topic {topic:?} holds a wildcard or a zero byte"),
            "`+` and `#` belong into filters; a message goes to one exact topic",
        ));
    }
    let mut wire = Vec::with_capacity(topic.len() + 2);
    wire.extend_from_slice(topic.as_bytes());
    wire.extend_from_slice(&[b'/', END]);
    Ok(wire.into())
}

/// The message that tells receivers the address of a topic's queue: the topic's [`wire_topic`], the
/// publisher's address, a zero byte, and the queue's address.
pub(crate) fn announcement(wire_topic: &[u8], publisher: &str, queue: &str) -> Vec<u8> {
    [wire_topic, publisher.as_bytes(), &[END], queue.as_bytes()].concat()
}

/// Cuts an [`announcement`] into topic, publisher's address, and queue's address; `None` if
/// `message` is not one.
pub(crate) fn split_announcement(message: &[u8]) -> Option<(&str, &str, &str)> {
    let (topic, addresses) = split(message)?;
    let (publisher, queue) = std::str::from_utf8(addresses)
        .ok()?
        .split_once(char::from(END))?;
    let is_address = |a: &str| a.contains("://") && !a.contains(char::from(END));
    (is_address(publisher) && is_address(queue)).then_some((topic, publisher, queue))
}

/// Cuts a message into topic and payload; `None` if it is not one of ours.
#[inline]
pub(crate) fn split(message: &[u8]) -> Option<(&str, &[u8])> {
    let end = message.iter().position(|&b| b == END)?;
    let topic = message[..end].strip_suffix(b"/")?;
    Some((std::str::from_utf8(topic).ok()?, &message[end + 1..]))
}

/// A filter, translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ZeromqFilter {
    /// The prefix that the socket subscribes to.
    pub(crate) prefix: Vec<u8>,
    /// The filter that the receiver must still check, if the prefix matches more.
    pub(crate) check: Option<String>,
}

/// Translates a subscription.
///
/// # Errors
/// A group, which PUB/SUB does not have; a wildcard under point-to-point; what [`translate`]
/// refuses.
pub(crate) fn accept(
    subscription: &Subscription,
    options: &ZeromqOptions,
) -> Result<ZeromqFilter, DriverError> {
    if options.point_to_point {
        // The receivers of a topic share it, with or without a group.
        if subscription.filter.contains(['+', '#']) {
            return Err(DriverError::with_hint(
                format!(
                    "the filter {:?}: under point-to-point a receiver names its topic, whose \
                     queue it then takes from",
                    subscription.filter
                ),
                "name one topic (several subscriptions are fine), or use publish-subscribe",
            ));
        }
        return translate(&subscription.filter, false);
    }
    if let Some(group) = &subscription.group {
        return Err(DriverError::with_hint(
            format!("the group {group:?}: ZeroMQ PUB/SUB has no shared subscriptions"),
            "leave the group out; each subscriber then gets every message",
        ));
    }
    translate(&subscription.filter, options.plus_at_receiver)
}

/// Translates a filter.
///
/// # Errors
/// A wildcard in the wrong place; `+` unless `plus_at_receiver`.
pub(crate) fn translate(filter: &str, plus_at_receiver: bool) -> Result<ZeromqFilter, DriverError> {
    if let Some(fault) = filter_fault(filter) {
        return Err(DriverError::new(format!("the filter {filter:?}: {fault}")));
    }
    let mut prefix = Vec::with_capacity(filter.len() + 2);
    for level in filter.split('/') {
        match level {
            "#" => {
                return Ok(ZeromqFilter {
                    prefix,
                    check: None,
                });
            }
            "+" if plus_at_receiver => {
                return Ok(ZeromqFilter {
                    prefix,
                    check: Some(filter.to_owned()),
                });
            }
            "+" => {
                return Err(DriverError::with_hint(
                    format!(
                        "the filter {filter:?} has the wildcard `+`, which ZeroMQ does not have: it \
                         matches prefixes only"
                    ),
                    "use `#` at the end or exact topics, or set native.zeromq.plus-wildcard = \
                     \"filter-at-receiver\" to receive the common prefix and let the subscriber \
                     throw away the rest",
                ));
            }
            level => {
                prefix.extend_from_slice(level.as_bytes());
                prefix.push(b'/');
            }
        }
    }
    prefix.push(END);
    Ok(ZeromqFilter {
        prefix,
        check: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use pubgauge_driver::TopicMatch;

    #[test]
    fn exact_filters_match_nothing_else() {
        let exact = translate("a/b", false).unwrap().prefix;
        assert!(wire_topic("a/b").unwrap().starts_with(&exact));
        for other in ["a/bc", "a/b/c", "a", "a/b/", "b"] {
            assert!(!wire_topic(other).unwrap().starts_with(&exact), "{other}");
        }
    }

    #[test]
    fn a_subtree_holds_its_root_but_not_its_namesakes() {
        let tree = translate("a/b/#", false).unwrap().prefix;
        for inside in ["a/b", "a/b/c", "a/b/c/d"] {
            assert!(wire_topic(inside).unwrap().starts_with(&tree), "{inside}");
        }
        for outside in ["a/bc", "a", "a/c"] {
            assert!(
                !wire_topic(outside).unwrap().starts_with(&tree),
                "{outside}"
            );
        }
        assert_eq!(translate("#", false).unwrap().prefix, b"");
    }

    #[test]
    fn plus_is_refused_or_checked_at_the_receiver() {
        let refused = translate("site/+/power", false).unwrap_err();
        assert!(
            refused.to_string().contains("filter-at-receiver"),
            "{refused}"
        );
        let filter = translate("site/+/power", true).unwrap();
        assert_eq!(filter.prefix, b"site/");
        assert_eq!(filter.check.as_deref(), Some("site/+/power"));
    }

    #[test]
    fn misplaced_wildcards_are_refused() {
        for bad in ["", "a/#/b", "a#", "a/b+", "+/a#", "+/#/b", "a\0b"] {
            assert!(translate(bad, true).is_err(), "{bad:?}");
        }
        for bad in ["", "a/+", "#", "a\0b"] {
            assert!(wire_topic(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_foreign_message_has_no_topic() {
        assert_eq!(split(b"no end"), None);
        assert_eq!(split(b"no slash\0x"), None);
        assert_eq!(split(b"\xff/\0x"), None);
    }

    fn topics() -> impl Strategy<Value = String> {
        proptest::collection::vec("[ab]{0,2}", 1..4)
            .prop_map(|levels| levels.join("/"))
            .prop_filter("not empty", |t| !t.is_empty())
    }

    fn filters() -> impl Strategy<Value = String> {
        (
            proptest::collection::vec("[ab]{0,2}|\\+", 0..4),
            any::<bool>(),
        )
            .prop_map(|(mut levels, tree)| {
                if tree {
                    levels.push("#".to_owned());
                }
                levels.join("/")
            })
            .prop_filter("not empty", |f| !f.is_empty())
    }

    proptest! {
        #[test]
        fn prefix_and_check_together_say_what_the_filter_says(
            filter in filters(), topic in topics(),
        ) {
            let translated = translate(&filter, true).unwrap();
            let wire = wire_topic(&topic).unwrap();
            let passes = wire.starts_with(&translated.prefix)
                && translated.check.as_deref().is_none_or(|f| f.matches_topic(&topic));
            prop_assert_eq!(passes, filter.matches_topic(&topic));
        }

        #[test]
        fn what_is_announced_is_understood(
            topic in topics(), publisher in "[a-z]{1,3}://[^\0]{0,20}", queue in "ipc://[^\0]{0,20}",
        ) {
            let message = announcement(&wire_topic(&topic).unwrap(), &publisher, &queue);
            let parts = Some((topic.as_str(), publisher.as_str(), queue.as_str()));
            prop_assert_eq!(split_announcement(&message), parts);
        }

        #[test]
        fn what_is_no_announcement_is_none(
            message in "(a/\0)?[ab]{0,2}(://)?\0{0,2}[ab]{0,2}\0?", noise: Vec<u8>,
        ) {
            let understood = split_announcement(message.as_bytes());
            prop_assert_eq!(understood, None);
            let _ = split_announcement(&noise);
        }

        #[test]
        fn what_is_joined_is_split(topic in topics(), payload: Vec<u8>) {
            let mut message = wire_topic(&topic).unwrap().into_vec();
            message.extend_from_slice(&payload);
            prop_assert_eq!(split(&message), Some((topic.as_str(), payload.as_slice())));
        }
    }
}
