//! Which numbers of messages were found.

use std::ops::RangeInclusive;

/// Messages of one collector: which numbers were found.
#[derive(Default)]
pub struct Numbers {
    /// Ranges that were found, as they came.
    pub found: Vec<RangeInclusive<u64>>,
}

impl Numbers {
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
