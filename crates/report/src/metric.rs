//! Figures by which systems are compared, and how a figure bounds what a system can do.

use pubgauge_results::figure::figure;
use pubgauge_results::{Status, Trial};
use serde::Serialize;

use crate::stats::Estimate;
use crate::{glossary, units};

/// A figure by which systems are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Deliveries per second; more is better.
    Throughput,
    /// Median latency; less is better.
    MedianLatency,
    /// 99th percentile of latency; less is better.
    TailLatency,
    /// Median round trip of ping-pong flows; less is better.
    RoundTrip,
    /// Processor time of client and system for one delivery; less is better.
    CpuPerMessage,
}

impl Metric {
    /// The figure of a trial; `None` where the trial does not have it (too few messages for the
    /// percentile, a system out of sight).
    pub fn figure(self, trial: &Trial) -> Option<f64> {
        figure(trial, None, self.name())
    }

    /// The figure's name.
    fn name(self) -> &'static str {
        match self {
            Metric::Throughput => "delivered-rate",
            Metric::MedianLatency => "latency.p50",
            Metric::TailLatency => "latency.p99",
            Metric::RoundTrip => "round-trip.p50",
            Metric::CpuPerMessage => "cpu-per-message",
        }
    }

    pub fn more_is_better(self) -> bool {
        self == Metric::Throughput
    }

    /// As the beginning of an answer.
    pub fn superlative(self) -> &'static str {
        match self {
            Metric::Throughput => "most delivered",
            Metric::MedianLatency => "lowest median latency",
            Metric::TailLatency => "lowest 99th percentile of latency",
            Metric::RoundTrip => "shortest median round trip",
            Metric::CpuPerMessage => "least processor time per message (client and system)",
        }
    }

    /// The figure in one line.
    pub fn meaning(self) -> &'static str {
        match self {
            Metric::Throughput => glossary::figure("delivered"),
            Metric::MedianLatency => glossary::figure("p50"),
            Metric::TailLatency => glossary::figure("p99"),
            Metric::RoundTrip => {
                "From when a question should have been sent to the arrival of its answer."
            }
            Metric::CpuPerMessage => {
                "Processor time of client and system together for one delivery: only together can a broker and a library be compared."
            }
        }
    }

    /// An estimate with its unit and, if it has one, the half width of its interval.
    pub fn show_estimate(self, estimate: &Estimate) -> String {
        let mean = self.show(estimate.mean);
        let (Some(half_width), Some((_, unit))) = (estimate.half_width, mean.split_once(' '))
        else {
            return mean;
        };
        // The half width in the unit of the mean, whatever its size.
        let scale = match unit {
            "k/s" => 1e3,
            "M/s" => 1e6,
            "G/s" => 1e9,
            "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            _ => 1.0,
        };
        let half_width = if self == Metric::CpuPerMessage {
            half_width * 1e3
        } else {
            half_width
        };
        let number = mean.trim_end_matches(unit).trim_end();
        let decimals = number
            .split_once('.')
            .map_or(0, |(_, fraction)| fraction.len());
        format!("{number} ±{:.decimals$} {unit}", half_width / scale)
    }

    /// An estimate with the words of its bound; only an exact figure has an interval.
    pub fn show_bound(self, estimate: &Estimate, bound: Bound) -> String {
        match bound {
            Bound::Exact => self.show_estimate(estimate),
            bound => self.show(estimate.mean) + bound.suffix(),
        }
    }

    /// The same in a few words: `2.36 M/s or more`.
    pub fn show_bound_briefly(self, estimate: &Estimate, bound: Bound) -> String {
        let more = if bound == Bound::AtLeast {
            " or more"
        } else {
            ""
        };
        self.show(estimate.mean) + more
    }

    /// A value with its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Metric::Throughput => units::rate(value),
            Metric::MedianLatency | Metric::TailLatency | Metric::RoundTrip => units::time(value),
            Metric::CpuPerMessage => units::time(value * 1e3),
        }
    }
}

/// How a figure bounds the most that a system can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The figure itself.
    Exact,
    /// The figure of a client host of the given size, which was at the end of it.
    HostBound,
    /// This much or more: the client was the limit.
    AtLeast,
    /// The rate under a load that was more than the system could carry.
    UnderOverload,
}

impl Bound {
    /// With the verdict of each, in order of preference. A client-bound repeat beside an overloaded
    /// one leaves the bound open, so that no system is called slower by mistake.
    pub(crate) const ALL: [(Status, Bound); 4] = [
        (Status::Valid, Bound::Exact),
        (Status::HostBound, Bound::HostBound),
        (Status::ClientBound, Bound::AtLeast),
        (Status::Overloaded, Bound::UnderOverload),
    ];

    /// Text after a figure: `2.36 M/s or more (client-bound)`.
    pub fn suffix(self) -> &'static str {
        match self {
            Bound::Exact => "",
            Bound::HostBound => " (host-bound)",
            Bound::AtLeast => " or more (client-bound)",
            Bound::UnderOverload => " under overload",
        }
    }
}
