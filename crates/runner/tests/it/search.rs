//! Searches over the simulated system, in simulated time, through everything that a real one goes
//! through. What it carries is planted.

use std::sync::Mutex;

use pubgauge_driver::Settings;
use pubgauge_figures::criterion::{Comparator, CriterionSpec, TrialFilter};
use pubgauge_figures::model::{Reason, Rule, Status, Trial};
use pubgauge_figures::search::{LimitedBy, NoteOf, Purpose, Search, SearchStep, StepOutcome};
use pubgauge_results::verdict::judge;
use pubgauge_runner::searching::{conclude, judge_step, next};
use pubgauge_runner::simulated::{search, search_along, simulate};
use pubgauge_search::{Axis, Question, Step};
use pubgauge_simulator::Behaviour;
use pubgauge_workload::{Arrivals, SECOND, Until, Workload};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Normal};

fn p99_at_most(ns: f64) -> CriterionSpec {
    CriterionSpec {
        text: "p99".into(),
        figure: "latency_ns.p99".into(),
        comparison: Comparator::AtMost,
        value: ns,
        filter: TrialFilter::default(),
    }
}

/// Time for a message of a system that takes so many a second, ns.
fn service_ns(per_s: f64) -> u64 {
    (1e9 / per_s) as u64
}

/// Searches over systems that carry 500 to 2,000 messages a second, some more or less in each trial (the
/// standard deviation as a share). `behaves` is told what the system carries, and what in this trial.
fn many(
    count: u64,
    noise: f64,
    behaves: impl Fn(f64, f64) -> Behaviour + Sync,
) -> Vec<(f64, Search)> {
    let question = Question::default();
    let all = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for first in 0..2 {
            let (all, behaves, question) = (&all, &behaves, &question);
            scope.spawn(move || {
                for seed in (first..count).step_by(2) {
                    let limit = 500.0 * 4f64.powf(seed as f64 / count as f64);
                    let mut draws = StdRng::seed_from_u64(seed);
                    let noise = Normal::new(0.0f64, noise).unwrap();
                    let found = search(question, &[p99_at_most(100e6)], 45, || {
                        let takes = limit * noise.sample(&mut draws).exp();
                        Behaviour {
                            seed: draws.random(),
                            ..behaves(limit, takes)
                        }
                    });
                    all.lock().unwrap().push((limit, found.unwrap()));
                }
            });
        }
    });
    all.into_inner().unwrap()
}

fn holds(found: &Search, limit: f64) -> bool {
    found.low.is_some_and(|low| low <= limit) && found.high.is_some_and(|high| high >= limit)
}

/// How many hold the limit, which is `share` of what was planted; median width, median of trials.
fn summed(found: &[(f64, Search)], share: f64) -> (usize, f64, usize) {
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let width = |(_, s): &(f64, Search)| {
        let ends = s.low.zip(s.high);
        ends.map_or(f64::INFINITY, |(low, high)| high / low - 1.0)
    };
    let deciding = |(_, s): &(f64, Search)| {
        s.trials
            .iter()
            .filter(|t| t.purpose != Purpose::Cost)
            .count() as f64
    };
    let held = found
        .iter()
        .filter(|(limit, s)| holds(s, share * limit))
        .count();
    let width = median(found.iter().map(width).collect());
    let trials = median(found.iter().map(deciding).collect()) as usize;
    println!(
        "{held} of {} held, width {width:.3}, {trials} trials",
        found.len()
    );
    (held, width, trials)
}

/// A system that takes so many messages a second.
fn takes(per_s: f64) -> Behaviour {
    Behaviour {
        service_ns: service_ns(per_s),
        ..Behaviour::default()
    }
}

/// A trial of 5 s at so many messages a second.
fn trial(arrivals: Arrivals, behaviour: Behaviour) -> Trial {
    let mut workload = Workload::fan(1, 1, arrivals);
    workload.phases.warm_up = Until::Time(SECOND);
    workload.phases.measure = Until::Time(5 * SECOND);
    workload.phases.drain_within = 2 * SECOND;
    let run = simulate(workload, behaviour, Settings::default());
    run.unwrap().trial
}

/// The shortest trials of a search tell a load that is little too much from one that is little less.
#[test]
fn five_seconds_show_a_small_overload() {
    for takes_per_s in [5_000.0, 20_000.0] {
        let at = |share: f64| {
            let per_s = share * takes_per_s;
            trial(Arrivals::Periodic { per_s }, takes(takes_per_s)).verdict
        };
        for share in [1.002, 1.005, 1.02] {
            let verdict = at(share);
            assert_eq!(verdict.status, Status::Overloaded, "{share}: {verdict:?}");
        }
        for share in [0.9, 0.99, 0.998] {
            let verdict = at(share);
            assert_eq!(verdict.status, Status::Valid, "{share}: {verdict:?}");
        }
    }
}

/// A queue that comes and goes as messages come by chance is none that grows.
#[test]
fn five_seconds_of_chance_are_no_overload() {
    for share in [0.9, 0.95] {
        let alarms = (0..50).filter(|seed| {
            let behaviour = Behaviour {
                seed: *seed,
                delay_sigma: 0.3,
                ..takes(2_000.0)
            };
            let per_s = share * 2_000.0;
            let status = trial(Arrivals::Poisson { per_s }, behaviour).verdict.status;
            status == Status::Overloaded
        });
        let alarms = alarms.count();
        assert!(alarms <= 1, "{alarms} of 50 at {share}");
    }
}

#[test]
fn the_interval_holds_what_was_planted() {
    let searches = std::env::var("PUBGAUGE_SEARCHES").ok();
    let count = searches.map_or(30, |count| count.parse().expect("a count"));
    let found = many(count, 0.03, |_, per_s| takes(per_s));
    let (held, width, trials) = summed(&found, 1.0);
    assert!(held as f64 >= 0.93 * count as f64 && width <= 0.10 && trials <= 18);
    let confirmed = found.iter().filter(|(_, s)| s.confirmed.is_some());
    assert!(confirmed.count() as f64 >= 0.8 * count as f64);
    assert!(found.iter().all(|(_, s)| s.bound != LimitedBy::Client));
}

/// Half a minute of burst credit.
#[test]
fn what_lasts_half_a_minute_is_no_limit() {
    let found = many(6, 0.03, |_, per_s| Behaviour {
        service_later: vec![(30 * SECOND, service_ns(0.6 * per_s))],
        ..takes(per_s)
    });
    let (held, ..) = summed(&found, 0.6);
    assert!(held >= 5);
    let told = |s: &Search| {
        s.notes
            .iter()
            .any(|note| note.text.contains("did not last"))
    };
    assert!(found.iter().filter(|(_, s)| told(s)).count() >= 5);
}

/// A search over a system that stays up from trial to trial is about one start of it, and says so.
#[test]
fn a_system_that_stays_up_is_one_start() {
    let says_so = |earlier_trials| {
        let mut trial = trial(Arrivals::Periodic { per_s: 100.0 }, takes(1000.0));
        trial.search = Some(SearchStep {
            search: 0,
            purpose: Purpose::Short,
            load: Some(100.0),
        });
        trial.circumstances.earlier_trials = earlier_trials;
        let template = Search::default();
        let found = conclude(&Question::default(), Axis::Rate, 0, &[trial], &[], template);
        found
            .notes
            .iter()
            .any(|note| note.text.contains("of one start"))
    };
    assert!(says_so(1) && !says_so(0));
}

#[test]
fn a_system_that_is_slower_the_more_waits() {
    let found = many(10, 0.03, |_, per_s| Behaviour {
        service_crowded: Some((SECOND / 5, service_ns(0.5 * per_s))),
        ..takes(per_s)
    });
    let (held, width, _) = summed(&found, 1.0);
    assert!(held >= 9 && width <= 0.10);
}

/// A client that uses up what it may of a processor (70 %) before the system is at its end, far from that or
/// near.
#[test]
fn a_client_at_its_end_is_not_the_systems_limit() {
    let share = |limit: f64| 0.2 + 0.75 * (limit - 500.0) / 1500.0;
    let found = many(12, 0.03, |limit, per_s| Behaviour {
        publish_cpu_ns: (0.7e9 / (share(limit) * limit)) as u64,
        ..takes(per_s)
    });
    for (limit, s) in &found {
        let low = s.low.unwrap();
        assert!(low <= 1.01 * share(*limit) * limit, "{limit}: {s:?}");
        assert!(
            s.bound == LimitedBy::Client && s.high.is_none(),
            "{limit}: {s:?}"
        );
    }
}

/// One trial in three has a client that is not run for a second and a half.
#[test]
fn a_client_that_sleeps_is_not_the_systems_limit() {
    let asleep = (3 * SECOND, 9 * SECOND / 2);
    let found = many(10, 0.03, |_, per_s| Behaviour {
        client_sleeps: Vec::from_iter((per_s.to_bits() % 3 == 0).then_some(asleep)),
        ..takes(per_s)
    });
    let (held, ..) = summed(&found, 1.0);
    assert!(held >= 9);
    let slept = found.iter().flat_map(|(_, s)| &s.trials);
    let slept = slept.filter(|t| t.finding == StepOutcome::Client);
    assert!(slept.count() > 20, "such trials are named");
}

/// Ten subscribers get each message: a flat-out trial tells how many messages the system takes, also where all that
/// came were of the warm-up.
#[test]
fn messages_of_the_warm_up_tell_their_fan_out() {
    let mut workload = Workload::fan(1, 10, Arrivals::FlatOut);
    workload.phases.warm_up = Until::Time(SECOND);
    workload.phases.measure = Until::Time(5 * SECOND);
    let deep = Behaviour {
        capacity: 100_000,
        ..takes(500.0)
    };
    let mut trial = simulate(workload, deep, Settings::default()).unwrap().trial;
    trial.search = Some(SearchStep {
        search: 0,
        purpose: Purpose::FlatOut,
        load: None,
    });
    let question = Question::default();
    let trials = |trial: &Trial| vec![trial.clone()];
    let shown = |trial: &Trial| {
        let found = conclude(
            &question,
            Axis::Rate,
            0,
            &trials(trial),
            &[],
            Search::default(),
        );
        found.trials[0].achieved
    };
    assert!((shown(&trial) / 500.0 - 1.0).abs() < 0.02, "{trial:?}");
    // Nothing of the measurement was taken.
    (
        trial.messages.offered,
        trial.messages.published,
        trial.messages.expected,
    ) = (0, 0, 0);
    (trial.messages.delivered, trial.shortfall.under_way) = (0, 0);
    assert!((shown(&trial) / 500.0 - 1.0).abs() < 0.02);
    match next(&question, Axis::Rate, 0, &trials(&trial), &[]) {
        Step::Short(load) => assert!((440.0..460.0).contains(&load), "{load}"),
        step => panic!("{step:?}"),
    }
}

/// A search that begins far above the limit: where its time is spent before it comes down, that is the reason, and
/// not the system.
#[test]
fn a_search_that_had_no_time_to_come_down_says_so() {
    let searched = |most_seconds, least| {
        let question = Question {
            flat_out: false,
            start: 10_000.0,
            least,
            most_seconds,
            ..Question::default()
        };
        search(&question, &[p99_at_most(100e6)], 45, || takes(20.0)).unwrap()
    };
    let notes = |found: &Search, words: &str| found.notes.iter().any(|n| n.text.contains(words));
    let cut = searched(25.0, 1.0);
    assert_eq!((cut.low, cut.bound), (None, LimitedBy::Budget), "{cut:?}");
    assert!(
        notes(&cut, "were spent before a smaller one was tried"),
        "{cut:?}"
    );
    assert!(!notes(&cut, "no load stayed within"), "{cut:?}");
    // Where the smallest load of all is too much, it is the system.
    let none = searched(480.0, 5_000.0);
    assert_eq!(
        (none.low, none.bound),
        (None, LimitedBy::System),
        "{none:?}"
    );
    assert!(notes(&none, "no load stayed within"), "{none:?}");
    // With time it is found.
    let found = searched(480.0, 1.0);
    assert!(holds(&found, 20.0), "{found:?}");
}

/// Few devices at first: 4 messages in 5 s are too few for a 99th percentile, and all stayed within the limit.
#[test]
fn a_search_begins_with_few_messages() {
    let workload = |load: Option<f64>| {
        let publishers = load.expect("devices are counted") as u32;
        let per_s = f64::from(publishers);
        Workload::fan(publishers, 1, Arrivals::Periodic { per_s })
    };
    let question = Question {
        flat_out: false,
        whole: true,
        start: 4.0,
        most: 10_000.0,
        ..Question::default()
    };
    let searched = |median_ns| {
        let behaves = || Behaviour {
            delay_median_ns: median_ns,
            ..takes(300.0)
        };
        let criteria = [p99_at_most(100e6)];
        search_along(
            (Axis::Publishers, &workload),
            &question,
            &criteria,
            45,
            behaves,
        )
        .unwrap()
    };
    let found = searched(SECOND / 1000);
    assert!(holds(&found, 300.0), "{found:?}");
    // Where they are all late, few are enough: no load is within.
    let late = searched(SECOND / 5);
    assert_eq!(late.low, None, "{late:?}");
}

/// A system that takes 60 connections and no more: 59 publishers beside one subscriber.
#[test]
fn clients_that_are_turned_away_are_too_many() {
    let workload = |load: Option<f64>| {
        let publishers = load.expect("devices are counted") as u32;
        Workload::fan(publishers, 1, Arrivals::Periodic { per_s: 50.0 })
    };
    let question = Question {
        flat_out: false,
        whole: true,
        start: 16.0,
        most: 1_000.0,
        ..Question::default()
    };
    let behaves = || Behaviour {
        refuses: (59..1_000).map(|n| format!("pub{n}")).collect(),
        ..Behaviour::default()
    };
    let criteria = [p99_at_most(100e6)];
    let found = search_along(
        (Axis::Publishers, &workload),
        &question,
        &criteria,
        45,
        behaves,
    )
    .unwrap();
    assert!(
        holds(&found, 59.0) && found.bound == LimitedBy::System,
        "{found:?}"
    );
    assert_eq!(
        (found.low, found.high),
        (Some(59.0), Some(60.0)),
        "{found:?}"
    );
    assert!(found.trials.len() <= 9, "{found:?}");
    let gave_way = found.gave_way.unwrap();
    assert!(gave_way.words.contains("refuses pub"), "{gave_way:?}");
    // So many connections tell nothing where the client itself ran out of descriptors.
    let starved = || Behaviour {
        starves: (59..1_000).map(|n| format!("pub{n}")).collect(),
        ..Behaviour::default()
    };
    let found = search_along(
        (Axis::Publishers, &workload),
        &question,
        &criteria,
        45,
        starved,
    )
    .unwrap();
    assert_ne!(found.bound, LimitedBy::System, "{found:?}");
}

/// A system that carries 500 or 1,000 a second, as it was started: the answer holds both faces, or is none.
#[test]
fn a_system_with_two_faces_has_no_limit_between_them() {
    let searches = std::env::var("PUBGAUGE_SEARCHES").ok();
    let count: u64 = searches.map_or(6, |count| count.parse().expect("a count"));
    let (mut wrong, mut told) = (Vec::new(), 0);
    for seed in 0..count {
        let mut draws = StdRng::seed_from_u64(seed);
        let question = Question::default();
        let found = search(&question, &[p99_at_most(100e6)], 45, || {
            takes(if draws.random_bool(0.5) {
                500.0
            } else {
                1_000.0
            })
        });
        let found = found.unwrap();
        let says_so = found.notes.iter().any(|note| note.of == NoteOf::TwoFaces);
        let both =
            found.low.is_none_or(|low| low <= 505.0) && found.high.is_none_or(|high| high >= 990.0);
        println!(
            "{seed}: {:?} to {:?}, {:?}, {says_so}",
            found.low, found.high, found.confirmed
        );
        told += u64::from(both && says_so);
        // Where chance showed one face alone, the limit is that of this face.
        let of_one = |limit: f64| {
            found.low.is_none_or(|low| 0.9 * low <= limit)
                && found.high.is_none_or(|high| 1.1 * high >= limit)
        };
        let right = if says_so {
            both
        } else {
            of_one(500.0) || of_one(1_000.0)
        };
        if !right {
            wrong.push((seed, found));
        }
    }
    assert!(
        10 * wrong.len() as u64 <= count && 5 * told >= 2 * count,
        "{} of {count} wrong, {told} tell both: {wrong:?}",
        wrong.len()
    );
}

/// A machine that others kept busy tells nothing of the system by what it could not do.
#[test]
fn what_others_may_have_done_is_no_limit() {
    let mut workload = Workload::fan(1, 1, Arrivals::Periodic { per_s: 2_000.0 });
    workload.phases.measure = Until::Time(2 * SECOND);
    let slow = Behaviour {
        service_ns: service_ns(500.0),
        ..Behaviour::default()
    };
    let mut trial = simulate(workload, slow, Settings::default()).unwrap().trial;
    let criteria = [p99_at_most(100e6)];
    let finding = |trial: &Trial| judge_step(Axis::Rate, trial, &criteria).0;
    assert_eq!(finding(&trial), pubgauge_search::StepOutcome::Beyond);
    trial.circumstances.cores = 2;
    trial.system_cpu_s = Some(0.2);
    trial.worker_load.machine_others = Some(1.8);
    trial.verdict.others_busy = judge(&trial).others_busy;
    assert_eq!(finding(&trial), pubgauge_search::StepOutcome::Client);
    assert!(judge_step(Axis::Rate, &trial, &criteria).1[0].contains("other programs kept 1.8"));
    trial.worker_load.machine_others = Some(0.1);
    trial.verdict.others_busy = judge(&trial).others_busy;
    assert_eq!(finding(&trial), pubgauge_search::StepOutcome::Beyond);
    // So does what a hypervisor took.
    let stolen = Reason::new(Rule::TimeStolen, "a hypervisor took 5 % of the time");
    trial.verdict.reasons.push(stolen);
    assert_eq!(finding(&trial), pubgauge_search::StepOutcome::Client);
    assert!(judge_step(Axis::Rate, &trial, &criteria).1[0].contains("a hypervisor took"));
}

/// Tests that take long.
mod long {
    use super::*;

    #[test]
    fn the_interval_holds_it_without_noise_and_with_much() {
        let (held, width, trials) = summed(&many(10, 0.0, |_, per_s| takes(per_s)), 1.0);
        assert!(held >= 9 && width <= 0.10 && trials <= 18);
        let (held, ..) = summed(&many(20, 0.08, |_, per_s| takes(per_s)), 1.0);
        assert!(held >= 16);
    }

    /// One trial in ten finds the system 15 % slower.
    #[test]
    fn one_stray_trial_in_ten_does_not_lead_it_astray() {
        let stray = |_, per_s: f64| {
            // The last bits of what a trial takes are as good as drawn.
            let slow = per_s.to_bits().is_multiple_of(10);
            takes(per_s * if slow { 0.85 } else { 1.0 })
        };
        let (held, ..) = summed(&many(20, 0.03, stray), 1.0);
        assert!(held >= 17);
    }
}
