//! The figures in which systems are compared, and how a figure bounds what a system can do.

use pubgauge_figures::figure::{Figure, Unit};
use pubgauge_figures::{Status, Trial};
use pubgauge_quantities::stats::MeanInterval;
use schemars::JsonSchema;
use serde::Serialize;

/// A figure in which systems are compared, with the words for who wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contest {
    name: &'static str,
    /// As the beginning of an answer.
    pub superlative: &'static str,
    /// Its term in the report's glossary.
    pub term: &'static str,
}

impl Contest {
    /// Deliveries per second.
    pub const THROUGHPUT: Contest = Contest {
        name: "delivered-rate",
        superlative: "most delivered",
        term: "delivered",
    };
    /// Messages that systems took in a second, where nobody subscribes to them.
    pub const TAKEN: Contest = Contest {
        name: "published-rate",
        superlative: "most taken (nobody subscribes)",
        term: "delivered",
    };
    pub const MEDIAN_LATENCY: Contest = Contest {
        name: "latency.p50",
        superlative: "lowest median latency",
        term: "p50",
    };
    /// 99th percentile of latency.
    pub const TAIL_LATENCY: Contest = Contest {
        name: "latency.p99",
        superlative: "lowest 99th percentile of latency",
        term: "p99",
    };
    /// Median round trip of ping-pong flows.
    pub const ROUND_TRIP: Contest = Contest {
        name: "round-trip.p50",
        superlative: "shortest median round trip",
        term: "round trip",
    };
    /// Processor time of client and system for one delivery.
    pub const CPU_PER_MESSAGE: Contest = Contest {
        name: "cpu-per-message",
        superlative: "least processor time per message (client and system)",
        term: "processor time",
    };

    /// The figure, as the catalogue has it.
    pub fn figure(self) -> &'static Figure {
        Figure::named(self.name).expect("a figure of the catalogue")
    }

    /// Its value in a trial; `None` where the trial does not have it (too few messages for the percentile, a system out
    /// of sight).
    pub fn value(self, trial: &Trial) -> Option<f64> {
        self.figure().value_in(trial, None, None).ok()
    }

    /// A value with its unit.
    pub fn format_value(self, value: f64) -> String {
        self.figure().unit.format(value)
    }

    /// An estimate with its unit and, if it has one, the half width of its interval; of two repeats both values.
    pub fn show_estimate(self, estimate: &MeanInterval) -> String {
        let unit = self.figure().unit;
        let mean = unit.format(estimate.mean);
        if estimate.n == 2 {
            let [smallest, largest] = [estimate.smallest, estimate.largest].map(|v| unit.format(v));
            return format!("{mean} ({smallest} and {largest})");
        }
        let (Some(half_width), Some((_, symbol))) = (estimate.half_width, mean.split_once(' '))
        else {
            return mean;
        };
        // The half width in the unit of the mean, whatever its size.
        let scale = match symbol {
            "k/s" => 1e3,
            "M/s" => 1e6,
            "G/s" => 1e9,
            "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            _ => 1.0,
        };
        let half_width = if unit == Unit::MicrosecondsPerMessage {
            half_width * 1e3
        } else {
            half_width
        };
        let number = mean.trim_end_matches(symbol).trim_end();
        let decimals = number
            .split_once('.')
            .map_or(0, |(_, fraction)| fraction.len());
        format!("{number} ±{:.decimals$} {symbol}", half_width / scale)
    }

    /// An estimate with the words of its bound; only an exact figure has an interval.
    pub fn show_bound(self, estimate: &MeanInterval, bound: Bound) -> String {
        match bound {
            Bound::Exact => self.show_estimate(estimate),
            bound => self.format_value(estimate.mean) + bound.suffix(),
        }
    }

    /// An estimate with its bound in a few words, without an interval: `2.36 M/s or more`.
    pub fn show_bound_briefly(self, estimate: &MeanInterval, bound: Bound) -> String {
        let more = if matches!(bound, Bound::AtLeast | Bound::SettingBound) {
            " or more"
        } else {
            ""
        };
        self.format_value(estimate.mean) + more
    }
}

/// How a figure bounds the most that a system can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The figure itself.
    Exact,
    /// The figure of a client host of the given size, which was at the end of it.
    HostBound,
    /// This much or more: the client was the limit.
    AtLeast,
    /// This much or more: a window of the settings was the limit.
    SettingBound,
    /// The rate under a load that was more than the system could carry.
    UnderOverload,
}

impl Bound {
    /// With the verdict of each, in order of preference. A client-bound repeat beside an overloaded
    /// one leaves the bound open, so that no system is called slower by mistake.
    pub const ALL: [(Status, Bound); 5] = [
        (Status::Valid, Bound::Exact),
        (Status::HostBound, Bound::HostBound),
        (Status::SettingBound, Bound::SettingBound),
        (Status::ClientBound, Bound::AtLeast),
        (Status::Overloaded, Bound::UnderOverload),
    ];

    /// Text after a figure: `2.36 M/s or more (client-bound)`.
    pub fn suffix(self) -> &'static str {
        match self {
            Bound::Exact => "",
            Bound::HostBound => " (host-bound)",
            Bound::AtLeast => " or more (client-bound)",
            Bound::SettingBound => " or more (setting-bound)",
            Bound::UnderOverload => " under overload",
        }
    }
}
