//! Stored runs, made up: those that stand for trials of an advice, and those that do not.

use pubgauge_advice::{
    Advice, Adviser, Candidate, EvidenceOf, Fleet, Here, Source, Stage, StageKind, StoredRun,
    SystemHere, Variation,
};
use pubgauge_driver::{Durability, Reliability};
use pubgauge_figures::model::{Machine, StudyInfo};
use pubgauge_figures::search::{Axis, LimitedBy, Purpose, Search, SearchStep};
use pubgauge_figures::{Results, Rule, Status, Trial};
use pubgauge_fixtures::TrialBuilder;
use pubgauge_study::{Plan, PlanOptions, PlannedTrial, Study};

const STARTED: &str = "2026-11-01T10:00:00Z";

/// A fleet of so many devices that are never away.
fn fleet_of(devices: u32, payload: u32) -> Fleet {
    let text =
        format!("[[devices]]\ncount = {devices}\nevery = \"1s\"\npayload = \"{payload}B\"\n");
    Fleet::parse("planted", &text).expect("a fleet")
}

/// A fleet that is away now and then.
fn leaving_fleet() -> Fleet {
    let text =
        "[[devices]]\ncount = 100\nevery = \"1s\"\npayload = \"64B\"\noffline = { for = \"1h\" }\n";
    Fleet::parse("planted", text).expect("a fleet")
}

fn candidate(system: &str) -> Candidate {
    Candidate {
        system: system.into(),
        reliability: Reliability::AtLeastOnce,
    }
}

fn step(kind: StageKind, changes: &[Variation], systems: &[&str], repeats: u32) -> Stage {
    Stage {
        kind,
        changes: changes.to_vec(),
        candidates: systems.iter().map(|system| candidate(system)).collect(),
        repeats,
        search_s: 60,
        known: Vec::new(),
        brokers: Vec::new(),
    }
}

fn plan(fleet: &Fleet, step: &Stage) -> Plan {
    let study = Study::parse("study", &fleet.study(step), std::path::Path::new(""));
    let systems = step.candidates.iter().map(|of| of.system.clone());
    let plan = study
        .expect("TOML")
        .plan(&PlanOptions::with_systems(systems));
    plan.expect("a plan")
}

fn machine() -> Machine {
    Machine {
        kernel: "Linux 6.1".into(),
        cpu_model: "A processor".into(),
        cores: 2,
        memory_bytes: 8 << 30,
        pubgauge_version: "1".into(),
        ..Machine::default()
    }
}

/// A trial of a plan that carried all of it.
fn trial_of(planned: &PlannedTrial) -> Trial {
    let flows = planned.workload.flows.iter();
    let names: Vec<&str> = flows.clone().map(|flow| flow.name.as_str()).collect();
    let per_s: f64 = flows.filter_map(|flow| flow.arrivals.mean_per_s()).sum();
    let seconds = planned.workload.phases.measure.latest() as f64 / 1e9;
    let mut trial = TrialBuilder::periodic(per_s, seconds)
        .system(&planned.system)
        .variant(&planned.settings_name)
        .workload(&planned.workload.name)
        .cell(&planned.cell)
        .repeat(planned.repeat)
        .id(planned.order)
        .cpu(0.01, 0.01, 0.02)
        .flows(&names)
        .build();
    trial.settings = (*planned.settings).clone();
    trial.circumstances.client = planned.setup.client;
    trial.started = format!("2026-11-01T10:00:{:02}Z", planned.order);
    trial
}

/// A stored run in which all was carried.
fn stored(folder: &str, fleet: &Fleet, step: &Stage) -> StoredRun {
    let plan = plan(fleet, step);
    let study = StudyInfo {
        started: STARTED.into(),
        criterion_specs: plan.criteria.clone(),
        ..StudyInfo::default()
    };
    let plain = plan.plain().map(trial_of);
    let mut trials: Vec<Trial> = plain.collect();
    let mut searches = Vec::new();
    for (nth, planned) in (0..).zip(plan.searches()) {
        let mut trial = trial_of(planned);
        trial.search = Some(SearchStep {
            search: nth,
            purpose: Purpose::Short,
            load: Some(1000.0),
        });
        trials.push(trial);
        searches.push(Search {
            system: planned.system.clone(),
            settings: planned.settings_name.clone(),
            workload: planned.workload.name.clone(),
            axis: Axis::Rate,
            low: Some(1000.0),
            high: Some(1200.0),
            bound: LimitedBy::System,
            ..Search::default()
        });
    }
    StoredRun {
        folder: folder.into(),
        together: folder.into(),
        results: Results {
            machine: machine(),
            study,
            trials,
            searches,
            ..Results::default()
        },
        plan,
    }
}

fn here(fleet: &Fleet, systems: &[&str]) -> Here {
    let each = systems.iter().map(|system| SystemHere {
        name: (*system).into(),
        version: Some("1".into()),
        client: Vec::new(),
        is_shipped: true,
    });
    Here {
        machine: machine(),
        systems: each.collect(),
        criteria: plan(
            fleet,
            &step(StageKind::Fleet, &[Variation::None], systems, 1),
        )
        .criteria,
    }
}

/// An adviser that knows of stored runs.
fn knowing(fleet: &Fleet, systems: &[&str], runs: &[StoredRun]) -> Adviser {
    let candidates = systems.iter().map(|system| candidate(system)).collect();
    let mut adviser = Adviser::new(fleet.clone(), candidates, Vec::new(), Vec::new());
    let here = here(fleet, systems);
    adviser
        .count_stored(&here, runs, Vec::new())
        .expect("counted");
    adviser
}

/// All steps to the end, of which each trial carries; with the trials that were made: step, system, workload.
fn finish(mut adviser: Adviser) -> (Advice, Vec<(StageKind, String, String)>) {
    let mut made = Vec::new();
    while let Some(step) = adviser.next_step(1200.0) {
        let run = stored("now", adviser.fleet(), &step);
        let trials = run.results.trials.iter();
        made.extend(trials.map(|trial| {
            let names = (trial.system.name.clone(), trial.workload.name.clone());
            (step.kind, names.0, names.1)
        }));
        adviser.take(step.kind, &run.results);
    }
    (adviser.advice(), made)
}

fn source(advice: &Advice, system: &str, figure: EvidenceOf) -> Source {
    let mut choices = advice.choices.iter();
    let choice = choices
        .find(|choice| choice.system == system)
        .expect("named");
    let mut evidence = choice.evidence.iter();
    evidence
        .find(|one| one.figure == figure)
        .expect("told")
        .source
}

const HEADROOM: Variation = Variation::Headroom(3.0);

#[test]
fn a_stored_run_of_just_the_fleet_counts_and_no_trial_is_made_for_it() {
    let fleet = fleet_of(100, 64);
    let loads = step(StageKind::Fleet, &[Variation::None, HEADROOM], &["a"], 3);
    let limit = step(StageKind::Limit, &[Variation::Limit], &["a"], 1);
    let runs = [
        stored("results/fleet", &fleet, &loads),
        stored("results/limit", &fleet, &limit),
    ];
    let (advice, made) = finish(knowing(&fleet, &["a", "b"], &runs));
    let of_a: Vec<StageKind> = made
        .iter()
        .filter(|of| of.1 == "a")
        .map(|of| of.0)
        .collect();
    assert!(
        of_a.iter().all(|kind| *kind == StageKind::Others),
        "{made:?}"
    );
    let of_b = made
        .iter()
        .filter(|of| of.1 == "b" && of.2 == "fleet")
        .count();
    assert_eq!(of_b, 3);
    for figure in [
        EvidenceOf::Fleet,
        EvidenceOf::Headroom,
        EvidenceOf::Limit,
        EvidenceOf::P99,
        EvidenceOf::Cost,
    ] {
        assert_eq!(source(&advice, "a", figure), Source::Stored, "{figure:?}");
        assert_eq!(source(&advice, "b", figure), Source::Measured, "{figure:?}");
    }
    let a = advice
        .choices
        .iter()
        .find(|choice| choice.system == "a")
        .expect("named");
    assert_eq!((a.repeats, a.headroom_at_least), (3, 10.0));
    let words = a.evidence_in_words();
    assert!(
        words.contains("stored, results/fleet (2026-11-01)"),
        "{words}"
    );
    assert!(
        words.contains("the limit: stored, results/limit"),
        "{words}"
    );
    assert!(words.contains("memory: not measured"), "{words}");
    assert!(advice.not_counted.is_empty(), "{:?}", advice.not_counted);
    // Nothing that was not measured in turns is told apart by its cost.
    assert!(advice.choices.iter().all(|choice| choice.rank == 1));
}

#[test]
fn what_differs_does_not_count_and_the_reason_is_told() {
    let fleet = fleet_of(100, 64);
    let once = step(StageKind::Fleet, &[Variation::None], &["a"], 1);
    type Change = fn(&mut StoredRun);
    let changes: [(&str, Change); 13] = [
        ("another version: 2, and here 1", |run| {
            run.results.trials[0].system.version = "2".into();
        }),
        ("other settings", |run| {
            run.results.trials[0].settings.durability = Some(Durability::DiskSynced);
        }),
        ("its settings became something else", |run| {
            run.results.trials[0].mappings.push(Default::default());
        }),
        ("another kernel: Linux 5.0, and here Linux 6.1", |run| {
            run.results.machine.kernel = "Linux 5.0".into();
        }),
        ("another processor", |run| {
            run.results.machine.cpu_model = "B".into()
        }),
        ("another number of processors", |run| {
            run.results.machine.cores = 4
        }),
        ("another version of pubgauge", |run| {
            run.results.machine.pubgauge_version = "0".into();
        }),
        ("it was overloaded: a queue grew", |run| {
            run.results.trials[0].verdict.status = Status::Overloaded;
            let reason = pubgauge_figures::Reason::new(Rule::QueueGrew, "a queue grew");
            run.results.trials[0].verdict.reasons.push(reason);
        }),
        ("it was lossy", |run| {
            run.results.trials[0].verdict.status = Status::Lossy;
        }),
        ("it was client-bound", |run| {
            run.results.trials[0].verdict.status = Status::ClientBound;
        }),
        ("other programs spoilt it", |run| {
            run.results.trials[0].verdict.status = Status::ClientBound;
            let reason = pubgauge_figures::Reason::new(Rule::OthersBusy, "others were busy");
            run.results.trials[0].verdict.reasons.push(reason);
        }),
        ("it was measured for 5 s, and 15 s are asked for", |run| {
            run.results.trials[0].duration_s = 5.0;
        }),
        (
            "it does not show that what is asked of the fleet was met",
            |run| {
                let late = pubgauge_fixtures::distribution(1500, 100_000_000, 300_000_000);
                run.results.trials[0].messages.latency_ns = late;
                run.results.trials[0].flows[0].messages.latency_ns = late;
            },
        ),
    ];
    for (because, change) in changes {
        let mut run = stored("results/earlier", &fleet, &once);
        change(&mut run);
        let adviser = knowing(&fleet, &["a"], &[run]);
        let next = adviser.next_step(1200.0).expect("a step");
        assert_eq!(
            (next.kind, next.candidates.len()),
            (StageKind::Fleet, 1),
            "{because}"
        );
        let told: Vec<String> = adviser
            .advice()
            .not_counted
            .iter()
            .map(|of| of.describe())
            .collect();
        assert_eq!(told.len(), 1, "{because}: {told:?}");
        assert!(told[0].contains(because), "{because}: {told:?}");
        assert!(told[0].starts_with("results/earlier"), "{told:?}");
    }
}

#[test]
fn a_load_that_is_smaller_or_more_than_twice_as_large_does_not_count() {
    let fleet = fleet_of(100, 64);
    for (other, because) in [
        (
            fleet_of(210, 64),
            "2.1 times the publishers of the fleet, more than twice",
        ),
        (
            fleet_of(90, 64),
            "0.9 times the publishers of the fleet: a smaller load",
        ),
        (
            fleet_of(100, 135),
            "2.11 times the bytes of a message of the fleet, more than twice",
        ),
        (leaving_fleet(), "it differs in absences"),
    ] {
        let once = step(StageKind::Fleet, &[Variation::None, HEADROOM], &["a"], 1);
        let adviser = knowing(&fleet, &["a"], &[stored("earlier", &other, &once)]);
        let advice = adviser.advice();
        let told: Vec<String> = advice.not_counted.iter().map(|of| of.describe()).collect();
        assert!(
            told.iter().any(|told| told.contains(because)),
            "{because}: {told:?}"
        );
        let (_, made) = finish(adviser);
        for kind in [StageKind::Fleet, StageKind::Headroom] {
            assert!(made.iter().any(|of| of.0 == kind), "{because}: {made:?}");
        }
    }
}

#[test]
fn a_larger_load_shows_that_a_smaller_one_is_carried_and_nothing_of_its_figures() {
    let fleet = fleet_of(100, 64);
    let loads = step(StageKind::Fleet, &[Variation::None, HEADROOM], &["a"], 3);
    let run = stored("earlier", &fleet_of(150, 64), &loads);
    let (advice, made) = finish(knowing(&fleet, &["a"], &[run]));
    assert!(!made.iter().any(|of| of.2 == "headroom"), "{made:?}");
    let own = made.iter().filter(|of| of.2 == "fleet").count();
    assert_eq!(own, 3, "{made:?}");
    assert_eq!(source(&advice, "a", EvidenceOf::Headroom), Source::Stored);
    assert_eq!(source(&advice, "a", EvidenceOf::P99), Source::Measured);
    assert_eq!(source(&advice, "a", EvidenceOf::Cost), Source::Measured);
}

#[test]
fn stored_trials_that_contradict_each_other_do_not_count() {
    let fleet = fleet_of(100, 64);
    let once = step(StageKind::Fleet, &[Variation::None], &["a"], 1);
    let good = stored("good", &fleet, &once);
    let mut bad = stored("bad", &fleet, &once);
    bad.results.trials[0].verdict.status = Status::Overloaded;
    for runs in [[good.clone(), bad.clone()], [bad, good]] {
        let adviser = knowing(&fleet, &["a"], &runs);
        let next = adviser.next_step(1200.0).expect("a step");
        assert_eq!(next.kind, StageKind::Fleet);
        let told: Vec<String> = adviser
            .advice()
            .not_counted
            .iter()
            .map(|of| of.describe())
            .collect();
        assert!(
            told.iter()
                .any(|told| told.starts_with("good, a: another stored trial")),
            "{told:?}"
        );
        assert!(
            told.iter()
                .any(|told| told.starts_with("bad, a, fleet: it was overloaded")),
            "{told:?}"
        );
    }
}

#[test]
fn a_copy_of_a_run_is_not_counted_twice() {
    let fleet = fleet_of(100, 64);
    let once = step(StageKind::Fleet, &[Variation::None], &["a"], 1);
    let runs = ["results/one", "results/copy"].map(|folder| stored(folder, &fleet, &once));
    assert_eq!(knowing(&fleet, &["a"], &runs).stored_count(), 1);
}

#[test]
fn an_advice_that_was_ended_goes_on_where_it_was() {
    for fleet in [fleet_of(100, 64), leaving_fleet()] {
        let steps = [
            step(StageKind::Fleet, &[Variation::None], &["a", "b"], 1),
            step(StageKind::Headroom, &[HEADROOM], &["a", "b"], 1),
            step(
                StageKind::Confirm,
                &[Variation::None, HEADROOM],
                &["a", "b"],
                2,
            ),
        ];
        let mut runs = Vec::new();
        for (nth, step) in steps.iter().enumerate() {
            let mut run = stored("results/ended", &fleet, step);
            for trial in &mut run.results.trials {
                trial.started += &nth.to_string();
            }
            runs.push(run);
            let next = knowing(&fleet, &["a", "b"], &runs)
                .next_step(1200.0)
                .expect("a step");
            let after = [StageKind::Headroom, StageKind::Confirm, StageKind::Limit][nth];
            assert_eq!((next.kind, next.candidates.len()), (after, 2));
        }
    }
}

#[test]
fn a_search_that_asked_for_something_else_does_not_count() {
    let fleet = fleet_of(100, 64);
    let limit = step(StageKind::Limit, &[Variation::Limit], &["a"], 1);
    let mut run = stored("earlier", &fleet, &limit);
    run.results.study.criterion_specs[0].value *= 2.0;
    let adviser = knowing(&fleet, &["a"], &[run]);
    assert_eq!(adviser.stored_count(), 0);
    let advice = adviser.advice();
    let told = advice.not_counted[0].describe();
    // The label stands apart from the text.
    let screen = pubgauge_advice::render(&advice, true);
    assert!(
        screen.contains(&format!(" Uncounted  {}", &told[..20])),
        "{screen}"
    );
    assert!(
        told.contains("something else was asked of the load"),
        "{told}"
    );
    let other = stored("other", &fleet_of(150, 64), &limit);
    assert_eq!(knowing(&fleet, &["a"], &[other]).stored_count(), 0);
}
