use pubgauge_figures::Messages;
use pubgauge_figures::criterion::{TrialFilter, by_default};
use pubgauge_figures::model::{AxisValue, CountCheck, Distribution};
use pubgauge_figures::network::NetworkTraffic;
use pubgauge_figures::window::WindowFigures;
use pubgauge_fixtures::{TrialBuilder, distribution};

use super::*;

/// A trial of 1,000 deliveries; its flow is twice as slow as all of it.
fn trial(system: &str, status: Status, p99: u64, lost: u64) -> Trial {
    let trial = TrialBuilder::periodic(1_000.0, 1.0)
        .system(system)
        .status(status)
        .times(p99 / 2, p99)
        .lost(lost)
        .flows(&["meters"]);
    let mut trial = trial.build();
    trial.system_cpu_s = Some(0.5);
    trial.flows[0].messages.latency_ns = distribution(500, p99, 2 * p99);
    trial
}

fn criterion(figure: &str, comparison: Comparator, value: f64) -> CriterionSpec {
    CriterionSpec {
        text: format!("{figure} {comparison} {value}"),
        figure: figure.into(),
        comparison,
        value,
        filter: TrialFilter::default(),
    }
}

#[test]
fn met_unmet_and_undecided() {
    let trials = [
        trial("a", Status::Valid, 1_000, 0),
        trial("b", Status::Valid, 5_000, 0),
    ];
    let p99 = |value| criterion("latency_ns.p99", Comparator::AtMost, value);
    assert_eq!(evaluate(&trials, &p99(5_000.0)).met, Some(true));
    let unmet = evaluate(&trials, &p99(4_000.0));
    assert_eq!(unmet.met, Some(false));
    assert_eq!(unmet.figures, "b 1, fleet, repeat 1: 5 µs");
    let mut only_a = p99(4_000.0);
    only_a.filter.systems = vec!["a".into()];
    assert_eq!(evaluate(&trials, &only_a).met, Some(true));
    only_a.filter.settings = vec!["tls".into()];
    assert_eq!(evaluate(&trials, &only_a).met, None);
    only_a.filter.settings.push("default".into());
    assert_eq!(evaluate(&trials, &only_a).met, Some(true));
    only_a.filter.flow = Some("meters".into());
    assert!(evaluate(&trials, &only_a).figures.contains(": 2 µs"));
    only_a.filter.flow = Some("cars".into());
    assert_eq!(evaluate(&trials, &only_a).met, None);
    let unknown = evaluate(&trials, &criterion("latency.p98", Comparator::Less, 1.0));
    assert!(unknown.met.is_none() && unknown.figures.contains("no figure named"));
}

#[test]
fn comparisons() {
    assert!(Comparator::Less.holds(1.0, 2.0) && !Comparator::Less.holds(2.0, 2.0));
    assert!(Comparator::AtMost.holds(2.0, 2.0) && !Comparator::Greater.holds(2.0, 2.0));
    assert!(Comparator::AtLeast.holds(2.0, 2.0) && !Comparator::Equal.holds(f64::NAN, 2.0));
}

#[test]
fn trials_are_named_by_what_was_varied() {
    let mut one = trial("a", Status::Valid, 5_000, 0);
    one.settings_name = "safe".into();
    one.axes = vec![AxisValue {
        name: "workload.fleet.flow.payload".into(),
        value: "1KiB".into(),
    }];
    let said = evaluate(&[one], &criterion("latency_ns.p99", Comparator::Less, 1e3));
    assert_eq!(
        said.figures,
        "a 1, fleet, safe, payload = 1KiB, repeat 1: 5 µs"
    );
}

fn met(status: Status, figure: &str, comparison: Comparator, value: f64) -> Option<bool> {
    evaluate(
        &[trial("a", status, 10, 50)],
        &criterion(figure, comparison, value),
    )
    .met
}

/// Latencies of so many messages, all of 1 ms.
fn of_messages(count: u64) -> Trial {
    let mut values = hdrhistogram::Histogram::<u64>::new(3).unwrap();
    values.record_n(1_000_000, count).unwrap();
    let latency_ns = Distribution::from_histogram(&values);
    let mut trial = TrialBuilder::periodic(count as f64, 1.0)
        .latency(latency_ns)
        .flows(&["meters"])
        .build();
    trial.windows = vec![WindowFigures {
        messages: trial.messages.clone(),
        name: "first".into(),
        ..WindowFigures::default()
    }];
    trial
}

#[test]
fn a_percentile_of_too_few_messages_meets_and_fails_nothing() {
    for (part, needed) in [
        ("p50", 5),
        ("p90", 29),
        ("p99", 299),
        ("p99_9", 2_995),
        ("p99_99", 29_956),
    ] {
        let name = format!("latency_ns.{part}");
        let limits = [
            (criterion(&name, Comparator::Less, 50e6), true),
            (criterion(&name, Comparator::Less, 1.0), false),
        ];
        for (limit, met) in &limits {
            for flow in [None, Some("meters".to_owned())] {
                let mut limit = limit.clone();
                limit.filter.flow = flow;
                let said = |count| evaluate(&[of_messages(count)], &limit);
                assert_eq!(said(needed).met, Some(*met), "{limit:?}");
                // Those that came are slow enough to tell a failure all the same; of a median both bounds are missing.
                let few = said(needed - 1);
                let fails = (!met && part != "p50").then_some(false);
                assert_eq!(few.met, fails, "{limit:?}");
                let why = format!("{} messages are too few, it takes {needed}", needed - 1);
                assert!(
                    fails.is_some() || few.figures.contains(&why),
                    "{}",
                    few.figures
                );
            }
        }
        assert_eq!(figure(&of_messages(needed - 1), None, &name), None);
        let window = format!("{name}@first");
        assert_eq!(figure(&of_messages(needed - 1), None, &window), None);
        assert!(figure(&of_messages(needed), None, &window).is_some());
    }
    // No other verdict shows it either.
    let mut client = of_messages(3);
    client.verdict.status = Status::ClientBound;
    let limit = criterion("latency_ns.p99_99", Comparator::Less, 50e6);
    let said = evaluate(&[client], &limit);
    assert!(
        said.figures
            .contains("3 messages are too few, it takes 29956, client-bound")
    );
    // What is no percentile is a fact of the messages that came.
    for name in ["latency_ns.max", "latency_ns.mean", "latency_ns.min"] {
        let below = criterion(name, Comparator::Less, 50e6);
        assert_eq!(
            evaluate(&[of_messages(1)], &below).met,
            Some(true),
            "{name}"
        );
    }
}

/// A trial that began and is broken for a reason.
fn broken(change: impl Fn(&mut Trial)) -> Trial {
    let mut broken = trial("a", Status::Broken, 10, 0);
    change(&mut broken);
    broken.verdict = crate::verdict::judge(&broken);
    assert_eq!(broken.verdict.status, Status::Broken);
    broken
}

#[test]
fn what_was_not_measured_is_not_failed() {
    let not_run = |why: &str| {
        broken(|t| {
            t.circumstances.not_run = Some(why.into());
            (t.duration_s, t.messages.offered, t.messages.published) = (0.0, 0, 0);
            (t.messages.expected, t.messages.delivered) = (0, 0);
            t.connections.made = 1;
        })
    };
    let counts = CountCheck {
        counts: vec![("pubgauge".into(), 100), ("the broker".into(), 90)],
        ..CountCheck::default()
    };
    let undecided = [
        not_run("it was never ready to be measured: connection refused"),
        not_run("it was ended early: a worker hung"),
        broken(|t| t.checks = vec![counts.clone()]),
        broken(|t| t.odd.foreign = 1),
    ];
    let failed = [
        broken(|t| t.circumstances.system_died = vec!["mosquitto ended".into()]),
        broken(|t| t.connections.lost = 1),
        broken(|t| {
            t.connections.lost = 2;
            t.circumstances.not_run = Some("it was ended early: all connections were lost".into());
        }),
        broken(|t| t.odd.corrupt = 1),
        broken(|t| (t.shortfall.lost, t.messages.delivered) = (t.messages.expected, 0)),
        broken(|t| {
            (
                t.messages.published,
                t.messages.not_sent,
                t.messages.expected,
                t.messages.delivered,
            ) = (0, t.messages.offered, 0, 0)
        }),
    ];
    let asked = [
        criterion("latency_ns.p99", Comparator::Less, 1e9),
        criterion("lost", Comparator::Equal, 0.0),
        criterion("delivered_msgs_per_s", Comparator::AtLeast, 0.0),
    ];
    for asked in &asked {
        let met = |trial: &Trial| evaluate(std::slice::from_ref(trial), asked).met;
        for trial in &undecided {
            assert_eq!(met(trial), None, "{asked:?}: {:?}", trial.verdict.reasons);
        }
        for trial in &failed {
            let reasons = &trial.verdict.reasons;
            assert_eq!(met(trial), Some(false), "{asked:?}: {reasons:?}");
        }
    }
}

/// The worse a system does, the less it meets: overload makes no criterion easier to meet.
#[test]
fn a_system_at_its_end_fails_what_is_demanded_of_it() {
    use Comparator::*;
    for status in [Status::Overloaded, Status::Lossy] {
        assert_eq!(
            met(status, "latency_ns.p99", Less, 1e9),
            Some(false),
            "{status:?}"
        );
        assert_eq!(
            met(status, "delivered_msgs_per_s", AtLeast, 0.0),
            Some(false)
        );
        assert_eq!(met(status, "lost", Equal, 0.0), Some(false));
        assert_eq!(met(status, "system_rss_bytes", Less, 1e12), None);
    }
    // What was counted is compared where the trial ran.
    assert_eq!(met(Status::Lossy, "lost_share", AtMost, 0.05), Some(true));
    let died = broken(|t| t.circumstances.system_died = vec!["it ended".into()]);
    let all = evaluate(&[died], &criterion("lost_share", AtMost, 0.05));
    assert_eq!(all.met, Some(false));
}

#[test]
fn a_client_at_its_end_leaves_it_undecided() {
    use Comparator::*;
    for status in [Status::ClientBound, Status::Unsteady] {
        assert_eq!(met(status, "latency_ns.p99", Less, 1e9), None, "{status:?}");
        assert_eq!(met(status, "delivered_msgs_per_s", AtLeast, 1e3), None);
    }
    // A lower bound that was reached although the client was the limit.
    let mut fast = trial("a", Status::ClientBound, 10, 0);
    fast.messages.delivered_msgs_per_s = 2.36e6;
    let at_least = criterion("delivered_msgs_per_s", AtLeast, 1e6);
    let said = evaluate(&[fast.clone()], &at_least);
    assert_eq!(said.met, Some(true));
    assert_eq!(said.figures, "a 1, fleet, repeat 1: 2.36 M/s or more");
    // One undecided trial among others leaves all undecided; one that fails decides.
    let mut valid = trial("b", Status::Valid, 10, 0);
    valid.messages.delivered_msgs_per_s = 2e6;
    let slow = trial("c", Status::ClientBound, 10, 0);
    assert_eq!(
        evaluate(&[valid.clone(), slow.clone()], &at_least).met,
        None
    );
    let overloaded = trial("d", Status::Overloaded, 10, 0);
    assert_eq!(
        evaluate(&[valid, slow, overloaded], &at_least).met,
        Some(false)
    );
}

#[test]
fn figures_by_name() {
    let mut t = trial("a", Status::Valid, 7, 0);
    t.messages.send_lag_ns = Distribution::default();
    assert_eq!(figure(&t, None, "latency_ns.p99"), Some(7.0));
    assert_eq!(figure(&t, None, "latency.p99"), Some(7.0));
    assert_eq!(figure(&t, Some("meters"), "latency.p99"), Some(14.0));
    assert_eq!(figure(&t, Some("nobody"), "latency.p99"), None);
    assert_eq!(figure(&t, None, "system-cpu-per-message"), Some(500.0));
    assert_eq!(
        figure(&t, None, "send-lag.p99"),
        None,
        "nothing was recorded"
    );
    for none in ["system.name", "latency", "send_lag_ns.count"] {
        assert_eq!(figure(&t, None, none), None, "{none}");
    }
}

/// Clocks that are known to 200 us: what is not quoted for that is below 2.2 ms.
#[test]
fn a_time_that_clocks_hide_is_below_what_they_can_hide() {
    let mut valid = trial("a", Status::Valid, 150_000, 0);
    valid.one_way_within(Some(200_000));
    assert_eq!(valid.messages.latency_ns.p99, None);
    let says = |trial: &Trial, comparison, limit: f64| {
        let bearing = bearing(trial, &criterion("latency.p99", comparison, limit));
        (bearing.met, bearing.figure(|value| format!("{value}")))
    };
    let (met, words) = says(&valid, Comparator::AtMost, 100e6);
    assert_eq!((met, &*words), (Some(true), "below 2200000"));
    assert_eq!(says(&valid, Comparator::AtMost, 2.2e6).0, Some(true));
    // It may be less or more than these.
    for (comparison, limit) in [
        (Comparator::AtMost, 2.1e6),
        (Comparator::Less, 2.2e6),
        (Comparator::AtLeast, 1e6),
        (Comparator::Equal, 2.2e6),
    ] {
        let (met, words) = says(&valid, comparison, limit);
        assert_eq!(met, None, "{comparison} {limit}");
        assert!(words.contains("clocks of the hosts"), "{words}");
    }
    // What did not come is larger than all; too few messages tell nothing; nothing is known of the clocks.
    let mut lost = valid.clone();
    lost.messages.latency_ns.censored = 1;
    let mut few = valid.clone();
    few.messages.latency_ns.count = 10;
    let mut unknown = valid.clone();
    unknown.one_way_within(None);
    for trial in [lost, few, unknown] {
        assert_eq!(says(&trial, Comparator::AtMost, 100e6).0, None);
    }
}

#[test]
fn the_default_is_on_top_of_the_path() {
    let over = |path_ns, p99_ms: u64| Trial {
        network: Some(NetworkTraffic {
            path_ns,
            ..NetworkTraffic::default()
        }),
        ..trial("a", Status::Valid, p99_ms * 1_000_000, 0)
    };
    let path_ns = Some(100_000_000);
    let met = |trial: &Trial, spec: &CriterionSpec| bearing(trial, spec).met;
    let default = by_default(0, path_ns);
    assert_eq!(met(&over(path_ns, 101), &default), Some(true));
    assert_eq!(met(&over(path_ns, 201), &default), Some(false));
    assert_eq!(met(&over(None, 101), &by_default(0, None)), Some(false));
    assert_eq!(
        [
            &default,
            &by_default(100_000_000, path_ns),
            &by_default(0, None)
        ]
        .map(|spec| &*spec.text),
        [
            "latency p99 <= 200 ms (100 ms + 100 ms of the path)",
            "latency from send p99 <= 200 ms (100 ms + 100 ms of the path)",
            "latency p99 <= 100 ms",
        ]
    );

    // What a study asks for contains the path, whatever that is.
    let asked = criterion("latency_ns.p99", Comparator::AtMost, 100e6);
    assert_eq!(met(&over(path_ns, 101), &asked), Some(false));

    // The default over one path says nothing of another.
    let no_path = by_default(0, Some(0));
    for (spec, passing) in [
        (&default, [true, false]),
        (&no_path, [false, true]),
        (&asked, [true, true]),
    ] {
        let passes = [path_ns, None].map(|path_ns| spec.filter.lets_through(&over(path_ns, 1)));
        assert_eq!(passes, passing, "{}", spec.text);
        assert!(spec.filter.lets_through(&trial("a", Status::Broken, 1, 0)));
    }
}

#[test]
fn criteria_bear_on_windows() {
    let window = |name: &str, p99, lost: Option<u64>| WindowFigures {
        messages: Messages {
            expected: 100,
            delivered: 100 - lost.unwrap_or(0),
            latency_ns: Distribution {
                count: 1000,
                p99: Some(p99),
                ..Distribution::default()
            },
            ..Messages::default()
        },
        name: name.into(),

        lost,

        ..WindowFigures::default()
    };
    let mut trial = Trial {
        windows: vec![window("before", 5, Some(0)), window("during", 70, Some(4))],
        ..Trial::default()
    };
    trial.verdict.status = Status::Valid;
    let criterion = |name: &str, value| CriterionSpec {
        text: name.into(),
        figure: name.into(),
        comparison: Comparator::AtMost,
        value,
        filter: TrialFilter::default(),
    };
    let met = |trial: &Trial, name: &str, value| {
        evaluate(std::slice::from_ref(trial), &criterion(name, value)).met
    };
    assert_eq!(met(&trial, "latency_ns.p99@during", 69.0), Some(false));
    assert_eq!(met(&trial, "latency_ns.p99@before", 69.0), Some(true));
    // A count is compared whatever the verdict.
    let mut lossy = trial.clone();
    lossy.verdict.status = Status::Lossy;
    assert_eq!(met(&lossy, "lost@during", 4.0), Some(true));
    assert_eq!(met(&lossy, "lost@during", 3.0), Some(false));
    let mut untold = trial.clone();
    untold.windows[1] = window("during", 70, None);
    assert_eq!(met(&untold, "lost@during", 4.0), None);
}
