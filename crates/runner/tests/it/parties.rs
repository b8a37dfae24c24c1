//! One subscriber of many that differs from all others: it takes less than it is sent, is served later, or loses messages.
//!
//! As a normal test the sweep takes one trial of each case; with `PUBGAUGE_SWEEP=N` it takes N:
//!
//! ```sh
//! PUBGAUGE_SWEEP=20 cargo test -p pubgauge-runner --test it parties:: -- --nocapture
//! ```

use std::sync::Arc;

use pubgauge_driver::{Clock, Mark, Reliability, Settings};
use pubgauge_figures::criterion::by_default;
use pubgauge_figures::model::{Evidence, Rule, Status, Trial};
use pubgauge_results::criterion::bearing;
use pubgauge_runner::simulated::{START, SimulatedClient, simulate_on};
use pubgauge_simulator::{Behaviour, Bus};
use pubgauge_workload::{Arrivals, SECOND, Until, Workload};

use crate::planted;

const MS: u64 = 1_000_000;
/// Messages a second, each of which goes to every subscriber.
const RATE: f64 = 20.0;

/// How the one differs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Differs {
    Not,
    /// It takes so many of the messages that it is sent.
    Takes(f64),
    /// All comes so much later, ms.
    Later(u64),
    /// It loses as many.
    Loses(f64),
}

#[derive(Clone, Copy, Debug)]
struct Case {
    differs: Differs,
    subscribers: u32,
    seconds: u64,
    random: bool,
    seed: u64,
}

impl Case {
    fn run(&self) -> Trial {
        let per_s = RATE;
        let arrivals = if self.random {
            Arrivals::Poisson { per_s }
        } else {
            Arrivals::Periodic { per_s }
        };
        let mut workload = Workload::fan(1, self.subscribers, arrivals);
        workload.seed = self.seed;
        workload.phases.warm_up = Until::Time(SECOND);
        workload.phases.measure = Until::Time(self.seconds * SECOND);
        workload.phases.drain_within = 60 * SECOND;
        let name = self.name();
        let mut behaviour = Behaviour {
            delay_sigma: 0.5,
            seed: self.seed,
            ..Behaviour::default()
        };
        match self.differs {
            Differs::Not => {}
            Differs::Takes(share) => {
                let each = (1e9 / (RATE * share)) as u64;
                behaviour.slow_subscribers = vec![(name, each)];
            }
            Differs::Later(ms) => behaviour.late_subscribers = vec![(name, ms * MS)],
            Differs::Loses(share) => behaviour.lossy_subscribers = vec![(name, share)],
        }
        let (clock, mark) = (Clock::virtual_at(START), Mark::from_seed(behaviour.seed));
        let bus = Bus::new(behaviour.clone(), clock.clone(), mark).without_truth();
        let settings = Settings {
            reliability: Some(Reliability::AtLeastOnce),
            ..Settings::default()
        };
        let there = (clock, mark, Arc::new(bus));
        let client = SimulatedClient::default();
        let run = simulate_on(workload, &behaviour, settings, there, client);
        run.expect("a sound workload").trial
    }

    /// The subscriber that differs: any of them.
    fn name(&self) -> String {
        format!("sub{}", (self.seed * 7 + 1) % u64::from(self.subscribers))
    }

    /// Faults of its description.
    fn wrong(&self, trial: &Trial) -> Option<String> {
        let verdict = &trial.verdict;
        let is = |status| verdict.status == status;
        let met = bearing(trial, &by_default(0, None)).met;
        let yes = met == Some(true);
        // Of fewer than 299 messages a 99th percentile is not known.
        let is_known = trial.messages.latency_ns.check_count(0.99).is_ok();
        let is_in_time = yes || (met.is_none() && !is_known);
        let named = || {
            let worst = trial
                .parties
                .as_ref()
                .and_then(|p| p.slowest_at("p99", None));
            worst.is_some_and(|worst| worst.party.name == self.name())
        };
        let right = match self.differs {
            Differs::Not => is(Status::Valid) && is_in_time,
            Differs::Takes(share) if share < 1.0 => is(Status::Overloaded) && !yes,
            Differs::Takes(_) => !is(Status::Overloaded),
            Differs::Later(30) => is(Status::Valid) && is_in_time,
            Differs::Later(_) => is(Status::Valid) && !yes && named(),
            Differs::Loses(_) => {
                is(Status::Lossy) && verdict.reasons[0].text.contains(&self.name())
            }
        };
        (!right).then(|| format!("{self:?}, {met:?}: {verdict:?}, {:?}", trial.parties))
    }
}

fn wrong_of(cases: &[Case]) -> Vec<String> {
    let wrong = planted::of_each(cases, |case| case.wrong(&case.run()));
    wrong.into_iter().flatten().collect()
}

#[test]
fn one_of_a_hundred_that_takes_15_of_20_a_second_is_overload_and_named() {
    for seed in 0..3 {
        let case = Case {
            differs: Differs::Takes(0.75),
            subscribers: 100,
            seconds: 20,
            random: false,
            seed,
        };
        let trial = case.run();
        assert_eq!(
            trial.verdict.status,
            Status::Overloaded,
            "{:?}",
            trial.verdict
        );
        let mut reasons = trial.verdict.reasons.iter();
        let reason = reasons
            .find(|reason| reason.rule == Rule::SubscriberBehind)
            .expect("it is named");
        assert!(
            reason.text.contains(&format!("`{}`", case.name())),
            "{reason}"
        );
        let figure = |figure| reason.value(figure);
        assert_eq!(figure(Evidence::Behind), Some(1.0));
        assert_eq!(figure(Evidence::Subscribers), Some(100.0));
        // Each message comes a third of a second after the next one is due: 4.7 s from the first slot to the 14th of 1.07 s.
        let rose = figure(Evidence::LastLatency).zip(figure(Evidence::FirstLatency));
        let rose = rose.map_or(0.0, |(last, first)| (last - first) / 1e9);
        assert!((3.9..4.9).contains(&rose), "{rose} s: {reason}");
    }
}

/// Half of them, and all but one: the sum shows that too.
#[test]
fn several_that_fall_behind_are_overload() {
    for behind in [2, 10, 19] {
        let behaviour = Behaviour {
            delay_sigma: 0.5,
            slow_subscribers: (0..behind)
                .map(|n| (format!("sub{n}"), (1e9 / (0.75 * RATE)) as u64))
                .collect(),
            ..Behaviour::default()
        };
        let mut workload = Workload::fan(1, 20, Arrivals::Periodic { per_s: RATE });
        workload.phases.warm_up = Until::Time(SECOND);
        workload.phases.measure = Until::Time(20 * SECOND);
        workload.phases.drain_within = 60 * SECOND;
        let run = planted::simulate(workload, behaviour, Settings::default());
        let verdict = &run.trial.verdict;
        assert_eq!(verdict.status, Status::Overloaded, "{verdict:?}");
        let named = (verdict.reasons.iter()).find(|r| r.rule == Rule::SubscriberBehind);
        let count = named.map(|reason| reason.value(Evidence::Behind));
        // Where most are behind, the queue of all is told instead.
        let told = (behind < 10).then_some(Some(f64::from(behind)));
        assert_eq!(count, told, "{behind}: {verdict:?}");
    }
}

#[test]
fn one_subscriber_that_differs_is_found_and_others_are_not() {
    let seeds = std::env::var("PUBGAUGE_SWEEP").ok();
    let seeds = seeds.map_or(1, |n| n.parse().expect("PUBGAUGE_SWEEP is a count"));
    let kinds = [
        Differs::Not,
        Differs::Takes(0.5),
        Differs::Takes(0.8),
        Differs::Takes(0.9),
        Differs::Takes(0.95),
        Differs::Takes(1.1),
        Differs::Takes(1.3),
        Differs::Later(30),
        Differs::Later(300),
        Differs::Loses(0.02),
    ];
    let mut all = Vec::new();
    for differs in kinds {
        for subscribers in [2, 10, 50, 200] {
            for seconds in [5, 10, 30] {
                for random in [false, true] {
                    // Of random arrivals as many may be fewer than it takes, for as long.
                    let unclear = matches!(differs, Differs::Takes(share)
                        if random && (0.5..1.0).contains(&share)
                            && (1.0 - share) * RATE.sqrt() * (seconds as f64).sqrt() < 5.0);
                    let lossless = matches!(differs, Differs::Loses(_)) && seconds < 30;
                    for seed in (0..seeds).filter(|_| !unclear && !lossless) {
                        all.push(Case {
                            differs,
                            subscribers,
                            seconds,
                            random,
                            seed,
                        });
                    }
                }
            }
        }
    }
    let wrong = wrong_of(&all);
    println!(
        "{} of {} wrong\n{}",
        wrong.len(),
        all.len(),
        wrong.join("\n")
    );
    assert!(all.len() > 100 && wrong.len() * 100 <= all.len());
}
