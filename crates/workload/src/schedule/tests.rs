use super::*;
use crate::SECOND;
use crate::tests_support::flow;
use proptest::prelude::*;

fn sending(publishers: u32, arrivals: Arrivals) -> Flow {
    let topics = (0..publishers)
        .map(|p| (0..=p % 3).map(|t| format!("{p}/{t}")).collect())
        .collect();
    Flow {
        arrivals,
        size: Sizes::Uniform { min: 16, max: 4096 },
        ..flow(topics, vec![])
    }
}

fn until(schedule: Schedule, end: Nanos) -> Vec<Due> {
    schedule.take_while(|due| due.at < end).collect()
}

#[test]
fn periodic_is_exact_for_hours() {
    let flow = sending(
        7,
        Arrivals::Periodic {
            per_s: 1000.0 / 3.0,
        },
    );
    let hour = 3600 * SECOND;
    let dues = until(Schedule::new(&flow, 0..7, 1), hour);
    assert_eq!(dues.len(), 1_200_000);
    for (k, due) in dues.iter().enumerate() {
        assert_eq!(due.at, k as u64 * 3_000_000, "message {k}");
        assert_eq!(due.publisher, k as u32 % 7);
        assert_eq!(due.topic, (k as u32 / 7) % (due.publisher % 3 + 1));
    }
}

#[test]
fn flat_out_goes_on_for_ever() {
    let flow = sending(3, Arrivals::FlatOut);
    let dues: Vec<Due> = Schedule::new(&flow, 1..3, 1).take(5).collect();
    let publishers: Vec<u32> = dues.iter().map(|d| d.publisher).collect();
    assert_eq!(publishers, [1, 2, 1, 2, 1]);
    assert!(dues.iter().all(|d| d.at == 0));
    assert!(flow.arrivals.is_flat_out());
    assert_eq!(flow.arrivals.flat_out_at(5), Gate::Open(Nanos::MAX));
}

#[test]
fn poisson_has_its_rate_and_its_scatter() {
    let flow = sending(10, Arrivals::Poisson { per_s: 500.0 });
    let seconds = 200;
    let mut per_second = vec![0f64; seconds];
    for due in until(Schedule::new(&flow, 0..10, 3), seconds as u64 * SECOND) {
        per_second[(due.at / SECOND) as usize] += 1.0;
    }
    let mean = per_second.iter().sum::<f64>() / seconds as f64;
    let variance = per_second.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / seconds as f64;
    // Deviation of the mean: 1.6; of the variance: a tenth of itself.
    assert!((mean - 500.0).abs() < 8.0, "{mean}");
    assert!((0.6..1.5).contains(&(variance / mean)), "{variance}");
}

#[test]
fn poisson_shards_keep_the_rate() {
    let flow = sending(10, Arrivals::Poisson { per_s: 500.0 });
    let counts: Vec<usize> = [0..3, 3..10]
        .map(|shard| until(Schedule::new(&flow, shard, 3), 200 * SECOND).len())
        .into();
    // 30,000 and 70,000 expected, deviations 173 and 265.
    assert!(
        counts[0].abs_diff(30_000) < 1000 && counts[1].abs_diff(70_000) < 1600,
        "{counts:?}"
    );
}

#[test]
fn bursts_come_and_go() {
    let arrivals = Arrivals::OnOff {
        per_s: Some(100.0),
        on: SECOND / 10,
        off: SECOND,
    };
    assert!((arrivals.mean_per_s().expect("known") - 100.0 / 11.0).abs() < 1e-9);
    let dues = until(Schedule::new(&sending(3, arrivals), 0..3, 1), 11 * SECOND);
    assert_eq!(dues.len(), 100);
    assert!(dues.iter().all(|d| d.at % (11 * SECOND / 10) < SECOND / 10));
    assert_eq!(dues[10].at, 11 * SECOND / 10);
}

#[test]
fn flat_out_bursts_have_a_gate() {
    let bursts = Arrivals::OnOff {
        per_s: None,
        on: 10,
        off: 90,
    };
    assert!(bursts.is_flat_out());
    assert_eq!(bursts.flat_out_at(0), Gate::Open(10));
    assert_eq!(bursts.flat_out_at(209), Gate::Open(210));
    assert_eq!(bursts.flat_out_at(210), Gate::Shut(300));
}

#[test]
fn active_for_ends_the_schedule() {
    let mut flow = sending(2, Arrivals::Periodic { per_s: 10.0 });
    flow.active_for = Some(SECOND);
    flow.start_offset = Some(5 * SECOND);
    let dues: Vec<Due> = Schedule::new(&flow, 0..2, 1).collect();
    assert_eq!(dues.len(), 10);
    assert_eq!(dues[0].at, 0);
}

#[test]
fn a_rate_of_zero_sends_nothing() {
    for arrivals in [
        Arrivals::Periodic { per_s: 0.0 },
        Arrivals::Poisson { per_s: 0.0 },
    ] {
        assert_eq!(Schedule::new(&sending(2, arrivals), 0..2, 1).next(), None);
    }
    let idle = sending(0, Arrivals::FlatOut);
    assert_eq!(Schedule::new(&idle, 0..0, 1).next(), None);
}

#[test]
fn unsound_flows_are_refused() {
    let mut flow = sending(2, Arrivals::FlatOut);
    assert!(Schedule::try_new(&flow, 0..3, 1).is_err());
    flow.publishers[1].topics.clear();
    assert!(matches!(
        Schedule::try_new(&flow, 0..2, 1),
        Err(ScheduleError::NoTopics(1))
    ));
    flow.publishers.pop();
    flow.size = Sizes::Recorded;
    assert!(matches!(
        Schedule::try_new(&flow, 0..1, 1),
        Err(ScheduleError::RecordedSizesWithoutTrace)
    ));
}

fn with_due_times() -> impl Strategy<Value = Arrivals> {
    prop_oneof![
        (0.01f64..1e6).prop_map(|per_s| Arrivals::Periodic { per_s }),
        (0.5f64..1e6, 1u64..SECOND, 0u64..SECOND).prop_map(|(per_s, on, off)| Arrivals::OnOff {
            per_s: Some(per_s),
            on,
            off
        }),
        (1u32..100, 1u64..SECOND).prop_map(|(messages, every)| Arrivals::Bursts {
            messages,
            every: Some(every)
        }),
        curve().prop_map(|curve| varying(curve, false)),
    ]
}

fn varying(curve: RateCurve, random: bool) -> Arrivals {
    let curve = Box::new(curve);
    Arrivals::Varying { curve, random }
}

/// Rates that go on.
fn curve() -> impl Strategy<Value = RateCurve> {
    prop_oneof![
        (0.0f64..1e3, 1.0f64..1e5, 1u64..100 * SECOND)
            .prop_map(|(from, to, lasts)| RateCurve::ramp(from, to, lasts)),
        (0.0f64..1e3, 1e3f64..1e5, SECOND..100 * SECOND)
            .prop_map(|(low, high, day)| RateCurve::daily((low, high), day, day / 3)),
    ]
}

/// Before a curve its first rate holds; the curve itself does not depend on how long that is, or on when that is known.
#[test]
fn a_curve_begins_when_it_is_told_to() {
    for random in [false, true] {
        let curve = RateCurve::ramp(200.0, 1_000.0, 2 * SECOND);
        let flow = sending(3, varying(curve, random));
        let alone = until(Schedule::new(&flow, 0..3, 5), 3 * SECOND);
        for lead in [1, SECOND / 2 + 1, 2 * SECOND] {
            let mut schedule = Schedule::new(&flow, 0..3, 5);
            schedule.begin_curve_at(4 * SECOND);
            // The engine has looked ahead, and the warm-up ends earlier.
            let mut dues: Vec<Due> = schedule.by_ref().take(1).collect();
            schedule.begin_curve_at(lead);
            dues.retain(|due| due.at < lead);
            dues.extend(until(schedule, lead + 3 * SECOND));
            let begun = dues.partition_point(|due| due.at < lead);
            if !random {
                let first = (lead as f64 / SECOND as f64 * 200.0).ceil() as usize;
                assert_eq!(begun, first, "{lead}");
            }
            let moved = |due: &Due| Due {
                at: due.at + lead,
                ..due.clone()
            };
            let expected: Vec<Due> = alone.iter().map(moved).collect();
            assert_eq!(dues[begun..], expected, "{lead}");
        }
    }
}

/// A process at random whose rate is a ramp from 0 to 1,000/s in 10 s: 5,000 messages, a quarter of them in the first half.
#[test]
fn messages_at_random_follow_the_curve() {
    let curve = RateCurve::ramp(0.0, 1_000.0, 10 * SECOND);
    let flow = sending(10, varying(curve, true));
    let counts: Vec<Vec<usize>> = [5, 10]
        .map(|end| {
            let parts = [0..3_u32, 3..10];
            let all = parts.map(|shard| until(Schedule::new(&flow, shard, 3), end * SECOND).len());
            all.into()
        })
        .into();
    let expected = [[375.0, 875.0], [1_500.0, 3_500.0]];
    for (counts, expected) in counts.iter().zip(expected) {
        for (count, expected) in counts.iter().zip(expected) {
            let deviation = f64::sqrt(expected);
            assert!(
                (*count as f64 - expected).abs() < 4.0 * deviation,
                "{count} {expected}"
            );
        }
    }
}

#[test]
fn messages_of_a_burst_are_due_at_its_beginning() {
    let arrivals = Arrivals::Bursts {
        messages: 3,
        every: Some(SECOND),
    };
    assert_eq!(arrivals.burst_period(), Some(SECOND));
    assert!(!arrivals.is_flat_out() && !arrivals.bursts_wait());
    let dues = until(Schedule::new(&sending(2, arrivals), 0..2, 1), 3 * SECOND);
    let at: Vec<Nanos> = dues.iter().map(|d| d.at / SECOND).collect();
    assert_eq!(at, [[0; 6], [1; 6], [2; 6]].concat());
    let publishers: Vec<u32> = dues.iter().map(|d| d.publisher).collect();
    assert_eq!(publishers, [0, 1].repeat(9));
    let topics: Vec<u32> = dues.iter().map(|d| d.topic).collect();
    assert_eq!(topics, [0, 0, 0, 1].repeat(5)[..18], "topics in turn");
}

#[test]
fn a_burst_that_waits_begins_later_and_misses_nothing() {
    for messages in [1, 2] {
        let arrivals = Arrivals::Bursts {
            messages,
            every: None,
        };
        assert!(arrivals.bursts_wait());
        // Two topics: their turn shows that no message is skipped.
        let flow = flow(vec![vec!["a".into(), "b".into()]], vec![]);
        let flow = Flow { arrivals, ..flow };
        let mut schedule = Schedule::new(&flow, 0..1, 1);
        let mut dues: Vec<Due> = schedule.by_ref().take(messages as usize).collect();
        for slot in [7, 9] {
            // The engine has looked ahead by one.
            let ahead = schedule.next().expect("the next burst");
            assert!(ahead.at < slot * crate::BURST_SLOT);
            schedule.next_burst_at(slot * crate::BURST_SLOT - 1);
            dues.extend(schedule.by_ref().take(messages as usize));
        }
        let each = messages as usize;
        let at: Vec<Nanos> = dues.iter().map(|d| d.at / crate::BURST_SLOT).collect();
        assert_eq!(at, [vec![0; each], vec![7; each], vec![9; each]].concat());
        let topics: Vec<u32> = dues.iter().map(|d| d.topic).collect();
        assert_eq!(topics, [0, 1].repeat(3)[..3 * each]);
    }
}

proptest! {
    /// Any split of the publishers yields the schedule of the whole, sizes included.
    #[test]
    fn shards_make_the_whole(
        arrivals in with_due_times(),
        publishers in 1u32..20,
        parts in prop::collection::vec(0usize..3, 20),
        seed in any::<u64>(),
    ) {
        let flow = sending(publishers, arrivals);
        let mut shards = vec![Vec::new(); 3];
        (0..publishers).for_each(|p| shards[parts[p as usize]].push(p));
        let whole: Vec<Due> = Schedule::new(&flow, 0..publishers, seed).take(200).collect();
        let end = whole.last().map_or(0, |due| due.at);
        let mut parts: Vec<Due> = shards
            .into_iter()
            .flat_map(|shard| Schedule::new(&flow, shard, seed).take(200))
            .filter(|due| due.at < end)
            .collect();
        parts.sort_by_key(|due| (due.at, due.publisher, due.topic));
        let mut whole: Vec<Due> = whole.into_iter().filter(|due| due.at < end).collect();
        whole.sort_by_key(|due| (due.at, due.publisher, due.topic));
        prop_assert_eq!(parts, whole);
    }

    /// Time never runs backwards, and equal seeds give equal schedules.
    #[test]
    fn ordered_and_reproducible(
        arrivals in prop_oneof![with_due_times(), (0.5f64..1e6).prop_map(|per_s| Arrivals::Poisson { per_s })],
        publishers in 1u32..20,
        seed in any::<u64>(),
    ) {
        let flow = sending(publishers, arrivals);
        let take = |seed| Schedule::new(&flow, 0..publishers, seed).take(300).collect::<Vec<_>>();
        let dues = take(seed);
        prop_assert!(dues.is_sorted_by_key(|due| due.at));
        prop_assert_eq!(dues.len(), 300);
        prop_assert!(dues.iter().all(|due| (16..=4096).contains(&due.size)));
        prop_assert_eq!(&dues, &take(seed));
        prop_assert_ne!(dues, take(seed.wrapping_add(1)));
    }
}

/// Whoever sends a publisher's messages, and however many do, each has the topic that it has with one worker.
#[test]
fn popular_topics_are_those_of_the_whole_flow() {
    let topics = (0..4)
        .map(|p| (0..10).map(|t| format!("{p}/{t}")).collect())
        .collect();
    let flow = Flow {
        arrivals: Arrivals::Periodic { per_s: 1_000.0 },
        topic_zipf: Some(1.0),
        ..flow(topics, vec![])
    };
    let whole = until(Schedule::new(&flow, 0..4, 9), 20 * SECOND);
    let mut parts = until(Schedule::new(&flow, 0..1, 9), 20 * SECOND);
    parts.extend(until(Schedule::new(&flow, 1..4, 9), 20 * SECOND));
    parts.sort_by_key(|due| (due.at, due.publisher));
    assert_eq!(whole, parts);
    // 1 of 1 + 1/2 + ... + 1/10 = 2.929: 34 in a hundred.
    let first = whole.iter().filter(|due| due.topic == 0).count();
    assert!((6_500..=7_160).contains(&first), "{first}");
    let refused = |change: fn(&mut Flow)| {
        let mut flow = flow.clone();
        change(&mut flow);
        Schedule::try_new(&flow, 0..4, 1).err().unwrap().to_string()
    };
    assert!(refused(|flow| flow.topic_zipf = Some(-0.1)).contains("-0.1"));
    assert!(refused(|flow| flow.topic_zipf = Some(f64::NAN)).contains("NaN"));
}
