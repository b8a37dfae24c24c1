//! A study with claims, over a real system: each is judged, and said in table, page and results.

use std::collections::BTreeMap;

use crate::common;

use common::{Place, repository};
use pubgauge_figures::studies::Studies;
use pubgauge_report::studies::markdown;
use serde_json::Value;

/// A run that is judged again by rules that were written after it: the opposite of one that held. Nothing else changes, and
/// the claims of another study, or for several runs, change nothing.
fn judged_by_changed_rules(place: &Place, study: &std::path::Path) {
    let before = place.results("run");
    let text = std::fs::read_to_string(study).expect("the study");
    let lost = "count = \"= 0\"";
    assert!(text.contains(lost), "{text}");
    place.write("changed.toml", text.replace(lost, "count = \"> 0\""));
    place.write(
        "other.toml",
        text.replacen("name = \"claims\"", "name = \"others\"", 1),
    );
    for (dir, file, why) in [
        (
            "run",
            "other.toml",
            "its claims are about the runs of study `others`",
        ),
        (".", "changed.toml", "holds several runs"),
        ("run", "none.toml", "none.toml"),
    ] {
        let refused = place.run(&["report", dir, "--claims", file]).exits(3);
        assert!(refused.err.contains(why), "{}", refused.err);
        assert_eq!(place.results("run"), before);
    }
    let again = place
        .run(&["report", "run", "--claims", "changed.toml"])
        .exits(0);
    let after = place.results("run");
    let outcome = |results: &Value, rule: &str| {
        let claims = results["claims"].as_array().expect("claims").iter();
        let mut of = claims.filter(|c| c["rule"].as_str().is_some_and(|r| r.contains(rule)));
        of.next()
            .map(|claim| claim["outcome"].as_str().unwrap_or_default().to_owned())
    };
    // As above, a neighbour may have spoiled trials.
    let then = outcome(&before, "is 0 in every repeat").expect("the claim");
    let now = outcome(&after, "is more than 0 in every repeat").expect("its new rule");
    let both = (then.as_str(), now.as_str());
    let told = [
        ("holds", "does-not-hold"),
        ("cannot-tell", "cannot-tell"),
        ("cannot-tell", "does-not-hold"),
    ];
    assert!(told.contains(&both), "{both:?}\n{}", again.out);
    assert_eq!(after["trials"], before["trials"]);
}

/// A run that is over goes on with a study whose claims were changed, as it does with its own: it is judged by them.
/// With a study that would measure something else it does not, and nothing changes.
#[test]
fn a_run_goes_on_with_claims_that_came_after_it() {
    let place = Place::new();
    let study = |rate: &str, claim: &str| {
        format!(
            "name = \"later\"\nsystems = [\"reference-broker\"]\nrepeats = 3\n\
             phases = {{ ready-within = \"2s\", warm-up = \"50ms\", measure = \"200ms\" }}\n\
             [[workload]]\nname = \"w\"\nflow = [{{ publishers = 2, subscribers = 1, topics = 2, payload = \"64B\", rate = \"{rate}\" }}]\n{claim}"
        )
    };
    let any = "verdicts = [\"valid\", \"lossy\", \"unsteady\", \"client-bound\", \"overloaded\", \"too-short\"]";
    let claim = format!(
        "[side]\nall = {{ system = \"reference-broker\" }}\n[[claim]]\nid = \"L1\"\nsentence = \"Nothing is lost.\"\n\
         source = \"example\"\nfigure = \"lost\"\n{any}\nrule = {{ sides = [\"all\"], count = \"= 0\" }}\n"
    );
    place.write("later.toml", study("200/s", ""));
    place.run(&["run", "later.toml", "--out", "run"]);
    let before = place.results("run");
    assert_eq!(before["trials"].as_array().map(Vec::len), Some(3));
    assert!(before["claims"].as_array().is_none_or(Vec::is_empty));

    place.write("later.toml", study("300/s", &claim));
    let refused = place
        .run(&["run", "later.toml", "--resume", "run"])
        .exits(3);
    refused.assert_says("rate");
    assert_eq!(place.results("run"), before);

    place.write("later.toml", study("200/s", &claim));
    place.run(&["run", "later.toml", "--resume", "run"]);
    let after = place.results("run");
    assert_eq!(after["trials"], before["trials"]);
    let claims = after["claims"].as_array().expect("claims");
    assert_eq!(claims[0]["id"], "L1", "{claims:?}");
    // A claim counts no trial from which a hypervisor took processor time.
    let rules = |trial: &Value| trial["verdict"]["reasons"].as_array().cloned();
    let stolen = |reason: Value| reason["rule"] == "time-stolen";
    let mut trials = after["trials"].as_array().expect("trials").iter();
    // Nor one that a busy machine has spoilt.
    let is_void = trials.any(|trial| {
        let is_stolen = rules(trial).into_iter().flatten().any(stolen);
        is_stolen || !any.contains(trial["verdict"]["status"].as_str().expect("a verdict"))
    });
    let outcome = if is_void { "cannot-tell" } else { "holds" };
    assert_eq!(claims[0]["outcome"], outcome, "{claims:?}");

    // Its kept trials judge the study that they were measured for, and not what it became.
    place.run(&[
        "report",
        "run",
        "--claims",
        "later.toml",
        "--keep",
        "kept.csv",
    ]);
    let judged = || {
        let args = [
            "report",
            "--claims",
            "later.toml",
            "--from",
            "kept.csv",
            "--json",
        ];
        let studies: Value = serde_json::from_str(&place.run(&args).exits(0).out).expect("JSON");
        studies["studies"][0]["claims"][0].clone()
    };
    assert_eq!(judged()["outcome"], outcome);
    place.write("later.toml", study("300/s", &claim));
    let aged = judged();
    assert_eq!(aged["outcome"], "cannot-tell", "{aged}");
    let reason = aged["reason"].as_str().expect("a reason");
    let change = "it was measured before its study was changed: workload w.flow[0].rate was \"200/s\" and is \"300/s\" now";
    assert!(reason.contains(change), "{reason}");
    place.is_clean();
}

/// What a claim leaves out of a run has no criteria either: they would stay undecided.
#[test]
fn criteria_of_cells_that_a_claim_leaves_out_are_left_out() {
    let place = Place::new();
    let workload = |name: &str| {
        let flow =
            "{ publishers = 2, subscribers = 1, topics = 2, payload = \"64B\", rate = \"200/s\" }";
        format!("[[workload]]\nname = \"{name}\"\nflow = [{flow}]\n")
    };
    let criterion = |filter: &str| {
        format!("[[criterion]]\nfigure = \"latency.p50\"\nbelow = \"10s\"\n{filter}\n")
    };
    let study = [
        "name = \"few\"\nsystems = [\"reference-broker\"]\n\
         phases = { ready-within = \"2s\", warm-up = \"50ms\", measure = \"200ms\" }\n",
        &workload("asked"),
        &workload("other"),
        &criterion("workload = \"asked\""),
        &criterion("workload = \"other\""),
        &criterion(""),
        "[side]\nall = { system = \"reference-broker\" }\n[[claim]]\nid = \"L1\"\nsentence = \"Nothing is lost.\"\n\
         source = \"example\"\nfigure = \"lost\"\nwhere = { workload = \"asked\" }\n\
         rule = { sides = [\"all\"], count = \"= 0\" }\n",
    ];
    place.write("few.toml", study.concat());
    place.run(&["run", "few.toml", "--claim", "L1", "--out", "run"]);
    let results = place.results("run");
    let criteria = results["study"]["criteria"].as_array().expect("criteria");
    let texts: Vec<&str> = (criteria.iter())
        .map(|criterion| criterion["criterion"].as_str().expect("its text"))
        .collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(
        texts.iter().all(|text| !text.contains("other")),
        "{texts:?}"
    );
    place.is_clean();
}

/// The study that follows the steps of the documentation: each rule says what its sentence says.
#[test]
fn a_paper_of_ones_own() {
    let place = Place::new();
    let study = repository("studies/own-paper.toml");
    let study = study.to_str().expect("a path");
    let done = place.run(&["plan", study, "--verbose"]).exits(0);
    let said: Vec<&str> = done.out.split_whitespace().collect();
    let said = said.join(" ");
    for rule in [
        "F1: The more subscribers, the less broker time a delivery costs. Rule: system-cpu-per-message of brokers falls along subscribers",
        "F2: A delivery to one of 16 takes less than half of the broker time of a delivery to one alone. Rule: system-cpu-per-message: many over one is below 0.5",
        "F4: NATS delivers sooner than mosquitto at every fan-out. Rule: latency.p50: nats:mqtt < mosquitto at every subscribers.",
        "F6: Over links of 100 Mbit/s the network is the limit.",
    ] {
        assert!(said.contains(rule), "{rule}\n{said}");
    }
    place.is_clean();
}

/// Tests that take long.
mod long {
    use super::*;

    #[test]
    fn the_small_study_of_the_documentation() {
        let place = Place::new();
        let study = repository("studies/claims.toml");
        let run = |repeats: &str| {
            let mut args = vec![
                "run",
                study.to_str().expect("a path"),
                "--repeats",
                repeats,
                "--out",
                "run",
            ];
            args.extend([
                "--set",
                "phases.warm-up=200ms",
                "--set",
                "phases.measure=600ms",
            ]);
            // Fewer points: what is judged does not depend on speed, and the time is for the trials.
            args.extend(["--set", "grid.payload=[\"64B\", \"16KiB\"]"]);
            place.run(&args)
        };
        let done = run("3");
        let results = place.results("run");
        let claims = results["claims"]
            .as_array()
            .expect("claims in results.json");
        let of = |id: &str| {
            claims
                .iter()
                .find(|c| c["id"] == id)
                .unwrap_or_else(|| panic!("{id}: {claims:?}"))
        };
        let text = |claim: &Value, key: &str| claim[key].as_str().unwrap_or_default().to_owned();
        assert_eq!(claims.len(), 5);
        // A neighbour may spoil trials: then nobody can tell. Nothing is ever lost, and nothing stands on its head.
        for id in ["C1", "C2", "C3", "C4"] {
            let outcome = text(of(id), "outcome");
            assert!(
                ["holds", "cannot-tell"].contains(&outcome.as_str()) || id == "C1",
                "{:?}",
                of(id)
            );
            let reason = text(of(id), "reason");
            assert!(
                outcome != "cannot-tell" || !reason.is_empty(),
                "{:?}",
                of(id)
            );
        }
        assert_eq!(text(of("C5"), "outcome"), "not-applicable");
        assert_eq!(text(of("C5"), "reason"), "the run has no nats");
        assert_eq!(text(of("C1"), "papers"), "1.6 times");
        assert_eq!(
            text(of("C1"), "rule"),
            "system-cpu-per-message: qos1 > qos0 at every payload (system mosquitto, workload fleet)."
        );
        assert!(
            done.out.contains("Claims:") && done.out.contains("not applicable 1"),
            "{}",
            done.out
        );
        // The table and the page can be made again from what is stored.
        let again = place.run(&["report", "run"]);
        assert!(again.out.contains("Claims:"), "{}", again.out);
        let page = std::fs::read_to_string(place.path_to("run/report.html")).expect("the page");
        assert!(page.contains("<section id=\"claims\">") && page.contains("qos1 &gt; qos0"));
        // Its committed files and README.md's table are made from the file, whatever is in it.
        let exported = place
            .run(&["export", "run", "--format", "claims", "--out", "-"])
            .exits(0);
        let studies = Studies::parse(&exported.out).expect("a file of claims");
        assert_eq!(studies.studies[0].claims.len(), 5);
        assert!(studies.studies[0].systems[0].starts_with("mosquitto "));
        let table = markdown(&studies, &BTreeMap::new());
        let row = table.lines().find(|line| line.starts_with("| C1 |"));
        let row = row.expect("a row for each claim");
        let outcome = studies.studies[0].claims[0].outcome.as_str();
        assert!(row.contains("QoS 1 costs"), "{row}");
        assert!(row.contains(&format!("| **{outcome}** |")), "{row}");
        assert!(table.contains(&studies.studies[0].systems[0]), "{table}");
        judged_by_changed_rules(&place, &study);
        place.is_clean();
    }
}

/// A run on another bed shows what an answer depends on, and gives none: alone it is refused.
#[test]
fn trials_of_another_bed_alone_are_refused() {
    let place = Place::new();
    let kept = |name: &str| {
        let file = repository(&format!("studies/papers/cells/{name}.csv"));
        ["--from".to_owned(), file.to_string_lossy().into_owned()]
    };
    let study = repository("studies/papers/kang2020.toml");
    let study = study.to_string_lossy();
    let judged = |kept: &[String]| {
        let kept = kept.iter().map(String::as_str);
        let args: Vec<&str> = ["report", "--claims", &study]
            .into_iter()
            .chain(kept)
            .collect();
        place.run(&args)
    };
    let (own, large) = (kept("kang2020"), kept("kang2020-large"));
    let refused = judged(&large).exits(3);
    for words in [
        "broker and clients twice as large",
        "hint: name a run on the study's own bed",
    ] {
        assert!(refused.err.contains(words), "{}", refused.err);
    }
    // In either order.
    let both = [large.clone(), own.clone()].concat();
    let turned = judged(&both).exits(0);
    assert_eq!(turned.out, judged(&[own, large].concat()).exits(0).out);
    assert!(turned.out.contains("1202 trials"), "{}", turned.out);
    let depends = turned.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        depends.contains("it depends on the bed: 2026-11-30: does not hold"),
        "{depends}"
    );
}
