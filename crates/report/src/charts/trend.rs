//! A figure over several runs, in the order of time: a line for each row, and rings where it changed beyond noise.

use pubgauge_conclusions::compare::trend::{CellTrend, TrendPoint};
use pubgauge_quantities::lists::unique;

use super::chart::{Chart, ChartKind, Value, columns};
use crate::compare::format_change;
use crate::trend::unit;

/// The figures of cells of one workload at one point. Their ids begin with `id`. A figure that is 0 throughout is left out.
pub(crate) fn of_cells(cells: &[&CellTrend], id: &str) -> Vec<Chart> {
    let figures = cells.iter().flat_map(|cell| &cell.figures);
    let names = unique(figures.map(|figure| figure.figure.as_str()));
    let charts = names.into_iter().map(|name| of_figure(cells, id, name));
    let is_told = |chart: &Chart| {
        let value = |row: &Vec<Value>| row[4].as_f64().is_some_and(|value| value != 0.0);
        chart.rows.iter().any(value)
    };
    charts.filter(is_told).collect()
}

fn of_figure(cells: &[&CellTrend], id: &str, name: &str) -> Chart {
    let mut suffix = "";
    let mut rows = Vec::new();
    for cell in cells {
        for figure in cell.figures.iter().filter(|of| of.figure == name) {
            suffix = unit(figure).suffix();
            let told = cell.runs.iter().zip(&figure.points);
            rows.extend(told.map(|(run, point)| row(&cell.row, run.verdict.as_str(), point)));
        }
    }
    let in_unit = |name: &str| match suffix {
        "" => name.to_owned(),
        suffix => format!("{name}_{suffix}"),
    };
    Chart {
        id: format!("{id}-{}", name.replace(['.', '@', ' '], "-")),
        kind: ChartKind::Trend,
        wide: false,
        title: name.to_owned(),
        description:
            "Mean over repeats in each run with its 95 % interval, of two repeats with both values. Ringed: it changed \
             beyond noise. Hollow: it cannot be compared. Left out: runs that show no such figure."
                .into(),
        columns: columns(["row", "at", "number", "verdict"])
            .into_iter()
            .chain(["value", "ci_low", "ci_high"].map(in_unit))
            .chain(columns(["repeats", "change", "not_compared"]))
            .collect(),
        rows,
        lines: Vec::new(),
        marks: Vec::new(),
    }
}

fn row(name: &str, verdict: &str, point: &TrendPoint) -> Vec<Value> {
    let step = point.step.as_ref().filter(|step| step.is_change());
    let change = step.and_then(|step| {
        let (effect, interval) = format_change(step.change?);
        let words = format!(
            "{}: {effect} ({interval}) against run {}",
            step.verdict, step.from
        );
        Some(words)
    });
    vec![
        name.into(),
        format!("run {}", point.run).into(),
        point.run.into(),
        verdict.into(),
        point.value.into(),
        point.low.into(),
        point.high.into(),
        point.repeats.into(),
        change.into(),
        (point.step.as_ref())
            .and_then(|step| step.why.as_deref())
            .into(),
    ]
}
