//! Queues that grow, and what only looks like one.

use super::*;

#[test]
fn a_queue_that_grows_without_bound_is_overload() {
    // The broker takes 100,000 msgs/s and delivers 60,000; nothing is lost, the median is steady.
    let mut t = flat_out();
    t.series = series(
        0.25,
        &[25_000; 8],
        &[15_000; 8],
        &[
            10_000, 20_000, 30_000, 40_000, 50_000, 60_000, 70_000, 80_000,
        ],
    );
    t.worker_load.publishers_running = 0.99;
    let verdict = judge(&t, &here());
    assert_eq!(verdict.status, Status::Overloaded, "{verdict:?}");
    assert!(
        verdict.reasons[0].text.contains("from 10000 to 50000"),
        "{verdict:?}"
    );
    // A publisher that outruns the system is not the limit.
    assert_eq!(verdict.reasons.len(), 1, "{verdict:?}");
}

/// A flow that begins after 5 s fills its window of 10,000 then, and is carried from there on.
#[test]
fn a_window_that_fills_when_a_flow_begins_late_is_no_queue() {
    let mut t = calm();
    t.workload.flat_out = true;
    t.series = series(
        1.0,
        &[0, 0, 0, 0, 0, 30_000, 20_000, 20_000, 20_000, 20_000],
        &[0, 0, 0, 0, 0, 20_000, 20_000, 20_000, 20_000, 20_000],
        &[0, 0, 0, 0, 0, 10_000, 10_000, 10_000, 10_000, 10_000],
    );
    let circumstances = Circumstances {
        rate_varies_by_design: true,
        ..here()
    };
    expect(&t, &circumstances, Status::Valid, "");
}

#[test]
fn overload_shows_in_two_records_with_their_steps() {
    let mut t = flat_out();
    t.series = series(1.0, &[300_000; 2], &[200_000; 2], &[100_000, 200_000]);
    t.course = (0..=40)
        .map(|n| (f64::from(n) * 0.05, n as u64 * 5_000))
        .collect();
    // The first record fills the buffers before the system.
    expect(&t, &here(), Status::Overloaded, "from 100000 to 165000");
}

#[test]
fn messages_under_way_are_no_backlog() {
    // A hundred meters report together just before the last record is closed.
    let mut t = calm();
    t.duration_s = 1.5;
    t.series = series(1.0, &[100, 100], &[100, 1], &[0, 99]);
    t.series[1].traffic.t_s = 1.5;
    t.flows = vec![FlowFigures {
        cycle_s: Some(1.0),
        ..FlowFigures::default()
    }];
    let due = |n: u32| if n % 20 < 2 { 99 } else { 0 };
    t.course = (0..=29)
        .map(|n| (f64::from(n) * 0.05, due(n + 1)))
        .collect();
    expect(&t, &here(), Status::Valid, "");
    // Half of them are still there when the next ones report: one cycle does not say how it goes on.
    t.course.iter_mut().for_each(|(_, backlog)| *backlog += 50);
    expect(
        &t,
        &here(),
        Status::TooShort,
        "arrivals repeat every 1 s; 3 s or more would do",
    );
}

#[test]
fn a_backlog_of_the_drain_does_not_count() {
    let mut t = calm();
    t.series.push(SeriesRecord {
        traffic: TrafficRecord {
            t_s: 11.0,
            backlog: 90_000,
            ..TrafficRecord::default()
        },

        ..Default::default()
    });
    expect(&t, &here(), Status::Valid, "");
}

#[test]
fn a_backlog_made_by_a_full_subscriber_is_the_clients() {
    let mut t = flat_out();
    let backlog: Vec<u64> = (1..=8).map(|n| n * 50_000).collect();
    t.series = series(0.25, &[150_000; 8], &[100_000; 8], &backlog);
    t.worker_load.subscribers_running = 0.97;
    t.system_cpu_s = Some(1.0);
    expect(&t, &here(), Status::ClientBound, "from 50000 to 250000");
}

#[test]
fn due_messages_left_unsent() {
    let mut t = calm();
    t.messages.not_sent = 5_000;
    t.messages.offered += 5_000;
    expect(&t, &here(), Status::Overloaded, "could not be handed over");
    // One message at the border of the measurement does not count.
    (
        t.messages.offered,
        t.messages.published,
        t.messages.not_sent,
    ) = (20, 19, 1);
    expect(&t, &here(), Status::Valid, "");
    // A publisher without time to spare is the cause itself.
    let mut t = calm();
    t.messages.not_sent = 5_000;
    t.messages.offered += 5_000;
    t.worker_load.publishers_running = 0.95;
    expect(
        &t,
        &here(),
        Status::ClientBound,
        "publishing worker ran 95 %",
    );
}

#[test]
fn slow_growth_with_rising_latency_is_overload() {
    let mut t = calm();
    for (i, second) in t.series.iter_mut().enumerate() {
        second.traffic.latency_p50_ns = 1_000_000 + i as u64 * 10_000_000;
        second.traffic.backlog = 10 + i as u64 * 200;
    }
    expect(&t, &here(), Status::Overloaded, "median latency rose");
}

#[test]
fn what_is_under_way_is_not_lost() {
    // A third of the deliveries was still coming when the drain was cut short.
    let mut t = calm();
    (t.messages.delivered, t.shortfall.under_way) = (70_000, 30_000);
    t.drain.cut_short = true;
    expect(&t, &here(), Status::Overloaded, "30000 of 100000");
    // None of the measured ones had come: the warm-up's stood before them.
    (t.messages.delivered, t.shortfall.under_way) = (0, 100_000);
    t.at_start.backlog = 50_000;
    expect(&t, &here(), Status::Overloaded, "100000 of 100000");
    (t.shortfall.under_way, t.shortfall.lost) = (0, 100_000);
    expect(&t, &here(), Status::Broken, "none of 100000");
}

#[test]
fn a_small_overload_is_overload() {
    // 10,070/s into 10,000/s, with latencies as they were measured.
    let mut t = calm();
    let backlog: Vec<u64> = (0..10).map(|i| 700 + 70 * i).collect();
    t.series = series(1.0, &[10_070; 10], &[10_000; 10], &backlog);
    for (i, second) in t.series.iter_mut().enumerate() {
        second.traffic.latency_p50_ns = 70_800_000 + i as u64 * 4_240_000;
    }
    // The load had lasted for ten seconds.
    t.at_start.published = 100_000;
    expect(&t, &here(), Status::Overloaded, "twice as long in 19 s");
    // Where only latency shows it.
    for second in &mut t.series {
        second.traffic.backlog = 3;
    }
    expect(&t, &here(), Status::Overloaded, "twice as long in 26 s");
    // Had it only begun, most of the latency would be the path's: a queue, or a path that becomes slower.
    t.at_start.published = 0;
    expect(&t, &here(), Status::TooShort, "a path that became slower");
    t.at_start.published = 100_000;
    // A cache that fills: latency rises, then stays.
    for (i, second) in t.series.iter_mut().enumerate() {
        second.traffic.latency_p50_ns =
            70_800_000 + [0, 20, 34, 42, 46, 48, 49, 50, 50, 50][i] * 500_000;
    }
    expect(&t, &here(), Status::Valid, "");
}

#[test]
fn one_message_to_many_subscribers_is_one_message() {
    // 1 msg/s to 100 subscribers: once two of ten messages fell into one record.
    let mut t = flat_out();
    t.duration_s = 10.0;
    t.system_cpu_s = Some(9.9);
    let published = [1, 1, 2, 0, 1, 1, 1, 1, 1, 1];
    let delivered = published.map(|n| n * 100);
    t.series = series(1.0, &published, &delivered, &[0; 10]);
    expect(&t, &here(), Status::Valid, "");
}
