//! Numbers that publishers put into their payloads: those that are missing, and those that are there more than once.
//!
//! What a collector has acknowledged it has; what a broker has acknowledged to a publisher and lost nobody but the publisher
//! can tell, by numbers without gaps.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use ciborium::Value;
use serde::Serialize;

use super::Counted;
use super::numbers::{Numbers, describe};
use crate::Error;
use crate::columns::{MAX_BYTES, Source, either_tree, find};

/// Larger numbers are none.
const END: u64 = 1 << 63;

/// So many counts with gaps are told, those that lack most, and so many ranges of each.
const TOLD: (usize, usize) = (1000, 100);

/// Scope of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
enum By {
    Topic,
    Pointer(Vec<String>),
}

/// Gathers the numbers of messages.
#[derive(Debug)]
pub struct Sequences {
    number: Vec<String>,
    by: Vec<By>,
    counts: HashMap<String, Count>,
    /// Messages without a number, or without something that it counts by.
    unnumbered: u64,
}

/// The numbers of one publisher.
#[derive(Debug, Default)]
struct Count {
    numbers: Numbers,
    /// Those that were found before.
    copies: u64,
    /// So many ranges are merged next.
    merge_at: usize,
}

/// Findings on the numbers in payloads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SequencesFound {
    /// Counts: as many as there are values of what numbers count by.
    pub counts: u64,
    /// Numbers, each counted once.
    pub numbers: u64,
    /// Numbers that are missing between the smallest and the largest of their count. What a count lacks in front of the
    /// first and behind the last that is there is not seen.
    pub missing: u64,
    /// Messages whose number was there before: sent again, or by a publisher that has begun anew.
    pub copies: u64,
    /// Messages without a number, or without something that it counts by.
    pub unnumbered: u64,
    /// Counts that something is missing in; those that lack most, if there are many.
    pub gaps: Vec<Gap>,
}

/// Numbers that are missing in one count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// Scope of its numbers: the topic, or values.
    pub of: String,
    pub missing: u64,
    /// Ranges of missing numbers, first and last, from the smallest on; not all of them if there are many.
    pub ranges: Vec<(u64, u64)>,
}

impl Gap {
    /// Its ranges in words.
    pub fn ranges_in_words(&self) -> String {
        let each = self.ranges.iter().map(|(first, last)| *first..=*last);
        describe(&each.collect::<Vec<_>>())
    }
}

impl Sequences {
    /// `number` leads to a number in each payload; what it counts `by` is `topic`, or a pointer to a value.
    ///
    /// # Errors
    /// If one of them is no JSON Pointer.
    pub fn new(number: &str, by: &[String]) -> Result<Sequences, Error> {
        let by: Result<Vec<By>, Error> = by
            .iter()
            .map(|text| match text.as_str() {
                "topic" => Ok(By::Topic),
                pointer => steps(pointer).map(By::Pointer),
            })
            .collect();
        Ok(Sequences {
            number: steps(number)?,
            by: by?,
            counts: HashMap::new(),
            unnumbered: 0,
        })
    }

    /// Takes a message in.
    pub fn add(&mut self, message: &Counted<'_>) {
        match self.read(message) {
            Some((of, number)) => self.counts.entry(of).or_default().add(number),
            None => self.unnumbered += 1,
        }
    }

    fn read(&self, message: &Counted<'_>) -> Option<(String, u64)> {
        let is_short = message.payload.len() <= MAX_BYTES;
        let tree = is_short.then(|| either_tree(message.payload)).flatten()?;
        let number = match find(&tree, &self.number).ok()?? {
            Value::Integer(number) => u64::try_from(i128::from(*number)).ok()?,
            _ => return None,
        };
        let by = self.by.iter().map(|by| match by {
            By::Topic => Some(String::from_utf8_lossy(message.topic).into_owned()),
            By::Pointer(steps) => in_words(find(&tree, steps).ok()??),
        });
        let by = by.collect::<Option<Vec<_>>>()?;
        (number < END).then(|| (by.join(" "), number))
    }

    /// The findings.
    pub fn findings(self) -> SequencesFound {
        let mut found = SequencesFound {
            counts: self.counts.len() as u64,
            unnumbered: self.unnumbered,
            ..SequencesFound::default()
        };
        for (of, mut count) in self.counts {
            let ranges = count.merged();
            found.copies += count.copies;
            let length = |range: &RangeInclusive<u64>| range.end() - range.start() + 1;
            found.numbers += ranges.iter().map(length).sum::<u64>();
            let between = |two: &[RangeInclusive<u64>]| two[0].end() + 1..=two[1].start() - 1;
            let gaps = ranges.windows(2).map(between);
            let missing = gaps.clone().map(|gap| length(&gap)).sum::<u64>();
            if missing > 0 {
                found.missing += missing;
                found.gaps.push(Gap {
                    of,
                    missing,
                    ranges: gaps.take(TOLD.1).map(RangeInclusive::into_inner).collect(),
                });
            }
        }
        let order = |one: &Gap| (std::cmp::Reverse(one.missing), one.of.clone());
        found.gaps.sort_by_cached_key(order);
        found.gaps.truncate(TOLD.0);
        found
    }
}

impl Count {
    fn add(&mut self, number: u64) {
        self.numbers.add(number);
        if self.numbers.found.len() > self.merge_at {
            let found = self.merged();
            self.merge_at = 2 * found.len() + 64;
            self.numbers.found = found;
        }
    }

    /// Takes the ranges, each of which is there once.
    fn merged(&mut self) -> Vec<RangeInclusive<u64>> {
        let (found, copies) = std::mem::take(&mut self.numbers).merged();
        self.copies += copies;
        found
    }
}

fn steps(pointer: &str) -> Result<Vec<String>, Error> {
    match Source::pointer(pointer) {
        Some(Source::Pointer(steps)) => Ok(steps),
        _ => Err(Error::input(
            format!("`{pointer}` is no JSON Pointer (RFC 6901)"),
            "expected names of objects and numbers of elements, each behind a `/`, such as /seq",
        )),
    }
}

/// A value that something may count by.
fn in_words(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.clone()),
        Value::Integer(number) => Some(i128::from(*number).to_string()),
        Value::Bool(is) => Some(is.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message<'a>(topic: &'a str, payload: &'a [u8]) -> Counted<'a> {
        Counted {
            seq: 1,
            topic: topic.as_bytes(),
            qos: 1,
            dup: false,
            payload,
        }
    }

    fn of(number: &str, by: &[&str], messages: &[(&str, &str)]) -> SequencesFound {
        let by: Vec<String> = by.iter().map(|one| (*one).to_owned()).collect();
        let mut sequences = Sequences::new(number, &by).unwrap();
        for (topic, payload) in messages {
            sequences.add(&message(topic, payload.as_bytes()));
        }
        sequences.findings()
    }

    #[test]
    fn gaps_are_told_by_topic_with_their_ranges() {
        let found = of(
            "/n",
            &["topic"],
            &[
                ("a", "{\"n\":5}"),
                ("b", "{\"n\":0}"),
                // Out of order, and again.
                ("a", "{\"n\":9}"),
                ("a", "{\"n\":6}"),
                ("a", "{\"n\":6}"),
                ("b", "{\"n\":1}"),
                ("b", "{\"m\":2}"),
                ("b", "{\"n\":-1}"),
                ("b", "{\"n\":1.5}"),
                ("b", "{\"n\":9223372036854775808}"),
                ("b", "x"),
            ],
        );
        let gap = Gap {
            of: "a".into(),
            missing: 2,
            ranges: vec![(7, 8)],
        };
        assert_eq!(gap.ranges_in_words(), "7 to 8");
        let expected = SequencesFound {
            counts: 2,
            numbers: 5,
            missing: 2,
            copies: 1,
            unnumbered: 5,
            gaps: vec![gap],
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_device_counts_over_its_topics_and_anew_after_its_start() {
        let all = [
            ("a", "{\"id\":\"x\",\"boot\":1,\"n\":1}"),
            ("b", "{\"id\":\"x\",\"boot\":1,\"n\":2}"),
            ("a", "{\"id\":\"x\",\"boot\":2,\"n\":1}"),
            ("a", "{\"id\":\"x\",\"boot\":2,\"n\":3}"),
            ("a", "{\"id\":null,\"boot\":2,\"n\":2}"),
        ];
        let found = of("/n", &["/id", "/boot"], &all);
        assert_eq!((found.counts, found.missing, found.unnumbered), (2, 1, 1));
        assert_eq!(
            (&*found.gaps[0].of, &found.gaps[0].ranges[..]),
            ("x 2", &[(2, 2)][..])
        );
        let found = of("/n", &["topic"], &all);
        assert_eq!((found.counts, found.missing, found.copies), (2, 0, 1));
    }

    #[test]
    fn payloads_may_be_cbor_and_pointers_must_be_some() {
        let mut payload = Vec::new();
        ciborium::into_writer(&std::collections::BTreeMap::from([("n", 7)]), &mut payload).unwrap();
        let mut sequences = Sequences::new("/n", &["topic".into()]).unwrap();
        sequences.add(&message("a", &payload));
        assert_eq!(sequences.findings().numbers, 1);
        assert!(Sequences::new("n", &[]).is_err());
        assert!(Sequences::new("/n", &["n".into()]).is_err());
    }

    proptest! {
        /// Whatever comes in whatever order: each number that is there counts once, and each between them that is not.
        #[test]
        fn every_number_counts_once(numbers in prop::collection::vec(0u64..3000, 1..2000)) {
            let mut count = Count::default();
            for number in &numbers {
                count.add(*number);
            }
            let distinct: std::collections::BTreeSet<u64> = numbers.iter().copied().collect();
            let merged = count.merged();
            let all: Vec<u64> = merged.iter().cloned().flatten().collect();
            prop_assert_eq!(&all, &distinct.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(count.copies, (numbers.len() - distinct.len()) as u64);
        }
    }
}
