//! Topics and filters as partitions.
//!
//! All messages are of one DDS topic; a topic of pubgauge is the partition of the publisher, and a
//! filter is the partitions of the subscriber. DDS matches partitions like file names (`fnmatch`;
//! DDS 1.4, section 2.2.3.13), once, in discovery: `*` is any number of characters, `/` included.
//!
//! | filter | partitions of the subscriber |
//! |---|---|
//! | `a/b` | `a/b` |
//! | `a/#` | `a`, `a/*`: `a` itself and all below, but not `ab` |
//! | `/#` | `/*`: the empty name would be the default partition, which is no topic |
//! | `#` | `*` |
//! | `a/+/c` | `a/*/c`, which is more: the reader has to look at the writer's partition |

use pubgauge_driver::topic::filter_fault;
use pubgauge_driver::{DriverError, Subscription};

/// Longest topic or filter, bytes: names of partitions are announced in discovery, whose parameter
/// lists are limited to 64 kB.
const LONGEST: usize = 255;

/// A subscription in DDS's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// As it was given.
    pub text: String,
    /// The subscriber's partitions.
    pub partitions: Vec<String>,
    /// The partitions match more than the filter.
    pub is_wider: bool,
}

impl Filter {
    /// The filter of a subscription.
    ///
    /// # Errors
    /// Groups, and filters that are not valid or would be patterns in another sense.
    pub fn new(subscription: &Subscription) -> Result<Filter, DriverError> {
        if let Some(group) = &subscription.group {
            return Err(DriverError::with_hint(
                format!("the group {group:?}: DDS has no subscribers that share messages"),
                "every DDS reader gets every message; leave the group out",
            ));
        }
        let text = &subscription.filter;
        if let Some(fault) = filter_fault(text) {
            return Err(DriverError::with_hint(
                format!("the filter {text:?}: {fault}"),
                "`+` and `#` are whole levels, and `#` is the last",
            ));
        }
        check_name(text, "filter")?;
        let starred = text.replace('+', "*");
        let partitions = match starred.strip_suffix('#') {
            Some("") => vec!["*".to_owned()],
            Some("/") => vec!["/*".to_owned()],
            Some(above) => vec![above[..above.len() - 1].to_owned(), format!("{above}*")],
            None => vec![starred],
        };
        Ok(Filter {
            is_wider: text.contains('+'),
            text: text.clone(),
            partitions,
        })
    }

    /// Whether the filter is no exact topic.
    pub fn is_pattern(&self) -> bool {
        self.text.contains(['+', '#'])
    }

    /// Whether some topic passes this filter and another.
    pub fn overlaps(&self, other: &str) -> bool {
        let (mut a, mut b) = (self.text.split('/'), other.split('/'));
        loop {
            match (a.next(), b.next()) {
                (None, None) | (Some("#"), _) | (_, Some("#")) => return true,
                (None, Some(_)) | (Some(_), None) => return false,
                (Some("+"), _) | (_, Some("+")) => {}
                (Some(x), Some(y)) if x == y => {}
                _ => return false,
            }
        }
    }
}

/// The partition of the writers of a topic.
///
/// # Errors
/// Topics that DDS would take for patterns, or that are not valid.
pub fn partition(topic: &str) -> Result<&str, DriverError> {
    if topic.contains(['+', '#']) {
        return Err(DriverError::with_hint(
            format!("the topic {topic:?} has a wildcard"),
            "`+` and `#` belong into filters; a message goes to one exact topic",
        ));
    }
    check_name(topic, "topic")?;
    Ok(topic)
}

fn check_name(text: &str, what: &str) -> Result<(), DriverError> {
    if text.is_empty() || text.len() > LONGEST {
        return Err(DriverError::with_hint(
            format!("the {what} {text:?} is empty or longer than {LONGEST} bytes"),
            "it becomes the name of a DDS partition",
        ));
    }
    if text.contains(['*', '?', '[', ']', '\\', '\0']) {
        return Err(DriverError::with_hint(
            format!("DDS would take the {what} {text:?} for a pattern"),
            "topics become names of partitions; leave out * ? [ ] \\ and zero bytes",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use pubgauge_driver::TopicMatch;

    fn filter(text: &str) -> Result<Filter, DriverError> {
        Filter::new(&Subscription::matching(text))
    }

    /// fnmatch(3) itself, as the libraries call it.
    fn fnmatch(pattern: &str, text: &str) -> bool {
        let c_string = |text: &str| std::ffi::CString::new(text).unwrap();
        let (pattern, text) = (c_string(pattern), c_string(text));
        // SAFETY: two NUL-terminated strings.
        unsafe { libc::fnmatch(pattern.as_ptr(), text.as_ptr(), libc::FNM_NOESCAPE) == 0 }
    }

    #[test]
    fn filters_become_partitions() {
        for (text, partitions, is_wider) in [
            ("a/b", &["a/b"][..], false),
            ("a/#", &["a", "a/*"], false),
            ("/#", &["/*"], false),
            ("#", &["*"], false),
            ("a/+/c", &["a/*/c"], true),
            ("+/#", &["*", "*/*"], true),
        ] {
            let filter = filter(text).unwrap();
            assert_eq!(filter.partitions, partitions, "{text}");
            assert_eq!(filter.is_wider, is_wider, "{text}");
            assert_eq!(filter.is_pattern(), text != "a/b");
        }
    }

    #[test]
    fn what_dds_cannot_say_is_refused() {
        for topic in ["", "a/*", "a?", "[a]", "a\\b", "a/+", "#", "a\0b"] {
            assert!(partition(topic).is_err(), "{topic:?}");
        }
        for text in [
            "", "a/*", "a?", "#/a", "a/#/b", "a+/b", "a#", "[x]/#", "a\\b",
        ] {
            assert!(filter(text).is_err(), "{text:?}");
        }
        assert!(partition(&"x".repeat(255)).is_ok());
        assert!(partition(&"x".repeat(256)).is_err());
        let shared = Subscription::matching("a").of_group("g");
        assert!(Filter::new(&shared).unwrap_err().what.contains("share"));
    }

    proptest! {
        /// The partitions let through what the filter does, and nothing else unless they are wider.
        #[test]
        fn partitions_match_what_the_filter_does(
            text in "([ab]{0,2}|\\+)(/([ab]|\\+)){0,3}(/#)?|#",
            topic in "[ab]{1,2}(/[ab]{0,2}){0,4}|(/[ab]{0,2}){1,4}",
        ) {
            prop_assume!(!text.is_empty());
            let filter = filter(&text).unwrap();
            let through = filter.partitions.iter().any(|p| fnmatch(p, &topic));
            let wanted = text.matches_topic(&topic);
            prop_assert!(through || !wanted, "{filter:?} {topic}");
            prop_assert!(filter.is_wider || through == wanted, "{filter:?} {topic}");
        }

        #[test]
        fn filters_that_match_the_same_topic_overlap(
            a in "([ab]|\\+)(/([ab]|\\+)){0,2}(/#)?|#", b in "([ab]|\\+)(/([ab]|\\+)){0,2}(/#)?|#",
            topic in "[ab](/[ab]){0,3}",
        ) {
            let overlap = filter(&a).unwrap().overlaps(&b);
            prop_assert!(overlap || !(a.matches_topic(&topic) && b.matches_topic(&topic)));
            prop_assert_eq!(filter(&b).unwrap().overlaps(&a), overlap);
        }

        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let _ = (filter(&text), partition(&text));
        }
    }
}
