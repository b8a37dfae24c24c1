//! Questions and answers as bytes: 80 of them, numbers big-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 0..4 | `pgck` |
//! | 4 | version, 1 |
//! | 5 | 1: question, 2: answer |
//! | 6..8 | 0 |
//! | 8..16 | session: chosen at random by each client |
//! | 16..24 | number of the question within its session, from 1 |
//! | 24..48 | sent, received, answered, ns; the latter two 0 in a question |
//! | 48..80 | HMAC-SHA256 of all before |

use ring::hmac;

use super::key::Key;

pub(super) const LEN: usize = 80;
const MAC: usize = 48;
const START: [u8; 4] = *b"pgck";
const VERSION: u8 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Question,
    Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub kind: Kind,
    pub session: u64,
    pub number: u64,
    pub sent: u64,
    pub received: u64,
    pub answered: u64,
}

/// Why a packet is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Not a packet of these exchanges, or of another version.
    Garbage,
    /// Not made with the run's key.
    Forged,
}

impl Packet {
    pub fn encode(&self, key: &Key) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[..4].copy_from_slice(&START);
        bytes[4] = VERSION;
        bytes[5] = match self.kind {
            Kind::Question => 1,
            Kind::Answer => 2,
        };
        let numbers = [
            self.session,
            self.number,
            self.sent,
            self.received,
            self.answered,
        ];
        for (place, number) in bytes[8..MAC].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        let tag = hmac::sign(&key.hmac, &bytes[..MAC]);
        bytes[MAC..].copy_from_slice(tag.as_ref());
        bytes
    }

    pub fn decode(bytes: &[u8], key: &Key) -> Result<Packet, Refused> {
        let bytes: &[u8; LEN] = bytes.try_into().map_err(|_| Refused::Garbage)?;
        let (start, head) = bytes[..8].split_at(START.len());
        let kind = match (start == START.as_slice(), head) {
            (true, [VERSION, 1, 0, 0]) => Kind::Question,
            (true, [VERSION, 2, 0, 0]) => Kind::Answer,
            _ => return Err(Refused::Garbage),
        };
        hmac::verify(&key.hmac, &bytes[..MAC], &bytes[MAC..]).map_err(|_| Refused::Forged)?;
        let number = |at: usize| {
            let digits = bytes[at..at + 8].iter();
            digits.fold(0, |number, byte| number << 8 | u64::from(*byte))
        };
        Ok(Packet {
            kind,
            session: number(8),
            number: number(16),
            sent: number(24),
            received: number(32),
            answered: number(40),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(numbers: [u64; 5], is_answer: bool) -> Packet {
        let [session, number, sent, received, answered] = numbers;
        let kind = if is_answer {
            Kind::Answer
        } else {
            Kind::Question
        };
        Packet {
            kind,
            session,
            number,
            sent,
            received,
            answered,
        }
    }

    proptest! {
        #[test]
        fn packets_come_back(numbers: [u64; 5], is_answer: bool) {
            let key = Key::from_bytes([7; 32]);
            let packet = packet(numbers, is_answer);
            prop_assert_eq!(Packet::decode(&packet.encode(&key), &key), Ok(packet));
        }

        /// Nobody changes a byte of a packet, or makes one with another key.
        #[test]
        fn changed_packets_are_refused(numbers: [u64; 5], at in 0..LEN, by in 1..=255u8) {
            let key = Key::from_bytes([7; 32]);
            let mut bytes = packet(numbers, true).encode(&key);
            prop_assert_eq!(Packet::decode(&bytes, &Key::from_bytes([8; 32])), Err(Refused::Forged));
            bytes[at] ^= by;
            let refused = Packet::decode(&bytes, &key).unwrap_err();
            // What kind of packet it is can be changed from one to the other; all else is garbage.
            let is_garbage = at < 8 && !(at == 5 && bytes[5] == 1);
            prop_assert_eq!(refused, if is_garbage { Refused::Garbage } else { Refused::Forged });
        }

        #[test]
        fn garbage_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(Packet::decode(&bytes, &Key::from_bytes([7; 32])), Err(Refused::Garbage));
        }
    }
}
