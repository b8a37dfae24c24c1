//! The ledger: which messages a party has got, exactly, at the price of one comparison while
//! everything comes in order.

use std::collections::VecDeque;

use pubgauge_driver::ClientId;
use rustc_hash::FxHashMap;

/// What a delivery was, as seen from its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The first delivery of this message, in order.
    InOrder,
    /// The first delivery of this message, after a later one of the same stream (RFC 4737:
    /// its sequence number is below one already seen).
    Reordered,
    /// The party had it already.
    Duplicate,
    /// The party is not entitled to this stream.
    Foreign,
}

/// Which sequence numbers of one stream have been seen: all below `base`, and above it those
/// with a bit in `beyond`. In order and without loss `beyond` stays empty; a lost message costs
/// one bit for each one that follows it.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    base: u64,
    beyond: VecDeque<u64>,
    unique: u64,
}

impl Seen {
    /// Notes a sequence number; false if it had been seen.
    #[inline]
    pub fn note(&mut self, sequence: u64) -> bool {
        if sequence == self.base && self.beyond.is_empty() {
            self.base += 1;
            self.unique += 1;
            return true;
        }
        self.note_beyond(sequence)
    }

    fn note_beyond(&mut self, sequence: u64) -> bool {
        let Some(offset) = sequence.checked_sub(self.base) else {
            return false;
        };
        let (word, bit) = ((offset / 64) as usize, 1u64 << (offset % 64));
        if word >= self.beyond.len() {
            self.beyond.resize(word + 1, 0);
        }
        if self.beyond[word] & bit != 0 {
            return false;
        }
        self.beyond[word] |= bit;
        self.unique += 1;
        while self.beyond.front() == Some(&u64::MAX) {
            self.beyond.pop_front();
            self.base += 64;
        }
        // Back to the cheap path once the last gap of a short run is closed.
        if let [only] = self.beyond.make_contiguous()
            && (*only & only.wrapping_add(1)) == 0
        {
            self.base += u64::from(only.trailing_ones());
            self.beyond.clear();
        }
        true
    }

    /// Distinct sequence numbers seen.
    pub fn unique(&self) -> u64 {
        self.unique
    }
}

/// Everything one worker's subscribers have got of measured messages.
#[derive(Default)]
pub struct Ledger {
    index: FxHashMap<u64, u32>,
    entries: Vec<Entry>,
    highest: FxHashMap<u64, u64>,
    last_key: u64,
    last_entry: u32,
}

struct Entry {
    seen: Seen,
    /// Next sequence number if nothing is overtaken; for groups kept per member instead.
    next: u64,
}

impl Ledger {
    /// Notes a delivery of message `sequence` of `stream` to `party` through `member` (`None`
    /// unless the party is a group: order is promised to a member, not to a group). `entitled`
    /// is asked once, at the first message of a stream.
    #[inline]
    pub fn note(
        &mut self,
        party: u32,
        member: Option<ClientId>,
        stream: u32,
        sequence: u32,
        entitled: impl FnOnce() -> bool,
    ) -> Arrival {
        let key = u64::from(party) << 32 | u64::from(stream);
        if key != self.last_key || self.entries.is_empty() {
            self.last_entry = match self.index.get(&key) {
                Some(entry) => *entry,
                None if entitled() => {
                    let next = self.entries.len() as u32;
                    self.index.insert(key, next);
                    self.entries.push(Entry {
                        seen: Seen::default(),
                        next: 0,
                    });
                    next
                }
                None => return Arrival::Foreign,
            };
            self.last_key = key;
        }
        let entry = &mut self.entries[self.last_entry as usize];
        let sequence = u64::from(sequence);
        if !entry.seen.note(sequence) {
            return Arrival::Duplicate;
        }
        let next = match member {
            None => &mut entry.next,
            Some(client) => self
                .highest
                .entry(u64::from(client.0) << 32 | u64::from(stream))
                .or_insert(0),
        };
        if sequence < *next {
            return Arrival::Reordered;
        }
        *next = sequence + 1;
        Arrival::InOrder
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        /// Against the plainest possible book-keeping.
        #[test]
        fn agrees_with_a_set(sequences in prop::collection::vec((0u32..3, 0u32..300), 0..600)) {
            let mut ledger = Ledger::default();
            let mut sets: Vec<HashSet<u32>> = vec![HashSet::new(); 3];
            let mut highest = [None::<u32>; 3];
            for (stream, sequence) in sequences {
                let s = stream as usize;
                let expected = if !sets[s].insert(sequence) {
                    Arrival::Duplicate
                } else if highest[s].is_some_and(|h| sequence < h) {
                    Arrival::Reordered
                } else {
                    Arrival::InOrder
                };
                highest[s] = highest[s].max(Some(sequence));
                prop_assert_eq!(ledger.note(0, None, stream, sequence, || true), expected);
            }
            let unique: u64 = ledger.entries.iter().map(|e| e.seen.unique()).sum();
            prop_assert_eq!(unique, sets.iter().map(|s| s.len() as u64).sum::<u64>());
        }
    }

    #[test]
    fn order_is_per_member_of_a_group() {
        let mut ledger = Ledger::default();
        let (a, b) = (Some(ClientId(0)), Some(ClientId(1)));
        assert_eq!(ledger.note(7, a, 1, 1, || true), Arrival::InOrder);
        assert_eq!(ledger.note(7, b, 1, 0, || true), Arrival::InOrder);
        assert_eq!(ledger.note(7, b, 1, 1, || true), Arrival::Duplicate);
        assert_eq!(ledger.note(7, a, 1, 3, || true), Arrival::InOrder);
        assert_eq!(ledger.note(7, a, 1, 2, || true), Arrival::Reordered);
    }

    #[test]
    fn a_stream_without_entitlement_is_foreign() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.note(0, None, 1, 0, || false), Arrival::Foreign);
        assert_eq!(ledger.note(0, None, 1, 0, || true), Arrival::InOrder);
    }

    #[test]
    fn a_gap_closed_returns_to_the_cheap_path() {
        let mut seen = Seen::default();
        for s in [0, 2, 3, 1, 4] {
            assert!(seen.note(s));
        }
        assert!(seen.beyond.is_empty());
        assert_eq!((seen.base, seen.unique()), (5, 5));
    }
}
