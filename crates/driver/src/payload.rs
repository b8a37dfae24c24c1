//! Message payloads: header plus a body that neither compresses nor aliases.

use crate::header::HEADER_LEN;

/// A payload in two parts, which are not joined before the driver copies both into its own buffer.
/// The parts follow each other on the wire without a gap.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    /// The encoded [`crate::Header`].
    pub head: &'a [u8; HEADER_LEN],
    /// The bytes after the header; empty for a 16-byte payload.
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

/// How far apart bodies of one message begin whose lengths differ by one, in places of eight bytes: odd, so that all
/// lengths within 8192 bytes of each other begin elsewhere.
const PER_LENGTH: usize = 2_777;

/// The bytes at either end that [`Filler::ends_match`] compares.
const END: usize = 64;

/// A pool of pseudo-random bytes from which bodies are cut: the body of message `sequence` of
/// `stream` is a known slice of it, so that a receiver can check what it got. Where the slice begins depends on its
/// length too: a body that was cut or lengthened is none of the pool's, although its length does not travel.
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
        let len = payload_len - HEADER_LEN;
        let start = Self::start(stream, sequence, len);
        &self.pool[start..start + len]
    }

    /// Whether all of `body` is what [`Filler::body`] gave. A body of `n` bytes that was cut or lengthened passes by
    /// chance once in 256^n, and always if that was by a multiple of 8192 bytes; no other does.
    #[inline]
    pub fn matches(&self, stream: u32, sequence: u32, body: &[u8]) -> bool {
        self.expected(stream, sequence, body) == Some(body)
    }

    /// Whether both ends of `body` are what [`Filler::body`] gave, 64 bytes each: shows truncation, mixing and
    /// aliasing at a price that does not rise with the size.
    #[inline]
    pub fn ends_match(&self, stream: u32, sequence: u32, body: &[u8]) -> bool {
        let n = body.len();
        match self.expected(stream, sequence, body) {
            None => false,
            Some(expected) if n <= 2 * END => body == expected,
            Some(expected) => {
                body[..END] == expected[..END] && body[n - END..] == expected[n - END..]
            }
        }
    }

    /// The body of a message that is as long as `body`, if there is one.
    #[inline]
    fn expected(&self, stream: u32, sequence: u32, body: &[u8]) -> Option<&[u8]> {
        let start = Self::start(stream, sequence, body.len());
        self.pool.get(start..start + body.len())
    }

    #[inline]
    fn start(stream: u32, sequence: u32, len: usize) -> usize {
        let message = (u64::from(stream) << 32) | u64::from(sequence);
        let mixed = message.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = (mixed >> 51) as usize + len.wrapping_mul(PER_LENGTH);
        place * 8 % WINDOW
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
            assert!(filler.ends_match(7, 9, &body));
            assert!(!filler.ends_match(7, 10, &body));
        }
        assert!(filler.matches(1, 1, filler.body(1, 1, 16)));
        assert!(!filler.matches(1, 1, &[0; 5000]));
        assert!(!filler.ends_match(1, 1, &[0; 5000]));
    }

    #[test]
    fn each_damaged_byte_of_each_size_is_seen() {
        let filler = Filler::new(65_536);
        for len in (17..=300).chain([1024, 4096, 65_536]) {
            let sequence = len as u32;
            let mut body = filler.body(3, sequence, len).to_vec();
            for at in 0..body.len() {
                body[at] ^= 1 << (at % 8);
                assert!(!filler.matches(3, sequence, &body), "byte {at} of {len}");
                let end = at < END || body.len() - at <= END;
                let seen = !filler.ends_match(3, sequence, &body);
                assert!(seen == (end || body.len() <= 2 * END), "byte {at} of {len}");
                body[at] ^= 1 << (at % 8);
            }
            assert!(filler.matches(3, sequence, &body));
        }
    }

    /// Bodies of one and two bytes may be those of another length by chance.
    #[test]
    fn each_size_that_was_cut_or_lengthened_is_seen() {
        let filler = Filler::new(70_000);
        for len in (19..=2000).chain([4096, 4097, 65_536]) {
            for sequence in [0, 1, 77] {
                let whole = filler.body(5, sequence, len + 1).to_vec();
                let body = filler.body(5, sequence, len).to_vec();
                assert!(!filler.matches(5, sequence, &whole[..whole.len() - 1]));
                for added in [0, 0x55, whole[whole.len() - 1]] {
                    let longer = [&body[..], &[added]].concat();
                    assert!(!filler.matches(5, sequence, &longer), "{len} and {added}");
                    assert!(
                        !filler.ends_match(5, sequence, &longer),
                        "{len} and {added}"
                    );
                }
            }
        }
    }
}
