//! Groups whose members are on several workers.
//!
//! Each worker counts what its own members got as if the group had no others, and hands in which messages these were
//! ([`Got`]). The conductor unites them (`conductor/uniting.rs`): a message that members on two workers got is repeated,
//! and one that none of them got is lost or under way. Between hosts and in the conductor's memory a first delivery takes
//! one byte where a member gets at least every 64th message of a stream, and five at most (4/3 of that in base64 between
//! processes); each member, stream and cut of the series in which something came takes some 100 bytes more; and each
//! message a bit where one before it is missing. Groups of flows with a window are with one worker:
//! a message is under way until any member has it, and only that worker would know which were given up.

use std::sync::Arc;

use pubgauge_driver::Kind;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use crate::assignment::{Assignment, Brief};
use crate::ledger::Account;

/// Sequence numbers from here on are not believed: the conductor keeps a bit for each one below.
pub const MOST_MESSAGES: u32 = 1 << 30;

/// Bytes that a worker keeps before it hands them in.
pub(crate) const MOST_KEPT: usize = 1 << 20;

/// The groups, as indices into the audience's parties, that have members on several workers.
pub fn on_several(brief: &Brief, assignments: &[Assignment]) -> Arc<[u32]> {
    let mut worker_of = vec![0; brief.workload.devices.len()];
    for assignment in assignments {
        for device in &assignment.devices {
            worker_of[*device as usize] = assignment.worker;
        }
    }
    let worker = |member: &(u32, u32)| worker_of[brief.device_of(*member) as usize];
    let parties = (0..).zip(&brief.audience.parties);
    let several = parties.filter(|(_, party)| {
        let first = party.members.first().map(worker);
        party
            .members
            .iter()
            .any(|member| Some(worker(member)) != first)
    });
    several.map(|(number, _)| number).collect()
}

/// The properties that first deliveries share that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryClass {
    /// The group, as an index into the audience's parties.
    pub party: u32,
    /// Index into the party's members.
    pub member: u32,
    pub stream: u32,
    /// Measured messages, else those of the warm-up.
    pub measured: bool,
    /// Totals that the worker had taken before: index of the first one that contains these deliveries.
    pub cut: u32,
    /// Totals at bounds of windows that were taken before: index of the first one that contains these deliveries.
    pub bound: u32,
    /// The part of the measurement in which the messages were due ([`crate::parts`]).
    pub part: u32,
    /// The burst that the messages belong to, by its number in the measurement.
    pub burst: Option<u32>,
}

impl DeliveryClass {
    /// The member's account.
    pub(crate) fn account(&self) -> Account {
        Account {
            party: self.party,
            stream: self.stream,
            kind: if self.measured {
                Kind::Measured
            } else {
                Kind::WarmUp
            },
        }
    }
}

/// First deliveries to one member of a group, in the order in which they came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Got {
    pub place: DeliveryClass,
    /// Sequence numbers: how far each is from the one before (the first: from 0), as LEB128 of the zigzag code.
    #[serde(with = "text")]
    sequences: Vec<u8>,
}

impl Got {
    /// The sequence numbers of `sequences`, to deliver at `place`.
    pub fn new(place: DeliveryClass, sequences: impl IntoIterator<Item = u32>) -> Got {
        let mut got = Got {
            place,
            sequences: Vec::new(),
        };
        let mut last = 0;
        for sequence in sequences {
            got.push(&mut last, sequence);
        }
        got
    }

    fn push(&mut self, last: &mut u32, sequence: u32) {
        let step = i64::from(sequence) - i64::from(*last);
        let mut code = (step << 1 ^ step >> 63) as u64;
        while code >= 0x80 {
            self.sequences.push(code as u8 | 0x80);
            code >>= 7;
        }
        self.sequences.push(code as u8);
        *last = sequence;
    }

    /// The sequence numbers, up to the first code that is not one.
    pub fn sequences(&self) -> impl Iterator<Item = u32> + '_ {
        let (mut at, mut last) = (0, 0i64);
        std::iter::from_fn(move || {
            let mut code = 0u64;
            for digit in 0..5 {
                let byte = *self.sequences.get(at)?;
                at += 1;
                code |= u64::from(byte & 0x7f) << (7 * digit);
                if byte < 0x80 {
                    last += (code >> 1) as i64 ^ -((code & 1) as i64);
                    return u32::try_from(last).ok();
                }
            }
            None
        })
    }

    /// Whether all bytes are sequence numbers that are believed.
    pub fn is_sound(&self) -> bool {
        let ends = self.sequences.iter().filter(|byte| **byte < 0x80).count();
        let complete = self.sequences.last().is_none_or(|byte| *byte < 0x80);
        let believed = self
            .sequences()
            .take_while(|sequence| *sequence < MOST_MESSAGES);
        complete && believed.count() == ends
    }
}

/// Bytes in base64.
mod text {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map_err(de::Error::custom)
    }
}

/// The deliveries to a worker's members of groups on several workers, until they are handed in.
#[derive(Default)]
pub struct Gathered {
    /// The groups.
    parties: FxHashSet<u32>,
    pieces: Vec<Got>,
    /// Of each member and stream, the piece that is being written, and its last sequence number.
    open: FxHashMap<(u32, u32, u32, bool), (usize, u32)>,
    bytes: usize,
}

impl Gathered {
    /// Of these groups.
    pub fn for_groups(parties: &[u32]) -> Gathered {
        Gathered {
            parties: parties.iter().copied().collect(),
            ..Gathered::default()
        }
    }

    /// Whether a group has members on other workers.
    #[inline]
    pub fn has(&self, party: u32) -> bool {
        !self.parties.is_empty() && self.parties.contains(&party)
    }

    /// Notes a first delivery.
    pub fn add(&mut self, place: DeliveryClass, sequence: u32) {
        let key = (place.party, place.member, place.stream, place.measured);
        let next = (self.pieces.len(), 0);
        let (number, last) = self.open.entry(key).or_insert(next);
        if self
            .pieces
            .get(*number)
            .is_none_or(|got| got.place != place)
        {
            (*number, *last) = next;
            self.pieces.push(Got::new(place, []));
            self.bytes += size_of::<Got>();
        }
        let got = &mut self.pieces[*number];
        let before = got.sequences.len();
        got.push(last, sequence);
        self.bytes += got.sequences.len() - before;
    }

    /// Bytes of what it has.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes what is to be handed in: everything if `all`, else nothing unless it is much.
    pub fn take(&mut self, all: bool) -> Vec<Got> {
        if !all && self.bytes < MOST_KEPT {
            return Vec::new();
        }
        self.open.clear();
        self.bytes = 0;
        std::mem::take(&mut self.pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place(cut: u32) -> DeliveryClass {
        DeliveryClass {
            party: 1,
            member: 2,
            stream: 3,
            measured: true,
            cut,
            bound: 0,
            part: 0,
            burst: None,
        }
    }

    proptest! {
        #[test]
        fn sequences_come_back_as_they_went(
            sequences in prop::collection::vec(prop_oneof![0..MOST_MESSAGES, 0..200u32], 0..50), cuts in 1u32..5,
        ) {
            let mut gathered = Gathered::for_groups(&[1]);
            for (n, sequence) in (0..).zip(&sequences) {
                gathered.add(place(n % cuts), *sequence);
            }
            let pieces = gathered.take(true);
            prop_assert!(gathered.take(true).is_empty());
            let text = serde_json::to_string(&pieces).unwrap();
            let again: Vec<Got> = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&again, &pieces);
            prop_assert!(pieces.iter().all(Got::is_sound));
            let came: Vec<u32> = pieces.iter().flat_map(Got::sequences).collect();
            prop_assert_eq!(came, sequences);
        }

        #[test]
        fn any_bytes_are_read_or_refused(sequences in prop::collection::vec(any::<u8>(), 0..40)) {
            let got = Got { place: place(0), sequences };
            let count = got.sequences().count();
            prop_assert!(count <= got.sequences.len());
            let believed = got.sequences().all(|sequence| sequence < MOST_MESSAGES);
            prop_assert!(believed || !got.is_sound());
        }
    }

    #[test]
    fn members_in_turn_take_a_byte_a_message() {
        let every_60th = Got::new(place(0), (0..1_000).map(|n| n * 60));
        assert_eq!(every_60th.sequences.len(), 1_000);
    }

    #[test]
    fn what_is_cut_off_or_too_large_is_not_sound() {
        let of = |sequences: &[u8]| Got {
            place: place(0),
            sequences: sequences.to_vec(),
        };
        for wrong in [
            &[0x80][..],
            &[1],
            &[2, 0x80, 0x80, 0x80, 0x80, 0x80, 1],
            &[0xff, 0xff, 0xff, 0xff, 0x0f],
        ] {
            assert!(!of(wrong).is_sound(), "{wrong:?}");
        }
        assert!(of(&[2, 2, 1]).is_sound());
    }
}
