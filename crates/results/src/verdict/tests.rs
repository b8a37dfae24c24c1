use proptest::prelude::*;
use pubgauge_driver::Settings;

use super::*;
use crate::model::{
    AtStart, ClientCpu, Connections, CountCheck, Distribution, FlowSeriesRecord, SeriesRecord,
    System, WorkerLoad, WorkloadInfo,
};

const MS: u64 = 1_000_000;

fn distribution(count: u64, p50: u64, p99: u64) -> Distribution {
    Distribution {
        count,
        censored: 0,
        min: Some(p50 / 2),
        mean: Some(p50 as f64),
        p50: Some(p50),
        p90: Some(p99),
        p99: Some(p99),
        p99_9: Some(p99 * 2),
        p99_99: Some(p99 * 3),
        max: Some(p99 * 4),
    }
}

/// Ten steady seconds of 10,000 msgs/s over a broker with processor time to spare.
fn calm() -> Trial {
    let seconds = 10u64;
    let rate = 10_000u64;
    let count = seconds * rate;
    Trial {
        system: System {
            name: "mosquitto".into(),
            version: "2.0.11".into(),
        },
        settings: Settings::default(),
        workload: WorkloadInfo {
            name: "periodic".into(),
            ..Default::default()
        },
        duration_s: seconds as f64,
        offered: count,
        published: count,
        delivered: count,
        expected: count,
        offered_msgs_per_s: rate as f64,
        published_msgs_per_s: rate as f64,
        delivered_msgs_per_s: rate as f64,
        latency_ns: distribution(count, 200_000, 2 * MS),
        latency_from_send_ns: distribution(count, 190_000, 2 * MS),
        send_lag_ns: distribution(count, 5_000, 200_000),
        noise_ns: distribution(10_000, 60_000, 500_000),
        client_cpu_s: ClientCpu {
            publishers: 1.0,
            subscribers: 1.0,
        },
        system_cpu_s: Some(2.0),
        worker_load: WorkerLoad {
            publishers_running: 0.10,
            publishers_waiting: 0.02,
            subscribers_running: 0.10,
            subscribers_waiting: 0.02,
            ..WorkerLoad::default()
        },
        connections: Connections {
            planned: 2,
            made: 2,
            ..Default::default()
        },
        series: series(
            1.0,
            &[10_000; 10],
            &[10_000; 10],
            &[3, 5, 2, 4, 3, 6, 2, 3, 4, 3],
        ),
        ..Default::default()
    }
}

/// Flat out at 300,000 msgs/s for two seconds, in records of a quarter of a second; the broker's
/// single thread is the limit, with a full socket buffer before it.
fn flat_out() -> Trial {
    let mut trial = calm();
    trial.workload.flat_out = true;
    trial.duration_s = 2.0;
    let count = 600_000;
    for figure in [
        &mut trial.offered,
        &mut trial.published,
        &mut trial.delivered,
        &mut trial.expected,
    ] {
        *figure = count;
    }
    trial.latency_ns = distribution(count, 150 * MS, 180 * MS);
    trial.latency_from_send_ns = trial.latency_ns;
    trial.send_lag_ns = distribution(count, 100, 1_000);
    trial.system_cpu_s = Some(1.98);
    trial.client_cpu_s = ClientCpu {
        publishers: 0.5,
        subscribers: 0.9,
    };
    trial.worker_load = WorkerLoad {
        publishers_running: 0.25,
        publishers_waiting: 0.10,
        subscribers_running: 0.45,
        subscribers_waiting: 0.15,
        ..WorkerLoad::default()
    };
    trial.series = series(
        0.25,
        &[
            120_000, 75_000, 74_000, 76_000, 75_000, 75_000, 75_000, 75_000,
        ],
        &[75_000; 8],
        &[
            45_000, 45_000, 44_000, 45_500, 45_000, 45_000, 44_800, 45_100,
        ],
    );
    trial
}

fn series(length: f64, published: &[u64], delivered: &[u64], backlog: &[i64]) -> Vec<SeriesRecord> {
    (0..published.len())
        .map(|i| SeriesRecord {
            t_s: length * (i + 1) as f64,
            published: published[i],
            due: published[i],
            delivered: delivered[i],
            backlog: backlog[i],
            latency_p50_ns: 200_000,
            latency_p99_ns: 2 * MS,
            ..Default::default()
        })
        .collect()
}

fn here() -> Circumstances {
    Circumstances {
        cores: 4,
        ..Default::default()
    }
}

/// The verdict under circumstances other than those in the trial.
fn judge(trial: &Trial, circumstances: &Circumstances) -> Verdict {
    super::judge(&Trial {
        circumstances: circumstances.clone(),
        ..trial.clone()
    })
}

#[track_caller]
fn expect(trial: &Trial, circumstances: &Circumstances, status: Status, part: &str) {
    let verdict = judge(trial, circumstances);
    assert_eq!(verdict.status, status, "{:#?}", verdict.reasons);
    assert!(
        part.is_empty() || verdict.reasons.iter().any(|reason| reason.contains(part)),
        "no reason says {part:?}: {:#?}",
        verdict.reasons
    );
    assert_eq!(verdict.reasons.is_empty(), status == Status::Valid);
}

#[test]
fn calm_trials_are_valid() {
    expect(&calm(), &here(), Status::Valid, "");
    expect(&flat_out(), &here(), Status::Valid, "");
}

#[test]
fn a_trial_that_never_ran_is_broken() {
    expect(
        &Trial::default(),
        &here(),
        Status::Broken,
        "nothing was measured",
    );
    let late = Circumstances {
        not_run: Some("3 of 5 subscribers were not ready after 10 s".into()),
        ..here()
    };
    expect(&calm(), &late, Status::Broken, "not ready after 10 s");
}

#[test]
fn broken_rules() {
    let mut t = calm();
    t.connections.made = 1;
    expect(&t, &here(), Status::Broken, "1 of 2 connections");

    let mut t = calm();
    t.connections.lost = 1;
    expect(&t, &here(), Status::Broken, "1 of 2 connections were lost");
    let asked = Circumstances {
        disconnects_allowed: true,
        ..here()
    };
    expect(&t, &asked, Status::Valid, "");

    let died = Circumstances {
        system_died: vec!["mosquitto: signal 9".into()],
        ..here()
    };
    expect(&calm(), &died, Status::Broken, "signal 9");

    let mut t = calm();
    t.odd.foreign = 1;
    expect(&t, &here(), Status::Broken, "not of this trial");

    let mut t = calm();
    t.odd.corrupt = 2;
    expect(&t, &here(), Status::Broken, "damaged body");

    let mut t = calm();
    t.delivered = 0;
    t.lost = t.expected;
    expect(&t, &here(), Status::Broken, "none of 100000 expected");

    let mut t = calm();
    t.odd.negative = 5_000;
    expect(&t, &here(), Status::Broken, "clocks");

    let mut t = calm();
    t.lost = 7;
    expect(&t, &here(), Status::Broken, "do not add up");
}

#[test]
fn nobody_listening_is_fine() {
    let mut t = calm();
    (t.delivered, t.expected) = (0, 0);
    t.series = series(1.0, &[10_000; 10], &[0; 10], &[0; 10]);
    expect(&t, &here(), Status::Valid, "");
}

#[test]
fn one_lost_message_is_lossy_unless_loss_is_the_subject() {
    let mut t = calm();
    t.delivered -= 1;
    t.lost = 1;
    expect(&t, &here(), Status::Lossy, "1 of 100000");
    t.settings.on_full = Some(OnFull::Drop);
    expect(&t, &here(), Status::Valid, "");
    t.settings.on_full = None;
    let subject = Circumstances {
        losses_allowed: true,
        ..here()
    };
    expect(&t, &subject, Status::Valid, "");
}

#[test]
fn duplicates_are_allowed_at_least_once_only() {
    let mut t = calm();
    t.delivered += 1;
    t.duplicated = 1;
    expect(&t, &here(), Status::Lossy, "duplicates");
    t.settings.reliability = Some(Reliability::ExactlyOnce);
    expect(&t, &here(), Status::Lossy, "duplicates");
    t.settings.reliability = Some(Reliability::AtLeastOnce);
    expect(&t, &here(), Status::Valid, "");
}

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
        verdict.reasons[0].contains("from 10000 to 80000"),
        "{verdict:?}"
    );
    // A publisher that outruns the system is not the limit.
    assert_eq!(verdict.reasons.len(), 1, "{verdict:?}");
}

#[test]
fn overload_shows_in_two_records() {
    let mut t = flat_out();
    t.series = series(1.0, &[300_000; 2], &[200_000; 2], &[100_000, 200_000]);
    expect(&t, &here(), Status::Overloaded, "from 100000 to 200000");
}

#[test]
fn messages_under_way_are_no_backlog() {
    // A hundred meters report together just before the last record is closed.
    let mut t = calm();
    t.duration_s = 1.5;
    t.series = series(1.0, &[100, 100], &[100, 1], &[0, 99]);
    t.series[1].t_s = 1.5;
    for second in &mut t.series {
        second.latency_max_ns = 3 * MS;
    }
    expect(&t, &here(), Status::Valid, "");
    // The same backlog with latencies as long is a queue.
    t.series[1].latency_max_ns = 400_000 * MS;
    expect(&t, &here(), Status::Overloaded, "from 0 to 99");
}

#[test]
fn a_backlog_of_the_drain_does_not_count() {
    let mut t = calm();
    t.series.push(SeriesRecord {
        t_s: 11.0,
        backlog: 90_000,
        ..Default::default()
    });
    expect(&t, &here(), Status::Valid, "");
}

#[test]
fn a_backlog_made_by_a_full_subscriber_is_the_clients() {
    let mut t = flat_out();
    t.series = series(1.0, &[300_000; 2], &[200_000; 2], &[100_000, 200_000]);
    t.worker_load.subscribers_running = 0.97;
    t.system_cpu_s = Some(1.0);
    expect(&t, &here(), Status::ClientBound, "from 100000 to 200000");
}

#[test]
fn due_messages_left_unsent() {
    let mut t = calm();
    t.not_sent = 5_000;
    t.offered += 5_000;
    expect(&t, &here(), Status::Overloaded, "could not be handed over");
    // One message at the border of the measurement does not count.
    (t.offered, t.published, t.not_sent) = (20, 19, 1);
    expect(&t, &here(), Status::Valid, "");
    // A publisher without time to spare is the cause itself.
    let mut t = calm();
    t.not_sent = 5_000;
    t.offered += 5_000;
    t.worker_load.publishers_running = 0.95;
    expect(
        &t,
        &here(),
        Status::ClientBound,
        "publishing worker ran 95 %",
    );
}

#[test]
fn refusals() {
    let mut t = calm();
    t.refused = 5_000;
    t.offered += 5_000;
    expect(&t, &here(), Status::Overloaded, "refused");
    t.settings.on_full = Some(OnFull::Drop);
    expect(&t, &here(), Status::Valid, "");
}

#[test]
fn a_publisher_that_the_system_outruns_is_the_limit() {
    let mut t = flat_out();
    t.worker_load.publishers_running = 0.97;
    t.system_cpu_s = Some(0.8);
    expect(&t, &here(), Status::ClientBound, "could have taken more");
}

#[test]
fn seventy_percent_in_a_paced_trial() {
    let mut t = calm();
    t.worker_load.subscribers_running = 0.75;
    expect(
        &t,
        &here(),
        Status::ClientBound,
        "subscribing worker ran 75 %",
    );
    // In a brokerless system that load is the library's, and it is too much as well.
    let brokerless = Circumstances {
        system_in_client: true,
        ..here()
    };
    expect(&t, &brokerless, Status::ClientBound, "library");
    // Flat out, a full library is the system's limit.
    let mut t = flat_out();
    t.system_cpu_s = None;
    t.worker_load.publishers_running = 0.99;
    expect(&t, &brokerless, Status::Valid, "");
    expect(&t, &here(), Status::ClientBound, "could have taken more");
}

#[test]
fn other_programs_are_named_where_they_may_be_to_blame() {
    let two = Circumstances {
        cores: 2,
        ..Default::default()
    };
    let queue = |others: Option<f64>| {
        let mut t = flat_out();
        for (i, second) in t.series.iter_mut().enumerate() {
            second.backlog = 20_000 * i as i64;
        }
        t.system_cpu_s = Some(0.4);
        t.worker_load.machine_others = others;
        judge(&t, &two)
    };
    let said = |others| {
        let verdict = queue(others);
        assert_eq!(verdict.status, Status::Overloaded);
        verdict
            .reasons
            .iter()
            .any(|r| r.contains("other programs kept"))
    };
    assert!(said(Some(1.6)), "{:?}", queue(Some(1.6)));
    // Little use by others, on a machine with room; or the use is not known.
    assert!(!said(Some(0.4)) && !said(Some(0.6)) && !said(None));
    // A steady trial keeps its verdict.
    let mut t = calm();
    t.worker_load.machine_others = Some(1.9);
    expect(&t, &two, Status::Valid, "");
    assert!(
        crowded(&Trial {
            circumstances: two,
            ..t
        })
        .is_some()
    );
}

#[test]
fn a_crowded_machine_is_named() {
    // Two processors, three busy processes; the broker gets 0.7 of a core.
    let two = Circumstances {
        cores: 2,
        ..Default::default()
    };
    let mut t = flat_out();
    t.system_cpu_s = Some(1.4);
    t.worker_load.subscribers_waiting = 0.3;
    expect(
        &t,
        &two,
        Status::ClientBound,
        "the machine with its 2 processors was the limit",
    );
    // The broker's single thread was never idle: then it was the limit, whatever other programs
    // did.
    t.system_cpu_s = Some(1.96);
    expect(&t, &two, Status::Valid, "");
    // A broker of many threads could have used more than it got.
    t.system_cpu_s = Some(2.6);
    t.client_cpu_s = ClientCpu {
        publishers: 0.5,
        subscribers: 0.9,
    };
    expect(
        &t,
        &two,
        Status::ClientBound,
        "the machine with its 2 processors was the limit",
    );
}

#[test]
fn a_late_client() {
    let mut t = calm();
    t.send_lag_ns.p50 = Some(150_000);
    t.latency_ns.p50 = Some(300_000);
    t.worker_load.publishers_running = 0.6;
    expect(&t, &here(), Status::ClientBound, "half of all messages");
    // The same lag of a publisher that slept: the system held it back.
    t.worker_load.publishers_running = 0.1;
    expect(&t, &here(), Status::Valid, "");
    // Unless this machine's timers are no better.
    t.noise_ns.p50 = Some(140_000);
    expect(&t, &here(), Status::ClientBound, "half of all messages");

    let mut t = calm();
    t.send_lag_ns.p99 = Some(3 * MS);
    t.noise_ns.p99 = Some(3 * MS);
    expect(
        &t,
        &here(),
        Status::ClientBound,
        "the tail is the client's own",
    );
}

#[test]
fn workers_at_the_end_of_their_share_are_the_limit() {
    let held = |cores, by_quota| {
        Some(crate::model::HeldLimits {
            instances: 2,
            cores: Some(cores),
            cores_by_quota: by_quota,
            ..Default::default()
        })
    };
    let share = ", each worker process being held to 0.1 cores";
    let calm = || {
        let mut t = calm();
        t.worker_load.publishers_running = 0.05;
        t.worker_load.subscribers_running = 0.05;
        t
    };
    // Publishers that leave a tenth of their messages, after 8 % of a processor.
    let mut t = calm();
    t.not_sent = t.offered / 10;
    t.published = t.offered - t.not_sent;
    t.worker_load.publishers_running = 0.08;
    expect(&t, &here(), Status::Overloaded, "publishers had time");
    t.client_limits = held(0.1, true);
    let said = format!("ran 8 % and waited for a processor 2 % of it{share}");
    expect(&t, &here(), Status::ClientBound, &said);
    // No quota held them to it, or to more than a thread can use.
    for other in [held(0.1, false), held(2.0, true)] {
        t.client_limits = other;
        expect(&t, &here(), Status::Overloaded, "publishers had time");
    }

    let mut t = calm();
    t.worker_load.subscribers_running = 0.08;
    expect(&t, &here(), Status::Valid, "");
    t.client_limits = held(0.1, true);
    expect(&t, &here(), Status::ClientBound, share);

    // The quota keeps a worker waiting that has used up less of it by itself.
    let mut t = calm();
    t.worker_load.publishers_waiting = 0.3;
    t.client_limits = held(0.1, true);
    let said = "the share of each worker process, 0.1 cores, or the machine was the limit";
    expect(&t, &here(), Status::ClientBound, said);
}

#[test]
fn a_system_at_the_end_of_its_share_is_the_limit() {
    // Half a core of eight, used up: workers that wait for a processor do not change that.
    let mut t = flat_out();
    t.system_cpu_s = Some(0.49 * t.duration_s);
    t.worker_load.subscribers_running = 0.5;
    t.worker_load.subscribers_waiting = 0.45;
    expect(
        &t,
        &here(),
        Status::ClientBound,
        "the busiest subscribing worker",
    );
    let limits = crate::model::HeldLimits {
        instances: 1,
        cores: Some(0.5),
        cores_by_quota: true,
        ..Default::default()
    };
    t.limits = Some(limits.clone());
    expect(&t, &here(), Status::Valid, "");
    // Two instances with half a core each had one between them.
    let two = crate::model::HeldLimits {
        instances: 2,
        ..limits.clone()
    };
    t.limits = Some(two);
    expect(
        &t,
        &here(),
        Status::ClientBound,
        "the busiest subscribing worker",
    );
    // A share held by affinity alone does not say what the system could have had.
    t.limits = Some(crate::model::HeldLimits {
        cores_by_quota: false,
        ..limits
    });
    expect(
        &t,
        &here(),
        Status::ClientBound,
        "the busiest subscribing worker",
    );
}

#[test]
fn lateness_that_was_asked_for() {
    // A busy publisher that sends in batches: latency is mostly the span.
    let mut t = calm();
    t.worker_load.publishers_running = 0.6;
    t.send_lag_ns = distribution(100_000, MS / 2, MS);
    t.latency_ns = distribution(100_000, 7 * MS / 10, 2 * MS);
    t.circumstances = here();
    let gathered = |span| Circumstances {
        pacing_within_ns: span,
        ..here()
    };
    expect(&t, &here(), Status::ClientBound, "half of all messages");
    expect(&t, &gathered(MS), Status::Valid, "");
    // Later than was asked for.
    t.send_lag_ns.p50 = Some(5 * MS / 4);
    expect(
        &t,
        &gathered(MS),
        Status::ClientBound,
        "more than 250.0 µs late (beyond the 1.0 ms",
    );

    let mut t = calm();
    t.worker_load.publishers_running = 0.6;
    t.send_lag_ns.p99 = Some(10 * MS);
    expect(&t, &gathered(10 * MS), Status::Valid, "");
    t.send_lag_ns.p99 = Some(13 * MS);
    expect(
        &t,
        &gathered(10 * MS),
        Status::ClientBound,
        "the tail is the client's own",
    );
}

#[test]
fn an_unsteady_rate() {
    let mut t = flat_out();
    t.duration_s = 10.0;
    let jumpy = [100u64, 900, 100, 900, 500, 500, 900, 100, 900, 100].map(|n| n * 100);
    t.series = series(1.0, &jumpy, &jumpy, &[50; 10]);
    t.system_cpu_s = Some(9.9);
    expect(&t, &here(), Status::Unsteady, "varied by");
    let bursts = Circumstances {
        rate_varies_by_design: true,
        ..here()
    };
    expect(&t, &bursts, Status::Valid, "");

    let falling = [1000u64, 1000, 1000, 1000, 1000, 700, 700, 700, 700, 700].map(|n| n * 100);
    t.series = series(1.0, &falling, &falling, &[50; 10]);
    expect(&t, &here(), Status::Unsteady, "30 % apart");
}

#[test]
fn a_lumpy_schedule_is_not_unsteady() {
    // A hundred meters that all report in the same quarter of a second.
    let mut t = calm();
    let lumps: Vec<u64> = (0..40)
        .map(|i| if i % 4 == 0 { 2_500 } else { 0 })
        .collect();
    t.series = series(0.25, &lumps, &lumps, &[0; 40]);
    expect(&t, &here(), Status::Valid, "");
    // The same uneven arrivals flat out are stalls.
    t.workload.flat_out = true;
    t.system_cpu_s = Some(9.9);
    expect(&t, &here(), Status::Unsteady, "varied by");
}

#[test]
fn few_messages_vary_by_chance() {
    let mut t = flat_out();
    t.duration_s = 10.0;
    (t.offered, t.published, t.delivered, t.expected) = (41, 41, 41, 41);
    let few = [4u64, 2, 6, 5, 3, 4, 7, 3, 2, 5];
    t.series = series(1.0, &few, &few, &[0; 10]);
    t.system_cpu_s = Some(9.9);
    expect(&t, &here(), Status::Valid, "");
}

#[test]
fn latency_that_doubles_is_unsteady() {
    let mut t = calm();
    for (i, second) in t.series.iter_mut().enumerate() {
        second.latency_p50_ns = if i < 5 { 200_000 } else { 1_100_000 };
    }
    expect(&t, &here(), Status::Unsteady, "median latency went from");
}

#[test]
fn slow_growth_with_rising_latency_is_overload() {
    let mut t = calm();
    for (i, second) in t.series.iter_mut().enumerate() {
        second.latency_p50_ns = 1_000_000 + i as u64 * 10_000_000;
        second.backlog = 10 + i as i64 * 200;
    }
    expect(&t, &here(), Status::Overloaded, "median latency rose");
}

#[test]
fn all_reasons_stand_worst_first() {
    let mut t = calm();
    t.delivered -= 10;
    t.lost = 10;
    t.not_sent = 5_000;
    t.offered += 5_000;
    t.worker_load.subscribers_waiting = 0.5;
    let verdict = judge(&t, &here());
    assert_eq!(verdict.status, Status::Lossy);
    assert_eq!(verdict.reasons.len(), 3, "{verdict:#?}");
    assert!(verdict.reasons[0].contains("lost"));
    assert!(verdict.reasons[1].contains("handed over"));
    assert!(verdict.reasons[2].contains("processors was the limit"));
}

#[test]
fn what_is_under_way_is_not_lost() {
    // A third of the deliveries was still coming when the drain was cut short.
    let mut t = calm();
    (t.delivered, t.under_way) = (70_000, 30_000);
    t.drain.cut_short = true;
    expect(&t, &here(), Status::Overloaded, "30000 of 100000");
    // None of the measured ones had come: the warm-up's stood before them.
    (t.delivered, t.under_way) = (0, 100_000);
    t.at_start.backlog = 50_000;
    expect(&t, &here(), Status::Overloaded, "100000 of 100000");
    (t.under_way, t.lost) = (0, 100_000);
    expect(&t, &here(), Status::Broken, "none of 100000");
}

#[test]
fn a_trial_that_measured_nothing_is_not_valid() {
    let mut t = calm();
    for count in [
        &mut t.offered,
        &mut t.published,
        &mut t.delivered,
        &mut t.expected,
    ] {
        *count = 0;
    }
    t.workload.publishers = 1;
    t.series.clear();
    expect(
        &t,
        &here(),
        Status::Broken,
        "no message was due within 10 s",
    );
    // Idle connections are a workload too.
    t.workload.publishers = 0;
    expect(&t, &here(), Status::Valid, "");
    // Flat out, nothing is taken while the queue of the warm-up is delivered.
    t.workload = flat_out().workload;
    t.workload.publishers = 1;
    t.at_start = AtStart {
        published: 1_000_000,
        delivered: 10_000,
        backlog: 990_000,
    };
    t.series = series(1.0, &[0; 10], &[10_000; 10], &[900_000; 10]);
    expect(
        &t,
        &here(),
        Status::Overloaded,
        "990000 deliveries of the warm-up",
    );
}

#[test]
fn a_small_overload_is_overload() {
    // 10,070/s into 10,000/s, with latencies as they were measured.
    let mut t = calm();
    let backlog: Vec<i64> = (0..10).map(|i| 700 + 70 * i).collect();
    t.series = series(1.0, &[10_070; 10], &[10_000; 10], &backlog);
    for (i, second) in t.series.iter_mut().enumerate() {
        second.latency_p50_ns = 70_800_000 + i as u64 * 4_240_000;
    }
    expect(&t, &here(), Status::Overloaded, "twice as long in 19 s");
    // Where only latency shows it.
    for second in &mut t.series {
        second.backlog = 3;
    }
    expect(&t, &here(), Status::Overloaded, "twice as long in 26 s");
    // A cache that fills: latency rises, then stays.
    for (i, second) in t.series.iter_mut().enumerate() {
        second.latency_p50_ns = 70_800_000 + [0, 20, 34, 42, 46, 48, 49, 50, 50, 50][i] * 500_000;
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

#[test]
fn a_client_that_stood_still_is_named() {
    for flat in [false, true] {
        let mut t = if flat { flat_out() } else { calm() };
        t.worker_load.subscribers_stalled = 0.15;
        t.worker_load.longest_stall_ns = 300 * MS;
        expect(&t, &here(), Status::ClientBound, "stood still for 15.0 %");
        t.worker_load.subscribers_stalled = 0.0;
        t.worker_load.machine_stalled = 0.5;
        expect(&t, &here(), Status::ClientBound, "the machine stood still");
        t.worker_load.machine_stalled = 0.02;
        expect(&t, &here(), Status::ClientBound, "2.0 % of the measurement");
        // A silence shorter than the tail of the latencies.
        t.latency_ns.p99 = Some(900 * MS);
        t.latency_from_send_ns.p99 = Some(900 * MS);
        expect(&t, &here(), Status::Valid, "");
    }
}

#[test]
fn what_the_client_slept_through_is_its_own() {
    // The last 0.8 s of 6 s.
    let mut t = calm();
    t.duration_s = 6.0;
    t.series.truncate(6);
    (t.offered, t.not_sent) = (6_000, 795);
    for count in [&mut t.published, &mut t.delivered, &mut t.expected] {
        *count = 5_205;
    }
    t.worker_load.publishers_stalled = 0.133;
    t.worker_load.longest_stall_ns = 800 * MS;
    expect(&t, &here(), Status::ClientBound, "795 of 6000");
}

#[test]
fn a_frozen_system_is_unsteady() {
    let mut t = calm();
    t.longest_silence_ns = 2_000 * MS;
    expect(
        &t,
        &here(),
        Status::Unsteady,
        "nothing was delivered for 2.00 s",
    );
    // A slow link is no stall.
    t.latency_ns.p50 = Some(1_500 * MS);
    expect(&t, &here(), Status::Valid, "");
}

#[test]
fn what_the_client_ran_out_of_is_not_the_systems_fault() {
    let out = Circumstances {
        exhausted: Some("file descriptors".into()),
        ..here()
    };
    let mut t = calm();
    t.connections.made = 1;
    expect(&t, &out, Status::ClientBound, "ran out of file descriptors");
    let never = Circumstances {
        not_run: Some("only 1 of 2 clients were connected".into()),
        ..out
    };
    expect(&t, &never, Status::ClientBound, "not run as planned");

    // A server that closes connections of a client that does not read.
    let mut t = calm();
    t.connections.lost = 1;
    t.worker_load.publishers_stalled = 0.4;
    t.worker_load.longest_stall_ns = 4_000 * MS;
    expect(
        &t,
        &here(),
        Status::ClientBound,
        "1 of 2 connections were lost",
    );

    // Messages that a server drops because the subscriber does not read.
    let mut t = calm();
    (t.delivered, t.lost) = (90_000, 10_000);
    t.worker_load.subscribers_running = 0.97;
    expect(&t, &here(), Status::ClientBound, "10000 of 100000");
    // Acknowledged messages may not be dropped.
    t.settings.reliability = Some(Reliability::AtLeastOnce);
    expect(&t, &here(), Status::Lossy, "10000 of 100000");
}

#[test]
fn counts_found_in_two_ways_must_agree() {
    let mut t = calm();
    let counts = |theirs| CountCheck {
        what: "messages published".into(),
        counts: vec![
            ("the publishers".into(), 100_000),
            ("the broker".into(), theirs),
        ],
        ..CountCheck::default()
    };
    t.checks = vec![counts(100_000)];
    expect(&t, &here(), Status::Valid, "");
    t.checks = vec![counts(99_999)];
    expect(&t, &here(), Status::Broken, "99999 by the broker");
    t.checks[0].not_compared = Some("it could not be read".into());
    expect(&t, &here(), Status::Valid, "");
}

/// Telemetry at QoS 0 beside commands at QoS 1: each flow is judged by its own reliability, and
/// named.
#[test]
fn flows_are_judged_by_their_own_settings_and_named() {
    let flow = |name: &str, reliability| FlowFigures {
        name: name.into(),
        offered: 50_000,
        published: 50_000,
        delivered: 50_000,
        expected: 50_000,
        settings: Some(Settings {
            reliability: Some(reliability),
            ..Settings::default()
        }),
        ..FlowFigures::default()
    };
    let mut t = calm();
    t.flows = vec![
        flow("telemetry", Reliability::AtMostOnce),
        flow("commands", Reliability::AtLeastOnce),
    ];
    expect(&t, &here(), Status::Valid, "");
    let repeat = |t: &mut Trial, flow: usize| {
        t.flows[flow].delivered += 1;
        t.flows[flow].duplicated += 1;
        t.delivered += 1;
        t.duplicated += 1;
    };
    let mut repeated = t.clone();
    repeat(&mut repeated, 1);
    expect(&repeated, &here(), Status::Valid, "");
    repeat(&mut repeated, 0);
    expect(
        &repeated,
        &here(),
        Status::Lossy,
        "flow `telemetry`: 1 deliveries",
    );
    // A queue of one flow that is small beside the traffic of the other.
    let second = |i: u64| FlowSeriesRecord {
        t_s: i as f64 + 1.0,
        published: 100,
        due: 100,
        delivered: 90,
        backlog: 10 * (i + 1),
        waiting: 0,
    };
    t.flows[1].series = (0..10).map(second).collect();
    expect(
        &t,
        &here(),
        Status::Overloaded,
        "flow `commands`: the backlog grew",
    );
}

/// A change to a trial that makes one rule apply.
type Plant = (Rule, fn(&mut Trial));

const PLANTS: [Plant; 23] = [
    (Rule::NotRun, |t| {
        t.circumstances.not_run = Some("late".into())
    }),
    (Rule::SystemDied, |t| {
        t.circumstances.system_died = vec!["signal 9".into()]
    }),
    (Rule::Unconnected, |t| t.connections.made = 1),
    (Rule::ConnectionsLost, |t| t.connections.lost = 1),
    (Rule::Foreign, |t| t.odd.foreign = 1),
    (Rule::Corrupt, |t| t.odd.corrupt = 1),
    (Rule::Clocks, |t| t.odd.negative = t.delivered),
    (Rule::CountsDiffer, |t| t.published += 1),
    (Rule::Lost, |t| {
        let some = t.delivered / 10;
        (t.delivered, t.lost) = (t.delivered - some, t.lost + some);
    }),
    (Rule::Repeated, |t| {
        (t.delivered, t.duplicated) = (t.delivered + 5, t.duplicated + 5);
    }),
    (Rule::QueueGrew, |t| {
        for (i, second) in t.series.iter_mut().enumerate() {
            second.backlog = 20_000 * i as i64;
        }
    }),
    (Rule::UnderWay, |t| {
        let some = t.delivered / 10;
        (t.delivered, t.under_way) = (t.delivered - some, t.under_way + some);
    }),
    (Rule::Unsent, |t| {
        let some = t.offered / 10;
        (t.offered, t.not_sent) = (t.offered + some, t.not_sent + some);
    }),
    (Rule::Refused, |t| {
        let some = t.offered / 10;
        (t.offered, t.refused) = (t.offered + some, t.refused + some);
    }),
    (Rule::RateWanders, |t| {
        let half = t.series.len() / 2;
        t.series[..half].iter_mut().for_each(|s| s.delivered /= 4);
    }),
    (Rule::LatencyWanders, |t| {
        let half = t.series.len() / 2;
        t.series[..half]
            .iter_mut()
            .for_each(|s| s.latency_p50_ns *= 9);
    }),
    (Rule::SystemSilent, |t| t.longest_silence_ns = 2_000 * MS),
    (Rule::PublisherFull, |t| {
        t.worker_load.publishers_running = 0.97
    }),
    (Rule::SubscriberFull, |t| {
        t.worker_load.subscribers_running = 0.97
    }),
    (Rule::LibraryFull, |t| {
        t.circumstances.system_in_client = true;
        t.worker_load.publishers_running = 0.97;
    }),
    (Rule::MachineFull, |t| {
        t.system_cpu_s = Some(0.5);
        t.worker_load.subscribers_waiting = 0.4;
    }),
    (Rule::ClientLate, |t| {
        t.send_lag_ns.p50 = Some(150_000);
        t.noise_ns.p50 = Some(150_000);
    }),
    (Rule::ClientStalled, |t| {
        t.worker_load.subscribers_stalled = 0.2;
        t.worker_load.longest_stall_ns = 400 * MS;
    }),
];

/// Any two changes at once, paced and flat out: no two reasons contradict each other.
#[test]
fn reasons_never_contradict_each_other() {
    let mut shown = std::collections::HashSet::new();
    for base in [calm(), flat_out()] {
        for (first, plant) in PLANTS {
            for (second, other) in PLANTS {
                let mut t = base.clone();
                t.circumstances = here();
                plant(&mut t);
                other(&mut t);
                let found: Vec<Rule> = findings(&t).found.iter().map(|(rule, ..)| *rule).collect();
                shown.extend(found.iter().copied());
                for a in &found {
                    for b in &found {
                        let said = &findings(&t).found;
                        assert!(!a.contradicts(*b), "{first:?} with {second:?}: {said:#?}");
                    }
                }
                let reasons = super::judge(&t).reasons;
                let mut once = reasons.clone();
                once.sort();
                once.dedup();
                assert_eq!(reasons.len(), once.len(), "{reasons:#?}");
            }
        }
    }
    for (rule, _) in PLANTS {
        assert!(shown.contains(&rule), "{rule:?} never applied");
    }
}

/// The order of the verdicts: what each outranks.
#[test]
fn a_client_at_its_end_outranks_an_unsteady_rate() {
    let mut t = calm();
    t.longest_silence_ns = 2_000 * MS;
    t.worker_load.subscribers_running = 0.97;
    let verdict = super::judge(&t);
    assert_eq!(verdict.status, Status::ClientBound);
    assert_eq!(verdict.reasons.len(), 2, "{verdict:#?}");
}

proptest! {
    /// For any series: no panic, the status fits the reasons, the same input gets the same verdict.
    #[test]
    fn judging_is_total(
        records in prop::collection::vec((0.0f64..2.0, 0u64..1_000_000, 0u64..1_000_000, -1000i64..1_000_000_000, 0u64..u64::MAX), 0..40),
        duration in 0.0f64..30.0,
        flat_out: bool,
        load in prop::array::uniform4(0.0f64..1.0),
        cores in 0u32..8,
        system_cpu in prop::option::of(0.0f64..30.0),
    ) {
        let mut t = calm();
        t.workload.flat_out = flat_out;
        t.duration_s = duration;
        t.system_cpu_s = system_cpu;
        t.worker_load = WorkerLoad {
            publishers_running: load[0],
            publishers_waiting: load[1],
            subscribers_running: load[2],
            subscribers_waiting: load[3],
            ..WorkerLoad::default()
        };
        let mut at = 0.0;
        t.series = records.iter().map(|(length, published, delivered, backlog, p50)| {
            at += length;
            SeriesRecord { t_s: at, published: *published, delivered: *delivered, backlog: *backlog, latency_p50_ns: *p50, ..Default::default() }
        }).collect();
        let circumstances = Circumstances { cores, ..Default::default() };
        let verdict = judge(&t, &circumstances);
        prop_assert_eq!(verdict.status == Status::Valid, verdict.reasons.is_empty());
        let again = judge(&t, &circumstances);
        prop_assert_eq!(verdict.reasons, again.reasons);
    }

    /// A backlog that takes more than a tenth of what is offered is never called valid,
    /// whatever the length of a record and however noisy the deliveries.
    #[test]
    fn material_growth_is_never_valid(
        length in 0.1f64..1.0,
        records in 4usize..40,
        rate in 1_000.0f64..1_000_000.0,
        kept in 0.1f64..0.9,
        noise in prop::collection::vec(-0.02f64..0.02, 40),
    ) {
        let mut t = flat_out();
        t.duration_s = length * records as f64;
        t.system_cpu_s = Some(t.duration_s);
        let published = (rate * length) as u64;
        let mut backlog = 0i64;
        t.series = (0..records).map(|i| {
            let delivered = (published as f64 * (1.0 - kept) * (1.0 + noise[i])) as u64;
            backlog += published as i64 - delivered as i64;
            SeriesRecord { t_s: length * (i + 1) as f64, published, delivered, backlog, latency_p50_ns: 1, ..Default::default() }
        }).collect();
        prop_assert_eq!(judge(&t, &here()).status, Status::Overloaded);
    }

    /// A backlog of constant length is never called overload.
    #[test]
    fn a_standing_backlog_is_no_overload(
        standing in 0i64..1_000_000,
        wobble in prop::collection::vec(-40i64..40, 8..30),
    ) {
        let mut t = flat_out();
        let n = wobble.len();
        t.duration_s = n as f64 * 0.25;
        let backlog: Vec<i64> = wobble.iter().map(|w| standing + w).collect();
        t.series = series(0.25, &vec![75_000; n], &vec![75_000; n], &backlog);
        let verdict = judge(&t, &here());
        prop_assert!(verdict.status != Status::Overloaded, "{:?}", verdict.reasons);
    }
}

/// On a network whose publisher's link carried this share of its rate.
fn linked(trial: Trial, share: f64) -> Trial {
    use crate::network::{HostTraffic, NetworkTraffic};
    let bytes = share * trial.duration_s * 95e6 / 8.0;
    let host = HostTraffic {
        host: "publisher-1".into(),
        rate_bits_per_s: Some(95_000_000),
        sent_bytes: bytes as u64,
        ..HostTraffic::default()
    };
    Trial {
        network: Some(NetworkTraffic {
            hosts: vec![host],
            ..NetworkTraffic::default()
        }),
        ..trial
    }
}

#[test]
fn a_worker_that_waits_for_a_full_link_is_not_the_limit() {
    let mut t = flat_out();
    t.worker_load.publishers_stalled = 0.85;
    t.worker_load.publishers_waiting = 0.26;
    t.worker_load.longest_stall_ns = 150 * MS;
    for (share, status) in [(0.99, Status::Valid), (0.90, Status::ClientBound)] {
        let judged = judge(&linked(t.clone(), share), &here());
        assert_eq!(judged.status, status, "{share}: {:?}", judged.reasons);
    }
    // A stalled machine is stalled whatever links carry.
    t.worker_load.machine_stalled = 0.5;
    assert_eq!(judge(&linked(t, 0.99), &here()).status, Status::ClientBound);
}

#[test]
fn a_full_link_is_named_where_the_system_is_blamed() {
    let mut t = calm();
    t.delivered = 90_000;
    t.under_way = 10_000;
    t.delivered_msgs_per_s = 9_000.0;
    let of = |share: f64| judge(&linked(t.clone(), share), &here());
    let named = |verdict: &Verdict| {
        verdict
            .reasons
            .iter()
            .any(|r| r.contains("the link of publisher-1 was 99 % full"))
    };
    assert_ne!(of(0.99).status, Status::Valid);
    assert!(named(&of(0.99)), "{:?}", of(0.99).reasons);
    assert!(!named(&of(0.90)));
    assert!(
        !named(&judge(&linked(calm(), 0.99), &here())),
        "nothing is blamed"
    );
}
