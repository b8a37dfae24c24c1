//! Criteria: typed, in base units; evaluated where the figures are known.

use std::fmt;

use pubgauge_quantities::spelling::did_you_mean;
use pubgauge_quantities::{Rate, Size, Span};
use pubgauge_results::criterion::Comparison;
use pubgauge_results::figure::{Asked, Figure, Unit};

use crate::file::{Bound, CriterionFile};
use crate::window;

/// A condition on a figure of some trials.
#[derive(Clone, Debug, PartialEq)]
pub struct Criterion {
    pub figure: &'static Figure,
    /// How it is compared.
    pub comparison: Comparison,
    /// The limit, in the figure's base unit: see [`Figure`]'s `unit`.
    pub value: Limit,
    /// Which trials it is about.
    pub filter: Filter,
    /// As written in the study, for display.
    pub text: String,
}

/// What a figure is compared with.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// A number in the figure's base unit.
    Number(f64),
    /// A verdict, in the words of results.json.
    Verdict(String),
}

/// Which trials a criterion is about; absent means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    pub window: Option<String>,
}

impl Filter {
    /// Whether the criterion applies to a trial.
    pub fn admits(&self, system: &str, workload: &str, settings: &str) -> bool {
        let fits = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|w| w == is);
        fits(&self.system, system)
            && fits(&self.workload, workload)
            && fits(&self.settings, settings)
    }
}

/// The verdicts, in the words of results.json.
pub const VERDICTS: [&str; 8] = [
    "valid",
    "host-bound",
    "too-short",
    "client-bound",
    "unsteady",
    "overloaded",
    "lossy",
    "broken",
];

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// An error in a criterion: the key, and a message.
pub(crate) struct Fault {
    pub(crate) key: &'static str,
    pub(crate) message: String,
}

impl Criterion {
    /// From its form in the file.
    pub(crate) fn new(file: &CriterionFile) -> Result<Self, Fault> {
        let fault = |key, message| Fault { key, message };
        let (name, window) = window::split(&file.figure);
        let figure = Figure::named(name).filter(|figure| figure.asked == Asked::InCriteria);
        let figure = figure.ok_or_else(|| {
            let near = did_you_mean(name, Figure::of_criteria().map(|figure| &*figure.name));
            let mut message = format!("`{name}` is not a figure{near}");
            if near.is_empty() {
                message.push_str("; docs/study-format.md lists them");
            }
            fault("figure", message)
        })?;
        window::check_figure(figure, &file.figure).map_err(|message| fault("figure", message))?;
        let bounds = [
            ("below", Comparison::Less, &file.below),
            ("at-most", Comparison::AtMost, &file.at_most),
            ("above", Comparison::Greater, &file.above),
            ("at-least", Comparison::AtLeast, &file.at_least),
            ("equals", Comparison::Equal, &file.equals),
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
        if figure.unit == Unit::Verdict && comparison != Comparison::Equal {
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

fn limit(figure: &Figure, bound: &Bound) -> Result<Limit, String> {
    let number = match (figure.unit, bound) {
        (Unit::Verdict, Bound::Text(text)) => {
            if !VERDICTS.contains(&text.as_str()) {
                let near = did_you_mean(text, VERDICTS);
                return Err(format!(
                    "`{text}` is not a verdict{near}; expected one of {}",
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
        (Unit::PerSecond, Bound::Text(text)) => {
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
                Unit::PerSecond => "a rate in quotes, such as \"10k/s\"",
                Unit::Nanoseconds | Unit::Seconds => "a duration in quotes, such as \"10ms\"",
                Unit::Bytes => "a size in quotes, such as \"100MB\"",
                Unit::Share => "a share from 0 to 1, or a percentage such as \"0.1%\"",
                Unit::Verdict => "a verdict in quotes, such as \"valid\"",
                Unit::Count | Unit::Cores | Unit::BytesPerSecond | Unit::MicrosecondsPerMessage => {
                    "a number"
                }
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
    fn limits_are_in_base_units() {
        let text = |text: &str| Bound::Text(text.into());
        let p99 = criterion("latency.p99.9", "below", text("10ms"));
        assert_eq!(p99.value, Limit::Number(10e6));
        assert_eq!(p99.figure.recorded, "latency_ns.p99_9");
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
    fn comparisons_and_filters() {
        assert!(Comparison::Less.holds(1.0, 2.0) && !Comparison::Less.holds(2.0, 2.0));
        assert!(Comparison::AtMost.holds(2.0, 2.0) && !Comparison::Greater.holds(2.0, 2.0));
        assert!(Comparison::AtLeast.holds(2.0, 2.0) && !Comparison::Equal.holds(f64::NAN, 2.0));
        let lost = criterion("lost", "equals", Bound::Number(0.0));
        assert!(lost.filter.admits("mosquitto", "w", "default"));
        assert!(!lost.filter.admits("zeromq", "w", "default"));
    }
}
