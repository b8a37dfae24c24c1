//! `pubgauge report` over several runs: what is printed, where the page is, and what is refused.

use crate::common::*;

use pubgauge_figures::model::{Results, StudyInfo};
use pubgauge_fixtures::TrialBuilder;
use serde_json::Value;

/// Writes a run of three repeats that began on a day, with this median latency.
fn run(place: &Place, folder: &str, day: u32, p50: f64) {
    let trials = (0..3).map(|id| {
        let p50 = p50 * (1.0 + 0.002 * f64::from(id));
        TrialBuilder::periodic(1_000.0, 10.0)
            .id(id)
            .cell("one")
            .system("one")
            .workload("meters")
            .repeat(id + 1)
            .times(p50 as u64, (5.0 * p50) as u64)
            .build()
    });
    let results = Results {
        trials: trials.collect(),
        study: StudyInfo {
            name: "nightly".into(),
            started: format!("2026-11-0{day}T10:00:00Z"),
            planned_trials: 3,
            ..StudyInfo::default()
        },
        ..Results::default()
    };
    std::fs::create_dir_all(place.path_to(folder)).unwrap();
    let text = serde_json::to_string(&results).unwrap();
    place.write(&format!("{folder}/results.json"), text);
}

#[test]
fn several_runs_are_a_trend() {
    let place = Place::new();
    run(&place, "runs/new", 3, 200e3);
    run(&place, "runs/old", 1, 100e3);
    run(&place, "runs/mid", 2, 100e3);
    place.write("runs/old/report.html", "");
    let args = ["report", "runs/new", "runs/old", "runs/mid"];
    let done = place.run(&args).exits(0);
    // In the order of time, whatever the order of their names.
    for said in [
        "run 1: runs/old",
        "run 3: runs/new",
        "page: runs/trend.html",
    ] {
        assert!(done.out.contains(said), "{}", done.out);
    }
    let worse: Vec<&str> = done.out.lines().filter(|l| l.contains("worse: ")).collect();
    assert_eq!(worse.len(), 2, "{}", done.out);
    assert!(worse[0].contains("one, meters: latency.p50 100 µs -> 200 µs in run 3"));
    let page = std::fs::read_to_string(place.path_to("runs/trend.html")).unwrap();
    assert!(page.contains("<a href=\"old/report.html\">runs/old</a>"));
    assert!(!page.contains("mid/report.html"), "it has no page");
    place.is_clean();

    let done = place.run(&[&args[..], &["--json"]].concat()).exits(0);
    let trend: Value = serde_json::from_str(&done.out).unwrap();
    let schema = place.run(&["schema", "trend"]).exits(0);
    let schema: Value = serde_json::from_str(&schema.out).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&trend));
    let p50 = &trend["cells"][0]["figures"][0];
    assert_eq!(p50["figure"], "latency.p50");
    assert_eq!(p50["points"][2]["step"]["verdict"], "worse");
    assert_eq!(p50["points"][1]["step"]["verdict"], "same");

    // One figure alone, and a page elsewhere.
    let more = ["--figure", "latency.p99", "--out", "one.html", "--json"];
    let done = place.run(&[&args[..], &more].concat()).exits(0);
    let trend: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(trend["cells"][0]["figures"].as_array().unwrap().len(), 1);
    let page = std::fs::read_to_string(place.path_to("one.html")).unwrap();
    assert!(page.contains("<a href=\"runs/old/report.html\">"));
}

#[test]
fn what_is_no_run_changes_nothing() {
    let place = Place::new();
    run(&place, "runs/a", 1, 100e3);
    run(&place, "runs/b", 2, 100e3);
    for (args, said) in [
        (&["runs/a", "runs/a"][..], "is named twice"),
        (&["runs/a", "runs"], "holds several runs"),
        (&["runs/a", "nowhere"], "nowhere"),
        (&["runs/a", "runs/b", "--figure", "speed"], "--figure"),
        (&["runs/a", "runs/b", "--margin", "5"], "--margin 5"),
        (
            &["runs/a", "runs/b", "--junit", "x.xml"],
            "--junit is of one run",
        ),
        (&["runs/a", "--figure", "latency.p50"], "of several runs"),
    ] {
        let done = place.run(&[&["report"], args].concat()).exits(3);
        done.assert_says(said);
        assert!(!place.path_to("runs/trend.html").exists());
        assert!(!place.path_to("x.xml").exists());
    }
}
