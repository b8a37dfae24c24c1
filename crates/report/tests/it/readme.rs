//! README.md's table of headline claims is the one that the committed results make.

use std::path::Path;

use pubgauge_report::studies::markdown;
use pubgauge_results::studies::Studies;

/// README.md names the file between these, then the claims, all that were decided if none:
/// `<!-- claims of studies/papers/results-2core.json: kang2020/K02 H05 -->`.
const BEGIN: &str = "<!-- claims of ";
const END: &str = "<!-- end of claims -->";

/// The text with the table that `read` gives for the file that it names.
fn with_table(readme: &str, read: impl Fn(&str) -> String) -> String {
    let (before, rest) = readme.split_once(BEGIN).expect("README.md marks the table");
    let (mark, rest) = rest.split_once(" -->").expect("an end of the mark");
    let (_, after) = rest
        .split_once(END)
        .expect("README.md marks the table's end");
    let (file, ids) = mark.split_once(':').unwrap_or((mark, ""));
    let ids: Vec<&str> = ids.split_whitespace().collect();
    let studies = Studies::parse(&read(file.trim())).unwrap_or_else(|e| panic!("{file}: {e}"));
    let table = markdown(&studies, &ids).unwrap_or_else(|e| panic!("README.md: {e}"));
    format!("{before}{BEGIN}{mark} -->\n\n{table}\n{END}{after}")
}

#[test]
fn the_readme_says_what_the_committed_results_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let read = |file: &str| {
        std::fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
    };
    let made = with_table(&readme, read);
    if std::env::var_os("PUBGAUGE_UPDATE_README").is_some() {
        std::fs::write(root.join("README.md"), &made).unwrap();
        return;
    }
    assert!(
        made == readme,
        "README.md differs from the committed results: run this test with PUBGAUGE_UPDATE_README=1 and commit it"
    );
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
    let old = "before\n<!-- claims of file.json: s/K1 -->\nold\n<!-- end of claims -->\nafter\n";
    let made = with_table(old, |file| {
        assert_eq!(file, "file.json");
        one("holds")
    });
    assert!(made.starts_with("before\n<!-- claims of file.json: s/K1 -->\n\n| claim |"));
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
