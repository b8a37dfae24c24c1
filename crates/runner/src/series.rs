//! Converts the workers' cuts to the series of `results.json`: rates and backlog.

use pubgauge_driver::Nanos;
use pubgauge_engine::assignment::Role;
use pubgauge_engine::conductor::{DrainEnd, IntervalLatency, Moment, TrialRecord};
use pubgauge_engine::recording::FlowRecording;
use pubgauge_engine::series::Totals;
use pubgauge_figures::model::{AtStart, SeriesRecord, TrafficRecord};

use crate::observe::Observed;

const SECOND: f64 = 1e9;

/// The state at the start of the measurement.
pub fn at_start(record: &TrialRecord) -> AtStart {
    let Some(first) = record.series.first() else {
        return AtStart::default();
    };
    let sum = first.sum();
    AtStart {
        published: sum.published,
        delivered: sum.unique,
        backlog: backlogs(record).first().copied().unwrap_or(0),
    }
}

/// The series, second by second or in shorter steps.
pub fn series(record: &TrialRecord, observed: &Observed) -> Vec<SeriesRecord> {
    let backlogs = backlogs(record);
    // Workers on other hosts report their processor time at the end.
    let elsewhere = |role| observed.elsewhere.then(|| mean_cores(record, role));
    let [publishers, subscribers] = [Role::Publishers, Role::Subscribers].map(elsewhere);
    let mut series = Vec::new();
    for (number, pair) in record.series.windows(2).enumerate() {
        let (from, to) = (&pair[0], &pair[1]);
        if to.at <= from.at {
            continue;
        }
        let seen = observed.second((from.at + to.at) as f64 / 2.0 / SECOND);
        let passed = to.sum() - from.sum();
        series.push(SeriesRecord {
            traffic: traffic(
                to.at,
                &passed,
                &to.sum(),
                backlogs[number + 1],
                latency(record, number, None),
            ),
            duplicated: passed.repeated,
            publishers_cpu: publishers.unwrap_or(seen.publishers_cpu),
            subscribers_cpu: subscribers.unwrap_or(seen.subscribers_cpu),
            ..seen
        });
    }
    series
}

/// The traffic of an interval that ended at `at`: the counts that `passed` in it, and `now` up to its end.
fn traffic(
    at: Nanos,
    passed: &Totals,
    now: &Totals,
    backlog: u64,
    latency: IntervalLatency,
) -> TrafficRecord {
    TrafficRecord {
        t_s: at as f64 / SECOND,
        published: passed.published,
        // A rejection may belong to a message of an earlier record.
        due: passed.due.saturating_sub(passed.rejected),
        delivered: passed.unique,
        backlog,
        waiting: now.waiting,
        latency_p50_ns: latency.p50,
        latency_p90_ns: latency.p90,
        latency_p99_ns: latency.p99,
        latency_max_ns: latency.max,
        latency_from_send_p90_ns: latency.from_send_p90,
    }
}

/// The latencies of an interval, of one flow or of all.
fn latency(record: &TrialRecord, number: usize, flow: Option<u32>) -> IntervalLatency {
    let of = record.latency_by_interval.get(&(number as u32, flow));
    of.copied().unwrap_or_default()
}

/// Processors that the workers of a side used on average over the measurement.
fn mean_cores(record: &TrialRecord, role: Role) -> f64 {
    let of_role = record.recordings.iter().filter(|r| r.role == role);
    let busy = of_role.map(|r| r.usage.running as f64 / r.usage.span.max(1) as f64);
    // In Rust the sum of no values is -0.
    busy.sum::<f64>() + 0.0
}

pub fn of_flow(record: &TrialRecord, flow: usize) -> Vec<TrafficRecord> {
    let backlogs = backlogs_of(record, flow);
    let pairs = record.series.windows(2).enumerate();
    pairs
        .filter(|(_, pair)| pair[1].at > pair[0].at)
        .map(|(number, pair)| {
            let now = pair[1].flows[flow];
            traffic(
                pair[1].at,
                &(now - pair[0].flows[flow]),
                &now,
                backlogs[number + 1],
                latency(record, number, Some(flow as u32)),
            )
        })
        .collect()
}

/// The course of a backlog.
#[derive(Default)]
pub struct Course {
    /// The backlog of messages that were due and had not come, held back ones included, in steps over the measurement:
    /// seconds and deliveries.
    pub backlog: Vec<(f64, u64)>,
    /// Deliveries due up to each step, since the start of the warm-up.
    pub due: Vec<u64>,
}

/// The course of one flow or of all.
pub fn course(record: &TrialRecord, flow: Option<usize>) -> Course {
    let inside = record.course.len();
    let after = record.series.iter().filter(|m| m.at > record.duration());
    let moments: Vec<&Moment> = record.course.iter().chain(after).collect();
    let flows = match flow {
        Some(flow) => flow..flow + 1,
        None => 0..record.flows.len(),
    };
    let mut course: Vec<(f64, u64, u64)> = (moments.iter().take(inside))
        .map(|moment| (moment.at as f64 / SECOND, 0, 0))
        .collect();
    for flow in flows {
        let of_flow = backlogs_at(record, &moments, flow);
        for ((point, backlog), moment) in course.iter_mut().zip(of_flow).zip(&moments) {
            let totals = moment.flows[flow];
            point.1 += backlog + totals.waiting;
            point.2 += totals.due.saturating_sub(totals.rejected) + totals.waiting;
        }
    }
    // Steps of an interval that was shorter than usual are at its end.
    course.dedup_by_key(|(at, ..)| *at);
    let part = |(at, backlog, due)| ((at, backlog), due);
    let (backlog, due) = course.into_iter().map(part).unzip();
    Course { backlog, due }
}

/// The backlog at each cut, over all flows.
fn backlogs(record: &TrialRecord) -> Vec<u64> {
    let mut sums = vec![0; record.series.len()];
    for flow in 0..record.flows.len() {
        let of_flow = backlogs_of(record, flow);
        sums.iter_mut().zip(of_flow).for_each(|(sum, n)| *sum += n);
    }
    sums
}

fn backlogs_of(record: &TrialRecord, flow: usize) -> Vec<u64> {
    let moments: Vec<&Moment> = record.series.iter().collect();
    backlogs_at(record, &moments, flow)
}

fn backlogs_at(record: &TrialRecord, moments: &[&Moment], flow: usize) -> Vec<u64> {
    let moments = moments.iter();
    let (at, totals): (Vec<Nanos>, Vec<Totals>) = moments.map(|m| (m.at, m.flows[flow])).unzip();
    let cut_short = record.drain.ended == DrainEnd::CutShort;
    let lost = lost(&record.flows[flow], cut_short);
    backlog(&totals, &at, record.duration(), lost)
}

/// Deliveries of a flow that never come, of measured and of warm-up messages.
fn lost(counts: &FlowRecording, cut_short: bool) -> u64 {
    let missing = counts
        .warm_up_expected
        .saturating_sub(counts.warm_up_unique);
    // The drain waits only for measured messages. Where none of these came, those of the warm-up
    // may still be under way.
    let warm_up = if cut_short || counts.messages.unique == 0 {
        missing.min(counts.warm_up_passed_over)
    } else {
        missing
    };
    counts.lost() + warm_up
}

/// The backlog of one flow at each cut: deliveries due that have neither come nor are lost.
///
/// A message is known to be lost as soon as a later one of its stream comes, unless it still comes
/// afterwards: at each cut, the smallest number of overtaken messages then and at all later cuts.
/// Messages that are only known to be lost at the end, such as those of groups, are spread over all
/// messages; all were published by the end of the measurement.
fn backlog(totals: &[Totals], at: &[Nanos], end: Nanos, lost: u64) -> Vec<u64> {
    let Some(last) = totals.last() else {
        return Vec::new();
    };
    let due_in_all = (last.due - last.rejected).max(1);
    let known_at_end = last.passed_over.min(lost);
    let found_late = lost - known_at_end;
    let mut passed_over = u64::MAX;
    let mut backlog: Vec<u64> = totals
        .iter()
        .zip(at)
        .rev()
        .map(|(t, at)| {
            passed_over = passed_over.min(t.passed_over);
            let due = t.due - t.rejected;
            let spread = (u128::from(found_late) * u128::from(due) / u128::from(due_in_all)) as u64;
            let lost_by_then = if *at >= end {
                lost
            } else {
                lost.min(passed_over + spread)
            };
            due.saturating_sub(t.unique + lost_by_then)
        })
        .collect();
    backlog.reverse();
    backlog
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(due: u64, unique: u64, passed_over: u64) -> Totals {
        Totals {
            due,
            unique,
            passed_over,
            ..Totals::default()
        }
    }

    #[test]
    fn lost_messages_are_no_backlog() {
        // 20 of each 100 are lost, which the next message shows; 5 are under way.
        let series: Vec<Totals> = (1..=4)
            .map(|n| totals(100 * n, 80 * n - 5, 20 * n))
            .collect();
        let mut all = series.clone();
        all.push(totals(400, 320, 80));
        let at = [1, 2, 3, 4, 5];
        assert_eq!(backlog(&all, &at, 4, 80), [5, 5, 5, 5, 0]);
    }

    #[test]
    fn what_comes_late_was_backlog() {
        // 30 messages are overtaken in the second record, and arrive in the third.
        let all = [
            totals(100, 100, 0),
            totals(200, 170, 30),
            totals(300, 300, 0),
        ];
        assert_eq!(backlog(&all, &[1, 2, 3], 2, 0), [0, 30, 0]);
    }

    #[test]
    fn what_is_found_lost_at_the_end_is_spread() {
        // A group lost every tenth message.
        let all: Vec<Totals> = (1..=4).map(|n| totals(100 * n, 90 * n, 0)).collect();
        assert_eq!(backlog(&all, &[1, 2, 3, 4], 3, 40), [0, 0, 0, 0]);
    }

    #[test]
    fn a_queue_is_backlog() {
        let all: Vec<Totals> = (1..=3).map(|n| totals(100 * n, 60 * n, 0)).collect();
        assert_eq!(backlog(&all, &[1, 2, 3], 3, 0), [40, 80, 120]);
    }
}
