//! Criteria of a study: whether a run met them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::{CriterionOutcome, Status, Trial};

/// How a figure is compared with a criterion's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comparison {
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

impl Comparison {
    /// Whether `figure` compares so with `value`.
    pub fn holds(self, figure: f64, value: f64) -> bool {
        match self {
            Comparison::Less => figure < value,
            Comparison::AtMost => figure <= value,
            Comparison::Greater => figure > value,
            Comparison::AtLeast => figure >= value,
            Comparison::Equal => figure == value,
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Comparison::Less => "<",
            Comparison::AtMost => "<=",
            Comparison::Greater => ">",
            Comparison::AtLeast => ">=",
            Comparison::Equal => "=",
        })
    }
}

/// One criterion, ready to be evaluated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CriterionSpec {
    /// As the study states it; shown to the reader.
    pub text: String,
    /// Name of the figure as in `results.json`, for example `latency_ns.p99`; see [`figure`].
    pub figure: String,
    /// How it is compared.
    pub comparison: Comparison,
    /// With what, in the figure's own unit.
    pub value: f64,
    /// Which trials it bears on; empty means all.
    pub filter: Filter,
}

/// Which trials a criterion bears on. Absent parts let everything through.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Filter {
    /// Names of systems.
    pub systems: Vec<String>,
    /// Names of workloads.
    pub workloads: Vec<String>,
    /// Cells.
    pub cells: Vec<String>,
    /// A flow: its figures are taken instead of the trial's.
    pub flow: Option<String>,
}

impl Filter {
    fn lets_through(&self, trial: &Trial) -> bool {
        let passes =
            |list: &[String], name: &str| list.is_empty() || list.iter().any(|n| n == name);
        passes(&self.systems, &trial.system.name)
            && passes(&self.workloads, &trial.workload.name)
            && passes(&self.cells, &trial.cell)
            && self
                .flow
                .as_ref()
                .is_none_or(|name| trial.flows.iter().any(|f| f.name == *name))
    }
}

/// Figures that are worked out from recorded ones.
pub const DERIVED: [&str; 7] = [
    "verdict",
    "unique",
    "client_cpu_total_s",
    "lost_share",
    "system_cpu_us_per_msg",
    "client_cpu_us_per_msg",
    "duplicated_share",
];

/// Figures that count what happened: they bear on every trial that ran, whatever its verdict,
/// because a lossy trial is exactly what a criterion on loss is about.
const COUNTS: [&str; 11] = [
    "lost",
    "under_way",
    "lost_share",
    "duplicated",
    "duplicated_share",
    "reordered",
    "refused",
    "not_sent",
    "delivered",
    "published",
    "expected",
];

/// A figure of a trial (or of one of its flows) by its name in `results.json`, dots between the
/// parts: `delivered_msgs_per_s`, `latency_ns.p99`, `client_cpu_s.publishers`; or one of
/// [`DERIVED`]. `None` if there is none of that name or the trial has no value for it, as for
/// percentiles of an empty distribution.
pub fn figure(trial: &Trial, flow: Option<&str>, name: &str) -> Option<f64> {
    let value = match flow {
        None => serde_json::to_value(trial),
        Some(flow) => serde_json::to_value(trial.flows.iter().find(|f| f.name == flow)?),
    }
    .expect("a trial is plain data");
    let number = |path: &str| {
        path.split('.')
            .try_fold(&value, |at, key| at.get(key))?
            .as_f64()
    };
    let ratio = |part: Option<f64>, whole: &str| {
        let whole = number(whole)?;
        (whole > 0.0).then_some(part? / whole)
    };
    let unique = number("delivered")
        .zip(number("duplicated"))
        .map(|(all, again)| all - again);
    // Microseconds for each first delivery.
    let each = |seconds: Option<f64>| {
        let unique = unique.filter(|unique| *unique > 0.0)?;
        Some(seconds? * 1e6 / unique)
    };
    match name {
        // As a number, the place in the list of verdicts, so that `= 0` means valid.
        "verdict" => Some(f64::from(trial.verdict.status as u8)),
        "client_cpu_total_s" => {
            Some(number("client_cpu_s.publishers")? + number("client_cpu_s.subscribers")?)
        }
        "lost_share" => ratio(number("lost"), "expected"),
        "duplicated_share" => ratio(number("duplicated"), "delivered"),
        "unique" => unique,
        "system_cpu_us_per_msg" => each(number("system_cpu_s")),
        "client_cpu_us_per_msg" => each(
            number("client_cpu_s.publishers")
                .zip(number("client_cpu_s.subscribers"))
                .map(|(p, s)| p + s),
        ),
        _ => {
            // Format 1 has 0 for the percentiles of nothing.
            if let Some((distribution, part)) = name.rsplit_once('.')
                && part != "count"
                && number(&format!("{distribution}.count")) == Some(0.0)
            {
                return None;
            }
            number(name)
        }
    }
}

/// Whether a figure of that name can exist at all; for the checks of a study file.
pub fn is_figure(name: &str) -> bool {
    let mut values = hdrhistogram::Histogram::<u64>::new(3).expect("three digits are in range");
    values.saturating_record(1);
    let one = crate::model::Distribution::from_histogram(&values);
    let probe = Trial {
        system_cpu_s: Some(1.0),
        system_rss_bytes: Some(1),
        delivered: 1,
        expected: 1,
        latency_ns: one,
        latency_from_send_ns: one,
        send_lag_ns: one,
        noise_ns: one,
        acknowledgement_ns: Some(one),
        round_trip_ns: Some(one),
        ..Trial::default()
    };
    figure(&probe, None, name).is_some()
}

/// Evaluates a criterion over the trials of a run: it is met if every trial that bears on it
/// meets it, and undecided if none bears on it.
///
/// The verdict bears on every trial, counts ([`figure`] names such as `lost`) on every trial that
/// is not broken, all other figures on valid trials alone.
pub fn evaluate(trials: &[Trial], criterion: &CriterionSpec) -> CriterionOutcome {
    let outcome = |met, figures: String| CriterionOutcome {
        criterion: criterion.text.clone(),
        met,
        figures,
    };
    if !is_figure(&criterion.figure) {
        return outcome(
            None,
            format!("there is no figure named {:?}", criterion.figure),
        );
    }
    let matching: Vec<&Trial> = trials
        .iter()
        .filter(|trial| criterion.filter.lets_through(trial))
        .collect();
    if matching.is_empty() {
        return outcome(None, "no trial bears on it".to_owned());
    }
    let counts =
        COUNTS.contains(&criterion.figure.as_str()) || criterion.figure.starts_with("odd.");
    let bears = |trial: &Trial| match trial.verdict.status {
        Status::Valid => true,
        Status::Broken => criterion.figure == "verdict",
        _ => counts,
    };
    let flow = criterion.filter.flow.as_deref();
    let figures: Vec<(&Trial, f64)> = matching
        .iter()
        .filter(|trial| bears(trial))
        .filter_map(|trial| Some((*trial, figure(trial, flow, &criterion.figure)?)))
        .collect();
    let left_out = matching.len() - figures.len();
    let note = match left_out {
        0 => String::new(),
        n => format!(
            "; {n} of {} trials left out: not valid or without this figure",
            matching.len()
        ),
    };
    if figures.is_empty() {
        return outcome(None, format!("no valid trial bears on it{note}"));
    }
    let failing: Vec<&(&Trial, f64)> = figures
        .iter()
        .filter(|(_, figure)| !criterion.comparison.holds(*figure, criterion.value))
        .collect();
    let show = |(trial, figure): &(&Trial, f64)| {
        format!(
            "{} {}, {}, repeat {}: {} = {}",
            trial.system.name,
            trial.system.version,
            trial.workload.name,
            trial.repeat,
            criterion.figure,
            number(*figure)
        )
    };
    if failing.is_empty() {
        // The one that came nearest to failing says most.
        let closest = figures
            .iter()
            .min_by(|a, b| {
                let distance = |f: f64| (f - criterion.value).abs();
                distance(a.1).total_cmp(&distance(b.1))
            })
            .map(show)
            .unwrap_or_default();
        outcome(
            Some(true),
            format!("all {} trials; closest: {closest}{note}", figures.len()),
        )
    } else {
        let shown: Vec<String> = failing.iter().take(5).map(|f| show(f)).collect();
        let more = failing.len().saturating_sub(5);
        let more = if more > 0 {
            format!("; and {more} more")
        } else {
            String::new()
        };
        outcome(Some(false), format!("{}{more}{note}", shown.join("; ")))
    }
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        format!("{value:.0}")
    } else {
        format!("{value:.6}")
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Distribution, FlowFigures, System, Verdict, WorkloadInfo};

    fn trial(system: &str, status: Status, p99: u64, lost: u64) -> Trial {
        let latency_ns = Distribution {
            count: 10,
            p99: Some(p99),
            ..Default::default()
        };
        Trial {
            system: System {
                name: system.into(),
                version: "1".into(),
            },
            workload: WorkloadInfo {
                name: "fleet".into(),
                ..Default::default()
            },
            verdict: Verdict {
                status,
                reasons: Vec::new(),
            },
            repeat: 1,
            latency_ns,
            lost,
            expected: 100,
            delivered: 100 - lost,
            system_cpu_s: Some(0.5),
            flows: vec![FlowFigures {
                name: "meters".into(),
                latency_ns: Distribution {
                    count: 5,
                    p99: Some(2 * p99),
                    ..Default::default()
                },
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    fn criterion(figure: &str, comparison: Comparison, value: f64) -> CriterionSpec {
        CriterionSpec {
            text: format!("{figure} {comparison} {value}"),
            figure: figure.into(),
            comparison,
            value,
            filter: Filter::default(),
        }
    }

    #[test]
    fn met_unmet_and_undecided() {
        let trials = [
            trial("a", Status::Valid, 1_000, 0),
            trial("b", Status::Valid, 5_000, 0),
        ];
        let p99 = |value| criterion("latency_ns.p99", Comparison::AtMost, value);
        assert_eq!(evaluate(&trials, &p99(5_000.0)).met, Some(true));
        let unmet = evaluate(&trials, &p99(4_000.0));
        assert_eq!(unmet.met, Some(false));
        assert_eq!(unmet.figures, "b 1, fleet, repeat 1: latency_ns.p99 = 5000");
        let mut only_a = p99(4_000.0);
        only_a.filter.systems = vec!["a".into()];
        assert_eq!(evaluate(&trials, &only_a).met, Some(true));
        only_a.filter.flow = Some("meters".into());
        assert!(evaluate(&trials, &only_a).figures.contains("= 2000"));
        only_a.filter.flow = Some("cars".into());
        assert_eq!(evaluate(&trials, &only_a).met, None);
        let unknown = evaluate(&trials, &criterion("latency.p99", Comparison::Less, 1.0));
        assert!(unknown.met.is_none() && unknown.figures.contains("no figure named"));
    }

    #[test]
    fn a_trial_that_is_not_valid_cannot_meet_but_its_loss_counts() {
        let trials = [trial("a", Status::Lossy, 10, 5)];
        let p99 = evaluate(
            &trials,
            &criterion("latency_ns.p99", Comparison::Less, 100.0),
        );
        assert_eq!(p99.met, None);
        assert!(
            p99.figures.contains("1 of 1 trials left out"),
            "{}",
            p99.figures
        );
        let lost = evaluate(&trials, &criterion("lost", Comparison::Equal, 0.0));
        assert_eq!(lost.met, Some(false));
        let share = evaluate(&trials, &criterion("lost_share", Comparison::AtMost, 0.05));
        assert_eq!(share.met, Some(true));
        let broken = [trial("a", Status::Broken, 10, 5)];
        assert_eq!(
            evaluate(&broken, &criterion("lost", Comparison::Equal, 0.0)).met,
            None
        );
    }

    #[test]
    fn figures_by_name() {
        let t = trial("a", Status::Valid, 7, 0);
        assert_eq!(figure(&t, None, "latency_ns.p99"), Some(7.0));
        assert_eq!(figure(&t, None, "system_cpu_us_per_msg"), Some(5_000.0));
        assert_eq!(
            figure(&t, None, "send_lag_ns.p99"),
            None,
            "nothing was recorded"
        );
        assert_eq!(figure(&t, None, "send_lag_ns.count"), Some(0.0));
        for name in DERIVED
            .iter()
            .chain(&COUNTS)
            .chain(&["round_trip_ns.p50", "odd.corrupt"])
        {
            assert!(is_figure(name), "{name}");
        }
        assert!(!is_figure("system.name") && !is_figure("latency"));
    }
}
