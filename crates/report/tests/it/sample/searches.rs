//! Three searches: a limit with its interval, a client that stays the limit, and a system that carries
//! no load at all within what is asked.

use pubgauge_figures::figure::Unit;
use pubgauge_figures::search::{
    Bottleneck, GaveWay, LimitedBy, NoteOf, Purpose, Search, SearchNote, SearchStep, SearchTrial,
    StepOutcome,
};
use pubgauge_figures::{Reason, Rule};

use super::*;

/// Loads of a search as shares of its limit, with what each is for and what it told.
type Steps = [(Purpose, Option<f64>, StepOutcome)];

use Purpose::{Cost, FlatOut, Long, Short};
use StepOutcome::{Beyond, Client, Nothing, Within};

const MOSQUITTO: [(Purpose, Option<f64>, StepOutcome); 14] = [
    (FlatOut, None, Beyond),
    (Short, Some(214e3), Within),
    (Short, Some(240e3), Beyond),
    (Short, Some(206e3), Within),
    (Short, Some(226e3), Beyond),
    (Short, Some(211e3), Nothing),
    (Short, Some(211e3), Within),
    (Short, Some(219e3), Beyond),
    (Short, Some(203e3), Within),
    (Short, Some(216e3), Beyond),
    (Short, Some(209e3), Within),
    (Long, Some(207e3), Within),
    (Cost, Some(106e3), Within),
    (Cost, Some(190e3), Within),
];

const ZEROMQ: [(Purpose, Option<f64>, StepOutcome); 8] = [
    (FlatOut, None, Client),
    (Short, Some(1.31e6), Client),
    (Short, Some(1.02e6), Client),
    (Short, Some(0.88e6), Within),
    (Short, Some(0.96e6), Within),
    (Long, Some(0.96e6), Within),
    (Cost, Some(0.48e6), Within),
    (Cost, Some(0.864e6), Within),
];

const RABBITMQ: [(Purpose, Option<f64>, StepOutcome); 6] = [
    (FlatOut, None, Beyond),
    (Short, Some(31e3), Beyond),
    (Short, Some(3.1e3), Beyond),
    (Short, Some(310.0), Beyond),
    (Short, Some(31.0), Beyond),
    (Short, Some(1.0), Beyond),
];

pub fn run() -> (Results, Logs) {
    let (mut all, mut logs) = of(&[], 1, |_| true);
    all.study.name = "how far".into();
    all.study.question = Some("How far will it go?".into());
    all.study.criteria.clear();
    all.study.criterion_specs.clear();
    all.searches = vec![
        Search {
            low: Some(207e3),
            high: Some(217e3),
            confirmed: Some(207e3),
            bound: LimitedBy::System,
            gave_way: Some(gave_way(
                Bottleneck::Thread,
                0.984,
                Unit::Share,
                "its busiest thread used 98.4 % of a core",
            )),
            ..search(&mut all, &mut logs, 1, &MOSQUITTO)
        },
        Search {
            low: Some(0.96e6),
            confirmed: Some(0.96e6),
            bound: LimitedBy::Client,
            gave_way: Some(gave_way(
                Bottleneck::Client,
                0.97,
                Unit::Share,
                "the busiest client thread used 97 % of a core",
            )),
            notes: vec![
                SearchNote::new(
                    NoteOf::Client,
                    "the client is the limit: more workers or processes would find more",
                ),
                SearchNote::new(NoteOf::NoLongTrial, "in trials of 2 s"),
            ],
            ..search(&mut all, &mut logs, 2, &ZEROMQ)
        },
        Search {
            high: Some(1.0),
            bound: LimitedBy::System,
            gave_way: Some(gave_way(
                Bottleneck::Latency,
                412e6,
                Unit::Nanoseconds,
                "p99 was 412 ms where 100 ms are allowed",
            )),
            notes: vec![SearchNote::new(NoteOf::NoLongTrial, "in trials of 2 s")],
            ..search(&mut all, &mut logs, 4, &RABBITMQ)
        },
    ];
    all.study.planned_trials = all.trials.len() as u32;
    (all, logs)
}

fn gave_way(what: Bottleneck, figure: f64, unit: Unit, words: &str) -> GaveWay {
    GaveWay {
        what,
        figure,
        unit,
        words: words.into(),
    }
}

/// The trials of a search on a profile, added to the run; what they found is left open.
fn search(all: &mut Results, logs: &mut Logs, at: usize, steps: &Steps) -> Search {
    let profile = &PROFILES[at];
    let number = match all.trials.last().and_then(|trial| trial.search) {
        Some(step) => step.search + 1,
        None => 0,
    };
    let trials = steps.iter().map(|(purpose, load, finding)| {
        let id = all.trials.len() as u32;
        let of_load = Load {
            name: "meters",
            publishers: 100,
            topics: 100,
            payload: "64 B",
            arrivals: "flat out",
            rate: *load,
        };
        let (mut trial, interval) = trial(id, at, profile, &of_load, 1);
        trial.cell = format!("{} {load:?}", profile.name);
        trial.search = Some(SearchStep {
            search: number,
            purpose: *purpose,
            load: *load,
        });
        if let Some(load) = load {
            trial.workload.arrivals = format!("{load}/s");
            // The queue is longer the nearer the limit is.
            let slower = 1.0 / (1.0 - (load / profile.capacity).min(0.98));
            for ns in [
                &mut trial.messages.latency_ns.p50,
                &mut trial.messages.latency_ns.p99,
            ] {
                *ns = ns.map(|ns| (ns as f64 * slower) as u64);
            }
        }
        if *purpose == Long {
            trial.duration_s = 60.0;
        }
        let (status, why) = match finding {
            Within => (Status::Valid, Vec::new()),
            Client => (
                Status::ClientBound,
                vec!["a publishing worker was busy for 97 % of the time".to_owned()],
            ),
            Beyond => (
                Status::Overloaded,
                vec!["the backlog grew by 812 messages a second".to_owned()],
            ),
            Nothing => (
                Status::Unsteady,
                vec!["the rate fell by 9 % within the trial".to_owned()],
            ),
        };
        trial.verdict = Verdict {
            status,
            reasons: (why.iter())
                .map(|why| Reason::new(Rule::QueueGrew, why))
                .collect(),
            ..Verdict::default()
        };
        let step = SearchTrial {
            id,
            purpose: *purpose,
            load: *load,
            achieved: trial.messages.delivered_msgs_per_s,
            finding: *finding,
            why,
        };
        all.trials.push(trial);
        logs.insert(id, vec![interval]);
        step
    });
    let trials = trials.collect();
    Search {
        system: profile.name.into(),
        settings: String::new(),
        workload: "meters".into(),
        axes: Vec::new(),
        axis: pubgauge_figures::search::Axis::Rate,
        low: None,
        high: None,
        confirmed: None,
        bound: LimitedBy::System,
        gave_way: None,
        notes: Vec::new(),
        bursts: None,
        trials,
    }
}
