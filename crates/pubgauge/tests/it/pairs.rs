//! `pubgauge run --precision` and ablations over a real broker: structure, bounds, and a run that was cut off.
//! Figures depend on the machine, and are not looked at.

use crate::common;

use std::time::Duration;

use common::*;
use serde_json::Value;

const LONG: Duration = Duration::from_secs(400);

/// Two settings of one system, with what can be precise in a few rounds and what bounds them.
const QOS: &str = r#"
name = "qos"
systems = ["mosquitto"]
[phases]
warm-up = "100ms"
measure = "500ms"
drain-quiet = "100ms"
[compare]
precision = "50%"
figures = ["delivered-rate"]
pairs = 9
[[settings]]
name = "one"
reliability = "at-least-once"
[[settings]]
name = "zero"
reliability = "best-effort"
[[workload]]
name = "w"
[[workload.flow]]
rate = "200/s"
payload = "64B"
"#;

fn list<'a>(of: &'a Value, name: &str) -> &'a [Value] {
    of[name].as_array().map_or(&[], Vec::as_slice)
}

/// Checks that hold for every run in rounds.
#[track_caller]
fn is_whole(results: &Value, most: u64) {
    let trials = list(results, "trials");
    for (nth, trial) in trials.iter().enumerate() {
        assert_eq!(count(trial, "id"), nth as u64);
    }
    let rounds: Vec<u64> = trials.iter().map(|t| count(t, "repeat")).collect();
    assert!(
        rounds.is_sorted() && rounds.iter().all(|r| (1..=most).contains(r)),
        "{rounds:?}"
    );
    assert_eq!(
        count(&results["study"], "planned_trials"),
        trials.len() as u64
    );
    for comparison in list(results, "comparisons") {
        assert_ne!(comparison["ended"], "cut", "{comparison}");
        assert!(count(comparison, "pairs") <= most, "{comparison}");
        if comparison["ended"] == "precision" {
            assert!(count(comparison, "pairs") >= 6, "{comparison}");
        }
        for figure in list(comparison, "figures") {
            let end = |name: &str| figure[name].as_f64();
            let ordered = end("low") <= end("change") && end("change") <= end("high");
            assert!(ordered || !figure["why"].is_null(), "{figure}");
        }
    }
}

#[test]
fn what_cannot_be_compared_changes_nothing() {
    let place = Place::new();
    let says = |args: &[&str], text: &str| {
        let all = [&["run", "--out", "run", "--rate", "10/s", "--on"], args].concat();
        place.run(&all).exits(3).assert_says(text);
        assert!(!place.path_to("run").exists());
    };
    says(
        &["simulated", "--precision", "3%"],
        "there is nothing to compare",
    );
    says(&["simulated", "--precision", "3"], "is no percentage");
    says(
        &["simulated", "--precision", "3%", "--repeats", "4"],
        "cannot be used with",
    );
    let figures = |names: &str| format!("compare.figures=[\"{names}\"]");
    let two = ["simulated,mosquitto", "--precision", "3%", "--set"];
    says(
        &[&two[..], &[&figures("speed")]].concat(),
        "compare.figures speed: no such figure",
    );
    says(
        &[&two[..], &[&figures("loss-share")]].concat(),
        "has no relative change",
    );
}

/// Tests that take long.
mod long {
    use super::*;

    #[test]
    fn the_ablation_that_comes_with_pubgauge_runs() {
        let place = Place::new();
        let study = repository("studies/ablation.toml");
        let study = study.to_str().expect("a path");
        let mut args = vec!["run", study, "--out", "run"];
        for set in [
            "compare.precision=50%",
            "compare.pairs=6",
            "phases.warm-up=100ms",
            "phases.measure=500ms",
            "phases.drain-quiet=100ms",
            "rate=200/s",
        ] {
            args.extend(["--set", set]);
        }
        let done = place.start(&args).ends_within(LONG);
        done.ran_to_its_end();
        let results = place.results("run");
        is_whole(&results, 6);
        let found = list(&results, "comparisons");
        let impossible = list(&results["study"], "unsupported").len();
        assert_eq!(found.len() + impossible, 6, "three changes on two systems");
        assert!(found.iter().any(|c| c["other"]["system"] == "mosquitto"));
        for comparison in found {
            assert_eq!(comparison["base"]["settings"], "base");
            assert_eq!(comparison["base"]["system"], comparison["other"]["system"]);
            assert_eq!(comparison["ablation"], comparison["other"]["settings"]);
        }
        assert!(
            done.out.contains("one change at a time against base"),
            "{}",
            done.out
        );
        place.is_clean();
    }

    #[test]
    fn rounds_that_were_cut_off_go_on() {
        let place = Place::new();
        place.write("qos.toml", QOS);
        let mut run = place.start(&["run", "qos.toml", "--out", "run"]);
        run.until("three trials", || {
            place.path_to("run/trials/0002/trial.json").exists()
        });
        run.signal(libc::SIGINT);
        let cut = run.wait_for_end();
        cut.ran_to_its_end();
        let before = place.results("run");
        // On a machine that is busy with other things a trial is overloaded now and then, which ends it by itself.
        let ended = &before["comparisons"][0]["ended"];
        assert!(*ended == "cut" || *ended == "system", "{ended}");
        let done = place.start(&["run", "--resume", "run"]).ends_within(LONG);
        done.ran_to_its_end();
        let after = place.results("run");
        is_whole(&after, 9);
        for (nth, trial) in list(&before, "trials").iter().enumerate() {
            assert_eq!(
                *trial, after["trials"][nth],
                "trial {nth} was measured again"
            );
        }
        let found = list(&after, "comparisons");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0]["base"]["settings"], "one");
        assert_eq!(found[0]["other"]["settings"], "zero");
        assert_eq!(found[0]["figures"][0]["figure"], "delivered-rate");
        assert!(done.out.contains("compared with one"), "{}", done.out);
        // Nothing is left to do: the same once more measures nothing.
        let again = place.start(&["run", "--resume", "run"]).ends_within(LONG);
        again.ran_to_its_end();
        assert_eq!(place.results("run")["comparisons"], after["comparisons"]);
        assert_eq!(
            list(&place.results("run"), "trials").len(),
            list(&after, "trials").len()
        );
        place.is_clean();
    }
}
