//! Crossings of a workload with systems, settings, grid and repeats, and with a broker and limits of its own.

use std::path::Path;

use pubgauge_strict_toml::InvalidInput;
use pubgauge_study::{Plan, PlanOptions, Study};

fn options() -> PlanOptions {
    PlanOptions::with_systems(["a", "b", "c"])
}

const STUDY: &str = r#"
name = "t"
systems = ["a", "b"]
repeats = 2
order = "listed"

[testbed.limits]
cores = 0.5
memory = "64MiB"

[grid]
payload = ["64B", "1KiB"]

[[settings]]
name = "slow"
reliability = "at-least-once"

[[settings]]
name = "fast"
reliability = "at-most-once"

[[workload]]
name = "all"
flow = [{ rate = "10/s" }]

[[workload]]
name = "few"
systems = ["b"]
settings = ["fast"]
repeats = 3
grid = { rate = ["10/s", "20/s"], "phases.measure" = ["1s"] }
phases = { warm-up = "5s" }
topology = { brokers = 2 }
testbed = { limits = { cores = 0.25 } }
client = { pacing-within = "1ms" }
flow = [{ payload = "32B", rate = "1/s", topics = 2 }]

[scale.smoke]
repeats = 1
workload = [{ name = "few", repeats = 0 }]
grid = { payload = ["64B"] }
"#;

fn study(text: &str) -> Study {
    Study::parse("t.toml", text, Path::new("")).expect("TOML")
}

fn planned(study: &Study) -> Result<Plan, InvalidInput> {
    study.plan(&options())
}

fn cells(plan: &Plan) -> Vec<String> {
    let first = plan.trials.iter().filter(|trial| trial.repeat == 1);
    first.map(|trial| trial.cell.clone()).collect()
}

#[test]
fn a_workload_is_crossed_with_what_it_names() {
    let plan = planned(&study(STUDY)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        cells(&plan),
        [
            "a / slow / all / payload=64B",
            "b / slow / all / payload=64B",
            "a / fast / all / payload=64B",
            "b / fast / all / payload=64B",
            "a / slow / all / payload=1KiB",
            "b / slow / all / payload=1KiB",
            "a / fast / all / payload=1KiB",
            "b / fast / all / payload=1KiB",
            "b / fast / few / phases.measure=1s / rate=10/s",
            "b / fast / few / phases.measure=1s / rate=20/s",
        ]
    );
    let of = |workload: &'static str| {
        plan.trials
            .iter()
            .filter(move |t| t.workload.name == workload)
    };
    assert_eq!((of("all").count(), of("few").count()), (16, 6));
    assert_eq!(plan.repeats, 3);
    for few in of("few") {
        assert_eq!(
            (few.setup.brokers, few.setup.client.pacing_within),
            (2, 1_000_000)
        );
        assert_eq!(few.setup.limits.cores, Some(0.25));
        assert_eq!(few.setup.limits.memory_bytes, Some(64 << 20), "the study's");
        assert_eq!(few.workload.phases.measure.latest(), 1_000_000_000);
        assert_eq!(few.workload.phases.warm_up.latest(), 5_000_000_000);
    }
    for all in of("all") {
        assert_eq!((all.setup.brokers, all.setup.client.pacing_within), (1, 0));
        assert_eq!(all.setup.limits.cores, Some(0.5));
        assert_eq!(all.workload.phases.warm_up.latest(), 2_000_000_000);
    }
}

/// The order of a study whose workloads limit nothing is that of before there were limits: a run that began
/// then can go on.
#[test]
fn limits_that_let_everything_through_change_nothing() {
    let plain = r#"
name = "t"
systems = ["a", "b"]
repeats = 2
seed = 7
[grid]
payload = ["64B", "1KiB", "2KiB"]
[[workload]]
name = "x"
flow = [{ rate = "10/s" }]
[[workload]]
name = "y"
flow = [{ rate = "10/s" }]
"#;
    let limited = plain.replace(
        "flow =",
        "systems = [\"a\", \"b\"]\nsettings = [\"default\"]\nrepeats = 2\nflow =",
    );
    let order = |text: &str| -> Vec<(String, u32)> {
        let plan = planned(&study(text)).unwrap_or_else(|e| panic!("{e}"));
        (plan.trials.iter())
            .map(|t| (t.cell.clone(), t.repeat))
            .collect()
    };
    assert_eq!(order(plain), order(&limited));
    assert_eq!(order(plain).len(), 24);
}

#[test]
fn flags_reach_workloads() {
    let mut options = options();
    options.on = vec!["a".into()];
    options.repeats = Some(1);
    let plan = study(STUDY)
        .plan(&options)
        .unwrap_or_else(|e| panic!("{e}"));
    assert!(
        plan.trials
            .iter()
            .all(|t| t.system == "a" && t.workload.name == "all")
    );
    assert_eq!(plan.trials.len(), 4);
    let note = "workload `few` is left out: it is for b alone";
    assert!(plan.notes.iter().any(|n| n == note), "{:?}", plan.notes);

    options.on = vec!["c".into()];
    let error =
        study(&STUDY.replace("name = \"all\"", "name = \"all\"\nsystems = [\"a\"]")).plan(&options);
    let error = error.expect_err("nothing is left").to_string();
    assert!(error.contains("nothing is left to run: "), "{error}");

    let mut changed = study(STUDY);
    changed
        .apply_set("workload.few.grid.rate=[\"5/s\"]")
        .expect("a path");
    changed
        .apply_set("workload.few.testbed.limits.cores=1")
        .expect("a path");
    let plan = planned(&changed).unwrap_or_else(|e| panic!("{e}"));
    let few: Vec<_> = plan
        .trials
        .iter()
        .filter(|t| t.workload.name == "few")
        .collect();
    assert_eq!((few.len(), few[0].setup.limits.cores), (3, Some(1.0)));

    let mut profiled = study(STUDY);
    profiled
        .apply_profiles(&["latency".into()])
        .expect("a profile");
    let plan = planned(&profiled).unwrap_or_else(|e| panic!("{e}"));
    let few = plan
        .trials
        .iter()
        .find(|t| t.workload.name == "few")
        .expect("it is run");
    assert_eq!(few.settings_name, "fast-latency");
}

#[test]
fn a_scale_is_the_study_with_what_it_says() {
    let mut small = study(STUDY);
    small.apply_scale("smoke").unwrap_or_else(|e| panic!("{e}"));
    let plan = planned(&small).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(plan.scale.as_deref(), Some("smoke"));
    assert_eq!(cells(&plan).len(), 4);
    assert_eq!(plan.trials.len(), 4);
    assert!(
        plan.trials
            .iter()
            .all(|t| t.setup.limits.cores == Some(0.5))
    );

    let mut full = study(STUDY);
    full.apply_scale("full").expect("every study has it");
    let plan = planned(&full).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((plan.scale.clone(), plan.trials.len()), (None, 22));

    // A run stores the same plan.
    let stored = planned(&small).expect("planned above").resolved;
    let mut again = study(&stored);
    again.apply_scale("smoke").expect("kept");
    let again = planned(&again).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(again.resolved, stored);
    assert_eq!(again.trials.len(), 4);
}

/// Errors are told where they stand, with what there is.
#[test]
fn mistakes() {
    let wrong = [
        ("systems = [\"b\"]", "systems = [\"bb\"]"),
        ("systems = [\"b\"]", "systems = []"),
        ("settings = [\"fast\"]", "settings = [\"fats\"]"),
        ("rate = [\"10/s\", \"20/s\"]", "rate = []"),
        ("rate = [\"10/s\", \"20/s\"]", "repeats = [1, 2]"),
        (
            "rate = [\"10/s\", \"20/s\"]",
            "\"workload.all.flow.rate\" = [\"1/s\"]",
        ),
        ("topology = { brokers = 2 }", "topology = { brokers = 3 }"),
        ("cores = 0.25", "cores = 0.01"),
        ("pacing-within = \"1ms\"", "pacing-within = \"1s\""),
        ("name = \"all\"", "name = \"all\"\ngrid = {}"),
        ("[scale.smoke]\nrepeats = 1", "[scale.smoke]\nrepeat = 1"),
        (
            "workload = [{ name = \"few\"",
            "workload = [{ name = \"fwe\"",
        ),
        ("[scale.smoke]", "[scale.full]"),
        ("[scale.smoke]", "[scale.smoke]\nscale = {}"),
    ];
    let told = wrong.map(|(from, to)| {
        assert!(STUDY.contains(from), "{from}");
        let error = planned(&study(&STUDY.replace(from, to)));
        format!(
            "{to}\n{}",
            error.err().map_or("nothing".into(), |e| e.to_string())
        )
    });
    insta::assert_snapshot!(told.join("\n\n"));

    let unknown = study(STUDY).apply_scale("smok").expect_err("there is none");
    let none = study("name = \"t\"")
        .apply_scale("smoke")
        .expect_err("there is none");
    insta::assert_snapshot!("scales", format!("{unknown}\n\n{none}"));
}
