//! The 16-byte message header: one layout for every system.
//!
//! The 128 bits, as two little-endian words:
//!
//! ```text
//! word 0  bits 0..48   intended send time, ns since the trial's epoch
//!         bits 48..54  low six bits of the trial's nonce
//!         bits 54..56  kind
//!         bits 56..64  low eight bits of the stream
//! word 1  bits 0..16   high sixteen bits of the stream
//!         bits 16..32  send lag, a floating-point code (see `encode_lag`)
//!         bits 32..64  sequence
//! ```

use crate::clock::Nanos;

/// Length of the header in bytes; also the smallest payload.
pub const HEADER_LEN: usize = 16;

/// Largest stream number plus one.
pub const MAX_STREAMS: u32 = 1 << 24;

/// Longest trial that the header's 48-bit time can express (78 hours).
pub const MAX_TRIAL: Nanos = (1 << 48) - 1;

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// What the first bytes of a payload say.
///
/// A *stream* is one publisher on one topic of one flow; sequence numbers count from 0 in each
/// stream, separately for each [`Kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the message is for.
    pub kind: Kind,
    /// When the message should have been sent, ns since the trial's epoch, below [`MAX_TRIAL`].
    pub intended: Nanos,
    /// How much later than intended it was handed to the system, ns. Kept to one part in 4096.
    pub lag: Nanos,
    /// The stream, below [`MAX_STREAMS`].
    pub stream: u32,
    /// Position within the stream.
    pub sequence: u32,
}

impl Header {
    /// Encodes the header with the trial's `nonce` (its low 6 bits are kept).
    #[inline]
    pub fn encode(&self, nonce: u8) -> [u8; HEADER_LEN] {
        let w0 = (self.intended & MAX_TRIAL)
            | u64::from(nonce & 0x3f) << 48
            | (self.kind as u64) << 54
            | u64::from(self.stream & 0xff) << 56;
        let w1 = u64::from(self.stream >> 8 & 0xffff)
            | u64::from(encode_lag(self.lag)) << 16
            | u64::from(self.sequence) << 32;
        let mut out = [0; HEADER_LEN];
        out[..8].copy_from_slice(&w0.to_le_bytes());
        out[8..].copy_from_slice(&w1.to_le_bytes());
        out
    }

    /// Decodes the header of a payload. `None` if the payload is too short or carries another
    /// trial's nonce: a foreign message.
    #[inline]
    pub fn decode(payload: &[u8], nonce: u8) -> Option<Header> {
        let (head, _) = payload.split_first_chunk::<HEADER_LEN>()?;
        let w0 = u64::from_le_bytes(head[..8].try_into().ok()?);
        let w1 = u64::from_le_bytes(head[8..].try_into().ok()?);
        if (w0 >> 48 & 0x3f) as u8 != nonce & 0x3f {
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
            sequence: u32, lag in 0u64..2048, nonce in 0u8..64,
        ) {
            let header = Header { kind, intended, lag, stream, sequence };
            prop_assert_eq!(Header::decode(&header.encode(nonce), nonce), Some(header));
        }

        #[test]
        fn lag_is_kept_to_one_part_in_4096(lag in 0u64..4_000_000_000_000) {
            let back = decode_lag(encode_lag(lag));
            prop_assert!(back.abs_diff(lag) <= lag / 4096, "{lag} became {back}");
        }

        #[test]
        fn another_nonce_is_foreign(nonce in 0u8..63) {
            let header = Header { kind: Kind::Measured, intended: 1, lag: 2, stream: 3, sequence: 4 };
            prop_assert_eq!(Header::decode(&header.encode(nonce), nonce + 1), None);
        }
    }

    #[test]
    fn a_short_payload_is_foreign() {
        assert_eq!(Header::decode(&[0; 15], 0), None);
    }

    #[test]
    fn a_lag_beyond_the_range_saturates() {
        assert_eq!(encode_lag(u64::MAX), u16::MAX);
        assert!(decode_lag(u16::MAX) > 4_000_000_000_000);
    }
}
