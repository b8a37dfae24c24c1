//! Runs with a planted truth.
#![allow(dead_code)] // Each test file uses its own part.

use std::collections::BTreeMap;

use pubgauge_claims::{
    Absent, CellKey, Figures, Finding, MeasuredRun, Observation, Outcome, SearchedLimit, judge,
};
use pubgauge_figures::rule::{
    Bounds, CellFilter, Claim, ClaimPart, ClaimRule, Judge, Points, Side,
};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, Normal};

/// One value for every figure but those that are named.
pub struct Planted {
    pub value: f64,
    pub named: BTreeMap<String, f64>,
    pub windows: Vec<f64>,
    pub slowed: bool,
    /// Times below this contain the stops of a quota.
    pub stretched_below: f64,
}

impl Figures for Planted {
    fn figure(&self, _: Option<&str>, name: &str) -> Option<f64> {
        self.named.get(name).copied().or(Some(self.value))
    }

    fn windows(&self, _: Option<&str>, _: &str) -> Vec<f64> {
        self.windows.clone()
    }

    fn is_slowed(&self, _: &str) -> bool {
        self.slowed
    }

    fn is_stretched(&self, name: &str, value: f64) -> bool {
        name.contains("latency") && value < self.stretched_below
    }
}

pub struct Trial {
    pub cell: CellKey,
    pub repeat: u32,
    pub round: u32,
    pub verdict: String,
    pub figures: Planted,
}

/// Trials whose truth is known, with noise drawn from a seed.
pub struct World {
    pub trials: Vec<Trial>,
    pub limits: Vec<SearchedLimit>,
    pub absent: Vec<Absent>,
    /// Of each cell that ran on one.
    pub networks: BTreeMap<CellKey, Vec<String>>,
    pub scale: Option<String>,
    pub in_rounds: bool,
    pub day: Option<String>,
    rng: StdRng,
}

impl World {
    pub fn new(seed: u64) -> World {
        World {
            trials: Vec::new(),
            limits: Vec::new(),
            absent: Vec::new(),
            networks: BTreeMap::new(),
            scale: None,
            in_rounds: false,
            day: None,
            rng: StdRng::seed_from_u64(seed),
        }
    }

    pub fn noise(&mut self, sd: f64) -> f64 {
        Normal::new(0.0, sd)
            .expect("a standard deviation")
            .sample(&mut self.rng)
    }

    /// `repeats` trials of a system at a payload with log-normal noise around `truth`.
    pub fn plant(&mut self, system: &str, payload: &str, truth: f64, sd: f64, repeats: u32) {
        for repeat in 1..=repeats {
            let value = truth * self.noise(sd).exp();
            self.exactly(system, payload, repeat, value);
        }
    }

    /// One trial.
    pub fn exactly(&mut self, system: &str, payload: &str, repeat: u32, value: f64) {
        self.trials.push(Trial {
            cell: cell(system, payload),
            repeat,
            round: 0,
            verdict: "valid".into(),
            figures: Planted {
                value,
                named: BTreeMap::new(),
                windows: Vec::new(),
                slowed: false,
                stretched_below: 0.0,
            },
        });
    }

    /// The trials of a system ran on a network with this property.
    pub fn on_network(&mut self, system: &str, words: &str) {
        let own = self
            .trials
            .iter()
            .filter(|trial| trial.cell.system == system);
        let own = own.map(|trial| (trial.cell.clone(), vec![words.to_owned()]));
        self.networks.extend(own);
    }

    pub fn limit(&mut self, system: &str, low: f64, high: f64) {
        let cell = CellKey {
            system: system.into(),
            ..CellKey::default()
        };
        self.limits.push(SearchedLimit { cell, low, high });
    }

    /// A cell without a trial.
    pub fn absent(&mut self, system: &str, payload: &str, reason: &str) {
        self.absent.push(Absent {
            cell: cell(system, payload),
            reason: reason.into(),
        });
    }

    pub fn judge(&self, claim: &Claim) -> Finding {
        self.as_run(|run| judge(claim, run))
    }

    /// Its trials as a run, by `of`.
    pub fn as_run<T>(&self, of: impl FnOnce(&MeasuredRun<'_>) -> T) -> T {
        let trials = self.trials.iter().map(|t| Observation {
            cell: t.cell.clone(),
            repeat: t.repeat,
            round: t.round,
            verdict: t.verdict.clone(),
            void: None,
            figures: &t.figures,
        });
        let show = |_: &str, value: f64| pubgauge_quantities::shown::number(value);
        of(&MeasuredRun {
            trials: trials.collect(),
            limits: self.limits.clone(),
            absent: self.absent.clone(),
            networks: self.networks.clone(),
            in_rounds: self.in_rounds,
            scale: self.scale.clone(),
            day: self.day.clone(),
            claim_rules: BTreeMap::new(),
            show: &show,
        })
    }

    pub fn outcome(&self, rule: ClaimRule) -> Outcome {
        self.judge(&claim(vec![rule])).outcome
    }
}

pub fn cell(system: &str, payload: &str) -> CellKey {
    CellKey {
        system: system.into(),
        settings: "default".into(),
        workload: "flood".into(),
        axes: vec![("payload".into(), payload.into())],
    }
}

pub fn side(name: &str) -> Side {
    Side {
        name: name.into(),
        choice: None,
        alternatives: vec![CellFilter::from([("system".into(), vec![name.into()])])],
    }
}

pub fn rule(sides: &[&str], judge: Judge) -> ClaimRule {
    ClaimRule {
        figure: "delivered-rate".into(),
        filter: CellFilter::new(),
        along: Some("payload".into()),
        points: Points::Every,
        sides: sides.iter().map(|name| side(name)).collect(),
        against: Vec::new(),
        gap: false,
        judge,
        wide: false,
        blocks: None,
        paired: false,
        margin: 0.0,
        verdicts: Vec::new(),
        leave_out: Vec::new(),
    }
}

pub fn above(c: f64) -> Judge {
    Judge::Ratio(Bounds::above(c))
}

pub fn claim(rules: Vec<ClaimRule>) -> Claim {
    let one = rules.len() == 1;
    let part = |(at, rule): (usize, ClaimRule)| ClaimPart {
        name: if one {
            String::new()
        } else {
            ((b'a' + at as u8) as char).to_string()
        },
        rule: Some(rule),
        ..ClaimPart::default()
    };
    Claim {
        id: "T01".into(),
        parts: rules.into_iter().enumerate().map(part).collect(),
        ..Claim::default()
    }
}

/// How many of `seeds` worlds have each outcome.
pub fn tally(seeds: u64, world: impl Fn(&mut World), claim: &Claim) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for seed in 0..seeds {
        let mut planted = World::new(seed);
        world(&mut planted);
        *counts
            .entry(planted.judge(claim).outcome.to_string())
            .or_insert(0) += 1;
    }
    counts
}

/// The planted truth is found in at least 99 of 100 seeds.
#[track_caller]
pub fn found(outcome: Outcome, claim: &Claim, world: impl Fn(&mut World)) {
    let counts = tally(200, world, claim);
    let right = counts.get(&outcome.to_string()).copied().unwrap_or(0);
    assert!(right >= 198, "{outcome}: {counts:?}");
}

/// A planted truth is called `outcome` in at most 5 of 100 seeds.
#[track_caller]
pub fn seldom(outcome: Outcome, claim: &Claim, world: impl Fn(&mut World)) {
    let counts = tally(400, world, claim);
    let wrong = counts.get(&outcome.to_string()).copied().unwrap_or(0);
    assert!(wrong <= 20, "{outcome}: {counts:?}");
}

/// A planted null is called "holds" in at most 5 of 100 seeds.
#[track_caller]
pub fn null(claim: &Claim, world: impl Fn(&mut World)) {
    seldom(Outcome::Holds, claim, world);
}
