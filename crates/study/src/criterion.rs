//! Criteria as written in a study, in the names and units of `results.json`.

use pubgauge_figures::criterion::{Comparator, CriterionSpec, TrialFilter};
use pubgauge_figures::figure::{Figure, Unit};
use pubgauge_figures::model::Status;
use pubgauge_quantities::spelling::did_you_mean;
use pubgauge_quantities::{Rate, Size, Span};

use crate::file::{CriterionFile, CriterionValue};
use crate::window;

/// An error in a criterion: the key, and a message.
pub(crate) struct CriterionFault {
    pub(crate) key: &'static str,
    pub(crate) message: String,
}

/// The criterion that a study writes so.
pub(crate) fn criterion(file: &CriterionFile) -> Result<CriterionSpec, CriterionFault> {
    let fault = |key, message| CriterionFault { key, message };
    let (name, window) = window::split(&file.figure);
    let figure = Figure::named(name);
    if figure.is_some_and(|figure| !figure.is_of_one_trial()) {
        let message = format!(
            "`{name}` does not come out of one trial: a claim can ask for it (docs/claims.md)"
        );
        return Err(fault("figure", message));
    }
    let figure = figure.ok_or_else(|| {
        let near = did_you_mean(name, Figure::of_criteria().map(|figure| &*figure.name));
        let mut message = format!("`{name}` is not a figure{near}");
        if near.is_empty() {
            message.push_str("; docs/study-format.md lists them");
        }
        fault("figure", message)
    })?;
    window::check_figure(figure, &file.figure).map_err(|message| fault("figure", message))?;
    if file.flow.is_some() && !figure.of_flows() {
        return Err(fault("flow", of_whole_trials(figure)));
    }
    let (key, comparison, bound) = comparison(file)?;
    let value = limit(figure, bound).map_err(|message| fault(key, message))?;
    if figure.unit == Unit::Verdict && comparison != Comparator::Equal {
        return Err(fault(
            key,
            "a verdict can only be compared by `equals`".into(),
        ));
    }
    let one = |name: &Option<String>| name.iter().cloned().collect();
    Ok(CriterionSpec {
        text: text(file, key, bound),
        figure: match window {
            None => figure.recorded.clone(),
            Some(window) => format!("{}@{window}", figure.recorded),
        },
        comparison,
        value,
        filter: TrialFilter {
            systems: one(&file.system),
            workloads: one(&file.workload),
            settings: one(&file.settings),
            flow: file.flow.clone(),
            path_ns: None,
        },
    })
}

/// The error of a flow beside a figure that no flow has.
pub(crate) fn of_whole_trials(figure: &Figure) -> String {
    format!(
        "`{}` is a figure of a whole trial; without `flow` it is that of all flows together",
        figure.name
    )
}

/// The only comparison of a criterion: its key, and what the figure is compared with.
fn comparison(
    file: &CriterionFile,
) -> Result<(&'static str, Comparator, &CriterionValue), CriterionFault> {
    let bounds = [
        ("below", Comparator::Less, &file.below),
        ("at-most", Comparator::AtMost, &file.at_most),
        ("above", Comparator::Greater, &file.above),
        ("at-least", Comparator::AtLeast, &file.at_least),
        ("equals", Comparator::Equal, &file.equals),
    ];
    let mut given = bounds
        .into_iter()
        .filter_map(|(key, comparison, bound)| Some((key, comparison, bound.as_ref()?)));
    match (given.next(), given.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(CriterionFault {
            key: "figure",
            message: "a criterion needs one of `below`, `at-most`, `above`, `at-least`, `equals`"
                .into(),
        }),
        (_, Some((key, ..))) => Err(CriterionFault {
            key,
            message: format!(
                "a criterion has one comparison; write a second criterion for `{key}`"
            ),
        }),
    }
}

/// A criterion as its reader sees it: `latency.p99 below 10ms on mosquitto`.
fn text(file: &CriterionFile, key: &str, bound: &CriterionValue) -> String {
    let shown = match bound {
        CriterionValue::Number(number) => number.to_string(),
        CriterionValue::Text(text) => text.clone(),
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
    text
}

/// The verdict with this name.
///
/// # Errors
/// The name is wrong; the text lists the names that there are.
fn verdict(name: &str) -> Result<Status, String> {
    let status = Status::ALL
        .into_iter()
        .find(|status| status.as_str() == name);
    status.ok_or_else(|| {
        let names = Status::ALL.map(Status::as_str);
        let near = did_you_mean(name, names);
        format!(
            "`{name}` is not a verdict{near}; expected one of {}",
            names.join(", ")
        )
    })
}

/// The error of the first of these names that no verdict has.
pub(crate) fn unknown(names: &[String]) -> Option<String> {
    names.iter().find_map(|name| verdict(name).err())
}

/// The value of a criterion in the figure's base unit; a verdict by its number.
fn limit(figure: &Figure, bound: &CriterionValue) -> Result<f64, String> {
    Ok(match (figure.unit, bound) {
        (Unit::Verdict, CriterionValue::Text(text)) => f64::from(verdict(text)? as u8),
        (
            Unit::Messages
            | Unit::Deliveries
            | Unit::Count
            | Unit::Cores
            | Unit::BytesPerSecond
            | Unit::MicrosecondsPerMessage,
            CriterionValue::Number(number),
        ) => *number,
        (Unit::MicrosecondsPerMessage, CriterionValue::Text(text)) => {
            text.parse::<Span>().map_err(|e| e.to_string())?.0 as f64 / 1e3
        }
        (Unit::Share, CriterionValue::Number(number)) if (0.0..=1.0).contains(number) => *number,
        (Unit::Share, CriterionValue::Text(text)) => text
            .strip_suffix('%')
            .and_then(|percent| percent.trim().parse::<f64>().ok())
            .map(|percent| percent / 100.0)
            .filter(|share| (0.0..=1.0).contains(share))
            .ok_or("expected a share from 0 to 1, or a percentage such as \"0.1%\"")?,
        (Unit::PerSecond, CriterionValue::Text(text)) => {
            match text.parse::<Rate>().map_err(|e| e.to_string())? {
                Rate::All(per_s) => per_s,
                _ => return Err("expected a rate over all, such as \"10k/s\"".into()),
            }
        }
        (Unit::Nanoseconds, CriterionValue::Text(text)) => {
            text.parse::<Span>().map_err(|e| e.to_string())?.0 as f64
        }
        (Unit::Seconds, CriterionValue::Text(text)) => {
            text.parse::<Span>().map_err(|e| e.to_string())?.0 as f64 / 1e9
        }
        (Unit::Bytes, CriterionValue::Text(text)) => {
            text.parse::<Size>().map_err(|e| e.to_string())?.0 as f64
        }
        (unit, _) => {
            let expected = match unit {
                Unit::Messages | Unit::Deliveries => "a plain number of messages",
                Unit::PerSecond => "a rate in quotes, such as \"10k/s\"",
                Unit::Nanoseconds | Unit::Seconds => "a duration in quotes, such as \"10ms\"",
                Unit::Bytes => "a size in quotes, such as \"100MB\"",
                Unit::Share => "a share from 0 to 1, or a percentage such as \"0.1%\"",
                Unit::Verdict => "a verdict in quotes, such as \"valid\"",
                Unit::MicrosecondsPerMessage => {
                    "a number of microseconds, or a duration in quotes, such as \"50us\""
                }
                Unit::Count | Unit::Cores | Unit::BytesPerSecond => "a number",
            };
            return Err(format!("expected {expected}"));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(figure: &str, key: &str, bound: CriterionValue) -> CriterionSpec {
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
        criterion(&file).unwrap_or_else(|fault| panic!("{}: {}", fault.key, fault.message))
    }

    /// Each figure of docs/results.md is asked for as its table writes it.
    #[test]
    fn every_documented_figure_can_be_asked_for() {
        let page = include_str!("../../../docs/results.md");
        let table = page.split("<!-- figures -->").nth(1).expect("the figures");
        let table = table
            .split("<!-- end of figures -->")
            .next()
            .expect("an end");
        let mut asked = 0;
        for row in table.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = row.split(" | ").collect();
            let names: Vec<&str> = cells[0].split('`').skip(1).step_by(2).collect();
            let (unit, in_criteria) = (cells[1], cells[4].starts_with("criteria"));
            let statistics = match &names[1..] {
                [] => vec![names[0].to_owned()],
                of => of.iter().map(|of| format!("{}{of}", names[0])).collect(),
            };
            let bound = match unit {
                "ns" | "s" => CriterionValue::Text("10ms".into()),
                "1/s" => CriterionValue::Text("10/s".into()),
                "B" => CriterionValue::Text("10B".into()),
                "verdict" => CriterionValue::Text("valid".into()),
                _ => CriterionValue::Number(1.0),
            };
            for name in statistics {
                let file = CriterionFile {
                    figure: name.clone(),
                    equals: Some(bound.clone()),
                    ..CriterionFile::default()
                };
                match criterion(&file) {
                    Ok(_) => assert!(in_criteria, "{name}"),
                    Err(fault) => {
                        assert!(!in_criteria, "{name}: {}", fault.message);
                        assert!(fault.message.contains("claim"), "{}", fault.message);
                    }
                }
                asked += 1;
            }
        }
        assert!(asked > 100, "{asked}");
    }

    #[test]
    fn limits_are_in_base_units() {
        let text = |text: &str| CriterionValue::Text(text.into());
        let p99 = spec("latency.p99.9", "below", text("10ms"));
        assert_eq!(p99.value, 10e6);
        assert_eq!(p99.figure, "latency_ns.p99_9");
        assert_eq!(p99.text, "latency.p99.9 below 10ms on mosquitto");
        assert_eq!(p99.filter.systems, ["mosquitto"]);
        let value = |figure, key, bound| spec(figure, key, text(bound)).value;
        assert_eq!(value("delivered-rate", "at-least", "10k/s"), 10_000.0);
        assert_eq!(value("system-memory", "below", "1MiB"), 1_048_576.0);
        assert_eq!(value("client-cpu", "below", "500ms"), 0.5);
        assert_eq!(value("loss-share", "below", "0.1%"), 0.001);
        assert_eq!(value("connect-time", "below", "5s"), 5.0);
        assert_eq!(value("cpu-per-message", "below", "50us"), 50.0);
        assert_eq!(
            value("verdict", "equals", "lossy"),
            f64::from(Status::Lossy as u8)
        );
    }
}
