//! Which bodies are compared whole: all small ones, and of larger ones so many that the cost stays bounded.

use std::ops::RangeInclusive;

use pubgauge_driver::header::HEADER_LEN;
use pubgauge_driver::{Filler, Header};

/// Bytes that are compared for each delivery, on average, beside both ends.
const COMPARED_BYTES: usize = 4096;

/// How a body was compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Looked {
    /// All of it, not its ends alone.
    pub whole: bool,
    /// It is what was published, as far as it was compared.
    pub sound: bool,
}

/// The bodies of one flow.
#[derive(Debug, Default)]
pub(super) struct Bodies {
    /// Bytes that were compared above the average.
    ahead: usize,
}

impl Bodies {
    /// Compares the body of a delivery with the one that was published. `sizes` are those that the flow has.
    #[inline]
    pub(super) fn look(
        &mut self,
        filler: &Filler,
        header: &Header,
        payload: &[u8],
        sizes: &RangeInclusive<usize>,
    ) -> Looked {
        let body = &payload[HEADER_LEN..];
        let whole = body.len() <= COMPARED_BYTES || self.is_whole_due(body.len());
        let (stream, sequence) = (header.stream, header.sequence);
        let matches = if whole {
            filler.matches(stream, sequence, body)
        } else {
            filler.ends_match(stream, sequence, body)
        };
        Looked {
            whole,
            sound: matches && sizes.contains(&payload.len()),
        }
    }

    /// Whether a body of this many bytes, more than the average, is compared whole.
    fn is_whole_due(&mut self, bytes: usize) -> bool {
        let due = self.ahead == 0;
        if due {
            self.ahead = bytes;
        }
        self.ahead = self.ahead.saturating_sub(COMPARED_BYTES);
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_whole_bodies_falls_with_their_size() {
        let of_100 = |bytes| {
            let mut bodies = Bodies::default();
            (0..100).filter(|_| bodies.is_whole_due(bytes)).count()
        };
        for (bytes, whole) in [(4097, 50), (8192, 50), (16_384, 25), (409_600, 1)] {
            assert_eq!(of_100(bytes), whole, "{bytes} bytes");
        }
    }
}
