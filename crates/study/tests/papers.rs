//! The studies of papers: every claim of each sheet is there once, and what the study asks for is possible.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pubgauge_study::{Known, PlanOptions, Study};

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

#[test]
fn every_claim_is_there_once() {
    for (paper, letter, count) in PAPERS {
        let (path, text) = study(paper);
        let folder = path.parent().expect("a folder");
        let study =
            Study::parse(&format!("{paper}.toml"), &text, folder).unwrap_or_else(|e| panic!("{e}"));
        // Every system is taken to be there: what is not found is said when a run is planned.
        let quoted = text.split('"').skip(1).step_by(2);
        let names: Vec<String> = BTreeSet::from_iter(quoted.map(str::to_owned))
            .into_iter()
            .collect();
        let options = PlanOptions {
            known: Known {
                all: names.clone(),
                found: names,
                ..Known::default()
            },
            ..PlanOptions::default()
        };
        let plan = study.plan(&options).unwrap_or_else(|e| panic!("{e}"));
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
