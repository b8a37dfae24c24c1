//! The figures by which sides are compared, in the words of study files.

use std::borrow::Cow;

use pubgauge_results::Trial;
use pubgauge_results::counted::figure;
use pubgauge_results::group::extremes;
use pubgauge_results::model::Distribution;
use pubgauge_results::window::{self, WindowFigures, in_window};

use super::Pair;
use crate::units;
use crate::wins::per_message;

/// Which direction is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less is better.
    Less,
    /// More is better.
    More,
}

/// What a figure is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Messages per second.
    PerSecond,
    /// Microseconds of processor time for a message.
    MicrosecondsPerMessage,
    /// Bytes.
    Bytes,
    /// 0 to 1; a count over a count.
    Share,
    /// A number, as it is or for each message or byte.
    Count,
}

impl Unit {
    /// Whether such a figure is another where system calls are slowed because they are counted.
    pub fn is_of_speed(self) -> bool {
        matches!(
            self,
            Unit::Nanoseconds | Unit::PerSecond | Unit::MicrosecondsPerMessage
        )
    }
}

impl Unit {
    /// Its symbol, for machines.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::PerSecond => "1/s",
            Unit::MicrosecondsPerMessage => "us",
            Unit::Bytes => "B",
            Unit::Share | Unit::Count => "1",
        }
    }
}

/// A figure of a trial.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its name, as in criteria where it can be one; that of a window ends in `@WINDOW`.
    pub name: Cow<'static, str>,
    /// What it is measured in.
    pub unit: Unit,
    /// Which direction is better.
    pub better: Better,
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
            // A quotient of two figures is none of these.
            Some(window) if !OF_WINDOWS.contains(&base) || window.contains('/') => None,
            Some(_) => Some(Figure {
                name: name.to_owned().into(),
                ..known
            }),
        }
    }

    /// Its value; `None` where a trial does not show it: out of sight, or too few messages for the
    /// percentile.
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
            Unit::Count => units::digits(value),
        }
    }
}

const fn less(name: &'static str, unit: Unit, value: fn(&Trial) -> Option<f64>) -> Figure {
    Figure {
        name: Cow::Borrowed(name),
        unit,
        better: Better::Less,
        value,
    }
}

const fn more(name: &'static str, unit: Unit, value: fn(&Trial) -> Option<f64>) -> Figure {
    Figure {
        name: Cow::Borrowed(name),
        unit,
        better: Better::More,
        value,
    }
}

const fn rate(name: &'static str, value: fn(&Trial) -> Option<f64>) -> Figure {
    more(name, Unit::PerSecond, value)
}

const fn time(name: &'static str, value: fn(&Trial) -> Option<f64>) -> Figure {
    less(name, Unit::Nanoseconds, value)
}

const fn counted(name: &'static str, value: fn(&Trial) -> Option<f64>) -> Figure {
    less(name, Unit::Count, value)
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

/// Client and system together, so that a brokerless library can be held against a broker; a system
/// out of sight would look free and has no figure.
fn all_cpu(t: &Trial) -> Option<f64> {
    let system = t
        .system_cpu_s
        .or_else(|| t.system_in_client().then_some(0.0))?;
    per_message(client_cpu(t) + system, t)
}

/// All figures that can be compared.
pub static FIGURES: [Figure; 33] = [
    time("latency.p50", |t| quantile(Some(t.latency_ns), 0.5)),
    time("latency.p90", |t| quantile(Some(t.latency_ns), 0.9)),
    time("latency.p99", |t| quantile(Some(t.latency_ns), 0.99)),
    time("latency.p99.9", |t| quantile(Some(t.latency_ns), 0.999)),
    time("latency.p99.99", |t| quantile(Some(t.latency_ns), 0.9999)),
    time("latency.max", |t| quantile(Some(t.latency_ns), 1.0)),
    time("latency-from-send.p50", |t| {
        quantile(Some(t.latency_from_send_ns), 0.5)
    }),
    time("latency-from-send.p99", |t| {
        quantile(Some(t.latency_from_send_ns), 0.99)
    }),
    time("acknowledgement.p50", |t| {
        quantile(t.acknowledgement_ns, 0.5)
    }),
    time("acknowledgement.p99", |t| {
        quantile(t.acknowledgement_ns, 0.99)
    }),
    time("round-trip.p50", |t| quantile(t.round_trip_ns, 0.5)),
    time("round-trip.p99", |t| quantile(t.round_trip_ns, 0.99)),
    rate("published-rate", |t| Some(t.published_msgs_per_s)),
    rate("delivered-rate", |t| Some(t.delivered_msgs_per_s)),
    less("loss-share", Unit::Share, |t| share(t.lost, t.expected)),
    less("duplicated-share", Unit::Share, |t| {
        share(t.duplicated, t.delivered)
    }),
    less("reordered-share", Unit::Share, |t| {
        share(t.reordered, t.delivered)
    }),
    more("smallest-member-share", Unit::Share, |t| {
        extremes(&t.groups).map(|(smallest, _)| smallest)
    }),
    less("largest-member-share", Unit::Share, |t| {
        extremes(&t.groups).map(|(_, largest)| largest)
    }),
    less("cpu-per-message", Unit::MicrosecondsPerMessage, all_cpu),
    less(
        "client-cpu-per-message",
        Unit::MicrosecondsPerMessage,
        |t| per_message(client_cpu(t), t),
    ),
    less(
        "system-cpu-per-message",
        Unit::MicrosecondsPerMessage,
        |t| per_message(t.system_cpu_s?, t),
    ),
    counted("client-syscalls-per-message", |t| {
        figure(t, "client_syscalls_per_message")
    }),
    counted("system-syscalls-per-message", |t| {
        figure(t, "system_syscalls_per_message")
    }),
    counted("client-send-calls-per-message", |t| {
        figure(t, "client_send_calls_per_message")
    }),
    counted("client-receive-calls-per-message", |t| {
        figure(t, "client_receive_calls_per_message")
    }),
    counted("system-sync-calls", |t| figure(t, "system_sync_calls")),
    counted("system-sync-calls-per-message", |t| {
        figure(t, "system_sync_calls_per_message")
    }),
    counted("interface-bytes-per-payload-byte", |t| {
        figure(t, "interface_bytes_per_payload_byte")
    }),
    counted("interface-packets-per-message", |t| {
        figure(t, "interface_packets_per_message")
    }),
    less("interface-overhead-per-message", Unit::Bytes, |t| {
        figure(t, "interface_overhead_per_message")
    }),
    less("client-memory", Unit::Bytes, |t| {
        Some(t.client_rss_bytes as f64)
    }),
    less("system-memory", Unit::Bytes, |t| {
        t.system_rss_bytes.map(|bytes| bytes as f64)
    }),
];

/// Those that a window has, too.
pub const OF_WINDOWS: [&str; 16] = [
    "latency.p50",
    "latency.p90",
    "latency.p99",
    "latency.p99.9",
    "latency.p99.99",
    "latency.max",
    "latency-from-send.p50",
    "latency-from-send.p99",
    "acknowledgement.p50",
    "acknowledgement.p99",
    "round-trip.p50",
    "round-trip.p99",
    "published-rate",
    "delivered-rate",
    "loss-share",
    "duplicated-share",
];

/// A trial with the figures of a window, as far as [`OF_WINDOWS`] asks for them.
fn of_window(window: &WindowFigures) -> Trial {
    Trial {
        latency_ns: window.latency_ns,
        latency_from_send_ns: window.latency_from_send_ns,
        acknowledgement_ns: window.acknowledgement_ns,
        round_trip_ns: window.round_trip_ns,
        published_msgs_per_s: window.published_msgs_per_s,
        delivered_msgs_per_s: window.delivered_msgs_per_s,
        lost: window.lost.unwrap_or(0),
        // No share of losses where it is not known what is lost.
        expected: window.lost.map_or(0, |_| window.expected),
        duplicated: window.duplicated,
        delivered: window.delivered,
        ..Trial::default()
    }
}

/// What a pair of cells is compared by if nobody says: latency where traffic is paced (flat out it
/// shows queues), the delivered rate, loss, and processor time where both sides show it.
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
