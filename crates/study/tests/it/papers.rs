//! The studies of papers: every claim of each sheet is there once, and what the study asks for is possible.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pubgauge_figures::rule::{CellFilter, ClaimRule, Needs, admits, range};
use pubgauge_study::{FULL, Plan, PlanOptions, PlannedTrial, Study};

/// Claims of each paper: their letter, and how many there are.
const PAPERS: [(&str, &str, usize); 5] = [
    ("kang2020", "K", 38),
    ("happ2016", "H", 26),
    ("eprosima", "E", 13),
    ("banno2021", "B", 12),
    ("scalagent2015", "S", 14),
];

fn study(paper: &str) -> (PathBuf, String) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../studies/papers");
    let path = path.join(format!("{paper}.toml"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    (path, text)
}

/// The plan of a paper's study; every system is taken to be there.
fn plan(paper: &str, scale: &str) -> Plan {
    let (path, text) = study(paper);
    let folder = path.parent().expect("a folder");
    let mut study =
        Study::parse(&format!("{paper}.toml"), &text, folder).unwrap_or_else(|e| panic!("{e}"));
    study.apply_scale(scale).unwrap_or_else(|e| panic!("{e}"));
    let quoted = text.split('"').skip(1).step_by(2);
    let options = PlanOptions::with_systems(BTreeSet::from_iter(quoted));
    study.plan(&options).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_claim_is_there_once() {
    for (paper, letter, count) in PAPERS {
        for scale in [FULL, "smoke"] {
            let plan = plan(paper, scale);
            let ids: Vec<&str> = plan.claims.iter().map(|claim| claim.id.as_str()).collect();
            let all: Vec<String> = (1..=count).map(|n| format!("{letter}{n:02}")).collect();
            assert_eq!(
                BTreeSet::from_iter(ids.iter().copied()),
                BTreeSet::from_iter(all.iter().map(String::as_str)),
                "{paper}"
            );
            assert_eq!(ids.len(), count, "{paper}: each once");
            assert!(!plan.trials.is_empty());
        }
    }
}

fn value<'a>(trial: &'a PlannedTrial, key: &str) -> Option<&'a str> {
    let named = |name: &str| name == key || name.rsplit('.').next() == Some(key);
    match key {
        "system" => Some(&trial.system),
        "settings" => Some(&trial.settings_name),
        "workload" => Some(&trial.workload.name),
        _ => {
            let axis = trial.axes.iter().find(|(name, _)| named(name));
            axis.map(|(_, value)| value.as_str())
        }
    }
}

fn is_in(trial: &PlannedTrial, filter: &CellFilter) -> bool {
    filter.iter().all(|(key, values)| match key.as_str() {
        "flow" => {
            let mut flows = trial.workload.flows.iter();
            flows.any(|flow| values.contains(&flow.name))
        }
        key => value(trial, key).is_some_and(|is| values.iter().any(|v| admits(v, is))),
    })
}

/// Whether it is hours of a recording, with days in them.
fn is_recorded(plan: &Plan, cell: &CellFilter) -> bool {
    let is = |key: &str, name: &String| cell.get(key).is_some_and(|named| named.contains(name));
    let of = plan.recordings.iter().filter(|r| is("recording", &r.name));
    let mut hours = of.flat_map(|recording| &recording.hours);
    hours.any(|hours| is("hours", &hours.name) && hours.days.len() > 2)
}

/// The points of a rule's axis: those that it names, else all that its sides have.
fn points(plan: &Plan, rule: &ClaimRule, sides: &[CellFilter]) -> Vec<CellFilter> {
    let Some(axis) = rule.grid_axis() else {
        return vec![CellFilter::new()];
    };
    let named = rule.filter.get(axis);
    let whole = named.filter(|values| values.iter().all(|value| range(value).is_none()));
    let values = whole.cloned().unwrap_or_else(|| {
        let lets = |value: &&str| named.is_none_or(|all| all.iter().any(|v| admits(v, value)));
        let of_sides = |trial: &&PlannedTrial| sides.iter().any(|side| is_in(trial, side));
        let trials = plan.trials.iter().filter(of_sides);
        let seen = trials.filter_map(|trial| value(trial, axis)).filter(lets);
        BTreeSet::from_iter(seen.map(str::to_owned))
            .into_iter()
            .collect()
    });
    (values.into_iter())
        .map(|value| CellFilter::from([(axis.clone(), vec![value])]))
        .collect()
}

/// A workload limits what it is crossed with: none may leave out a cell that a claim is about.
#[test]
fn every_cell_of_a_claim_is_planned() {
    let mut checked = 0;
    for (paper, ..) in PAPERS {
        let plan = plan(paper, FULL);
        let has = |system: &String| plan.trials.iter().any(|trial| trial.system == *system);
        let is_for_here = |needs: &Needs| {
            needs.network.is_none() && needs.never.is_none() && needs.systems.iter().all(has)
        };
        for claim in plan.claims.iter().filter(|claim| is_for_here(&claim.needs)) {
            let parts = claim.parts.iter().filter(|part| is_for_here(&part.needs));
            let rules =
                parts.flat_map(|part| part.rules().into_iter().map(move |rule| (part, rule)));
            for (part, rule) in rules {
                let sides = rule.sides.iter().chain(&rule.against);
                let cells: Vec<CellFilter> = (sides.flat_map(|side| &side.alternatives))
                    .map(|side| rule.cells(side))
                    .collect();
                let points = points(&plan, rule, &cells);
                assert!(!points.is_empty(), "{} {}: no cells", claim.id, part.name);
                for (cell, point) in cells
                    .iter()
                    .flat_map(|c| points.iter().map(move |p| (c, p)))
                {
                    let mut cell = cell.clone();
                    cell.extend(point.clone());
                    let planned = plan.trials.iter().any(|trial| is_in(trial, &cell))
                        || is_recorded(&plan, &cell);
                    let part = &part.name;
                    assert!(planned, "{} {part}: {cell:?} is not planned", claim.id);
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 500, "{checked} cells of claims");
}
