//! The cost of one more connection or topic for a system, in a sentence for each system.

use pubgauge_conclusions::device_cost::{self, CostFigure, CostOf, DeviceCost, WhyNoCost};
use pubgauge_quantities::lists::unique;
use pubgauge_quantities::shown;

use crate::summary::WorkloadCells;

/// A cost with its name, and how its values are written.
type NamedCost<'a> = (&'a str, &'a CostFigure, fn(f64) -> String);

/// The costs of a workload's devices; empty where no axis changes how many there are.
pub(crate) fn sentences(workload: &WorkloadCells<'_>) -> Vec<String> {
    let costs = device_cost::of_workload(workload);
    let several = unique(costs.iter().map(|cost| cost.settings.as_str())).len() > 1;
    costs.iter().map(|cost| sentence(cost, several)).collect()
}

fn sentence(cost: &DeviceCost, with_settings: bool) -> String {
    let mut who = vec![cost.system.clone()];
    who.extend(with_settings.then(|| cost.settings.clone()));
    who.extend(
        cost.axes
            .iter()
            .map(|of| format!("{} = {}", of.name, of.value)),
    );
    let (one, all) = match cost.of {
        CostOf::Connection => ("one more connection", "connections"),
        CostOf::Topic => ("one more topic", "topics"),
    };
    let figures: [NamedCost<'_>; 3] = [
        ("memory", &cost.memory_bytes, bytes),
        ("descriptors", &cost.descriptors, shown::number),
        ("processor time a second", &cost.cpu_us_per_s, |us| {
            shown::time(us * 1e3)
        }),
    ];
    let mut told = Vec::new();
    let mut untold: Vec<(WhyNoCost, &str)> = Vec::new();
    for (name, figure, show) in figures {
        match *figure {
            CostFigure::Each { mean, low, high } => {
                told.push(in_words(name, mean, (low, high), show))
            }
            CostFigure::CannotTell(why) => untold.push((why, name)),
        }
    }
    let more = format!(
        "{} valid trials of {} to {} {all}",
        cost.trials,
        shown::count(cost.least),
        shown::count(cost.most)
    );
    let who = who.join(", ");
    let with = with_each(cost);
    let mut sentence = if told.is_empty() {
        format!("{who}: what {one}{with} costs the system cannot be told from {more}")
    } else {
        format!(
            "{who}: {one}{with} costs the system {}, from {more}",
            told.join(", ")
        )
    };
    for (why, name) in untold {
        sentence.push_str(&format!("; {name}: {}", reason(why)));
    }
    sentence
}

fn in_words(name: &str, mean: f64, (low, high): (f64, f64), show: fn(f64) -> String) -> String {
    let (each, low, high) = (show(mean), show(low), show(high));
    let unit = match name {
        "descriptors" if each == "1" => "descriptor".to_owned(),
        "descriptors" => name.to_owned(),
        _ => format!("of {name}"),
    };
    if low == high {
        format!("{each} {unit}")
    } else {
        format!("{each} {unit} ({low} to {high})")
    }
}

/// The things that came with each connection or topic, beside itself.
fn with_each(cost: &DeviceCost) -> String {
    let some = |count: Option<f64>, what: &str| {
        let count = count.filter(|count| count.abs() > 1e-9)?;
        let plural = if shown::number(count) == "1" { "" } else { "s" };
        Some(format!("{} {what}{plural}", shown::number(count)))
    };
    let rate = Some(cost.msgs_per_s_with_each).filter(|per_s| per_s.abs() > 1e-3);
    let parts: Vec<String> = [
        some(cost.topics_with_each, "topic"),
        some(cost.subscriptions_with_each, "subscription"),
        rate.map(|per_s| format!("{} messages a second", shown::three_decimals(per_s))),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!(" (with {})", parts.join(", "))
    }
}

fn bytes(bytes: f64) -> String {
    shown::bytes(bytes.round() as u64)
}

fn reason(why: WhyNoCost) -> &'static str {
    match why {
        WhyNoCost::OutOfSight => "out of sight",
        WhyNoCost::TooFewTrials => {
            "cannot be told from fewer than four valid trials of two sizes; more repeats or sizes tell more"
        }
        WhyNoCost::WithinChance => {
            "cannot be told from what trials differ in by chance; larger sizes or more repeats tell more"
        }
        WhyNoCost::Falls => {
            "cannot be told, because it falls as there are more: something else decides it"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost() -> DeviceCost {
        DeviceCost {
            system: "mosquitto".into(),
            settings: "default".into(),
            axes: Vec::new(),
            axis: "publishers".into(),
            of: CostOf::Connection,
            least: 11,
            most: 1_001,
            topics_with_each: Some(1.0),
            subscriptions_with_each: Some(0.0),
            msgs_per_s_with_each: 0.5,
            trials: 9,
            memory_bytes: CostFigure::Each {
                mean: 5_000.0,
                low: 4_900.0,
                high: 5_100.0,
            },
            descriptors: CostFigure::Each {
                mean: 1.0,
                low: 1.0,
                high: 1.0,
            },
            cpu_us_per_s: CostFigure::CannotTell(WhyNoCost::WithinChance),
        }
    }

    #[test]
    fn costs_have_their_intervals_and_what_came_with_them() {
        assert_eq!(
            sentence(&cost(), false),
            "mosquitto: one more connection (with 1 topic, 0.5 messages a second) costs the system 4.88 KiB of memory \
             (4.79 KiB to 4.98 KiB), 1 descriptor, from 9 valid trials of 11 to 1001 connections; processor time a second: \
             cannot be told from what trials differ in by chance; larger sizes or more repeats tell more"
        );
    }

    #[test]
    fn what_cannot_be_told_is_said() {
        let few = CostFigure::CannotTell(WhyNoCost::TooFewTrials);
        let told = sentence(
            &DeviceCost {
                of: CostOf::Topic,
                topics_with_each: None,
                memory_bytes: few,
                descriptors: few,
                cpu_us_per_s: CostFigure::CannotTell(WhyNoCost::OutOfSight),
                msgs_per_s_with_each: 0.0,
                ..cost()
            },
            true,
        );
        assert!(
            told.starts_with(
                "mosquitto, default: what one more topic costs the system cannot be told"
            ),
            "{told}"
        );
        assert!(
            told.contains("processor time a second: out of sight"),
            "{told}"
        );
    }
}
