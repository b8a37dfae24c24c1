//! Counts that a study asks for beside what is always measured.

use std::path::Path;

use pubgauge_study::{PlanOptions, PlannedTrial, Study};

const STUDY: &str = r#"
name = "counts"
systems = ["a"]

[testbed]
count-interface = "lo"

[[workload]]
name = "as-the-study"
flow = [{ pattern = "1-1", payload = "64B", rate = "1/s" }]

[[workload]]
name = "its-own"
testbed = { count-system-calls = true, count-interface = "site/eth0" }
flow = [{ pattern = "1-1", payload = "64B", rate = "1/s" }]
"#;

fn study(text: &str) -> Study {
    Study::parse("counts.toml", text, Path::new("")).expect("a study")
}

fn options() -> PlanOptions {
    PlanOptions::with_systems(["a"])
}

/// The workload, and what is counted of it.
fn counts(study: &Study) -> Vec<(String, bool, Option<String>)> {
    let plan = study.plan(&options()).unwrap_or_else(|e| panic!("{e}"));
    let of = |trial: &PlannedTrial| {
        let interface = trial.setup.counts.interface.clone();
        (
            trial.workload.name.clone(),
            trial.setup.counts.system_calls,
            interface,
        )
    };
    let mut all: Vec<_> = plan.trials.iter().map(of).collect();
    all.sort();
    all
}

#[test]
fn a_workload_counts_what_the_study_does_and_its_own() {
    let mut study = study(STUDY);
    let of =
        |name: &str, calls, interface: &str| (name.to_owned(), calls, Some(interface.to_owned()));
    let own = of("its-own", true, "site/eth0");
    assert_eq!(
        counts(&study),
        [of("as-the-study", false, "lo"), own.clone()]
    );
    let flag = study.apply_flag("--count-system-calls", "testbed.count-system-calls", "true");
    flag.unwrap();
    let flag = study.apply_flag("--count-interface", "testbed.count-interface", "eth1");
    flag.unwrap();
    assert_eq!(counts(&study), [of("as-the-study", true, "eth1"), own]);
}

#[test]
fn nothing_is_counted_unasked() {
    let (counted, plain) = (
        study(STUDY),
        study(&STUDY.replace("count-interface = \"lo\"", "")),
    );
    assert_eq!(counts(&plain)[0], ("as-the-study".to_owned(), false, None));
    // Before and after each trial at whose interface is counted, there is half a second without messages.
    let length = |study: &Study| study.plan(&options()).expect("a plan").duration_estimate();
    assert_eq!(length(&counted) - length(&plain), 1_000_000_000);
}

#[test]
fn what_is_no_interface_is_named_with_its_place() {
    for wrong in ["", "a b", "a/b/c", "/lo", "site/", "eth0:1"] {
        let text = STUDY.replace("\"lo\"", &format!("\"{wrong}\""));
        let said = study(&text).plan(&options()).expect_err(wrong).to_string();
        assert!(said.contains("name of a network interface"), "{said}");
        assert!(
            said.contains("counts.toml:6") && said.contains("hint:"),
            "{said}"
        );
    }
}
