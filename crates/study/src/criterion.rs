//! What must hold: typed, in base units, evaluated where the figures are.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::file::{Bound, CriterionFile};
use crate::units::{Rate, Size, Span, did_you_mean, nearest};
use crate::window;

/// A claim about a figure of some trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Criterion {
    /// The figure that is looked at.
    pub figure: Figure,
    /// How it is compared.
    pub comparison: Comparison,
    /// With what, in the figure's base unit: see [`Figure::unit`].
    pub value: Limit,
    /// Which trials it is about.
    pub filter: Filter,
    /// As it stands in the study, for display.
    pub text: String,
}

/// A figure of a trial, named as in studies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// A number of messages.
    Count(Count),
    /// Messages per second.
    Rate(RateOf),
    /// A quantile or moment of a distribution of times, in nanoseconds.
    Time(Distribution, Statistic),
    /// Lost deliveries as a share of the expected ones, 0 to 1.
    LossShare,
    /// Processor seconds of the client, publishers and subscribers together.
    ClientCpu,
    /// Processor seconds of the system.
    SystemCpu,
    /// Largest resident memory of the client, bytes.
    ClientMemory,
    /// Largest resident memory of the system, bytes.
    SystemMemory,
    /// The verdict.
    Verdict,
}

/// Numbers of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // The names are those of results.json.
pub enum Count {
    Published,
    Refused,
    NotSent,
    UnderWay,
    Delivered,
    Lost,
    Duplicated,
    Reordered,
}

/// Messages per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // The names are those of results.json.
pub enum RateOf {
    Offered,
    Published,
    Delivered,
}

/// Distributions of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // The names are those of results.json.
pub enum Distribution {
    Latency,
    LatencyFromSend,
    SendLag,
    RoundTrip,
    Acknowledgement,
}

/// What is taken of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // The names are those of results.json.
pub enum Statistic {
    Min,
    Mean,
    P50,
    P90,
    P99,
    #[serde(rename = "p99_9")]
    P99_9,
    #[serde(rename = "p99_99")]
    P99_99,
    Max,
}

/// How a figure is compared with its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// Less than.
    Below,
    /// Less than or equal to.
    AtMost,
    /// More than.
    Above,
    /// More than or equal to.
    AtLeast,
    /// Equal to.
    Equals,
}

/// What a figure is compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// A number in the figure's base unit.
    Number(f64),
    /// A verdict, in the words of results.json.
    Verdict(String),
}

/// Which trials a criterion is about; absent means all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Name of the system.
    pub system: Option<String>,
    /// Name of the workload.
    pub workload: Option<String>,
    /// Name of the variant of the settings.
    pub settings: Option<String>,
    /// Name of a flow, whose figures are taken.
    pub flow: Option<String>,
    /// Name of a window of the measurement, whose figures are taken.
    #[serde(default)]
    pub window: Option<String>,
}

impl Filter {
    /// Whether it lets a trial pass.
    pub fn admits(&self, system: &str, workload: &str, settings: &str) -> bool {
        let fits = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|w| w == is);
        fits(&self.system, system)
            && fits(&self.workload, workload)
            && fits(&self.settings, settings)
    }
}

impl Comparison {
    /// Whether `figure` stands in this relation to `limit`.
    pub fn holds(self, figure: f64, limit: f64) -> bool {
        match self {
            Comparison::Below => figure < limit,
            Comparison::AtMost => figure <= limit,
            Comparison::Above => figure > limit,
            Comparison::AtLeast => figure >= limit,
            Comparison::Equals => figure == limit,
        }
    }
}

/// The unit in which a figure and its limit are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of messages.
    Messages,
    /// Messages per second.
    MessagesPerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// Seconds of processor time.
    Seconds,
    /// Bytes.
    Bytes,
    /// 0 to 1.
    Share,
    /// One of [`VERDICTS`].
    Verdict,
}

/// The verdicts, in the words of results.json.
pub const VERDICTS: [&str; 6] = [
    "valid",
    "client-bound",
    "unsteady",
    "overloaded",
    "lossy",
    "broken",
];

const PLAIN: [(&str, Figure); 16] = [
    ("published", Figure::Count(Count::Published)),
    ("refused", Figure::Count(Count::Refused)),
    ("not-sent", Figure::Count(Count::NotSent)),
    ("under-way", Figure::Count(Count::UnderWay)),
    ("delivered", Figure::Count(Count::Delivered)),
    ("lost", Figure::Count(Count::Lost)),
    ("duplicated", Figure::Count(Count::Duplicated)),
    ("reordered", Figure::Count(Count::Reordered)),
    ("offered-rate", Figure::Rate(RateOf::Offered)),
    ("published-rate", Figure::Rate(RateOf::Published)),
    ("delivered-rate", Figure::Rate(RateOf::Delivered)),
    ("loss-share", Figure::LossShare),
    ("client-cpu", Figure::ClientCpu),
    ("system-cpu", Figure::SystemCpu),
    ("client-memory", Figure::ClientMemory),
    ("system-memory", Figure::SystemMemory),
];

const DISTRIBUTIONS: [(&str, Distribution); 5] = [
    ("latency", Distribution::Latency),
    ("latency-from-send", Distribution::LatencyFromSend),
    ("send-lag", Distribution::SendLag),
    ("round-trip", Distribution::RoundTrip),
    ("acknowledgement", Distribution::Acknowledgement),
];

const STATISTICS: [(&str, Statistic); 8] = [
    ("min", Statistic::Min),
    ("mean", Statistic::Mean),
    ("p50", Statistic::P50),
    ("p90", Statistic::P90),
    ("p99", Statistic::P99),
    ("p99.9", Statistic::P99_9),
    ("p99.99", Statistic::P99_99),
    ("max", Statistic::Max),
];

/// A figure's name in studies, also for the one it has in `results.json`: `latency.p99.9` for
/// `latency_ns.p99_9`, `delivered-rate` for `delivered_msgs_per_s`. What follows `@`, a window, is kept.
pub fn figure_name(name: &str) -> String {
    if let (name, Some(window)) = window::split(name) {
        return format!("{}@{window}", figure_name(name));
    }
    if let Some((distribution, statistic)) = name.split_once('.') {
        let distribution = distribution.strip_suffix("_ns").unwrap_or(distribution);
        return format!(
            "{}.{}",
            distribution.replace('_', "-"),
            statistic.replace('_', ".")
        );
    }
    let name = match name {
        "lost_share" => "loss-share",
        "client_cpu_total_s" => "client-cpu",
        name => name,
    };
    let suffixes = [
        ("_msgs_per_s", "-rate"),
        ("_rss_bytes", "-memory"),
        ("_cpu_s", "-cpu"),
    ];
    let known = suffixes.into_iter().find_map(|(suffix, word)| {
        let stem = name.strip_suffix(suffix)?;
        Some(format!("{stem}{word}"))
    });
    known.unwrap_or_else(|| name.to_owned()).replace('_', "-")
}

impl Figure {
    /// The figure of this name, as in studies or as in `results.json`.
    fn named(name: &str) -> Option<Self> {
        let name = &*figure_name(name);
        if name == "verdict" {
            return Some(Figure::Verdict);
        }
        if let Some((_, figure)) = PLAIN.iter().find(|(known, _)| *known == name) {
            return Some(*figure);
        }
        let (distribution, statistic) = name.split_once('.')?;
        let (_, distribution) = DISTRIBUTIONS.iter().find(|(n, _)| *n == distribution)?;
        let (_, statistic) = STATISTICS.iter().find(|(n, _)| *n == statistic)?;
        Some(Figure::Time(*distribution, *statistic))
    }

    /// The figure of this name, a window or not.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Figure::named(window::split(name).0)
    }

    /// Whether there is a figure of this name, as in studies.
    pub fn is_name(name: &str) -> bool {
        figure_name(name) == name && Figure::named(name).is_some()
    }

    /// Every name.
    pub fn names() -> Vec<String> {
        let times = DISTRIBUTIONS
            .iter()
            .flat_map(|(d, _)| STATISTICS.iter().map(move |(s, _)| format!("{d}.{s}")));
        let plain = PLAIN.iter().map(|(name, _)| name.to_string());
        plain.chain(["verdict".to_string()]).chain(times).collect()
    }

    /// The unit in which it and its limit are held.
    pub fn unit(self) -> Unit {
        match self {
            Figure::Count(_) => Unit::Messages,
            Figure::Rate(_) => Unit::MessagesPerSecond,
            Figure::Time(..) => Unit::Nanoseconds,
            Figure::LossShare => Unit::Share,
            Figure::ClientCpu | Figure::SystemCpu => Unit::Seconds,
            Figure::ClientMemory | Figure::SystemMemory => Unit::Bytes,
            Figure::Verdict => Unit::Verdict,
        }
    }
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What is wrong with a criterion: at which key, and what.
pub(crate) struct Fault {
    pub(crate) key: &'static str,
    pub(crate) message: String,
}

impl Criterion {
    /// From its form in the file.
    pub(crate) fn new(file: &CriterionFile) -> Result<Self, Fault> {
        let fault = |key, message| Fault { key, message };
        let (name, window) = window::split(&file.figure);
        let figure = Figure::named(name).ok_or_else(|| {
            let names = Figure::names();
            let near = nearest(name, names.iter().map(String::as_str));
            let mut message = format!("`{name}` is not a figure{}", did_you_mean(near));
            if near.is_none() {
                message.push_str("; docs/study-format.md lists them");
            }
            fault("figure", message)
        })?;
        window::check_figure(Some(figure), &file.figure)
            .map_err(|message| fault("figure", message))?;
        let bounds = [
            ("below", Comparison::Below, &file.below),
            ("at-most", Comparison::AtMost, &file.at_most),
            ("above", Comparison::Above, &file.above),
            ("at-least", Comparison::AtLeast, &file.at_least),
            ("equals", Comparison::Equals, &file.equals),
        ];
        let mut given = bounds
            .into_iter()
            .filter_map(|(key, comparison, bound)| Some((key, comparison, bound.as_ref()?)));
        let Some((key, comparison, bound)) = given.next() else {
            return Err(fault(
                "figure",
                "a criterion needs one of `below`, `at-most`, `above`, `at-least`, `equals`".into(),
            ));
        };
        if let Some((second, ..)) = given.next() {
            return Err(fault(
                second,
                format!("a criterion has one comparison; write a second criterion for `{second}`"),
            ));
        }
        let value = limit(figure, bound).map_err(|message| fault(key, message))?;
        if figure == Figure::Verdict && comparison != Comparison::Equals {
            return Err(fault(
                key,
                "a verdict can only be compared by `equals`".into(),
            ));
        }
        let shown = match bound {
            Bound::Number(number) => number.to_string(),
            Bound::Text(text) => text.clone(),
        };
        let mut text = format!("{} {} {shown}", file.figure, key.replace('-', " "));
        for (what, name) in [
            ("on", &file.system),
            ("in workload", &file.workload),
            ("with settings", &file.settings),
            ("of flow", &file.flow),
        ] {
            if let Some(name) = name {
                text.push_str(&format!(" {what} {name}"));
            }
        }
        Ok(Criterion {
            figure,
            comparison,
            value,
            filter: Filter {
                system: file.system.clone(),
                workload: file.workload.clone(),
                settings: file.settings.clone(),
                flow: file.flow.clone(),
                window: window.map(str::to_owned),
            },
            text,
        })
    }
}

fn limit(figure: Figure, bound: &Bound) -> Result<Limit, String> {
    let number = match (figure.unit(), bound) {
        (Unit::Verdict, Bound::Text(text)) => {
            if !VERDICTS.contains(&text.as_str()) {
                let near = nearest(text, VERDICTS.into_iter());
                return Err(format!(
                    "`{text}` is not a verdict{}; expected one of {}",
                    did_you_mean(near),
                    VERDICTS.join(", ")
                ));
            }
            return Ok(Limit::Verdict(text.clone()));
        }
        (Unit::Messages, Bound::Number(number)) => *number,
        (Unit::Share, Bound::Number(number)) if (0.0..=1.0).contains(number) => *number,
        (Unit::Share, Bound::Text(text)) => text
            .strip_suffix('%')
            .and_then(|percent| percent.trim().parse::<f64>().ok())
            .map(|percent| percent / 100.0)
            .filter(|share| (0.0..=1.0).contains(share))
            .ok_or("expected a share from 0 to 1, or a percentage such as \"0.1%\"")?,
        (Unit::MessagesPerSecond, Bound::Text(text)) => {
            match text.parse::<Rate>().map_err(|e| e.to_string())? {
                Rate::All(per_s) => per_s,
                _ => return Err("expected a rate over all, such as \"10k/s\"".into()),
            }
        }
        (Unit::Nanoseconds, Bound::Text(text)) => {
            text.parse::<Span>().map_err(|e| e.to_string())?.0 as f64
        }
        (Unit::Seconds, Bound::Text(text)) => {
            text.parse::<Span>().map_err(|e| e.to_string())?.0 as f64 / 1e9
        }
        (Unit::Bytes, Bound::Text(text)) => {
            text.parse::<Size>().map_err(|e| e.to_string())?.0 as f64
        }
        (unit, _) => {
            let expected = match unit {
                Unit::Messages => "a plain number of messages",
                Unit::MessagesPerSecond => "a rate in quotes, such as \"10k/s\"",
                Unit::Nanoseconds | Unit::Seconds => "a duration in quotes, such as \"10ms\"",
                Unit::Bytes => "a size in quotes, such as \"100MB\"",
                Unit::Share => "a share from 0 to 1, or a percentage such as \"0.1%\"",
                Unit::Verdict => "a verdict in quotes, such as \"valid\"",
            };
            return Err(format!("expected {expected}"));
        }
    };
    Ok(Limit::Number(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn criterion(figure: &str, key: &str, bound: Bound) -> Criterion {
        let mut file = CriterionFile {
            figure: figure.into(),
            system: Some("mosquitto".into()),
            ..CriterionFile::default()
        };
        match key {
            "below" => file.below = Some(bound),
            "at-least" => file.at_least = Some(bound),
            _ => file.equals = Some(bound),
        }
        Criterion::new(&file).unwrap_or_else(|fault| panic!("{}: {}", fault.key, fault.message))
    }

    #[test]
    fn figures_have_the_names_of_results_too() {
        for (results, study) in [
            ("latency_ns.p99", "latency.p99"),
            ("latency_ns.p99_9", "latency.p99.9"),
            ("latency_from_send_ns.max", "latency-from-send.max"),
            ("delivered_msgs_per_s", "delivered-rate"),
            ("not_sent", "not-sent"),
            ("lost_share", "loss-share"),
            ("client_cpu_total_s", "client-cpu"),
            ("system_rss_bytes", "system-memory"),
        ] {
            assert_eq!(figure_name(results), study);
            assert!(Figure::named(study).is_some(), "{study}");
            assert_eq!(Figure::named(results), Figure::named(study), "{results}");
        }
        for name in Figure::names() {
            assert_eq!(figure_name(&name), name);
        }
        assert_eq!(Figure::named("latency_ns"), None);
    }

    #[test]
    fn limits_are_in_base_units() {
        let text = |text: &str| Bound::Text(text.into());
        let p99 = criterion("latency.p99.9", "below", text("10ms"));
        assert_eq!(p99.value, Limit::Number(10e6));
        assert_eq!(
            p99.figure,
            Figure::Time(Distribution::Latency, Statistic::P99_9)
        );
        assert_eq!(p99.to_string(), "latency.p99.9 below 10ms on mosquitto");
        let rate = criterion("delivered-rate", "at-least", text("10k/s"));
        assert_eq!(rate.value, Limit::Number(10_000.0));
        let memory = criterion("system-memory", "below", text("1MiB"));
        assert_eq!(memory.value, Limit::Number(1_048_576.0));
        let cpu = criterion("client-cpu", "below", text("500ms"));
        assert_eq!(cpu.value, Limit::Number(0.5));
        let share = criterion("loss-share", "below", text("0.1%"));
        assert_eq!(share.value, Limit::Number(0.001));
        let verdict = criterion("verdict", "equals", text("valid"));
        assert_eq!(verdict.value, Limit::Verdict("valid".into()));
    }

    #[test]
    fn every_name_is_a_figure() {
        for name in Figure::names() {
            assert!(Figure::named(&name).is_some(), "{name}");
        }
        assert!(Figure::named("latency").is_none());
    }

    #[test]
    fn comparisons_and_filters() {
        assert!(Comparison::Below.holds(1.0, 2.0) && !Comparison::Below.holds(2.0, 2.0));
        assert!(Comparison::AtMost.holds(2.0, 2.0) && !Comparison::Above.holds(2.0, 2.0));
        assert!(Comparison::AtLeast.holds(2.0, 2.0) && !Comparison::Equals.holds(f64::NAN, 2.0));
        let lost = criterion("lost", "equals", Bound::Number(0.0));
        assert!(lost.filter.admits("mosquitto", "w", "default"));
        assert!(!lost.filter.admits("zeromq", "w", "default"));
    }
}
