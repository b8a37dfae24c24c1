//! Searches over systems whose limit is known: how often the interval holds it, and what it costs.

use std::sync::Mutex;

use pubgauge_search::{
    LimitEstimate, LimitedBy, Question, Step, StepOutcome, StepTaken, estimate_limit, next,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Normal};

/// A system as a search sees it.
#[derive(Clone, Copy)]
struct Planted {
    /// Its limit, messages a second.
    limit: f64,
    /// Standard deviation of the logarithm of what it carries in one trial.
    noise: f64,
    /// One trial in ten finds it 15 % slower.
    outliers: bool,
    /// Its limit once long trials have begun to tell, as a share.
    lasting: f64,
    /// Its deliveries when more is offered, as a share.
    overloaded: f64,
    /// The most that the client can offer.
    client: f64,
    /// The client's offers once long trials have begun to tell, as a share.
    client_lasting: f64,
    /// Standard deviation of the logarithm of what the machine carries beside that: it wanders over a minute.
    wander: f64,
    /// The cost of a message is this power of the load; absent: it is not known.
    cost_follows: Option<f64>,
    /// Chance that a trial calls the system the bottleneck where the client is.
    blamed: f64,
}

impl Planted {
    fn of(limit: f64, noise: f64) -> Planted {
        Planted {
            limit,
            noise,
            outliers: false,
            lasting: 1.0,
            overloaded: 1.0,
            client: f64::INFINITY,
            client_lasting: 1.0,
            wander: 0.0,
            cost_follows: None,
            blamed: 0.0,
        }
    }

    /// `speed` of the machine: the logarithm of what it carries, against its mean.
    fn trial(&self, step: Step, speed: f64, draws: &mut StdRng) -> StepTaken {
        let noise = Normal::new(0.0, self.noise).expect("a deviation");
        let slow = self.outliers && draws.random_bool(0.1);
        let (lasting, client_lasting) = if matches!(step, Step::Long(_)) {
            (self.lasting, self.client_lasting)
        } else {
            (1.0, 1.0)
        };
        let drawn = noise.sample(draws).exp() * if slow { 0.85 } else { 1.0 };
        let takes = self.limit * lasting * drawn * speed.exp();
        // The client wanders as any program does.
        let offers = self.client * client_lasting * noise.sample(draws).exp();
        let (load, seconds) = match step {
            Step::FlatOut => (offers.min(1e9), 5.0),
            Step::Short(load) | Step::Cost(load) => (load, 5.0),
            Step::Long(load) => (load, 45.0),
            Step::End => unreachable!("the search is over"),
        };
        let finding = match () {
            () if load > offers && draws.random_bool(self.blamed) => StepOutcome::Beyond,
            () if load > offers => StepOutcome::Client,
            () if load > takes => StepOutcome::Beyond,
            () => StepOutcome::Within,
        };
        let load = load.min(offers);
        let achieved = if load > takes {
            takes * self.overloaded
        } else {
            load
        };
        StepTaken {
            step,
            // A client that has no limit of its own hands over 20 times what the system takes.
            offered: load.min(20.0 * takes),
            achieved,
            finding,
            seconds,
            // Where the machine wanders, a message costs as much more as the system takes less.
            cost: self.cost_follows.map(|power| {
                1e-5 * (load / self.limit).powf(power) * (noise.sample(draws) - speed).exp()
            }),
            took: None,
        }
    }
}

struct Done {
    limit: f64,
    found: LimitEstimate,
    /// Without those for costs.
    trials: usize,
}

impl Done {
    fn holds(&self) -> bool {
        let (low, high) = (
            self.found.low.unwrap_or(0.0),
            self.found.high.unwrap_or(f64::INFINITY),
        );
        low <= self.limit && self.limit <= high
    }

    fn width(&self) -> f64 {
        let interval = self.found.low.zip(self.found.high);
        interval.map_or(f64::INFINITY, |(low, high)| high / low - 1.0)
    }
}

/// Correlation of the machine's speed from one short trial to the next.
const KEPT: f64 = 0.9;

fn search(planted: Planted, seed: u64) -> Done {
    let question = Question::default();
    let mut draws = StdRng::seed_from_u64(seed);
    let mut machine = StdRng::seed_from_u64(seed ^ 0xbeef);
    let wander = Normal::new(0.0, planted.wander).expect("a deviation");
    let mut speed = wander.sample(&mut machine);
    let mut seen = Vec::new();
    let mut speeds = Vec::new();
    loop {
        match next(&question, &seen) {
            Step::End => break,
            step => {
                speeds.push(speed);
                let one = planted.trial(step, speed, &mut draws);
                for _ in 0..(one.seconds / 5.0) as usize {
                    speed = KEPT * speed + (1.0 - KEPT * KEPT).sqrt() * wander.sample(&mut machine);
                }
                seen.push(one);
            }
        }
        assert!(seen.len() < 60, "it does not end");
    }
    let costs = seen
        .iter()
        .filter(|one| matches!(one.step, Step::Cost(_)))
        .count();
    Done {
        // Deliveries of the machine meanwhile.
        limit: planted.limit
            * planted.lasting
            * (speeds.iter().sum::<f64>() / speeds.len() as f64).exp(),
        found: estimate_limit(&question, &seen),
        trials: seen.len() - costs,
    }
}

/// Searches over systems with limits from 5,000 to 300,000 messages a second.
fn many(count: u64, planted: impl Fn(f64) -> Planted + Sync) -> Vec<Done> {
    let all = Mutex::new(Vec::new());
    let threads = 2;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (all, planted) = (&all, &planted);
            scope.spawn(move || {
                for seed in (thread..count).step_by(threads as usize) {
                    let mut draws = StdRng::seed_from_u64(seed ^ 0xfeed);
                    let limit = 5_000.0 * 60f64.powf(draws.random::<f64>());
                    all.lock()
                        .expect("no panic")
                        .push(search(planted(limit), seed));
                }
            });
        }
    });
    all.into_inner().expect("no panic")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// (share of intervals that hold the truth, their median width, median number of trials)
fn summed(name: &str, done: &[Done]) -> (f64, f64, f64) {
    let held = done.iter().filter(|d| d.holds()).count() as f64 / done.len() as f64;
    let width = median(done.iter().map(Done::width).collect());
    let trials = median(done.iter().map(|d| d.trials as f64).collect());
    let confirmed = done.iter().filter(|d| d.found.confirmed.is_some()).count();
    println!(
        "{name}: held {held:.3}, width {width:.3}, trials {trials}, confirmed {confirmed} of {}",
        done.len()
    );
    (held, width, trials)
}

#[test]
fn intervals_hold_the_truth() {
    let (held, width, trials) = summed("3 %", &many(300, |limit| Planted::of(limit, 0.03)));
    assert!(held >= 0.93 && width <= 0.10 && trials <= 18.0);
    let (held, width, trials) = summed("none", &many(100, |limit| Planted::of(limit, 0.0)));
    assert!(held >= 0.93 && width <= 0.10 && trials <= 18.0);
    let (held, ..) = summed("8 %", &many(100, |limit| Planted::of(limit, 0.08)));
    assert!(held >= 0.80);
}

#[test]
fn one_stray_trial_in_ten_does_not_lead_it_astray() {
    let stray = |limit| Planted {
        outliers: true,
        ..Planted::of(limit, 0.03)
    };
    let (held, ..) = summed("outliers", &many(300, stray));
    assert!(held >= 0.90);
}

#[test]
fn what_does_not_last_is_found_out() {
    let throttled = |limit| Planted {
        lasting: 0.6,
        ..Planted::of(limit, 0.03)
    };
    let done = many(100, throttled);
    let (held, ..) = summed("throttled", &done);
    assert!(held >= 0.90);
}

#[test]
fn a_system_that_delivers_less_beyond_its_limit() {
    let collapses = |limit| Planted {
        overloaded: 0.4,
        ..Planted::of(limit, 0.03)
    };
    let (held, width, _) = summed("collapses", &many(100, collapses));
    assert!(held >= 0.93 && width <= 0.10);
}

#[test]
fn the_clients_limit_is_never_the_systems() {
    // One trial in ten calls the system the bottleneck where the client is.
    the_client_is_the_limit(0.1, 25);
}

#[test]
fn a_machine_that_wanders() {
    the_machine_wanders(&[0.05]);
}

#[test]
fn a_cost_that_follows_the_load_is_no_slower_machine() {
    the_cost_follows_the_load(&[-0.5]);
}

mod long {
    use super::*;

    #[test]
    fn the_clients_limit_is_never_the_systems() {
        the_client_is_the_limit(0.0, 0);
    }

    #[test]
    fn a_machine_that_wanders() {
        the_machine_wanders(&[0.03, 0.08, 0.12]);
    }

    #[test]
    fn a_cost_that_follows_the_load_is_no_slower_machine() {
        the_cost_follows_the_load(&[-1.0, 0.0, 1.0]);
    }
}

fn the_machine_wanders(shares: &[f64]) {
    for wander in shares.iter().copied() {
        let wanders = |limit| Planted {
            wander,
            cost_follows: Some(-0.5),
            ..Planted::of(limit, 0.03)
        };
        // Of the limit on the machine as it was meanwhile.
        let (held, ..) = summed(&format!("wander {wander}"), &many(300, wanders));
        assert!(held >= 0.88);
    }
}

fn the_cost_follows_the_load(powers: &[f64]) {
    for power in powers.iter().copied() {
        let follows = |limit| Planted {
            cost_follows: Some(power),
            ..Planted::of(limit, 0.03)
        };
        let done = many(300, follows);
        let (held, width, _) = summed(&format!("cost follows {power}"), &done);
        let wandered = done.iter().filter(|d| d.found.wander.is_some()).count();
        println!("  slower at times: {wandered}");
        assert!(held >= 0.93 && width <= 0.10 && wandered <= 6);
    }
}

#[test]
fn a_client_that_does_not_last_confirms_less() {
    let tires = |limit| Planted {
        client: 0.6 * limit,
        client_lasting: 0.92,
        ..Planted::of(limit, 0.03)
    };
    let done = many(100, tires);
    let (held, _, trials) = summed("client that tires", &done);
    let confirmed = done.iter().filter(|d| d.found.confirmed.is_some()).count();
    assert!(held == 1.0 && trials <= 20.0 && confirmed >= 90);
    assert!(done.iter().all(|d| d.found.bound == LimitedBy::Client));
}

/// Of a thousand searches at most so many report as the system's limit what is the client's.
fn the_client_is_the_limit(blamed: f64, at_most: usize) {
    let mut draws = StdRng::seed_from_u64(3);
    let shares: Vec<f64> = (0..1000).map(|_| draws.random_range(0.2..1.0)).collect();
    let nth = std::sync::atomic::AtomicUsize::new(0);
    let done = many(1000, |limit| {
        let nth = nth.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Planted {
            client: limit * shares[nth],
            blamed,
            ..Planted::of(limit, 0.03)
        }
    });
    summed(&format!("client, blamed {blamed}"), &done);
    let wrong = done
        .iter()
        .filter(|d| d.found.bound == LimitedBy::System && !d.holds());
    let wrong = wrong.count();
    println!("  the system's: {wrong}");
    assert!(wrong <= at_most, "blamed {blamed}: {wrong}");
    let above = done
        .iter()
        .filter(|d| d.found.low.is_some_and(|low| low > d.limit));
    assert!(above.count() < 10);
}
