//! Tunings over a simulated system whose settings become delays: nothing runs in real time.

use std::sync::Arc;

use pubgauge_figures::model::{AxisValue, Status, Trial};
use pubgauge_runner::simulated::simulate;
use pubgauge_simulator::{Behaviour, SimulatedDriver};
use pubgauge_testbed::SystemFile;
use pubgauge_tuning::Verdict;

use super::*;
use crate::proposer::tests::prepared;
use crate::{Chosen, ClientOptions, Proposer};

const STUDY: &str = r#"
name = "made-up"
systems = ["made-up"]
seed = 7
[phases]
warm-up = "200ms"
measure = "2s"
[[settings]]
keep-alive-s = 9
[[workload]]
name = "pair"
flow = [{ payload = "64B", rate = "1k/s" }]
"#;

const SYSTEM: &str = r#"
name = "made-up"
driver = "simulated"
kind = "library"
endpoints = ["{lane}"]
[values]
lane = "{fast}{risky}"
[[tunable]]
setting = "batching"
about = "x"
values = ["off", "adaptive"]
[[tunable]]
setting = "native.simulated.closing-ns"
about = "x"
values = [1, 2]
[[tunable]]
setting = "native.simulated.grants"
about = "x"
from = 1
to = 100
scale = "log"
default = 10
[[tunable]]
setting = "keep-alive-s"
about = "x"
values = [1]
[[tunable]]
setting = "native.mqtt.no-delay"
about = "x"
values = [false]
[[tunable]]
option = "fast"
about = "x"
values = [true]
default = false
[[tunable]]
option = "risky"
about = "x"
values = [true]
default = false
gives-up = "everything"
"#;

fn tuned_prepared() -> Prepared {
    let mut prepared = prepared(STUDY);
    let file = SystemFile::parse(SYSTEM, "made-up.toml").unwrap_or_else(|e| panic!("{e}"));
    let chosen = Chosen {
        file,
        variant: None,
        driver: Arc::new(SimulatedDriver),
        tls: None,
    };
    prepared.systems.insert("made-up".to_owned(), chosen);
    prepared
}

fn plan(prepared: &Prepared, given_up: &[String]) -> TuningPlan {
    let cell = only_cell(prepared).unwrap_or_else(|e| panic!("{e}"));
    let (factors, left_out) = factors(&prepared.systems["made-up"], cell, given_up);
    TuningPlan {
        objective: Objective::P99,
        factors,
        left_out,
        budget_s: 150.0,
        pairs: 6,
    }
}

/// The delay that settings have, ns: the option and a setting help together.
fn delay_ns(settings: &Settings) -> u64 {
    let fast = settings.has("options.made-up.fast");
    let closing = settings.native("simulated", "closing-ns");
    let factor = match (fast, closing.and_then(|ns| ns.as_u64())) {
        (true, Some(1)) => 0.5,
        (true, _) => 0.8,
        (false, Some(1)) => 0.9,
        _ => 1.0,
    };
    (2e6 * factor) as u64
}

/// A trial as the simulated system has it, and 3 s long.
fn measured(proposed: &crate::Proposal) -> Trial {
    let asked = &proposed.trial;
    let behaviour = Behaviour {
        delay_median_ns: delay_ns(&asked.settings),
        delay_sigma: 0.1,
        seed: u64::from(asked.order),
        ..Behaviour::default()
    };
    let run = simulate((*asked.workload).clone(), behaviour, Settings::default());
    let trial = run.unwrap_or_else(|error| panic!("{error}")).trial;
    let axes = asked.axes.iter().map(|(name, value)| AxisValue {
        name: name.clone(),
        value: value.clone(),
    });
    Trial {
        id: asked.order,
        cell: asked.cell.clone(),
        settings: (*asked.settings).clone(),
        settings_name: asked.settings_name.clone(),
        axes: axes.collect(),
        repeat: asked.repeat,
        search: proposed.search,
        took_s: 3.0,
        ..trial
    }
}

fn proposer<'p>(prepared: &'p Prepared, tuner: &'p Tuner<'p>) -> Proposer<'p> {
    let new = Proposer::new(prepared, &ClientOptions::default(), None);
    new.unwrap_or_else(|e| panic!("{e}")).led_by(tuner)
}

fn carried_out(
    prepared: &Prepared,
    plan: &TuningPlan,
    optimizer: Option<Box<dyn Optimizer>>,
) -> Vec<Trial> {
    let is_led = optimizer.is_some();
    let tuner = Tuner::new(prepared, plan, optimizer).unwrap_or_else(|e| panic!("{e}"));
    let on = proposer(prepared, &tuner);
    let mut done: Vec<Trial> = Vec::new();
    loop {
        assert!(done.len() < 200, "there is an end");
        let proposal = on.next(&done).unwrap_or_else(|e| panic!("{e}"));
        // One that knows nothing of what was before proposes the same.
        if !is_led {
            let again = Tuner::new(prepared, plan, None).unwrap_or_else(|e| panic!("{e}"));
            let resumed = proposer(prepared, &again)
                .next(&done)
                .unwrap_or_else(|e| panic!("{e}"));
            let said = |p: &Option<crate::Proposal>| {
                p.as_ref()
                    .map(|p| (p.trial.cell.clone(), p.trial.axes.clone(), p.trial.repeat))
            };
            assert_eq!(said(&proposal), said(&resumed));
        }
        assert_eq!(
            on.planned(&done) as usize,
            done.len() + usize::from(proposal.is_some())
        );
        let Some(proposal) = proposal else {
            return done;
        };
        let trial = measured(&proposal);
        assert_eq!(trial.verdict.status, Status::Valid, "{:?}", trial.verdict);
        done.push(trial);
    }
}

#[test]
fn factors_are_those_that_the_study_and_the_promises_leave() {
    let prepared = tuned_prepared();
    let names = |given_up: &[String]| {
        let plan = plan(&prepared, given_up);
        let varied = plan.factors.iter().map(|tuned| tuned.factor.name.clone());
        let left = plan
            .left_out
            .iter()
            .map(|one| format!("{}: {}", one.name, one.why));
        (varied.collect::<Vec<_>>(), left.collect::<Vec<_>>())
    };
    let (varied, left) = names(&[]);
    let own = [
        "native.simulated.closing-ns",
        "native.simulated.grants",
        "options.made-up.fast",
    ];
    assert_eq!(varied, own);
    assert_eq!(
        left,
        [
            "batching: it changes nothing here (no effect: the simulated system does as native.simulated says)",
            "keep-alive-s: the study, or its profile, sets it",
            "options.made-up.risky: gives up everything; --give-up risky varies it"
        ]
    );
    let (varied, _) = names(&["risky".to_owned()]);
    assert_eq!(
        varied.last().map(String::as_str),
        Some("options.made-up.risky")
    );
}

#[test]
fn a_tuning_leads_its_trials_to_the_planted_settings() {
    let prepared = tuned_prepared();
    let plan = plan(&prepared, &[]);
    let trials = carried_out(&prepared, &plan, None);
    let tuner = Tuner::new(&prepared, &plan, None).unwrap_or_else(|e| panic!("{e}"));
    let found = tuner.conclusion(&trials);
    let best = found.best.clone().unwrap_or_default();
    for wanted in [
        ("native.simulated.closing-ns", "1"),
        ("options.made-up.fast", "true"),
    ] {
        let wanted = (wanted.0.to_owned(), wanted.1.to_owned());
        assert!(best.contains(&wanted), "{best:?}");
    }
    assert!(matches!(found.verdict, Verdict::Better { .. }), "{found:?}");
    // Settings of the study stay, and those that give something up are never tried.
    for trial in &trials {
        assert_eq!(trial.settings.keep_alive_s, Some(9));
        assert!(!trial.settings.has("options.made-up.risky"));
    }
    let count = |name: &str| trials.iter().filter(|t| t.settings_name == name).count();
    assert!(count(BASE) >= 3 && count(DEFAULT) >= 6 && count(DEFAULT) == count(TUNED));
    assert_eq!(tuner.reason_to_end(&trials), Some(Ended::Compared));
    // One name is one point.
    for trial in &trials {
        let same = trials
            .iter()
            .filter(|t| t.settings_name == trial.settings_name);
        assert!(same.clone().all(|t| t.axes == trial.axes));
        let mut repeats: Vec<u32> = same.map(|t| t.repeat).collect();
        repeats.sort_unstable();
        repeats.dedup();
        assert_eq!(repeats.len(), count(&trial.settings_name));
    }
}

/// Names the same two combinations again and again, and then no more.
struct Stubborn {
    asked: usize,
    known: usize,
}

impl Optimizer for Stubborn {
    fn ask(&mut self, seen: &[Seen]) -> Result<Option<Point>, String> {
        self.asked += 1;
        assert!(seen.len() > 5, "each alone comes first");
        let off = Point(vec![Some(1.into()), None, Some(true.into())]);
        Ok(match self.asked {
            1 => Some(off.clone()),
            // The default, and what was measured already, are not measured again.
            2 => Some(Point(vec![None, None, None])),
            3 => Some(off),
            _ => {
                assert_eq!(self.known, 2);
                None
            }
        })
    }

    fn tell_known(&mut self, known: &Seen) -> Result<(), String> {
        self.known += 1;
        assert!(matches!(known.finding, Finding::Score(_)));
        Ok(())
    }
}

#[test]
fn somebody_else_may_lead() {
    let prepared = tuned_prepared();
    let plan = plan(&prepared, &[]);
    let optimizer = Stubborn { asked: 0, known: 0 };
    let trials = carried_out(&prepared, &plan, Some(Box::new(optimizer)));
    let tuner = Tuner::new(&prepared, &plan, None).unwrap_or_else(|e| panic!("{e}"));
    let seen = tuner.points_seen(&trials);
    let combinations = seen
        .iter()
        .filter(|one| one.purpose == Purpose::Combination);
    assert_eq!(combinations.count(), 1);
    assert!(matches!(
        tuner.conclusion(&trials).verdict,
        Verdict::Better { .. }
    ));
}
