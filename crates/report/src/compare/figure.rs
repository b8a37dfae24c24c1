//! The figures by which sides are compared, with their names in study files.

use std::borrow::Cow;
use std::sync::LazyLock;

use pubgauge_results::criterion::recorded_name;
use pubgauge_results::figure::{Better, Figure as Known, Unit};
use pubgauge_results::group::extremes;
use pubgauge_results::model::Distribution;
use pubgauge_results::window::{self, WindowFigures, in_window};
use pubgauge_results::{Trial, counted};

use super::Pair;
use crate::units;
use crate::wins::{Metric, per_message};

/// A figure of a trial.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its name, as in criteria where it can be one; that of a window ends in `@WINDOW`.
    pub name: Cow<'static, str>,
    /// What it is measured in.
    pub unit: Unit,
    /// Which direction is better.
    pub better: Better,
    /// Whether windows of the measurement have it, too.
    pub of_windows: bool,
    /// Its value; absent: it is one of those that are [counted](counted::FIGURES) on request.
    value: Option<fn(&Trial) -> Option<f64>>,
}

impl PartialEq for Figure {
    fn eq(&self, other: &Figure) -> bool {
        self.name == other.name
    }
}

impl Figure {
    /// The figure of that name.
    pub fn named(name: &str) -> Option<Figure> {
        let (base, window) = window::split(name);
        let known = FIGURES.iter().find(|figure| figure.name == base)?.clone();
        match window {
            None => Some(known),
            // A quotient of two figures is not one of these.
            Some(window) if !known.of_windows || window.contains('/') => None,
            Some(_) => Some(Figure {
                name: name.to_owned().into(),
                ..known
            }),
        }
    }

    /// Its value; `None` where a trial does not have it: the system is out of sight, or there are
    /// too few messages for the percentile.
    pub fn of(&self, trial: &Trial) -> Option<f64> {
        let value = match (self.value, window::split(&self.name).1) {
            (None, _) => counted::figure(trial, &recorded_name(&self.name)),
            (Some(value), None) => value(trial),
            (Some(value), Some(window)) => value(&of_window(in_window(trial, None, window)?)),
        };
        value.filter(|value| value.is_finite() && *value >= 0.0)
    }

    /// A value with its unit.
    pub fn show(&self, value: f64) -> String {
        match self.unit {
            Unit::Nanoseconds => units::time(value),
            Unit::PerSecond => units::rate(value),
            Unit::MicrosecondsPerMessage => format!("{} µs", units::digits(value)),
            Unit::Bytes => units::bytes(value.round() as u64),
            Unit::Share => format!("{} %", units::digits(100.0 * value)),
            Unit::Messages | Unit::Seconds | Unit::Count | Unit::Verdict => units::digits(value),
        }
    }
}

fn figure(name: &str, value: Option<fn(&Trial) -> Option<f64>>) -> Figure {
    let known = Known::named(name).expect("results know all figures");
    Figure {
        name: Cow::Borrowed(&known.name),
        unit: known.unit,
        better: known.better,
        of_windows: known.of_windows,
        value,
    }
}

fn quantile(of: Option<Distribution>, quantile: f64) -> Option<f64> {
    Some(of?.quotable(quantile)? as f64)
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// A figure that is not counted on request: its name and its value.
type Own = (&'static str, fn(&Trial) -> Option<f64>);

const OWN: [Own; 22] = [
    ("latency.p50", |t| quantile(Some(t.latency_ns), 0.5)),
    ("latency.p90", |t| quantile(Some(t.latency_ns), 0.9)),
    ("latency.p99", |t| quantile(Some(t.latency_ns), 0.99)),
    ("latency.p99.9", |t| quantile(Some(t.latency_ns), 0.999)),
    ("latency.p99.99", |t| quantile(Some(t.latency_ns), 0.9999)),
    ("latency.max", |t| quantile(Some(t.latency_ns), 1.0)),
    ("latency-from-send.p50", |t| {
        quantile(Some(t.latency_from_send_ns), 0.5)
    }),
    ("latency-from-send.p99", |t| {
        quantile(Some(t.latency_from_send_ns), 0.99)
    }),
    ("acknowledgement.p50", |t| {
        quantile(t.acknowledgement_ns, 0.5)
    }),
    ("acknowledgement.p99", |t| {
        quantile(t.acknowledgement_ns, 0.99)
    }),
    ("round-trip.p50", |t| quantile(t.round_trip_ns, 0.5)),
    ("round-trip.p99", |t| quantile(t.round_trip_ns, 0.99)),
    ("published-rate", |t| Some(t.published_msgs_per_s)),
    ("delivered-rate", |t| Some(t.delivered_msgs_per_s)),
    ("loss-share", |t| share(t.lost, t.expected)),
    ("duplicated-share", |t| share(t.duplicated, t.delivered)),
    ("reordered-share", |t| share(t.reordered, t.delivered)),
    ("smallest-member-share", |t| Some(extremes(&t.groups)?.0)),
    ("largest-member-share", |t| Some(extremes(&t.groups)?.1)),
    ("cpu-per-message", |t| Metric::CpuPerMessage.figure(t)),
    ("client-cpu-per-message", |t| {
        per_message(t.client_cpu_s.total(), t)
    }),
    ("system-cpu-per-message", |t| {
        per_message(t.system_cpu_s?, t)
    }),
];

const MEMORY: [Own; 2] = [
    ("client-memory", |t| Some(t.client_rss_bytes as f64)),
    ("system-memory", |t| Some(t.system_rss_bytes? as f64)),
];

/// All figures that can be compared.
pub static FIGURES: LazyLock<Vec<Figure>> = LazyLock::new(|| {
    let own = |(name, value): &Own| figure(name, Some(*value));
    let counted = counted::FIGURES.iter().map(|name| figure(name, None));
    let all = OWN.iter().map(own).chain(counted);
    all.chain(MEMORY.iter().map(own)).collect()
});

/// A trial with the figures of a window, those that [`FIGURES`] takes from windows.
fn of_window(window: &WindowFigures) -> Trial {
    Trial {
        latency_ns: window.latency_ns,
        latency_from_send_ns: window.latency_from_send_ns,
        acknowledgement_ns: window.acknowledgement_ns,
        round_trip_ns: window.round_trip_ns,
        published_msgs_per_s: window.published_msgs_per_s,
        delivered_msgs_per_s: window.delivered_msgs_per_s,
        lost: window.lost.unwrap_or(0),
        // No share of lost messages where the number of lost messages is not known.
        expected: window.lost.map_or(0, |_| window.expected),
        duplicated: window.duplicated,
        delivered: window.delivered,
        ..Trial::default()
    }
}

/// The figures that a pair of cells is compared by as a default: latency where traffic is paced
/// (flat out it is that of queues), the delivered rate, loss, and processor time where both sides
/// have it.
pub fn figures_of(pair: &Pair<'_>) -> Vec<Figure> {
    let all = || pair.a.iter().chain(&pair.b);
    let flat_out = all().any(|t| t.workload.flat_out);
    let shown = |figure: &Figure| match &*figure.name {
        "latency.p50" | "latency.p99" => !flat_out && all().any(|t| t.latency_ns.count > 0),
        "round-trip.p50" => all().any(|t| t.round_trip_ns.is_some_and(|d| d.count > 0)),
        "delivered-rate" | "loss-share" => all().any(|t| t.expected > 0),
        "published-rate" => all().all(|t| t.expected == 0),
        "cpu-per-message" => all().all(|t| figure.of(t).is_some()),
        _ => false,
    };
    FIGURES.iter().filter(|f| shown(f)).cloned().collect()
}
