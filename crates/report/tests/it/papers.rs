//! The table of claims in docs/papers.md is the one that the committed results make, and the findings on the pages are
//! among them.

use std::path::{Path, PathBuf};

use pubgauge_figures::studies::Studies;
use pubgauge_report::studies::markdown;

/// docs/papers.md names the file between these: `<!-- claims of studies/papers/results-2core.json -->`.
const BEGIN: &str = "<!-- claims of ";
const END: &str = "<!-- end of claims -->";

/// The text with the table that `read` gives for the file that it names.
fn with_table(page: &str, read: impl Fn(&str) -> String) -> String {
    let (before, rest) = page.split_once(BEGIN).expect("a mark of the table");
    let (mark, rest) = rest.split_once(" -->").expect("an end of the mark");
    let (_, after) = rest.split_once(END).expect("a mark of the table's end");
    let file = mark.trim();
    let studies = Studies::parse(&read(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    let table = markdown(&studies);
    format!("{before}{BEGIN}{mark} -->\n\n{table}\n{END}{after}")
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(repository(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

#[test]
fn the_page_says_what_the_committed_results_say() {
    let page = read("docs/papers.md");
    let made = with_table(&page, read);
    if std::env::var_os("PUBGAUGE_RENEW").is_some() {
        std::fs::write(repository("docs/papers.md"), &made).unwrap();
        return;
    }
    assert!(
        made == page,
        "docs/papers.md differs from the committed results: run this test with PUBGAUGE_RENEW=1 and commit it"
    );
}

/// The findings of a section, each of which ends with `(study ID: outcome)`, are those of the committed results.
#[track_caller]
fn findings_are_right(path: &str, heading: &str, count: usize) {
    let page = read(path);
    let studies = Studies::parse(&read("studies/papers/results-2core.json")).unwrap();
    let claim_of = |study: &str, id: &str| {
        let study = studies.studies.iter().find(|s| s.study == study)?;
        study.claims.iter().find(|claim| claim.id == id)
    };
    let section = page.split("\n## ").find(|s| s.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("{path} has no section {heading}"));
    let findings: Vec<&str> = section.split("\n- ").skip(1).collect();
    for finding in &findings {
        let finding = finding.split("\n\n").next().expect("a paragraph");
        let (_, end) = finding.rsplit_once('(').expect("a finding names its claim");
        let (name, rest) = end.split_once(": ").expect("with its outcome");
        let mut words = name.split_whitespace();
        let (study, id) = (
            words.next().expect("by study"),
            words.next().expect("and identifier"),
        );
        let claim = claim_of(study, id).unwrap_or_else(|| panic!("no claim {id} of {study}"));
        let said = rest.split_once(")").expect("an end").0;
        assert_eq!(
            said.replace('\n', " ").replace("  ", " "),
            claim.outcome.as_str(),
            "{study} {id}"
        );
    }
    assert_eq!(findings.len(), count, "{path}");
}

#[test]
fn the_findings_on_the_pages_are_those_of_the_committed_results() {
    findings_are_right("README.md", "What papers say", 5);
    findings_are_right("docs/papers.md", "Ten findings", 10);
}

#[test]
fn a_table_that_differs_is_replaced() {
    let one = |outcome: &str| {
        format!(
            r#"{{"format":"pubgauge-claims/1","studies":[{{"study":"s","trials":1,"planned_trials":1,"cut_off":false,
            "machine":"2 processors","pubgauge_version":"1","systems":["a 1"],
            "counts":{{"holds":1,"does_not_hold":0,"cannot_tell":0,"not_applicable":0}},
            "claims":[{{"id":"K1","sentence":"It is.","source":"x","rule":"","outcome":"{outcome}","reason":"","ours":"2","papers":"3"}}]}}]}}"#
        )
    };
    let old = "before\n<!-- claims of file.json -->\nold\n<!-- end of claims -->\nafter\n";
    let made = with_table(old, |file| {
        assert_eq!(file, "file.json");
        one("holds")
    });
    assert!(made.starts_with("before\n<!-- claims of file.json -->\n\n| claim |"));
    assert!(
        made.contains("| s K1 | It is. (x) | 3 | 2 | **holds** |") && made.ends_with("\nafter\n")
    );
    assert_eq!(
        with_table(&made, |_| one("holds")),
        made,
        "nothing more to change"
    );
    assert_ne!(with_table(&made, |_| one("does-not-hold")), made);
}
