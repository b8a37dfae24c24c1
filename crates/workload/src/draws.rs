//! Random draws that need no memory: every draw is a pure function of a seed and a few numbers.
//!
//! A message's size must not depend on which worker computes it, or a workload split over four
//! workers would not be the workload of one. So draws are not taken from a shared stream but
//! seeded by what they are for: (seed, stream, index). The generator is SplitMix64 (Steele, Lea
//! and Flood 2014), which needs one multiplication more than a counter to start anywhere.

use rand::TryRng;
use std::convert::Infallible;

/// A generator for the draws of one occasion.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    state: u64,
}

pub(crate) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Draws {
    /// The draws for `index` of `stream` under `seed`.
    pub(crate) fn new(seed: u64, stream: u64, index: u64) -> Self {
        let stream = mix(seed.wrapping_add(GOLDEN)) ^ mix(stream.wrapping_mul(GOLDEN));
        Draws {
            state: mix(stream.wrapping_add(index.wrapping_mul(GOLDEN))),
        }
    }

    /// Uniform over all 64-bit numbers.
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// Uniform from 0 (excluded) to 1 (included), so that its logarithm is finite.
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Uniform from 0 to `bound - 1`; 0 if `bound` is 0. The bias is below `bound / 2^64`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

impl TryRng for Draws {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.next_u64() >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.next_u64())
    }

    fn try_fill_bytes(&mut self, dst: &mut [u8]) -> Result<(), Infallible> {
        for chunk in dst.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_uniform() {
        let n = 100_000;
        let mut bins = [0u32; 10];
        for i in 0..n {
            let u = Draws::new(7, 3, i).unit();
            assert!(u > 0.0 && u <= 1.0);
            bins[((u * 10.0) as usize).min(9)] += 1;
        }
        // Standard deviation of a bin is 95: six of them.
        assert!(bins.iter().all(|b| b.abs_diff(10_000) < 570), "{bins:?}");
    }

    #[test]
    fn streams_and_seeds_differ() {
        let first = |seed, stream, index| Draws::new(seed, stream, index).next_u64();
        assert_ne!(first(1, 0, 0), first(2, 0, 0));
        assert_ne!(first(1, 0, 0), first(1, 1, 0));
        assert_ne!(first(1, 0, 0), first(1, 0, 1));
        assert_eq!(first(1, 2, 3), first(1, 2, 3));
    }
}
