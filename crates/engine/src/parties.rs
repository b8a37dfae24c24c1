//! Deliveries to each party over the measurement: how late its messages came, course and distribution, in bounded memory.

use pubgauge_driver::Nanos;
use serde::{Deserialize, Serialize};

/// Slots into which a measurement is divided: 17 to 32 of them are used. A slot is a power of two of nanoseconds
/// long, because a division costs as much as all the rest of [`PartyTimes::add`].
pub const SLOTS: usize = 32;
/// Unit of the lowest latencies, as a shift: 1,024 ns.
const UNIT_SHIFT: u32 = 10;
/// Stands for a slot in which nothing was due that has come.
const NOTHING: u32 = u32::MAX;
/// Parties of a worker of which the distribution is kept: it takes 1.6 KB of each.
pub const WITH_DISTRIBUTION: usize = 4_096;
/// Parties beyond these that are handed in for the rise of their latency, and as many for what they lack.
pub(crate) const NOTABLE: usize = 256;

/// The deliveries to one worker's members of a party. Those that a member on another worker had as well are counted by both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PartyRecording {
    /// The party, as an index into the audience's.
    pub party: u32,
    /// Its first member, as (index into the workload's flows, index into that flow's subscribers).
    pub first: (u32, u32),
    /// First deliveries of measured messages.
    pub unique: u64,
    /// Messages that have not come although something later of their stream has; 0 of a group.
    pub passed_over: u64,
    /// Slot by slot the lowest latency, from when it was due, of what was due in it and has come, ns; `None` where nothing has.
    pub lowest: Vec<Option<u64>>,
    /// Its latencies from the actual send: buckets of [`bucket_from`] in ascending order, and how many fell into each. Empty where the worker had
    /// more than [`WITH_DISTRIBUTION`] parties before it.
    pub latencies: Vec<(u32, u32)>,
}

impl PartyRecording {
    /// Adds what another worker's members of the party got.
    pub fn add(&mut self, other: &PartyRecording) {
        self.unique += other.unique;
        self.passed_over += other.passed_over;
        lower(&mut self.lowest, &other.lowest);
        for (bucket, count) in &other.latencies {
            match self.latencies.binary_search_by_key(bucket, |b| b.0) {
                Ok(at) => {
                    let known = &mut self.latencies[at].1;
                    *known = known.saturating_add(*count);
                }
                Err(at) => self.latencies.insert(at, (*bucket, *count)),
            }
        }
    }
}

/// Takes the lower one of two courses, slot by slot.
pub fn lower(course: &mut Vec<Option<u64>>, other: &[Option<u64>]) {
    if course.len() < other.len() {
        course.resize(other.len(), None);
    }
    for (own, other) in course.iter_mut().zip(other) {
        *own = match (*own, *other) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

/// The deliveries to the parties of one worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PartiesRecording {
    /// Length of a slot, ns; 0 where nothing was measured.
    pub slot: Nanos,
    /// How many parties it had.
    pub count: u64,
    /// Slot by slot the lowest latency over all of its parties, ns.
    pub lowest: Vec<Option<u64>>,
    /// Its parties, but no more than [`WITH_DISTRIBUTION`] and those beyond whose latency rose most or that lack most.
    pub of: Vec<PartyRecording>,
}

/// The latencies of a worker's parties.
#[derive(Default)]
pub struct PartyTimes {
    /// When the measurement begins, since the epoch.
    from: Nanos,
    shift: u32,
    of: Vec<Party>,
    /// By party and bucket, of the first [`WITH_DISTRIBUTION`].
    latencies: Vec<u32>,
}

struct Party {
    lowest: [u32; SLOTS],
    unique: u64,
}

impl PartyTimes {
    /// Room for so many parties in a measurement that begins at `from`, since the epoch, and lasts `length`.
    pub fn new(parties: usize, from: Nanos, length: Nanos) -> PartyTimes {
        let none = || Party {
            lowest: [NOTHING; SLOTS],
            unique: 0,
        };
        let slot = length.div_ceil(SLOTS as u64).max(1).next_power_of_two();
        PartyTimes {
            from,
            shift: slot.trailing_zeros(),
            of: (0..parties).map(|_| none()).collect(),
            latencies: vec![0; parties.min(WITH_DISTRIBUTION) * BUCKETS],
        }
    }

    /// Notes the first delivery of a message to a party (by its number on this worker) that was due at `intended`, since the
    /// epoch: its latency from then and from the actual send.
    #[inline]
    pub fn add(&mut self, party: u32, intended: Nanos, latency: Nanos, from_send: Nanos) {
        let slot = intended.saturating_sub(self.from) >> self.shift;
        let value = u32::try_from(latency >> UNIT_SHIFT).unwrap_or(NOTHING - 1);
        let Some(of) = self.of.get_mut(party as usize) else {
            return;
        };
        of.unique += 1;
        let lowest = &mut of.lowest[(slot as usize).min(SLOTS - 1)];
        *lowest = (*lowest).min(value);
        let number = party as usize * BUCKETS + bucket(from_send);
        if let Some(count) = self.latencies.get_mut(number) {
            *count = count.saturating_add(1);
        }
    }

    /// Counts the first delivery of a message to a party, whose latency is that of something else.
    pub fn count(&mut self, party: u32) {
        if let Some(of) = self.of.get_mut(party as usize) {
            of.unique += 1;
        }
    }

    /// The deliveries to the parties, of which `parties` has in their order the index into the audience's, the first member
    /// and how many messages have passed them over.
    pub fn finish(self, parties: impl Iterator<Item = (u32, (u32, u32), u64)>) -> PartiesRecording {
        let mut fastest = Vec::new();
        let known = |of: &Party| {
            let ns = |value: &u32| (*value != NOTHING).then(|| u64::from(*value) << UNIT_SHIFT);
            let mut lowest: Vec<Option<u64>> = of.lowest.iter().map(ns).collect();
            let upto = lowest.iter().rposition(Option::is_some);
            lowest.truncate(upto.map_or(0, |last| last + 1));
            lowest
        };
        let mut all = Vec::with_capacity(self.of.len().min(WITH_DISTRIBUTION));
        let mut others = Vec::new();
        let all_parties = self.of.iter().zip(parties).enumerate();
        for (number, (of, (party, first, passed_over))) in all_parties {
            let lowest = known(of);
            lower(&mut fastest, &lowest);
            let latencies = self.latencies.get(number * BUCKETS..(number + 1) * BUCKETS);
            let counted = (0..).zip(latencies.unwrap_or_default());
            let recording = PartyRecording {
                party,
                first,
                unique: of.unique,
                passed_over,
                latencies: (counted.filter(|(_, count)| **count > 0))
                    .map(|(bucket, count)| (bucket, *count))
                    .collect(),
                lowest,
            };
            if number < WITH_DISTRIBUTION {
                all.push(recording);
            } else {
                others.push(recording);
            }
        }
        others.sort_by_key(|of| std::cmp::Reverse(of.passed_over));
        let rest = others.split_off(others.len().min(NOTABLE));
        all.append(&mut others);
        let mut rest: Vec<(u64, PartyRecording)> =
            rest.into_iter().map(|of| (rise(&of.lowest), of)).collect();
        rest.sort_by_key(|(rise, _)| std::cmp::Reverse(*rise));
        all.extend(rest.into_iter().take(NOTABLE).map(|(_, of)| of));
        PartiesRecording {
            slot: if self.of.is_empty() {
                0
            } else {
                1 << self.shift
            },
            count: self.of.len() as u64,
            lowest: fastest,
            of: all,
        }
    }
}

/// By how much a course rose from its first third to its last, lowest against lowest, ns.
fn rise(course: &[Option<u64>]) -> u64 {
    let third = course.len() / 3;
    let lowest = |part: &[Option<u64>]| part.iter().flatten().copied().min();
    let ends = (
        lowest(&course[..third]),
        lowest(&course[course.len() - third..]),
    );
    match ends {
        (Some(first), Some(last)) => last.saturating_sub(first),
        _ => 0,
    }
}

/// Width of the narrowest buckets of latencies, as a shift: 4,096 ns.
const FINEST_SHIFT: u32 = 12;
/// Buckets in each doubling, as a shift: each is up to 1/16 wide.
const STEPS_SHIFT: u32 = 4;
/// They end at 36 minutes; the last one has all that is longer.
pub(crate) const BUCKETS: usize = 416;

/// The bucket of a latency in ns.
#[inline]
fn bucket(latency: Nanos) -> usize {
    let value = latency >> FINEST_SHIFT;
    let exponent = u64::BITS - 1 - (value | 1).leading_zeros();
    let bucket = match exponent.checked_sub(STEPS_SHIFT) {
        None => value,
        Some(shift) => (u64::from(shift) << STEPS_SHIFT) + (value >> shift),
    };
    (bucket as usize).min(BUCKETS - 1)
}

/// The smallest latency of a bucket, ns.
pub fn bucket_from(bucket: u32) -> Nanos {
    let steps = 1 << STEPS_SHIFT;
    let value = match bucket.checked_sub(steps) {
        None => u64::from(bucket),
        Some(above) => u64::from(above % steps + steps) << (above / steps),
    };
    value << FINEST_SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_a_sixteenth_wide_and_know_where_they_begin() {
        let mut before = None;
        for bucket_number in 0..BUCKETS as u32 {
            let from = bucket_from(bucket_number);
            assert_eq!(bucket(from), bucket_number as usize);
            if let Some(before) = before {
                assert!(from > before && bucket(from - 1) + 1 == bucket(from));
                assert!(from - before <= (before / 16).max(1 << FINEST_SHIFT));
            }
            before = Some(from);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn each_party_has_a_course_of_its_own() {
        let second = 1_000_000_000;
        let mut times = PartyTimes::new(2, 7, 10 * second);
        for n in 0..1_000_u64 {
            let due = 7 + n * second / 100;
            times.add(0, due, 1_024 + n % 5, 1_024);
            times.add(1, due, n * 1_024, n);
        }
        let recording = times.finish([(3, (0, 3), 0), (8, (0, 8), 2)].into_iter());
        assert_eq!(recording.slot, 1 << 29);
        let [steady, behind] = &recording.of[..] else {
            panic!("two parties: {recording:?}")
        };
        assert_eq!((steady.party, behind.party), (3, 8));
        assert_eq!((steady.unique, behind.passed_over), (1_000, 2));
        assert_eq!(steady.lowest, vec![Some(1_024); 19]);
        assert!(behind.lowest.is_sorted() && behind.lowest[18] > Some(950 * 1_024));
        assert_eq!(recording.lowest[1..], steady.lowest[1..]);
        let counted: u32 = behind.latencies.iter().map(|(_, count)| count).sum();
        assert_eq!(counted, 1_000);
        let mut both = steady.clone();
        both.add(behind);
        assert_eq!(both.unique, 2_000);
        assert_eq!(both.lowest, recording.lowest);
        assert!(both.latencies.is_sorted());
    }

    #[test]
    fn of_a_hundred_thousand_parties_the_notable_ones_are_handed_in() {
        let length = 32 << 20;
        let mut times = PartyTimes::new(100_000, 0, length);
        for slot in 0..32 {
            times.add(77_777, slot << 20, slot << 20, 0);
        }
        let parties = (0..100_000).map(|party| (party, (0, party), u64::from(party == 88_888)));
        let recording = times.finish(parties);
        assert!(recording.of.len() <= WITH_DISTRIBUTION + 2 * NOTABLE);
        for notable in [77_777, 88_888] {
            assert!(recording.of.iter().any(|of| of.party == notable));
        }
    }
}
