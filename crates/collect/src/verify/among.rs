//! Files whose numbers lie among those of other files, and of which the content was not read.
//!
//! The files of one segment have all of its numbers. So those that were not read have as many messages as the ones that were read
//! leave over. The same is true of all segments together that a merged file lies in.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::numbers::Numbers;
use crate::manifest::FileEntry;

/// Messages of files that were not read, by the first and the last number of the segment.
#[derive(Debug, Default)]
pub struct Unread(BTreeMap<(u64, u64), u64>);

impl Unread {
    /// Takes in a file that is not read, or whose faults are told.
    pub fn add(&mut self, file: &FileEntry, numbers: &mut Numbers) {
        match file.among {
            None => numbers.found.push(file.first..=file.last),
            Some(segment) => {
                let messages = self.0.entry(segment).or_default();
                *messages = messages.saturating_add(file.messages);
            }
        }
    }

    /// The ranges of their numbers, where `known` are all other ones, sorted; and what is wrong with them, in words.
    pub fn settle(self, known: &[RangeInclusive<u64>]) -> (Vec<RangeInclusive<u64>>, Vec<String>) {
        let mut wrong = Vec::new();
        let segments = self.overlapping_as_one();
        for &(first, last, messages) in &segments {
            let within = |range: &RangeInclusive<u64>| {
                let (from, to) = (*range.start().max(&first), *range.end().min(&last));
                let more = to.checked_sub(from);
                more.map_or(0, |more| more.saturating_add(1))
            };
            let others = known.iter().map(within).fold(0, u64::saturating_add);
            let Some(all) = last.checked_sub(first).map(|more| more.saturating_add(1)) else {
                wrong.push(format!(
                    "messages {first} to {last} are listed, and are none"
                ));
                continue;
            };
            let has = others.saturating_add(messages);
            if has < all {
                wrong.push(format!(
                    "of messages {first} to {last}, {} are missing",
                    all - has
                ));
            } else if has > all {
                let twice = has - all;
                wrong.push(format!(
                    "{twice} of messages {first} to {last} are in several files"
                ));
            }
        }
        let ranges = segments
            .into_iter()
            .filter(|(first, last, _)| first <= last);
        let ranges = ranges.map(|(first, last, _)| first..=last);
        (ranges.collect(), wrong)
    }

    /// First and last number and messages of segments. A merged file lies in several; these are as one then.
    fn overlapping_as_one(self) -> Vec<(u64, u64, u64)> {
        let mut all: Vec<(u64, u64, u64)> = Vec::new();
        for ((first, last), messages) in self.0 {
            match all.last_mut() {
                Some((begin, end, sum)) if *begin <= *end && first <= last && first <= *end => {
                    *end = last.max(*end);
                    *sum = messages.saturating_add(*sum);
                }
                _ => all.push((first, last, messages)),
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_not_read_have_what_the_others_leave_over() {
        let of = |messages, among| FileEntry {
            path: String::new(),
            bytes: 0,
            crc32: 0,
            first: 11,
            last: 19,
            messages,
            among,
        };
        for (unread, known, told) in [
            (vec![4, 3], vec![12..=14], None),
            (
                vec![4, 2],
                vec![12..=14],
                Some("of messages 11 to 20, 1 are missing"),
            ),
            (
                vec![4, 3],
                vec![5..=10, 12..=15],
                Some("1 of messages 11 to 20 are in several files"),
            ),
            (vec![9], vec![1..=11, 21..=30], None),
        ] {
            let (mut all, mut numbers) = (Unread::default(), Numbers::default());
            for messages in unread {
                all.add(&of(messages, Some((11, 20))), &mut numbers);
            }
            let (ranges, wrong) = all.settle(&known);
            assert_eq!(
                (ranges, wrong),
                (vec![11..=20], Vec::from_iter(told.map(String::from)))
            );
            assert!(numbers.found.is_empty());
        }
        // A merged file, and one that was not, of two segments; and one of the next.
        for (messages, told) in [(7, None), (6, Some("of messages 11 to 30, 1 are missing"))] {
            let (mut all, mut numbers) = (Unread::default(), Numbers::default());
            all.add(&of(messages, Some((11, 30))), &mut numbers);
            all.add(&of(3, Some((11, 20))), &mut numbers);
            all.add(&of(2, Some((21, 30))), &mut numbers);
            all.add(&of(5, Some((31, 35))), &mut numbers);
            let (ranges, wrong) = all.settle(&[12..=14, 21..=25]);
            assert_eq!(ranges, [11..=30, 31..=35]);
            assert_eq!(wrong, Vec::from_iter(told.map(String::from)));
        }
        // A stranger may list any numbers.
        for among in [(u64::MAX, 0), (0, u64::MAX)] {
            let (mut all, mut numbers) = (Unread::default(), Numbers::default());
            all.add(&of(u64::MAX, Some(among)), &mut numbers);
            all.add(&of(u64::MAX, Some(among)), &mut numbers);
            let (ranges, wrong) = all.settle(&[0..=u64::MAX]);
            assert_eq!(wrong.len() + ranges.len(), 1, "{wrong:?}");
        }
        let (mut all, mut numbers) = (Unread::default(), Numbers::default());
        all.add(&of(9, None), &mut numbers);
        assert_eq!(
            (numbers.found, all.settle(&[])),
            (vec![11..=19], (vec![], vec![]))
        );
    }
}
