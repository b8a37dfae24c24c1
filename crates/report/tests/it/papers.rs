//! The papers' claims as they are committed: outcomes follow from the studies and the trials that are kept, the table in
//! docs/papers.md from the outcomes, and each figure in a reader's words from those of its claim.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pubgauge_conclusions::claims::kept::Kept;
use pubgauge_conclusions::claims::several::{judge_by_runs, sort};
use pubgauge_conclusions::claims::{rule_words, unmeasured};
use pubgauge_figures::claim::ClaimOutcome;
use pubgauge_figures::rule::Claim;
use pubgauge_figures::studies::{OutcomeCounts, Studies, StudyOutcome};
use pubgauge_report::studies::markdown;
use pubgauge_study::Study;

/// docs/papers.md names the file between these: `<!-- claims of studies/papers/results-2core.json -->`.
const BEGIN: &str = "<!-- claims of ";
const END: &str = "<!-- end of claims -->";

/// The text with the table that `read` gives for the file that it names.
fn with_table(page: &str, results: impl Fn(&str) -> String) -> String {
    let (before, rest) = page.split_once(BEGIN).expect("a mark of the table");
    let (mark, rest) = rest.split_once(" -->").expect("an end of the mark");
    let (_, after) = rest.split_once(END).expect("a mark of the table's end");
    let file = mark.trim();
    let studies = Studies::parse(&results(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    let words = words(&read(WORDS));
    let table = markdown(&studies, &words);
    format!("{before}{BEGIN}{mark} -->\n\n{table}\n{END}{after}")
}

/// Findings on answered claims, in a reader's words.
const WORDS: &str = "studies/papers/words-2core.json";

fn words(text: &str) -> BTreeMap<String, String> {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{WORDS}: {e}"))
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(repository(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The studies of the papers.
const PAPERS: [&str; 5] = [
    "banno2021",
    "eprosima",
    "happ2016",
    "kang2020",
    "scalagent2015",
];
const RESULTS: &str = "studies/papers/results-2core.json";

fn study_of(paper: &str) -> Study {
    let path = repository(&format!("studies/papers/{paper}.toml"));
    Study::open(&path).unwrap_or_else(|e| panic!("{e}"))
}

fn claims_of(paper: &str) -> Vec<Claim> {
    let claims = study_of(paper).claims_alone();
    claims.unwrap_or_else(|e| panic!("{e}"))
}

/// The trials that are kept of a paper's study, a file for each run (`PAPER.csv`, `PAPER-2.csv`), in the order of their days.
fn kept_of(paper: &str) -> Vec<Kept> {
    let folder = repository("studies/papers/cells");
    let files = std::fs::read_dir(&folder).unwrap();
    let mut kept = Vec::new();
    for file in files.map(|file| file.unwrap().path()) {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        if name.split('-').next() == Some(paper) {
            let text = std::fs::read_to_string(&file).unwrap();
            kept.push(Kept::parse(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display())));
        }
    }
    sort(&mut kept);
    kept
}

/// The trials that are kept of a paper's study and were measured under the conditions that it has now.
fn current_of(paper: &str) -> Vec<Kept> {
    let (claims, file) = (claims_of(paper), study_of(paper).file());
    let conditions = file.unwrap_or_else(|e| panic!("{e}")).conditions();
    let mut kept = kept_of(paper);
    for run in &mut kept {
        run.leave_out_changed(&claims, &conditions);
    }
    kept
}

/// A claim's outcome as the repository has reasons for it: by trials that are kept; else by an earlier run, if the claim and
/// its rule are those of that run to the letter; else none.
fn outcome_of(claim: &Claim, kept: &[Kept], earlier: &StudyOutcome) -> ClaimOutcome {
    if claim.needs.is_never_judged() {
        return unmeasured(claim);
    }
    if let Some(outcome) = judge_by_runs(claim, kept) {
        return outcome;
    }
    let rule = rule_words(claim);
    let mut known = earlier.claims.iter();
    let known = known.find(|known| known.id == claim.id && known.rule == rule);
    match (known, unmeasured(claim)) {
        (Some(known), now) if known.sentence == now.sentence && known.stand_in == now.stand_in => {
            let day = earlier.started.get(..10).unwrap_or_default().to_owned();
            let kept_from = match known.kept_from.as_str() {
                "" => day,
                kept_from => kept_from.to_owned(),
            };
            let mut reason = known.reason.clone();
            if let (false, Some(by)) = (known.outcome.is_answer(), &claim.told_by) {
                let without = reason.split("; about ").next().unwrap_or_default();
                let without = without.split("; would tell: ").next().unwrap_or_default();
                reason = format!("{without}; would tell: {by}");
            }
            ClaimOutcome {
                kept_from,
                reason,
                ..known.clone()
            }
        }
        (_, unmeasured) => unmeasured,
    }
}

/// The committed outcomes as they must be.
fn made() -> Studies {
    let earlier = Studies::parse(&read(RESULTS)).unwrap();
    let study = |paper: &&str| {
        let known = earlier.studies.iter().find(|study| study.study == **paper);
        let known = known.unwrap_or_else(|| panic!("{RESULTS} has no {paper}"));
        let kept = current_of(paper);
        let claims = claims_of(paper);
        let outcome = |claim: &Claim| outcome_of(claim, &kept, known);
        let claims: Vec<ClaimOutcome> = claims.iter().map(outcome).collect();
        // Of trials that are kept the day, the machine and the systems are those of their run.
        let run = kept.last().map_or(known, |kept| &kept.run.study);
        let systems = known.systems.iter().chain(&run.systems).cloned();
        StudyOutcome {
            counts: OutcomeCounts::count(&claims),
            claims,
            systems: BTreeSet::from_iter(systems).into_iter().collect(),
            ..run.clone()
        }
    };
    let studies = PAPERS.iter().map(study).collect();
    Studies { studies, ..earlier }.without_pictures()
}

#[test]
fn the_committed_outcomes_are_those_of_the_claims_as_they_are() {
    let made = made().to_json();
    if std::env::var_os("PUBGAUGE_RENEW").is_some() {
        std::fs::write(repository(RESULTS), &made).unwrap();
        return;
    }
    assert!(
        made == read(RESULTS),
        "{RESULTS} differs from what studies and kept trials say: run this test with PUBGAUGE_RENEW=1, and the others of the \
         file after it, and commit them"
    );
}

/// Every trial that is kept is of the study as it is, and judges a claim.
#[test]
fn kept_trials_are_those_of_claims() {
    for (paper, kept) in PAPERS
        .iter()
        .flat_map(|paper| kept_of(paper).into_iter().map(move |kept| (*paper, kept)))
    {
        assert_eq!(kept.run.study.study, paper);
        assert!(
            !kept.run.claim_rules.is_empty(),
            "{paper}: the rules of the run's beginning"
        );
        let claims = claims_of(paper);
        for row in &kept.rows {
            assert_eq!(row.study, paper);
            assert_eq!(row.day, kept.day());
        }
        assert!(claims.iter().any(|claim| kept.is_about(claim)), "{paper}");
        assert_eq!(Kept::parse(&kept.to_text()).unwrap(), kept, "{paper}");
    }
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

/// The numbers of a text, with how many decimals each has: `1,898` and `0.0205`, not the digits of names.
fn numbers(text: &str) -> Vec<(f64, usize)> {
    let plain = text.replace(',', "").replace("e-", "e");
    let parts = plain.split(|c: char| !(c.is_alphanumeric() || c == '.'));
    let each = parts.map(|part| part.trim_matches('.')).filter_map(|part| {
        let digits = part.trim_end_matches(char::is_alphabetic);
        let decimals = digits.split_once('.').map_or(0, |(_, after)| after.len());
        Some((digits.parse().ok()?, decimals))
    });
    each.collect()
}

/// Every number of these words is one of the claim's own texts, rounded.
#[track_caller]
fn numbers_are_those_of(words: &str, study: &StudyOutcome, claim: &ClaimOutcome) {
    let own = [
        &claim.ours,
        &claim.reason,
        &claim.sentence,
        &claim.papers,
        &claim.rule,
    ];
    let own = own.map(String::as_str).join(" ");
    let known: Vec<f64> = numbers(&own)
        .into_iter()
        .map(|(number, _)| number)
        .collect();
    for (number, decimals) in numbers(words) {
        let scale = 10f64.powi(decimals as i32);
        // One that is in the middle may be rounded either way.
        let fits = |own: &f64| (own * scale - number * scale).abs() <= 0.5 + 1e-6;
        // Partitions are of a thousand publishers.
        let as_said = known
            .iter()
            .any(|own| [*own, own * 1000.0].iter().any(fits));
        assert!(
            as_said,
            "{} {}: {number} is not in its figures",
            study.study, claim.id
        );
    }
}

#[test]
fn words_have_the_figures_of_their_claims() {
    let studies = Studies::parse(&read(RESULTS)).unwrap();
    let words = words(&read(WORDS));
    let mut told = 0;
    for study in &studies.studies {
        for claim in &study.claims {
            let name = format!("{} {}", study.study, claim.id);
            match words.get(&name) {
                Some(words) => {
                    numbers_are_those_of(words, study, claim);
                    told += 1;
                }
                None => assert!(!claim.outcome.is_answer(), "no words for {name} in {WORDS}"),
            }
        }
    }
    assert_eq!(
        told,
        words.len(),
        "{WORDS} has words of claims that there are not"
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
        let words = finding[..finding.len() - end.len()].to_owned();
        let of = studies.studies.iter().find(|of| of.study == study).unwrap();
        numbers_are_those_of(&words, of, claim);
    }
    assert_eq!(findings.len(), count, "{path}");
}

#[test]
fn the_findings_in_readme_are_those_of_the_committed_results() {
    findings_are_right("README.md", "What papers say", 5);
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
    assert!(made.starts_with("before\n<!-- claims of file.json -->\n\n| paper |"));
    assert!(made.contains("| K1 | It is. | **holds** | 2. |") && made.ends_with("\nafter\n"));
    assert_eq!(
        with_table(&made, |_| one("holds")),
        made,
        "nothing more to change"
    );
    assert_ne!(with_table(&made, |_| one("does-not-hold")), made);
}
