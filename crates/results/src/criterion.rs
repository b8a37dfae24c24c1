//! Criteria of a study: whether a run met them.

pub(crate) mod spec;

use serde_json::Value;

use crate::counted;
use crate::distribution::{TooFew, quotable};
use crate::group;
use crate::model::{Circumstances, CriterionOutcome, Status, Trial, WorkerLoad};
use crate::processors;
use crate::verdict::failed;
use crate::window::{self, WindowFigures, in_window};
pub use spec::{Comparison, CriterionSpec, Filter};

impl Filter {
    /// Whether a criterion with this filter applies to `trial`.
    pub fn lets_through(&self, trial: &Trial) -> bool {
        let passes =
            |list: &[String], name: &str| list.is_empty() || list.iter().any(|n| n == name);
        // A trial of a search has its load appended to its cell.
        let of_search = || {
            let rest = |cell: &String| trial.cell.strip_prefix(cell.as_str());
            let mut cells = self.cells.iter().filter(|_| trial.search.is_some());
            cells.any(|cell| rest(cell).is_some_and(|rest| rest.starts_with(" / ")))
        };
        passes(&self.systems, &trial.system.name)
            && passes(&self.workloads, &trial.workload.name)
            && (passes(&self.cells, &trial.cell) || of_search())
            && self
                .flow
                .as_ref()
                .is_none_or(|name| trial.flows.iter().any(|f| f.name == *name))
    }
}

/// Figures that are computed from recorded ones, beside those that are [counted](counted::FIGURES).
pub const DERIVED: [&str; 11] = [
    "verdict",
    "unique",
    "client_cpu_total_s",
    "client_cpu_share",
    "system_cpu_share",
    "lost_share",
    "system_cpu_us_per_msg",
    "client_cpu_us_per_msg",
    "duplicated_share",
    "smallest_member_share",
    "largest_member_share",
];

/// Figures that are counts. They apply to every trial that ran, whatever its verdict, because a
/// criterion on loss is about lossy trials.
const COUNTS: [&str; 13] = [
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
    "smallest_member_share",
    "largest_member_share",
];

/// A figure of a trial (or of one of its flows) by its name in `results.json`, with dots between the parts:
/// `delivered_msgs_per_s`, `latency_ns.p99`, `client_cpu_s.publishers`; or one of [`DERIVED`] or of
/// [`counted::FIGURES`]. After `@` the name of a window: `latency_ns.p99@during`; a figure of the whole trial, such as
/// the verdict, has no windows. `None` if there is no figure of that name or the trial has no value for it, as for
/// percentiles that no value lies beyond.
pub fn figure(trial: &Trial, flow: Option<&str>, name: &str) -> Option<f64> {
    look_up(trial, flow, name).ok()
}

/// A figure as [`figure`] finds it; `Err(Some)` where it is a percentile of too few values.
fn look_up(trial: &Trial, flow: Option<&str>, name: &str) -> Result<f64, Option<TooFew>> {
    let (name, window) = window::split(name);
    let of_flow = |flow: &str| trial.flows.iter().find(|f| f.name == flow);
    let value = match (flow, window) {
        (None, None) => serde_json::to_value(trial),
        (Some(flow), None) => serde_json::to_value(of_flow(flow).ok_or(None)?),
        (flow, Some(window)) => serde_json::to_value(in_window(trial, flow, window).ok_or(None)?),
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
    let client_cpu =
        || Some(number("client_cpu_s.publishers")? + number("client_cpu_s.subscribers")?);
    let whole = flow.is_none() && window.is_none();
    let shares = || processors::shares(trial).filter(|_| whole);
    let members = || group::extremes(&trial.groups).filter(|_| whole);
    // Microseconds per first delivery.
    let each = |seconds: Option<f64>| {
        let unique = unique.filter(|unique| *unique > 0.0)?;
        Some(seconds? * 1e6 / unique)
    };
    let found = match name {
        // As a number, the place in the list of verdicts, so that `= 0` means valid.
        "verdict" if window.is_some() => None,
        "verdict" => Some(f64::from(trial.verdict.status as u8)),
        "client_cpu_total_s" => client_cpu(),
        "lost_share" => ratio(number("lost"), "expected"),
        "duplicated_share" => ratio(number("duplicated"), "delivered"),
        "unique" => unique,
        // Figures of the whole trial only, as the following ones are.
        _ if counted::FIGURES.contains(&name) => counted::figure(trial, name).filter(|_| whole),
        "client_cpu_share" => shares().map(|of| of.client),
        "system_cpu_share" => shares().and_then(|of| of.system),
        "smallest_member_share" => members().map(|of| of.0),
        "largest_member_share" => members().map(|of| of.1),
        "system_cpu_us_per_msg" => each(number("system_cpu_s")),
        "client_cpu_us_per_msg" => each(client_cpu()),
        _ => {
            if let Some((distribution, part)) = name.rsplit_once('.')
                && let Some(distribution) = value.get(distribution)
            {
                quotable(distribution, part).map_err(Some)?;
                // Format 1 has 0 for what an empty distribution does not have.
                let empty = distribution.get("count") == Some(&Value::from(0));
                if empty && part != "count" {
                    return Err(None);
                }
            }
            number(name)
        }
    };
    found.ok_or(None)
}

/// The name in `results.json` of a figure as studies name it: `latency_ns.p99_9` for `latency.p99.9`,
/// `delivered_msgs_per_s` for `delivered-rate`. What follows `@`, a window, is kept.
pub fn recorded_name(name: &str) -> String {
    if let (name, Some(window)) = window::split(name) {
        return format!("{}@{window}", recorded_name(name));
    }
    let plain = name.replace('-', "_");
    if let Some((distribution, statistic)) = plain.split_once('.') {
        return format!("{distribution}_ns.{}", statistic.replace('.', "_"));
    }
    match plain.as_str() {
        "loss_share" => return "lost_share".into(),
        "client_cpu" => return "client_cpu_total_s".into(),
        "system_cpu" => return "system_cpu_s".into(),
        _ => {}
    }
    let suffixes = [("_rate", "_msgs_per_s"), ("_memory", "_rss_bytes")];
    let known = suffixes
        .into_iter()
        .find_map(|(suffix, recorded)| Some(format!("{}{recorded}", plain.strip_suffix(suffix)?)));
    known.unwrap_or(plain)
}

/// Whether a figure of that name can exist; for the checks of a study file.
pub fn is_figure(name: &str) -> bool {
    let mut values = hdrhistogram::Histogram::<u64>::new(3).expect("three digits are in range");
    // As many as the rarest percentile takes.
    values.saturating_record_n(1, 10_000);
    let one = crate::model::Distribution::from_histogram(&values);
    let probe = Trial {
        duration_s: 1.0,
        circumstances: Circumstances {
            cores: 2,
            ..Circumstances::default()
        },
        worker_load: WorkerLoad {
            machine_others: Some(0.0),
            ..WorkerLoad::default()
        },
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
        groups: vec![group::GroupFigures {
            deliveries: vec![1],
            ..group::GroupFigures::default()
        }],
        ..Trial::default()
    };
    let window = WindowFigures {
        name: window::split(name).1.unwrap_or_default().to_owned(),
        delivered: 1,
        expected: 1,
        lost: Some(0),
        under_way: Some(0),
        latency_ns: one,
        latency_from_send_ns: one,
        send_lag_ns: one,
        acknowledgement_ns: Some(one),
        round_trip_ns: Some(one),
        system_cpu_s: Some(1.0),
        ..WindowFigures::default()
    };
    let probe = Trial {
        windows: vec![window],
        ..counted::everything(probe)
    };
    figure(&probe, None, name).is_some()
}

/// What one trial says of a criterion.
#[derive(Clone, Debug, PartialEq)]
pub struct Bearing {
    /// Whether it meets the criterion; `None` if that cannot be decided.
    pub met: Option<bool>,
    /// The figure with its unit, or why there is none to compare.
    pub figure: String,
}

/// Longest span of gathered messages (`pacing-within`) with which latency still counts from the intended time by
/// default, ns.
const GATHERED_NS: u64 = 10_000_000;

/// What is asked of a load with a schedule where the study asks nothing: a 99th percentile of latency of at
/// most 100 ms, counted from the intended time. Where messages are gathered for more than 10 ms
/// (`pacing_within_ns`), it counts from the send: until then they wait because the study asks for it.
pub fn by_default(pacing_within_ns: u64) -> CriterionSpec {
    let (figure, text) = match pacing_within_ns > GATHERED_NS {
        true => (
            "latency_from_send_ns.p99",
            "latency from send p99 <= 100 ms",
        ),
        false => ("latency_ns.p99", "latency p99 <= 100 ms"),
    };
    CriterionSpec {
        text: text.to_owned(),
        figure: figure.to_owned(),
        comparison: Comparison::AtMost,
        value: 100e6,
        filter: Filter::default(),
    }
}

/// What a trial says of a criterion. The first of these that applies:
///
/// - The verdict is compared in every trial.
/// - A valid trial is compared; undecided where it lacks the figure (too few messages for a
///   percentile).
/// - A broken trial in which the system [failed] fails an upper bound on latency (also of round trips and
///   acknowledgements), loss or duplicates, and a lower bound on a rate; any other broken one measured nothing that
///   can be compared, and is undecided.
/// - Counts ([`figure`] names such as `lost`) are compared.
/// - An overloaded or lossy trial fails such bounds too, whatever it measured.
/// - A client-bound trial meets a lower bound on a rate that it reached nevertheless.
/// - All other trials that are not valid are undecided.
pub fn bearing(trial: &Trial, criterion: &CriterionSpec) -> Bearing {
    use Comparison::{AtLeast, AtMost, Equal, Greater, Less};
    let name = criterion.figure.as_str();
    let status = trial.verdict.status;
    let looked_up = look_up(trial, criterion.filter.flow.as_deref(), name);
    let value = looked_up.ok();
    let compared = |value: f64| Bearing {
        met: Some(criterion.comparison.holds(value, criterion.value)),
        figure: show(name, value),
    };
    let said = |met, what: String| Bearing { met, figure: what };
    let of = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    let counts = COUNTS.contains(&window::split(name).0) || name.starts_with("odd.");
    let upper = matches!(criterion.comparison, Less | AtMost | Equal);
    let lower = matches!(criterion.comparison, Greater | AtLeast);
    let demands = upper
        && of(&[
            "latency",
            "round_trip",
            "acknowledgement",
            "lost",
            "duplicated",
        ])
        || lower && of(&["msgs_per_s"]);
    let known = match looked_up {
        Ok(value) => show(name, value),
        Err(Some(few)) => few.to_string(),
        Err(None) => "no such figure".to_owned(),
    };
    let not_valid = format!("{known}, {}", status.word());
    match (status, value) {
        (Status::Valid, Some(value)) => compared(value),
        (_, Some(value)) if name == "verdict" => compared(value),
        (Status::Valid, None) => said(
            None,
            match looked_up {
                Err(Some(few)) => format!("not measured: {few}"),
                _ => "not measured: there was none, or it is out of sight".to_owned(),
            },
        ),
        (Status::Broken, _) => said((demands && failed(trial)).then_some(false), "broken".into()),
        (_, Some(value)) if counts => compared(value),
        (Status::Overloaded | Status::Lossy, _) if demands => said(Some(false), not_valid),
        (Status::ClientBound, Some(value)) if lower && of(&["msgs_per_s"]) => {
            let reached = criterion.comparison.holds(value, criterion.value);
            said(
                reached.then_some(true),
                format!("{} or more", show(name, value)),
            )
        }
        _ => said(None, not_valid),
    }
}

/// Evaluates a criterion over the trials of a run: not met if a trial fails it, undecided if a
/// trial is undecided or none applies, met otherwise.
pub fn evaluate(trials: &[Trial], criterion: &CriterionSpec) -> CriterionOutcome {
    let outcome = |met, figures: String| CriterionOutcome {
        criterion: criterion.text.clone(),
        met,
        figures,
    };
    if !is_figure(&criterion.figure) {
        let none = format!("there is no figure named {:?}", criterion.figure);
        return outcome(None, none);
    }
    let matching = trials
        .iter()
        .filter(|trial| criterion.filter.lets_through(trial));
    let said: Vec<(&Trial, Bearing)> = matching.map(|t| (t, bearing(t, criterion))).collect();
    if said.is_empty() {
        return outcome(None, "no trial bears on it".to_owned());
    }
    let show = |(trial, bearing): &(&Trial, Bearing)| {
        let mut words = vec![
            format!("{} {}", trial.system.name, trial.system.version),
            trial.workload.name.clone(),
        ];
        if !["", "default"].contains(&trial.settings_name.as_str()) {
            words.push(trial.settings_name.clone());
        }
        words.extend(trial.axes.iter().map(|axis| {
            let name = axis.name.rsplit('.').next().unwrap_or(&axis.name);
            format!("{name} = {}", axis.value)
        }));
        let words = words.join(", ");
        format!("{words}, repeat {}: {}", trial.repeat, bearing.figure)
    };
    for met in [Some(false), None] {
        let some: Vec<String> = said.iter().filter(|s| s.1.met == met).map(show).collect();
        if some.is_empty() {
            continue;
        }
        let more = match some.len().saturating_sub(5) {
            0 => String::new(),
            n => format!("; and {n} more"),
        };
        let shown = some[..some.len().min(5)].join("; ");
        let undecided = if met.is_none() { "cannot tell: " } else { "" };
        return outcome(met, format!("{undecided}{shown}{more}"));
    }
    // The trial that came nearest to failing is shown.
    let flow = criterion.filter.flow.as_deref();
    let distance = |trial: &Trial| {
        let value = figure(trial, flow, &criterion.figure);
        value.map_or(f64::INFINITY, |value| (value - criterion.value).abs())
    };
    let closest = said
        .iter()
        .min_by(|a, b| distance(a.0).total_cmp(&distance(b.0)));
    let closest = closest.map(show).unwrap_or_default();
    let all = match said.len() {
        1 => String::new(),
        n => format!("all {n} trials; closest: "),
    };
    outcome(Some(true), format!("{all}{closest}"))
}

/// A figure with its unit: `show("latency_ns.p99", 4.2e6)` is `4.2 ms`.
pub fn show(name: &str, value: f64) -> String {
    let (name, _) = window::split(name);
    let scaled = |units: &[(f64, &str)]| {
        let fits = units.iter().find(|(size, _)| value.abs() >= *size);
        let (size, unit) = fits.or(units.last()).copied().unwrap_or((1.0, ""));
        format!("{} {unit}", number(value / size))
    };
    if name == "verdict" {
        let word = Status::ALL
            .get(value as usize)
            .map_or("none", |status| status.word());
        word.to_owned()
    } else if name.contains("_ns") {
        scaled(&[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")])
    } else if name.ends_with("_per_s") {
        scaled(&[(1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")]).replace(" /s", "/s")
    } else if name.ends_with("_bytes") {
        scaled(&[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")])
    } else if name.ends_with("_share") {
        format!("{} %", number(value * 100.0))
    } else if name.ends_with("_s") {
        format!("{} s", number(value))
    } else if name.ends_with("_us_per_msg") {
        format!("{} µs a message", number(value))
    } else {
        number(value)
    }
}

/// A number with at most three digits after the point.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text {
        "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
