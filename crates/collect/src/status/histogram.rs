//! How often values lie below bounds: written by a thread of the collector, read by anyone.

use super::Count;

/// Bounds of times, ns: 100 us to 10 s.
const TIMES: &[u64] = &[
    100_000,
    200_000,
    300_000,
    500_000,
    1_000_000,
    2_000_000,
    3_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    30_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    300_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    3_000_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// Bounds of sizes, bytes: 1 KiB to 16 MiB.
const SIZES: &[u64] = &[
    1 << 10,
    4 << 10,
    16 << 10,
    64 << 10,
    256 << 10,
    1 << 20,
    4 << 20,
    16 << 20,
];

/// A histogram of whole numbers.
#[derive(Debug)]
pub struct Histogram {
    /// The largest value of each bucket; one more bucket has all that is larger.
    bounds: &'static [u64],
    buckets: Box<[Count]>,
    sum: Count,
}

/// Counts of a histogram at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Each bound, and how many values are not above it.
    pub up_to: Vec<(u64, u64)>,
    /// All values.
    pub count: u64,
    pub sum: u64,
}

impl Histogram {
    /// Of times in ns.
    pub(crate) fn of_times() -> Histogram {
        Histogram::new(TIMES)
    }

    /// Of sizes in bytes.
    pub(crate) fn of_sizes() -> Histogram {
        Histogram::new(SIZES)
    }

    fn new(bounds: &'static [u64]) -> Histogram {
        Histogram {
            bounds,
            buckets: (0..=bounds.len()).map(|_| Count::default()).collect(),
            sum: Count::default(),
        }
    }

    /// Adds a value.
    pub(crate) fn record(&self, value: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.buckets[bucket].add(1);
        self.sum.add(value);
    }

    /// Its counts now.
    pub fn counted(&self) -> Counted {
        let mut count = 0;
        let mut below = |bucket: &Count| {
            count += bucket.get();
            count
        };
        let each = self.bounds.iter().zip(&self.buckets);
        let up_to = each
            .map(|(bound, bucket)| (*bound, below(bucket)))
            .collect();
        let count = self.buckets.last().map_or(0, &mut below);
        Counted {
            up_to,
            count,
            sum: self.sum.get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_bucket_counts_the_values_up_to_its_bound(
            values in prop::collection::vec(0u64..30_000_000_000, 0..200),
            on_bounds in prop::collection::vec(prop::sample::select(TIMES), 0..20),
        ) {
            let histogram = Histogram::of_times();
            let all = [values, on_bounds].concat();
            for value in &all {
                histogram.record(*value);
            }
            let counted = histogram.counted();
            let up_to = |bound: u64| all.iter().filter(|value| **value <= bound).count() as u64;
            let expected: Vec<_> = TIMES.iter().map(|bound| (*bound, up_to(*bound))).collect();
            prop_assert_eq!(counted.up_to, expected);
            prop_assert_eq!(counted.count, all.len() as u64);
            prop_assert_eq!(counted.sum, all.iter().sum::<u64>());
        }
    }
}
