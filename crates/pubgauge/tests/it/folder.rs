//! `pubgauge run FOLDER`: all studies of a folder as one run.

use crate::common;

use std::path::Path;
use std::time::Duration;

use common::*;
use serde_json::Value;

/// A study over the reference broker, with a claim; `more` are further lines.
fn study(name: &str, repeats: u32, more: &str) -> String {
    format!(
        "name = \"{name}\"\nsystems = [\"reference-broker\"]\nrepeats = {repeats}\n\
         phases = {{ ready-within = \"2s\", warm-up = \"50ms\", measure = \"200ms\" }}\n\
         [grid]\npayload = [\"64B\", \"1KiB\"]\n\
         [[workload]]\nname = \"w\"\nflow = [{{ publishers = 2, subscribers = 1, topics = 2, rate = \"200/s\" }}]\n{more}\n"
    )
}

const CLAIM: &str = "[[claim]]\nid = \"C1\"\nsentence = \"Nothing is lost.\"\nsource = \"example, table 1\"\npapers = \"0\"\n\
                     figure = \"lost\"\nverdicts = [\"valid\", \"lossy\", \"unsteady\", \"client-bound\", \"overloaded\", \"too-short\"]\n\
                     rule = { sides = [\"reference-broker\"], count = \"= 0\", along = \"payload\" }\n";
const NEVER_MET: &str = "[[criterion]]\nfigure = \"delivered\"\nequals = 1\n";

fn folder(place: &Place, studies: &[(&str, String)]) {
    std::fs::create_dir(place.path_to("papers")).unwrap();
    for (name, text) in studies {
        place.write(&format!("papers/{name}.toml"), text);
    }
}

fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap()
}

/// The content of `index.json`, which obeys its schema.
fn index(place: &Place, out: &str) -> Value {
    let value = json(&place.path_to(out).join("index.json"));
    let schema = json(&repository("schema/claims.schema.json"));
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&value)
        .map(|e| e.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    value
}

#[test]
fn all_studies_of_a_folder_are_one_run() {
    let place = Place::new();
    folder(
        &place,
        &[
            ("second", study("same-name", 1, NEVER_MET)),
            ("first", study("same-name", 3, CLAIM)),
            ("notes", "title = \"no study\"\n".into()),
        ],
    );
    std::fs::create_dir(place.path_to("papers/below")).unwrap();
    place.write("papers/below/other.toml", study("other", 1, ""));
    let plan = place.run(&["plan", "papers"]).exits(0);
    assert!(
        plan.out.contains("2 studies, 8 trials, about "),
        "{}",
        plan.out
    );
    let done = place.run(&["run", "papers", "--out", "all", "--junit", "all.xml"]);
    // The criterion of one of them is not met; a neighbour may spoil all trials of the other.
    assert!([1, 2].contains(&done.code), "{done:?}");
    assert!(
        done.err.contains("2 studies, 8 trials, about "),
        "{}",
        done.err
    );
    assert!(done.err.contains("study 1 of 2: first") && done.err.contains("study 2 of 2: second"));
    assert!(
        done.out
            .starts_with("What one paper said, and what holds here"),
        "{}",
        done.out
    );
    assert!(
        done.out.lines().all(|line| line.chars().count() <= 80),
        "{}",
        done.out
    );
    assert!(done.out.contains("page: all/index.html"));
    assert_eq!(
        place.results("all/first")["trials"]
            .as_array()
            .unwrap()
            .len(),
        6
    );
    assert_eq!(
        place.results("all/second")["trials"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert!(!place.path_to("all/other").exists() && !place.path_to("all/notes").exists());
    // The file over both, and the page with a link into that of the study.
    let studies = index(&place, "all");
    let of = |nth: usize, key: &str| studies["studies"][nth][key].clone();
    assert_eq!(
        (of(0, "folder"), of(1, "folder")),
        ("first".into(), "second".into())
    );
    assert_eq!(of(0, "claims")[0]["id"], "C1");
    assert_eq!(of(0, "claims")[0]["papers"], "0");
    // One for each payload whose trials a neighbour has not spoiled.
    let points = of(0, "claims")[0]["pictures"][0]["sides"][0]["points"].clone();
    let points = points.as_array().unwrap().len();
    assert!((1..=2).contains(&points), "{studies}");
    assert!(
        of(1, "answers")[0]
            .as_str()
            .unwrap()
            .contains("reference-broker"),
        "{studies}"
    );
    let page = std::fs::read_to_string(place.path_to("all/index.html")).unwrap();
    assert!(page.contains("href=\"first/report.html#claim-C1\""));
    let own = std::fs::read_to_string(place.path_to("all/first/report.html")).unwrap();
    assert!(own.contains("id=\"claim-C1\"") && own.contains("id=\"c1-1\""));
    let junit = std::fs::read_to_string(place.path_to("all.xml")).unwrap();
    assert!(
        junit.contains("first: trials") && junit.contains("second: criteria"),
        "{junit}"
    );
    // All of it can be made again.
    for file in ["all/index.html", "all/index.json", "all/first/report.html"] {
        std::fs::remove_file(place.path_to(file)).unwrap();
    }
    let again = place.run(&["report", "all"]).exits(0);
    assert_eq!(again.out, done.out);
    assert_eq!(index(&place, "all"), studies);
    assert!(place.path_to("all/first/report.html").exists());
    let printed = place.run(&["report", "all", "--json"]).exits(0);
    assert_eq!(
        serde_json::from_str::<Value>(&printed.out).unwrap(),
        studies
    );
    // The files to commit are small, and name no host and no path.
    let exported = place
        .run(&["export", "all", "--format", "claims", "--out", "-"])
        .exits(0);
    let small: Value = serde_json::from_str(&exported.out).unwrap();
    assert!(small["studies"][0]["claims"][0].get("pictures").is_none());
    assert_eq!(
        small["studies"][0]["claims"][0]["ours"],
        of(0, "claims")[0]["ours"]
    );
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert!(!exported.out.contains(&format!("\"{}\"", host.trim())));
    assert!(!exported.out.contains(place.path_to("").to_str().unwrap()));
    place.run(&["export", "all", "--format", "claims"]).exits(0);
    assert_eq!(json(&place.path_to("all/export/claims.json")), small);
    let one = place
        .run(&["export", "all/first", "--format", "claims", "--out", "-"])
        .exits(0);
    assert_eq!(
        serde_json::from_str::<Value>(&one.out).unwrap()["studies"][0]["study"],
        "same-name"
    );
    let other = place.run(&["export", "all"]).exits(3);
    assert!(other.err.contains("all holds several runs") && other.err.contains("all/first"));
    place
        .run(&["run", "papers", "--out", "all"])
        .exits(3)
        .assert_says("already holds a run");
    place.is_clean();
}

#[test]
fn bad_input_in_any_study_is_told_before_anything_runs() {
    let place = Place::new();
    folder(
        &place,
        &[
            ("a", study("a", 1, "")),
            ("b", study("b", 1, "nonsense = 1")),
            ("c", study("c", 1, "").replace("reference-broker", "nosuch")),
        ],
    );
    let before = place.files();
    for verb in ["run", "plan"] {
        let done = place.run(&[verb, "papers"]).exits(3);
        assert!(
            done.err.contains("2 of 3 studies cannot be run"),
            "{}",
            done.err
        );
        assert!(done.err.contains("papers/b.toml") && done.err.contains("nonsense"));
        assert!(done.err.contains("papers/c.toml") && done.err.contains("nosuch"));
        assert_eq!(place.files(), before, "nothing was changed");
    }
    std::fs::create_dir(place.path_to("empty")).unwrap();
    place
        .run(&["run", "empty"])
        .exits(3)
        .assert_says("no study is in this folder");
    std::fs::remove_file(place.path_to("papers/b.toml")).unwrap();
    std::fs::remove_file(place.path_to("papers/c.toml")).unwrap();
    place
        .run(&["run", "papers", "--out", "papers"])
        .exits(3)
        .assert_says("not empty");
    place
        .run(&["run", "papers", "--resume", "empty"])
        .exits(3)
        .assert_says("no run of several studies");
    place.write("papers/d.toml", "name = [");
    place
        .run(&["run", "papers"])
        .exits(3)
        .assert_says("papers/d.toml");
    place.is_clean();
}

#[test]
fn a_study_that_fails_does_not_keep_the_others_from_running() {
    let place = Place::new();
    let nobody = study("nobody", 1, "").replace("\"reference-broker\"", "\"mqtt://127.0.0.1:1\"");
    let studies = [
        ("a", nobody),
        ("b", study("b", 1, NEVER_MET)),
        ("c", study("c", 1, "")),
    ];
    folder(&place, &studies);
    // Nothing measured in one (2), a criterion that is not met in the other (1): the worst counts.
    place.run(&["run", "papers", "--out", "all"]).exits(2);
    assert!(!place.path_to("all/a").exists(), "nobody was there");
    assert_eq!(
        place.results("all/b")["trials"].as_array().unwrap().len(),
        2
    );
    // One that cannot even begin is told of, in the page too, and the other is there.
    std::fs::remove_dir_all(place.path_to("all/c")).unwrap();
    std::fs::create_dir(place.path_to("all/c")).unwrap();
    place.write("all/c/foreign", "something else");
    let trials = place.results("all/b")["trials"].clone();
    std::fs::remove_file(place.path_to("all/b/report.html")).unwrap();
    let done = place.run(&["run", "--resume", "all"]).exits(3);
    assert!(
        done.err.contains("error: c: ") && done.err.contains("is not empty"),
        "{}",
        done.err
    );
    assert!(place.path_to("all/b/report.html").exists());
    assert_eq!(
        place.results("all/b")["trials"],
        trials,
        "nothing is measured twice"
    );
    let studies = index(&place, "all");
    let failed = |nth: usize| studies["studies"][nth]["failed"].to_string();
    assert!(failed(0).contains("connection refused; hint: nothing listens"));
    assert!(failed(2).contains("is not empty"));
    assert_eq!(studies["studies"][1]["trials"], 2);
    place.is_clean();
}

#[test]
fn ctrl_c_ends_the_whole_and_resume_goes_on_with_it() {
    let place = Place::new();
    folder(
        &place,
        &[
            ("a", study("a", 3, CLAIM)),
            ("b", study("b", 1, "")),
            ("c", study("c", 1, "")),
        ],
    );
    let mut run = place.start(&argv(
        "run papers --out all --repeats 2 --set phases.measure=400ms",
    ));
    let stored = place.path_to("all/a/trials/0001");
    run.until("two trials of the first study", || stored.exists());
    run.signal(libc::SIGINT);
    run.ends_within(Duration::from_secs(60))
        .exits(2)
        .assert_says("pubgauge run --resume all");
    place.is_clean();
    let before = place.results("all/a");
    assert_eq!(before["study"]["cut_off"], true);
    assert!(!place.path_to("all/b").exists(), "no further study began");
    let studies = index(&place, "all");
    assert_eq!(studies["studies"][1]["failed"], "not begun");
    // From another folder, and with the studies gone: everything is in the folder of the run.
    std::fs::remove_dir_all(place.path_to("papers")).unwrap();
    place.run(&["run", "papers", "--resume", "all"]).exits(3);
    place
        .run(&["run", "--resume", "all", "--repeats", "3"])
        .exits(3)
        .assert_says("as it was begun");
    // Also for the studies that have not begun.
    place
        .run(&["run", "--resume", "all", "--on", "mqtt://127.0.0.1:1"])
        .exits(3)
        .assert_says("began without --on");
    assert_eq!(place.results("all/a"), before);
    let done = place.run(&["run", "--resume", "all"]);
    done.ran_to_its_end();
    let left = 12 - before["trials"].as_array().unwrap().len();
    assert!(
        done.err
            .contains(&format!("3 studies, {left} trials, about ")),
        "{}",
        done.err
    );
    for study in ["a", "b", "c"] {
        let results = place.results(&format!("all/{study}"));
        let trials = results["trials"].as_array().unwrap();
        // Flags of the command line hold for each, those that had not begun too.
        assert_eq!(trials.len(), 4, "{study}");
        assert_eq!(results["study"]["cut_off"], false);
        assert!(
            trials
                .iter()
                .all(|t| t["duration_s"].as_f64().unwrap() > 0.39),
            "{study}"
        );
        let given =
            std::fs::read_to_string(place.path_to(&format!("all/{study}/study.toml"))).unwrap();
        assert!(given.contains("rate = \"200/s\""), "the study as given");
    }
    let after = place.results("all/a");
    for (nth, trial) in before["trials"].as_array().unwrap().iter().enumerate() {
        assert_eq!(&after["trials"][nth], trial, "what was measured is kept");
    }
    place.is_clean();
}
