//! The cost of a device for a system: how its memory, its descriptors and its processor time grow with the connections or the
//! topics of a workload.

use std::collections::BTreeSet;

use pubgauge_figures::{AxisValue, Trial};
use pubgauge_quantities::lists::grouped;
use pubgauge_quantities::stats::{CONFIDENCE, LinearFit, t_quantile};
use schemars::JsonSchema;
use serde::Serialize;

use crate::summary::WorkloadCells;

/// Trials beyond the two that a line takes anyway: with fewer its interval is many times as wide as they lie apart.
const LEAST_FREEDOM: usize = 2;

/// The cost of one more connection or topic, from cells that differ in their number alone.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DeviceCost {
    /// The system.
    pub system: String,
    /// Name of the variant of the settings.
    pub settings: String,
    /// The other values of the grid, which these cells have in common.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<AxisValue>,
    /// The axis in which they differ, as the grid has it: `publishers`.
    pub axis: String,
    /// The thing of which there was one more.
    pub of: CostOf,
    /// Smallest number of these.
    pub least: u64,
    /// Largest number.
    pub most: u64,
    /// Topics that came with each connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topics_with_each: Option<f64>,
    /// Subscriptions that came with each connection or topic; absent where trials do not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscriptions_with_each: Option<f64>,
    /// Messages a second that the system took more for each.
    pub msgs_per_s_with_each: f64,
    /// Valid trials that it is from.
    pub trials: u32,
    /// Resident memory of the system's processes, bytes.
    pub memory_bytes: CostFigure,
    /// Open descriptors of the system's processes.
    pub descriptors: CostFigure,
    /// Processor time of the system, microseconds in each second.
    pub cpu_us_per_s: CostFigure,
}

/// The thing that costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CostOf {
    /// A connection of a client.
    Connection,
    /// A topic.
    Topic,
}

/// The cost of one more in one figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CostFigure {
    /// The slope of a straight line through all trials, with its 95 % interval, which lies above 0.
    Each {
        /// The slope.
        mean: f64,
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// It cannot be told.
    CannotTell(WhyNoCost),
}

/// Why a cost cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WhyNoCost {
    /// The system is no process of its own, or out of sight.
    OutOfSight,
    /// There are fewer than four valid trials of two sizes.
    TooFewTrials,
    /// The interval of the slope contains zero: what trials differ in by chance is as much.
    WithinChance,
    /// The figure falls as the number grows: something else decides it.
    Falls,
}

impl CostFigure {
    /// Through these points (number, figure).
    fn through(points: &[(f64, f64)]) -> CostFigure {
        let freedom = points.len().saturating_sub(2);
        let line = LinearFit::through(points).filter(|_| freedom >= LEAST_FREEDOM);
        let Some(line) = line else {
            return CostFigure::CannotTell(WhyNoCost::TooFewTrials);
        };
        let half = t_quantile(CONFIDENCE, freedom as f64) * line.error;
        let (low, high) = (line.slope - half, line.slope + half);
        if high < 0.0 {
            CostFigure::CannotTell(WhyNoCost::Falls)
        } else if low <= 0.0 {
            CostFigure::CannotTell(WhyNoCost::WithinChance)
        } else {
            CostFigure::Each {
                mean: line.slope,
                low,
                high,
            }
        }
    }
}

/// The costs of a workload's devices: an entry for each axis of its grid that changes how many connections or topics there
/// are, for each system with all else alike. Empty where no such axis was varied.
pub fn of_workload(workload: &WorkloadCells<'_>) -> Vec<DeviceCost> {
    let trials = || workload.cells.iter().flat_map(|cell| cell.valid());
    let all = workload.cells.iter().flat_map(|cell| &cell.trials);
    let axes: BTreeSet<&str> = all
        .flat_map(|trial| trial.axes.iter().map(|axis| axis.name.as_str()))
        .collect();
    let sized = axes
        .into_iter()
        .filter_map(|axis| Some((axis, cost_of(axis)?)));
    sized
        .flat_map(|(axis, of)| {
            let alike = trials().filter_map(|trial| {
                let others = trial.axes.iter().filter(|value| value.name != axis);
                let others: Vec<(&str, &str)> = others
                    .map(|value| (value.name.as_str(), value.value.as_str()))
                    .collect();
                let has_axis = others.len() < trial.axes.len();
                let key = (
                    trial.system.name.as_str(),
                    trial.settings_name.as_str(),
                    others,
                );
                has_axis.then_some((key, trial))
            });
            let groups = grouped(alike).into_iter();
            groups.filter_map(move |(_, trials)| DeviceCost::new(axis, of, &trials))
        })
        .collect()
}

/// The thing of which an axis changes the number.
fn cost_of(axis: &str) -> Option<CostOf> {
    match axis.rsplit('.').next()? {
        "publishers" | "subscribers" => Some(CostOf::Connection),
        "topics" => Some(CostOf::Topic),
        _ => None,
    }
}

impl DeviceCost {
    /// From trials that differ in this axis alone; `None` where all of them have as many.
    fn new(axis: &str, of: CostOf, trials: &[&Trial]) -> Option<DeviceCost> {
        let number = |trial: &Trial| match of {
            CostOf::Connection => trial.connections.made,
            CostOf::Topic => u64::from(trial.workload.topics),
        };
        let numbers = || trials.iter().map(|trial| number(trial));
        let (least, most) = (numbers().min()?, numbers().max()?);
        if least == most {
            return None;
        }
        let points = |figure: &dyn Fn(&Trial) -> Option<f64>| -> Vec<(f64, f64)> {
            let each = trials.iter();
            each.filter_map(|trial| Some((number(trial) as f64, figure(trial)?)))
                .collect()
        };
        let cost = |figure: &dyn Fn(&Trial) -> Option<f64>| {
            let points = points(figure);
            if points.is_empty() {
                return CostFigure::CannotTell(WhyNoCost::OutOfSight);
            }
            CostFigure::through(&points)
        };
        // Between the ends: these follow from the workload, without chance.
        let with_each = |figure: &dyn Fn(&Trial) -> Option<f64>| {
            let mean_at = |end: u64| {
                let at_end = trials.iter().filter(|trial| number(trial) == end);
                pubgauge_quantities::stats::mean(at_end.filter_map(|trial| figure(trial)))
            };
            Some((mean_at(most)? - mean_at(least)?) / (most - least) as f64)
        };
        let first = trials[0];
        let others = first.axes.iter().filter(|value| value.name != axis);
        let is_connection = of == CostOf::Connection;
        Some(DeviceCost {
            system: first.system.name.clone(),
            settings: first.settings_name.clone(),
            axes: others.cloned().collect(),
            axis: axis.to_owned(),
            of,
            least,
            most,
            topics_with_each: is_connection
                .then(|| with_each(&|trial| Some(f64::from(trial.workload.topics))))
                .flatten(),
            subscriptions_with_each: with_each(&|trial| {
                trial.workload.subscriptions.map(|count| count as f64)
            }),
            msgs_per_s_with_each: with_each(&|trial| Some(trial.messages.published_msgs_per_s))
                .unwrap_or(0.0),
            trials: trials.len() as u32,
            memory_bytes: cost(&|trial| trial.system_rss_bytes.map(|bytes| bytes as f64)),
            descriptors: cost(&|trial| trial.system_descriptors.map(|count| count as f64)),
            cpu_us_per_s: cost(&|trial| {
                Some(trial.system_cpu_s? * 1e6 / trial.duration_s).filter(|us| us.is_finite())
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use pubgauge_figures::Results;
    use pubgauge_figures::Status;
    use pubgauge_fixtures::TrialBuilder;

    use super::*;
    use crate::summary::Summary;

    /// A trial with so many publishers, each with a topic, whose system has so much memory.
    fn trial(publishers: u64, repeat: u32, memory: u64) -> Trial {
        let mut trial = TrialBuilder::periodic(100.0, 10.0)
            .axis("publishers", publishers.to_string())
            .repeat(repeat)
            .cpu(0.1, 0.1, 0.02 + publishers as f64 * 30e-6)
            .build();
        trial.connections.made = publishers + 1;
        trial.workload.topics = publishers as u32;
        trial.workload.subscriptions = Some(1);
        trial.system_rss_bytes = Some(memory);
        trial.system_descriptors = Some(12 + publishers);
        trial
    }

    fn costs(trials: Vec<Trial>) -> Vec<DeviceCost> {
        let results = Results {
            trials,
            ..Results::default()
        };
        let summary = Summary::summarize(&results);
        summary.workloads.iter().flat_map(of_workload).collect()
    }

    /// 5,000 bytes for each connection, beside a megabyte, and 3 kB of chance.
    fn planted() -> Vec<Trial> {
        let sizes = [10u64, 100, 1_000];
        let each = sizes.into_iter().flat_map(|size| {
            let chance = [0, 3_000, 1_000];
            (1..).zip(chance).map(move |(repeat, chance)| {
                trial(size, repeat, 1_000_000 + 5_000 * (size + 1) + chance)
            })
        });
        each.collect()
    }

    #[test]
    fn the_cost_of_a_connection_is_the_planted_one() {
        let costs = costs(planted());
        assert_eq!(costs.len(), 1, "{costs:?}");
        let cost = &costs[0];
        assert_eq!(
            (cost.of, cost.axis.as_str()),
            (CostOf::Connection, "publishers")
        );
        assert_eq!((cost.least, cost.most, cost.trials), (11, 1_001, 9));
        assert_eq!(cost.topics_with_each, Some(1.0));
        assert_eq!(cost.subscriptions_with_each, Some(0.0));
        assert_eq!(cost.msgs_per_s_with_each, 0.0);
        let CostFigure::Each { mean, low, high } = cost.memory_bytes else {
            panic!("{cost:?}");
        };
        assert!((mean - 5_000.0).abs() < 1.0, "{mean}");
        assert!(
            low < 5_000.0 && high > 5_000.0 && high - low < 20.0,
            "{low} to {high}"
        );
        let CostFigure::Each { mean, low, high } = cost.descriptors else {
            panic!("{cost:?}");
        };
        assert!(
            [mean, low, high]
                .iter()
                .all(|each| (each - 1.0).abs() < 1e-9)
        );
        let CostFigure::Each { mean, .. } = cost.cpu_us_per_s else {
            panic!("{cost:?}");
        };
        assert!((mean - 3.0).abs() < 1e-6, "{mean}");
    }

    #[test]
    fn what_chance_may_have_made_is_not_told() {
        let mut trials = planted();
        let chance = [4, 1, 9, 2, 8, 3, 7, 5, 6];
        for (trial, chance) in trials.iter_mut().zip(chance) {
            trial.system_rss_bytes = Some(1_000_000 + chance * 4_096);
            trial.system_cpu_s = None;
            trial.system_descriptors = Some(5_000 - trial.connections.made);
        }
        let cost = &costs(trials)[0];
        assert_eq!(
            cost.memory_bytes,
            CostFigure::CannotTell(WhyNoCost::WithinChance)
        );
        assert_eq!(
            cost.cpu_us_per_s,
            CostFigure::CannotTell(WhyNoCost::OutOfSight)
        );
        assert_eq!(cost.descriptors, CostFigure::CannotTell(WhyNoCost::Falls));
    }

    #[test]
    fn three_trials_are_too_few() {
        let few: Vec<Trial> = planted().into_iter().filter(|t| t.repeat == 1).collect();
        let cost = &costs(few)[0];
        assert_eq!(cost.trials, 3);
        assert_eq!(
            cost.memory_bytes,
            CostFigure::CannotTell(WhyNoCost::TooFewTrials)
        );
    }

    #[test]
    fn trials_that_are_not_valid_tell_nothing() {
        let mut trials = planted();
        for trial in &mut trials {
            if trial.repeat == 3 {
                trial.verdict.status = Status::Overloaded;
                trial.system_rss_bytes = Some(90_000_000);
            }
        }
        let cost = &costs(trials)[0];
        assert_eq!(cost.trials, 6);
        assert!(matches!(cost.memory_bytes, CostFigure::Each { .. }));
    }

    /// Cells that differ in something else, too, are lines of their own.
    #[test]
    fn other_systems_and_values_are_told_apart() {
        let mut trials = Vec::new();
        for (system, payload, each) in [
            ("a", "64 B", 2_000),
            ("a", "1 KiB", 3_000),
            ("b", "64 B", 7_000),
        ] {
            for (size, repeat) in [(10, 1), (10, 2), (500, 1), (500, 2)] {
                let mut trial = trial(size, repeat, 100_000 + each * (size + 1));
                trial.system.name = system.into();
                trial.axes.push(AxisValue {
                    name: "payload".into(),
                    value: payload.into(),
                });
                trial.cell = format!("{system} {payload} {size}");
                trials.push(trial);
            }
        }
        let told: Vec<(String, String, i64)> = costs(trials)
            .iter()
            .map(|cost| {
                let CostFigure::Each { mean, .. } = cost.memory_bytes else {
                    panic!("{cost:?}");
                };
                let payload = cost.axes[0].value.clone();
                (cost.system.clone(), payload, mean.round() as i64)
            })
            .collect();
        let expected = [
            ("a", "64 B", 2_000),
            ("a", "1 KiB", 3_000),
            ("b", "64 B", 7_000),
        ];
        let expected =
            expected.map(|(system, payload, each)| (system.into(), payload.into(), each));
        assert_eq!(BTreeSet::from_iter(told), BTreeSet::from(expected));
    }

    #[test]
    fn a_workload_of_one_size_has_no_cost() {
        let alike = (1..5).map(|repeat| {
            TrialBuilder::periodic(100.0, 10.0)
                .axis("payload", "64 B")
                .repeat(repeat)
                .build()
        });
        assert_eq!(costs(alike.collect()), []);
    }
}
