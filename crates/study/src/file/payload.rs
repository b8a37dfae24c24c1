//! How big messages are, as it is written.

use pubgauge_quantities::Size;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How big messages are: "64B", ["64B", "1KiB"], "recorded", or a distribution.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PayloadFile {
    /// "64B", or "recorded".
    One(OneSize),
    /// Taken in turn.
    List(Vec<Size>),
    /// Drawn.
    Drawn(Drawn),
}

/// A fixed size, or the recorded ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneSize {
    /// Always the same.
    Fixed(Size),
    /// Sizes of the replayed trace.
    Recorded,
}

/// A distribution of sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Drawn {
    /// Every size between two equally often.
    Uniform(UniformSizes),
    /// Normal, cut off at both ends.
    Normal(NormalSizes),
    /// Log-normal, cut off at both ends.
    LogNormal(LogNormalSizes),
}

/// Uniform sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UniformSizes {
    /// Smallest.
    pub min: Size,
    /// Largest.
    pub max: Size,
}

/// Normal sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NormalSizes {
    /// Mean.
    pub mean: Size,
    /// Standard deviation.
    pub sd: Size,
    /// Smallest; 16B if absent.
    pub min: Option<Size>,
    /// Largest; mean + 6 sd if absent.
    pub max: Option<Size>,
}

/// Log-normal sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogNormalSizes {
    /// Median.
    pub median: Size,
    /// Standard deviation of the natural logarithm; 0.5 makes the 84th percentile 1.65 medians.
    pub sigma: f64,
    /// Smallest; 16B if absent.
    pub min: Option<Size>,
    /// Largest; the median times e^(6 sigma) if absent.
    pub max: Option<Size>,
}

impl Serialize for OneSize {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            OneSize::Fixed(size) => size.serialize(serializer),
            OneSize::Recorded => serializer.serialize_str("recorded"),
        }
    }
}
