//! The axes that a search can vary.

use std::fmt;

use pubgauge_quantities::shown;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A property of a flow that a search varies.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    /// Messages a second over all publishers of the flow.
    #[default]
    Rate,
    /// Publishing devices.
    Publishers,
    /// Subscribing devices.
    Subscribers,
    Topics,
    /// Bytes of a message.
    Payload,
    /// Messages in a burst of each publisher.
    Burst,
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Axis {
    pub const ALL: [Axis; 6] = [
        Axis::Rate,
        Axis::Publishers,
        Axis::Subscribers,
        Axis::Topics,
        Axis::Payload,
        Axis::Burst,
    ];

    /// Its name, which is the key of the flow.
    pub fn name(self) -> &'static str {
        match self {
            Axis::Rate => "rate",
            Axis::Publishers => "publishers",
            Axis::Subscribers => "subscribers",
            Axis::Topics => "topics",
            Axis::Payload => "payload",
            Axis::Burst => "burst",
        }
    }

    pub fn named(name: &str) -> Option<Axis> {
        Axis::ALL.into_iter().find(|axis| axis.name() == name)
    }

    /// Smallest and largest value that is tried.
    pub fn range(self) -> (f64, f64) {
        match self {
            Axis::Rate => (1.0, 1e8),
            Axis::Payload => (16.0, (64u64 << 20) as f64),
            Axis::Burst => (1.0, 1e6),
            _ => (1.0, 100_000.0),
        }
    }

    /// A value as a study writes it.
    pub fn written(self, load: f64) -> String {
        match self {
            Axis::Rate => format!("{load}/s"),
            Axis::Payload => format!("{load:.0}B"),
            _ => format!("{load:.0}"),
        }
    }

    /// A load that can be asked for, no smaller if `up`, else no larger: whole, or a rate of four digits.
    pub fn rounded(self, load: f64, up: bool) -> f64 {
        let round = if up { f64::ceil } else { f64::floor };
        if self != Axis::Rate {
            // An error in the last binary digits of a product does not count.
            let nearest = load.round();
            return if (load / nearest - 1.0).abs() < 1e-9 {
                nearest
            } else {
                round(load)
            };
        }
        let digits = 3 - load.log10().floor() as i32;
        let unit = 10f64.powi(digits);
        let (scaled, nearest) = (load * unit, (load * unit).round());
        let whole = if (scaled / nearest - 1.0).abs() < 1e-9 {
            nearest
        } else {
            round(scaled)
        };
        if digits < 0 {
            whole * 10f64.powi(-digits)
        } else {
            whole / unit
        }
    }

    /// A load as readers see it: `41.2k msg/s`, `1.20 KiB`, `120 publishers`.
    pub fn format_load(self, load: f64) -> String {
        let amount = self.amount(load);
        match self {
            Axis::Payload => amount,
            Axis::Rate => format!("{amount} msg/s"),
            Axis::Burst if load == 1.0 => format!("{amount} message"),
            Axis::Burst => format!("{amount} messages"),
            axis if load == 1.0 => format!("{amount} {}", axis.name().trim_end_matches('s')),
            axis => format!("{amount} {axis}"),
        }
    }

    /// A load without its unit, unless it is one of size.
    pub fn amount(self, load: f64) -> String {
        match self {
            Axis::Payload => shown::bytes(load as u64),
            Axis::Rate => shown::brief(load),
            _ => shown::count(load as u64),
        }
    }
}
