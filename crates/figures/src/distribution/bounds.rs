//! Where the percentile of what is measured lies, of which so many messages were seen: by order statistics, whatever the
//! distribution.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Chance that a percentile lies beyond one of its bounds.
const ERROR: f64 = 0.05;

/// [`ERROR`] in standard deviations.
const DEVIATIONS: f64 = 1.645;

/// Messages beyond a percentile, on average, up to which their number is computed exactly.
const EXACT_UP_TO: f64 = 500.0;

/// Where a percentile lies, ns: above the lower bound, and below the upper one, in 95 of 100 such measurements each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bounds {
    /// The lower bound; absent where the messages are too few for one.
    pub at_least: Option<u64>,
    /// The upper bound; absent where the messages are too few for one, or it falls among those that did not come.
    pub at_most: Option<u64>,
}

impl Bounds {
    /// The bounds of a value that is known.
    pub(super) fn exactly(value: u64) -> Bounds {
        Bounds {
            at_least: Some(value),
            at_most: Some(value),
        }
    }
}

/// Where the percentiles of a distribution lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PercentileBounds {
    /// The median.
    pub p50: Bounds,
    /// The 90th percentile.
    pub p90: Bounds,
    /// The 99th percentile.
    pub p99: Bounds,
    /// The 99.9th percentile.
    pub p99_9: Bounds,
    /// The 99.99th percentile.
    pub p99_99: Bounds,
}

impl PercentileBounds {
    /// The bounds that `one` gives for each quantile.
    pub(crate) fn from_quantiles(one: impl Fn(f64) -> Bounds) -> PercentileBounds {
        PercentileBounds {
            p50: one(0.5),
            p90: one(0.9),
            p99: one(0.99),
            p99_9: one(0.999),
            p99_99: one(0.9999),
        }
    }

    pub(super) fn bounds_of(&self, quantile: f64) -> Option<Bounds> {
        Some(match quantile {
            0.5 => self.p50,
            0.9 => self.p90,
            0.99 => self.p99,
            0.999 => self.p99_9,
            0.9999 => self.p99_99,
            _ => return None,
        })
    }

    /// The bounds after `time` changed, or removed, each end.
    pub(super) fn map(self, time: impl Fn(u64) -> Option<u64>) -> PercentileBounds {
        PercentileBounds::from_quantiles(|quantile| {
            let before = self.bounds_of(quantile).unwrap_or_default();
            Bounds {
                at_least: before.at_least.and_then(&time),
                at_most: before.at_most.and_then(&time),
            }
        })
    }
}

/// The messages from which on a percentile has an upper bound: with fewer, all of them may lie below it by chance.
pub(super) fn messages_needed(quantile: f64) -> u64 {
    (ERROR.ln() / quantile.ln()).ceil().max(1.0) as u64
}

/// The bounds of a percentile of `messages`, the lower and the upper one, as places among them from the largest, which
/// is 1. `None`: there is no such bound.
pub(crate) fn bounding_places(messages: u64, quantile: f64) -> [Option<u64>; 2] {
    let (n, beyond) = (messages as f64, 1.0 - quantile);
    let mean = n * beyond;
    let (upper, lower) = if mean > EXACT_UP_TO {
        let spread = DEVIATIONS * (mean * quantile).sqrt();
        // The half of a step that the approximation may be wrong by widens them.
        let [low, high] = [mean - spread - 0.5, mean + spread + 1.5];
        (low.floor() as u64, high.ceil() as u64)
    } else {
        // The number of messages beyond the percentile is binomial. The `place`-th largest lies above the percentile if
        // that many are beyond it, and below if fewer are.
        let (mut chance, mut fewer, mut place) = (quantile.powf(n), 0.0, 0);
        let mut upper = 0;
        loop {
            fewer += chance;
            place += 1;
            if fewer <= ERROR {
                upper = place;
            }
            if fewer >= 1.0 - ERROR || place > messages {
                break (upper, place);
            }
            chance *= (n - place as f64 + 1.0) / place as f64 * beyond / quantile;
        }
    };
    let within = |place: u64| (1..=messages).contains(&place).then_some(place);
    [within(lower), within(upper)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_has_an_upper_bound_from_so_many_messages_on() {
        let quantiles = [0.5, 0.9, 0.99, 0.999, 0.9999];
        let needed = quantiles.map(messages_needed);
        assert_eq!(needed, [5, 29, 299, 2_995, 29_956]);
        for (quantile, needed) in quantiles.into_iter().zip(needed) {
            assert_eq!(bounding_places(needed, quantile)[1], Some(1), "{quantile}");
            assert_eq!(bounding_places(needed - 1, quantile)[1], None, "{quantile}");
        }
    }

    /// Places from tables of order statistics: of 100 messages, P(E <= 3) is 0.982 and P(E <= 2) 0.921.
    #[test]
    fn the_lower_bound_is_there_with_fewer_messages() {
        assert_eq!(bounding_places(100, 0.99), [Some(4), None]);
        assert_eq!(bounding_places(1, 0.99), [Some(1), None]);
        assert_eq!(bounding_places(1, 0.5), [None, None]);
        assert_eq!(bounding_places(0, 0.5), [None, None]);
    }

    #[test]
    fn the_approximation_follows_the_exact_places() {
        // Just below and just above what is computed exactly.
        for quantile in [0.5, 0.9, 0.99] {
            let n = (EXACT_UP_TO / (1.0 - quantile)).floor() as u64;
            let [exact, near] =
                [n - 10, n + 10].map(|n| bounding_places(n, quantile).map(Option::unwrap));
            for (exact, near) in exact.into_iter().zip(near) {
                assert!(exact.abs_diff(near) <= 12, "{quantile}: {exact} {near}");
            }
        }
    }
}
