//! Topics and filters as partitions.
//!
//! All messages are of one DDS topic; a topic of pubgauge is the partition of the publisher, and a
//! filter is the partitions of the subscriber. DDS matches partitions like file names (`fnmatch`:
//! `*` is any number of characters, `/` included), so `a/#` is exactly `a` and `a/*`, while `a/+/c`
//! is less than `a/*/c`: there the receiver checks the writer's partition against the filter.

use pubgauge_driver::topic::filter_fault;
use pubgauge_driver::{DriverError, Subscription};

/// Longest topic or filter, bytes.
///
/// Partition names are announced in discovery, whose parameter lists are limited to 64 kB.
pub(crate) const MAX_LEN: usize = 255;

/// A subscription in DDS's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    /// As it was given.
    pub(crate) text: String,
    /// The subscriber's partitions.
    pub(crate) partitions: Vec<String>,
    /// The writers' partitions must be known: to check them, or to tell the topic.
    pub(crate) names: bool,
    /// The partitions match more than the filter.
    pub(crate) checked: bool,
}

/// The partition for a topic.
///
/// # Errors
/// Topics that DDS would take for patterns, or that are not valid.
pub(crate) fn partition(topic: &str) -> Result<&str, DriverError> {
    if topic.is_empty() || topic.len() > MAX_LEN || topic.contains('\0') {
        return Err(DriverError::new(format!(
            "the topic {topic:?} is empty, longer than {MAX_LEN} bytes, or contains a zero byte"
        )));
    }
    if let Some(c) = topic.chars().find(|c| "*?[]\\".contains(*c)) {
        return Err(DriverError::with_hint(
            format!("the topic {topic:?} contains {c:?}, which DDS takes for a pattern"),
            "topics become names of partitions; leave out * ? [ ] and \\",
        ));
    }
    if let Some(c) = topic.chars().find(|c| "+#".contains(*c)) {
        return Err(DriverError::new(format!(
            "the topic {topic:?} contains {c:?}, which belongs in filters"
        )));
    }
    Ok(topic)
}

/// What a subscription becomes.
///
/// # Errors
/// Groups, and filters that are not valid.
pub(crate) fn accept(subscription: &Subscription) -> Result<Filter, DriverError> {
    if let Some(group) = &subscription.group {
        return Err(DriverError::with_hint(
            format!("the group {group:?}: DDS has no subscribers that share messages"),
            "every DDS reader gets every message; leave the group out",
        ));
    }
    let text = &subscription.filter;
    if let Some(fault) = filter_fault(text) {
        return Err(DriverError::new(format!("the filter {text:?}: {fault}")));
    }
    partition(&text.replace(['+', '#'], "x"))?;
    // Wildcards fill whole levels, and `#` is the last.
    let starred = text.replace('+', "*");
    let partitions = match starred.strip_suffix("/#") {
        Some(above) => vec![format!("{above}/*"), above.to_owned()],
        None if starred == "#" => vec!["*".to_owned()],
        None => vec![starred],
    };
    Ok(Filter {
        text: text.clone(),
        partitions,
        names: text.contains(['+', '#']),
        checked: text.contains('+'),
    })
}

/// Whether some topic passes both filters.
pub(crate) fn overlap(a: &str, b: &str) -> bool {
    let (mut a, mut b) = (a.split('/'), b.split('/'));
    loop {
        match (a.next(), b.next()) {
            (None, None) => return true,
            (Some("#"), _) | (_, Some("#")) => return true,
            (None, Some(_)) | (Some(_), None) => return false,
            (Some("+"), _) | (_, Some("+")) => {}
            (Some(x), Some(y)) if x == y => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use pubgauge_driver::TopicMatch;

    /// `fnmatch` with `*` only.
    fn like_a_file_name(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern.first(), name.first()) {
            (None, None) => true,
            (Some(b'*'), _) => {
                like_a_file_name(&pattern[1..], name)
                    || (!name.is_empty() && like_a_file_name(pattern, &name[1..]))
            }
            (Some(p), Some(n)) if p == n => like_a_file_name(&pattern[1..], &name[1..]),
            _ => false,
        }
    }

    #[test]
    fn filters_become_partitions() {
        let partitions = |f| accept(&Subscription::to(f)).unwrap().partitions;
        assert_eq!(partitions("a/b"), ["a/b"]);
        assert_eq!(partitions("a/#"), ["a/*", "a"]);
        assert_eq!(partitions("#"), ["*"]);
        assert_eq!(partitions("a/+/c"), ["a/*/c"]);
        assert!(accept(&Subscription::to("a/+/c")).unwrap().checked);
        assert!(!accept(&Subscription::to("a/#")).unwrap().checked);
        assert!(!accept(&Subscription::to("a/b")).unwrap().names);
    }

    #[test]
    fn what_is_no_topic_or_filter_is_refused() {
        for topic in ["", "a/*", "a?", "[a]", "a/+", "#", "a\0b"] {
            assert!(partition(topic).is_err(), "{topic:?}");
        }
        for filter in ["", "a/*", "a?", "#/a", "a+/b", "a#", "[x]/#"] {
            assert!(accept(&Subscription::to(filter)).is_err(), "{filter:?}");
        }
        assert!(accept(&Subscription::to("a").of_group("g")).is_err());
    }

    proptest! {
        /// The partitions let through what the filter does, and nothing else unless checked.
        #[test]
        fn partitions_match_what_the_filter_does(
            filter in "([ab]|\\+)(/([ab]|\\+)){0,3}(/#)?|#", topic in "[ab]{1,2}(/[ab]{0,2}){0,4}",
        ) {
            let filter = accept(&Subscription::to(filter)).unwrap();
            let lets = |p: &String| like_a_file_name(p.as_bytes(), topic.as_bytes());
            let (through, wanted) =
                (filter.partitions.iter().any(lets), filter.text.matches_topic(&topic));
            prop_assert!(through || !wanted);
            prop_assert!(filter.checked || through == wanted);
        }

        #[test]
        fn filters_that_match_the_same_topic_overlap(
            a in "([ab]|\\+)(/([ab]|\\+)){0,2}(/#)?|#", b in "([ab]|\\+)(/([ab]|\\+)){0,2}(/#)?|#",
            topic in "[ab](/[ab]){0,3}",
        ) {
            prop_assert!(overlap(&a, &b) || !(a.matches_topic(&topic) && b.matches_topic(&topic)));
            prop_assert_eq!(overlap(&a, &b), overlap(&b, &a));
        }
    }
}
