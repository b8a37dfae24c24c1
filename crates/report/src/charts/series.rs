//! Figures of the series.

use pubgauge_figures::model::FlowFigures;
use pubgauge_figures::{Results, SeriesRecord, Status, TrafficRecord, Trial};

use super::chart::{Chart, ChartKind, ChartMark, Value, columns, row};
use crate::answers;
use crate::summary::WorkloadCells;

/// The largest number of records in a figure; longer series are merged record by record.
const SERIES_POINTS: usize = 240;

/// The largest number of records in the figures of all rows of a workload together; each has ten at the least.
const MOST_POINTS: usize = 100_000;

pub(super) fn series(results: &Results, workload: &WorkloadCells<'_>, id: String) -> Chart {
    let specs = &results.study.criterion_specs;
    let mut rows = Vec::new();
    let mut measured: f64 = 0.0;
    let mut end: f64 = 0.0;
    let mut longest = 0;
    let mut asked: Vec<Option<f64>> = Vec::new();
    let most = (MOST_POINTS / workload.cells.len().max(1)).clamp(10, SERIES_POINTS);
    for cell in &workload.cells {
        let refusing = answers::row(cell, specs).refusing_trial(cell);
        let trial = refusing.unwrap_or_else(|| cell.typical());
        measured = measured.max(trial.duration_s);
        longest = longest.max(trial.series.len());
        for (length, second) in thinned(&trial.series, most) {
            end = end.max(second.traffic.t_s);
            asked.push(asked_for(
                trial,
                second.traffic.t_s - length,
                second.traffic.t_s,
            ));
            // The first deliveries may all be of the warm-up: they have no latency.
            let some = |ns: u64| Value::from((ns > 0).then_some(ns as f64));
            rows.push(row(
                cell,
                [
                    f64::from(trial.repeat).into(),
                    rounded(second.traffic.t_s).into(),
                    rounded(second.traffic.published as f64 / length).into(),
                    rounded(second.traffic.delivered as f64 / length).into(),
                    some(second.traffic.latency_p50_ns),
                    some(second.traffic.latency_p99_ns),
                    (second.traffic.backlog as f64).into(),
                    (second.traffic.waiting as f64).into(),
                    rounded(second.publishers_cpu).into(),
                    rounded(second.subscribers_cpu).into(),
                    second.system_cpu.map(rounded).into(),
                    (second.noise_max_ns as f64).into(),
                ],
            ));
        }
    }
    let mut names = columns([
        "row",
        "verdict",
        "repeat",
        "t_s",
        "published_msgs_per_s",
        "delivered_msgs_per_s",
        "latency_p50_ns",
        "latency_p99_ns",
        "backlog_msgs",
        "held_back_msgs",
        "publishers_cpu_cores",
        "subscribers_cpu_cores",
        "system_cpu_cores",
        "noise_max_ns",
    ]);
    let changes = asked.iter().any(Option::is_some);
    if changes {
        names.push("asked_msgs_per_s".into());
        for (row, asked) in rows.iter_mut().zip(asked) {
            row.push(asked.map(rounded).into());
        }
    }
    let drain = ChartMark {
        from_s: rounded(measured),
        to_s: rounded(end),
        label: "drain".into(),
    };
    Chart {
        id,
        kind: ChartKind::Series,
        wide: true,
        title: "Second by second".into(),
        description: format!(
            "Rate, latency, backlog (published and due to arrive, but not there yet) and processor use; {}shaded: {}the \
             drain, in which nothing is sent. Of several repeats the one that decided a *no*, else the one with the median rate.{}",
            if changes {
                "dotted: the deliveries that the load asks for, which changes over time; "
            } else {
                ""
            },
            if windows(workload).is_empty() {
                ""
            } else {
                "every other window, and "
            },
            if longest > most {
                " A point stands for several records: its p50 is the mean of theirs by deliveries, its p99 their largest."
            } else {
                ""
            }
        ),
        columns: names,
        rows,
        lines: Vec::new(),
        marks: windows(workload)
            .into_iter()
            .chain(Some(drain).filter(|d| d.to_s > d.from_s))
            .collect(),
    }
}

/// Deliveries a second that a load which changes over time asks for, on average between two times; `None` for other loads, and
/// after the measurement. Of flows beside it that do not change it is what was due.
fn asked_for(trial: &Trial, from_s: f64, to_s: f64) -> Option<f64> {
    let changes = |flow: &FlowFigures| !flow.rate_over_time.is_empty();
    if !trial.flows.iter().any(changes) || to_s > trial.duration_s + 1e-3 || to_s <= from_s {
        return None;
    }
    let of_flow = |flow: &FlowFigures| {
        if changes(flow) {
            let each = flow.messages.expected as f64 / flow.messages.published.max(1) as f64;
            return each * area(&flow.rate_over_time, from_s, to_s);
        }
        let within =
            |record: &&TrafficRecord| record.t_s > from_s + 1e-6 && record.t_s < to_s + 1e-6;
        let due = flow.series.iter().filter(within).map(|record| record.due);
        due.sum::<u64>() as f64
    };
    Some(trial.flows.iter().map(of_flow).sum::<f64>() / (to_s - from_s))
}

/// The area under straight lines between two times.
fn area(corners: &[(f64, f64)], from: f64, to: f64) -> f64 {
    let part = |pair: &[(f64, f64)]| {
        let [(start, first), (end, last)] = [pair[0], pair[1]];
        let (begin, stop) = (from.max(start), to.min(end));
        if stop <= begin {
            return 0.0;
        }
        let at = |t: f64| first + (last - first) * (t - start) / (end - start);
        (stop - begin) * (at(begin) + at(stop)) / 2.0
    };
    corners.windows(2).map(part).sum()
}

/// The second of a trial in which it went wrong, from the start of the measurement: from which on messages were not there that
/// were due, where the system lost them or fell behind; else that of the highest latency. `None` without a series.
pub(crate) fn wrong_second(trial: &Trial) -> Option<f64> {
    let records = || trial.series.iter().map(|record| &record.traffic);
    let behind = records().map(|traffic| traffic.backlog).max()?;
    let fell_behind = matches!(
        trial.verdict.status,
        Status::Overloaded | Status::Lossy | Status::Broken
    );
    let wrong = if fell_behind && behind > 0 {
        let last = records().rposition(|traffic| traffic.backlog <= behind / 10);
        records().nth(last.map_or(0, |last| last + 1))
    } else {
        records().max_by_key(|traffic| traffic.latency_p99_ns)
    };
    wrong.map(|traffic| rounded(traffic.t_s))
}

/// The windows of the measurement. Of adjacent ones only every other one is shaded, to show where they
/// meet.
fn windows(workload: &WorkloadCells<'_>) -> Vec<ChartMark> {
    let trials = workload.cells.iter().map(|cell| cell.typical());
    let first = trials.map(|trial| &trial.windows).find(|w| !w.is_empty());
    let mut marks: Vec<ChartMark> = Vec::new();
    let mut touched = false;
    let mut end = f64::NEG_INFINITY;
    for window in first.into_iter().flatten() {
        touched = window.from_s <= end && !touched;
        end = window.to_s;
        if !touched {
            marks.push(ChartMark {
                from_s: rounded(window.from_s),
                to_s: rounded(window.to_s),
                label: window.name.clone(),
            });
        }
    }
    marks
}

/// Three decimals are enough for a drawing and keep the page small.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// Records with their length in seconds, merged so that no more than `most` are left.
fn thinned(series: &[SeriesRecord], most: usize) -> Vec<(f64, SeriesRecord)> {
    let group = series.len().div_ceil(most).max(1);
    let mut start = 0.0;
    series
        .chunks(group)
        .filter_map(|chunk| {
            let last = chunk.last()?;
            let length = last.traffic.t_s - start;
            start = last.traffic.t_s;
            let n = chunk.len() as f64;
            let delivered: u64 = chunk.iter().map(|s| s.traffic.delivered).sum();
            let mean = |figure: fn(&SeriesRecord) -> f64| chunk.iter().map(figure).sum::<f64>() / n;
            let timed = || chunk.iter().filter(|s| s.traffic.latency_p50_ns > 0);
            let of: u64 = timed().map(|s| s.traffic.delivered).sum();
            let p50 = timed()
                .map(|s| s.traffic.latency_p50_ns as f64 * s.traffic.delivered as f64)
                .sum::<f64>();
            let merged = SeriesRecord {
                traffic: TrafficRecord {
                    published: chunk.iter().map(|s| s.traffic.published).sum(),
                    delivered,
                    latency_p50_ns: (p50 / of.max(1) as f64).round() as u64,
                    latency_p99_ns: chunk
                        .iter()
                        .map(|s| s.traffic.latency_p99_ns)
                        .max()
                        .unwrap_or(0),
                    latency_max_ns: chunk
                        .iter()
                        .map(|s| s.traffic.latency_max_ns)
                        .max()
                        .unwrap_or(0),
                    ..TrafficRecord::default()
                },

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_that_is_asked_for_is_the_area_of_its_course() {
        let corners = [(1.0, 100.0), (3.0, 300.0), (3.0, 50.0), (5.0, 50.0)];
        for (from, to, expected) in [
            (0.0, 1.0, 0.0),
            (1.0, 3.0, 400.0),
            (1.5, 2.5, 200.0),
            (2.0, 4.0, 300.0),
            (4.0, 9.0, 50.0),
        ] {
            assert_eq!(area(&corners, from, to), expected, "{from} to {to}");
        }
        let mut flow = FlowFigures {
            rate_over_time: corners.into(),
            ..FlowFigures::default()
        };
        (flow.messages.published, flow.messages.expected) = (10, 30);
        let trial = Trial {
            duration_s: 5.0,
            flows: vec![flow],
            ..Trial::default()
        };
        assert_eq!(asked_for(&trial, 1.0, 3.0), Some(600.0));
        assert_eq!(asked_for(&trial, 5.0, 6.0), None);
        assert_eq!(asked_for(&Trial::default(), 0.0, 0.0), None);
    }

    /// Deliveries of the warm-up have no latency, which is not one of 0.
    #[test]
    fn what_was_not_timed_is_no_part_of_a_mean() {
        let record = |n: u32| SeriesRecord {
            traffic: TrafficRecord {
                t_s: f64::from(n),
                delivered: 100,
                latency_p50_ns: if n.is_multiple_of(2) { 4_000 } else { 0 },
                ..TrafficRecord::default()
            },

            ..SeriesRecord::default()
        };
        let series: Vec<SeriesRecord> = (1..=2 * SERIES_POINTS as u32).map(record).collect();
        let merged = thinned(&series, SERIES_POINTS);
        assert_eq!(merged.len(), SERIES_POINTS);
        assert!(
            merged
                .iter()
                .all(|(_, s)| s.traffic.latency_p50_ns == 4_000)
        );
    }
}
