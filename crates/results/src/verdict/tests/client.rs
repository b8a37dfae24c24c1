//! Limits that are the client's or the machine's and not the system's.

use pubgauge_figures::model::ClientSetup;

use super::*;

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

/// A subscriber that stood still lost all, as it would have lost most: that is no failure of the system.
#[test]
fn nothing_arrived_because_the_client_stood_still() {
    let mut t = calm();
    (
        t.shortfall.lost,
        t.messages.delivered,
        t.messages.latency_ns,
    ) = (t.messages.expected, 0, Distribution::default());
    t.series
        .iter_mut()
        .for_each(|second| second.traffic.delivered = 0);
    assert_eq!(judge(&t, &here()).status, Status::Broken);
    assert!(judge(&t, &here()).system_failed);
    t.worker_load.subscribers_stalled = 1.0;
    t.worker_load.longest_stall_ns = 10_000 * MS;
    assert_eq!(judge(&t, &here()).status, Status::ClientBound);
    assert!(!judge(&t, &here()).system_failed);
}

#[test]
fn what_a_hypervisor_takes_is_the_clients_trouble() {
    let mut t = calm();
    let mut with = |stolen| {
        t.worker_load.machine_stolen = stolen;
        judge(&t, &here())
    };
    for little in [None, Some(0.0), Some(0.019)] {
        assert_eq!(with(little).status, Status::Valid, "{little:?}");
    }
    let verdict = with(Some(0.021));
    assert_eq!(verdict.status, Status::ClientBound);
    let [reason] = &verdict.reasons[..] else {
        panic!("{verdict:?}");
    };
    assert_eq!(reason.rule, Rule::TimeStolen);
    // A queue that grew meanwhile is not the system's.
    let mut t = flat_out();
    for (i, second) in t.series.iter_mut().enumerate() {
        second.traffic.backlog = 20_000 * i as u64;
    }
    t.worker_load.machine_stolen = Some(0.12);
    expect(
        &t,
        &here(),
        Status::ClientBound,
        "gave 12.0 % of the processors' time",
    );
    // Slices of a processor are no standstill in which servers close connections.
    t.connections.lost = 1;
    expect(&t, &here(), Status::Broken, "connections were lost");
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
            second.traffic.backlog = 20_000 * i as u64;
        }
        t.system_cpu_s = Some(0.4);
        t.worker_load.machine_others = others;
        judge(&t, &two)
    };
    let excused = |others| {
        let verdict = queue(others);
        let named = verdict.reasons.iter().any(|r| r.rule == Rule::OthersBusy);
        let status = if named {
            Status::ClientBound
        } else {
            Status::Overloaded
        };
        assert_eq!(verdict.status, status, "{verdict:?}");
        named
    };
    assert!(excused(Some(1.6)), "{:?}", queue(Some(1.6)));
    // Little use by others, on a machine with room; or the use is not known.
    assert!(!excused(Some(0.4)) && !excused(Some(0.6)) && !excused(None));
    // A steady trial keeps its verdict.
    let mut t = calm();
    t.worker_load.machine_others = Some(1.9);
    expect(&t, &two, Status::Valid, "");
    t.circumstances = two;
    assert!(others_busy(&t).is_some());
    // Where the system may be among the others, these cannot be blamed.
    t.system_cpu_s = None;
    assert!(others_busy(&t).is_none());
}

/// Others on both processors; the system's thread waited for them for so long in all, and so long in one record.
#[test]
fn a_system_that_waits_for_others_is_not_judged() {
    let two = Circumstances {
        cores: 2,
        ..Default::default()
    };
    let with = |mut t: Trial, waited: f64, longest_ms: u64| {
        t.system_cpu_s = Some(0.02 * t.duration_s);
        t.system_busiest_thread_cpu = Some(0.02);
        t.worker_load.machine_others = Some(1.8);
        t.worker_load.system_waiting = Some(waited);
        t.worker_load.system_longest_waiting_ns = Some(longest_ms * MS);
        t.client_cpu_s = ClientCpu::default();
        t
    };
    let queue = || {
        let mut t = flat_out();
        for (i, second) in t.series.iter_mut().enumerate() {
            second.traffic.backlog = 20_000 * i as u64;
        }
        t
    };
    let others =
        "other programs kept 1.8 of the machine's 2 processors busy, and the system waited";
    expect(&with(queue(), 0.3, 400), &two, Status::ClientBound, others);
    // It had what it needed, however busy the machine was.
    expect(&with(queue(), 0.01, 20), &two, Status::Overloaded, "");
    let slow = |p99_ms: u64| {
        let mut t = calm();
        t.messages.latency_ns.p99 = Some(p99_ms * MS);
        t
    };
    // A tail of 109 ms, and waits of a second in twenty.
    expect(
        &with(slow(109), 0.06, 70),
        &two,
        Status::ClientBound,
        others,
    );
    expect(
        &with(slow(109), 0.02, 60),
        &two,
        Status::ClientBound,
        others,
    );
    expect(&with(slow(109), 0.02, 20), &two, Status::Valid, "");
    expect(&with(slow(109), 0.005, 60), &two, Status::Valid, "");
    // The client had the processors, not others.
    let mut by_client = with(slow(109), 0.06, 70);
    by_client.worker_load.machine_others = Some(0.1);
    by_client.client_cpu_s.publishers = 1.4 * by_client.duration_s;
    expect(&by_client, &two, Status::Valid, "");
    // At the end of a quota of its own it waits too, which is its size and not others.
    let mut held = with(slow(109), 0.06, 70);
    held.limits = Some(pubgauge_figures::model::HeldLimits {
        cores: Some(0.5),
        cores_by_quota: true,
        ..pubgauge_figures::model::HeldLimits::default()
    });
    expect(&held, &two, Status::Valid, "");
}

/// Others on both processors; the system hardly waited, the workers between which it stands did.
#[test]
fn a_tail_of_what_workers_waited_for_others_is_not_the_systems() {
    let two = Circumstances {
        cores: 2,
        ..Default::default()
    };
    let with = |others: f64, waited: f64, longest_ms: u64| {
        let mut t = calm();
        t.messages.latency_ns.p99 = Some(5 * MS);
        t.system_cpu_s = Some(0.03 * t.duration_s);
        t.client_cpu_s.publishers = 0.07 * t.duration_s;
        t.worker_load.machine_others = Some(others);
        t.worker_load.system_waiting = Some(0.004);
        t.worker_load.system_longest_waiting_ns = Some(2 * MS);
        t.worker_load.workers_kept_waiting = waited;
        t.worker_load.workers_longest_wait_ns = longest_ms * MS;
        t
    };
    let others = "the system and the busiest workers waited for them 10.";
    expect(&with(1.9, 0.11, 4), &two, Status::ClientBound, others);
    // Client and system waited for each other, or too seldom, or never for as long as the tail is.
    expect(&with(0.0, 0.11, 4), &two, Status::Valid, "");
    expect(&with(1.9, 0.005, 4), &two, Status::Valid, "");
    expect(&with(1.9, 0.11, 2), &two, Status::Valid, "");
    // A system whose threads are switched to several thousand times a second waits 7 % of the time beside a neighbour
    // that uses next to nothing.
    let mut quiet = with(0.05, 0.0, 4);
    quiet.worker_load.system_waiting = Some(0.07);
    quiet.worker_load.system_longest_waiting_ns = Some(17 * MS);
    expect(&quiet, &two, Status::Valid, "");
    // Each too little for the tail, both together enough.
    let mut both = with(1.9, 0.009, 4);
    expect(&both, &two, Status::ClientBound, "waited for them 1.");
    both.workload.flat_out = true;
    assert!(others_busy(&both).is_none());
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
        ..ClientCpu::default()
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
    t.messages.send_lag_ns.p50 = Some(150_000);
    t.messages.latency_ns.p50 = Some(300_000);
    t.worker_load.publishers_running = 0.6;
    expect(&t, &here(), Status::ClientBound, "half of all messages");
    // The same lag of a publisher that slept: the system held it back.
    t.worker_load.publishers_running = 0.1;
    expect(&t, &here(), Status::Valid, "");
    // Unless this machine's timers are no better.
    t.noise_ns.p50 = Some(140_000);
    expect(&t, &here(), Status::ClientBound, "half of all messages");

    let mut t = calm();
    t.messages.send_lag_ns.p99 = Some(3 * MS);
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
        Some(pubgauge_figures::model::HeldLimits {
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
    t.messages.not_sent = t.messages.offered / 10;
    t.messages.published = t.messages.offered - t.messages.not_sent;
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
    let limits = pubgauge_figures::model::HeldLimits {
        instances: 1,
        cores: Some(0.5),
        cores_by_quota: true,
        ..Default::default()
    };
    t.limits = Some(limits.clone());
    expect(&t, &here(), Status::Valid, "");
    // Two instances with half a core each had one between them.
    let two = pubgauge_figures::model::HeldLimits {
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
    t.limits = Some(pubgauge_figures::model::HeldLimits {
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
fn workers_that_wait_beside_a_system_at_the_end_of_its_share() {
    // A paced system with half a core carries all, or its queue grows: workers that wait beside it took nothing from
    // it, as long as the latency is far above what they wait in each period of the quota (2.5 of 10 ms).
    let at = |used: f64, median_ms: u64| {
        let mut t = calm();
        t.system_cpu_s = Some(used * t.duration_s);
        t.limits = Some(pubgauge_figures::model::HeldLimits {
            instances: 1,
            cores: Some(0.5),
            cores_by_quota: true,
            ..Default::default()
        });
        t.worker_load.subscribers_waiting = 0.25;
        let latency = distribution(100_000, median_ms * MS, 2 * median_ms * MS);
        (t.messages.latency_ns, t.messages.latency_from_send_ns) = (latency, latency);
        t
    };
    let crowded = "the machine with its 4 processors was the limit";
    expect(&at(0.49, 150), &here(), Status::Valid, "");
    let mut grows = at(0.49, 150);
    grows.shortfall.under_way = 1;
    grows.messages.delivered -= 1;
    expect(&grows, &here(), Status::Overloaded, "under way");
    let reasons = judge(&grows, &here()).reasons;
    assert!(reasons.iter().all(|r| r.rule != Rule::MachineFull));
    // Processor time left, a latency that the waits may make up, other programs that crowd the machine, or a subscriber
    // that had no time at all.
    expect(&at(0.40, 150), &here(), Status::ClientBound, crowded);
    expect(&at(0.49, 20), &here(), Status::ClientBound, crowded);
    let mut others = at(0.49, 150);
    others.worker_load.machine_others = Some(3.4);
    expect(&others, &here(), Status::ClientBound, crowded);
    let mut full = at(0.49, 150);
    full.worker_load.subscribers_running = 0.7;
    expect(
        &full,
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
    t.messages.send_lag_ns = distribution(100_000, MS / 2, MS);
    t.messages.latency_ns = distribution(100_000, 7 * MS / 10, 2 * MS);
    t.circumstances = here();
    let gathered = |span| Circumstances {
        client: ClientSetup {
            pacing_within: span,
            ..ClientSetup::default()
        },
        ..here()
    };
    expect(&t, &here(), Status::ClientBound, "half of all messages");
    expect(&t, &gathered(MS), Status::Valid, "");
    // Later than was asked for.
    t.messages.send_lag_ns.p50 = Some(5 * MS / 4);
    expect(
        &t,
        &gathered(MS),
        Status::ClientBound,
        "more than 250 µs late (beyond the 1.00 ms",
    );

    let mut t = calm();
    t.worker_load.publishers_running = 0.6;
    t.messages.send_lag_ns.p99 = Some(10 * MS);
    expect(&t, &gathered(10 * MS), Status::Valid, "");
    t.messages.send_lag_ns.p99 = Some(13 * MS);
    expect(
        &t,
        &gathered(10 * MS),
        Status::ClientBound,
        "the tail is the client's own",
    );
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
        t.messages.latency_ns.p99 = Some(900 * MS);
        t.messages.latency_from_send_ns.p99 = Some(900 * MS);
        expect(&t, &here(), Status::Valid, "");
    }
}

#[test]
fn what_the_client_slept_through_is_its_own() {
    // The last 0.8 s of 6 s.
    let mut t = calm();
    t.duration_s = 6.0;
    t.series.truncate(6);
    (t.messages.offered, t.messages.not_sent) = (6_000, 795);
    for count in [
        &mut t.messages.published,
        &mut t.messages.delivered,
        &mut t.messages.expected,
    ] {
        *count = 5_205;
    }
    t.worker_load.publishers_stalled = 0.133;
    t.worker_load.longest_stall_ns = 800 * MS;
    expect(&t, &here(), Status::ClientBound, "795 of 6000");
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
    (t.messages.delivered, t.shortfall.lost) = (90_000, 10_000);
    t.worker_load.subscribers_running = 0.97;
    expect(&t, &here(), Status::ClientBound, "10000 of 100000");
    // Acknowledged messages may not be dropped.
    t.settings.reliability = Some(Reliability::AtLeastOnce);
    expect(&t, &here(), Status::Lossy, "10000 of 100000");
}

/// On a network whose publisher's link carried this share of its rate.
fn linked(trial: Trial, share: f64) -> Trial {
    use pubgauge_figures::network::{HostTraffic, NetworkTraffic};
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
fn a_publishing_worker_that_gathers_messages_may_wait_while_it_hands_them_over_in_time() {
    // Ten times a second, all messages of 100 ms: they and the system's work on them meet on the processors.
    let gathering = |last_ms: u64, within_ms: u64| {
        let mut t = calm();
        t.circumstances.client.pacing_within = within_ms * MS;
        t.messages.send_lag_ns = distribution(t.messages.published, 50 * MS, last_ms * MS);
        t.messages.latency_ns = distribution(t.messages.delivered, 70 * MS, 120 * MS);
        t.messages.latency_from_send_ns = distribution(t.messages.delivered, 20 * MS, 40 * MS);
        t.worker_load.publishers_waiting = 0.25;
        t
    };
    let here_within = |t: &Trial| Circumstances {
        client: t.circumstances.client,
        ..here()
    };
    let status = |t: &Trial| judge(t, &here_within(t)).status;
    let in_time = gathering(99, 100);
    assert_eq!(status(&in_time), Status::Valid);
    // Later than asked for; with nothing asked for; flat out.
    assert_eq!(status(&gathering(130, 100)), Status::ClientBound);
    assert_eq!(status(&gathering(99, 0)), Status::ClientBound);
    let mut flat_out = in_time.clone();
    flat_out.workload.flat_out = true;
    assert_eq!(status(&flat_out), Status::ClientBound);
    // A subscribing worker that waits receives late.
    let mut receiving_late = in_time;
    receiving_late.worker_load.subscribers_waiting = 0.25;
    assert_eq!(status(&receiving_late), Status::ClientBound);
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
    t.messages.delivered = 90_000;
    t.shortfall.under_way = 10_000;
    t.messages.delivered_msgs_per_s = 9_000.0;
    let of = |share: f64| judge(&linked(t.clone(), share), &here());
    let named = |verdict: &Verdict| {
        verdict
            .reasons
            .iter()
            .any(|r| r.text.contains("the link of publisher-1 was 99 % full"))
    };
    assert_ne!(of(0.99).status, Status::Valid);
    assert!(named(&of(0.99)), "{:?}", of(0.99).reasons);
    assert!(!named(&of(0.90)));
    assert!(
        !named(&judge(&linked(calm(), 0.99), &here())),
        "nothing is blamed"
    );
}

/// The machine stood still for 10 ms at a time; what stood still for 300 ms was a worker, for 0.3 %.
#[test]
fn a_stall_of_a_worker_is_none_of_the_machine() {
    let mut t = calm();
    t.messages.latency_ns = distribution(100_000, 20 * MS, 500 * MS);
    t.messages.latency_from_send_ns = distribution(100_000, 20 * MS, 500 * MS);
    t.worker_load.publishers_stalled = 0.003;
    t.worker_load.machine_stalled = 0.012;
    t.worker_load.longest_stall_ns = 300 * MS;
    t.worker_load.machine_longest_stall_ns = Some(10 * MS);
    expect(&t, &here(), Status::Valid, "");
    // A machine whose own stalls are as long may have made the tail.
    t.worker_load.machine_longest_stall_ns = Some(300 * MS);
    expect(&t, &here(), Status::ClientBound, "the machine stood still");
}
