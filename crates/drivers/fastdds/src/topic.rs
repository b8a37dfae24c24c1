//! Topics and filters as DDS partitions.
//!
//! All messages have one DDS topic. A topic of pubgauge, `a/b/c`, is the partition of the writer's
//! Publisher; filters are the partitions of the Subscriber, which may be patterns of POSIX fnmatch
//! (DDS 1.4, section 2.2.3.13). Matching is done once, in discovery; no message is filtered.
//!
//! | filter | partitions of the Subscriber |
//! |---|---|
//! | `a/b` | `a/b` |
//! | `a/#` | `a`, `a/*`: `a` itself and everything below, but not `ab` |
//! | `#` | `*` |
//!
//! `a/+/c` cannot be expressed: `*` also matches several levels.

use pubgauge_driver::{DriverError, Subscription};

/// Partition names are announced in discovery; the DDS-RTPS parameter list is limited to 64 kB,
/// and no implementation is asked for more than this.
const LONGEST: usize = 255;

/// Bytes of partition names that a reader may announce. The library announces a reader in one datagram, of 65,500 bytes at
/// most, with some 300 more of its own: 1,627 names of 40 bytes were heard of, 1,632 never (Fast DDS 2.9.1), without a word.
const MOST_ANNOUNCED: usize = 65_500 - 384;

/// Checks that a reader with these partitions can be announced.
///
/// # Errors
/// Whose limit it is, how many partitions there are, and how many there may be.
pub(crate) fn check_announced(partitions: &[String]) -> Result<(), String> {
    // Each is a length and a name with its NUL, in multiples of 4 (OMG CDR).
    let bytes = |name: &String| 4 + (name.len() + 1).next_multiple_of(4);
    let all: usize = partitions.iter().map(bytes).sum();
    if all <= MOST_ANNOUNCED {
        return Ok(());
    }
    let most = partitions.len() * MOST_ANNOUNCED / all;
    Err(format!(
        "its {} topics take {all} bytes of names, and Fast DDS announces all topics of a subscriber in one datagram, which has \
         room for {MOST_ANNOUNCED}: a larger one is never sent\n  hint: about {most} topics of such names fit; subscribe \
         with a wildcard (`topic/#`), use shorter names, or more subscribers",
        partitions.len()
    ))
}

/// Checks a topic to publish to, which is its own partition.
///
/// # Errors
/// A topic that would be a pattern, an empty or a too long one.
pub(crate) fn partition(topic: &str) -> Result<&str, DriverError> {
    if topic.contains(['+', '#']) {
        return Err(DriverError::with_hint(
            format!("the topic {topic:?} holds a wildcard"),
            "`+` and `#` belong into filters; a message goes to one exact topic",
        ));
    }
    plain(topic, "topic")?;
    Ok(topic)
}

/// The partitions that a subscription asks for.
///
/// # Errors
/// A group, which DDS does not have; `+`; what would be a pattern.
pub(crate) fn accept(subscription: &Subscription) -> Result<Vec<String>, DriverError> {
    if let Some(group) = &subscription.group {
        return Err(DriverError::with_hint(
            format!(
                "the group {group:?}: DDS has no shared subscriptions, every matching reader gets every sample"
            ),
            "leave the group out",
        ));
    }
    let filter = subscription.filter.as_str();
    if filter == "#" {
        return Ok(vec!["*".to_owned()]);
    }
    let root = filter.strip_suffix("/#");
    let exact = root.unwrap_or(filter);
    if exact.split('/').any(|level| level == "+") {
        return Err(DriverError::with_hint(
            format!(
                "the filter {filter:?} has the wildcard `+`: filters become DDS partitions, whose \
                 `*` also stands for several levels"
            ),
            "use exact topics, or `#` at the end",
        ));
    }
    if exact.contains(['+', '#']) {
        return Err(DriverError::with_hint(
            format!("the filter {filter:?} has a wildcard in the wrong place"),
            "`#` is a whole last level",
        ));
    }
    plain(exact, "filter")?;
    let mut partitions = vec![exact.to_owned()];
    if root.is_some() {
        partitions.push(format!("{exact}/*"));
    }
    Ok(partitions)
}

fn plain(text: &str, what: &str) -> Result<(), DriverError> {
    // An empty name is the default partition, which `*` does not match.
    if text.is_empty() || text.len() > LONGEST {
        return Err(DriverError::with_hint(
            format!("the {what} {text:?} is empty or longer than {LONGEST} bytes"),
            "it becomes the name of a DDS partition",
        ));
    }
    if text.contains(['*', '?', '[', ']', '\\', '\0']) {
        return Err(DriverError::with_hint(
            format!("the {what} {text:?} would be a pattern as a DDS partition"),
            "choose topics without * ? [ ] \\ and zero bytes",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filter(text: &str) -> Result<Vec<String>, DriverError> {
        accept(&Subscription::to(text))
    }

    #[test]
    fn filters_become_partitions() {
        assert_eq!(filter("a/b").unwrap(), ["a/b"]);
        assert_eq!(filter("a/#").unwrap(), ["a", "a/*"]);
        assert_eq!(filter("#").unwrap(), ["*"]);
    }

    #[test]
    fn what_dds_cannot_say_is_refused() {
        for bad in [
            "", "a/+/c", "+", "a/+/#", "a#", "#/a", "a/#/b", "a+/b", "a*", "a?", "[a]", "a\\b",
        ] {
            assert!(filter(bad).is_err(), "{bad}");
            assert!(partition(bad).is_err(), "{bad}");
        }
        assert!(partition(&"x".repeat(256)).is_err());
        let shared = Subscription::to("a").of_group("g");
        assert!(accept(&shared).unwrap_err().what.contains("shared"));
    }

    #[test]
    fn more_names_than_a_datagram_holds_are_told() {
        let names = |count: usize| -> Vec<String> {
            (0..count)
                .map(|n| format!("pubgauge-1a2b3c4d/many-filters/{n:04}"))
                .collect()
        };
        assert_eq!(check_announced(&names(1627)), Ok(()));
        let why = check_announced(&names(1700)).unwrap_err();
        assert!(why.contains("1700 topics take 68000 bytes"), "{why}");
        assert!(why.contains("about 1627 topics"), "{why}");
    }

    /// fnmatch(3) itself, as the library calls it.
    fn fnmatch(pattern: &str, text: &str) -> bool {
        let (pattern, text) = (
            std::ffi::CString::new(pattern).unwrap(),
            std::ffi::CString::new(text).unwrap(),
        );
        // SAFETY: two NUL-terminated strings.
        unsafe { libc::fnmatch(pattern.as_ptr(), text.as_ptr(), libc::FNM_NOESCAPE) == 0 }
    }

    proptest! {
        #[test]
        fn partitions_match_what_the_filter_means(
            topic in "[ab]{1,2}(/[ab]{1,2}){0,3}",
            root in "[ab]{1,2}(/[ab]{1,2}){0,2}",
            below: bool,
        ) {
            let text = if below { format!("{root}/#") } else { root.clone() };
            let wanted = topic == root || below && topic.starts_with(&format!("{root}/"));
            let got = filter(&text).unwrap().iter().any(|p| fnmatch(p, partition(&topic).unwrap()));
            prop_assert_eq!(got, wanted);
        }

        #[test]
        fn never_panics(text in ".*") {
            let _ = (filter(&text), partition(&text));
        }
    }
}
