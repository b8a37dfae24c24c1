//! How good the verdicts are, over everything that a system may do with everything that it may be offered: a
//! server with an exact rate and a queue, over simulated time, which carries less or more than it is offered;
//! arrivals that are steady, random or in bursts, or a fleet that is due together; a server that delivers
//! smoothly, in lumps, or stands still now and then.
//!
//! As a normal test it takes one trial of each case. With `PUBGAUGE_SWEEP=N` it takes N, compares the table in
//! `docs/verdicts.md` with what it found (20 are what stands there), and writes it there with
//! `PUBGAUGE_SWEEP_WRITE=1`:
//!
//! ```sh
//! PUBGAUGE_SWEEP=20 cargo test -p pubgauge-runner --test it sweep::verdicts -- --nocapture
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use pubgauge_driver::{Clock, Mark, Settings};
use pubgauge_figures::model::{Status, Trial};
use pubgauge_runner::simulated::{START, SimulatedClient, simulate_on};
use pubgauge_simulator::{Behaviour, Bus, Pauses};
use pubgauge_workload::{Arrivals, SECOND, Until, Workload};

use crate::planted;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Deliveries of the server, as shares of its offers.
const CARRIES: [f64; 7] = [0.5, 0.75, 0.9, 0.95, 1.12, 1.25, 1.5];
/// Lengths of the measurement, s.
const LENGTHS: [u64; 4] = [2, 5, 10, 30];
const MS: u64 = 1_000_000;
/// Messages offered a second, on average.
const RATE: f64 = 500.0;
/// Devices that offer them.
const DEVICES: u32 = 50;
const ARRIVALS: [&str; 4] = ["steady", "random", "bursts", "fleet"];
const DELIVERIES: [&str; 3] = ["smooth", "lumps", "pauses"];

/// One trial of the sweep.
#[derive(Clone, Copy, Debug)]
struct Case {
    arrivals: usize,
    delivery: usize,
    seconds: u64,
    carries: f64,
    seed: u64,
}

/// The planted truth of a case.
struct Planted {
    workload: Workload,
    behaviour: Behaviour,
}

impl Case {
    fn all(seeds: u64) -> Vec<Case> {
        let mut all = Vec::new();
        for seconds in LENGTHS {
            for arrivals in 0..ARRIVALS.len() {
                for delivery in 0..DELIVERIES.len() {
                    for carries in CARRIES {
                        for seed in 0..seeds {
                            all.push(Case {
                                arrivals,
                                delivery,
                                seconds,
                                carries,
                                seed,
                            });
                        }
                    }
                }
            }
        }
        all
    }

    fn plant(&self) -> Planted {
        let mut draws = StdRng::seed_from_u64(
            self.seed << 32
                | (self.arrivals << 24 | self.delivery << 16) as u64
                | self.seconds << 8
                | (self.carries * 100.0) as u64,
        );
        // Evenly over the logarithm.
        let mut between =
            |low: f64, high: f64| -> f64 { low * (high / low).powf(draws.random::<f64>()) };
        let ns = |s: f64| (s * 1e9) as u64;
        let arrivals = match ARRIVALS[self.arrivals] {
            "steady" => Arrivals::Periodic { per_s: RATE },
            "random" => Arrivals::Poisson { per_s: RATE },
            "bursts" => {
                let (on, off) = (between(0.1, 5.0), between(0.1, 5.0));
                Arrivals::OnOff {
                    per_s: Some(RATE * (on + off) / on),
                    on: ns(on),
                    off: ns(off),
                }
            }
            _ => {
                let messages = between(1.0, 50.0).round();
                let every = messages * f64::from(DEVICES) / RATE;
                Arrivals::Bursts {
                    messages: messages as u32,
                    every: Some(ns(every)),
                }
            }
        };
        let mut workload = Workload::fan(DEVICES, 1, arrivals);
        workload.seed = self.seed;
        // Where in its cycle of bursts, lumps or pauses the measurement begins.
        workload.phases.warm_up = Until::Time(ns(between(1.0, 4.0)));
        workload.phases.measure = Until::Time(self.seconds * SECOND);
        workload.phases.drain_within = 20 * SECOND;
        let mut behaviour = Behaviour {
            delay_median_ns: 1_000_000,
            seed: self.seed,
            ..Behaviour::default()
        };
        let mut works = 1.0;
        match DELIVERIES[self.delivery] {
            "smooth" => {}
            "lumps" => behaviour.lumps_ns = ns(between(0.1, 1.0)),
            _ => {
                let every = between(1.0, 10.0);
                let lasts = between(0.1, 2.0).min(0.6 * every);
                works = 1.0 - lasts / every;
                behaviour.pauses = Some(Pauses {
                    first_ns: ns(between(1.0, 1.0 + every)) - SECOND,
                    lasts_ns: ns(lasts),
                    every_ns: ns(every),
                });
            }
        }
        behaviour.service_ns = (1e9 * works / (RATE * self.carries)) as u64;
        Planted {
            workload,
            behaviour,
        }
    }
}

/// Whether a server carries what it is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Truth {
    /// At least 5 % more is offered than carried, on the long run and within the measurement.
    TooMuch,
    /// At least 10 % more is carried than offered, on the long run and within the measurement.
    Spare,
    /// Neither.
    Between,
}

impl Truth {
    /// The verdict that would be wrong.
    fn wrong(self) -> Option<Status> {
        match self {
            Truth::TooMuch => Some(Status::Valid),
            Truth::Spare => Some(Status::Overloaded),
            Truth::Between => None,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Truth::TooMuch => "too much by 5 % or more",
            Truth::Spare => "10 % to spare or more",
            Truth::Between => "between",
        }
    }
}

/// Deliveries that the server could have made within the measurement, as a share of what was offered in it; of arrivals that
/// repeat, of what is offered in that time on average.
fn carried_within(planted: &Planted, trial: &Trial) -> f64 {
    let b = &planted.behaviour;
    let Until::Time(warm_up) = planted.workload.phases.warm_up else {
        unreachable!("by time")
    };
    // Connecting and the proof take 20 ms.
    let from = warm_up + 20_000_000;
    let to = from + (trial.duration_s * 1e9) as u64;
    let stood = b.pauses.map_or(0, |p| {
        let pauses = (0..).map(|n| p.first_ns + n * p.every_ns);
        let inside = pauses.take_while(|begins| *begins < to);
        inside
            .map(|begins| to.min(begins + p.lasts_ns).saturating_sub(begins.max(from)))
            .sum()
    });
    let works = (to - from - stood) as f64;
    let offered = match planted.workload.flows[0].arrivals {
        Arrivals::Poisson { .. } => trial.messages.offered.max(1) as f64,
        _ => RATE * trial.duration_s,
    };
    works / b.service_ns as f64 / offered
}

fn truth(case: &Case, planted: &Planted, trial: &Trial) -> Truth {
    let within = carried_within(planted, trial);
    match (case.carries, within) {
        (long, within) if long <= 1.0 / 1.05 && within <= 1.0 / 1.05 => Truth::TooMuch,
        (long, within) if long >= 1.1 && within >= 1.1 => Truth::Spare,
        _ => Truth::Between,
    }
}

fn trial(planted: &Planted) -> Trial {
    let behaviour = &planted.behaviour;
    let (clock, mark) = (Clock::virtual_at(START), Mark::from_seed(behaviour.seed));
    let bus = Bus::new(behaviour.clone(), clock.clone(), mark).without_truth();
    let there = (clock, mark, Arc::new(bus));
    let workload = planted.workload.clone();
    let run = simulate_on(
        workload,
        behaviour,
        Settings::default(),
        there,
        SimulatedClient::default(),
    );
    run.expect("a sound workload").trial
}

/// Verdicts of a kind of case: how many got each.
type VerdictCounts = BTreeMap<Status, u32>;

/// A kind of case: what is true, seconds of measurement, arrivals, delivery.
type Kind = (Truth, u64, usize, usize);

fn counted(found: &VerdictCounts, status: Status) -> u32 {
    found.get(&status).copied().unwrap_or(0)
}

fn sweep(cases: &[Case]) -> Vec<(Case, Truth, Trial)> {
    planted::of_each(cases, |case| {
        let planted = case.plant();
        let trial = trial(&planted);
        (*case, truth(case, &planted, &trial), trial)
    })
}

/// Where the table stands.
const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verdicts.md");
/// Trials of each case in the table that stands there.
const SEEDS: u64 = 20;
const BEGIN: &str = "<!-- sweep: begin -->\n";
const END: &str = "<!-- sweep: end -->";

#[test]
fn verdicts_tell_overload_from_room_to_spare() {
    let seeds = std::env::var("PUBGAUGE_SWEEP").ok();
    let seeds = seeds.map_or(1, |n| n.parse().expect("PUBGAUGE_SWEEP is a count"));
    let mut found: BTreeMap<Kind, VerdictCounts> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (case, truth, trial) in sweep(&Case::all(seeds)) {
        let status = trial.verdict.status;
        let kind = (truth, case.seconds, case.arrivals, case.delivery);
        *found.entry(kind).or_default().entry(status).or_default() += 1;
        if Some(status) == truth.wrong() {
            let Planted {
                workload,
                behaviour,
            } = case.plant();
            let arrivals = &workload.flows[0].arrivals;
            wrong.push(format!("{status:?} {case:?} {arrivals:?} {behaviour:?}"));
        }
    }
    let table = table(&found);
    println!("{table}\n{}", wrong.join("\n"));
    for truth in [Truth::TooMuch, Truth::Spare] {
        let of_truth = || found.iter().filter(|((of, ..), _)| *of == truth);
        let all: u32 = of_truth().flat_map(|(_, found)| found.values()).sum();
        let wrong = truth.wrong().expect("one of them is");
        let wrong: u32 = of_truth().map(|(_, found)| counted(found, wrong)).sum();
        assert!(
            all > 100 && wrong * 100 <= all,
            "{truth:?}: {wrong} of {all}"
        );
        // Half a minute is long enough for all that is planted but seldom pauses.
        let long = || of_truth().filter(|((_, seconds, ..), _)| *seconds == 30);
        let short: u32 = long()
            .map(|(_, found)| counted(found, Status::TooShort))
            .sum();
        let all: u32 = long().flat_map(|(_, found)| found.values()).sum();
        assert!(short * 20 <= all, "{truth:?}: {short} of {all} too short");
    }
    if seeds == SEEDS {
        let docs = std::fs::read_to_string(DOCS).expect("the page is there");
        let from = docs.find(BEGIN).expect("its beginning is marked") + BEGIN.len();
        let to = docs.find(END).expect("its end is marked");
        if std::env::var("PUBGAUGE_SWEEP_WRITE").is_ok() {
            let docs = format!("{}{table}{}", &docs[..from], &docs[to..]);
            std::fs::write(DOCS, docs).expect("the page can be written");
        } else {
            assert_eq!(&docs[from..to], table, "PUBGAUGE_SWEEP_WRITE=1 writes it");
        }
    }
}

/// The table of the page.
fn table(found: &BTreeMap<Kind, VerdictCounts>) -> String {
    let verdicts = [
        Status::Valid,
        Status::TooShort,
        Status::Unsteady,
        Status::Overloaded,
    ];
    let mut out = String::from("| offered | measured | arrivals | delivery |");
    verdicts
        .iter()
        .for_each(|status| out += &format!(" {} |", status.as_str()));
    out += "\n|---|---|---|---|---|---|---|---|\n";
    for truth in [Truth::TooMuch, Truth::Spare] {
        let mut all = VerdictCounts::new();
        let mut row = |head: &str, found: &VerdictCounts| {
            let _ = write!(out, "| {} | {head} |", truth.words());
            for status in verdicts {
                let _ = write!(out, " {} |", counted(found, status));
            }
            out.push('\n');
        };
        for ((of, seconds, arrivals, delivery), found) in found {
            if *of == truth {
                let (arrivals, delivery) = (ARRIVALS[*arrivals], DELIVERIES[*delivery]);
                row(&format!("{seconds} s | {arrivals} | {delivery}"), found);
                for (status, count) in found {
                    *all.entry(*status).or_default() += count;
                }
            }
        }
        row("all | all | all", &all);
    }
    out
}

/// Runs `workload` on a system, measured for so long, over many seeds, each of which begins elsewhere in the cycles
/// of arrivals and system.
fn each(seconds: f64, arrivals: &Arrivals, behaves: impl Fn(u64) -> Behaviour) -> Vec<Trial> {
    let of_seed = |seed: u64| {
        let mut workload = Workload::fan(100, 1, arrivals.clone());
        workload.seed = seed;
        workload.phases.warm_up = Until::Time(SECOND + seed * 370 * MS);
        workload.phases.measure = Until::Time((seconds * 1e9) as u64);
        workload.phases.drain_within = 20 * SECOND;
        let behaviour = Behaviour {
            seed,
            ..behaves(seed)
        };
        trial(&Planted {
            workload,
            behaviour,
        })
    };
    (0..8).map(of_seed).collect()
}

/// All of them have this verdict.
#[track_caller]
fn all_are(trials: &[Trial], status: Status) {
    for (seed, trial) in trials.iter().enumerate() {
        let verdict = &trial.verdict;
        assert_eq!(verdict.status, status, "{seed}: {verdict:#?}");
    }
}

/// None of them has this verdict.
#[track_caller]
fn none_is(trials: &[Trial], status: Status) {
    for (seed, trial) in trials.iter().enumerate() {
        let verdict = &trial.verdict;
        assert_ne!(verdict.status, status, "{seed}: {verdict:#?}");
    }
}

/// A server that takes so many messages a second.
fn takes(per_s: f64) -> Behaviour {
    Behaviour {
        service_ns: (1e9 / per_s) as u64,
        ..Behaviour::default()
    }
}

fn on_off(per_s: f64, on: u64, off: u64) -> Arrivals {
    Arrivals::OnOff {
        per_s: Some(per_s),
        on: on * SECOND,
        off: off * SECOND,
    }
}

#[test]
fn a_hundred_meters_every_two_seconds_are_too_much_for_less() {
    let meters = Arrivals::Bursts {
        messages: 1,
        every: Some(2 * SECOND),
    };
    all_are(&each(10.0, &meters, |_| takes(41.67)), Status::Overloaded);
    all_are(&each(10.0, &meters, |_| takes(60.0)), Status::Valid);
    for seconds in [2.0, 4.0] {
        none_is(&each(seconds, &meters, |_| takes(41.67)), Status::Valid);
        none_is(&each(seconds, &meters, |_| takes(60.0)), Status::Overloaded);
    }
}

#[test]
fn bursts_of_a_second_are_too_much_for_less() {
    for carries in [850.0, 900.0] {
        let trials = each(10.0, &on_off(2_000.0, 1, 1), |_| takes(carries));
        all_are(&trials, Status::Overloaded);
    }
    all_are(
        &each(10.0, &on_off(2_000.0, 1, 1), |_| takes(1_150.0)),
        Status::Valid,
    );
    // One second of five, 20 % too much: two cycles are too short, and four are not.
    let seldom = on_off(5_000.0, 1, 4);
    none_is(
        &each(10.0, &seldom, |_| takes(1_000.0 / 1.2)),
        Status::Valid,
    );
    all_are(
        &each(20.0, &seldom, |_| takes(1_000.0 / 1.2)),
        Status::Overloaded,
    );
}

#[test]
fn bursts_that_end_before_the_next_are_no_overload() {
    // Half of the capacity, 3 s of 10 s; 70 % of it, 2 s of 5 s.
    for (arrivals, carries) in [
        (on_off(1_000.0, 3, 7), 600.0),
        (on_off(1_000.0, 2, 3), 400.0 / 0.7),
    ] {
        none_is(
            &each(10.0, &arrivals, |_| takes(carries)),
            Status::Overloaded,
        );
        all_are(&each(30.0, &arrivals, |_| takes(carries)), Status::Valid);
    }
}

#[test]
fn a_server_that_pauses_and_does_not_catch_up_is_overloaded() {
    // 0.5 s of 5 s, and 934/s of 1,000/s over all.
    let behaves = |seed: u64| Behaviour {
        pauses: Some(Pauses {
            first_ns: seed * 600 * MS,
            lasts_ns: SECOND / 2,
            every_ns: 5 * SECOND,
        }),
        ..takes(934.0 / 0.9)
    };
    let steady = Arrivals::Periodic { per_s: 1_000.0 };
    none_is(&each(10.0, &steady, behaves), Status::Valid);
    all_are(&each(20.0, &steady, behaves), Status::Overloaded);
}

#[test]
fn a_pause_that_is_caught_up_is_unsteady() {
    let steady = Arrivals::Periodic { per_s: 1_000.0 };
    let pause = |first_ns| Behaviour {
        pauses: Some(Pauses {
            first_ns,
            lasts_ns: 3 * SECOND / 2,
            every_ns: 0,
        }),
        ..takes(1_250.0)
    };
    // 6 s after it, all of its backlog is gone. The measurement begins after 1 s, and later.
    let within = |seed: u64| pause(SECOND + 20 * MS + seed * 370 * MS + 100 * MS * seed);
    all_are(&each(10.0, &steady, within), Status::Unsteady);
    // Wherever it is.
    for late in 0..10 {
        let at = |seed: u64| pause(SECOND + seed * 370 * MS + late * SECOND);
        let trials = each(10.0, &steady, at);
        none_is(&trials, Status::Overloaded);
        none_is(&trials, Status::Valid);
    }
}

#[test]
fn lumps_that_are_too_few_are_too_short() {
    let steady = Arrivals::Periodic { per_s: 1_000.0 };
    for (too_much, lumps) in [(1.5, SECOND), (1.1, SECOND / 2)] {
        let behaves = |_| Behaviour {
            lumps_ns: lumps,
            ..takes(1_000.0 / too_much)
        };
        let trials = each(2.0, &steady, behaves);
        none_is(&trials, Status::Valid);
        // As long as it says, it knows.
        let needs = trials
            .iter()
            .filter_map(|t| t.verdict.needs_s)
            .fold(2.0, f64::max);
        assert!(needs < 10.0, "{needs}");
        all_are(&each(needs.ceil(), &steady, behaves), Status::Overloaded);
        let carries = |_| Behaviour {
            lumps_ns: lumps,
            ..takes(1_200.0)
        };
        none_is(&each(2.0, &steady, carries), Status::Overloaded);
    }
}

/// A rate that comes in lumps is as exact as the lumps are short.
#[test]
fn a_rate_in_lumps_is_known_or_too_short() {
    let behaves = |seed| Behaviour {
        lumps_ns: SECOND,
        publish_cost_ns: 10_000,
        capacity: 15_000,
        seed,
        ..takes(10_000.0)
    };
    let trials = each(2.5, &Arrivals::FlatOut, behaves);
    all_are(&trials, Status::TooShort);
    let off = |trial: &Trial| (trial.messages.delivered_msgs_per_s / 10_000.0 - 1.0).abs();
    assert!(
        trials.iter().any(|trial| off(trial) > 0.15),
        "the edges show"
    );
    for trial in &trials {
        let needs = trial.verdict.needs_s.expect("it was too short");
        assert!((15.0..22.0).contains(&needs), "{needs}");
    }
    for trial in each(22.0, &Arrivals::FlatOut, behaves) {
        assert_ne!(
            trial.verdict.status,
            Status::TooShort,
            "{:?}",
            trial.verdict
        );
        assert!(
            off(&trial) <= 0.05,
            "{}",
            trial.messages.delivered_msgs_per_s
        );
    }
}

/// A step of capacity in the middle: what comes after it counts.
#[test]
fn a_step_of_capacity_is_seen() {
    let steady = Arrivals::Periodic { per_s: 1_000.0 };
    let step = |to: f64, at: u64| Behaviour {
        service_later: vec![(at, (1e9 / to) as u64)],
        ..takes(1_300.0)
    };
    // From near the start on, 20 % too little; for a second in the middle, which is caught up.
    let later = |seed: u64| step(800.0, SECOND + seed * 370 * MS + 2 * SECOND);
    none_is(&each(10.0, &steady, later), Status::Valid);
    all_are(&each(30.0, &steady, later), Status::Overloaded);
    let short = |seed: u64| Behaviour {
        service_later: [(4, 500.0), (5, 1_300.0)]
            .map(|(s, per_s)| (seed * 370 * MS + s * SECOND, (1e9 / per_s) as u64))
            .into(),
        ..takes(1_300.0)
    };
    none_is(&each(10.0, &steady, short), Status::Overloaded);
}
