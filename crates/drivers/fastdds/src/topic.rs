//! Limits of the library on partitions.

use pubgauge_dds::topic::Filter;
use pubgauge_driver::DriverError;

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

/// Refuses a filter whose partitions match more than it does: the library does not tell a reader in which partition
/// a sample was written.
///
/// # Errors
/// It has `+`.
pub(crate) fn check_pattern(filter: &Filter) -> Result<(), DriverError> {
    if !filter.is_wider {
        return Ok(());
    }
    Err(DriverError::with_hint(
        format!(
            "the filter {:?} has the wildcard `+`: filters become DDS partitions, whose `*` also \
             stands for several levels",
            filter.text
        ),
        "use exact topics, or `#` at the end",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubgauge_driver::Subscription;

    #[test]
    fn wildcards_for_one_level_are_refused() {
        let check =
            |text: &str| check_pattern(&Filter::new(&Subscription::matching(text)).unwrap());
        for text in ["a/b", "a/#", "#"] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
        for text in ["+", "a/+/c", "a/+/#"] {
            assert!(check(text).unwrap_err().what.contains("`+`"), "{text}");
        }
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
}
