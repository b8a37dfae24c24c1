//! The figures by which sides are compared, with their names in study files.

use std::borrow::Cow;
use std::sync::LazyLock;

use pubgauge_results::Trial;
use pubgauge_results::counted::figure as count;
use pubgauge_results::figure::{Better, Figure as Known, Unit};
use pubgauge_results::group::extremes;
use pubgauge_results::model::Distribution;
use pubgauge_results::window::{self, WindowFigures, in_window};

use super::Pair;
use crate::units;
use crate::wins::per_message;

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
    value: fn(&Trial) -> Option<f64>,
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
        let value = match window::split(&self.name).1 {
            None => (self.value)(trial),
            Some(window) => (self.value)(&of_window(in_window(trial, None, window)?)),
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

fn figure(name: &'static str, value: fn(&Trial) -> Option<f64>) -> Figure {
    let known = Known::named(name).expect("results know all figures");
    Figure {
        name: Cow::Borrowed(name),
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

fn client_cpu(t: &Trial) -> f64 {
    t.client_cpu_s.publishers + t.client_cpu_s.subscribers
}

/// Client and system together, so that a brokerless library can be compared with a broker. `None`
/// for a system out of sight, whose cost is not known.
fn all_cpu(t: &Trial) -> Option<f64> {
    let system = t
        .system_cpu_s
        .or_else(|| t.system_in_client().then_some(0.0))?;
    per_message(client_cpu(t) + system, t)
}

/// All figures that can be compared.
pub static FIGURES: LazyLock<[Figure; 33]> = LazyLock::new(|| {
    [
        figure("latency.p50", |t| quantile(Some(t.latency_ns), 0.5)),
        figure("latency.p90", |t| quantile(Some(t.latency_ns), 0.9)),
        figure("latency.p99", |t| quantile(Some(t.latency_ns), 0.99)),
        figure("latency.p99.9", |t| quantile(Some(t.latency_ns), 0.999)),
        figure("latency.p99.99", |t| quantile(Some(t.latency_ns), 0.9999)),
        figure("latency.max", |t| quantile(Some(t.latency_ns), 1.0)),
        figure("latency-from-send.p50", |t| {
            quantile(Some(t.latency_from_send_ns), 0.5)
        }),
        figure("latency-from-send.p99", |t| {
            quantile(Some(t.latency_from_send_ns), 0.99)
        }),
        figure("acknowledgement.p50", |t| {
            quantile(t.acknowledgement_ns, 0.5)
        }),
        figure("acknowledgement.p99", |t| {
            quantile(t.acknowledgement_ns, 0.99)
        }),
        figure("round-trip.p50", |t| quantile(t.round_trip_ns, 0.5)),
        figure("round-trip.p99", |t| quantile(t.round_trip_ns, 0.99)),
        figure("published-rate", |t| Some(t.published_msgs_per_s)),
        figure("delivered-rate", |t| Some(t.delivered_msgs_per_s)),
        figure("loss-share", |t| share(t.lost, t.expected)),
        figure("duplicated-share", |t| share(t.duplicated, t.delivered)),
        figure("reordered-share", |t| share(t.reordered, t.delivered)),
        figure("smallest-member-share", |t| {
            extremes(&t.groups).map(|(smallest, _)| smallest)
        }),
        figure("largest-member-share", |t| {
            extremes(&t.groups).map(|(_, largest)| largest)
        }),
        figure("cpu-per-message", all_cpu),
        figure("client-cpu-per-message", |t| per_message(client_cpu(t), t)),
        figure("system-cpu-per-message", |t| {
            per_message(t.system_cpu_s?, t)
        }),
        figure("client-syscalls-per-message", |t| {
            count(t, "client_syscalls_per_message")
        }),
        figure("system-syscalls-per-message", |t| {
            count(t, "system_syscalls_per_message")
        }),
        figure("client-send-calls-per-message", |t| {
            count(t, "client_send_calls_per_message")
        }),
        figure("client-receive-calls-per-message", |t| {
            count(t, "client_receive_calls_per_message")
        }),
        figure("system-sync-calls", |t| count(t, "system_sync_calls")),
        figure("system-sync-calls-per-message", |t| {
            count(t, "system_sync_calls_per_message")
        }),
        figure("interface-bytes-per-payload-byte", |t| {
            count(t, "interface_bytes_per_payload_byte")
        }),
        figure("interface-packets-per-message", |t| {
            count(t, "interface_packets_per_message")
        }),
        figure("interface-overhead-per-message", |t| {
            count(t, "interface_overhead_per_message")
        }),
        figure("client-memory", |t| Some(t.client_rss_bytes as f64)),
        figure("system-memory", |t| {
            t.system_rss_bytes.map(|bytes| bytes as f64)
        }),
    ]
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
