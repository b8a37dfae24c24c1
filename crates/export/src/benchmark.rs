//! Figures in the form that github-action-benchmark reads (its tools `customSmallerIsBetter` and `customBiggerIsBetter`):
//! <https://github.com/benchmark-action/github-action-benchmark>

use pubgauge_conclusions::summary::{Cell, Summary, WorkloadCells};
use pubgauge_conclusions::wins::Contest;
use pubgauge_figures::Results;
use pubgauge_figures::figure::{Better, Unit};
use pubgauge_quantities::shown;
use pubgauge_quantities::stats::MeanInterval;
use serde::Serialize;

/// One figure of one cell. The action draws a chart for each name, so that names stay the same from run to run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchmarkEntry {
    /// Workload, row, load and figure: `fleet / mosquitto / latency.p99`.
    pub name: String,
    /// The unit of the value.
    pub unit: &'static str,
    /// Mean over the valid repeats.
    pub value: f64,
    /// Half the width of its 95 % interval, `± 0.12`; absent below three repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<String>,
    /// The repeats that it is from, and the version of the system.
    pub extra: String,
}

/// The figures in which cells are compared: those of which less is better, and those of which more is. Only valid trials
/// have them: a bound that another run did not reach would be an alarm about nothing.
pub fn entries(results: &Results) -> [Vec<BenchmarkEntry>; 2] {
    let summary = Summary::summarize(results);
    let (mut smaller, mut bigger) = (Vec::new(), Vec::new());
    for workload in &summary.workloads {
        for point in 0..workload.points.len() {
            let cells: Vec<&Cell<'_>> = workload.cells_at(point).collect();
            for contest in Contest::contests_of(&cells) {
                let of = match contest.figure().better {
                    Better::Less => &mut smaller,
                    Better::More => &mut bigger,
                };
                of.extend(
                    cells
                        .iter()
                        .filter_map(|cell| entry(workload, cell, contest)),
                );
            }
        }
    }
    [smaller, bigger]
}

fn entry(
    workload: &WorkloadCells<'_>,
    cell: &Cell<'_>,
    contest: Contest,
) -> Option<BenchmarkEntry> {
    // A percentile that falls among lost messages is larger than all that came.
    let values: Option<Vec<f64>> = cell.valid().map(|trial| contest.value(trial)).collect();
    let estimate = MeanInterval::mean_of(&values?)?;
    let figure = contest.figure();
    let (unit, scale) = match figure.unit {
        Unit::Nanoseconds => ("ms", 1e6),
        Unit::PerSecond => ("msg/s", 1.0),
        Unit::MicrosecondsPerMessage => ("us/msg", 1.0),
        unit => (unit.symbol(), 1.0),
    };
    let range = estimate.half_width;
    let repeats = shown::so_many(cell.trials.len() as u64, "repeat");
    Some(BenchmarkEntry {
        name: format!("{} / {} / {}", workload.name, cell.label, figure.name),
        unit,
        value: estimate.mean / scale,
        range: range.map(|half| format!("\u{b1} {}", shown::digits(half / scale))),
        extra: format!(
            "{} valid of {repeats}, version {}",
            estimate.n, cell.trials[0].system.version
        ),
    })
}

/// The entries as the file that the action reads.
pub fn text(entries: &[BenchmarkEntry]) -> String {
    let text = serde_json::to_string_pretty(entries);
    text.expect("plain data is always JSON") + "\n"
}
