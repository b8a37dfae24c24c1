//! The ledger: which messages a party has got, exactly, at the price of one comparison while
//! everything comes in order.

use std::collections::VecDeque;

use pubgauge_driver::{ClientId, Kind};
use rustc_hash::FxHashMap;

/// The kind of a delivery, as seen from its stream.
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

/// The ledger's answer to a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// Its kind.
    pub arrival: Arrival,
    /// Messages before it that have not come and that it is the first to pass over. Always 0 for
    /// groups, whose members overtake each other.
    pub skipped: u32,
    /// It had been passed over itself.
    pub filled: bool,
    /// The account, for [`Ledger::entry`]; meaningless if foreign.
    pub entry: u32,
}

/// Which sequence numbers of one stream have been seen: all below `base`, and above it those
/// with a bit in `beyond`. In order and without loss `beyond` is empty; a lost message costs one
/// bit for each one that follows it.
#[derive(Clone, Debug, Default)]
pub struct SequenceSet {
    base: u32,
    unique: u32,
    // In a box: most streams never need it, and there may be millions.
    #[allow(clippy::box_collection)]
    beyond: Option<Box<VecDeque<u64>>>,
}

impl SequenceSet {
    /// Notes a sequence number; false if it had been seen.
    #[inline]
    pub fn note(&mut self, sequence: u32) -> bool {
        // All below `base` were seen: as many as were seen at all means none beyond.
        if sequence == self.base && self.unique == self.base {
            self.base += 1;
            self.unique += 1;
            return true;
        }
        self.note_beyond(sequence)
    }

    fn note_beyond(&mut self, sequence: u32) -> bool {
        let Some(offset) = sequence.checked_sub(self.base) else {
            return false;
        };
        let (word, bit) = ((offset / 64) as usize, 1u64 << (offset % 64));
        let beyond = self.beyond.get_or_insert_default();
        if word >= beyond.len() {
            beyond.resize(word + 1, 0);
        }
        if beyond[word] & bit != 0 {
            return false;
        }
        beyond[word] |= bit;
        self.unique += 1;
        while beyond.front() == Some(&u64::MAX) {
            beyond.pop_front();
            self.base += 64;
        }
        // Back to the fast path once the last gap of a short run is closed.
        if beyond.len() <= 1 {
            let only = beyond.front().copied().unwrap_or(0);
            if only & only.wrapping_add(1) == 0 {
                self.base += only.trailing_ones();
                // Kept, because the next gap would need it again.
                beyond.clear();
            }
        }
        true
    }

    /// Bytes for numbers beyond the first that was not seen.
    pub fn bytes(&self) -> usize {
        let words = self.beyond.as_ref().map_or(0, |beyond| beyond.len());
        words * size_of::<u64>()
    }

    /// Bytes for numbers beyond the first that was not seen, once this number is noted.
    pub fn bytes_with(&self, sequence: u32) -> usize {
        let words = sequence
            .checked_sub(self.base)
            .map_or(0, |offset| offset as usize / 64 + 1);
        self.bytes().max(words * size_of::<u64>())
    }

    /// Distinct sequence numbers seen.
    pub fn unique(&self) -> u32 {
        self.unique
    }

    /// Sequence numbers below `end` that were not seen.
    pub fn missing_below(&self, end: u32) -> u32 {
        let Some(offset) = end.checked_sub(self.base) else {
            return 0;
        };
        let whole = (offset / 64) as usize;
        let words = self.beyond.iter().flat_map(|beyond| beyond.iter());
        let seen: u32 = words
            .enumerate()
            .take(whole + 1)
            .map(|(n, word)| match n.cmp(&whole) {
                std::cmp::Ordering::Less => word.count_ones(),
                _ => (word & ((1u64 << (offset % 64)) - 1)).count_ones(),
            })
            .sum();
        offset - seen
    }
}

/// Everything one worker's subscribers have got.
#[derive(Default)]
pub struct Ledger {
    index: FxHashMap<u64, u32>,
    entries: Vec<PartyAccount>,
    /// For members of groups: one past the highest sequence number that each has got.
    highest: FxHashMap<u64, u32>,
    last_key: u64,
    last_entry: u32,
}

/// The account of one party with the messages of one kind of one stream.
#[derive(Debug, Default)]
pub struct PartyAccount {
    seen: SequenceSet,
    /// One past the highest sequence number seen; 0 for groups.
    next: u32,
    /// All sequence numbers below it count as passed over if they have not come; for groups, whose
    /// members overtake each other, they only count as given up for the flow's window.
    pub closed: u32,
    /// Messages that no longer count as under way, for flows with a window.
    pub passed: u32,
    /// How often the party's subscriber had been away when the last delivery came.
    pub absences: u32,
}

impl PartyAccount {
    /// Messages below it that have not come count as passed over.
    fn position(&self) -> u32 {
        self.next.max(self.closed)
    }
}

/// An account's key: a party, and the messages of one kind of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Account {
    pub party: u32,
    pub stream: u32,
    /// Warm-up or measured.
    pub kind: Kind,
}

impl Account {
    #[inline]
    fn key(self) -> u64 {
        u64::from(self.party) << 32 | (self.kind as u64) << 24 | u64::from(self.stream)
    }

    fn new(key: u64) -> Self {
        Account {
            party: (key >> 32) as u32,
            stream: key as u32 & 0xff_ffff,
            kind: if key >> 24 & 3 == Kind::Measured as u64 {
                Kind::Measured
            } else {
                Kind::WarmUp
            },
        }
    }
}

impl Ledger {
    /// Notes a delivery of message `sequence` to `account` through `member` (`None` unless the
    /// party is a group: order is promised to a member, not to a group). `entitled` is asked once,
    /// at the first message of an account.
    #[inline]
    pub fn note(
        &mut self,
        account: Account,
        member: Option<ClientId>,
        sequence: u32,
        entitled: impl FnOnce() -> bool,
    ) -> Noted {
        let mut noted = Noted {
            arrival: Arrival::Foreign,
            skipped: 0,
            filled: false,
            entry: 0,
        };
        let Some(number) = self.open(account, entitled) else {
            return noted;
        };
        noted.entry = number;
        let entry = &mut self.entries[number as usize];
        if !entry.seen.note(sequence) {
            noted.arrival = Arrival::Duplicate;
            return noted;
        }
        let after = sequence.wrapping_add(1);
        noted.arrival = Arrival::InOrder;
        if let Some(client) = member {
            let key = Account {
                party: client.0,
                ..account
            };
            let next = self.highest.entry(key.key()).or_insert(0);
            if sequence < *next {
                noted.arrival = Arrival::Reordered;
            } else {
                *next = after;
            }
            return noted;
        }
        match sequence.checked_sub(entry.position()) {
            Some(skipped) => noted.skipped = skipped,
            None => noted.filled = true,
        }
        if sequence < entry.next {
            noted.arrival = Arrival::Reordered;
        } else {
            entry.next = after;
        }
        noted
    }

    /// The number of an account, which is opened if it is new and the party entitled.
    #[inline]
    pub fn open(&mut self, account: Account, entitled: impl FnOnce() -> bool) -> Option<u32> {
        let key = account.key();
        if key != self.last_key || self.entries.is_empty() {
            self.last_entry = match self.index.get(&key) {
                Some(entry) => *entry,
                None if entitled() => {
                    let next = self.entries.len() as u32;
                    self.index.insert(key, next);
                    self.entries.push(PartyAccount::default());
                    next
                }
                None => return None,
            };
            self.last_key = key;
        }
        Some(self.last_entry)
    }

    /// An account by its number.
    #[inline]
    pub fn entry(&mut self, number: u32) -> &mut PartyAccount {
        &mut self.entries[number as usize]
    }

    /// Notes that those of the first `count` messages of `account` that have not come are passed
    /// over. Returns by how many messages the position moved. Not for groups.
    pub fn close(&mut self, account: Account, count: u32, entitled: impl FnOnce() -> bool) -> u32 {
        let Some(number) = self.open(account, entitled) else {
            return 0;
        };
        let entry = &mut self.entries[number as usize];
        let before = entry.position();
        entry.closed = entry.closed.max(count);
        entry.position() - before
    }

    /// Every account with its distinct messages.
    pub fn unique(&self) -> impl Iterator<Item = (Account, u32)> + '_ {
        let entry = |(key, number): (&u64, &u32)| {
            let entry = &self.entries[*number as usize];
            (Account::new(*key), entry.seen.unique())
        };
        self.index.iter().map(entry)
    }

    /// Every account but those of groups, with the messages that have not come although something later has, or its
    /// stream was closed.
    pub fn passed_over(&self) -> impl Iterator<Item = (Account, u32)> + '_ {
        let entry = |(key, number): (&u64, &u32)| {
            let entry = &self.entries[*number as usize];
            (
                Account::new(*key),
                entry.seen.missing_below(entry.position()),
            )
        };
        self.index.iter().map(entry)
    }

    /// Messages of a group's account that have come to no member although something later has come
    /// to each of `members`.
    pub fn passed_over_by_all(&self, account: Account, members: &[ClientId]) -> u32 {
        let next = |client: &ClientId| {
            let key = Account {
                party: client.0,
                ..account
            };
            self.highest.get(&key.key()).copied().unwrap_or(0)
        };
        let lowest = members.iter().map(next).min().unwrap_or(0);
        self.index.get(&account.key()).map_or(0, |number| {
            self.entries[*number as usize].seen.missing_below(lowest)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn account(party: u32, stream: u32) -> Account {
        Account {
            party,
            stream,
            kind: Kind::Measured,
        }
    }

    proptest! {
        /// Against the plainest possible book-keeping.
        #[test]
        fn agrees_with_a_set(
            sequences in prop::collection::vec((0u32..3, 0u32..300), 0..600), end in 0u32..320,
        ) {
            let mut ledger = Ledger::default();
            let mut sets: Vec<HashSet<u32>> = vec![HashSet::new(); 3];
            let mut highest = [None::<u32>; 3];
            let mut passed_over = [0i64; 3];
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
                let noted = ledger.note(account(0, stream), None, sequence, || true);
                prop_assert_eq!(noted.arrival, expected);
                passed_over[s] += i64::from(noted.skipped) - i64::from(noted.filled);
                let below = highest[s].map_or(0, |h| i64::from(h) + 1);
                prop_assert_eq!(passed_over[s], below - sets[s].len() as i64);
            }
            for (account, unique) in ledger.unique() {
                prop_assert_eq!(unique as usize, sets[account.stream as usize].len());
            }
            for entry in &ledger.entries {
                let all: u32 = entry.seen.missing_below(300) + entry.seen.unique();
                prop_assert_eq!(all, 300);
            }
            for (s, set) in sets.iter().enumerate() {
                let Some(number) = ledger.index.get(&account(0, s as u32).key()) else { continue };
                let missing = (0..end).filter(|n| !set.contains(n)).count() as u32;
                prop_assert_eq!(ledger.entries[*number as usize].seen.missing_below(end), missing);
            }
        }
    }

    #[test]
    fn order_is_per_member_of_a_group() {
        let mut ledger = Ledger::default();
        let (a, b) = (Some(ClientId(0)), Some(ClientId(1)));
        let mut note = |member, sequence| {
            let noted = ledger.note(account(7, 1), member, sequence, || true);
            (noted.arrival, noted.skipped)
        };
        assert_eq!(note(a, 1), (Arrival::InOrder, 0));
        assert_eq!(note(b, 0), (Arrival::InOrder, 0));
        assert_eq!(note(b, 1), (Arrival::Duplicate, 0));
        assert_eq!(note(a, 4), (Arrival::InOrder, 0));
        assert_eq!(note(a, 2), (Arrival::Reordered, 0));
        let members = [ClientId(0), ClientId(1)];
        // Message 3 may still be on its way to b, who has seen nothing after it.
        assert_eq!(ledger.passed_over_by_all(account(7, 1), &members), 0);
        ledger.note(account(7, 1), b, 6, || true);
        assert_eq!(ledger.passed_over_by_all(account(7, 1), &members), 1);
    }

    #[test]
    fn a_stream_without_entitlement_is_foreign() {
        let mut ledger = Ledger::default();
        let mut note = |entitled| ledger.note(account(0, 1), None, 0, || entitled).arrival;
        assert_eq!(note(false), Arrival::Foreign);
        assert_eq!(note(true), Arrival::InOrder);
    }

    #[test]
    fn kinds_of_messages_have_accounts_of_their_own() {
        let mut ledger = Ledger::default();
        for kind in [Kind::WarmUp, Kind::Measured] {
            let account = Account {
                kind,
                ..account(3, 5)
            };
            assert_eq!(
                ledger.note(account, None, 0, || true).arrival,
                Arrival::InOrder
            );
            assert!(ledger.unique().any(|(known, _)| known == account));
        }
    }

    #[test]
    fn what_is_closed_is_passed_over_until_it_comes() {
        let mut ledger = Ledger::default();
        ledger.note(account(0, 0), None, 0, || true);
        assert_eq!(ledger.close(account(0, 0), 4, || true), 3);
        assert_eq!(ledger.close(account(0, 0), 4, || true), 0);
        let late = ledger.note(account(0, 0), None, 2, || true);
        assert_eq!((late.arrival, late.filled), (Arrival::InOrder, true));
        let last = ledger.note(account(0, 0), None, 5, || true);
        assert_eq!((last.arrival, last.skipped), (Arrival::InOrder, 1));
    }

    #[test]
    fn a_gap_closed_returns_to_the_cheap_path() {
        let mut seen = SequenceSet::default();
        for s in [0, 2, 3, 1, 4] {
            assert!(seen.note(s));
        }
        assert!(seen.beyond.as_ref().is_some_and(|b| b.is_empty()));
        assert_eq!((seen.base, seen.unique()), (5, 5));
    }
}
