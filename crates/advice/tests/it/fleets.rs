//! The fleets that come with pubgauge: each becomes studies that can be planned, and fits the budget.

use std::path::{Path, PathBuf};

use pubgauge_advice::{Adviser, Candidate, Fleet, Stage, StageKind, Variation};
use pubgauge_study::{PlanOptions, Study};

/// Systems that are left after the promises.
const CANDIDATES: usize = 5;
/// The default of `--budget`, seconds.
const BUDGET_S: f64 = 1200.0;

fn fleets() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fleets");
    let entries = std::fs::read_dir(folder).expect("the folder of fleets");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("readable").path())
        .collect();
    paths.sort();
    assert!(paths.len() >= 5, "{paths:?}");
    paths
}

fn planned_s(fleet: &Fleet, step: &Stage) -> f64 {
    let text = fleet.study(step);
    let study = Study::parse("the study", &text, Path::new("")).expect("TOML");
    let systems = step.candidates.iter().map(|of| of.system.clone());
    let plan = study.plan(&PlanOptions::with_systems(systems));
    let plan = plan.unwrap_or_else(|error| panic!("{error}\n{text}"));
    plan.duration_estimate() as f64 / 1e9
}

/// Each step on all of five systems.
fn steps(fleet: &Fleet) -> Vec<Stage> {
    let names = (0..CANDIDATES).map(|n| format!("system-{n}"));
    let candidates = names.map(|system| Candidate {
        system,
        reliability: fleet.reliabilities()[0],
    });
    let candidates: Vec<Candidate> = candidates.collect();
    let headroom = Variation::Headroom(fleet.headroom());
    let each = [
        (StageKind::Fleet, vec![Variation::None], 1),
        (StageKind::Headroom, vec![headroom], 1),
        (StageKind::Confirm, vec![Variation::None, headroom], 2),
        (StageKind::Limit, vec![Variation::Limit], 1),
        (
            StageKind::Others,
            vec![Variation::Rate(10.0), Variation::Payload(10.0)],
            1,
        ),
    ];
    let each = each.into_iter().map(|(kind, changes, repeats)| Stage {
        kind,
        changes,
        candidates: candidates.clone(),
        repeats,
        search_s: 60,
        known: Vec::new(),
        brokers: Vec::new(),
    });
    each.collect()
}

#[test]
fn every_fleet_can_be_planned_and_is_known_within_the_budget() {
    for path in fleets() {
        let (fleet, _) = Fleet::open(&path).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            path.file_stem().expect("a name").to_str(),
            Some(fleet.name())
        );
        let lengths: Vec<f64> = steps(&fleet)
            .iter()
            .map(|step| planned_s(&fleet, step))
            .collect();
        let all: f64 = lengths[..3].iter().sum();
        println!(
            "{}: {lengths:.0?} s, the first three {all:.0} s",
            fleet.name()
        );
        assert!(all < BUDGET_S, "{}: {lengths:?}", fleet.name());
    }
}

/// The steps of an advice are those that are planned above.
#[test]
fn the_first_step_is_the_fleet_on_all_systems() {
    for path in fleets() {
        let (fleet, _) = Fleet::open(&path).expect("a fleet");
        let first = steps(&fleet).remove(0);
        let candidates = first.candidates.clone();
        let adviser = Adviser::new(fleet.clone(), candidates, Vec::new(), Vec::new());
        let step = adviser.next_step(BUDGET_S).expect("a step");
        assert_eq!(fleet.study(&step), fleet.study(&first));
    }
}

#[test]
fn who_returns_over_a_long_time_can_be_planned() {
    let text = "[[devices]]\nname = \"a\"\ncount = 50\nevery = \"1s\"\npayload = \"64B\"\n\
                offline = { for = \"8h\", back-within = \"5min\" }\n\
                [[devices]]\nname = \"b\"\ncount = 50\nevery = \"1s\"\npayload = \"64B\"\n\
                offline = { for = \"2s\", back-within = \"1s\" }\n";
    let fleet = Fleet::parse("two.toml", text).expect("a fleet");
    let first = steps(&fleet).remove(0);
    let study = fleet.study(&first);
    // Both leave once, and all are back 4 s before the end.
    for part in [
        "measure = \"37s\"",
        "online = \"18s\", offline = \"5s\", back-within = \"10s\"",
        "online = \"18s\", offline = \"2s\", back-within = \"1s\"",
    ] {
        assert!(study.contains(part), "{part}: {study}");
    }
    planned_s(&fleet, &first);
}
