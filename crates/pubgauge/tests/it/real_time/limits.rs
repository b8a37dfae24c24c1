//! Studies that search for a limit and measure at shares of it, over a simulated system that takes exactly so much.

use crate::common;

use std::time::Duration;

use common::*;
use serde_json::Value;

/// Rate of the simulated system, messages a second: one every 2 ms.
const LIMIT: f64 = 500.0;

const STUDY: &str = r#"
name = "limits"
systems = ["simulated"]
repeats = 3
[phases]
warm-up = "200ms"
measure = "1s"
ready-within = "60s"
drain-quiet = "500ms"
drain-within = "1s"
[search]
width = 0.3
confirm = "1s"
budget = "60s"
[[settings]]
native.simulated.service-ns = 2_000_000
[[workload]]
name = "limit"
flow = [{ payload = "64B", rate = "find" }]
[[workload]]
name = "shares"
grid = { rate = ["40% of limit", "200% of limit"] }
flow = [{ payload = "64B", rate = "max" }]
[[workload]]
name = "plain"
repeats = 1
flow = [{ payload = "64B", rate = "50/s" }]
[[criterion]]
figure = "latency.p99"
at-most = "100ms"
workload = "limit"
[[claim]]
id = "C1"
sentence = "Twice the limit is five times 40 % of it, or more."
source = "this test"
figure = "offered-rate"
verdicts = ["valid", "unsteady", "client-bound", "overloaded"]
where = { workload = "shares" }
rule = { sides = [{ rate = "200% of limit" }, { rate = "40% of limit" }], ratio = "> 4.9" }
"#;

fn run(place: &Place) -> Value {
    place.write("limits.toml", STUDY);
    let done = place
        .start(&["run", "limits.toml", "--out", "run", "-v"])
        .ends_within(Duration::from_secs(300));
    done.ran_to_its_end();
    agrees(place, &done.out)
}

/// Trials, search, table and page tell the same.
#[track_caller]
fn agrees(place: &Place, table: &str) -> Value {
    let results = place.results("run");
    let search = &results["searches"][0];
    let end = |name: &str| search[name].as_f64();
    if let (Some(low), "system") = (end("low"), search["bound"].as_str().unwrap_or_default()) {
        assert!(low <= 1.02 * LIMIT, "{search}");
    }
    let trials = results["trials"].as_array().unwrap();
    let first = trials.iter().position(|trial| trial["search"].is_null());
    let first = first.expect("trials that are no part of the search");
    let (of_search, plain) = trials.split_at(first);
    assert_eq!(of_search.len(), search["trials"].as_array().unwrap().len());
    for (nth, trial) in trials.iter().enumerate() {
        assert_eq!(count(trial, "id"), nth as u64);
    }
    let mut counted = 0;
    for trial in plain {
        let axes = trial["axes"].as_array().unwrap();
        let Some(axis) = axes.first().and_then(|axis| axis["value"].as_str()) else {
            assert_eq!(trial["workload"]["name"], "plain");
            assert!(trial.get("limit_share").is_none(), "{trial}");
            continue;
        };
        let told = &trial["limit_share"];
        let number = |name: &str| told[name].as_f64().expect("a number");
        let (share, load) = (number("share"), number("load"));
        assert_eq!(axis, format!("{}% of limit", share * 100.0));
        let of = if share > 1.0 { end("high") } else { end("low") };
        assert_eq!(of, told["end"].as_f64(), "{told}");
        assert!(
            (load / (share * of.expect("an end")) - 1.0).abs() < 0.002,
            "{told}"
        );
        let (offered, seconds) = (
            trial["offered_msgs_per_s"].as_f64(),
            trial["duration_s"].as_f64(),
        );
        let off = (offered.unwrap() - load).abs() * seconds.unwrap();
        assert!(off <= 1.5 + 0.001 * load, "offered {offered:?} of {load}");
        counted += 1;
    }
    let absent = results["not_measured"].as_array().map_or(0, Vec::len);
    assert_eq!(counted + 3 * absent, 6, "each repeat, or a reason");
    assert_eq!(plain.len() - counted, 1, "the plain one");
    assert_eq!(
        count(&results["study"], "planned_trials"),
        trials.len() as u64
    );
    assert_eq!(results["study"]["cut_off"], false);
    let claim = &results["claims"][0];
    let reason = claim["reason"].as_str().unwrap_or_default();
    let at_least = |trial: &Value| trial["limit_share"]["at_least"] == true;
    match (absent, plain.iter().any(at_least)) {
        (0, false) => assert_eq!(claim["outcome"], "holds", "{claim}"),
        _ => assert!(
            claim["outcome"] == "cannot-tell"
                && (reason.contains("not measured: no load is ") || reason.contains("at least")),
            "{claim}"
        ),
    }
    // Criteria of the search do not judge other trials.
    assert_eq!(
        results["study"]["criteria"].as_array().map(Vec::len),
        Some(0)
    );
    let told: String = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("rate at 40 % of limit"), "{table}");
    assert!(told.contains("is 40 % of what limit carries"), "{table}");
    let page = std::fs::read_to_string(place.path_to("run/report.html")).expect("the page");
    assert!(page.contains("is 40 % of what limit carries"));
    if absent > 0 {
        assert!(
            told.contains("Not measured:") && page.contains("not measured: no load is"),
            "{table}"
        );
    }
    results
}

#[test]
fn loads_are_shares_of_the_limit_that_the_run_found() {
    let place = Place::new();
    let results = run(&place);
    // The planted limit is found unless the machine was busy with other things.
    let search = &results["searches"][0];
    if search["bound"] == "system" {
        let (low, high) = (
            search["low"].as_f64().unwrap(),
            search["high"].as_f64().unwrap(),
        );
        assert!(low <= 1.02 * LIMIT && high >= 0.9 * LIMIT, "{search}");
    }
    let again = place.run(&["report", "run", "-v"]);
    assert!(again.out.contains("of what limit carries"), "{}", again.out);
    place.run(&["export", "run", "--format", "csv"]).exits(0);
    let trials = std::fs::read_to_string(place.path_to("run/export/trials.csv")).expect("a table");
    let names = trials.lines().next().unwrap_or_default();
    assert!(names.contains("limit_share"), "{names}");
    place.is_clean();
}

#[test]
fn a_run_that_was_cut_off_goes_on_at_the_same_loads() {
    let place = Place::new();
    place.write("limits.toml", STUDY);
    let mut run = place.start(&["run", "limits.toml", "--out", "run", "-v"]);
    // Two trials beside the search, wherever it ended.
    run.until("two trials at shares", || {
        let stored = std::fs::read_to_string(place.path_to("run/results.json")).unwrap_or_default();
        stored.matches("\"limit_share\":").count() >= 2
    });
    run.signal(libc::SIGINT);
    let done = run.wait_for_end().exits(2);
    assert!(done.err.contains("--resume run"), "{}", done.err);
    let before = place.results("run");
    assert_eq!(before["study"]["cut_off"], true);
    let resumed = place.start(&["run", "--resume", "run", "-v"]);
    let done = resumed.ends_within(Duration::from_secs(300));
    done.ran_to_its_end();
    let after = agrees(&place, &done.out);
    for (nth, trial) in before["trials"].as_array().unwrap().iter().enumerate() {
        assert_eq!(
            *trial, after["trials"][nth],
            "trial {nth} was measured again"
        );
    }
    place.is_clean();
}

/// A link that is never too much for the system: nothing is above its limit.
#[test]
fn nothing_is_above_a_limit_that_was_not_found() {
    let place = Place::new();
    let text = STUDY
        .replace("service-ns = 2_000_000", "service-ns = 0")
        .replace("rate = \"find\"", "topics = \"find\", rate = \"10/s\"")
        .replace(
            "rate = [\"40% of limit\", \"200% of limit\"]",
            "topics = [\"40% of limit\", \"200% of limit\"]",
        )
        .replace(
            "rate = \"max\"",
            "topics = \"40% of limit\", rate = \"10/s\"",
        )
        .replace("rate = \"200%", "topics = \"200%")
        .replace("rate = \"40%", "topics = \"40%")
        .replace("width = 0.3", "width = 0.3\ntrials = 6")
        .replace("repeats = 3", "repeats = 1");
    place.write("none.toml", text);
    let plan = place.run(&["plan", "none.toml"]).exits(0);
    let told: String = plan.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("1 search, at most 60 s; then 3 trials, about"),
        "{told}"
    );
    assert!(told.contains("topics: 40% of limit"), "{told}");
    let run = place.start(&["run", "none.toml", "--out", "run"]);
    let done = run.ends_within(Duration::from_secs(300));
    done.ran_to_its_end();
    let results = place.results("run");
    let search = &results["searches"][0];
    assert_eq!(search["high"], Value::Null, "{search}");
    let absent = results["not_measured"]
        .as_array()
        .expect("what was not measured");
    assert!(
        absent.iter().any(|cell| cell["reason"]
            .as_str()
            .unwrap_or_default()
            .contains("no load is 200% of limit")),
        "{absent:?}"
    );
    assert!(
        done.err.contains("not measured: simulated / "),
        "{}",
        done.err
    );
    assert!(done.out.contains("Not measured:"), "{}", done.out);
    assert_eq!(results["claims"][0]["outcome"], "cannot-tell");
    place.is_clean();
}
