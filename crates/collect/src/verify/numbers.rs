//! Which numbers of messages were found.

use std::ops::RangeInclusive;

/// So many ranges are not worth merging.
const MERGED: usize = 1 << 16;

/// So many ranges are shown.
const SHOWN: usize = 10;

/// Messages of one collector: which numbers were found.
#[derive(Debug, Default)]
pub struct Numbers {
    /// Ranges that were found, as they came.
    pub found: Vec<RangeInclusive<u64>>,
    /// How many numbers were found more than once among those that were merged.
    twice: u64,
    /// So many ranges are merged next.
    merge_at: usize,
}

impl FromIterator<RangeInclusive<u64>> for Numbers {
    fn from_iter<T: IntoIterator<Item = RangeInclusive<u64>>>(ranges: T) -> Numbers {
        Numbers {
            found: ranges.into_iter().collect(),
            ..Numbers::default()
        }
    }
}

impl Numbers {
    /// The ranges of these numbers.
    pub fn ranges(numbers: impl IntoIterator<Item = u64>) -> Vec<RangeInclusive<u64>> {
        let mut all = Numbers::default();
        numbers.into_iter().for_each(|number| all.add(number));
        all.merged().0
    }

    /// Adds the next one.
    pub fn add(&mut self, seq: u64) {
        match self.found.last_mut() {
            Some(last) if last.end().saturating_add(1) == seq => *last = *last.start()..=seq,
            _ => self.found.push(seq..=seq),
        }
    }

    /// Adds all of these. Ranges that touch become one from time to time, so that there are never many more than there must be.
    pub fn take(&mut self, more: Numbers) {
        self.found.extend(more.found);
        if self.found.len() > self.merge_at {
            let all = std::mem::take(self);
            (self.found, self.twice) = all.merged();
            self.merge_at = 2 * self.found.len() + MERGED;
        }
    }

    /// Sorted, without what lies in several; and how many numbers were found more than once.
    pub fn merged(mut self) -> (Vec<RangeInclusive<u64>>, u64) {
        self.found.sort_by_key(|range| *range.start());
        let mut merged: Vec<RangeInclusive<u64>> = Vec::new();
        let mut twice = self.twice;
        for range in self.found {
            match merged.last_mut() {
                Some(last) if *range.start() <= last.end().saturating_add(1) => {
                    let common = last.end().min(range.end()).checked_sub(*range.start());
                    let more = common.map_or(0, |common| common.saturating_add(1));
                    twice = twice.saturating_add(more);
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
pub fn describe(ranges: &[RangeInclusive<u64>]) -> String {
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
