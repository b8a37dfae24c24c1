//! Which numbers of messages were found.

use std::ops::RangeInclusive;

/// So many ranges are shown.
const SHOWN: usize = 10;

/// Messages of one collector: which numbers were found.
#[derive(Debug, Default)]
pub struct Numbers {
    /// Ranges that were found, as they came.
    pub found: Vec<RangeInclusive<u64>>,
}

impl Numbers {
    /// The ranges of these numbers.
    pub fn of(numbers: impl IntoIterator<Item = u64>) -> Vec<RangeInclusive<u64>> {
        let mut all = Numbers::default();
        numbers.into_iter().for_each(|number| all.add(number));
        all.merged().0
    }

    /// Adds the next one.
    pub fn add(&mut self, seq: u64) {
        match self.found.last_mut() {
            Some(last) if *last.end() + 1 == seq => *last = *last.start()..=seq,
            _ => self.found.push(seq..=seq),
        }
    }

    /// Takes out what was added from this number on.
    pub fn forget(&mut self, first: u64) {
        while self
            .found
            .last()
            .is_some_and(|range| *range.start() >= first)
        {
            self.found.pop();
        }
        if let Some(last) = self.found.last_mut().filter(|last| *last.end() >= first) {
            *last = *last.start()..=first - 1;
        }
    }

    /// Sorted, without what lies in several; and how many numbers were found more than once.
    pub fn merged(mut self) -> (Vec<RangeInclusive<u64>>, u64) {
        self.found.sort_by_key(|range| *range.start());
        let mut merged: Vec<RangeInclusive<u64>> = Vec::new();
        let mut twice = 0;
        for range in self.found {
            match merged.last_mut() {
                Some(last) if *range.start() <= *last.end() + 1 => {
                    let common = last.end().min(range.end()).checked_sub(*range.start());
                    twice += common.map_or(0, |common| common + 1);
                    let end = *last.end().max(range.end());
                    *last = *last.start()..=end;
                }
                _ => merged.push(range),
            }
        }
        (merged, twice)
    }
}

/// Ranges in words: "3 to 5, 9".
pub fn shown(ranges: &[RangeInclusive<u64>]) -> String {
    let one = |range: &RangeInclusive<u64>| match (range.start(), range.end()) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first} to {last}"),
    };
    let first: Vec<String> = ranges.iter().take(SHOWN).map(one).collect();
    let text = first.join(", ");
    match ranges.len().saturating_sub(SHOWN) {
        0 => text,
        more => format!("{text} and {more} more ranges"),
    }
}
