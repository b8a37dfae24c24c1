//! The data of every figure as a plain table: chart, CSV file and readable table all come from
//! the same rows, so that they cannot disagree.

use pubgauge_results::criterion::CriterionSpec;
use pubgauge_results::{Results, Trial};
use serde::Serialize;

use crate::Logs;
use crate::answers;
use crate::stats::Estimate;
use crate::summary::{Bound, Carried, Cell, Workload};
use crate::units;
use crate::wins::per_message;

pub(crate) mod claims;
mod latency;
pub(crate) mod searches;
mod series;

/// Label of the machine's own noise in figures of latency.
pub const NOISE: &str = "machine's noise";

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Unique on the page; also the name of its files.
    pub id: String,
    /// How it is drawn.
    pub kind: Kind,
    /// Whether it takes the whole width of the page.
    pub wide: bool,
    /// Heading.
    pub title: String,
    /// What it shows, as the caption and as the text alternative.
    pub description: String,
    /// Names of the columns, with units.
    pub columns: Vec<&'static str>,
    /// Rows; each is as long as `columns`.
    pub rows: Vec<Vec<Value>>,
    /// The limits of the figures shown.
    pub lines: Vec<Line>,
    /// Spans of time to shade.
    pub marks: Vec<Mark>,
}

/// How a figure is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Bars with confidence intervals.
    Throughput,
    /// Percentiles on a log axis; the other axis is the number of nines.
    Percentiles,
    /// Distribution functions on a log axis.
    Ecdf,
    /// Latency and rate over a varied axis.
    Axis,
    /// The series, record by record.
    Series,
    /// Stacked bars of microseconds.
    Times,
    /// Stacked bars of bytes.
    Bytes,
    /// The achieved part of each load of a search, with the limit.
    Limit,
    /// Latency of each load of a search on a log axis.
    LatencyOverLoad,
    /// The figure of each side of a claim over the claim's axis.
    Claim,
}

/// A limit of a figure; of a search, an end of the limit's interval (`low`, `high`) or the
/// `confirmed` load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// The figure by its name in `results.json`: `latency_ns.p99`.
    pub of: String,
    /// The limit, in the figure's own unit.
    pub value: f64,
    /// In words: `p99 ≤ 100 ms`.
    pub label: String,
}

/// A span of a trial: its drain, a phase, a fault.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mark {
    /// Its beginning, seconds from the start of the measurement.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    /// What it is.
    pub label: String,
}

/// An entry of a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// Text.
    Text(String),
    /// A number.
    Number(f64),
    /// Not measured.
    None,
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        if number.is_finite() {
            Value::Number(number)
        } else {
            Value::None
        }
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Number(number as f64)
    }
}

impl From<Option<f64>> for Value {
    fn from(number: Option<f64>) -> Value {
        number.map_or(Value::None, Value::from)
    }
}

impl Figure {
    /// The rows as CSV (RFC 4180) with a head line; an absent value is empty.
    pub fn csv(&self) -> String {
        let quote = |text: &str| {
            if text.contains([',', '"', '\r', '\n']) {
                format!("\"{}\"", text.replace('"', "\"\""))
            } else {
                text.to_owned()
            }
        };
        let mut out = self.columns.join(",");
        out.push_str("\r\n");
        for row in &self.rows {
            let cells: Vec<String> = row
                .iter()
                .map(|value| match value {
                    Value::Text(text) => quote(text),
                    Value::Number(number) => number.to_string(),
                    Value::None => String::new(),
                })
                .collect();
            out.push_str(&cells.join(","));
            out.push_str("\r\n");
        }
        out
    }
}

/// A row: the cell's label and verdict, then its figures.
fn row(cell: &Cell<'_>, figures: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let head = [cell.label.as_str().into(), cell.status().word().into()];
    head.into_iter().chain(figures).collect()
}

/// Mean and both ends of its interval, where it has one.
fn interval(estimate: Option<Estimate>) -> [Value; 3] {
    let end = |of: fn(&Estimate) -> f64| {
        let known = estimate.filter(|e| e.half_width.is_some());
        Value::from(known.map(|e| of(&e)))
    };
    [
        estimate.map(|e| e.mean).into(),
        end(Estimate::low),
        end(Estimate::high),
    ]
}

/// The figures of one workload, as they are shown: first the one by which it is judged.
pub fn of_workload(
    results: &Results,
    workload: &Workload<'_>,
    at: usize,
    logs: &Logs,
) -> Vec<Figure> {
    let lines = lines(results, workload);
    let id = |kind: &str| format!("w{}-{kind}", at + 1);
    let throughput = throughput(workload, id("throughput"), &lines);
    let mut latency = latency::figures(workload, logs, &id, &lines);
    let axes = axes(workload, &id, &lines);
    let series = series::series(workload, id("series"));
    let (cpu, memory) = (cpu(workload, id("cpu")), memory(workload, id("memory")));
    let mut figures = Vec::new();
    if workload.flat_out {
        // Latency flat out is that of queues, the less important figure.
        figures.push(throughput);
        figures.extend(axes);
        figures.extend([cpu, memory, series]);
        figures.extend(latency);
    } else {
        let after = latency.split_off(latency.len().min(1));
        figures.extend(axes);
        figures.extend(latency);
        // Distribution and throughput are side by side, the throughput last.
        let (flows, ecdf) = after.split_at(after.len().saturating_sub(1));
        figures.extend(flows.iter().cloned());
        figures.extend([cpu, memory, series]);
        figures.extend(ecdf.iter().cloned());
        figures.push(throughput);
    }
    figures.retain(|figure| !figure.rows.is_empty());
    figures
}

/// The limits of the figures that are drawn.
fn lines(results: &Results, workload: &Workload<'_>) -> Vec<(Option<String>, Line)> {
    let specs = answers::demands(&results.study.criterion_specs, workload);
    let line = |spec: &CriterionSpec| {
        let line = Line {
            of: spec.figure.clone(),
            value: spec.value,
            label: answers::demand(spec).replace("<=", "≤").replace(">=", "≥"),
        };
        (spec.filter.flow.clone(), line)
    };
    specs.iter().map(line).collect()
}

/// The limits of figures whose names begin with one of `names`, of all flows together.
fn lines_of(lines: &[(Option<String>, Line)], names: &[&str]) -> Vec<Line> {
    let wanted = |line: &Line| names.iter().any(|name| line.of.starts_with(name));
    let all = lines
        .iter()
        .filter(|(flow, line)| flow.is_none() && wanted(line));
    all.map(|(_, line)| line.clone()).collect()
}

fn throughput(workload: &Workload<'_>, id: String, lines: &[(Option<String>, Line)]) -> Figure {
    let mut rows = Vec::new();
    for cell in &workload.cells {
        // A paced client-bound row has no bound: more than the load is not asked for.
        let carried = cell.carried().filter(|_| cell.flat_out());
        let estimate = cell.estimate(|t| Some(t.delivered_msgs_per_s));
        // An estimate that is only a bound has no interval.
        let known = |carried: &Carried| match carried.bound {
            Bound::Exact => carried.estimate,
            _ => Estimate {
                half_width: None,
                ..carried.estimate
            },
        };
        let estimate = carried.as_ref().map(known).or(estimate);
        let bound = carried.map_or("", |carried| carried.bound.suffix().trim_start());
        let offered = cell.estimate(|t| Some(t.offered_msgs_per_s));
        let repeats = estimate.map_or(0, |e| e.n as u64);
        let figures = [bound.into(), repeats.into()]
            .into_iter()
            .chain(interval(estimate));
        rows.push(row(cell, figures.chain([offered.map(|e| e.mean).into()])));
    }
    let words = match workload.flat_out {
        true => {
            " \u{201c}or more\u{201d}: the client was the limit, so this is a lower bound. \u{201c}under overload\u{201d}: carried of an offer that was more than the system could carry."
        }
        false => {
            " The schedule sets the rate here: a system that keeps up delivers what is offered."
        }
    };
    Figure {
        id,
        kind: Kind::Throughput,
        wide: workload.flat_out,
        title: "Throughput".into(),
        description: format!(
            "Deliveries per second over all subscribers, means with 95 % confidence intervals over repeats.{words}"
        ),
        columns: vec![
            "row",
            "verdict",
            "bound",
            "repeats",
            "delivered_msgs_per_s",
            "ci_low_msgs_per_s",
            "ci_high_msgs_per_s",
            "offered_msgs_per_s",
        ],
        rows,
        lines: lines_of(lines, &["delivered_msgs_per_s"]),
        marks: Vec::new(),
    }
}

/// One figure for each axis of the load whose values are numbers.
fn axes(
    workload: &Workload<'_>,
    id: &dyn Fn(&str) -> String,
    lines: &[(Option<String>, Line)],
) -> Vec<Figure> {
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
            let Some(number) = units::amount(value) else {
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
            let quantile = |q: f64| cell.estimate(move |t| Some(t.latency_ns.quotable(q)? as f64));
            let offered = cell.estimate(|t| Some(t.offered_msgs_per_s));
            let figures = [
                others.join(", ").as_str().into(),
                value.as_str().into(),
                number.into(),
            ]
            .into_iter()
            .chain(interval(quantile(0.5)))
            .chain(interval(quantile(0.99)))
            .chain(interval(cell.estimate(|t| Some(t.delivered_msgs_per_s))))
            .chain([offered.map(|e| e.mean).into()]);
            rows.push(row(cell, figures));
        }
        let mut values: Vec<&Value> = rows.iter().map(|row| &row[4]).collect();
        values.dedup();
        if values.len() < 2 {
            continue;
        }
        figures.push(Figure {
            id: id(&format!("axis{}", axis + 1)),
            kind: Kind::Axis,
            wide: true,
            title: format!("What {name} does"),
            description: format!(
                "Latency (p50 thin, p99 thick, log scale) and deliveries per second against {name}; bars are 95 % confidence \
                 intervals over repeats, the grey line is what was offered. Hollow points are not valid: their verdict stands beside them."
            ),
            columns: vec![
                "row", "verdict", "others", "value", "number", "p50_ns", "p50_low_ns", "p50_high_ns", "p99_ns",
                "p99_low_ns", "p99_high_ns", "delivered_msgs_per_s", "ci_low_msgs_per_s", "ci_high_msgs_per_s",
                "offered_msgs_per_s",
            ],
            rows,
            lines: lines_of(lines, &["latency_ns.p50", "latency_ns.p99", "delivered_msgs_per_s"]),
            marks: Vec::new(),
        });
    }
    figures
}

/// A part of a stacked bar.
type Part = (&'static str, fn(&Trial) -> Option<f64>);

fn stacked(workload: &Workload<'_>, parts: &[Part]) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for cell in &workload.cells {
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

fn cpu(workload: &Workload<'_>, id: String) -> Figure {
    const PARTS: [Part; 3] = [
        ("system", |t| per_message(t.system_cpu_s?, t)),
        ("publishers", |t| per_message(t.client_cpu_s.publishers, t)),
        ("subscribers", |t| {
            per_message(t.client_cpu_s.subscribers, t)
        }),
    ];
    Figure {
        id,
        kind: Kind::Times,
        wide: false,
        title: "Processor time per message".into(),
        description:
            "For one delivery. A system without processes of its own works inside the clients."
                .into(),
        columns: vec![
            "row",
            "verdict",
            "part",
            "cpu_us_per_msg",
            "ci_low_us",
            "ci_high_us",
        ],
        rows: stacked(workload, &PARTS),
        lines: Vec::new(),
        marks: Vec::new(),
    }
}

fn memory(workload: &Workload<'_>, id: String) -> Figure {
    const PARTS: [Part; 2] = [
        ("system", |t| Some(t.system_rss_bytes? as f64)),
        ("client", |t| Some(t.client_rss_bytes as f64)),
    ];
    Figure {
        id,
        kind: Kind::Bytes,
        wide: false,
        title: "Memory".into(),
        description: "Largest resident memory during the measurement; the client's with all its devices and records.".into(),
        columns: vec!["row", "verdict", "part", "rss_bytes", "ci_low_bytes", "ci_high_bytes"],
        rows: stacked(workload, &PARTS),
        lines: Vec::new(),
        marks: Vec::new(),
    }
}
