//! Distributions of times.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use self::bounds::bounding_places;
pub use self::bounds::{Bounds, PercentileBounds};

mod bounds;

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
    /// Messages of the distribution, those that never came included.
    pub count: u64,
    /// Messages of which the percentile has an upper bound; see [`Bounds`].
    pub needed: u64,
}

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooFew { count, needed } = self;
        write!(f, "{count} messages are too few, it takes {needed}")
    }
}

/// That a percentile of `count` messages can be quoted: it is known what it is at most, see [`Bounds`].
pub(crate) fn check_enough(count: u64, quantile: f64) -> Result<(), TooFew> {
    let needed = bounds::messages_needed(quantile);
    if count >= needed {
        return Ok(());
    }
    Err(TooFew { count, needed })
}

/// Whether a part of a distribution, both as in `results.json`, can be quoted: what is no percentile always can.
pub fn is_quotable(distribution: &Value, part: &str) -> bool {
    let of = |name| distribution.get(name).and_then(Value::as_u64);
    let values = of("count").unwrap_or(0) + of("censored").unwrap_or(0);
    let messages = of("messages").unwrap_or(values);
    let mut percentiles = PERCENTILES.iter().filter(|(name, _)| *name == part);
    percentiles.all(|(_, quantile)| check_enough(messages, *quantile).is_ok())
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
    pub censored: u64,
    /// Messages of which these are the deliveries, where these are more: deliveries of one message are not independent
    /// of one another, and tell as much of a percentile as one of them. Absent: each value is of a message of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
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
    /// Where each of the percentiles lies; absent without a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<PercentileBounds>,
}

impl Distribution {
    /// Checks that a percentile can be quoted: it is known what it is at most.
    ///
    /// # Errors
    /// There are too few messages.
    pub fn check_count(&self, quantile: f64) -> Result<(), TooFew> {
        let values = self.count + self.censored;
        check_enough(self.messages.unwrap_or(values), quantile)
    }

    /// Where a percentile lies, for the quantiles of [`Distribution::quotable`] below 1; `None` without a value.
    pub fn bounds(&self, quantile: f64) -> Option<Bounds> {
        let Some(all) = &self.bounds else {
            // Of a distribution that was not made from a histogram the percentiles alone are known.
            let value = self.quotable(quantile)?;
            return Some(Bounds::exactly(value));
        };
        all.bounds_of(quantile)
    }

    /// Its counts with other values: what becomes of each time, and of the mean.
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
            bounds: self.bounds.map(|all| all.map(&time)),
            ..*self
        }
    }
}
