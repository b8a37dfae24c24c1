//! The data of every figure as a plain table: chart, CSV file and readable table all come from
//! the same rows, so that they cannot disagree.

use pubgauge_figures::criterion::CriterionSpec;
use pubgauge_figures::figure::per_message;
use pubgauge_figures::{Results, Trial};
use pubgauge_quantities::written::amount;

use crate::LatencyLogs;
use crate::answers;
use crate::summary::{Bound, Cell, WorkloadCells};

mod chart;
pub(crate) mod claims;
mod latency;
pub(crate) mod searches;
pub(crate) mod series;
pub(crate) mod trend;

pub use chart::{Chart, ChartKind, ChartMark, LimitLine, NOISE, Value};
use chart::{columns, interval, row};

/// The figures of one workload, as they are shown: first the one by which it is judged.
pub fn of_workload(
    results: &Results,
    workload: &WorkloadCells<'_>,
    at: usize,
    logs: &dyn LatencyLogs,
) -> Vec<Chart> {
    let lines = lines(results, workload);
    let id = |kind: &str| format!("w{}-{kind}", at + 1);
    let throughput = throughput(workload, id("throughput"), &lines);
    let mut latency = latency::figures(workload, logs, &id, &lines);
    let axes = axes(workload, &id, &lines);
    let series = series::series(results, workload, id("series"));
    let (cpu, memory) = (cpu(workload, id("cpu")), memory(workload, id("memory")));
    let mut figures = Vec::new();
    if workload.flat_out {
        // Latency flat out is that of queues, the less important figure.
        figures.push(throughput);
        figures.extend(axes);
        figures.extend([cpu, memory, series]);
        figures.extend(latency);
    } else {
        let mut after = latency.split_off(latency.len().min(1));
        figures.extend(axes);
        figures.extend(latency);
        // Distribution and throughput are side by side, the throughput last.
        let ecdf = after.split_off(after.len().saturating_sub(1));
        figures.extend(after);
        figures.extend([cpu, memory, series]);
        figures.extend(ecdf);
        figures.push(throughput);
    }
    figures.retain(|figure| !figure.rows.is_empty());
    figures
}

/// The limits of the figures that are drawn.
fn lines(results: &Results, workload: &WorkloadCells<'_>) -> Vec<(Option<String>, LimitLine)> {
    let specs = answers::demands(&results.study.criterion_specs, workload);
    let line = |spec: &CriterionSpec| {
        let line = LimitLine {
            of: spec.figure.clone(),
            value: spec.value,
            label: answers::demand(spec).replace("<=", "≤").replace(">=", "≥"),
        };
        (spec.filter.flow.clone(), line)
    };
    specs.iter().map(line).collect()
}

/// The limits of figures whose names begin with one of `names`, of all flows together.
fn lines_of(lines: &[(Option<String>, LimitLine)], names: &[&str]) -> Vec<LimitLine> {
    let wanted = |line: &LimitLine| names.iter().any(|name| line.of.starts_with(name));
    let all = lines
        .iter()
        .filter(|(flow, line)| flow.is_none() && wanted(line));
    all.map(|(_, line)| line.clone()).collect()
}

/// Deliveries per second that what was offered should cause; messages where nobody subscribes.
fn due_per_s(trial: &Trial) -> f64 {
    let taken = trial.messages.published + trial.messages.not_connected;
    match (trial.messages.expected, taken) {
        (0, _) | (_, 0) => trial.messages.offered_msgs_per_s,
        (deliveries, taken) => trial.messages.offered_msgs_per_s * deliveries as f64 / taken as f64,
    }
}

fn throughput(
    workload: &WorkloadCells<'_>,
    id: String,
    lines: &[(Option<String>, LimitLine)],
) -> Chart {
    let mut rows = Vec::new();
    for cell in &workload.cells {
        // A paced client-bound row has no bound: more than the load is not asked for.
        let carried = cell.carried().filter(|_| cell.flat_out());
        let estimate = cell.estimate(|t| Some(t.messages.carried_msgs_per_s()));
        let estimate = carried
            .as_ref()
            .map(|carried| carried.estimate)
            .or(estimate);
        let bound = carried.map_or(Bound::Exact, |carried| carried.bound);
        let due = cell.estimate(|t| Some(due_per_s(t)));
        let repeats = estimate.map_or(0.0, |e| e.n as f64);
        let mut ends = interval(estimate);
        // An estimate that is only a bound has no interval.
        if !matches!(bound, Bound::Exact | Bound::HostBound) {
            ends[1..].fill(Value::Null);
        }
        let figures = [bound.suffix().trim_start().into(), repeats.into()]
            .into_iter()
            .chain(ends);
        rows.push(row(cell, figures.chain([due.map(|e| e.mean).into()])));
    }
    let words = if workload.flat_out {
        " \u{201c}or more\u{201d}: the client was the limit, so this is a lower bound. \u{201c}under overload\u{201d}: carried of an offer that was more than the system could carry."
    } else {
        " The schedule sets the rate here: a system that keeps up delivers what is due (the mark)."
    };
    Chart {
        id,
        kind: ChartKind::Throughput,
        wide: workload.flat_out,
        title: "Throughput".into(),
        description: format!(
            "Deliveries per second over all subscribers, means with 95 % confidence intervals over repeats, of two repeats with both values.{words}"
        ),
        columns: columns([
            "row",
            "verdict",
            "bound",
            "repeats",
            "delivered_msgs_per_s",
            "low_msgs_per_s",
            "high_msgs_per_s",
            "due_msgs_per_s",
        ]),
        rows,
        lines: lines_of(lines, &["delivered_msgs_per_s"]),
        marks: Vec::new(),
    }
}

/// One figure for each axis of the load whose values are numbers.
fn axes(
    workload: &WorkloadCells<'_>,
    id: &dyn Fn(&str) -> String,
    lines: &[(Option<String>, LimitLine)],
) -> Vec<Chart> {
    let count = workload.points.iter().map(|point| point.values.len()).max();
    let mut figures = Vec::new();
    for axis in 0..count.unwrap_or(0) {
        let mut rows = Vec::new();
        let mut name = "";
        for cell in &workload.cells {
            let point = &workload.points[cell.point];
            let Some((axis_name, value)) = point.values.get(axis) else {
                continue;
            };
            let Some(number) = amount(value) else {
                continue;
            };
            name = axis_name;
            // A line joins rows that differ only in this axis.
            let others = point
                .values
                .iter()
                .enumerate()
                .filter(|(nth, _)| *nth != axis);
            let others: Vec<String> = others
                .map(|(_, (name, value))| format!("{name} = {value}"))
                .collect();
            let quantile =
                |q: f64| cell.estimate(move |t| Some(t.messages.latency_ns.quotable(q)? as f64));
            let due = cell.estimate(|t| Some(due_per_s(t)));
            let figures = [
                others.join(", ").as_str().into(),
                value.as_str().into(),
                number.into(),
            ]
            .into_iter()
            .chain(interval(quantile(0.5)))
            .chain(interval(quantile(0.99)))
            .chain(interval(
                cell.estimate(|t| Some(t.messages.delivered_msgs_per_s)),
            ))
            .chain([due.map(|e| e.mean).into()]);
            rows.push(row(cell, figures));
        }
        let mut values: Vec<&Value> = rows.iter().map(|row| &row[4]).collect();
        values.dedup();
        if values.len() < 2 {
            continue;
        }
        figures.push(Chart {
            id: id(&format!("axis{}", axis + 1)),
            kind: ChartKind::Axis,
            wide: true,
            title: format!("What {name} does"),
            description: format!(
                "Latency (p50 thin, p99 thick, log scale) and deliveries per second against {name}; bars are 95 % confidence \
                 intervals over repeats (of two, both values), the grey line is what was due. Hollow points are not valid: under the pointer stands their verdict."
            ),
            columns: columns([
                "row", "verdict", "others", "value", "number", "p50_ns", "p50_low_ns", "p50_high_ns", "p99_ns",
                "p99_low_ns", "p99_high_ns", "delivered_msgs_per_s", "low_msgs_per_s", "high_msgs_per_s",
                "due_msgs_per_s",
            ]),
            rows,
            lines: lines_of(lines, &["latency_ns.p50", "latency_ns.p99", "delivered_msgs_per_s"]),
            marks: Vec::new(),
        });
    }
    figures
}

/// A part of a stacked bar.
type BarPart = (&'static str, fn(&Trial) -> Option<f64>);

/// A row for each part of each cell that is `shown`.
fn stacked(
    workload: &WorkloadCells<'_>,
    parts: &[BarPart],
    shown: impl Fn(&Cell<'_>) -> bool,
) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for cell in workload.cells.iter().filter(|cell| shown(cell)) {
        for (part, of) in parts {
            if let Some(estimate) = cell.estimate(of) {
                rows.push(row(
                    cell,
                    [(*part).into()].into_iter().chain(interval(Some(estimate))),
                ));
            }
        }
    }
    rows
}

fn cpu(workload: &WorkloadCells<'_>, id: String) -> Chart {
    const PARTS: [BarPart; 3] = [
        ("system", |t| per_message(t.system_cpu_s?, t)),
        ("publishers", |t| per_message(t.client_cpu_s.publishers, t)),
        ("subscribers", |t| {
            per_message(t.client_cpu_s.subscribers, t)
        }),
    ];
    // Without the system's own, the rest would look cheap beside others.
    let is_whole = |cell: &Cell<'_>| {
        let mut quoted = cell.quoted().into_iter();
        quoted.all(|t| t.system_cpu_s.is_some() || t.system_in_client())
    };
    Chart {
        id,
        kind: ChartKind::Times,
        wide: false,
        title: "Processor time per message".into(),
        description:
            "For one delivery. A system without processes of its own works inside the clients; one whose \
             processes are out of sight is left out."
                .into(),
        columns: columns([
            "row",
            "verdict",
            "part",
            "cpu_us_per_msg",
            "low_us",
            "high_us",
        ]),
        rows: stacked(workload, &PARTS, is_whole),
        lines: Vec::new(),
        marks: Vec::new(),
    }
}

fn memory(workload: &WorkloadCells<'_>, id: String) -> Chart {
    const PARTS: [BarPart; 2] = [
        ("system", |t| Some(t.system_rss_bytes? as f64)),
        // A trial that did not run has no memory.
        ("client", |t| {
            Some(t.client_rss_bytes as f64).filter(|&bytes| bytes > 0.0)
        }),
    ];
    Chart {
        id,
        kind: ChartKind::Bytes,
        wide: false,
        title: "Memory".into(),
        description: "Largest resident memory during the measurement; the client's with all its devices and records.".into(),
        columns: columns(["row", "verdict", "part", "rss_bytes", "low_bytes", "high_bytes"]),
        rows: stacked(workload, &PARTS, |_| true),
        lines: Vec::new(),
        marks: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubgauge_figures::Messages;

    /// One publisher of 1,000/s, and ten subscribers.
    #[test]
    fn what_is_due_is_counted_in_deliveries() {
        let trial = |published, not_connected, expected| Trial {
            messages: Messages {
                offered_msgs_per_s: 1_000.0,
                published,
                not_connected,
                expected,
                ..Messages::default()
            },
            ..Trial::default()
        };
        assert_eq!(due_per_s(&trial(10_000, 0, 100_000)), 10_000.0);
        assert_eq!(due_per_s(&trial(5_000, 5_000, 100_000)), 10_000.0);
        assert_eq!(
            due_per_s(&trial(10_000, 0, 0)),
            1_000.0,
            "nobody subscribes"
        );
    }
}
