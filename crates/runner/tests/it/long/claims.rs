//! Claims over the simulated system, in simulated time, through all that a real one goes through: study,
//! workload, engine, figures, verdict, claims. What it does is planted.

use std::path::Path;
use std::sync::Mutex;

use pubgauge_conclusions::claims::judge;
use pubgauge_driver::{Nanos, Settings};
use pubgauge_figures::claim::ClaimVerdict;
use pubgauge_figures::claim::ClaimVerdict::{DoesNotHold, Holds};
use pubgauge_figures::rule::Claim;
use pubgauge_figures::{AxisValue, Results, Status, Trial};
use pubgauge_runner::simulated::simulate;
use pubgauge_simulator::Behaviour;
use pubgauge_study::{PlanOptions, Study};
use pubgauge_workload::{Arrivals, SECOND, Until, Workload};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Normal};

const SIZES: [&str; 3] = ["64B", "512B", "2KiB"];
const REPEATS: u32 = 5;
const SEEDS: u64 = 100;

fn claim(rule: &str) -> Claim {
    let text = format!(
        "name = \"t\"\nsystems = \"available\"\n[[workload]]\nname = \"w\"\nflow = [{{ payload = \"64B\", rate = \"1/s\" }}]\n\
         [[claim]]\nid = \"T01\"\nsentence = \"s\"\nsource = \"t\"\n{rule}\n"
    );
    let options = PlanOptions::with_systems(["a"]);
    let study = Study::parse("t.toml", &text, Path::new(".")).unwrap_or_else(|e| panic!("{e}"));
    let mut plan = study.plan(&options).unwrap_or_else(|e| panic!("{e}"));
    plan.claims.remove(0)
}

/// System, load and repeat of a trial.
struct Of<'a> {
    system: &'a str,
    size: &'a str,
    repeat: u32,
}

/// A trial of 0.4 s in simulated time.
fn trial(of: &Of<'_>, arrivals: Arrivals, behaviour: Behaviour) -> Trial {
    lasting(2 * SECOND / 5, of, arrivals, behaviour)
}

fn lasting(measure: Nanos, of: &Of<'_>, arrivals: Arrivals, behaviour: Behaviour) -> Trial {
    let mut workload = Workload::fan(1, 1, arrivals);
    workload.phases.warm_up = Until::Time(SECOND / 20);
    workload.phases.measure = Until::Time(measure);
    workload.phases.drain_within = 2 * SECOND;
    for flow in &mut workload.flows {
        flow.window = Some(20);
    }
    let run = simulate(workload, behaviour, Settings::default()).unwrap_or_else(|e| panic!("{e}"));
    let mut trial = run.trial;
    assert_eq!(trial.verdict.status, Status::Valid, "{:?}", trial.verdict);
    trial.system.name = of.system.into();
    trial.settings_name = "default".into();
    trial.repeat = of.repeat;
    trial.axes = vec![AxisValue {
        name: "workload.w.flow.payload".into(),
        value: of.size.into(),
    }];
    trial
}

/// Messages that a system delays: it takes `us` for each, more or less.
fn delayed(of: &Of<'_>, us: f64, draws: &mut StdRng) -> Trial {
    let behaviour = Behaviour {
        delay_median_ns: (1e3 * us) as u64,
        delay_sigma: 0.2,
        seed: draws.random(),
        ..Behaviour::default()
    };
    trial(of, Arrivals::Periodic { per_s: 500.0 }, behaviour)
}

/// A flood of a system that takes so many a second.
fn flooded(of: &Of<'_>, per_s: f64, draws: &mut StdRng) -> Trial {
    let behaviour = Behaviour {
        service_ns: (1e9 / per_s) as u64,
        seed: draws.random(),
        ..Behaviour::default()
    };
    trial(of, Arrivals::FlatOut, behaviour)
}

fn noise(sd: f64, draws: &mut StdRng) -> f64 {
    Normal::new(0.0f64, sd).unwrap().sample(draws).exp()
}

fn results(trials: Vec<Trial>) -> Results {
    Results {
        trials,
        ..Results::default()
    }
}

/// How often each seed's run has this outcome.
fn outcomes(
    claim: &Claim,
    wanted: ClaimVerdict,
    run: impl Fn(&mut StdRng) -> Vec<Trial> + Sync,
) -> usize {
    let count = Mutex::new(0);
    std::thread::scope(|scope| {
        for first in 0..2 {
            let (count, run) = (&count, &run);
            scope.spawn(move || {
                for seed in (first..SEEDS).step_by(2) {
                    let trials = run(&mut StdRng::seed_from_u64(seed));
                    let found = &judge(&results(trials), std::slice::from_ref(claim))[0];
                    *count.lock().unwrap() += usize::from(found.outcome == wanted);
                }
            });
        }
    });
    count.into_inner().unwrap()
}

#[track_caller]
fn found(claim: &Claim, wanted: ClaimVerdict, run: impl Fn(&mut StdRng) -> Vec<Trial> + Sync) {
    let right = outcomes(claim, wanted, run);
    assert!(right >= 99, "{wanted:?} in {right} of {SEEDS}");
}

#[track_caller]
fn null(claim: &Claim, run: impl Fn(&mut StdRng) -> Vec<Trial> + Sync) {
    let wrong = outcomes(claim, Holds, run);
    assert!(wrong <= 5, "holds in {wrong} of {SEEDS}");
}

/// Systems with a level for each size, 5 % noise from trial to trial.
fn run(
    systems: &[(&str, &[f64])],
    sd: f64,
    of: fn(&Of<'_>, f64, &mut StdRng) -> Trial,
    draws: &mut StdRng,
) -> Vec<Trial> {
    let mut trials = Vec::new();
    for repeat in 1..=REPEATS {
        for (system, levels) in systems {
            for (size, level) in SIZES.iter().zip(*levels) {
                let of_cell = Of {
                    system,
                    size,
                    repeat,
                };
                trials.push(of(&of_cell, level * noise(sd, draws), draws));
            }
        }
    }
    trials
}

#[test]
fn orderings() {
    let order = claim(
        "figure = \"delivered-rate\"\nrule = { sides = [\"a\", \"b\", \"c\"], ratio = \"> 1\" }",
    );
    let of = |levels: [f64; 3]| {
        move |draws: &mut StdRng| {
            let [a, b, c] = levels.map(|level| [level]);
            run(&[("a", &a), ("b", &b), ("c", &c)], 0.05, flooded, draws)
        }
    };
    found(&order, Holds, of([900.0, 600.0, 400.0]));
    found(&order, DoesNotHold, of([400.0, 600.0, 300.0]));
    null(&order, of([900.0, 600.0, 600.0]));
}

#[test]
fn crossovers() {
    let cross = claim(
        "figure = \"latency.p50\"\nalong = \"payload\"\n\
         rule = { sides = [\"a\", \"b\"], cross = [\"512B\", \"2KiB\"] }",
    );
    let of = |a: [f64; 3], b: [f64; 3]| {
        move |draws: &mut StdRng| run(&[("a", &a), ("b", &b)], 0.05, delayed, draws)
    };
    let flat = [400.0; 3];
    found(&cross, Holds, of([700.0, 600.0, 250.0], flat));
    found(&cross, DoesNotHold, of([700.0; 3], flat));
    // A point of the first side that is the same is not against it; one that is below is, and the same throughout
    // is no crossing.
    found(&cross, Holds, of([700.0, 400.0, 250.0], flat));
    found(&cross, DoesNotHold, of([700.0, 300.0, 250.0], flat));
    null(&cross, of([400.0, 400.0, 250.0], flat));
}

/// Both sides share what the machine does in each repeat, which is far more than the change.
#[test]
fn ablations() {
    let change = claim(
        "figure = \"delivered-rate\"\nrule = { sides = [\"a\", \"b\"], ratio = \"> 1\", paired = true }",
    );
    let of = |effect: f64| {
        move |draws: &mut StdRng| {
            let mut trials = Vec::new();
            for repeat in 1..=REPEATS {
                let machine = 500.0 * noise(0.3, draws);
                for (system, factor) in [("a", effect), ("b", 1.0)] {
                    let of = Of {
                        system,
                        size: "64B",
                        repeat,
                    };
                    let per_s = machine * factor * noise(0.02, draws);
                    trials.push(flooded(&of, per_s, draws));
                }
            }
            trials
        }
    };
    found(&change, Holds, of(1.15));
    found(&change, DoesNotHold, of(0.85));
    null(&change, of(1.0));
}

/// Judges over several systems, over some parts, and over the records of a trial.
#[test]
fn gaps_parts_and_growth() {
    let gap = claim(
        "figure = \"latency.p50\"\nalong = \"payload\"\n\
         rule = { sides = [\"a\", \"b\", \"c\"], gap = true, falls = \"0%\", where = { payload = \"..512B\" } }",
    );
    let of = |a: [f64; 2], b: [f64; 2], c: [f64; 2]| {
        move |draws: &mut StdRng| run(&[("a", &a), ("b", &b), ("c", &c)], 0.05, delayed, draws)
    };
    found(
        &gap,
        Holds,
        of([900.0, 300.0], [200.0, 500.0], [500.0, 400.0]),
    );
    null(&gap, of([600.0; 2], [300.0; 2], [300.0; 2]));
    let any = claim(
        "figure = \"latency.p50\"\nrule = [{ any = [\n\
           { sides = [\"a\", \"b\"], ratio = \"< 1\", where = { payload = \"64B\" } },\n\
           { sides = [\"a\", \"b\"], ratio = \"< 1\", where = { payload = \"512B\" } },\n\
         ] }]",
    );
    let two = |a: [f64; 2]| {
        move |draws: &mut StdRng| run(&[("a", &a), ("b", &[400.0; 2])], 0.05, delayed, draws)
    };
    found(&any, Holds, two([500.0, 300.0]));
    null(&any, two([400.0; 2]));
    // A system that becomes slower in the middle of the measurement.
    let grows =
        claim("figure = \"latency.p50.growth\"\nrule = { sides = [\"a\"], value = \"> 1\" }");
    let slower = |later: u64| {
        move |draws: &mut StdRng| {
            let repeats = 1..=REPEATS;
            let one = |repeat| {
                let behaviour = Behaviour {
                    delay_sigma: 0.3,
                    service_ns: SECOND / 2000,
                    service_later: vec![(SECOND / 2, later)],
                    seed: draws.random(),
                    ..Behaviour::default()
                };
                let of = Of {
                    system: "a",
                    size: "64B",
                    repeat,
                };
                // Ten records.
                lasting(SECOND, &of, Arrivals::Periodic { per_s: 500.0 }, behaviour)
            };
            repeats.map(one).collect()
        }
    };
    found(&grows, Holds, slower(SECOND / 600));
    null(&grows, slower(SECOND / 2000));
}
