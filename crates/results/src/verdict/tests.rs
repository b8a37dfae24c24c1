//! Verdicts over planted trials.

mod client;
mod hosts;
mod overload;
mod quota;
mod steadiness;
mod together;

use pubgauge_driver::Settings;
use pubgauge_figures::model::{
    AtStart, ClientCpu, ClientFailure, CountCheck, Distribution, FailureKind, SeriesRecord,
    TrafficRecord, WorkerLoad,
};
use pubgauge_figures::{Messages, Rejection};
use pubgauge_fixtures::{TrialBuilder, distribution};

use super::*;

const MS: u64 = 1_000_000;

/// Ten steady seconds of 10,000 msgs/s over a broker with processor time to spare.
fn calm() -> Trial {
    let trial = TrialBuilder::periodic(10_000.0, 10.0)
        .times(200_000, 2 * MS)
        .cpu(1.0, 1.0, 2.0);
    let mut trial = trial.build();
    trial.messages.latency_from_send_ns = distribution(100_000, 190_000, 2 * MS);
    trial.noise_ns = distribution(10_000, 60_000, 500_000);
    trial.worker_load.publishers_waiting = 0.02;
    trial.worker_load.subscribers_waiting = 0.02;
    trial.series = series(
        1.0,
        &[10_000; 10],
        &[10_000; 10],
        &[3, 5, 2, 4, 3, 6, 2, 3, 4, 3],
    );
    trial
}

/// Flat out at 300,000 msgs/s for two seconds, in records of a quarter of a second; the broker's
/// single thread is the limit, with a full socket buffer before it.
fn flat_out() -> Trial {
    let mut trial = calm();
    trial.workload.flat_out = true;
    trial.duration_s = 2.0;
    let count = 600_000;
    for figure in [
        &mut trial.messages.offered,
        &mut trial.messages.published,
        &mut trial.messages.delivered,
        &mut trial.messages.expected,
    ] {
        *figure = count;
    }
    trial.messages.latency_ns = distribution(count, 150 * MS, 180 * MS);
    trial.messages.latency_from_send_ns = trial.messages.latency_ns;
    trial.messages.send_lag_ns = distribution(count, 100, 1_000);
    trial.system_cpu_s = Some(1.98);
    trial.client_cpu_s = ClientCpu {
        publishers: 0.5,
        subscribers: 0.9,
        ..ClientCpu::default()
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

fn series(length: f64, published: &[u64], delivered: &[u64], backlog: &[u64]) -> Vec<SeriesRecord> {
    (0..published.len())
        .map(|i| SeriesRecord {
            traffic: TrafficRecord {
                t_s: length * (i + 1) as f64,
                published: published[i],
                due: published[i],
                delivered: delivered[i],
                backlog: backlog[i],
                latency_p50_ns: 200_000,
                latency_p99_ns: 2 * MS,
                ..TrafficRecord::default()
            },

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

/// The words in which a trial says that other programs had processors that its system needed.
fn others_busy(trial: &Trial) -> Option<String> {
    super::judge(trial).others_busy.map(|reason| reason.text)
}

#[track_caller]
fn expect(trial: &Trial, circumstances: &Circumstances, status: Status, part: &str) {
    let verdict = judge(trial, circumstances);
    assert_eq!(verdict.status, status, "{:#?}", verdict.reasons);
    assert!(
        part.is_empty()
            || verdict
                .reasons
                .iter()
                .any(|reason| reason.text.contains(part)),
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
    // What the server did stands beside it.
    t.client_failures = vec![ClientFailure {
        kind: FailureKind::Lost,
        why: "mqtt://host: a PUBACK for packet identifier 1001".into(),
        first: "pub1".into(),
        count: 1,
    }];
    let first = "0 made again; pub1: mqtt://host: a PUBACK for packet identifier 1001";
    expect(&t, &here(), Status::Broken, first);
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
    t.messages.delivered = 0;
    t.shortfall.lost = t.messages.expected;
    expect(&t, &here(), Status::Broken, "none of 100000 expected");

    let mut t = calm();
    t.odd.negative = 5_000;
    expect(&t, &here(), Status::Broken, "clocks");

    let mut t = calm();
    t.shortfall.lost = 7;
    expect(&t, &here(), Status::Broken, "do not add up");
}

#[test]
fn nobody_listening_is_fine() {
    let mut t = calm();
    (t.messages.delivered, t.messages.expected) = (0, 0);
    t.series = series(1.0, &[10_000; 10], &[0; 10], &[0; 10]);
    expect(&t, &here(), Status::Valid, "");
}

#[test]
fn one_lost_message_is_lossy_unless_loss_is_the_subject() {
    let mut t = calm();
    t.messages.delivered -= 1;
    t.shortfall.lost = 1;
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
    t.messages.delivered += 1;
    t.messages.duplicated = 1;
    expect(&t, &here(), Status::Lossy, "duplicates");
    t.settings.reliability = Some(Reliability::ExactlyOnce);
    expect(&t, &here(), Status::Lossy, "duplicates");
    t.settings.reliability = Some(Reliability::AtLeastOnce);
    expect(&t, &here(), Status::Valid, "");
}

#[test]
fn refusals() {
    let mut t = calm();
    t.messages.refused = 5_000;
    t.messages.offered += 5_000;
    expect(&t, &here(), Status::Overloaded, "refused");
    t.settings.on_full = Some(OnFull::Drop);
    expect(&t, &here(), Status::Valid, "");
}

#[test]
fn a_single_refusal_of_what_asked_for_acknowledgement_is_a_loss() {
    let mut t = calm();
    (t.messages.refused, t.messages.offered) = (1, t.messages.offered + 1);
    expect(&t, &here(), Status::Valid, "");
    t.settings.reliability = Some(Reliability::ExactlyOnce);
    expect(&t, &here(), Status::Lossy, "1 by the client's side");
    t.shortfall.rejections = vec![Rejection {
        code: 0x97,
        name: "quota exceeded (0x97)".into(),
        messages: 1,
    }];
    expect(
        &t,
        &here(),
        Status::Lossy,
        "1 by the system, quota exceeded (0x97)",
    );
    t.settings.on_full = Some(OnFull::Drop);
    expect(&t, &here(), Status::Valid, "");
}

#[test]
fn what_is_never_acknowledged_is_lossy_unless_the_drain_was_cut_short() {
    let mut t = calm();
    t.shortfall.unacknowledged = 3;
    expect(&t, &here(), Status::Lossy, "never acknowledged");
    t.drain.cut_short = true;
    expect(&t, &here(), Status::Overloaded, "not yet acknowledged");
}

#[test]
fn a_trial_that_measured_nothing_is_not_valid() {
    let mut t = calm();
    for count in [
        &mut t.messages.offered,
        &mut t.messages.published,
        &mut t.messages.delivered,
        &mut t.messages.expected,
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
        messages: Messages {
            offered: 50_000,
            published: 50_000,
            delivered: 50_000,
            expected: 50_000,
            ..Messages::default()
        },
        name: name.into(),

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
        t.flows[flow].messages.delivered += 1;
        t.flows[flow].messages.duplicated += 1;
        t.messages.delivered += 1;
        t.messages.duplicated += 1;
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
    let second = |i: u64| TrafficRecord {
        t_s: i as f64 + 1.0,
        published: 100,
        due: 100,
        delivered: 90,
        backlog: 10 * (i + 1),
        ..TrafficRecord::default()
    };
    t.flows[1].series = (0..10).map(second).collect();
    expect(
        &t,
        &here(),
        Status::Overloaded,
        "flow `commands`: the backlog grew",
    );
}
