//! Client hosts of a given size at the end of it: a result, unless pubgauge or the machine was at its end.

use pubgauge_figures::SizedHost;
use pubgauge_figures::model::{HeldLimits, Rule};

use super::*;

/// A host of so many cores.
fn host(name: &str, cores: f64) -> SizedHost {
    SizedHost {
        host: name.into(),
        limits: HeldLimits {
            instances: 1,
            cores: Some(cores),
            cores_by: Some("a quota".into()),
            cores_by_quota: true,
            ..HeldLimits::default()
        },
        used_cores: Some(0.0),
        throttled: Some(0.0),
        own: Some(0.02),
        ..SizedHost::default()
    }
}

/// A publisher that sends as fast as a host of `cores` lets it, where a message costs `cost_us`: with the processors
/// free, or beside others that take the share `taken` of its time.
fn flood_from(cores: f64, cost_us: f64, own_us: f64, taken: f64) -> Trial {
    let mut t = flat_out();
    let used = cores * (1.0 - taken);
    let count = (used * t.duration_s * 1e6 / cost_us) as u64;
    for figure in [
        &mut t.messages.offered,
        &mut t.messages.published,
        &mut t.messages.delivered,
        &mut t.messages.expected,
    ] {
        *figure = count;
    }
    let rate = count as f64 / t.duration_s;
    (
        t.messages.published_msgs_per_s,
        t.messages.delivered_msgs_per_s,
    ) = (rate, rate);
    t.client_cpu_s.publishers = used * t.duration_s;
    t.system_cpu_s = Some(0.3);
    t.worker_load = WorkerLoad {
        publishers_running: used,
        publishers_waiting: 1.0 - used,
        subscribers_running: 0.1,
        ..WorkerLoad::default()
    };
    let of_others = (1.0 - cores) * taken + cores * taken;
    t.sized_hosts = vec![SizedHost {
        used_cores: Some(used),
        throttled: Some(1.0 - used - of_others),
        processors: 1,
        waited: 1.0 - used,
        own: Some(own_us / cost_us),
        ..host("publisher-1", cores)
    }];
    t
}

#[test]
fn what_a_host_of_a_size_gets_done_is_a_result() {
    let mut carried = Vec::new();
    for cores in [0.1, 0.2, 0.5] {
        for n in 0..10 {
            let cost_us = 3.0 + 2.0 * f64::from(n);
            let t = flood_from(cores, cost_us, 0.2, 0.005 * f64::from(n));
            expect(&t, &here(), Status::HostBound, "publisher-1 used");
            let verdict = judge(&t, &here());
            assert!(verdict.has(Rule::HostFull), "{verdict:?}");
            carried.push((cores, cost_us, t.messages.delivered_msgs_per_s));
            // The system in the client's own processes changes nothing.
            let brokerless = Circumstances {
                system_in_client: true,
                ..here()
            };
            expect(&t, &brokerless, Status::HostBound, "of its");
        }
    }
    // What was carried is that of a host of the size: cores over cost.
    for (cores, cost_us, rate) in carried {
        let planted = cores * 1e6 / cost_us;
        assert!((rate / planted - 1.0).abs() < 0.06, "{rate} of {planted}");
    }
}

#[test]
fn a_crowded_machine_beside_a_host_is_no_result() {
    for cores in [0.1, 0.2, 0.5] {
        for n in 0..10 {
            let t = flood_from(cores, 5.0, 0.2, 0.25 + 0.05 * f64::from(n));
            expect(&t, &here(), Status::ClientBound, "was the limit");
        }
    }
    // The host got its share, and waited for others all the same.
    let mut t = flood_from(0.2, 5.0, 0.2, 0.0);
    t.sized_hosts[0].waited += 0.3;
    expect(&t, &here(), Status::ClientBound, "that others had");
}

/// Figures of two workers on a host of 0.2 cores, with the machine to themselves and beside others half of the time. What
/// the kernel kept the host waiting is added up over both processors, and hides what others took.
#[test]
fn a_crowd_that_comes_and_goes_is_not_hidden_by_two_processors() {
    let mut t = flood_from(0.2, 3.0, 0.2, 0.0);
    let figures = |t: &mut Trial, used: f64, throttled: f64, waited: f64| {
        t.sized_hosts = vec![SizedHost {
            used_cores: Some(0.2 * used),
            throttled: Some(throttled),
            processors: 2,
            waited,
            ..host("publisher-1", 0.2)
        }];
    };
    figures(&mut t, 0.99, 0.96, 0.50);
    expect(&t, &here(), Status::HostBound, "publisher-1 used");
    figures(&mut t, 0.70, 0.47, 0.43);
    expect(&t, &here(), Status::ClientBound, "did not use them up");
}

#[test]
fn a_host_that_pubgauge_itself_fills_is_no_result() {
    for cores in [0.1, 0.2, 0.5] {
        for n in 0..10 {
            let cost_us = 1.0 + 0.05 * f64::from(n);
            let t = flood_from(cores, cost_us, 0.2, 0.0);
            expect(&t, &here(), Status::ClientBound, "pubgauge itself took");
        }
    }
    let mut t = flood_from(0.2, 5.0, 0.2, 0.0);
    t.sized_hosts[0].own = None;
    expect(&t, &here(), Status::ClientBound, "`pubgauge calibrate`");
}

#[test]
fn a_host_with_time_left_is_no_limit() {
    for cores in [0.1, 0.2, 0.5] {
        let mut t = calm();
        t.sized_hosts = vec![SizedHost {
            used_cores: Some(0.6 * cores),
            throttled: Some(0.005),
            ..host("publisher-1", cores)
        }];
        // What its worker waited for at the end of the share is not held against the machine.
        t.worker_load.publishers_waiting = 0.4;
        expect(&t, &here(), Status::Valid, "");
        t.sized_hosts[0].limits.cores_by_quota = false;
        expect(&t, &here(), Status::ClientBound, "was the limit");
    }
}

/// A quota stops a host for as long as its period has left, which is no slower processor.
#[test]
fn waits_at_the_end_of_a_share_may_be_the_tail() {
    let mut t = calm();
    t.sized_hosts = vec![SizedHost {
        used_cores: Some(0.12),
        throttled: Some(0.03),
        ..host("subscriber-2", 0.2)
    }];
    expect(&t, &here(), Status::HostBound, "half the 99th percentile");
    t.messages.latency_ns = distribution(100_000, 10 * MS, 40 * MS);
    t.messages.latency_from_send_ns = t.messages.latency_ns;
    expect(&t, &here(), Status::Valid, "");
    t.sized_hosts[0].throttled = Some(0.25);
    expect(&t, &here(), Status::HostBound, "subscriber-2 used 60 %");
}

#[test]
fn a_queue_or_loss_before_a_host_at_its_end_is_the_hosts() {
    let mut t = calm();
    for (i, second) in t.series.iter_mut().enumerate() {
        second.traffic.backlog = 2_000 * i as u64;
    }
    expect(&t, &here(), Status::Overloaded, "");
    t.sized_hosts = vec![SizedHost {
        used_cores: Some(0.2),
        throttled: Some(0.7),
        ..host("subscriber-1", 0.2)
    }];
    expect(&t, &here(), Status::HostBound, "subscriber-1 used 100 %");
    let mut t = calm();
    (t.shortfall.lost, t.messages.delivered) = (1_000, t.messages.delivered - 1_000);
    expect(&t, &here(), Status::Lossy, "");
    t.sized_hosts = vec![SizedHost {
        used_cores: Some(0.2),
        throttled: Some(0.7),
        ..host("subscriber-1", 0.2)
    }];
    expect(&t, &here(), Status::HostBound, "may have let them fall");
    t.sized_hosts[0].own = Some(0.3);
    expect(&t, &here(), Status::ClientBound, "may have let them fall");
}
