//! The data of every figure as a plain table: chart, CSV file and readable table all come from
//! the same rows, so that they cannot disagree.

use pubgauge_results::histogram::{self, ECDF_POINTS};
use pubgauge_results::{Second, Trial};
use serde::Serialize;

use crate::Logs;
use crate::summary::{Cell, Summary, Workload, per_message};
use crate::table::name as verdict_name;

/// Records of a series that a figure shows at most; longer series are merged record by record.
const SERIES_POINTS: usize = 240;

/// Label of the machine's own noise in figures of latency.
pub const NOISE: &str = "this machine's noise";

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Unique on the page; also the name of its files.
    pub id: String,
    /// How it is drawn.
    pub kind: Kind,
    /// Heading.
    pub title: String,
    /// What is seen, for those who cannot see it and as the caption.
    pub description: String,
    /// Names of the columns, units in them.
    pub columns: Vec<&'static str>,
    /// Rows; each as long as `columns`.
    pub rows: Vec<Vec<Value>>,
}

/// How a figure is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Bars with confidence intervals.
    Throughput,
    /// Percentiles on a log axis.
    Latency,
    /// Distribution functions on a log axis.
    Ecdf,
    /// Second by second.
    Series,
    /// Stacked bars.
    Cpu,
    /// A grid of counts.
    Counts,
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

/// The figures of one workload, in the order in which they are shown.
pub fn of_workload(summary: &Summary<'_>, at: usize, logs: &Logs) -> Vec<Figure> {
    let workload = &summary.workloads[at];
    let id = |kind: &str| format!("w{}-{kind}", at + 1);
    let mut figures = vec![throughput(workload, id("throughput"))];
    let some_latency = workload
        .cells
        .iter()
        .any(|cell| cell.quoted().iter().any(|trial| trial.latency_ns.count > 0));
    if some_latency {
        figures.push(latency(workload, id("latency")));
        figures.push(ecdf(workload, logs, id("ecdf")));
    }
    figures.push(series(workload, id("series")));
    figures.push(cpu(workload, id("cpu")));
    figures.push(counts(workload, id("counts")));
    // The latencies that stand in queues flat out are the less important figure there.
    figures
}

fn verdict(cell: &Cell<'_>) -> &'static str {
    verdict_name(cell.status())
}

fn throughput(workload: &Workload<'_>, id: String) -> Figure {
    let mut rows = Vec::new();
    for cell in &workload.cells {
        let Some(delivered) = cell.estimate(|t| Some(t.delivered_msgs_per_s)) else {
            continue;
        };
        let offered = cell.estimate(|t| Some(t.offered_msgs_per_s));
        rows.push(vec![
            cell.label.as_str().into(),
            verdict(cell).into(),
            (delivered.n as u64).into(),
            delivered.mean.into(),
            delivered.half_width.map(|_| delivered.low()).into(),
            delivered.half_width.map(|_| delivered.high()).into(),
            offered.map(|offered| offered.mean).into(),
        ]);
    }
    Figure {
        id,
        kind: Kind::Throughput,
        title: "Throughput".into(),
        description: format!(
            "Deliveries per second over all subscribers, means with 95 % confidence intervals over repeats.{}",
            if workload.flat_out {
                ""
            } else {
                " The schedule sets the rate here: a system that keeps up delivers what is offered."
            }
        ),
        columns: vec![
            "system",
            "verdict",
            "repeats",
            "delivered_msgs_per_s",
            "ci_low_msgs_per_s",
            "ci_high_msgs_per_s",
            "offered_msgs_per_s",
        ],
        rows,
    }
}

/// Percentiles of latency: name and quantile.
const PERCENTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
];

fn latency(workload: &Workload<'_>, id: String) -> Figure {
    let mut rows = Vec::new();
    for cell in &workload.cells {
        for (name, quantile) in PERCENTILES {
            let Some(estimate) =
                cell.estimate(|trial| Some(trial.latency_ns.quotable(quantile)? as f64))
            else {
                continue;
            };
            rows.push(vec![
                cell.label.as_str().into(),
                verdict(cell).into(),
                name.into(),
                estimate.mean.into(),
                estimate.half_width.map(|_| estimate.low()).into(),
                estimate.half_width.map(|_| estimate.high()).into(),
            ]);
        }
    }
    if let Some(trial) = noise_trial(workload) {
        for (name, quantile) in PERCENTILES {
            if let Some(ns) = trial.noise_ns.quotable(quantile) {
                rows.push(vec![
                    NOISE.into(),
                    "".into(),
                    name.into(),
                    (ns as f64).into(),
                    Value::None,
                    Value::None,
                ]);
            }
        }
    }
    Figure {
        id,
        kind: Kind::Latency,
        title: "Latency percentiles".into(),
        description: format!(
            "From the intended send time to arrival, log scale; means with 95 % confidence intervals over repeats. \
             A percentile is left out where fewer than one message lies beyond it. {}{}",
            "The machine's noise is how late a thread woke up that only sleeps 1 ms at a time: no latency below it can be blamed on a system.",
            queueing(workload)
        ),
        columns: vec![
            "system",
            "verdict",
            "percentile",
            "latency_ns",
            "ci_low_ns",
            "ci_high_ns",
        ],
        rows,
    }
}

fn queueing(workload: &Workload<'_>) -> &'static str {
    if workload.flat_out {
        " Flat out, latency shows how long the queues are, not how fast a system answers."
    } else {
        ""
    }
}

fn ecdf(workload: &Workload<'_>, logs: &Logs, id: String) -> Figure {
    let mut rows = Vec::new();
    for cell in &workload.cells {
        for (ns, share) in pooled_ecdf(cell, logs) {
            rows.push(vec![
                cell.label.as_str().into(),
                verdict(cell).into(),
                ns.into(),
                share.into(),
            ]);
        }
    }
    if let Some(trial) = noise_trial(workload) {
        for (ns, share) in &trial.noise_ecdf {
            rows.push(vec![NOISE.into(), "".into(), (*ns).into(), (*share).into()]);
        }
    }
    Figure {
        id,
        kind: Kind::Ecdf,
        title: "Latency distribution".into(),
        description: format!(
            "Share of deliveries at or below a latency (ECDF), log scale, all repeats pooled.{}",
            queueing(workload)
        ),
        columns: vec!["system", "verdict", "latency_ns", "share"],
        rows,
    }
}

/// The distribution function over all quoted repeats: exact from the logs, otherwise the stored
/// points of the typical repeat.
fn pooled_ecdf(cell: &Cell<'_>, logs: &Logs) -> Vec<(u64, f64)> {
    let quoted = cell.quoted();
    let histograms: Vec<_> = quoted
        .iter()
        .filter_map(|trial| logs.get(&trial.id))
        .flatten()
        .map(|interval| &interval.histogram)
        .collect();
    let complete = quoted.iter().all(|trial| logs.contains_key(&trial.id));
    match histogram::merge(histograms) {
        Some(pooled) if complete => histogram::ecdf(&pooled, ECDF_POINTS),
        _ => cell.typical().latency_ecdf.clone(),
    }
}

/// The trial of a workload whose noise is the median one.
fn noise_trial<'a>(workload: &Workload<'a>) -> Option<&'a Trial> {
    let mut trials: Vec<&Trial> = workload
        .cells
        .iter()
        .flat_map(|cell| cell.trials.iter().copied())
        .filter(|trial| trial.noise_ns.count > 0)
        .collect();
    trials.sort_by_key(|trial| trial.noise_ns.p99);
    trials.get(trials.len().saturating_sub(1) / 2).copied()
}

fn series(workload: &Workload<'_>, id: String) -> Figure {
    let mut rows = Vec::new();
    for cell in &workload.cells {
        let trial = cell.typical();
        for (length, second) in thinned(&trial.series) {
            let some = |value: u64| {
                if second.delivered > 0 {
                    Value::from(value)
                } else {
                    Value::None
                }
            };
            rows.push(vec![
                cell.label.as_str().into(),
                verdict(cell).into(),
                u64::from(trial.repeat).into(),
                rounded(second.t_s).into(),
                rounded(second.published as f64 / length).into(),
                rounded(second.delivered as f64 / length).into(),
                some(second.latency_p50_ns),
                some(second.latency_p99_ns),
                (second.backlog as f64).into(),
                rounded(second.publishers_cpu).into(),
                rounded(second.subscribers_cpu).into(),
                second.system_cpu.map(rounded).into(),
                second.noise_max_ns.into(),
            ]);
        }
    }
    Figure {
        id,
        kind: Kind::Series,
        title: "Second by second".into(),
        description: "Rate, latency, backlog (published and expected, but not yet delivered) and processor use \
                      through the trial and its drain; of several repeats the one with the median rate."
            .into(),
        columns: vec![
            "system", "verdict", "repeat", "t_s", "published_msgs_per_s", "delivered_msgs_per_s",
            "latency_p50_ns", "latency_p99_ns", "backlog_msgs", "publishers_cpu_cores",
            "subscribers_cpu_cores", "system_cpu_cores", "noise_max_ns",
        ],
        rows,
    }
}

/// Three decimals are enough for a picture and keep the page small.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// Records with their length in seconds, merged so that no more than [`SERIES_POINTS`] are left.
fn thinned(series: &[Second]) -> Vec<(f64, Second)> {
    let group = series.len().div_ceil(SERIES_POINTS).max(1);
    let mut start = 0.0;
    series
        .chunks(group)
        .filter_map(|chunk| {
            let last = chunk.last()?;
            let length = last.t_s - start;
            start = last.t_s;
            let n = chunk.len() as f64;
            let delivered: u64 = chunk.iter().map(|s| s.delivered).sum();
            let mean = |figure: fn(&Second) -> f64| chunk.iter().map(figure).sum::<f64>() / n;
            let p50 = chunk
                .iter()
                .map(|s| s.latency_p50_ns as f64 * s.delivered as f64)
                .sum::<f64>();
            let merged = Second {
                published: chunk.iter().map(|s| s.published).sum(),
                delivered,
                latency_p50_ns: (p50 / delivered.max(1) as f64).round() as u64,
                latency_p99_ns: chunk.iter().map(|s| s.latency_p99_ns).max().unwrap_or(0),
                latency_max_ns: chunk.iter().map(|s| s.latency_max_ns).max().unwrap_or(0),
                publishers_cpu: mean(|s| s.publishers_cpu),
                subscribers_cpu: mean(|s| s.subscribers_cpu),
                system_cpu: last
                    .system_cpu
                    .map(|_| mean(|s| s.system_cpu.unwrap_or(0.0))),
                noise_max_ns: chunk.iter().map(|s| s.noise_max_ns).max().unwrap_or(0),
                ..*last
            };
            (length > 0.0).then_some((length, merged))
        })
        .collect()
}

fn cpu(workload: &Workload<'_>, id: String) -> Figure {
    type Part = (&'static str, fn(&Trial) -> Option<f64>);
    const PARTS: [Part; 3] = [
        ("system", |t| t.system_cpu_s),
        ("publishers", |t| Some(t.client_cpu_s.publishers)),
        ("subscribers", |t| Some(t.client_cpu_s.subscribers)),
    ];
    let mut rows = Vec::new();
    for cell in &workload.cells {
        for (part, seconds) in PARTS {
            let Some(figure) = cell.estimate(|trial| per_message(seconds(trial)?, trial)) else {
                continue;
            };
            rows.push(vec![
                cell.label.as_str().into(),
                verdict(cell).into(),
                part.into(),
                figure.mean.into(),
                figure.half_width.map(|_| figure.low()).into(),
                figure.half_width.map(|_| figure.high()).into(),
            ]);
        }
    }
    Figure {
        id,
        kind: Kind::Cpu,
        title: "Processor time per message".into(),
        description: "Microseconds of processor time for one delivery: of the system's own processes, of the \
                      publishing and of the subscribing clients. A system without processes of its own works inside the clients."
            .into(),
        columns: vec!["system", "verdict", "part", "cpu_us_per_msg", "ci_low_us", "ci_high_us"],
        rows,
    }
}

fn counts(workload: &Workload<'_>, id: String) -> Figure {
    type Count = (&'static str, fn(&Trial) -> u64);
    const COUNTS: [Count; 6] = [
        ("delivered", |t| t.delivered),
        ("lost", |t| t.lost),
        ("duplicated", |t| t.duplicated),
        ("reordered", |t| t.reordered),
        ("refused", |t| t.refused),
        ("not sent", |t| t.not_sent),
    ];
    let mut rows = Vec::new();
    for cell in &workload.cells {
        let expected: u64 = cell.trials.iter().map(|t| t.expected).sum();
        for (name, count) in COUNTS {
            // Over all repeats, valid or not: nothing is dropped in silence.
            let sum: u64 = cell.trials.iter().map(|t| count(t)).sum();
            rows.push(vec![
                cell.label.as_str().into(),
                verdict(cell).into(),
                name.into(),
                sum.into(),
                expected.into(),
            ]);
        }
    }
    Figure {
        id,
        kind: Kind::Counts,
        title: "Loss and disorder".into(),
        description: "Messages counted over all repeats, valid or not: deliveries, and what was lost, duplicated, \
                      overtaken, refused, or due but not sent."
            .into(),
        columns: vec!["system", "verdict", "count", "messages", "expected_deliveries"],
        rows,
    }
}
