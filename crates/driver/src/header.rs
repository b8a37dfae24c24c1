//! The 16-byte message header: one layout for every system.
//!
//! The 128 bits, as two little-endian words, each combined with the trial's [`Mark`] by exclusive or:
//!
//! ```text
//! word 0  bits 0..48   intended send time, ns since the trial's epoch
//!         bits 48..54  a check of all other bits, which shows that a header is of this trial and undamaged
//!         bits 54..56  kind
//!         bits 56..64  low eight bits of the stream
//! word 1  bits 0..16   high sixteen bits of the stream
//!         bits 16..32  send lag, a floating-point code (see `encode_lag`)
//!         bits 32..64  sequence
//! ```

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use serde::{Deserialize, Serialize};

use crate::clock::Nanos;

/// Length of the header in bytes; also the smallest payload.
pub const HEADER_LEN: usize = 16;

/// Largest stream number plus one.
pub const MAX_STREAMS: u32 = 1 << 24;

/// Longest trial that the header's 48-bit time can express (78 hours).
pub const MAX_TRIAL: Nanos = (1 << 48) - 1;

/// Where the check is in word 0, and its bits.
const CHECK_AT: u32 = 48;
const CHECK_BITS: u64 = 0x3f;

/// The check of a header without a set bit.
const CHECK_OF_NOTHING: u64 = 0b10_1101;

/// The check of a header, whose own bits in `w0` are left out: the bits of both words, added up in six columns without
/// carry. One damaged bit always shows, and of the 255 ways to damage one byte 252.
#[inline]
fn check(w0: u64, w1: u64) -> u64 {
    let mut sum = (w0 & !(CHECK_BITS << CHECK_AT)) ^ w1;
    sum = (sum ^ sum >> 36) & ((1 << 36) - 1);
    sum = (sum ^ sum >> 18) & ((1 << 18) - 1);
    (sum ^ sum >> 6 ^ sum >> 12 ^ CHECK_OF_NOTHING) & CHECK_BITS
}

/// Marks the messages of one trial, so that another run on the same system is recognised.
///
/// All 128 bits of a header are combined with the mark. Read with another trial's mark, a header is
/// random: it passes as one of this trial's only if its check (6 bits), its stream (24 bits, of
/// which a trial uses few) and its time (48 bits, of which a trial uses few) all fit by chance: for a
/// trial of 100 streams about once in 10^9 pairs of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark([u64; 2]);

impl Mark {
    /// A mark that no other run has, drawn from 32 random bits, as many as its [`Mark::hex_digits`] has: whoever sees a
    /// trial's topics can read its headers ([`Mark::of_word`]).
    pub fn random() -> Self {
        // The standard library seeds each `RandomState` from the operating system's random numbers.
        Mark::of_number(RandomState::new().build_hasher().finish() as u32)
    }

    const fn of_number(number: u32) -> Self {
        let Mark([low, high]) = Mark::from_seed(number as u64);
        Mark([low >> 32 << 32 | number as u64, high])
    }

    /// The mark with this word; `None` if it is no word, which is eight hexadecimal digits in lower case.
    pub fn of_word(word: &str) -> Option<Self> {
        let is_word =
            word.len() == 8 && word.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let number = u32::from_str_radix(word, 16).ok().filter(|_| is_word);
        number.map(Mark::of_number)
    }

    /// The mark that belongs to a seed; equal seeds give equal marks.
    pub const fn from_seed(seed: u64) -> Self {
        Mark([mix(seed), mix(seed ^ 0x9e37_79b9_7f4a_7c15)])
    }

    /// Eight hexadecimal digits of the mark, for names that two runs must not share.
    pub fn hex_digits(&self) -> String {
        format!("{:08x}", self.0[0] as u32)
    }
}

/// The output function of SplitMix64 (Steele, Lea and Flood, 2014).
const fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The purpose of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Counted and timed.
    Measured = 0,
    /// Sent before the measurement, to bring the system into its steady state.
    WarmUp = 1,
    /// Proves that a subscriber is receiving; never counted as workload.
    Sentinel = 2,
    /// The responder's answer to a measured message (ping-pong).
    Reply = 3,
}

/// The content of the first bytes of a payload.
///
/// A *stream* is one publisher on one topic of one flow; sequence numbers count from 0 in each
/// stream, separately for each [`Kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The purpose of the message.
    pub kind: Kind,
    /// When the message should have been sent, ns since the trial's epoch, below [`MAX_TRIAL`].
    pub intended: Nanos,
    /// How much later than intended it was handed to the system, ns. Kept to one part in 4096 up to
    /// 73 minutes, the most that a header can hold.
    pub lag: Nanos,
    /// The stream, below [`MAX_STREAMS`].
    pub stream: u32,
    /// Position within the stream, from 0.
    pub sequence: u32,
}

impl Header {
    /// Encodes the header with the trial's mark.
    #[inline]
    pub fn encode(&self, mark: Mark) -> [u8; HEADER_LEN] {
        let w0 = (self.intended & MAX_TRIAL)
            | (self.kind as u64) << 54
            | u64::from(self.stream & 0xff) << 56;
        let w1 = u64::from(self.stream >> 8 & 0xffff)
            | u64::from(encode_lag(self.lag)) << 16
            | u64::from(self.sequence) << 32;
        let w0 = w0 | check(w0, w1) << CHECK_AT;
        let mut out = [0; HEADER_LEN];
        out[..8].copy_from_slice(&(w0 ^ mark.0[0]).to_le_bytes());
        out[8..].copy_from_slice(&(w1 ^ mark.0[1]).to_le_bytes());
        out
    }

    /// Decodes the header of a payload. `None` if the payload is too short or its check does
    /// not fit with `mark`: a foreign message, or a damaged header. One foreign message in 64 passes here by chance; the
    /// caller refuses streams and times that the trial does not have.
    #[inline]
    pub fn decode(payload: &[u8], mark: Mark) -> Option<Header> {
        let (head, _) = payload.split_first_chunk::<HEADER_LEN>()?;
        let w0 = u64::from_le_bytes(head[..8].try_into().ok()?) ^ mark.0[0];
        let w1 = u64::from_le_bytes(head[8..].try_into().ok()?) ^ mark.0[1];
        if w0 >> CHECK_AT & CHECK_BITS != check(w0, w1) {
            return None;
        }
        let kind = match w0 >> 54 & 3 {
            0 => Kind::Measured,
            1 => Kind::WarmUp,
            2 => Kind::Sentinel,
            _ => Kind::Reply,
        };
        Some(Header {
            kind,
            intended: w0 & MAX_TRIAL,
            lag: decode_lag((w1 >> 16) as u16),
            stream: (w0 >> 56) as u32 | ((w1 & 0xffff) as u32) << 8,
            sequence: (w1 >> 32) as u32,
        })
    }
}

/// The check of what is no message, in the place of a message's: all of its bits are others.
fn check_of_other(w0: u64, w1: u64) -> u64 {
    check(w0, w1) ^ CHECK_BITS
}

/// Two words in place of a header, of which the first has at most 48 bits, with the trial's mark. [`Header::decode`] takes
/// them for no message.
pub(crate) fn seal([w0, w1]: [u64; 2], mark: Mark) -> [u8; HEADER_LEN] {
    let w0 = w0 | check_of_other(w0, w1) << CHECK_AT;
    let mut out = [0; HEADER_LEN];
    out[..8].copy_from_slice(&(w0 ^ mark.0[0]).to_le_bytes());
    out[8..].copy_from_slice(&(w1 ^ mark.0[1]).to_le_bytes());
    out
}

/// The inverse of [`seal`]; `None` if the check does not fit with `mark`.
pub(crate) fn unseal(head: &[u8; HEADER_LEN], mark: Mark) -> Option<[u64; 2]> {
    let [w0, w1] = [&head[..8], &head[8..]].map(|half| half.try_into().map(u64::from_le_bytes));
    let (w0, w1) = (w0.ok()? ^ mark.0[0], w1.ok()? ^ mark.0[1]);
    let sealed = w0 >> CHECK_AT & CHECK_BITS == check_of_other(w0, w1);
    sealed.then_some([w0 & !(CHECK_BITS << CHECK_AT), w1])
}

/// Packs a span into 16 bits: 11 bits of mantissa with a hidden one, 5 of exponent. Exact below
/// 4096 ns, within one part in 4096 up to 73 minutes, saturating above.
#[inline]
fn encode_lag(lag: Nanos) -> u16 {
    if lag < 2048 {
        return lag as u16;
    }
    let exponent = 63 - lag.leading_zeros() - 11; // lag >> exponent lies in 2048..4096
    if exponent + 1 > 31 {
        return u16::MAX;
    }
    ((exponent + 1) as u16) << 11 | ((lag >> exponent) as u16 & 0x7ff)
}

/// The inverse of [`encode_lag`], at the middle of the interval the code stands for.
#[inline]
fn decode_lag(code: u16) -> Nanos {
    let (exponent, mantissa) = (u32::from(code >> 11), u64::from(code & 0x7ff));
    match exponent {
        0 => mantissa,
        e => ((mantissa | 0x800) << (e - 1)) + ((1u64 << (e - 1)) >> 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds() -> impl Strategy<Value = Kind> {
        prop_oneof![
            Just(Kind::Measured),
            Just(Kind::WarmUp),
            Just(Kind::Sentinel),
            Just(Kind::Reply)
        ]
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            kind in kinds(), intended in 0..=MAX_TRIAL, stream in 0..MAX_STREAMS,
            sequence: u32, lag in 0u64..2048, seed: u64,
        ) {
            let header = Header { kind, intended, lag, stream, sequence };
            let mark = Mark::from_seed(seed);
            prop_assert_eq!(Header::decode(&header.encode(mark), mark), Some(header));
        }

        #[test]
        fn lag_is_kept_to_one_part_in_4096(lag in 0u64..4_000_000_000_000) {
            let back = decode_lag(encode_lag(lag));
            prop_assert!(back.abs_diff(lag) <= lag / 4096, "{lag} became {back}");
        }

    }

    #[test]
    fn a_word_leads_to_its_mark() {
        let mark = Mark::random();
        assert_eq!(Mark::of_word(&mark.hex_digits()), Some(mark));
        assert_eq!(
            Mark::of_word("000000ff").map(|mark| mark.hex_digits()),
            Some("000000ff".into())
        );
        for no_word in ["", "ff", "000000FF", "+00000ff", "000000fff"] {
            assert_eq!(Mark::of_word(no_word), None, "{no_word}");
        }
    }

    /// Of the headers of 100,000 other runs, as many as chance allows pass each test: the check,
    /// and then a stream below 2^20 or a time below 2^44 ns.
    #[test]
    fn another_mark_is_foreign() {
        let (mut checks, mut streams, mut times) = (0, 0, 0);
        let own = Mark::from_seed(1);
        for seed in 2..100_002 {
            let header = Header {
                kind: Kind::Measured,
                intended: 1 << 35,
                lag: 2,
                stream: 3,
                sequence: 4,
            };
            let Some(read) = Header::decode(&header.encode(Mark::from_seed(seed)), own) else {
                continue;
            };
            checks += 1;
            streams += u32::from(read.stream < 1 << 20);
            times += u32::from(read.intended < 1 << 44);
        }
        assert!((1_300..1_850).contains(&checks), "{checks} of 100000 / 64");
        assert!((60..145).contains(&streams), "{streams} of those / 16");
        assert!((60..145).contains(&times), "{times} of those / 16");
    }

    #[test]
    fn a_damaged_bit_is_seen_wherever_it_is() {
        let mark = Mark::from_seed(5);
        let header = Header {
            kind: Kind::Measured,
            intended: 123_456_789,
            lag: 70,
            stream: 300,
            sequence: 9,
        };
        let mut damaged = 0;
        for at in 0..HEADER_LEN {
            for change in 1..=255_u8 {
                let mut bytes = header.encode(mark);
                bytes[at] ^= change;
                let seen = Header::decode(&bytes, mark).is_none();
                assert!(seen || change.count_ones() > 1, "{change:#x} in byte {at}");
                damaged += u32::from(seen);
            }
        }
        assert!(damaged >= 252 * 16, "{damaged} of {}", 255 * 16);
    }

    #[test]
    fn random_marks_differ() {
        assert_ne!(Mark::random(), Mark::random());
    }

    #[test]
    fn a_short_payload_is_foreign() {
        assert_eq!(Header::decode(&[0; 15], Mark::from_seed(0)), None);
    }

    #[test]
    fn a_lag_beyond_the_range_saturates() {
        assert_eq!(encode_lag(u64::MAX), u16::MAX);
        assert!(decode_lag(u16::MAX) > 4_000_000_000_000);
    }
}
