//! Distributions of times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// The same counts with other values: what becomes of each time, and of the mean.
    pub(crate) fn map(
        &self,
        time: impl Fn(u64) -> Option<u64>,
        mean: impl Fn(f64) -> Option<f64>,
    ) -> Distribution {
        Distribution {
            min: self.min.and_then(&time),
            mean: self.mean.and_then(mean),
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
