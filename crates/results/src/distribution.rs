//! Distributions of times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A distribution of times in nanoseconds, from an HdrHistogram of three significant digits.
///
/// Values that were not seen because the trial ended before them (`censored`) are larger than those
/// seen: they have their ranks, and a percentile that falls among them is absent, as are mean and
/// largest value. With no value at all, all are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// Values recorded.
    pub count: u64,
    /// Values that were still to come when the trial ended.
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
