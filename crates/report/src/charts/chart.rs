//! A figure as plain data.

use serde::Serialize;
pub use serde_json::Value;

use pubgauge_quantities::stats::MeanInterval;

use crate::summary::Cell;

/// Label of the machine's own noise in figures of latency.
pub const NOISE: &str = "machine's noise";

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chart {
    /// Unique on the page; also the name of its files.
    pub id: String,
    /// How it is drawn.
    pub kind: ChartKind,
    /// Whether it takes the whole width of the page.
    pub wide: bool,
    /// Heading.
    pub title: String,
    /// Its content in words, as the caption and as the text alternative.
    pub description: String,
    /// Names of the columns, with units.
    pub columns: Vec<String>,
    /// Rows; each is as long as `columns`, and has text, numbers, and null for what was not measured. The first value is the
    /// label of its cell.
    #[serde(skip)]
    pub rows: Vec<Vec<Value>>,
    /// The limits of the figures shown.
    pub lines: Vec<LimitLine>,
    /// Spans of time to shade.
    pub marks: Vec<ChartMark>,
}

/// How a figure is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChartKind {
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
    /// The figure of each row over several runs.
    Trend,
}

impl ChartKind {
    /// Its name, as data and script have it.
    pub(crate) fn name(self) -> String {
        let name = serde_json::to_value(self).expect("a name");
        name.as_str().expect("a text").to_owned()
    }
}

/// A limit of a figure; of a search, an end of the limit's interval (`low`, `high`) or the
/// `confirmed` load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LimitLine {
    /// The figure by its name in `results.json`: `latency_ns.p99`.
    pub of: String,
    /// The limit, in the figure's own unit.
    pub value: f64,
    /// In words: `p99 ≤ 100 ms`.
    pub label: String,
}

/// A span of a trial: its drain, a phase, a fault.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChartMark {
    /// Its beginning, seconds from the start of the measurement.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    pub label: String,
}

pub(super) fn columns<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

/// A row: the cell's label and verdict, then its figures.
pub(super) fn row(cell: &Cell<'_>, figures: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let head = [cell.label.as_str().into(), cell.status().as_str().into()];
    head.into_iter().chain(figures).collect()
}

/// Mean and both ends of its interval; of two repeats both values, of one none.
pub(super) fn interval(estimate: Option<MeanInterval>) -> [Value; 3] {
    let end = |of: fn(&MeanInterval) -> f64| {
        let known = estimate.filter(|e| e.n > 1);
        Value::from(known.map(|e| of(&e)))
    };
    [
        estimate.map(|e| e.mean).into(),
        end(MeanInterval::low),
        end(MeanInterval::high),
    ]
}
