//! A quota of processor time around client and system, as a container has.

use pubgauge_figures::model::QuotaUse;

use super::*;

/// A container with a quota of `cores`, in periods of 100 ms, on a machine of two processors.
fn container(cores: f64) -> Circumstances {
    Circumstances {
        cores: 2,
        quota_cores: Some(cores),
        ..Circumstances::default()
    }
}

/// What the quota did: `held_back_ms` in so many of 100 periods of 100 ms.
fn used(cores: f64, held_back_periods: u64, held_back_ms: u64) -> QuotaUse {
    QuotaUse {
        cores,
        period_ns: 100 * MS,
        periods: 100,
        held_back_periods,
        held_back_ns: held_back_ms * MS,
    }
}

/// Ten calm seconds, of which all stood still for most of the time.
fn held_back() -> Trial {
    let mut t = calm();
    t.client_cpu_s = ClientCpu {
        publishers: 0.4,
        subscribers: 0.4,
        ..ClientCpu::default()
    };
    t.system_cpu_s = Some(1.0);
    t.worker_load = WorkerLoad {
        publishers_running: 0.04,
        publishers_waiting: 0.8,
        subscribers_running: 0.04,
        subscribers_waiting: 0.82,
        machine_stalled: 0.85,
        longest_stall_ns: 90 * MS,
        machine_longest_stall_ns: Some(90 * MS),
        quota: Some(used(0.2, 100, 15_500)),
        ..WorkerLoad::default()
    };
    t
}

#[test]
fn a_quota_that_is_used_up_is_what_is_named() {
    let verdict = judge(&held_back(), &container(0.2));
    assert_eq!(verdict.status, Status::ClientBound);
    let [reason] = &verdict.reasons[..] else {
        panic!("{verdict:#?}");
    };
    assert_eq!(reason.rule, Rule::QuotaFull);
    assert_eq!(
        reason.text,
        "this container may use 0.2 of a processor, and was held back in 100 of 100 periods (15.5 s, added up over \
         processors; limit 5 % of the time); in use were 0.08 cores by the client and 0.10 by the system"
    );
    assert_eq!(reason.value(Evidence::HeldBackShare), Some(1.0));
    assert_eq!(reason.value(Evidence::HeldBackPeriods), Some(100.0));
    assert_eq!(reason.value(Evidence::QuotaCores), Some(0.2));
}

/// 41 of 41 periods of a shorter measurement, and a queue that grew meanwhile: it is not the system's.
#[test]
fn a_system_in_a_full_container_is_not_overloaded() {
    let mut t = held_back();
    t.duration_s = 4.0;
    t.worker_load.quota = Some(QuotaUse {
        periods: 41,
        held_back_periods: 41,
        held_back_ns: 6_200 * MS,
        ..used(0.2, 0, 0)
    });
    for (i, second) in t.series.iter_mut().enumerate() {
        second.traffic.backlog = 20_000 * i as u64;
    }
    let verdict = judge(&t, &container(0.2));
    assert_eq!(verdict.status, Status::ClientBound, "{verdict:#?}");
    let words = verdict.sentences().join("\n");
    assert!(words.contains("held back in 41 of 41 periods"), "{words}");
    assert!(!words.contains("the machine"), "{words}");
}

#[test]
fn a_quota_that_holds_nothing_back_changes_nothing() {
    let mut t = calm();
    t.client_cpu_s = ClientCpu::default();
    t.system_cpu_s = Some(0.1);
    t.worker_load.quota = Some(used(0.2, 0, 0));
    expect(&t, &container(0.2), Status::Valid, "");
    // Once in ten seconds, for a moment.
    t.worker_load.quota = Some(used(0.2, 1, 50));
    expect(&t, &container(0.2), Status::Valid, "");
}

#[test]
fn moments_that_fill_the_tail_count() {
    let mut t = calm();
    t.worker_load.quota = Some(used(0.5, 3, 120));
    expect(
        &t,
        &container(0.5),
        Status::ClientBound,
        "in 3 of 100 periods (120 ms",
    );
    // The tail of latencies is ten times as long as what was held back at a time.
    t.messages.latency_ns = distribution(t.messages.expected, 100 * MS, 400 * MS);
    expect(&t, &container(0.5), Status::Valid, "");
}

/// The machine stood still for longer than the quota can have held anything back.
#[test]
fn a_quota_does_not_explain_what_is_longer() {
    let mut t = held_back();
    t.worker_load.quota = Some(used(0.2, 30, 2_000));
    let words = judge(&t, &container(0.2)).sentences().join("\n");
    assert!(words.contains("held back in 30 of 100 periods"), "{words}");
    let beyond = "the machine stood still for 65.0 % of the measurement, beside what the quota";
    assert!(words.contains(beyond), "{words}");
    let full = "the machine, of whose 2 processors this container may use 0.2, was the limit";
    assert!(words.contains(full), "{words}");
    // A quota that hardly held anything back explains nothing.
    t.worker_load.quota = Some(used(0.2, 1, 10));
    let words = judge(&t, &container(0.2)).sentences().join("\n");
    assert!(
        words.contains("the machine stood still for 85.0 % of the measurement (limit"),
        "{words}"
    );
    assert!(!words.contains("held back"), "{words}");
}

/// A standstill that counts for the tail is the quota's where that held back for nearly as long.
#[test]
fn a_short_standstill_is_explained_too() {
    let mut t = calm();
    t.worker_load.machine_stalled = 0.012;
    t.worker_load.longest_stall_ns = 60 * MS;
    t.worker_load.quota = Some(used(0.5, 2, 90));
    let verdict = judge(&t, &container(0.5));
    let rules: Vec<Rule> = verdict.reasons.iter().map(|r| r.rule).collect();
    assert_eq!(rules, [Rule::QuotaFull], "{verdict:#?}");
}

#[test]
fn a_quota_counts_as_the_number_of_processors() {
    assert_eq!(container(1.5).processors(), 1.5);
    assert_eq!(container(4.0).processors(), 2.0);
    // Several threads of a system that used 1.45 of 1.5 processors with the client: it had no more.
    let mut t = flat_out();
    t.worker_load.subscribers_waiting = 0.5;
    t.system_cpu_s = Some(2.2);
    t.client_cpu_s = ClientCpu {
        publishers: 0.3,
        subscribers: 0.4,
        ..ClientCpu::default()
    };
    let two = Circumstances {
        quota_cores: None,
        ..container(1.5)
    };
    expect(&t, &two, Status::Valid, "");
    let text = "the machine, of whose 2 processors this container may use 1.5, was the limit";
    expect(&t, &container(1.5), Status::ClientBound, text);
}

#[test]
fn others_count_beside_what_a_container_may_use() {
    let mut t = calm();
    t.circumstances = container(1.5);
    t.client_cpu_s = ClientCpu {
        publishers: 4.0,
        subscribers: 2.0,
        ..ClientCpu::default()
    };
    t.system_cpu_s = Some(4.0);
    t.worker_load.machine_others = Some(0.4);
    let said = others_busy(&t).expect("1.4 of 1.5");
    assert!(
        said.contains("kept 0.4 of the 1.5 processors that this container may use busy"),
        "{said}"
    );
    t.circumstances.quota_cores = None;
    assert_eq!(others_busy(&t), None, "1.4 of 2");
    // What the quota kept the system waiting for nobody had.
    t.circumstances = container(1.5);
    t.worker_load.system_waiting = Some(0.5);
    assert!(others_busy(&t).is_some());
    t.worker_load.quota = Some(used(1.5, 80, 4_800));
    assert_eq!(others_busy(&t), None);
}
