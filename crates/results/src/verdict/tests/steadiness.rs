//! Rates and latencies that change during a trial.

use pubgauge_figures::FlowFigures;
use pubgauge_figures::host::OneWay;
use pubgauge_figures::model::Excess;

use super::*;

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

/// Flat out, a tenth less from one record on is the rate of two systems; a rate that varies is one.
#[test]
fn a_capacity_that_falls_is_two_rates() {
    let mut t = flat_out();
    t.duration_s = 10.0;
    t.system_cpu_s = Some(9.9);
    let falls = [1000u64, 1000, 1000, 1000, 950, 900, 900, 900, 900, 900].map(|n| n * 100);
    t.series = series(1.0, &falls, &falls, &[50; 10]);
    expect(
        &t,
        &here(),
        Status::Unsteady,
        "100000 msgs/s were delivered until about 5.0 s, and 90000",
    );
    let varies = [1000u64, 1100, 920, 1050, 880, 990, 1120, 950, 900, 1040].map(|n| n * 100);
    t.series = series(1.0, &varies, &varies, &[50; 10]);
    expect(&t, &here(), Status::Valid, "");
}

/// Bursts every 2 s whose latency grows fortyfold are no steadier than even arrivals.
#[test]
fn latency_that_grows_from_burst_to_burst_is_unsteady() {
    let mut t = calm();
    t.flows = vec![FlowFigures {
        cycle_s: Some(2.0),
        ..FlowFigures::default()
    }];
    let bursts = Circumstances {
        rate_varies_by_design: true,
        ..here()
    };
    // Each burst has a quiet and a busy second.
    let busy: Vec<u64> = (0..10)
        .map(|i| if i % 2 == 0 { 19_000 } else { 1_000 })
        .collect();
    t.series = series(1.0, &busy, &busy, &[3; 10]);
    for (i, second) in t.series.iter_mut().enumerate() {
        second.traffic.latency_p50_ns = if i % 2 == 0 { 2_000_000 } else { 300_000 };
    }
    expect(&t, &bursts, Status::Valid, "");
    for (i, second) in t.series.iter_mut().enumerate() {
        second.traffic.latency_p50_ns *= 1 + 4 * i as u64;
    }
    expect(
        &t,
        &bursts,
        Status::Unsteady,
        "over whole cycles of the arrivals",
    );
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
fn no_rate_is_below_none() {
    let mut t = calm();
    for (i, second) in t.series.iter_mut().enumerate() {
        (second.traffic.due, second.traffic.delivered) =
            if i < 5 { (10_500, 0) } else { (9_500, 20_000) };
    }
    let why = crate::verdict::series::rate_unsteady(&t)
        .expect("it is not steady")
        .text;
    assert!(
        why.starts_with("the first half delivered 0 msgs/s"),
        "{why}"
    );
}

#[test]
fn few_messages_vary_by_chance() {
    let mut t = flat_out();
    t.duration_s = 10.0;
    (
        t.messages.offered,
        t.messages.published,
        t.messages.delivered,
        t.messages.expected,
    ) = (41, 41, 41, 41);
    let few = [4u64, 2, 6, 5, 3, 4, 7, 3, 2, 5];
    t.series = series(1.0, &few, &few, &[0; 10]);
    t.system_cpu_s = Some(9.9);
    expect(&t, &here(), Status::Valid, "");
}

#[test]
fn latency_that_doubles_is_unsteady() {
    let mut t = calm();
    for (i, second) in t.series.iter_mut().enumerate() {
        second.traffic.latency_p50_ns = if i < 5 { 200_000 } else { 1_100_000 };
    }
    expect(&t, &here(), Status::Unsteady, "median latency went from");
}

/// A trial whose median latency was `first` in its first half, and `last` in the other, us.
fn changing(first: u64, last: u64) -> Trial {
    let mut t = calm();
    for (i, second) in t.series.iter_mut().enumerate() {
        second.traffic.latency_p50_ns = 1_000 * if i < 5 { first } else { last };
    }
    t
}

/// A system that warms up is slower at first: what it shows over all bounds where it settles.
#[test]
fn latency_that_falls_is_a_bound() {
    let falls = changing(6_000, 1_700);
    expect(
        &falls,
        &here(),
        Status::Unsteady,
        "median latency fell from 6.000 ms",
    );
    let excess = |t: &Trial| judge(t, &here()).excess();
    assert_eq!(excess(&falls), Some(Excess::WarmingUp));
    assert_eq!(excess(&changing(1_700, 6_000)), None, "it may go on rising");
    assert_eq!(excess(&calm()), None);
    let mut loses = falls.clone();
    (loses.shortfall.lost, loses.messages.delivered) = (1, loses.messages.delivered - 1);
    assert_eq!(excess(&loses), None);
    let mut late = falls;
    late.worker_load.subscribers_running = 0.97;
    assert_eq!(excess(&late), Some(Excess::Lateness));
}

/// Of two flows one settles, and the other gets slower: what both show together falls, and bounds nothing.
#[test]
fn a_fall_of_all_flows_hides_no_rise_of_one() {
    let flow = |name: &str, (first, last)| {
        let whole = changing(first, last);
        FlowFigures {
            name: name.into(),
            series: whole.series.iter().map(|second| second.traffic).collect(),
            messages: whole.messages,
            ..FlowFigures::default()
        }
    };
    let falls = flow("often", (6_000, 1_700));
    for (other, bounds) in [((1_000, 900), true), ((1_000, 80_000), false)] {
        let mut both = changing(6_000, 1_700);
        both.flows = vec![falls.clone(), flow("seldom", other)];
        let verdict = judge(&both, &here());
        assert_eq!(verdict.status, Status::Unsteady, "{verdict:#?}");
        assert_eq!(
            verdict.excess().is_some(),
            bounds,
            "{other:?}: {verdict:#?}"
        );
    }
}

/// Messages that are gathered for a millisecond leave up to that late, by an amount that shifts whenever a timer does.
#[test]
fn a_shift_within_the_span_of_gathering_is_none() {
    let by = |(first, last), pacing_within| {
        let mut circumstances = here();
        circumstances.client.pacing_within = pacing_within;
        judge(&changing(first, last), &circumstances).status
    };
    for shift in [(1_051, 424), (424, 1_051)] {
        assert_eq!(by(shift, 0), Status::Unsteady);
        assert_eq!(by(shift, MS), Status::Valid);
    }
    assert_eq!(by((424, 2_000), MS), Status::Unsteady);
}

/// Between hosts the clocks may wander within their bounds: that is no rise of latency.
#[test]
fn clocks_that_wander_are_no_growth() {
    let mut t = calm();
    for (i, second) in t.series.iter_mut().enumerate() {
        second.traffic.latency_p50_ns = 300_000 + 40_000 * i as u64;
    }
    expect(&t, &here(), Status::Overloaded, "latency");
    let mut between = |bound_ns| {
        t.one_way = Some(OneWay { bound_ns });
        judge(&t, &here()).status
    };
    assert_eq!(between(Some(200_000)), Status::Valid);
    assert_eq!(between(None), Status::Valid);
    assert_eq!(between(Some(10_000)), Status::Overloaded);
}

/// A system that stands still does so also where no median can be quoted.
#[test]
fn a_frozen_system_is_told_without_a_median() {
    let mut t = calm();
    t.longest_silence_ns = 1_200 * MS;
    expect(&t, &here(), Status::Unsteady, "stood still");
    t.messages.latency_ns.p50 = None;
    t.messages.latency_ns.known_mean = Some(300_000.0);
    expect(&t, &here(), Status::Unsteady, "stood still");
    t.messages.latency_ns.known_mean = None;
    t.one_way = Some(OneWay {
        bound_ns: Some(50_000),
    });
    expect(&t, &here(), Status::Unsteady, "stood still");
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
    t.messages.latency_ns.p50 = Some(1_500 * MS);
    expect(&t, &here(), Status::Valid, "");
}
