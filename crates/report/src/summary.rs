//! Trials grouped by workload and cell, and who wins at what.

use std::collections::BTreeMap;
use std::fmt;

use pubgauge_results::{Results, Status, Trial};

use crate::stats::{self, Estimate, Ratio};
use crate::units;

/// Names under which the reference broker runs. It is no product: it never wins, it is the
/// ceiling that the others are held against.
pub const REFERENCE_NAMES: [&str; 3] = ["reference", "reference-broker", "reference broker"];

/// Everything that ran, workload by workload in the order of the first trial of each.
pub struct Summary<'a> {
    /// The workloads.
    pub workloads: Vec<Workload<'a>>,
    /// The systems, in the order of their first trial; the place gives the colour.
    pub systems: Vec<String>,
}

/// One workload over all systems.
pub struct Workload<'a> {
    /// Its name.
    pub name: String,
    /// Flat-out traffic: throughput is the figure to look at.
    pub flat_out: bool,
    /// Its cells in the order of their first trial.
    pub cells: Vec<Cell<'a>>,
}

/// All repeats of one cell.
pub struct Cell<'a> {
    /// The cell's identifier.
    pub id: String,
    /// System, and what tells it from other cells of the same system.
    pub label: String,
    /// The system's name.
    pub system: String,
    /// Its place in [`Summary::systems`].
    pub system_index: usize,
    /// Whether it is the reference broker.
    pub reference: bool,
    /// Repeats in the order in which they ran.
    pub trials: Vec<&'a Trial>,
}

impl<'a> Summary<'a> {
    /// Groups the trials of a run.
    pub fn of(results: &'a Results) -> Summary<'a> {
        let mut systems: Vec<String> = Vec::new();
        let mut workloads: Vec<Workload<'a>> = Vec::new();
        for trial in &results.trials {
            let system_index = systems.iter().position(|name| *name == trial.system.name);
            let system_index = system_index.unwrap_or_else(|| {
                systems.push(trial.system.name.clone());
                systems.len() - 1
            });
            let at = workloads.iter().position(|w| w.name == trial.workload.name);
            let at = at.unwrap_or_else(|| {
                workloads.push(Workload {
                    name: trial.workload.name.clone(),
                    flat_out: trial.workload.flat_out,
                    cells: Vec::new(),
                });
                workloads.len() - 1
            });
            let cells = &mut workloads[at].cells;
            match cells
                .iter_mut()
                .find(|cell| cell.id == trial.cell && cell.system == trial.system.name)
            {
                Some(cell) => cell.trials.push(trial),
                None => cells.push(Cell {
                    id: trial.cell.clone(),
                    label: String::new(),
                    system: trial.system.name.clone(),
                    system_index,
                    reference: REFERENCE_NAMES.contains(&trial.system.name.as_str()),
                    trials: vec![trial],
                }),
            }
        }
        for workload in &mut workloads {
            label(&mut workload.cells);
        }
        Summary { workloads, systems }
    }
}

/// Names cells so that no two of a workload read alike: the system, then what its settings
/// became where that differs, then the version, then a number.
fn label(cells: &mut [Cell<'_>]) {
    let mut by_system: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, cell) in cells.iter().enumerate() {
        by_system.entry(cell.system.clone()).or_default().push(at);
    }
    for (system, group) in by_system {
        if let [only] = group[..] {
            cells[only].label = system;
            continue;
        }
        let natives = |at: usize| -> Vec<(String, String)> {
            cells[at].trials[0]
                .mappings
                .iter()
                .map(|mapping| (mapping.setting.clone(), mapping.native.clone()))
                .collect()
        };
        let all: Vec<Vec<(String, String)>> = group.iter().map(|at| natives(*at)).collect();
        let common = |pair: &(String, String)| all.iter().all(|other| other.contains(pair));
        let mut labels: Vec<String> = all
            .iter()
            .map(|own| {
                let differing: Vec<&str> = own
                    .iter()
                    .filter(|pair| !common(pair))
                    .map(|(_, native)| native.as_str())
                    .collect();
                if differing.is_empty() {
                    system.clone()
                } else {
                    format!("{system} · {}", differing.join(", "))
                }
            })
            .collect();
        let alike = |labels: &[String], at: usize| {
            labels.iter().filter(|label| **label == labels[at]).count() > 1
        };
        for at in 0..labels.len() {
            if alike(&labels, at) {
                let version = &cells[group[at]].trials[0].system.version;
                labels[at] = format!("{} {version}", labels[at]);
            }
        }
        for at in 0..labels.len() {
            if alike(&labels, at) {
                labels[at] = format!("{} #{}", labels[at], at + 1);
            }
        }
        for (at, label) in group.into_iter().zip(labels) {
            cells[at].label = label;
        }
    }
}

impl<'a> Cell<'a> {
    /// Its valid repeats.
    pub fn valid(&self) -> impl Iterator<Item = &'a Trial> + '_ {
        self.trials
            .iter()
            .copied()
            .filter(|trial| trial.verdict.status == Status::Valid)
    }

    /// The repeats that its figures come from: the valid ones, or all if none is.
    pub fn quoted(&self) -> Vec<&'a Trial> {
        let valid: Vec<&Trial> = self.valid().collect();
        if valid.is_empty() {
            self.trials.clone()
        } else {
            valid
        }
    }

    /// Valid if any repeat is; otherwise the mildest verdict.
    pub fn status(&self) -> Status {
        self.trials
            .iter()
            .map(|trial| trial.verdict.status)
            .min()
            .unwrap_or_default()
    }

    /// A figure over the [`Cell::quoted`] repeats.
    pub fn estimate(&self, figure: impl Fn(&Trial) -> Option<f64>) -> Option<Estimate> {
        let values: Vec<f64> = self.quoted().into_iter().filter_map(figure).collect();
        Estimate::of(&values)
    }

    /// The repeat whose delivery rate is the median of the [`Cell::quoted`] ones: what is drawn
    /// where one repeat must stand for all.
    pub fn typical(&self) -> &'a Trial {
        let mut quoted = self.quoted();
        quoted.sort_by(|a, b| a.delivered_msgs_per_s.total_cmp(&b.delivered_msgs_per_s));
        quoted[(quoted.len() - 1) / 2]
    }
}

/// Repeats of a cell that are not valid for the same kind of reason.
pub struct Doubt<'a> {
    /// Their verdict.
    pub status: Status,
    /// The repeats; the reasons of the first stand for all.
    pub trials: Vec<&'a Trial>,
}

impl<'a> Cell<'a> {
    /// Its repeats that are not valid, by verdict.
    pub fn doubtful(&self) -> Vec<Doubt<'a>> {
        let mut groups: Vec<Doubt<'a>> = Vec::new();
        for trial in self.trials.iter().copied() {
            let status = trial.verdict.status;
            if status == Status::Valid {
                continue;
            }
            match groups.iter_mut().find(|group| group.status == status) {
                Some(group) => group.trials.push(trial),
                None => groups.push(Doubt {
                    status,
                    trials: vec![trial],
                }),
            }
        }
        groups
    }
}

impl Doubt<'_> {
    /// Which repeats of `all`, as the continuation of a sentence; empty if there is only one.
    pub fn repeats(&self, all: usize) -> String {
        let numbers: Vec<String> = self.trials.iter().map(|t| t.repeat.to_string()).collect();
        match (self.trials.len(), all) {
            (_, 1) => String::new(),
            (1, _) => format!(", repeat {}", numbers[0]),
            (n, all) if n == all => {
                format!(", all {all} repeats (figures of repeat {})", numbers[0])
            }
            _ => format!(
                ", repeats {} (figures of repeat {})",
                numbers.join(", "),
                numbers[0]
            ),
        }
    }
}

/// A figure by which systems are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Deliveries per second; more is better.
    Throughput,
    /// Median latency; less is better.
    MedianLatency,
    /// 99th percentile of latency; less is better.
    TailLatency,
    /// Median round trip of ping-pong flows; less is better.
    RoundTrip,
    /// Processor time of client and system for one delivery; less is better.
    CpuPerMessage,
}

impl Metric {
    /// What a workload is judged by: throughput flat out, where latency only shows how long the
    /// queues are; latency when paced, where everybody delivers what is offered.
    pub fn of(workload: &Workload<'_>) -> Vec<Metric> {
        if workload.flat_out {
            return vec![Metric::Throughput, Metric::CpuPerMessage];
        }
        let mut metrics = vec![Metric::MedianLatency, Metric::TailLatency];
        let round_trips = |trial: &&Trial| trial.round_trip_ns.is_some_and(|d| d.count > 0);
        if workload
            .cells
            .iter()
            .any(|cell| cell.trials.iter().any(&round_trips))
        {
            metrics.push(Metric::RoundTrip);
        }
        metrics.push(Metric::CpuPerMessage);
        metrics
    }

    /// The figure of a trial; absent where the trial cannot tell (too few messages for the
    /// percentile, a system out of sight).
    pub fn figure(self, trial: &Trial) -> Option<f64> {
        match self {
            Metric::Throughput => Some(trial.delivered_msgs_per_s),
            Metric::MedianLatency => Some(trial.latency_ns.quotable(0.5)? as f64),
            Metric::TailLatency => Some(trial.latency_ns.quotable(0.99)? as f64),
            Metric::RoundTrip => trial
                .round_trip_ns
                .and_then(|d| Some(d.quotable(0.5)? as f64)),
            Metric::CpuPerMessage => {
                let client = trial.client_cpu_s.publishers + trial.client_cpu_s.subscribers;
                // A broker out of sight would look free: then there is no figure. A brokerless
                // system works inside the client and needs no seconds of its own.
                let system = trial
                    .system_cpu_s
                    .or_else(|| trial.system_in_client().then_some(0.0))?;
                per_message(client + system, trial)
            }
        }
    }

    /// More is better.
    pub fn more_is_better(self) -> bool {
        self == Metric::Throughput
    }

    /// As the beginning of an answer.
    pub fn superlative(self) -> &'static str {
        match self {
            Metric::Throughput => "most delivered",
            Metric::MedianLatency => "lowest median latency",
            Metric::TailLatency => "lowest 99th percentile of latency",
            Metric::RoundTrip => "shortest median round trip",
            Metric::CpuPerMessage => "least processor time per message (client and system)",
        }
    }

    /// An estimate with its unit and, if it has one, the half width of its interval.
    pub fn show_estimate(self, estimate: &Estimate) -> String {
        let mean = self.show(estimate.mean);
        let (Some(half_width), Some((_, unit))) = (estimate.half_width, mean.split_once(' '))
        else {
            return mean;
        };
        // The half width in the unit of the mean, whatever its own size.
        let scale = match unit {
            "k/s" => 1e3,
            "M/s" => 1e6,
            "G/s" => 1e9,
            "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            _ => 1.0,
        };
        let half_width = if self == Metric::CpuPerMessage {
            half_width * 1e3
        } else {
            half_width
        };
        let number = mean.trim_end_matches(unit).trim_end();
        let decimals = number
            .split_once('.')
            .map_or(0, |(_, fraction)| fraction.len());
        format!("{number} ±{:.decimals$} {unit}", half_width / scale)
    }

    /// A value with its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Metric::Throughput => units::rate(value),
            Metric::MedianLatency | Metric::TailLatency | Metric::RoundTrip => units::time(value),
            Metric::CpuPerMessage => units::time(value * 1e3),
        }
    }
}

/// Microseconds of processor time for one first delivery (for one message taken, where nobody
/// listens).
pub fn per_message(seconds: f64, trial: &Trial) -> Option<f64> {
    let messages = if trial.expected > 0 {
        trial.unique()
    } else {
        trial.published
    };
    (messages > 0).then(|| seconds * 1e6 / messages as f64)
}

/// Who wins at a metric of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The metric.
    pub metric: Metric,
    /// The best, and everybody who cannot be told from it; empty if no trial is valid.
    pub winners: Vec<Place>,
    /// The next best.
    pub runner_up: Option<Place>,
    /// Valid cells that were compared.
    pub compared: usize,
    /// The reference broker's figure, where it ran and is valid.
    pub ceiling: Option<f64>,
}

/// One place in an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The cell's label.
    pub label: String,
    /// Its figure.
    pub estimate: Estimate,
    /// Its figure over the best one's; absent for the best itself and with a single repeat.
    pub to_best: Option<Ratio>,
}

/// Ratio up to which two single figures are called equal: one repeat says nothing about chance,
/// and differences of a few percent between runs of the same thing are ordinary.
const SINGLE_TIE: f64 = 1.10;

/// Compares the valid cells of a workload by a metric.
pub fn answer(workload: &Workload<'_>, metric: Metric) -> Answer {
    let values =
        |cell: &Cell<'_>| -> Vec<f64> { cell.valid().filter_map(|t| metric.figure(t)).collect() };
    let ceiling = workload
        .cells
        .iter()
        .filter(|cell| cell.reference)
        .find_map(|cell| Estimate::of(&values(cell)))
        .map(|estimate| estimate.mean);
    let mut places: Vec<(&str, Vec<f64>, Estimate)> = workload
        .cells
        .iter()
        .filter(|cell| !cell.reference)
        .filter_map(|cell| {
            let values = values(cell);
            let estimate = Estimate::of(&values)?;
            Some((cell.label.as_str(), values, estimate))
        })
        .collect();
    places.sort_by(|a, b| {
        let order = a.2.mean.total_cmp(&b.2.mean);
        if metric.more_is_better() {
            order.reverse()
        } else {
            order
        }
    });
    let compared = places.len();
    let mut winners: Vec<Place> = Vec::new();
    let mut runner_up = None;
    for (at, (label, own, estimate)) in places.iter().enumerate() {
        let (to_best, tied) = if at == 0 {
            (None, true)
        } else {
            let best = &places[0];
            let ratio = stats::ratio(own, &best.1, compared - 1);
            let apart = (estimate.mean / best.2.mean).max(best.2.mean / estimate.mean);
            (
                ratio,
                ratio.map_or(apart.is_nan() || apart <= SINGLE_TIE, |ratio| {
                    !ratio.is_clear()
                }),
            )
        };
        let place = Place {
            label: (*label).to_owned(),
            estimate: *estimate,
            to_best,
        };
        // Somebody further back with a wide interval ties too, whoever stands between.
        if tied {
            winners.push(place);
        } else if runner_up.is_none() {
            runner_up = Some(place);
        }
    }
    Answer {
        metric,
        winners,
        runner_up,
        compared,
        ceiling,
    }
}

impl fmt::Display for Answer {
    /// One sentence that claims no more than the figures do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = self.metric.superlative();
        let show = |estimate: &Estimate| self.metric.show_estimate(estimate);
        let Some(best) = self.winners.first() else {
            return write!(f, "{what}: no valid figure to compare");
        };
        if self.compared == 1 {
            write!(
                f,
                "{what}: {} {}, the only valid figure",
                best.label,
                show(&best.estimate)
            )?;
        } else if self.winners.len() > 1 {
            let all: Vec<String> = self
                .winners
                .iter()
                .map(|p| format!("{} {}", p.label, show(&p.estimate)))
                .collect();
            write!(f, "{what}: no clear winner among {}", all.join(", "))?;
        } else {
            write!(f, "{what}: {} {}", best.label, show(&best.estimate))?;
            if let Some(next) = &self.runner_up {
                write!(f, ", then {} {}", next.label, show(&next.estimate))?;
                if let Some(ratio) = next.to_best {
                    let (low, mid, high) = if ratio.ratio < 1.0 {
                        (1.0 / ratio.high, 1.0 / ratio.ratio, 1.0 / ratio.low)
                    } else {
                        (ratio.low, ratio.ratio, ratio.high)
                    };
                    let digits = units::digits;
                    let (low, mid, high) = (digits(low), digits(mid), digits(high));
                    write!(f, ": {mid} times apart ({low} to {high})")?;
                }
            }
        }
        let single = |place: &Place| place.estimate.n == 1;
        let nobody_knows = self.winners.iter().chain(&self.runner_up).any(single);
        if self.compared > 1 && nobody_knows {
            write!(f, " (one repeat: could be chance)")?;
        }
        if let Some(ceiling) = self.ceiling {
            write!(f, "; reference broker: {}", self.metric.show(ceiling))?;
        }
        Ok(())
    }
}
