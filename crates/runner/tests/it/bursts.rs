//! Bursts of messages back to back over the simulated system, in simulated time. What it holds and how long
//! it takes is planted.

use std::sync::Arc;

use pubgauge_driver::{Clock, Mark, OnFull, Settings};
use pubgauge_engine::assignment::Workers;
use pubgauge_engine::conductor::TrialEnd;
use pubgauge_figures::bursts::BurstFigures;
use pubgauge_figures::model::Status;
use pubgauge_figures::search::{Bottleneck, LimitedBy, Search, StepOutcome};
use pubgauge_runner::simulated::{
    SimulatedClient, SimulatedTrial, search_along, simulate, simulate_on,
};
use pubgauge_search::{Axis, Question};
use pubgauge_setup::ClientSetup;
use pubgauge_simulator::{Behaviour, Bus};
use pubgauge_workload::{Arrivals, SECOND, Until, Workload};

const MS: u64 = 1_000_000;

fn bursts(publishers: u32, subscribers: u32, messages: u32, every: Option<u64>) -> Workload {
    let arrivals = Arrivals::Bursts { messages, every };
    let mut workload = Workload::fan(publishers, subscribers, arrivals);
    workload.phases.warm_up = Until::Time(SECOND);
    workload.phases.measure = Until::Time(5 * SECOND);
    workload.phases.drain_within = 2 * SECOND;
    workload
}

fn run(
    workload: Workload,
    behaviour: Behaviour,
    settings: Settings,
) -> (SimulatedTrial, BurstFigures) {
    let run = simulate(workload, behaviour, settings).expect("a sound workload");
    assert_eq!(run.record.outcome, TrialEnd::Completed);
    let figures = run.trial.flows[0].bursts.expect("bursts");
    (run, figures)
}

#[test]
fn a_burst_is_timed_from_its_beginning_to_its_last_delivery() {
    let behaviour = Behaviour {
        delay_median_ns: 3 * MS,
        publish_cost_ns: 10_000,
        ..Behaviour::default()
    };
    let workload = bursts(2, 3, 50, Some(SECOND / 10));
    let (run, figures) = run(workload, behaviour, Settings::default());
    assert_eq!((figures.sent, figures.whole, figures.in_time), (50, 50, 50));
    assert_eq!(figures.messages, 100);
    assert_eq!(run.trial.messages.published, 50 * 100);
    // 100 messages of 10 us each, one after the other; the last one takes 3 ms more.
    assert_eq!(figures.hand_over_ns, Some(MS));
    assert_eq!(figures.msgs_per_s, Some(100_000.0));
    let bytes = run.record.bursts[0][0].bytes;
    assert_eq!(figures.bytes_per_s, Some(bytes as f64 * 1_000.0));
    let arrival = figures.arrival_ns.expect("arrived");
    assert!((3_990_000..=4_010_000).contains(&arrival), "{arrival}");
    // All messages of a burst are due at its beginning: the last one is late by the others.
    let lag = run.trial.messages.send_lag_ns.max.expect("measured");
    assert!((980_000..=1_010_000).contains(&lag), "{lag}");
    assert_eq!(
        run.trial.verdict.status,
        Status::Valid,
        "{:?}",
        run.trial.verdict
    );
}

#[test]
fn what_a_full_queue_drops_is_missing_in_every_burst() {
    let queue = |queue| Behaviour {
        service_ns: 10_000,
        queue,
        ..Behaviour::default()
    };
    let dropping = Settings {
        on_full: Some(OnFull::Drop),
        ..Settings::default()
    };
    for (holds, whole) in [(199, 0), (200, 50), (201, 50)] {
        let workload = bursts(2, 1, 100, Some(SECOND / 10));
        let (run, figures) = run(workload, queue(holds), dropping.clone());
        assert_eq!((figures.sent, figures.whole), (50, whole), "{holds}");
        assert_eq!(
            run.trial.shortfall.lost,
            if whole > 0 { 0 } else { 50 },
            "one of each"
        );
    }
}

#[test]
fn a_burst_that_takes_longer_than_the_time_between_two_is_not_in_time() {
    let behaviour = |service_ns| Behaviour {
        service_ns,
        ..Behaviour::default()
    };
    // 90 and 110 messages of 1 ms each, every 100 ms.
    let workload = |messages| bursts(1, 1, messages, Some(SECOND / 10));
    let (_, figures) = run(workload(90), behaviour(MS), Settings::default());
    assert_eq!((figures.whole, figures.in_time), (50, 50));
    let (_, figures) = run(workload(110), behaviour(MS), Settings::default());
    assert_eq!((figures.sent, figures.whole, figures.in_time), (50, 50, 0));
}

#[test]
fn bursts_wait_for_one_another() {
    // A burst takes 100 messages x 1 ms, and 1 ms until the last of them is there.
    let behaviour = Behaviour {
        service_ns: MS,
        ..Behaviour::default()
    };
    let (run, figures) = run(bursts(2, 2, 50, None), behaviour, Settings::default());
    assert_eq!(figures.whole, figures.sent);
    assert_eq!(figures.every_ns, None);
    assert_eq!(
        run.trial.messages.offered,
        100 * figures.sent,
        "no part of one is due"
    );
    // With notice and rounding up to 10 ms each takes 120 to 130 ms.
    assert!((38..=42).contains(&figures.sent), "{}", figures.sent);
    let begun: Vec<usize> = (0..run.record.bursts[0].len())
        .filter(|n| run.record.bursts[0][*n].due > 0)
        .collect();
    assert!(
        begun.windows(2).all(|two| two[1] - two[0] >= 11),
        "{begun:?}"
    );
    assert_eq!(
        run.trial.verdict.status,
        Status::Valid,
        "{:?}",
        run.trial.verdict
    );
}

#[test]
fn a_burst_that_lost_something_is_given_up() {
    let behaviour = Behaviour {
        service_ns: 10_000,
        queue: 40,
        ..Behaviour::default()
    };
    let (run, figures) = run(bursts(1, 1, 50, None), behaviour, Settings::default());
    assert_eq!(figures.whole, 0);
    assert!(
        (2..=5).contains(&figures.sent),
        "one a second: {}",
        figures.sent
    );
    assert_eq!(run.trial.shortfall.lost, 10 * figures.sent);
}

#[test]
fn a_system_that_holds_publishers_back_is_handed_a_burst_slowly() {
    let behaviour = Behaviour {
        service_ns: MS,
        capacity: 10,
        ..Behaviour::default()
    };
    let (run, figures) = run(bursts(1, 1, 50, None), behaviour, Settings::default());
    assert!(figures.sent > 20 && figures.whole == figures.sent);
    let hand_over = figures.hand_over_ns.expect("told");
    assert!((30 * MS..50 * MS).contains(&hand_over), "{hand_over}");
    assert_eq!(run.trial.shortfall.lost, 0);
    // A burst of 3,000 takes 3 s, and the end of the measurement cuts the second one off.
    let behaviour = Behaviour {
        service_ns: MS,
        capacity: 10,
        ..Behaviour::default()
    };
    let mut workload = bursts(1, 1, 3_000, None);
    workload.phases.warm_up = Until::Time(0);
    let (run, figures) = self::run(workload, behaviour, Settings::default());
    assert_eq!((figures.sent, figures.whole, figures.cut_off), (1, 1, 1));
    assert!(
        run.trial.messages.not_sent > 500,
        "{}",
        run.trial.messages.not_sent
    );
    let said = run.trial.verdict.sentences().join("; ");
    assert!(!said.contains("could not be handed over"), "{said}");
}

/// In real time: publishers on two workers begin each burst together, whoever is told first.
#[test]
fn all_workers_begin_a_burst_together() {
    let (clock, mark) = (Clock::Monotonic, Mark::from_seed(5));
    let behaviour = Behaviour::default();
    let bus = Arc::new(Bus::new(behaviour.clone(), clock.clone(), mark));
    let mut workload = bursts(4, 2, 10, None);
    workload.phases.warm_up = Until::Time(SECOND / 5);
    workload.phases.measure = Until::Time(SECOND);
    let workers = Workers {
        publishers: 2,
        subscribers: 2,
        ..Workers::default()
    };
    let there = (clock, mark, bus);
    let client = SimulatedClient {
        workers,
        ..SimulatedClient::default()
    };
    let run = simulate_on(workload, &behaviour, Settings::default(), there, client);
    let run = run.expect("a sound workload");
    assert_eq!(run.record.outcome, TrialEnd::Completed);
    let begun = run.record.bursts[0].iter().filter(|burst| burst.due > 0);
    let begun: Vec<_> = begun.collect();
    assert!(begun.len() > 1, "one after the other");
    assert!(begun.iter().all(|burst| burst.due == 40), "{begun:?}");
    let figures = run.trial.flows[0].bursts.expect("bursts");
    assert_eq!(figures.whole, figures.sent);
    assert!(figures.cut_off <= 1);
}

fn largest(every: Option<u64>, most: f64, behaves: impl Fn() -> Behaviour) -> Search {
    let question = Question {
        flat_out: false,
        whole: true,
        start: 64.0,
        most,
        ..Question::default()
    };
    let workload = |load: Option<f64>| bursts(1, 1, load.expect("a burst") as u32, every);
    search_along((Axis::Burst, &workload), &question, &[], 10, behaves).expect("possible")
}

#[test]
fn the_largest_burst_that_fits_is_found() {
    for (queue, every) in [(1, Some(SECOND)), (37, None), (1_234, Some(SECOND))] {
        let found = largest(every, 1e6, || Behaviour {
            service_ns: 1_000,
            queue,
            ..Behaviour::default()
        });
        let what = format!("{queue} {every:?}: {:?} to {:?}", found.low, found.high);
        // Each trial tells the truth: exactly what fits arrives whole.
        for trial in &found.trials {
            let fits = trial.load.expect("a burst") <= queue as f64;
            let expected = if fits {
                StepOutcome::Within
            } else {
                StepOutcome::Beyond
            };
            assert_eq!(trial.finding, expected, "{what}: {trial:?}");
        }
        let (low, high) = (found.low.expect("fits"), found.high.expect("too much"));
        assert!(low <= queue as f64 && high >= queue as f64, "{what}");
        assert!(high - low <= 2.0 || high / low <= 1.1, "{what}");
        assert_eq!(found.bound, LimitedBy::System, "{what}");
        assert_eq!(
            found.gave_way.as_ref().map(|gave_way| gave_way.what),
            Some(Bottleneck::Loss),
            "{what}"
        );
        let bursts = found.bursts.expect("the bursts at the limit");
        assert!(
            bursts.messages as f64 <= low && bursts.whole == bursts.sent,
            "{what}"
        );
    }
}

#[test]
fn a_system_that_loses_nothing_carries_at_least_the_largest_burst() {
    let blocks = || Behaviour {
        service_ns: 25_000,
        capacity: 100,
        ..Behaviour::default()
    };
    let found = largest(None, 4_000.0, blocks);
    assert_eq!((found.low, found.high), (Some(4_000.0), None));
    assert!(
        found
            .notes
            .iter()
            .any(|n| n.text.contains("was not too much")),
        "{:?}",
        found.notes
    );
    // Four thousand take 100 ms: with less between two they do not come in time, and that is no loss.
    let found = largest(Some(SECOND / 20), 4_000.0, blocks);
    assert_eq!((found.high, found.bound), (None, LimitedBy::Budget));
    assert!(
        found.low.is_some_and(|low| low <= 2_000.0),
        "{:?}",
        found.low
    );
    assert!(
        found
            .notes
            .iter()
            .any(|n| n.text.contains("the search was given up")),
        "{:?}",
        found.notes
    );
}

/// Before, nothing was sent after the first burst: the client gathered messages until a time that never came.
#[test]
fn bursts_that_wait_go_on_where_messages_are_gathered() {
    let behaviour = Behaviour {
        service_ns: MS,
        delay_median_ns: MS,
        ..Behaviour::default()
    };
    let figures = |pacing_within| {
        let (clock, mark) = (Clock::virtual_at(SECOND), Mark::from_seed(3));
        let bus = Arc::new(Bus::new(behaviour.clone(), clock.clone(), mark));
        let client = SimulatedClient {
            setup: ClientSetup {
                pacing_within,
                ..ClientSetup::default()
            },
            ..SimulatedClient::default()
        };
        let there = (clock, mark, bus);
        let workload = bursts(1, 1, 100, None);
        let run = simulate_on(workload, &behaviour, Settings::default(), there, client);
        let trial = run.expect("a sound workload").trial;
        trial.flows[0].bursts.expect("bursts")
    };
    let (precise, gathered) = (figures(0), figures(MS));
    assert!(precise.sent > 40, "{precise:?}");
    assert_eq!(
        (gathered.sent, gathered.whole),
        (precise.sent, precise.whole)
    );
}

/// A window is full while its flow has nothing to send: that is no time for which it holds anybody back.
#[test]
fn a_window_holds_nobody_back_while_nothing_is_to_be_sent() {
    let behaviour = Behaviour {
        delay_median_ns: 5 * MS,
        ..Behaviour::default()
    };
    let blocked = |arrivals, active_for| {
        let mut workload = Workload::fan(1, 1, arrivals);
        workload.flows[0].window = Some(10);
        workload.flows[0].active_for = active_for;
        workload.phases.warm_up = Until::Time(SECOND / 2);
        workload.phases.measure = Until::Time(5 * SECOND);
        let run = simulate(workload, behaviour.clone(), Settings::default());
        let trial = run.expect("a sound workload").trial;
        trial.publishers_blocked.expect("known")
    };
    let gated = Arrivals::OnOff {
        per_s: None,
        on: SECOND / 5,
        off: SECOND * 4 / 5,
    };
    for share in [
        blocked(gated, None),
        blocked(Arrivals::FlatOut, Some(SECOND)),
    ] {
        assert!((0.05..=0.21).contains(&share), "{share}");
    }
}
