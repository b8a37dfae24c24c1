//! Distributions of times.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The percentiles of a [`Distribution`] by their names in `results.json`, with the quantile of each.
const PERCENTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99_9", 0.999),
    ("p99_99", 0.9999),
];

/// Why a part of a distribution cannot be quoted: how many values it has, and how many it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFew {
    /// Values of the distribution, those that never came included.
    pub count: u64,
    /// Values of which one lies beyond the percentile.
    pub needed: u64,
}

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooFew { count, needed } = self;
        write!(f, "{count} messages are too few, it takes {needed}")
    }
}

/// That a percentile of `count` values can be quoted: at least one of them lies beyond its quantile.
pub(crate) fn enough(count: u64, quantile: f64) -> Result<(), TooFew> {
    if count as f64 * (1.0 - quantile) >= 1.0 - 1e-9 {
        return Ok(());
    }
    Err(TooFew {
        count,
        needed: (1.0 / (1.0 - quantile)).round() as u64,
    })
}

/// Whether a part of a distribution, both as in `results.json`, can be quoted: what is no percentile always can.
pub fn is_quotable(distribution: &Value, part: &str) -> bool {
    let of = |name| distribution.get(name).and_then(Value::as_u64).unwrap_or(0);
    let mut percentiles = PERCENTILES.iter().filter(|(name, _)| *name == part);
    percentiles.all(|(_, quantile)| enough(of("count") + of("censored"), *quantile).is_ok())
}

/// A distribution of times in nanoseconds, from an HdrHistogram of three significant digits.
///
/// Values that there would be if all that was due had happened (`censored`: of messages still under way, lost,
/// refused, not sent) are larger than those seen: they have their ranks, and a percentile that falls among
/// them is absent, as are mean and largest value. With no value at all, all are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// Values recorded.
    pub count: u64,
    /// Values that are missing of what was due.
    #[serde(default)]
    pub censored: u64,
    /// Smallest.
    pub min: Option<u64>,
    /// Mean.
    pub mean: Option<f64>,
    /// Mean of the values recorded, where others are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_mean: Option<f64>,
    /// 90th percentile of the values recorded, where others are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_p90: Option<u64>,
    /// Median.
    pub p50: Option<u64>,
    /// 90th percentile.
    pub p90: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// 99.9th percentile.
    pub p99_9: Option<u64>,
    /// 99.99th percentile.
    pub p99_99: Option<u64>,
    /// Largest.
    pub max: Option<u64>,
}

impl Distribution {
    /// Checks that a percentile can be quoted: at least one value lies beyond `quantile`.
    ///
    /// # Errors
    /// There are too few values.
    pub fn enough(&self, quantile: f64) -> Result<(), TooFew> {
        enough(self.count + self.censored, quantile)
    }

    /// The same counts with other values: what becomes of each time, and of the mean.
    pub(crate) fn map(
        &self,
        time: impl Fn(u64) -> Option<u64>,
        mean: impl Fn(f64) -> Option<f64>,
    ) -> Distribution {
        Distribution {
            min: self.min.and_then(&time),
            mean: self.mean.and_then(&mean),
            known_mean: self.known_mean.and_then(&mean),
            known_p90: self.known_p90.and_then(&time),
            p50: self.p50.and_then(&time),
            p90: self.p90.and_then(&time),
            p99: self.p99.and_then(&time),
            p99_9: self.p99_9.and_then(&time),
            p99_99: self.p99_99.and_then(&time),
            max: self.max.and_then(&time),
            ..*self
        }
    }
}
