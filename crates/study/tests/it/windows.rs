//! Named spans of the measurement: what they become, and what is said of those that cannot be.

use std::path::Path;

use pubgauge_strict_toml::InvalidInput;
use pubgauge_study::{Plan, PlanOptions, Study};
use pubgauge_workload::{SECOND, Window};

fn plan(text: &str) -> Result<Plan, InvalidInput> {
    let options = PlanOptions::with_systems(["mosquitto"]);
    Study::parse("study.toml", text, Path::new(".")).and_then(|study| study.plan(&options))
}

/// A study with two workloads, `w` and one with phases of its own, and more below them.
fn study(measure: &str, window: &str, own: &str, more: &str) -> String {
    let flow = "[[workload.flow]]\npayload = \"64B\"\nrate = \"1/s\"\n";
    format!(
        "name = \"t\"\n[phases]\nmeasure = {measure}\n{window}\n[[workload]]\nname = \"w\"\n{flow}\
         [[workload]]\nname = \"own\"\n{own}\n{flow}{more}"
    )
}

const DURING: &str = "[[phases.window]]\nname = \"during\"\nfrom = \"2s\"\nto = \"3500ms\"";

fn during() -> Window {
    Window {
        name: "during".into(),
        from: 2 * SECOND,
        to: 3 * SECOND + SECOND / 2,
    }
}

#[test]
fn windows_are_the_study_s_or_the_workload_s_own() {
    let own = "phases = { window = [{ name = \"all\", from = \"0s\", to = \"9s\" }] }";
    let plan = plan(&study("\"9s\"", DURING, own, "")).expect("sound");
    let windows = |name: &str| {
        let mut trials = plan.trials.iter();
        let trial = trials.find(|t| t.workload.name == name).expect("planned");
        trial.workload.phases.windows.clone()
    };
    assert_eq!(windows("w"), [during()]);
    let all = Window {
        name: "all".into(),
        from: 0,
        to: 9 * SECOND,
    };
    assert_eq!(windows("own"), [all]);
}

#[test]
fn records_are_as_long_as_asked_for() {
    let own = "phases = { record = \"500ms\" }";
    let plan = plan(&study("\"90s\"\nrecord = \"5s\"", "", own, "")).expect("sound");
    let record = |name: &str| {
        let mut trials = plan.trials.iter();
        let trial = trials.find(|t| t.workload.name == name).expect("planned");
        trial.workload.phases.record_length()
    };
    assert_eq!((record("w"), record("own")), (5 * SECOND, SECOND / 2));
}

#[test]
fn criteria_claims_and_comparisons_name_figures_of_windows() {
    let more = "[compare]\nfigures = [\"latency.p99@during\"]\n\
        [[criterion]]\nfigure = \"latency.p99@during\"\nbelow = \"10ms\"\n\
        [[claim]]\nid = \"a\"\nsentence = \"s\"\nsource = \"t\"\n\
        figure = \"latency.p90@during / latency.p90@during\"\nrule = { sides = [\"mosquitto\"], value = \"< 2\" }\n";
    let plan = plan(&study("\"9s\"", DURING, "", more)).expect("sound");
    let criterion = &plan.criteria[0];
    assert_eq!(criterion.figure, "latency_ns.p99@during");
    assert_eq!(criterion.text, "latency.p99@during below 10ms");
}

#[test]
fn a_window_lies_within_all_trials_of_a_search() {
    let told = |phases: &str| {
        let text = format!(
            "name = \"t\"\n{phases}\n[[workload]]\nname = \"w\"\n[[workload.flow]]\npayload = \"64B\"\nrate = \"find\"\n"
        );
        plan(&text).err().map(|error| error.to_string())
    };
    let late = "[[phases.window]]\nname = \"late\"\nfrom = \"6s\"\nto = \"9s\"";
    let short = told(late).expect("refused");
    assert!(short.contains("lasts 5s"), "{short}");
    let longer = format!(
        "[phases]\nmeasure = \"60s\"\n{}",
        late.replace("\"9s\"", "\"50s\"")
    );
    let confirming = told(&longer).expect("refused");
    assert!(confirming.contains("lasts 45s"), "{confirming}");
    assert_eq!(told(&longer.replace("\"50s\"", "\"40s\"")), None);
}

#[test]
fn an_axis_reaches_no_workload_with_windows_of_its_own() {
    let own = "phases = { window = [{ name = \"during\", from = \"0s\", to = \"3s\" }] }";
    let grid = "[grid]\n\"phases.window.during.from\" = [\"0s\", \"2s\"]\n";
    let told = |own: &str| {
        let planned = plan(&study("\"9s\"", DURING, own, grid));
        planned.err().map(|error| error.to_string())
    };
    let error = told(own).expect("refused");
    assert!(error.contains("which this axis does not reach"), "{error}");
    assert_eq!(told(""), None);
}

#[test]
fn what_cannot_be_is_said() {
    let window = |name: &str, from: &str, to: &str| {
        format!("[[phases.window]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\n")
    };
    let twice = window("a", "0s", "1s") + &window("a", "1s", "2s");
    let criterion =
        |figure: &str| format!("[[criterion]]\nfigure = \"{figure}\"\nbelow = \"10ms\"\n");
    let claim = "[[claim]]\nid = \"a\"\nsentence = \"s\"\nsource = \"t\"\nfigure = \"lost@durin\"\n\
        rule = { sides = [\"mosquitto\"], count = \"= 0\" }\n";
    let within = claim.replace(
        "{ sides = [\"mosquitto\"], count = \"= 0\" }",
        "{ any = [{ sides = [\"mosquitto\"], count = \"= 0\" }] }",
    );
    let count = "{ messages = 10, within = \"60s\" }";
    let cases = [
        (
            study("\"9s\"", &window("a", "2s", "10s"), "", ""),
            "lasts 9s",
        ),
        (
            study("\"9s\"", &window("a", "2s", "2s"), "", ""),
            "it has no length",
        ),
        (
            study("\"9s\"", &window("at night", "1s", "2s"), "", ""),
            "no name of a window",
        ),
        (study("\"9s\"", &twice, "", ""), "`a` is there twice"),
        (
            study("\"9s\"\nrecord = \"2s\"", "", "", ""),
            "a span from 100ms to 1125ms",
        ),
        (
            study("\"5h\"\nrecord = \"2s\"", "", "", ""),
            "a span from 10s to 2250s",
        ),
        (
            study("\"9s\"", "", "phases = { record = \"50ms\" }", ""),
            "would have 180 records of 50ms; expected 8 to 1800 of them, of 100ms or longer",
        ),
        (
            study("\"500ms\"\nrecord = \"100ms\"", "", "", ""),
            "make the measurement longer",
        ),
        (
            study(count, DURING, "", ""),
            "a length that is known beforehand",
        ),
        (
            study("\"9s\"", DURING, "phases = { measure = \"3s\" }", ""),
            "lasts 3s",
        ),
        (
            study("\"9s\"", DURING, "", &criterion("latency.p99@durin")),
            "did you mean `during`",
        ),
        (
            study("\"9s\"", "", "", &criterion("latency.p99@durin")),
            "the study has no window `durin`",
        ),
        (
            study("\"9s\"", DURING, "", &criterion("client-cpu@during")),
            "of the whole measurement",
        ),
        (study("\"9s\"", DURING, "", claim), "did you mean `during`"),
        (
            study("\"9s\"", DURING, "", &within),
            "did you mean `during`",
        ),
        (
            study(
                "\"9s\"",
                DURING,
                "",
                &claim.replace("lost@durin", "smallest-member-share@during"),
            ),
            "of the whole measurement",
        ),
        (
            study("\"9s\"", DURING, "", "[compare]\nfigures = [\"lost@x\"]\n"),
            "`x` is no window of this study",
        ),
    ];
    for (text, message) in cases {
        match plan(&text) {
            Ok(_) => panic!("this was accepted:\n{text}"),
            Err(error) => {
                let said = error.to_string();
                assert!(said.contains(message), "{message}:\n{said}");
                assert_eq!(said.matches(message).count(), 1, "once:\n{said}");
            }
        }
    }
}
