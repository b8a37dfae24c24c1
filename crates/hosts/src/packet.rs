//! Questions and answers as bytes: 72 of them, numbers big-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 0..4 | `pgck` |
//! | 4 | version, 2 |
//! | 5 | 1: question, 2: answer |
//! | 6..8 | 0 |
//! | 8..16 | number of the question, from 1 |
//! | 16..40 | sent, received, answered, ns; the latter two 0 in a question |
//! | 40..72 | HMAC-SHA256 of all before |

use std::fmt;

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

pub(crate) const LEN: usize = 72;
const MAC: usize = 40;
const START: [u8; 4] = *b"pgck";
const VERSION: u8 = 2;

/// The key of a host's echo: those who have it may ask.
#[derive(Clone)]
pub struct EchoKey {
    bytes: [u8; EchoKey::LEN],
    hmac: hmac::Key,
}

impl EchoKey {
    /// Length of a key, bytes.
    pub const LEN: usize = 32;

    /// A new key.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn random() -> std::io::Result<EchoKey> {
        let mut bytes = [0; EchoKey::LEN];
        SystemRandom::new()
            .fill(&mut bytes)
            .map_err(|_| std::io::Error::other("the system has no random numbers (getrandom)"))?;
        Ok(EchoKey::from_bytes(bytes))
    }

    /// The key that [`bytes`](Self::bytes) gave elsewhere.
    pub fn from_bytes(bytes: [u8; EchoKey::LEN]) -> EchoKey {
        let hmac = hmac::Key::new(hmac::HMAC_SHA256, &bytes);
        EchoKey { bytes, hmac }
    }

    /// The key itself, for a companion's standard input only.
    pub fn bytes(&self) -> &[u8; EchoKey::LEN] {
        &self.bytes
    }
}

impl fmt::Debug for EchoKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(key)")
    }
}

/// A question for a clock, or its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoPacket {
    /// Whether it is an answer.
    pub is_answer: bool,
    /// The number of the question, from 1.
    pub number: u64,
    /// When the question was sent, by the asker's clock, ns.
    pub sent: u64,
    /// When it was received, by the clock asked for, ns; 0 in a question.
    pub received: u64,
    /// When the answer was sent, by that clock, ns; 0 in a question.
    pub answered: u64,
}

impl EchoPacket {
    /// Its bytes, authenticated with `key`.
    pub fn encode(&self, key: &EchoKey) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[..4].copy_from_slice(&START);
        bytes[4] = VERSION;
        bytes[5] = 1 + u8::from(self.is_answer);
        let numbers = [self.number, self.sent, self.received, self.answered];
        for (place, number) in bytes[8..MAC].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        let tag = hmac::sign(&key.hmac, &bytes[..MAC]);
        bytes[MAC..].copy_from_slice(tag.as_ref());
        bytes
    }

    /// The packet that these bytes are; `None` for bytes that are no packet, or were not made with `key`.
    pub fn decode(bytes: &[u8], key: &EchoKey) -> Option<EchoPacket> {
        let bytes: &[u8; LEN] = bytes.try_into().ok()?;
        let is_answer = match (bytes[..4] == START, &bytes[4..8]) {
            (true, [VERSION, 1, 0, 0]) => false,
            (true, [VERSION, 2, 0, 0]) => true,
            _ => return None,
        };
        hmac::verify(&key.hmac, &bytes[..MAC], &bytes[MAC..]).ok()?;
        let mut numbers = bytes[8..MAC].chunks_exact(8).map(|digits| {
            digits
                .iter()
                .fold(0, |number, byte| number << 8 | u64::from(*byte))
        });
        let mut next = || numbers.next().unwrap_or_default();
        Some(EchoPacket {
            is_answer,
            number: next(),
            sent: next(),
            received: next(),
            answered: next(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packets_come_back(numbers: [u64; 4], is_answer: bool) {
            let key = EchoKey::from_bytes([7; 32]);
            let [number, sent, received, answered] = numbers;
            let packet = EchoPacket { is_answer, number, sent, received, answered };
            prop_assert_eq!(EchoPacket::decode(&packet.encode(&key), &key), Some(packet));
        }

        /// Nobody changes a byte of a packet, or makes one with another key.
        #[test]
        fn changed_packets_are_refused(number: u64, at in 0..LEN, by in 1..=255u8) {
            let key = EchoKey::from_bytes([7; 32]);
            let packet = EchoPacket { is_answer: true, number, sent: 1, received: 2, answered: 3 };
            let mut bytes = packet.encode(&key);
            prop_assert_eq!(EchoPacket::decode(&bytes, &EchoKey::from_bytes([8; 32])), None);
            bytes[at] ^= by;
            prop_assert_eq!(EchoPacket::decode(&bytes, &key), None);
        }

        #[test]
        fn garbage_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(EchoPacket::decode(&bytes, &EchoKey::from_bytes([7; 32])), None);
        }
    }
}
