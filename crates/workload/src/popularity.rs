//! Topics that differ in popularity: the k-th topic of a publisher is used in proportion to 1/k^s, as Zipf's law has it.

use std::collections::BTreeMap;

use crate::draws::Draws;

/// Largest exponent: of two topics, the second then has one message in a thousand.
pub const MOST_TOPIC_ZIPF: f64 = 10.0;

/// Sets the draws of topics apart from those of sizes.
const TOPICS: u64 = 0x7e0c_70b1_c5e1_ec7e;

/// How often a publisher uses each of its topics.
#[derive(Clone, Debug, Default)]
pub(crate) struct Popularity {
    /// For each number of topics, the shares of the first, of the first two, and so on, the last of which is 1; empty where topics
    /// are used in turn.
    cumulated: BTreeMap<u32, Box<[f64]>>,
}

impl Popularity {
    /// By Zipf's law with this exponent, for publishers with these numbers of topics; in turn without one.
    pub fn new(exponent: Option<f64>, topics: impl Iterator<Item = u32>) -> Popularity {
        let mut cumulated = BTreeMap::new();
        if let Some(exponent) = exponent {
            for topics in topics.filter(|topics| *topics > 1) {
                (cumulated.entry(topics)).or_insert_with(|| cumulate(exponent, topics));
            }
        }
        Popularity { cumulated }
    }

    /// The topic of a publisher's `nth` message, as an index into its topics.
    #[inline]
    pub fn topic(&self, seed: u64, publisher: u32, nth: u64, topics: u32) -> u32 {
        if topics == 1 {
            return 0;
        }
        if self.cumulated.is_empty() {
            return (nth % u64::from(topics)) as u32;
        }
        let shares = &self.cumulated[&topics];
        let drawn = Draws::new(seed ^ TOPICS, publisher.into(), nth).unit();
        let index = shares.partition_point(|share| *share < drawn) as u32;
        index.min(topics - 1)
    }
}

/// The share of a publisher's messages that goes to each of its topics.
pub(crate) fn shares(exponent: Option<f64>, topics: u32) -> Vec<f64> {
    let exponent = exponent.unwrap_or(0.0);
    let weights: Vec<f64> = (1..=topics)
        .map(|rank| f64::from(rank).powf(-exponent))
        .collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

fn cumulate(exponent: f64, topics: u32) -> Box<[f64]> {
    let mut sum = 0.0;
    let each = shares(Some(exponent), topics);
    let each = each.into_iter().map(|share| {
        sum += share;
        sum
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn topics_are_used_in_turn_without_an_exponent() {
        let popularity = Popularity::new(None, [3, 1].into_iter());
        let topics: Vec<u32> = (0..5).map(|nth| popularity.topic(1, 0, nth, 3)).collect();
        assert_eq!(topics, [0, 1, 2, 0, 1]);
        assert_eq!(popularity.topic(1, 1, 9, 1), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn each_topic_has_its_share(exponent in 0.0f64..3.0, topics in 2u32..40, seed: u64) {
            const MESSAGES: u64 = 20_000;
            let popularity = Popularity::new(Some(exponent), std::iter::once(topics));
            let mut counts = vec![0u64; topics as usize];
            for nth in 0..MESSAGES {
                counts[popularity.topic(seed, 7, nth, topics) as usize] += 1;
            }
            for (count, share) in counts.iter().zip(shares(Some(exponent), topics)) {
                let expected = share * MESSAGES as f64;
                // Six deviations of a binomial count, so that 800 of them pass by chance.
                let scatter = 6.0 * (expected * (1.0 - share)).sqrt() + 1.0;
                prop_assert!((*count as f64 - expected).abs() < scatter, "{count} of {expected}");
            }
        }
    }
}
