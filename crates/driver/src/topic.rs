//! Topics and filters of the seam, which are those of MQTT (5.0, section 4.7): levels separated by `/`,
//! `+` for one level, `#` for all the rest.

/// Whether a filter matches a topic.
pub trait TopicMatch {
    /// Whether `topic` matches this filter: `+` stands for one level, `#` at the end for any
    /// number of levels, none included. A wildcard in the first level does not match topics that
    /// begin with `$` (MQTT 5, 4.7.2).
    fn matches_topic(&self, topic: &str) -> bool;

    /// Whether every topic that `filter` matches is matched by this filter too.
    fn covers(&self, filter: &str) -> bool;

    /// Whether the filter has wildcards.
    fn is_wild(&self) -> bool;

    /// The beginning of every matching topic: all whole levels before the first wildcard, with the `/`
    /// after them; the filter itself if it has no wildcard.
    fn literal_prefix(&self) -> &str;
}

impl TopicMatch for str {
    fn matches_topic(&self, topic: &str) -> bool {
        if topic.starts_with('$') && self.starts_with(['+', '#']) {
            return false;
        }
        let mut levels = topic.split('/');
        for wanted in self.split('/') {
            match (wanted, levels.next()) {
                ("#", _) => return true,
                ("+", Some(_)) => {}
                (wanted, Some(level)) if wanted == level => {}
                _ => return false,
            }
        }
        levels.next().is_none()
    }

    fn covers(&self, filter: &str) -> bool {
        if filter.starts_with('$') && self.starts_with(['+', '#']) {
            return false;
        }
        let mut levels = filter.split('/');
        for wanted in self.split('/') {
            match (wanted, levels.next()) {
                ("#", _) => return true,
                (_, Some("#")) => return false,
                ("+", Some(_)) => {}
                (wanted, Some(level)) if wanted == level => {}
                _ => return false,
            }
        }
        levels.next().is_none()
    }

    fn is_wild(&self) -> bool {
        self.split('/').any(|level| level == "+" || level == "#")
    }

    fn literal_prefix(&self) -> &str {
        let mut end = 0;
        for level in self.split('/') {
            if level == "+" || level == "#" {
                return &self[..end];
            }
            end += level.len() + 1;
        }
        self
    }
}

/// The error in a filter, if there is one.
pub fn filter_fault(filter: &str) -> Option<&'static str> {
    if filter.is_empty() {
        return Some("it is empty");
    }
    if filter.len() > 65_535 {
        return Some("it is longer than 65,535 bytes");
    }
    if filter.contains('\0') {
        return Some("it contains a null character");
    }
    let mut levels = filter.split('/').peekable();
    while let Some(level) = levels.next() {
        if level.len() > 1 && level.contains(['+', '#']) {
            return Some("`+` and `#` must fill a whole level, as in `site/+/power` or `site/#`");
        }
        if level == "#" && levels.peek().is_some() {
            return Some("`#` may only stand at the end");
        }
    }
    None
}

/// The error in a topic to publish to, if there is one.
pub fn topic_fault(topic: &str) -> Option<&'static str> {
    if topic.contains(['+', '#']) {
        return Some("`+` and `#` are for filters; a message goes to one topic");
    }
    if topic.starts_with('$') {
        return Some("topics that begin with `$` belong to the system");
    }
    filter_fault(topic)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn covering() {
        for (wide, narrow) in [
            ("#", "a/b"),
            ("#", "+/b/#"),
            ("a/#", "a"),
            ("a/+", "a/b"),
            ("+/+", "+/b"),
            ("a/#", "a/+/c"),
            ("a/b", "a/b"),
        ] {
            assert!(wide.covers(narrow), "{wide} {narrow}");
            assert_eq!(narrow.covers(wide), wide == narrow, "{narrow} {wide}");
        }
        for (one, other) in [
            ("a/+", "+/b"),
            ("#", "$SYS/x"),
            ("a/+/c", "a/#"),
            ("a", "b"),
        ] {
            assert!(!one.covers(other), "{one} {other}");
        }
    }

    #[test]
    fn the_examples_of_section_4_7_hold() {
        for (filter, topic, expected) in [
            ("sport/tennis/player1/#", "sport/tennis/player1", true),
            (
                "sport/tennis/player1/#",
                "sport/tennis/player1/ranking",
                true,
            ),
            (
                "sport/tennis/player1/#",
                "sport/tennis/player1/score/wimbledon",
                true,
            ),
            ("sport/#", "sport", true),
            ("sport/#", "sports", false),
            ("#", "a/b/c", true),
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
            ("ACCOUNTS", "Accounts", false),
            ("a/b", "a/b/c", false),
            ("a/b/c", "a/b", false),
            ("a/+/#", "a/b", true),
            ("a/+/#", "a", false),
        ] {
            assert_eq!(filter.matches_topic(topic), expected, "{filter} {topic}");
        }
    }

    /// Section 4.7 to the letter. `#` is its parent and any number of levels below (4.7.1.2), so that
    /// the filter is one of those with so many `+` in its place; `+` is any one level (4.7.1.3).
    fn specified(filter: &str, topic: &str) -> bool {
        let (filter, topic): (Vec<&str>, Vec<&str>) =
            (filter.split('/').collect(), topic.split('/').collect());
        if topic[0].starts_with('$') && ["+", "#"].contains(&filter[0]) {
            return false;
        }
        let without_hash = filter.strip_suffix(&["#"]);
        let longest = without_hash.map_or(0, |_| topic.len());
        (0..=longest).any(|below| {
            let mut levels = without_hash.unwrap_or(&filter).to_vec();
            levels.extend(vec!["+"; below]);
            levels.len() == topic.len()
                && levels.iter().zip(&topic).all(|(f, t)| *f == "+" || f == t)
        })
    }

    proptest! {
        #[test]
        fn matching_is_as_specified(
            filter in "(\\$?[ab]?|\\+)(/([ab]?|\\+)){0,3}(/#)?|#", topic in "\\$?[ab]?(/[ab]?){0,4}",
        ) {
            prop_assert_eq!(filter.matches_topic(&topic), specified(&filter, &topic));
        }

        #[test]
        fn a_filter_matches_what_one_that_it_covers_does(
            wide in "(\\$?[ab]?|\\+)(/([ab]?|\\+)){0,2}(/#)?|#", narrow in "(\\$?[ab]?|\\+)(/([ab]?|\\+)){0,2}(/#)?|#",
            topic in "\\$?[ab]?(/[ab]?){0,3}",
        ) {
            let through = wide.covers(&narrow) && narrow.matches_topic(&topic);
            prop_assert!(!through || wide.matches_topic(&topic));
        }
    }

    #[test]
    fn prefixes() {
        assert_eq!("a/b/+/c".literal_prefix(), "a/b/");
        assert_eq!("#".literal_prefix(), "");
        assert_eq!("a/b".literal_prefix(), "a/b");
        assert_eq!("a/#".literal_prefix(), "a/");
    }

    #[test]
    fn faults() {
        for filter in ["", "a/b+", "a/#/c", "a#", "a\0b"] {
            assert!(filter_fault(filter).is_some(), "{filter}");
        }
        for filter in ["a", "+", "#", "a/+/b/#", "/"] {
            assert!(filter_fault(filter).is_none(), "{filter}");
        }
        for topic in ["a/+", "#", "$SYS/a", ""] {
            assert!(topic_fault(topic).is_some(), "{topic}");
        }
    }
}
