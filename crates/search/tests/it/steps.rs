//! Single steps of a search.

use pubgauge_search::{LimitedBy, Question, Step, StepOutcome, StepTaken, estimate_limit, next};

fn seen(step: Step, finding: StepOutcome) -> StepTaken {
    StepTaken {
        step,
        offered: 1000.0,
        achieved: 1000.0,
        finding,
        seconds: 5.0,
        cost: None,
        took: None,
    }
}

#[test]
fn what_told_nothing_before_does_not_count_against_a_load() {
    let question = Question::default();
    let short = Step::Short(900.0);
    let mut all = vec![
        seen(Step::FlatOut, StepOutcome::Nothing),
        seen(Step::FlatOut, StepOutcome::Within),
        seen(short, StepOutcome::Client),
        seen(short, StepOutcome::Client),
    ];
    assert_eq!(next(&question, &all), short, "twice is not three times");
    all.push(seen(short, StepOutcome::Client));
    assert_ne!(next(&question, &all), short);
    assert_eq!(estimate_limit(&question, &all).bound, LimitedBy::Client);
}

#[test]
fn what_little_a_collapsed_system_delivers_is_no_guide() {
    let question = Question::default();
    let flat_out = StepTaken {
        offered: 140_000.0,
        achieved: 2.0,
        ..seen(Step::FlatOut, StepOutcome::Beyond)
    };
    assert_eq!(next(&question, &[flat_out]), Step::Short(question.start));
    let poor = StepTaken {
        achieved: 2_000.0,
        ..flat_out
    };
    assert_eq!(next(&question, &[poor]), Step::Short(1_800.0));
    // Of a limit of 3,600 the interval is found, although it is 1,800 times what was delivered. Once it is bounded on both
    // sides, by one trial each, no short trial is far from there.
    let mut all = vec![flat_out];
    let (mut most, mut least) = (0.0_f64, f64::INFINITY);
    loop {
        let step = next(&question, &all);
        if let (Step::Short(load), true) = (step, most > 0.0 && least.is_finite()) {
            assert!(load > most / 2.0 && load < 2.0 * least, "{load}: {all:?}");
        }
        let load = match step {
            Step::Short(load) | Step::Long(load) | Step::Cost(load) => load,
            Step::FlatOut => panic!("twice"),
            Step::End => break,
        };
        let finding = if load <= 3_600.0 {
            most = most.max(load);
            StepOutcome::Within
        } else {
            least = least.min(load);
            StepOutcome::Beyond
        };
        let achieved = load.min(3_600.0);
        all.push(StepTaken {
            achieved,
            ..seen(step, finding)
        });
    }
    let found = estimate_limit(&question, &all);
    let (low, high) = (found.low.unwrap(), found.high.unwrap());
    assert!(
        low <= 3_600.0 && 3_600.0 <= high && high < 1.5 * low,
        "{found:?}"
    );
}

#[test]
fn a_system_that_delivers_nothing_flat_out_is_not_asked_again_and_costs_do_not_take_its_time() {
    let question = Question::default();
    // ActiveMQ over 2,000 connections: nothing came for a minute after it, and the trial took a quarter of the time.
    let in_vain = StepTaken {
        offered: 126_000.0,
        achieved: 0.0,
        seconds: 0.25 * question.most_seconds,
        ..seen(Step::FlatOut, StepOutcome::Nothing)
    };
    let first = Step::Short(question.start);
    assert_eq!(next(&question, &[in_vain]), first);
    let within = StepTaken {
        seconds: in_vain.seconds,
        ..seen(first, StepOutcome::Within)
    };
    let after = next(&question, &[in_vain, within]);
    assert!(
        matches!(after, Step::Cost(_)),
        "a load is known, and the rest of the time is for its costs: {after:?}"
    );
    // Nothing was taken: that may have been an accident.
    let nothing = StepTaken {
        offered: 0.0,
        ..in_vain
    };
    assert_eq!(next(&question, &[nothing]), Step::FlatOut);
}

#[test]
fn three_trials_that_tell_nothing_end_it() {
    let question = Question::default();
    let mut all = vec![seen(Step::FlatOut, StepOutcome::Nothing); 2];
    assert_eq!(next(&question, &all), Step::FlatOut);
    all.push(all[0]);
    assert_eq!(next(&question, &all), Step::End);
    let found = estimate_limit(&question, &all);
    assert_eq!(
        (found.low, found.high, found.bound),
        (None, None, LimitedBy::Budget)
    );
}

/// A search of a system that carries 900, whose trials take `seconds` beside what they measure.
fn searched(question: &Question, seconds: f64) -> (Vec<StepTaken>, f64) {
    let mut all: Vec<StepTaken> = Vec::new();
    loop {
        let (load, measures) = match next(question, &all) {
            Step::FlatOut => (1000.0, 5.0),
            Step::Short(load) | Step::Cost(load) => (load, 5.0),
            Step::Long(load) => (load, question.long_seconds),
            Step::End => break,
        };
        let finding = if load <= 900.0 {
            StepOutcome::Within
        } else {
            StepOutcome::Beyond
        };
        all.push(StepTaken {
            achieved: load.min(900.0),
            seconds: seconds + measures,
            ..seen(next(question, &all), finding)
        });
    }
    let took = all.iter().map(|one| one.seconds).sum();
    (all, took)
}

#[test]
fn no_search_takes_longer_than_it_may() {
    for width in [0.1, 0.001] {
        for seconds in [0.0, 1.0, 8.0, 20.0, 60.0] {
            for most_seconds in [30.0, 120.0, 480.0, 900.0] {
                let question = Question {
                    width,
                    most_seconds,
                    ..Question::default()
                };
                let (all, took) = searched(&question, seconds);
                assert!(took <= most_seconds || all.len() == 1, "{took} s, {all:?}");
            }
        }
    }
}

#[test]
fn time_is_kept_for_a_long_trial_and_costs() {
    let question = Question {
        width: 0.001,
        most_trials: 1000,
        ..Question::default()
    };
    for seconds in [1.0, 8.0, 20.0] {
        let (all, _) = searched(&question, seconds);
        let long = all.iter().filter(|one| matches!(one.step, Step::Long(_)));
        assert_eq!(long.count(), 1, "{all:?}");
        let costs = all.iter().filter(|one| matches!(one.step, Step::Cost(_)));
        assert_eq!(costs.count(), 2, "{all:?}");
    }
}

#[test]
fn a_client_at_its_end_flat_out_is_no_trouble() {
    let question = Question::default();
    let all = [seen(Step::FlatOut, StepOutcome::Client)];
    assert_eq!(next(&question, &all), Step::Short(900.0));
}

#[test]
fn a_client_that_is_at_its_end_again_and_again_is_the_limit() {
    let question = Question::default();
    let short = |load: f64| Step::Short(load);
    // As Cyclone DDS on two processors: behind at 1460, its client busy at 1170 each time.
    let mut all = vec![
        seen(Step::FlatOut, StepOutcome::Within),
        seen(short(1460.0), StepOutcome::Beyond),
    ];
    all.extend([seen(short(1170.0), StepOutcome::Client); 3]);
    assert!(
        next(&question, &all) != Step::End && estimate_limit(&question, &all).low.is_none(),
        "disturbed, perhaps"
    );
    all.extend([seen(short(1170.0), StepOutcome::Client); 3]);
    let Step::Short(load) = next(&question, &all) else {
        panic!("a short trial")
    };
    assert!(load < 1000.0, "{load}");
    all.push(seen(short(900.0), StepOutcome::Within));
    // One trial says now what three had to.
    all.push(seen(short(1200.0), StepOutcome::Client));
    assert_ne!(next(&question, &all), short(1200.0));
    let found = estimate_limit(&question, &all);
    assert_eq!(found.bound, LimitedBy::Client);
    assert!(
        found.high.is_none() && found.low <= Some(900.0),
        "{found:?}"
    );
}

#[test]
fn long_trials_follow_the_last_short_one() {
    // Within or beyond by chance: no interval becomes narrow.
    let question = Question {
        width: 0.001,
        most_trials: 12,
        ..Question::default()
    };
    let (all, _) = searched(&question, 0.0);
    let long = |one: &&StepTaken| matches!(one.step, Step::Long(_));
    assert!(
        all.iter()
            .filter(|one| !long(one) && !matches!(one.step, Step::Cost(_)))
            .count()
            <= 12
    );
    assert!(all.iter().filter(long).count() >= 1, "{all:?}");
    assert!(estimate_limit(&question, &all).confirmed.is_some());
}

#[test]
fn a_pace_that_wanders_widens_the_interval() {
    let question = Question::default();
    let (all, _) = searched(&question, 0.0);
    let steady = estimate_limit(&question, &all);
    assert_eq!(steady.wander, None);
    let with = |cost: &dyn Fn(usize) -> f64| {
        let costs = all.iter().enumerate();
        let costs = costs.map(|(nth, one)| StepTaken {
            cost: Some(cost(nth)),
            ..*one
        });
        estimate_limit(&question, &costs.collect::<Vec<_>>())
    };
    assert_eq!(
        with(&|_| 1e-5),
        steady,
        "a cost that does not change tells nothing"
    );
    // One trial, or two, may be dear by chance.
    assert_eq!(
        with(&|nth| if nth % 7 == 3 { 3e-5 } else { 1e-5 }).wander,
        None
    );
    let wandered = with(&|nth| if nth < all.len() / 2 { 1e-5 } else { 1.3e-5 });
    let wander = wandered.wander.unwrap();
    // The part of it that may follow from the load is taken out.
    let slower = wander.most / wander.least;
    assert!((1.25..1.36).contains(&slower), "{wander:?}");
    let (low, high) = (steady.low.unwrap(), steady.high.unwrap());
    assert!(
        wandered.low.unwrap() < 0.82 * low || wandered.high.unwrap() > 1.23 * high,
        "{wandered:?}"
    );
}

/// However wide the interval may be, five trials with a result are too few.
#[test]
fn six_trials_with_a_result_are_the_fewest() {
    let question = Question {
        width: 1000.0,
        ..Question::default()
    };
    let mut all = Vec::new();
    let confirmed = loop {
        let (finding, step) = match next(&question, &all) {
            step @ Step::Short(load) if load <= 3_600.0 => (StepOutcome::Within, step),
            step @ (Step::Short(_) | Step::FlatOut) => (StepOutcome::Beyond, step),
            step => break step,
        };
        all.push(StepTaken {
            achieved: 3_600.0,
            ..seen(step, finding)
        });
    };
    let short = all.iter().filter(|s| matches!(s.step, Step::Short(_)));
    assert_eq!(short.count(), 6, "before {confirmed:?}: {all:?}");
}

/// One trial that failed by chance at the smallest load does not say that there is no limit. Before, it ended the search.
#[test]
fn the_smallest_load_is_tried_twice() {
    let question = Question {
        least: 100.0,
        start: 100.0,
        flat_out: false,
        ..Question::default()
    };
    let least = Step::Short(100.0);
    let mut all = vec![seen(least, StepOutcome::Beyond)];
    assert_eq!(next(&question, &all), least);
    let mut chance = all.clone();
    chance.push(seen(least, StepOutcome::Within));
    let after = next(&question, &chance);
    assert!(
        matches!(after, Step::Short(load) if load >= 100.0),
        "{after:?}"
    );
    let low = estimate_limit(&question, &chance).low;
    assert!(low.is_some_and(|low| low >= 100.0), "{low:?}");
    all.push(seen(least, StepOutcome::Beyond));
    assert_eq!(next(&question, &all), Step::End);
    assert_eq!(estimate_limit(&question, &all).bound, LimitedBy::System);
}

/// A system that takes so many clients and no more is found to the client, also where the client was told of the first
/// refusal before it knew of all that were taken.
#[test]
fn a_system_that_turns_clients_away_is_found_to_the_client() {
    for takes in [3.0_f64, 59.0, 200.0, 5_000.0] {
        for unknown in [0.0, 1.0, 2.0, 30.0, 64.0] {
            let question = Question {
                flat_out: false,
                whole: true,
                start: 16.0,
                most: 100_000.0,
                ..Question::default()
            };
            let mut all = Vec::new();
            loop {
                let step = next(&question, &all);
                let (load, seconds) = match step {
                    Step::Short(load) | Step::Cost(load) => (load, 5.0),
                    Step::Long(load) => (load, 45.0),
                    Step::FlatOut => panic!("it is not asked for"),
                    Step::End => break,
                };
                let refused = load > takes;
                let finding = if refused {
                    StepOutcome::Beyond
                } else {
                    StepOutcome::Within
                };
                all.push(StepTaken {
                    seconds,
                    took: (refused && takes > unknown).then_some(takes - unknown),
                    ..seen(step, finding)
                });
            }
            let told = takes > unknown;
            let found = estimate_limit(&question, &all);
            let (low, high) = (found.low.unwrap(), found.high.unwrap());
            assert!(
                low <= takes && takes < high,
                "{takes}, {unknown}: {found:?}"
            );
            assert_eq!(found.bound, LimitedBy::System, "{takes}, {unknown}");
            if told {
                assert_eq!((low, high), (takes, takes + 1.0), "{takes}, {unknown}");
                assert_eq!(found.confirmed, Some(takes));
                assert!(all.len() <= 24, "{takes}, {unknown}: {}", all.len());
            }
        }
    }
}
