//! Topics and filters in NATS's words ("Subject-Based Messaging"): `/` becomes `.`, a whole level
//! `+` becomes `*`, and a last `#` becomes `>`, which, unlike MQTT's, does not match the level
//! above. Characters of a level that have a meaning in NATS are written `%XX`, and restored on the
//! way back ([`pubgauge_net::dotted_topics`]).

use pubgauge_driver::{DriverError, Subscription};
use pubgauge_net::dotted_topics::escape;

/// Longest subject, in bytes: it has to fit the server's max_control_line (4096) with the rest of
/// its line.
const LONGEST: usize = 3500;

/// Longest name of a queue group, for the same reason.
const LONGEST_GROUP: usize = 500;

/// The words of a SUB: the subject, and the queue group or nothing.
pub(crate) fn of_subscription(
    subscription: &Subscription,
) -> Result<(String, String), DriverError> {
    let subject = to_subject(&subscription.filter, true)?;
    let mut group = String::new();
    let name = subscription.group.as_deref().unwrap_or_default();
    escape(name, is_special, &mut group);
    if subscription.group.is_some() && !(1..=LONGEST_GROUP).contains(&group.len()) {
        return Err(DriverError::new(format!(
            "the name of a queue group has 1 to {LONGEST_GROUP} bytes; white space and . * > % take three each"
        )));
    }
    Ok((subject, group))
}

/// The subject of a topic, or of a filter (`wild`).
pub(crate) fn to_subject(topic: &str, wild: bool) -> Result<String, DriverError> {
    let bad = |what: &str| {
        DriverError::with_hint(
            format!("{topic:?} cannot be a NATS subject: {what}"),
            "levels are separated by /, and none is empty; in a filter + stands for one whole level, # for all the rest and only at the end",
        )
    };
    let mut subject = String::with_capacity(topic.len());
    let mut levels = topic.split('/').peekable();
    while let Some(level) = levels.next() {
        match level {
            "" => return Err(bad("a level is empty")),
            "+" if wild => subject.push('*'),
            "#" if wild && levels.peek().is_none() => subject.push('>'),
            _ if level.contains(['+', '#']) => {
                return Err(bad("+ or # stands where it means nothing"));
            }
            _ => escape(level, is_special, &mut subject),
        }
        if levels.peek().is_some() {
            subject.push('.');
        }
    }
    match subject.len() {
        ..=LONGEST => Ok(subject),
        len => Err(bad(&format!(
            "it becomes one of {len} bytes, above {LONGEST}"
        ))),
    }
}

/// Characters with a meaning in a subject.
fn is_special(c: char) -> bool {
    ".*>%".contains(c) || c.is_ascii_whitespace() || c.is_ascii_control()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn levels_become_tokens() {
        assert_eq!(to_subject("a/b.c/d e", false).unwrap(), "a.b%2Ec.d%20e");
        assert_eq!(to_subject("a/+/#", true).unwrap(), "a.*.>");
        for bad in ["", "/a", "a//b", "a/#/b", "a/b+", &"x/".repeat(2000)] {
            let error = to_subject(bad, true).unwrap_err();
            assert!(error.hint.is_some(), "{bad}");
        }
        assert!(to_subject("a/+", false).is_err());
    }

    #[test]
    fn groups_are_one_word() {
        let of = |group: &str| of_subscription(&Subscription::matching("a/+").of_group(group));
        assert_eq!(of("g 1").unwrap(), ("a.*".to_owned(), "g%201".to_owned()));
        assert!(of("").is_err());
    }

    proptest! {
        #[test]
        fn the_way_back_restores_the_topic(topic in "[a-zäß/.*>%+# 0-9\t]{1,60}") {
            if let Ok(subject) = to_subject(&topic, false) {
                prop_assert!(!subject.contains([' ', '\t', '*', '>']), "{}", subject);
                let mut back = String::new();
                pubgauge_net::dotted_topics::restore(subject.as_bytes(), &mut back);
                prop_assert_eq!(back, topic);
            }
        }
    }
}
