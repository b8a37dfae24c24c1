//! Claims of a study over stored results.

use pubgauge_figures::Messages;
use std::path::Path;

use pubgauge_conclusions::claims::kept::{FORMAT, Kept, KeptRun};
use pubgauge_conclusions::claims::{judge, judge_and_keep};
use pubgauge_driver::Answer;
use pubgauge_figures::claim::{ClaimOutcome, ClaimVerdict};
use pubgauge_figures::figure::Figure;
use pubgauge_figures::group::GroupFigures;
use pubgauge_figures::late::LateFigures;
use pubgauge_figures::model::{
    CapabilityAnswer, Circumstances, ClientCpu, Reason, Rule, SystemCapabilities, WorkerLoad,
};
use pubgauge_figures::network::{HostTraffic, NetworkTraffic};
use pubgauge_figures::on_request::{InterfaceTraffic, SyscallCounts, SystemCalls};
use pubgauge_figures::recording::{RecordedDay, RecordedHours, RecordingInfo};
use pubgauge_figures::rule::Claim;
use pubgauge_figures::search::{LimitShare, NotMeasured, Search};
use pubgauge_figures::slow::SlowFigures;
use pubgauge_figures::studies::StudyOutcome;
use pubgauge_figures::wills::WillFigures;
use pubgauge_figures::{
    Connections, Distribution, FlowFigures, Interruption, PresenceFigures, Questions, Results,
    SeriesRecord, Shortfall, Status, TrafficRecord, Trial, Verdict,
};
use pubgauge_fixtures::TrialBuilder;
use pubgauge_study::{PlanOptions, Study};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// A trial with `rate` delivered a second, a latency of `ns`, and ten seconds.
fn trial(system: &str, payload: &str, repeat: u32, rate: f64, ns: u64) -> Trial {
    let latency = Distribution {
        count: 30_000,
        min: Some(ns),
        mean: Some(ns as f64),
        p50: Some(ns),
        p90: Some(ns),
        p99: Some(ns),
        p99_9: Some(ns),
        p99_99: Some(ns),
        max: Some(ns),
        ..Distribution::default()
    };
    // The eleventh is of the drain.
    let rates =
        (1u32..=11).map(|second| (f64::from(second), rate as u64 + u64::from(second % 3) * 10));
    let series = rates.clone().map(|(t_s, delivered)| SeriesRecord {
        traffic: TrafficRecord {
            t_s,
            delivered,
            latency_p99_ns: ns,
            ..TrafficRecord::default()
        },

        ..SeriesRecord::default()
    });
    let of_flow = rates.map(|(t_s, delivered)| TrafficRecord {
        t_s,
        delivered,
        ..TrafficRecord::default()
    });
    let flow = FlowFigures {
        messages: Messages {
            delivered_msgs_per_s: rate / 2.0,
            latency_ns: latency,
            ..Messages::default()
        },
        name: "own".into(),

        series: of_flow.collect(),
        ..FlowFigures::default()
    };
    let calls = SyscallCounts {
        all: (rate * 10.0) as u64 * 6,
        sends: Some((rate * 10.0) as u64),
        receives: Some((rate * 10.0) as u64 / 2),
        syncs: 50,
    };
    let trial = TrialBuilder::periodic(rate, 10.0)
        .id(repeat)
        .repeat(repeat)
        .cell(format!("{system}-{payload}"))
        .system(system)
        .workload("flood")
        .payload(payload.replace("KiB", " KiB"))
        .axis("workload.flood.flow.payload", payload)
        .cpu(5.0, 2.0, 1.0);
    let trial = trial.build();
    Trial {
        messages: Messages {
            latency_ns: latency,
            latency_from_send_ns: latency,
            send_lag_ns: latency,
            acknowledgement_ns: Some(latency),
            round_trip_ns: Some(latency),
            half_round_trip_ns: Some(latency),
            ..trial.messages
        },
        shortfall: Shortfall {
            questions: Some(Questions {
                asked: 10,
                answered: 9,
                answered_late: 2,
                unanswered: 1,
            }),
            ..trial.shortfall
        },
        noise_ns: latency,
        system_rss_bytes: Some(1 << 20),
        system_busiest_thread_cpu: Some(0.97),
        publishers_blocked: Some(0.125),
        client_rss_bytes: 1 << 20,
        connections: Connections {
            planned: 10,
            made: 10,
            connect_s: 0.5,
            ready_s: 0.1,
            connect_cpu_s: 0.1,
            refused: 3,
            made_per_s: Some(20.0),
            subscribed_per_s: Some(10.0),
            time_to_connect_ns: Some(latency),
            time_to_reconnect_ns: Some(latency),
            ..Connections::default()
        },
        presence: Some(PresenceFigures {
            left: 4,
            returned: 4,
            first_message_ns: Some(latency),
            backlog_ns: Some(latency),
        }),
        slow: Some(SlowFigures {
            subscribers: 2,
            fell_behind: 1,
            expected: 100,
            taken: 0,
            behind: 90,
            lost: 10,
            latency_ns: Some(latency),
            ..SlowFigures::default()
        }),
        late: Some(LateFigures {
            subscribers: 2,
            subscribed: 2,
            last_values_due: Some(10),
            last_values: 9,
            backlog: 5,
            live: 90,
            lost: 1,
            duplicated: 1,
            subscribe_ns: Some(latency),
            last_values_ns: Some(latency),
            backlog_ns: Some(latency),
            ..LateFigures::default()
        }),
        wills: Some(WillFigures {
            cut: 4,
            due: 4,
            published: 3,
            deliveries_due: 8,
            deliveries: 6,
            time_ns: Some(latency),
            ..WillFigures::default()
        }),
        system_descriptors: Some(20),
        interruptions: vec![Interruption {
            at_s: 1.0,
            out_s: Some(0.5),
            back_s: Some(0.75),
            lost: 2,
        }],
        system_heap_bytes: Some(900),
        system_memory_limit_bytes: Some(1000),
        client_cpu_s: ClientCpu {
            publishers_library: Some(3.0),
            subscribers_library: Some(1.0),
            ..trial.client_cpu_s
        },
        worker_load: WorkerLoad {
            publishers_running: 0.5,
            subscribers_running: 0.25,
            applications_busy: Some(0.4),
            publishers_stalled: 0.01,
            subscribers_stalled: 0.01,
            machine_others: Some(0.3),
            ..WorkerLoad::default()
        },
        circumstances: Circumstances {
            cores: 2,
            ..Circumstances::default()
        },
        system_written_bytes: Some(4096),
        system_calls: Some(SystemCalls {
            client: Some(calls),
            system: Some(calls),
            not_counted: Vec::new(),
        }),
        interface: Some(InterfaceTraffic {
            bytes: (rate * 10.0) as u64 * 300,
            packets: (rate * 10.0) as u64 * 4,
            payload_bytes: Some((rate * 10.0) as u64 * 200),
            ..InterfaceTraffic::default()
        }),
        network: Some(NetworkTraffic {
            hosts: vec![HostTraffic {
                host: "subscriber-1".into(),
                received_bytes: (rate * 10.0) as u64 * 300,
                ..HostTraffic::default()
            }],
            ..NetworkTraffic::default()
        }),
        groups: vec![GroupFigures {
            deliveries: vec![2500, 7500],
            ..GroupFigures::default()
        }],
        latency_ecdf: vec![(ns / 2, 0.5), (ns, 0.8), (2 * ns, 0.96), (3 * ns, 1.0)],
        series: series.collect(),
        flows: vec![flow],
        ..trial
    }
}

/// At 1 KiB and 4 KiB, `a` delivers twice as much as `b`; five repeats, 1 % apart.
fn results() -> Results {
    let mut trials = Vec::new();
    for repeat in 1..=5 {
        let noise = 1.0 + 0.01 * f64::from(repeat % 3);
        for (payload, size) in [("1KiB", 1.0), ("4KiB", 0.9)] {
            trials.push(trial(
                "a",
                payload,
                repeat,
                2000.0 * size * noise,
                1_000_000,
            ));
            trials.push(trial(
                "b",
                payload,
                repeat,
                1000.0 * size * noise,
                3_000_000,
            ));
        }
    }
    Results {
        trials,
        ..Results::default()
    }
}

/// The outcome of a claim with these lines.
fn judged(results: &Results, lines: &str) -> ClaimOutcome {
    let text = format!(
        "name = \"t\"\n[[workload]]\nname = \"w\"\nflow = [{{ payload = \"64B\", rate = \"1/s\" }}]\n\
         [[claim]]\nid = \"T01\"\nsentence = \"a is better than b.\"\nsource = \"nobody 2020, figure 1\"\n{lines}\n"
    );
    let options = PlanOptions::with_systems(["mosquitto"]);
    let study = Study::parse("t.toml", &text, Path::new("."));
    let plan = study
        .and_then(|s| s.plan(&options))
        .unwrap_or_else(|e| panic!("{e}"));
    let outcome = judge(results, &plan.claims).remove(0);
    is_judged_by_what_is_kept(results, &plan.claims, &outcome);
    outcome
}

/// The trials that were kept of a run say the same, after they were written and read.
fn is_judged_by_what_is_kept(results: &Results, claims: &[Claim], outcome: &ClaimOutcome) {
    let (outcomes, rows) = judge_and_keep(results, claims);
    assert_eq!(outcomes[0], *outcome);
    let run = KeptRun {
        format: FORMAT.into(),
        study: StudyOutcome {
            started: results.study.started.clone(),
            trials: results.trials.len() as u32,
            planned_trials: results.study.planned_trials,
            ..StudyOutcome::default()
        },
        scale: results.study.scale.clone(),
        in_rounds: results.study.until_decided_s.is_some(),
        claim_rules: results.study.claim_rules.clone(),
        ..KeptRun::default()
    };
    let kept = Kept::new(run, rows);
    let read = Kept::parse(&kept.to_text()).unwrap();
    assert_eq!(read, kept);
    assert_eq!(read.judge(claims)[0], *outcome);
}

const ORDER: &str = "papers = \"2.1\"\nfigure = \"delivered-bytes-rate\"\n\
                     rule = { sides = [\"a\", \"b\"], ratio = \"> 1\", along = \"payload\" }";

#[test]
fn an_order_along_an_axis() {
    let found = judged(&results(), ORDER);
    assert_eq!(found.outcome, ClaimVerdict::Holds, "{found:?}");
    assert_eq!(found.rule, "delivered-bytes-rate: a > b at every payload.");
    assert!(
        found
            .ours
            .starts_with("a/b at 1KiB, a/b at 4KiB: 2 (1.98 to 2.02)"),
        "{}",
        found.ours
    );
    assert_eq!(found.papers, "2.1");
    let mirrored = judged(&results(), &ORDER.replace("> 1", "< 1"));
    assert_eq!(mirrored.outcome, ClaimVerdict::DoesNotHold);
    // Bytes rise with the payload although messages fall.
    let rises = |figure: &str| {
        format!(
            "figure = \"{figure}\"\nrule = {{ sides = [\"a\"], rises = \"1%\", along = \"payload\" }}"
        )
    };
    assert_eq!(
        judged(&results(), &rises("delivered-bytes-rate")).outcome,
        ClaimVerdict::Holds
    );
    assert_eq!(
        judged(&results(), &rises("delivered-rate")).outcome,
        ClaimVerdict::DoesNotHold
    );
}

#[test]
fn values_have_the_units_of_their_figures() {
    let value = |figure: &str, range: &str| {
        let rule = format!(
            "figure = \"{figure}\"\nrule = {{ sides = [\"a\"], value = \"{range}\", along = \"payload\" }}"
        );
        judged(&results(), &rule)
    };
    let found = value("latency.p99", "< 2ms");
    assert_eq!(found.outcome, ClaimVerdict::Holds, "{found:?}");
    assert_eq!(
        found.rule,
        "latency.p99 of a is below 2 ms at every payload."
    );
    assert_eq!(
        value("latency.p99", "< 500us").outcome,
        ClaimVerdict::DoesNotHold
    );
    assert_eq!(
        value("delivered-rate", "> 1k/s").outcome,
        ClaimVerdict::Holds
    );
    assert_eq!(
        value("system-busiest-thread", "0.9..1.1").outcome,
        ClaimVerdict::Holds
    );
    assert_eq!(
        value("published-rate / delivered-rate", "0.99..1.01").outcome,
        ClaimVerdict::Holds
    );
    assert_eq!(value("loss-share", "< 1%").outcome, ClaimVerdict::Holds);
}

#[test]
fn figures_that_are_worked_out() {
    for (figure, system, shown) in [
        ("publishers-cpu", "a", "0.5 cores"),
        // 0.7 of 2 cores, and 0.1 of what the client and others left.
        ("client-cpu-share", "a", "35 %"),
        ("system-cpu-share", "a", "10 %"),
        ("publishers-library-cpu", "a", "0.3 cores"),
        ("subscribers-library-cpu", "a", "0.1 cores"),
        ("publishers-blocked", "a", "12.5 %"),
        ("system-heap / system-memory-limit", "a", "0.9"),
        ("publishers-load", "a", "50 %"),
        ("subscribers-load", "a", "25 %"),
        // Half a core at 2,000 messages a second, up to the noise of repeats.
        ("publishers-cpu-per-message", "a", "247 µs a message"),
        ("latency.p70", "a", "1000 µs"),
        // The next larger stored point of the distribution function.
        ("latency.p97", "a", "3 ms"),
        ("latency.p99.growth", "a", "1"),
        ("delivered-rate.cv", "a", "0.00401"),
        ("smallest-member-share", "a", "25 %"),
        ("client-syscalls-per-message", "a", "6"),
        ("client-receive-calls-per-message", "a", "0.5"),
        ("system-sync-calls", "a", "50"),
        ("system-written-bytes", "a", "4.096 kB"),
        ("interface-bytes-per-payload-byte", "a", "1.5"),
        ("interface-overhead-per-message", "a", "100 B"),
        // 300 B of each delivery of 1,024.
        (
            "subscriber-links-received-bytes-rate / delivered-bytes-rate",
            "a",
            "0.293",
        ),
    ] {
        let rule = format!(
            "figure = \"{figure}\"\nwhere = {{ payload = \"1KiB\" }}\nrule = {{ sides = [\"{system}\"], JUDGE }}"
        );
        let unit = match figure {
            "latency.p70" | "latency.p97" => "0ns..1s",
            load if load.ends_with("-load") || load.ends_with("-blocked") => "0%..100%",
            share if share.ends_with("-share") => "0%..50%",
            "system-written-bytes" => "0..10000",
            _ => "0..1000",
        };
        let value = rule.replace("JUDGE", &format!("value = \"{unit}\""));
        let found = judged(&results(), &value);
        assert_eq!(found.outcome, ClaimVerdict::Holds, "{figure}: {found:?}");
        assert!(
            found.ours.contains(&format!(": {shown} (")),
            "{figure}: {}",
            found.ours
        );
    }
}

/// A recording of `days`: of 18 readings about noon and 126 in the rest of each, shares are sent that are `noon` and
/// `rest` but for noise; each has a value of 10, and about noon `less` of that.
fn recording(seed: u64, days: i64, (noon, rest): (f64, f64), less: f64) -> Results {
    let mut noise = StdRng::seed_from_u64(seed);
    let mut hours = |name: &str, readings: u64, share: f64, value: f64| RecordedHours {
        name: name.into(),
        length_s: readings as f64 * 600.0,
        days: (0..days)
            .map(|day| {
                let sent = (0..readings).filter(|_| noise.random_bool(share)).count();
                RecordedDay {
                    day: 19_000 + day,
                    readings,
                    kept: sent as u64,
                    mean_bytes: 23.0,
                    mean_value: Some(value * noise.random_range(0.97..1.03)),
                }
            })
            .collect(),
    };
    let hours = vec![
        hours("noon", 18, noon, 10.0 * less),
        hours("rest", 126, rest, 10.0),
    ];
    let mut results = results();
    results.study.recordings = vec![RecordingInfo {
        name: "weather".into(),
        hours,
    }];
    results
}

/// A truth planted in a recording is found by the recording alone, as that of a stand-in; none is found where there is
/// none. Days are repeats, and more of them cannot be had.
#[test]
fn a_recording_is_judged_day_by_day() {
    let rule = |figure: &str, judge: &str| {
        format!(
            "stand-in = \"a sensor for 90\"\nfigure = \"{figure}\"\nwhere = {{ recording = \"weather\" }}\n\
             rule = {{ sides = [{{ hours = \"noon\" }}], against = [{{ hours = \"rest\" }}], {judge}, paired = true }}"
        )
    };
    // Of 100 recordings, how many have an outcome.
    let count = |outcome, lines: &str, days, shares, less| {
        let found = |seed| judged(&recording(seed, days, shares, less), lines).outcome;
        (0..100).filter(|seed| found(*seed) == outcome).count()
    };
    let (holds, fails) = (ClaimVerdict::StandInHolds, ClaimVerdict::StandInDoesNotHold);
    let peak = rule("kept-share", "difference = \"> 0%\"");
    assert!(count(holds, &peak, 100, (0.6, 0.5), 1.0) >= 99);
    assert!(count(fails, &peak, 100, (0.5, 0.6), 1.0) >= 99);
    assert!(count(holds, &peak, 100, (0.5, 0.5), 1.0) <= 8);
    let dip = rule("recorded-value", "ratio = \"< 1\"");
    assert!(count(holds, &dip, 10, (0.5, 0.5), 0.95) >= 99);
    assert!(count(holds, &dip, 10, (0.5, 0.5), 1.0) <= 8);
    let same = judged(
        &recording(1, 10, (0.5, 0.5), 1.0),
        &rule("recorded-size", "equal = \"5%\""),
    );
    assert_eq!(same.outcome, ClaimVerdict::StandInHolds, "{same:?}");
    let open = judged(&recording(3, 5, (0.52, 0.5), 1.0), &peak);
    assert_eq!(
        (open.outcome, open.repeats_to_tell),
        (ClaimVerdict::CannotTell, None),
        "{open:?}"
    );
    let absent = judged(&results(), &peak);
    assert_eq!(absent.outcome, ClaimVerdict::CannotTell, "{absent:?}");
}

/// Other things that a driver stands in for are no support, and a system whose driver was not asked cannot be told.
#[test]
fn what_systems_support_is_counted() {
    let mut results = results();
    let answer = |name: &str, answer: Answer| CapabilityAnswer {
        capability: name.parse().unwrap(),
        answer,
    };
    results.study.capabilities = vec![SystemCapabilities {
        system: "a".into(),
        answers: vec![
            answer("multicast", Answer::native("to a group")),
            answer("lifespan", Answer::native("expiry")),
            answer("priority", Answer::emulated("queues")),
            answer("rate-limit", Answer::unsupported("nothing of the kind")),
        ],
    }];
    let judged = |side: &str, names: &str, count: &str| {
        let rule = format!(
            "figure = \"supports {names}\"\nwhere = {{ payload = \"1KiB\" }}\nrule = {{ sides = [\"{side}\"], count = \"{count}\" }}"
        );
        judged(&results, &rule).outcome
    };
    let names = "multicast, lifespan, priority, rate-limit";
    assert_eq!(judged("a", names, "= 2"), ClaimVerdict::Holds);
    assert_eq!(judged("a", names, "= 3"), ClaimVerdict::DoesNotHold);
    assert_eq!(judged("a", "priority", "= 0"), ClaimVerdict::Holds);
    assert_eq!(
        judged("a", "multicast, last-value", "> 0"),
        ClaimVerdict::CannotTell
    );
    assert_eq!(judged("b", names, "> 0"), ClaimVerdict::CannotTell);
}

/// Each figure that a claim may name is one that trials have.
#[test]
fn every_figure_is_found() {
    let names = Figure::all().iter().map(|figure| figure.name.as_str());
    let results = recording(1, 10, (0.5, 0.5), 1.0);
    let of_trials = ["verdict", "limit", "sustained"];
    for name in names.filter(|name| !of_trials.contains(name)) {
        let (cells, side) = if name.starts_with("recorded-") || name == "kept-share" {
            ("recording = \"weather\"", "{ hours = \"noon\" }")
        } else {
            ("payload = \"1KiB\"", "\"a\"")
        };
        let rule = format!(
            "figure = \"{name}\"\nwhere = {{ {cells} }}\nrule = {{ sides = [{side}], count = \"> 0\" }}"
        );
        let found = judged(&results, &rule);
        assert_ne!(found.outcome, ClaimVerdict::CannotTell, "{name}: {found:?}");
    }
}

/// Figures that are as they are, whether system calls are counted or not, are compared all the same.
#[test]
fn speeds_of_counted_trials_are_not_held_against_others() {
    let mut results = results();
    let told = |results: &Results, figure: &str| {
        let rule = format!(
            "figure = \"{figure}\"\nwhere = {{ payload = \"1KiB\" }}\nrule = {{ sides = [\"a\", \"b\"], ratio = \"> 0\" }}"
        );
        judged(results, &rule)
    };
    assert_eq!(told(&results, "latency.p50").outcome, ClaimVerdict::Holds);
    for trial in results.trials.iter_mut().filter(|t| t.system.name == "a") {
        trial.system_calls = None;
    }
    for speed in [
        "latency.p50",
        "delivered-rate / offered-rate",
        "client-cpu-per-message",
    ] {
        let found = told(&results, speed);
        assert_eq!(found.outcome, ClaimVerdict::CannotTell, "{speed}");
        assert!(found.reason.contains("were counted in some"), "{found:?}");
    }
    for other in [
        "delivered",
        "system-memory",
        "interface-packets-per-message",
    ] {
        assert_eq!(
            told(&results, other).outcome,
            ClaimVerdict::Holds,
            "{other}"
        );
    }
}

#[test]
fn overload_and_what_is_missing() {
    let mut results = results();
    results.trials[0].verdict.status = Status::Overloaded;
    let found = judged(&results, ORDER);
    assert_eq!(found.outcome, ClaimVerdict::CannotTell);
    assert_eq!(
        found.reason,
        "a/b at 1KiB: a at 1KiB: 1 of 5 repeats overloaded"
    );
    let admitted = format!("verdicts = [\"valid\", \"overloaded\"]\n{ORDER}");
    assert_eq!(judged(&results, &admitted).outcome, ClaimVerdict::Holds);
    let other = judged(&results, &ORDER.replace("\"b\"", "\"c\""));
    assert_eq!(other.outcome, ClaimVerdict::CannotTell);
    assert!(
        other.reason.contains("c at 4KiB: not measured in this run"),
        "{}",
        other.reason
    );
    // At a scale it is that which leaves a cell out, unless the run was cut off.
    let mut small = results.clone();
    small.study.scale = Some("smoke".into());
    small.study.planned_trials = small.trials.len() as u32;
    let missing = ORDER.replace("\"b\"", "\"c\"");
    let left_out = judged(&small, &missing).reason;
    assert!(
        left_out.contains("c at 4KiB: not measured at scale smoke"),
        "{left_out}"
    );
    small.study.planned_trials += 1;
    let cut_off = judged(&small, &missing).reason;
    assert!(
        cut_off.contains("c at 4KiB: not measured in this run"),
        "{cut_off}"
    );
    let needed = judged(&results, &format!("needs-systems = [\"joram\"]\n{ORDER}"));
    assert_eq!(needed.outcome, ClaimVerdict::NotApplicable);
    assert_eq!(needed.reason, "the run has no joram");
}

/// A spoilt trial that was measured again in its round does not count.
#[test]
fn of_a_round_the_last_trial_is_judged() {
    let mut again = results();
    let mut spoilt = again.trials[0].clone();
    spoilt.verdict.status = Status::Broken;
    again.trials.insert(0, spoilt);
    for (id, trial) in (0..).zip(&mut again.trials) {
        trial.id = id;
    }
    assert_eq!(judged(&again, ORDER), judged(&results(), ORDER));
}

/// The last record of 10.5 s is half as long: half as many deliveries in it are the same rate.
#[test]
fn a_short_record_is_no_slow_one() {
    let mut short = results();
    for trial in &mut short.trials {
        trial.duration_s = 10.5;
        let last = trial.series.last_mut().expect("records");
        (last.traffic.t_s, last.traffic.delivered) = (10.5, last.traffic.delivered / 2);
    }
    let rule = "figure = \"delivered-rate.cv\"\nwhere = { payload = \"1KiB\" }\n\
                rule = { sides = [\"a\"], value = \"0..0.05\" }";
    let found = judged(&short, rule);
    assert_eq!(found.outcome, ClaimVerdict::Holds, "{found:?}");
}

#[test]
fn a_flow_has_figures_and_seconds_of_its_own() {
    let value = "figure = \"delivered-rate\"\nwhere = { flow = \"own\", payload = \"1KiB\" }\n\
                 rule = { sides = [\"a\"], value = \"900/s..1100/s\" }";
    assert_eq!(judged(&results(), value).outcome, ClaimVerdict::Holds);
    let spread = |figure: &str, flow: &str| {
        judged(
            &results(),
            &format!(
                "figure = \"{figure}\"\nwhere = {{ {flow}payload = \"1KiB\" }}\n\
                 rule = {{ sides = [\"a\", \"b\"], spread = \"> 0.5\" }}"
            ),
        )
    };
    // As many seconds of the same spread on both sides: the ratio is 1, without doubt.
    for flow in ["", "flow = \"own\", "] {
        let found = spread("delivered-rate", flow);
        assert_eq!(
            (found.outcome, found.ours.as_str()),
            (ClaimVerdict::Holds, "a/b: 1 (1 to 1)"),
            "{flow}"
        );
    }
    let none = spread("latency.p99", "flow = \"own\", ");
    assert_eq!(none.outcome, ClaimVerdict::CannotTell);
    assert!(
        none.reason.contains("fewer than 8 seconds"),
        "{}",
        none.reason
    );
}

#[test]
fn limits_that_searches_found() {
    let mut results = results();
    let search = |system: &str, low, high| Search {
        system: system.into(),
        low,
        high,
        ..Search::default()
    };
    let order = "figure = \"limit\"\nrule = { sides = [\"a\", \"b\"], ratio = \"> 1\" }";
    results.searches = vec![
        search("a", Some(30e3), None),
        search("b", Some(10e3), Some(12e3)),
    ];
    let found = judged(&results, order);
    assert_eq!(
        (found.outcome, found.ours.as_str()),
        (ClaimVerdict::Holds, "a/b: 2.5 or more")
    );
    results.searches[0] = search("a", None, Some(11e3));
    assert_eq!(judged(&results, order).outcome, ClaimVerdict::CannotTell);
    results.searches[0] = search("a", None, Some(5e3));
    assert_eq!(judged(&results, order).outcome, ClaimVerdict::DoesNotHold);
}

#[test]
fn the_table_and_the_page_show_claims() {
    let mut results = results();
    results.claims = vec![
        judged(&results, ORDER),
        judged(&results, "not-applicable = \"a < b & c\""),
    ];
    let table = pubgauge_report::table(&results, 80);
    let start = table.find("Claims:").expect("claims in the table");
    let lines: Vec<&str> = table[start..].lines().collect();
    assert_eq!(
        lines[1],
        "  - T01 holds: a is better than b. | ours: a/b at 1KiB, a/b at 4KiB: 2 (1.98 to"
    );
    assert!(lines.iter().all(|line| line.chars().count() <= 80));
    let page = pubgauge_report::page(&results, &pubgauge_report::Logs::new());
    for part in [
        "<section id=\"claims\">",
        "delivered-bytes-rate: a &gt; b at every payload.",
        "nobody 2020, figure 1",
        ">not applicable</span>",
        "a &lt; b &amp; c",
        "href=\"#claims\"",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

/// The picture of a claim is what was judged: each side along the axis, what does not count left out.
#[test]
fn the_picture_of_a_claim() {
    let mut results = results();
    let found = judged(&results, ORDER);
    assert_eq!(found.pictures.len(), 1);
    let picture = &found.pictures[0];
    assert_eq!(
        (picture.figure.as_str(), picture.axis.as_str()),
        ("delivered-bytes-rate", "payload")
    );
    let sides: Vec<&str> = picture.sides.iter().map(|s| s.side.as_str()).collect();
    assert_eq!(sides, ["a", "b"]);
    let points = &picture.sides[0].points;
    let at: Vec<(&str, Option<f64>)> = points.iter().map(|p| (p.at.as_str(), p.number)).collect();
    assert_eq!(at, [("1KiB", Some(1024.0)), ("4KiB", Some(4096.0))]);
    // The geometric mean of 1.01, 1.02, 1.00, 1.01, 1.02 times 2000 messages of 1024 bytes.
    let mean = (1.01f64 * 1.02 * 1.0 * 1.01 * 1.02).powf(0.2) * 2000.0 * 1024.0;
    assert!((points[0].value / mean - 1.0).abs() < 1e-9, "{points:?}");
    let (low, high) = (points[0].low.unwrap(), points[0].high.unwrap());
    assert!(low < mean && mean < high && high / low < 1.03, "{points:?}");
    // Two repeats are shown without an interval, an overloaded cell not at all.
    results
        .trials
        .retain(|t| t.system.name != "a" || t.repeat <= 2);
    let bad = |t: &&mut Trial| t.system.name == "b" && t.axes[0].value == "4KiB";
    results
        .trials
        .iter_mut()
        .filter(bad)
        .for_each(|t| t.verdict.status = Status::Overloaded);
    let picture = &judged(&results, ORDER).pictures[0];
    assert_eq!(picture.sides[0].points.len(), 2);
    assert!(
        picture.sides[0]
            .points
            .iter()
            .all(|p| p.low.is_none() && p.high.is_none())
    );
    assert_eq!(picture.sides[1].points.len(), 1);
    // None without an axis, and none of what is not applicable.
    let plain = "figure = \"delivered-rate\"\nwhere = { payload = \"1KiB\" }\nrule = { sides = [\"a\", \"b\"], ratio = \"> 1\" }";
    assert!(judged(&results, plain).pictures.is_empty());
    assert!(
        judged(&results, &format!("needs-systems = [\"joram\"]\n{ORDER}"))
            .pictures
            .is_empty()
    );
    // Implementations of one side are curves of their own.
    let both = "figure = \"delivered-rate\"\nrule = { sides = [\"all\"], falls = \"5%\", along = \"payload\" }\n[side]\nall = [\"a\", \"b\"]";
    let names: Vec<String> = judged(&results, both).pictures[0]
        .sides
        .iter()
        .map(|s| s.side.clone())
        .collect();
    assert_eq!(names, ["all: a", "all: b"]);
}

/// A share of a limit that is only known as "at least" may be any smaller share; what has no load has its reason.
#[test]
fn shares_of_limits() {
    let order = "figure = \"delivered-rate\"\nalong = \"payload\"\nrule = { sides = [\"a\", \"b\"], ratio = \"> 1\" }";
    let mut results = results();
    let share = |at_least| LimitShare {
        of: "limit".into(),
        share: 0.9,
        axis: pubgauge_figures::search::Axis::Rate,
        end: 1200.0,
        load: 1080.0,
        at_least,
    };
    for trial in &mut results.trials {
        trial.limit_share = Some(share(false));
    }
    assert_eq!(judged(&results, order).outcome, ClaimVerdict::Holds);
    for trial in &mut results.trials {
        let of_b = trial.system.name == "b" && trial.axes[0].value == "4KiB";
        trial.limit_share = Some(share(of_b));
    }
    let found = judged(&results, order);
    assert_eq!(found.outcome, ClaimVerdict::CannotTell, "{found:?}");
    let why = "the limit of limit is only known as at least 1.2k msg/s";
    assert!(found.reason.contains(why), "{}", found.reason);
    // The cell is not there at all.
    let of_b = |trial: &Trial| trial.system.name == "b" && trial.axes[0].value == "4KiB";
    let like = results
        .trials
        .iter()
        .find(|trial| of_b(trial))
        .cloned()
        .expect("a trial");
    results.trials.retain(|trial| !of_b(trial));
    results.not_measured = vec![NotMeasured {
        cell: like.cell,
        system: like.system.name,
        settings: like.settings_name,
        workload: like.workload.name,
        axes: like.axes,
        reason: "no load is 150% of limit".into(),
    }];
    let found = judged(&results, order);
    assert_eq!(found.outcome, ClaimVerdict::CannotTell, "{found:?}");
    let why = "b at 4KiB: not measured: no load is 150% of limit";
    assert!(found.reason.contains(why), "{}", found.reason);
}

/// Whichever verdicts a claim counts: what was measured while a hypervisor took the processors shows nothing.
#[test]
fn what_a_hypervisor_slowed_does_not_count() {
    let count = "verdicts = [\"valid\", \"client-bound\"]";
    let order = format!("{ORDER}\n{count}");
    let mut results = results();
    let slow = |trial: &mut Trial| {
        trial.messages.delivered_msgs_per_s /= 100.0;
        trial.verdict = Verdict {
            status: Status::ClientBound,
            reasons: vec![Reason::new(Rule::TimeStolen, "a hypervisor took it")],
            ..Verdict::default()
        };
    };
    let of_a = |trial: &&mut Trial| trial.system.name == "a" && trial.axes[0].value == "4KiB";
    for (left, outcome) in [(3, ClaimVerdict::Holds), (0, ClaimVerdict::CannotTell)] {
        let trials = results.trials.iter_mut().filter(of_a);
        trials.skip(left).for_each(slow);
        let found = judged(&results, &order);
        assert_eq!(found.outcome, outcome, "{found:?}");
    }
    let found = judged(&results, &order);
    let why = "a hypervisor took it";
    assert!(found.reason.contains(why), "{}", found.reason);
}
