//! Figures of a search for a limit: the achieved part of each load, and its latency.

use pubgauge_figures::Results;
use pubgauge_figures::search::Axis;

use super::chart::{Chart, ChartKind, LimitLine, Value, columns};
use super::{lines, lines_of};
use crate::answers;
use crate::searches::{Sought, Tried, finding, purpose};

/// The figures of a search, without those that have no rows.
pub(crate) fn of_search(results: &Results, sought: &Sought<'_>) -> Vec<Chart> {
    let id = |kind: &str| format!("s{}-{kind}", sought.number + 1);
    let mut figures = vec![
        achieved(sought, id("achieved")),
        latency(results, sought, id("latency")),
    ];
    figures.retain(|figure| !figure.rows.is_empty());
    figures
}

/// The column of a load, or of what was achieved of it, in the unit of what was varied.
fn column(name: &str, axis: Axis) -> String {
    match axis {
        Axis::Rate => format!("{name}_msgs_per_s"),
        Axis::Payload => format!("{name}_bytes"),
        Axis::Burst => format!("{name}_burst_msgs"),
        Axis::Publishers | Axis::Subscribers | Axis::Topics => format!("{name}_{axis}"),
    }
}

/// The columns that the rows of both figures begin with.
const HEAD: [&str; 5] = ["row", "verdict", "trial", "purpose", "finding"];

fn row(
    sought: &Sought<'_>,
    tried: &Tried<'_>,
    figures: impl IntoIterator<Item = Value>,
) -> Vec<Value> {
    let verdict = tried.trial.map(|trial| trial.verdict.status.as_str());
    let head = [
        sought.label.as_str().into(),
        verdict.into(),
        f64::from(tried.step.id).into(),
        purpose(tried.step.purpose).into(),
        finding(tried.step.finding).0.into(),
    ];
    head.into_iter().chain(figures).collect()
}

/// Both ends of the interval and the confirmed load, as shares of `whole`.
fn limits(sought: &Sought<'_>, whole: f64) -> Vec<LimitLine> {
    let search = sought.search;
    let ends = [
        ("low", search.low),
        ("high", search.high),
        ("confirmed", search.confirmed),
    ];
    let known = ends.into_iter().filter_map(|(of, value)| {
        Some(LimitLine {
            of: of.to_owned(),
            value: value? / whole,
            label: sought.load(value?),
        })
    });
    known.collect()
}

fn achieved(sought: &Sought<'_>, id: String) -> Chart {
    let column = |name: &str| column(name, sought.search.axis);
    let rows = sought.tried.iter().map(|tried| {
        let measured = tried.trial.map(|trial| trial.duration_s);
        let figures = [
            tried.step.load.into(),
            tried.step.achieved.into(),
            measured.into(),
        ];
        row(sought, tried, figures)
    });
    Chart {
        id,
        kind: ChartKind::Limit,
        wide: false,
        title: "Achieved of each load".into(),
        description: format!(
            "Every trial of the search, by what it told. Limit: {}; shaded is where the limit lies with 95 % certainty, the upright line the \
             confirmed load, the dashed diagonal all that was offered.",
            sought.limit()
        ),
        columns: columns(HEAD)
            .into_iter()
            .chain([column("load"), column("achieved"), "measured_s".to_owned()])
            .collect(),
        rows: rows.collect(),
        lines: limits(sought, 1.0),
        marks: Vec::new(),
    }
}

fn latency(results: &Results, sought: &Sought<'_>, id: String) -> Chart {
    let middle = sought.middle();
    let rows = sought.tried.iter().filter_map(|tried| {
        let (own, trial) = (tried.step.load?, tried.trial?);
        let quantile = |q: f64| trial.messages.latency_ns.quotable(q).map(|ns| ns as f64);
        let figures = [
            own.into(),
            middle.map(|middle| own / middle).into(),
            quantile(0.5).into(),
            quantile(0.99).into(),
        ];
        quantile(0.5)?;
        Some(row(sought, tried, figures))
    });
    let whole = match (middle, sought.search.high) {
        (None, _) => "The limit is not known, so that loads are no shares of it.",
        (_, Some(_)) => "The limit is taken for the middle of its interval (geometric mean).",
        (_, None) => "The limit is taken for what the system carries at least.",
    };
    let workload = sought.workload();
    // A search over bursts has no default limit of latency.
    let unasked =
        sought.search.axis == Axis::Burst && answers::demands_in_words(results, &workload).1;
    let asked = if unasked {
        Vec::new()
    } else {
        lines(results, &workload)
    };
    Chart {
        id,
        kind: ChartKind::LatencyOverLoad,
        wide: false,
        title: "Latency over load".into(),
        description: format!(
            "p99 by what the trial told, p50 as small rings, over the load as a share of the limit, log scale. {whole} \
             Flat out, latency is that of queues without end, and is left out."
        ),
        columns: columns(HEAD)
            .into_iter()
            .chain([column("load", sought.search.axis)])
            .chain(columns(["load_share", "p50_ns", "p99_ns"]))
            .collect(),
        rows: rows.collect(),
        lines: limits(sought, middle.unwrap_or(1.0))
            .into_iter()
            .chain(lines_of(&asked, &["latency_ns.p99"]))
            .collect(),
        marks: Vec::new(),
    }
}
