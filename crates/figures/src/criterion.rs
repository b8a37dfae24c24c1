//! Criteria as a study asks for them: their data, the figures and trials that they are about, and those that are asked for by
//! default.

pub(crate) mod spec;

use pubgauge_quantities::shown::{decimals, digits};

pub use self::spec::{Comparator, CriterionSpec, TrialFilter};
use crate::figure::{Figure, Unit};
use crate::model::{Status, Trial};

impl TrialFilter {
    /// Whether trials of a system with a workload and settings may be among those that it lets through.
    pub fn names_cell(&self, system: &str, workload: &str, settings: &str) -> bool {
        let passes =
            |list: &[String], name: &str| list.is_empty() || list.iter().any(|n| n == name);
        passes(&self.systems, system)
            && passes(&self.workloads, workload)
            && passes(&self.settings, settings)
    }

    /// Whether a criterion with this filter applies to `trial`.
    pub fn lets_through(&self, trial: &Trial) -> bool {
        let (system, workload) = (&trial.system.name, &trial.workload.name);
        self.names_cell(system, workload, &trial.settings_name)
            && (self.path_ns.zip(trial.network.as_ref()))
                .is_none_or(|(ns, on)| ns == on.path_ns.unwrap_or(0))
            && self
                .flow
                .as_ref()
                .is_none_or(|name| trial.flows.iter().any(|f| f.name == *name))
    }
}

impl CriterionSpec {
    /// The figure that it asks for; `None` if there is none of that name, as in another version's results.
    pub fn catalogued_figure(&self) -> Option<&'static Figure> {
        Some(Figure::in_window(&self.figure)?.0)
    }

    /// A value of its figure, with the unit.
    pub fn format_value(&self, value: f64) -> String {
        let asked = self.catalogued_figure();
        asked.map_or_else(|| number(value), |asked| show_value(asked, value))
    }

    /// The value that it compares with, and the path's part of it: `200 ms (100 ms + 100 ms of the path)`.
    pub fn limit(&self) -> String {
        let limit = self.format_value(self.value);
        match self.filter.path_ns {
            None | Some(0) => limit,
            Some(path_ns) => {
                let path = path_ns as f64;
                let [rest, path] = [self.value - path, path].map(|ns| self.format_value(ns));
                format!("{limit} ({rest} + {path} of the path)")
            }
        }
    }
}

/// Longest span of gathered messages (`pacing-within`) with which latency still counts from the intended time by
/// default, ns.
const GATHERED_NS: u64 = 10_000_000;

/// The longest 99th percentile of latency by default, beside the path, ns.
const BY_DEFAULT_NS: f64 = 100e6;

/// The demand on a load with a schedule where the study has none: a 99th percentile of latency of at
/// most 100 ms on top of the constant delay of the path (`path_ns`; `None`: on any), counted from the intended time.
/// Where messages are gathered for more than 10 ms (`pacing_within_ns`), it counts from the send: until then they wait
/// because the study asks for it.
pub fn by_default(pacing_within_ns: u64, path_ns: Option<u64>) -> CriterionSpec {
    let (figure, words) = if pacing_within_ns > GATHERED_NS {
        ("latency_from_send_ns.p99", "latency from send p99")
    } else {
        ("latency_ns.p99", "latency p99")
    };
    let spec = CriterionSpec {
        text: String::new(),
        figure: figure.to_owned(),
        comparison: Comparator::AtMost,
        value: BY_DEFAULT_NS + path_ns.unwrap_or(0) as f64,
        filter: TrialFilter {
            path_ns,
            ..TrialFilter::default()
        },
    };
    CriterionSpec {
        text: format!("{words} {} {}", spec.comparison, spec.limit()),
        ..spec
    }
}

/// [`by_default`] of a trial: of how its messages were gathered, and the path that they took.
pub fn default_for(trial: &Trial) -> CriterionSpec {
    let path_ns = trial.network.as_ref().and_then(|on| on.path_ns);
    by_default(trial.circumstances.client.pacing_within, path_ns)
}

/// A value of a figure with its unit: 4.2e6 of `latency.p99` is `4.2 ms`.
pub fn show_value(figure: &Figure, value: f64) -> String {
    let scaled = |units: &[(f64, &str)]| {
        let fits = units.iter().find(|(size, _)| value.abs() >= *size);
        let (size, unit) = fits.or(units.last()).copied().unwrap_or((1.0, ""));
        format!("{} {unit}", number(value / size))
    };
    const BYTES: [(f64, &str); 4] = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")];
    match figure.unit {
        Unit::Verdict => {
            let status = Status::ALL.get(value as usize);
            status.map_or("none", |status| status.as_str()).to_owned()
        }
        Unit::Nanoseconds => scaled(&[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")]),
        Unit::PerSecond => scaled(&[(1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")]).replace(" /s", "/s"),
        Unit::Bytes => scaled(&BYTES),
        Unit::BytesPerSecond => format!("{}/s", scaled(&BYTES)),
        Unit::Share => {
            let percent = value * 100.0;
            // Three digits after the point would hide a loss of one in a million.
            match number(percent).as_str() {
                "0" if percent != 0.0 => format!("{} %", digits(percent)),
                shown => format!("{shown} %"),
            }
        }
        Unit::Seconds => format!("{} s", number(value)),
        Unit::Cores => format!("{} cores", number(value)),
        Unit::MicrosecondsPerMessage => format!("{} µs a message", number(value)),
        Unit::Messages | Unit::Deliveries | Unit::Count => number(value),
    }
}

/// A number with at most three digits after the point.
fn number(value: f64) -> String {
    decimals(value, 3)
}
