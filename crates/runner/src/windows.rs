//! Figures of the windows of a measurement.

use pubgauge_driver::Nanos;
use pubgauge_engine::conductor::TrialRecord;
use pubgauge_engine::parts::WindowRecord;
use pubgauge_engine::recording::{FlowRecording, MessageCounts};
use pubgauge_engine::series::Totals;
use pubgauge_engine::times::Measure;
use pubgauge_figures::window::WindowFigures;
use pubgauge_workload::{Exchange, Workload};

use crate::distribution::{Due, distribution};
use crate::messages::messages;
use crate::observe::Observed;

const SECOND: f64 = 1e9;

/// Largest difference between the span of two readings and the window, as a share of the latter.
const READ_WITHIN: f64 = 0.02;

/// The windows of a trial, of all flows together.
pub(crate) fn of_trial(
    workload: &Workload,
    record: &TrialRecord,
    observed: &Observed,
) -> Vec<WindowFigures> {
    let flows: Vec<usize> = (0..record.flows.len()).collect();
    let windows = record.windows.iter();
    let figures = windows.map(|window| WindowFigures {
        system_cpu_s: system_cpu(observed, window),
        ..figures(workload, record, window, &flows)
    });
    figures.collect()
}

/// The windows of one flow.
pub(crate) fn of_flow(
    workload: &Workload,
    record: &TrialRecord,
    flow: usize,
) -> Vec<WindowFigures> {
    let windows = record.windows.iter();
    windows
        .map(|w| figures(workload, record, w, &[flow]))
        .collect()
}

fn figures(
    workload: &Workload,
    record: &TrialRecord,
    window: &WindowRecord,
    flows: &[usize],
) -> WindowFigures {
    let mut due = MessageCounts::default();
    let mut passed = Totals::default();
    let mut times_due = Due::default();
    for flow in flows {
        let part = &window.due[*flow];
        due.add(part);
        passed.add(&window.passed[*flow]);
        times_due.add(&Due {
            deliveries: part.expected + part.untaken_deliveries + part.timed_again,
            messages: part.offered,
            // Which window they were sent in is not known.
            unacknowledged: record.flows[*flow].unacknowledged,
            questions: match workload.flows[*flow].exchange {
                Exchange::PingPong => part.offered,
                Exchange::OneWay => 0,
            },
        });
    }
    let told = |flow: &usize| fate(&record.flows[*flow], window.due[*flow].missing());
    let fates: Option<Vec<(u64, u64)>> = flows.iter().map(told).collect();
    let lost = fates.as_ref().map(|f| f.iter().map(|f| f.0).sum::<u64>());
    let under_way = fates.as_ref().map(|f| f.iter().map(|f| f.1).sum::<u64>());
    let length_s = (window.to - window.from) as f64 / SECOND;
    let distribution = |measure: Measure| {
        let times = flows.iter();
        let times = times.filter_map(|flow| window.times.get(&(*flow as u32, measure)));
        distribution(times, measure, &times_due)
    };
    WindowFigures {
        name: window.name.clone(),
        from_s: window.from as f64 / SECOND,
        to_s: window.to as f64 / SECOND,
        messages: messages(&due, &passed, length_s, distribution),
        lost: lost.map(|lost| lost + due.unconnected_deliveries),
        under_way,
        system_cpu_s: None,
    }
}

/// How many of a flow's missing deliveries in a window are lost and how many under way; `None` where the
/// flow has both kinds.
fn fate(flow: &FlowRecording, missing: u64) -> Option<(u64, u64)> {
    match (flow.lost(), flow.under_way) {
        _ if missing == 0 => Some((0, 0)),
        (_, 0) => Some((missing, 0)),
        (0, _) => Some((0, missing)),
        _ => None,
    }
}

/// Processor seconds of the system in a window.
fn system_cpu(observed: &Observed, window: &WindowRecord) -> Option<f64> {
    let read = |bound: Nanos| observed.system_cpu_at.get(&bound);
    let (from, to) = (read(window.from)?, read(window.to)?);
    let length = (window.to - window.from) as f64;
    let span = to.0.saturating_sub(from.0) as f64;
    let exact = (span - length).abs() <= READ_WITHIN * length;
    exact.then(|| to.1.saturating_sub(from.1) as f64 / SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubgauge_engine::conductor::TrialEnd;
    use pubgauge_workload::Arrivals;

    fn window(from: Nanos, to: Nanos) -> WindowRecord {
        WindowRecord {
            name: "w".into(),
            from,
            to,
            due: vec![MessageCounts {
                expected: 10,
                unique: 7,
                delivered: 8,
                ..MessageCounts::default()
            }],
            passed: vec![Totals::default()],
            times: Default::default(),
        }
    }

    #[test]
    fn losses_are_told_where_they_can_be() {
        let mut record = TrialRecord::nothing(TrialEnd::Completed, 1);
        record.windows = vec![window(0, 1_000_000_000)];
        let mut told = |missing, under_way| {
            record.flows[0] = FlowRecording {
                messages: MessageCounts {
                    expected: missing,
                    ..MessageCounts::default()
                },
                under_way,
                ..FlowRecording::default()
            };
            let workload = Workload::fan(1, 1, Arrivals::FlatOut);
            let w = &of_flow(&workload, &record, 0)[0];
            assert_eq!((w.messages.missing(), w.messages.duplicated), (3, 1));
            (w.lost, w.under_way, w.messages.latency_ns.censored)
        };
        // The record has the times of none of the ten deliveries that were due.
        assert_eq!(told(5, 0), (Some(3), Some(0), 10));
        assert_eq!(told(5, 5), (Some(0), Some(3), 10));
        // With both kinds it is not known which is which.
        assert_eq!(told(5, 2), (None, None, 10));
    }

    /// Two of the ten that were due came to members on two workers, and were timed by both.
    #[test]
    fn what_was_timed_twice_hides_nothing_that_is_missing() {
        let mut record = TrialRecord::nothing(TrialEnd::Completed, 1);
        let mut window = window(0, 1_000_000_000);
        window.due[0].timed_again = 2;
        let mut times = pubgauge_engine::times::histogram();
        times.record_n(1_000, 9).expect("within its range");
        window.times.insert((0, Measure::Latency), times);
        record.windows = vec![window];
        let workload = Workload::fan(1, 1, Arrivals::FlatOut);
        let latency = of_flow(&workload, &record, 0)[0].messages.latency_ns;
        assert_eq!((latency.count, latency.censored), (9, 3));
    }

    #[test]
    fn processor_time_is_that_of_the_window_or_none() {
        let mut observed = Observed::nothing();
        let ms = 1_000_000;
        observed.system_cpu_at.insert(0, (1_000 * ms, 50 * ms));
        let read = |late| (3_000 * ms + late, 750 * ms);
        observed.system_cpu_at.insert(2_000 * ms, read(5 * ms));
        let of = |observed: &Observed| system_cpu(observed, &window(0, 2_000 * ms));
        assert_eq!(of(&observed), Some(0.7));
        observed.system_cpu_at.insert(2_000 * ms, read(100 * ms));
        assert_eq!(of(&observed), None, "read 5 % of the window too late");
        observed.system_cpu_at.clear();
        assert_eq!(of(&observed), None);
    }
}
