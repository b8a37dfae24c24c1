//! What a criterion asks for, as plain data.

use std::fmt;

use pubgauge_quantities::shown::{decimals, digits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::figure::{Figure, Unit};
use crate::model::{Status, Trial};

/// How a figure is compared with a criterion's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Comparator {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
    /// `=`
    Equal,
}

impl Comparator {
    /// Whether `figure` stands in this relation to `value`.
    pub fn holds(self, figure: f64, value: f64) -> bool {
        match self {
            Comparator::Less => figure < value,
            Comparator::AtMost => figure <= value,
            Comparator::Greater => figure > value,
            Comparator::AtLeast => figure >= value,
            Comparator::Equal => figure == value,
        }
    }
}

impl fmt::Display for Comparator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Comparator::Less => "<",
            Comparator::AtMost => "<=",
            Comparator::Greater => ">",
            Comparator::AtLeast => ">=",
            Comparator::Equal => "=",
        })
    }
}

/// One criterion, ready to be evaluated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CriterionSpec {
    /// As the study states it; shown to the reader.
    pub text: String,
    /// Name of the figure as in `results.json`, for example `latency_ns.p99`; see [`crate::figure`].
    pub figure: String,
    /// How it is compared.
    pub comparison: Comparator,
    /// With what, in the figure's own unit.
    pub value: f64,
    /// The trials it applies to; empty means all.
    pub filter: Filter,
}

/// The trials that a criterion applies to. An absent part restricts nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Filter {
    /// Names of systems.
    pub systems: Vec<String>,
    /// Names of workloads.
    pub workloads: Vec<String>,
    /// Names of variants of the settings.
    pub settings: Vec<String>,
    /// A flow: its figures are taken instead of the trial's.
    pub flow: Option<String>,
    /// The constant delay of messages' path over a network, ns (`network.path_ns` of a trial; 0: none): the
    /// criterion's value contains it. Trials without a network pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_ns: Option<u64>,
}

impl Filter {
    /// Whether a criterion with this filter applies to `trial`.
    pub fn lets_through(&self, trial: &Trial) -> bool {
        let passes =
            |list: &[String], name: &str| list.is_empty() || list.iter().any(|n| n == name);
        passes(&self.systems, &trial.system.name)
            && passes(&self.workloads, &trial.workload.name)
            && passes(&self.settings, &trial.settings_name)
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
    pub fn asked(&self) -> Option<&'static Figure> {
        Some(Figure::in_window(&self.figure)?.0)
    }

    /// A value of its figure, with the unit.
    pub fn show(&self, value: f64) -> String {
        let asked = self.asked();
        asked.map_or_else(|| number(value), |asked| show(asked, value))
    }

    /// What it compares with, and what of that is the path's: `200 ms (100 ms + 100 ms of the path)`.
    pub fn limit(&self) -> String {
        let limit = self.show(self.value);
        match self.filter.path_ns {
            None | Some(0) => limit,
            Some(path_ns) => {
                let path = path_ns as f64;
                let [rest, path] = [self.value - path, path].map(|ns| self.show(ns));
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

/// What is asked of a load with a schedule where the study asks nothing: a 99th percentile of latency of at
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
        filter: Filter {
            path_ns,
            ..Filter::default()
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
pub fn show(figure: &Figure, value: f64) -> String {
    let scaled = |units: &[(f64, &str)]| {
        let fits = units.iter().find(|(size, _)| value.abs() >= *size);
        let (size, unit) = fits.or(units.last()).copied().unwrap_or((1.0, ""));
        format!("{} {unit}", number(value / size))
    };
    const BYTES: [(f64, &str); 4] = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")];
    match figure.unit {
        Unit::Verdict => {
            let status = Status::ALL.get(value as usize);
            status.map_or("none", |status| status.word()).to_owned()
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
        Unit::Messages | Unit::Count => number(value),
    }
}

/// A number with at most three digits after the point.
fn number(value: f64) -> String {
    decimals(value, 3)
}
