use super::*;
use crate::model::{Distribution, FlowFigures, System, Verdict, WorkloadInfo};

fn trial(system: &str, status: Status, p99: u64, lost: u64) -> Trial {
    let latency_ns = Distribution {
        count: 10,
        p99: Some(p99),
        ..Default::default()
    };
    Trial {
        system: System {
            name: system.into(),
            version: "1".into(),
        },
        workload: WorkloadInfo {
            name: "fleet".into(),
            ..Default::default()
        },
        verdict: Verdict {
            status,
            reasons: Vec::new(),
            needs_s: None,
        },
        repeat: 1,
        latency_ns,
        lost,
        expected: 100,
        delivered: 100 - lost,
        system_cpu_s: Some(0.5),
        flows: vec![FlowFigures {
            name: "meters".into(),
            latency_ns: Distribution {
                count: 5,
                p99: Some(2 * p99),
                ..Default::default()
            },
            ..Default::default()
        }],
        ..Default::default()
    }
}

fn criterion(figure: &str, comparison: Comparison, value: f64) -> CriterionSpec {
    CriterionSpec {
        text: format!("{figure} {comparison} {value}"),
        figure: figure.into(),
        comparison,
        value,
        filter: Filter::default(),
    }
}

#[test]
fn met_unmet_and_undecided() {
    let trials = [
        trial("a", Status::Valid, 1_000, 0),
        trial("b", Status::Valid, 5_000, 0),
    ];
    let p99 = |value| criterion("latency_ns.p99", Comparison::AtMost, value);
    assert_eq!(evaluate(&trials, &p99(5_000.0)).met, Some(true));
    let unmet = evaluate(&trials, &p99(4_000.0));
    assert_eq!(unmet.met, Some(false));
    assert_eq!(unmet.figures, "b 1, fleet, repeat 1: 5 µs");
    let mut only_a = p99(4_000.0);
    only_a.filter.systems = vec!["a".into()];
    assert_eq!(evaluate(&trials, &only_a).met, Some(true));
    only_a.filter.flow = Some("meters".into());
    assert!(evaluate(&trials, &only_a).figures.contains(": 2 µs"));
    only_a.filter.flow = Some("cars".into());
    assert_eq!(evaluate(&trials, &only_a).met, None);
    let unknown = evaluate(&trials, &criterion("latency.p99", Comparison::Less, 1.0));
    assert!(unknown.met.is_none() && unknown.figures.contains("no figure named"));
}

#[test]
fn trials_are_named_by_what_was_varied() {
    let mut one = trial("a", Status::Valid, 5_000, 0);
    one.settings_name = "safe".into();
    one.axes = vec![crate::model::Axis {
        name: "workload.fleet.flow.payload".into(),
        value: "1KiB".into(),
    }];
    let said = evaluate(&[one], &criterion("latency_ns.p99", Comparison::Less, 1e3));
    assert_eq!(
        said.figures,
        "a 1, fleet, safe, payload = 1KiB, repeat 1: 5 µs"
    );
}

fn met(status: Status, figure: &str, comparison: Comparison, value: f64) -> Option<bool> {
    evaluate(
        &[trial("a", status, 10, 5)],
        &criterion(figure, comparison, value),
    )
    .met
}

/// The worse a system does, the less it meets: overload makes no criterion easier to meet.
#[test]
fn a_system_at_its_end_fails_what_is_demanded_of_it() {
    use Comparison::*;
    for status in [Status::Overloaded, Status::Lossy, Status::Broken] {
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
    assert_eq!(met(Status::Broken, "lost_share", AtMost, 0.05), Some(false));
}

#[test]
fn a_client_at_its_end_leaves_it_undecided() {
    use Comparison::*;
    for status in [Status::ClientBound, Status::Unsteady] {
        assert_eq!(met(status, "latency_ns.p99", Less, 1e9), None, "{status:?}");
        assert_eq!(met(status, "delivered_msgs_per_s", AtLeast, 1.0), None);
    }
    // A lower bound that was reached although the client was the limit.
    let mut fast = trial("a", Status::ClientBound, 10, 0);
    fast.delivered_msgs_per_s = 2.36e6;
    let at_least = criterion("delivered_msgs_per_s", AtLeast, 1e6);
    let said = evaluate(&[fast.clone()], &at_least);
    assert_eq!(said.met, Some(true));
    assert_eq!(said.figures, "a 1, fleet, repeat 1: 2.36 M/s or more");
    // One undecided trial among others leaves all undecided; one that fails decides.
    let mut valid = trial("b", Status::Valid, 10, 0);
    valid.delivered_msgs_per_s = 2e6;
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
    let t = trial("a", Status::Valid, 7, 0);
    assert_eq!(figure(&t, None, "latency_ns.p99"), Some(7.0));
    assert_eq!(figure(&t, None, "system_cpu_us_per_msg"), Some(5_000.0));
    assert_eq!(
        figure(&t, None, "send_lag_ns.p99"),
        None,
        "nothing was recorded"
    );
    assert_eq!(figure(&t, None, "send_lag_ns.count"), Some(0.0));
    for name in DERIVED
        .iter()
        .chain(&counted::FIGURES)
        .chain(&COUNTS)
        .chain(&["round_trip_ns.p50", "odd.corrupt"])
    {
        assert!(is_figure(name), "{name}");
    }
    assert!(!is_figure("system.name") && !is_figure("latency"));
}
