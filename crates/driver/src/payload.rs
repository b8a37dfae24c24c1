//! Message payloads: header plus a body that neither compresses nor aliases.

use crate::header::HEADER_LEN;

/// A payload in two parts, which are not joined before the driver copies both into its own buffer.
/// The parts follow each other on the wire without a gap.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    /// The encoded [`crate::Header`].
    pub head: &'a [u8; HEADER_LEN],
    /// What follows the header; empty for a 16-byte payload.
    pub body: &'a [u8],
}

impl Payload<'_> {
    /// Length of the whole payload in bytes. Never below [`HEADER_LEN`].
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        HEADER_LEN + self.body.len()
    }

    /// Appends the payload to `out`.
    #[inline]
    pub fn append_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.head);
        out.extend_from_slice(self.body);
    }
}

/// Range of the pool in which bodies begin, in bytes. They begin at multiples of eight: 8192 bodies
/// of one size differ.
const WINDOW: usize = 1 << 16;

/// A pool of pseudo-random bytes from which bodies are cut: the body of message `sequence` of
/// `stream` is a known slice of it, so that a receiver can check what it got.
#[derive(Clone, Debug)]
pub struct Filler {
    pool: Vec<u8>,
}

impl Filler {
    /// A pool for payloads of up to `max_payload` bytes (header included).
    pub fn new(max_payload: usize) -> Self {
        // SplitMix64 (Steele, Lea and Flood, 2014): every output word passes BigCrush, so the
        // bytes do not compress. Fixed seed: all workers and hosts agree on the content.
        let mut state = 0x7075_6267_6175_6765_u64;
        let mut pool = Vec::with_capacity(WINDOW + max_payload + 8);
        while pool.len() < WINDOW + max_payload {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            pool.extend_from_slice(&(z ^ (z >> 31)).to_le_bytes());
        }
        Filler { pool }
    }

    /// The body of a message, `payload_len - 16` bytes.
    ///
    /// # Panics
    /// If `payload_len` is below 16 or above the pool's `max_payload`.
    #[inline]
    pub fn body(&self, stream: u32, sequence: u32, payload_len: usize) -> &[u8] {
        let start = Self::start(stream, sequence);
        &self.pool[start..start + payload_len - HEADER_LEN]
    }

    /// Whether `body` is what [`Filler::body`] gave: looks at no more than the first and last
    /// eight bytes, which shows truncation, mixing and aliasing at the price of two loads.
    #[inline]
    pub fn matches(&self, stream: u32, sequence: u32, body: &[u8]) -> bool {
        let start = Self::start(stream, sequence);
        let Some(expected) = self.pool.get(start..start + body.len()) else {
            return false;
        };
        match body.len() {
            0..=8 => body == expected,
            n => body[..8] == expected[..8] && body[n - 8..] == expected[n - 8..],
        }
    }

    #[inline]
    fn start(stream: u32, sequence: u32) -> usize {
        let message = (u64::from(stream) << 32) | u64::from(sequence);
        let mixed = message.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed >> 48) as usize % WINDOW) & !7
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_matches_itself_and_no_neighbour() {
        let filler = Filler::new(1024);
        for len in [24, 64, 1024] {
            let body = filler.body(7, 9, len).to_vec();
            assert!(filler.matches(7, 9, &body));
            assert!(!filler.matches(7, 10, &body));
            assert!(!filler.matches(8, 9, &body));
            let mut cut = body.clone();
            *cut.last_mut().unwrap() ^= 1;
            assert!(!filler.matches(7, 9, &cut));
        }
        assert!(filler.matches(1, 1, filler.body(1, 1, 16)));
        assert!(!filler.matches(1, 1, &[0; 5000]));
    }
}
