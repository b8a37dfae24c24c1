//! Topics in the words of protocols that separate levels with dots: `a/b` is `a.b` there. Characters
//! that would mean something else within a level are written `%XX`.

use std::fmt::Write;

/// Appends a level, with characters that are `special` written `%XX` (ASCII alone).
pub fn escape(level: &str, special: impl Fn(char) -> bool, words: &mut String) {
    for c in level.chars() {
        if c.is_ascii() && special(c) {
            // To write to a string cannot fail.
            let _ = write!(words, "%{:02X}", u32::from(c));
        } else {
            words.push(c);
        }
    }
}

/// Writes into `topic` the topic that these words stand for. Words that [`escape`] does not write (a
/// foreign publisher's) are taken as they are; words that are not UTF-8 give an empty topic.
#[inline]
pub fn restore(words: &[u8], topic: &mut String) {
    topic.clear();
    let Ok(mut rest) = std::str::from_utf8(words) else {
        return;
    };
    while let Some(at) = rest.find(['.', '%']) {
        topic.push_str(&rest[..at]);
        let (c, len) = match rest.as_bytes()[at..] {
            [b'.', ..] => ('/', 1),
            [_, high, low, ..] => hex(high, low).map_or(('%', 1), |c| (c, 3)),
            _ => ('%', 1),
        };
        topic.push(c);
        rest = &rest[at + len..];
    }
    topic.push_str(rest);
}

fn hex(high: u8, low: u8) -> Option<char> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = digit(high)? << 4 | digit(low)?;
    char::from_u32(byte).filter(char::is_ascii)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn foreign_words_are_given_as_far_as_they_go() {
        for (words, expected) in [
            (&b"a.%zz.%"[..], "a/%zz/%"),
            (b"%2", "%2"),
            (b"%2E%2", ".%2"),
            (b"%c3%a4", "%c3%a4"),
            (b"\xff", ""),
        ] {
            let mut topic = "old".to_owned();
            restore(words, &mut topic);
            assert_eq!(topic, expected);
        }
    }

    proptest! {
        #[test]
        fn the_way_back_restores_the_topic(topic in "[a-zäß/.*#%+ 0-9]{0,60}") {
            let mut words = String::new();
            for (n, level) in topic.split('/').enumerate() {
                words.push_str(if n > 0 { "." } else { "" });
                escape(level, |c| ".%*#".contains(c), &mut words);
            }
            let mut back = String::new();
            restore(words.as_bytes(), &mut back);
            prop_assert_eq!(back, topic);
        }

        #[test]
        fn no_words_panic(words in prop::collection::vec(any::<u8>(), 0..60)) {
            restore(&words, &mut String::new());
        }
    }
}
