//! Latency: percentiles, all flows together and flow by flow, and the distribution function.

use pubgauge_figures::histogram::{self, clean_tag};
use pubgauge_figures::{Distribution, Trial};
use pubgauge_quantities::lists::unique;

use super::chart::{Chart, ChartKind, LimitLine, NOISE, Value, columns, interval, row};
use crate::LatencyLogs;
use crate::summary::{Cell, WorkloadCells};

/// Percentiles of latency: name and quantile.
const PERCENTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
];

/// Points of a curve: enough for a smooth one on a screen 1000 points wide.
const CURVE_POINTS: usize = 150;

/// Points of all curves of a workload.
const MOST_POINTS: usize = 200_000;

/// Points of a curve at the least.
const FEWEST_POINTS: usize = 10;

pub(super) fn figures(
    workload: &WorkloadCells<'_>,
    logs: &dyn LatencyLogs,
    id: &dyn Fn(&str) -> String,
    lines: &[(Option<String>, LimitLine)],
) -> Vec<Chart> {
    let trials = workload.cells.iter().flat_map(|cell| &cell.trials);
    let flows = trials.flat_map(|trial| &trial.flows);
    let flows = unique(flows.map(|flow| flow.name.as_str()));
    let flows = if flows.len() > 1 { flows } else { Vec::new() };
    let most = points_of_each(quotable(workload).count() * (flows.len() + 2));
    let curves = |cell| curves(cell, logs, &flows, most);
    let curves: Vec<Vec<Curve>> = quotable(workload).map(curves).collect();
    let of = |nth: usize| curves.iter().map(move |of| &*of[nth]);
    let mut figures = vec![percentiles(workload, of(0), None, id("latency"), lines)];
    for (nth, flow) in (1..).zip(&flows) {
        let id = id(&format!("flow{nth}"));
        figures.push(percentiles(workload, of(nth), Some(flow), id, lines));
    }
    figures.push(ecdf(workload, of(0), id("ecdf"), most));
    figures
}

/// Points of a distribution function: (ns, share).
type Curve = Vec<(f64, f64)>;

/// Points of each curve where a workload has so many: all of them together are no more than a browser draws.
fn points_of_each(curves: usize) -> usize {
    (MOST_POINTS / curves.max(1)).clamp(FEWEST_POINTS, CURVE_POINTS)
}

fn quotable<'w, 'a>(workload: &'w WorkloadCells<'a>) -> impl Iterator<Item = &'w Cell<'a>> {
    workload.cells.iter().filter(|cell| cell.quotes_latency())
}

fn distribution<'t>(trial: &'t Trial, flow: Option<&str>) -> Option<&'t Distribution> {
    match flow {
        None => Some(&trial.messages.latency_ns),
        Some(name) => {
            let flow = trial.flows.iter().find(|flow| flow.name == name)?;
            Some(&flow.messages.latency_ns)
        }
    }
}

fn percentiles<'c>(
    workload: &WorkloadCells<'_>,
    curves: impl Iterator<Item = &'c [(f64, f64)]>,
    flow: Option<&str>,
    id: String,
    lines: &[(Option<String>, LimitLine)],
) -> Chart {
    let mut rows = Vec::new();
    for (cell, curve) in quotable(workload).zip(curves) {
        for (name, quantile) in PERCENTILES {
            let at = |trial: &Trial| Some(distribution(trial, flow)?.quotable(quantile)? as f64);
            let Some(estimate) = cell.estimate(at) else {
                continue;
            };
            let figures = [name.into(), quantile.into()].into_iter();
            rows.push(row(cell, figures.chain(interval(Some(estimate)))));
        }
        for &(ns, share) in curve {
            let figures = ["".into(), share.into(), ns.into(), Value::Null, Value::Null];
            rows.push(row(cell, figures));
        }
    }
    if let Some(trial) = noise_trial(workload).filter(|_| !rows.is_empty()) {
        let noise = |name: &str, share: f64, ns: f64| -> Vec<Value> {
            let head = [NOISE, "", name].map(Value::from);
            let figures = [share.into(), ns.into(), Value::Null, Value::Null];
            head.into_iter().chain(figures).collect()
        };
        for (name, quantile) in PERCENTILES {
            let ns = trial.noise_ns.quotable(quantile);
            rows.extend(ns.map(|ns| noise(name, quantile, ns as f64)));
        }
        let steps = thin(&trial.noise_ecdf, CURVE_POINTS);
        rows.extend(steps.into_iter().map(|(ns, share)| noise("", share, ns)));
    }
    let title = match flow {
        None => "Latency percentiles".to_owned(),
        Some(flow) => format!("Latency percentiles of flow {flow}"),
    };
    let description = match flow {
        None => format!(
            "From the intended send time to arrival. The curve is of all repeats together, the dots are means of the \
             repeats with 95 % confidence intervals (of two, with both values); a percentile is left out where no message lies beyond it. Below the line of \
             the machine's noise (how late a thread wakes up that only sleeps 1 ms at a time) nothing can be blamed on a system.{}",
            queueing(workload)
        ),
        Some(_) => "The same of this flow alone.".to_owned(),
    };
    let own = |line: &&(Option<String>, LimitLine)| {
        line.0.as_deref() == flow && line.1.of.starts_with("latency_ns.")
    };
    Chart {
        id,
        kind: ChartKind::Percentiles,
        wide: flow.is_none() && !workload.flat_out,
        title,
        description,
        columns: columns([
            "row",
            "verdict",
            "percentile",
            "share",
            "latency_ns",
            "low_ns",
            "high_ns",
        ]),
        rows,
        lines: lines
            .iter()
            .filter(own)
            .map(|(_, line)| line.clone())
            .collect(),
        marks: Vec::new(),
    }
}

fn queueing(workload: &WorkloadCells<'_>) -> &'static str {
    if workload.flat_out {
        " Flat out, latency shows how long the queues are, not how fast a system answers."
    } else {
        ""
    }
}

fn ecdf<'c>(
    workload: &WorkloadCells<'_>,
    curves: impl Iterator<Item = &'c [(f64, f64)]>,
    id: String,
    most: usize,
) -> Chart {
    let mut rows = Vec::new();
    for (cell, curve) in quotable(workload).zip(curves) {
        let points = curve.iter().copied();
        rows.extend(points.map(|(ns, share)| row(cell, [ns.into(), share.into()])));
    }
    if let Some(trial) = noise_trial(workload).filter(|_| !rows.is_empty()) {
        let point =
            |(ns, share): (f64, f64)| vec![NOISE.into(), "".into(), ns.into(), share.into()];
        rows.extend(thin(&trial.noise_ecdf, CURVE_POINTS).into_iter().map(point));
    }
    Chart {
        id,
        kind: ChartKind::Ecdf,
        wide: false,
        title: "Latency distribution".into(),
        description: format!(
            "Share of deliveries at or below a latency (ECDF), all repeats together.{}{}",
            queueing(workload),
            if most < CURVE_POINTS {
                format!(" Of so many rows each curve has {most} points.")
            } else {
                String::new()
            }
        ),
        columns: columns(["row", "verdict", "latency_ns", "share"]),
        rows,
        lines: Vec::new(),
        marks: Vec::new(),
    }
}

/// The distribution functions over all quoted repeats, of all flows together and of each of these: exact from the logs,
/// otherwise the stored points of the typical repeat. Deliveries that were still under way count as later than all.
fn curves(cell: &Cell<'_>, logs: &dyn LatencyLogs, flows: &[&str], most: usize) -> Vec<Curve> {
    let quoted = cell.quoted();
    let tags: Vec<String> = flows.iter().map(|flow| clean_tag(flow)).collect();
    let mut sums = vec![None; flows.len() + 1];
    let mut complete = true;
    for trial in &quoted {
        let Some(intervals) = logs.intervals(trial.id) else {
            complete = false;
            continue;
        };
        for interval in intervals.iter() {
            let of = tags
                .iter()
                .position(|tag| interval.tag.as_ref() == Some(tag));
            for which in [Some(0), of.map(|nth| nth + 1)].into_iter().flatten() {
                histogram::add_to(&mut sums[which], &interval.histogram);
            }
        }
    }
    let flow = |which: usize| which.checked_sub(1).map(|nth| flows[nth]);
    let pooled = sums.into_iter().enumerate();
    let curve = pooled.map(|(which, pooled)| match (pooled, flow(which)) {
        (Some(pooled), flow) if complete => {
            let all = quoted.iter().filter_map(|trial| distribution(trial, flow));
            let missing: u64 = all.map(|d| d.censored).sum();
            let known = pooled.len() as f64 / (pooled.len() + missing).max(1) as f64;
            let points = histogram::ecdf(&pooled, most).into_iter();
            points
                .map(|(ns, share)| (ns as f64, rounded(share * known)))
                .collect()
        }
        (_, None) => thin(&cell.typical().latency_ecdf, most),
        // Points are stored for all flows together alone.
        (_, Some(_)) => Vec::new(),
    });
    curve.collect()
}

/// Eight decimals show one message of a hundred million.
fn rounded(share: f64) -> f64 {
    (share * 1e8).round() / 1e8
}

/// Fewer points of a stored curve, some `most`, with the first and the last.
fn thin(points: &[(u64, f64)], most: usize) -> Curve {
    let step = points.len().div_ceil(most).max(1);
    let last = points.len().saturating_sub(1);
    let kept = points.iter().enumerate();
    let kept = kept.filter(|(nth, _)| nth % step == 0 || *nth == last);
    kept.map(|(_, &(ns, share))| (ns as f64, rounded(share)))
        .collect()
}

/// The trial of a workload whose noise is the median one.
fn noise_trial<'a>(workload: &WorkloadCells<'a>) -> Option<&'a Trial> {
    let mut trials: Vec<&Trial> = workload
        .cells
        .iter()
        .flat_map(|cell| cell.trials.iter().copied())
        .filter(|trial| trial.noise_ns.count > 0)
        .collect();
    trials.sort_by_key(|trial| trial.noise_ns.p99);
    trials.get(trials.len().saturating_sub(1) / 2).copied()
}
