//! Verbs that work on finished runs (exports, comparisons, gates), and the help.

use crate::common;

use std::io::{Read, Write};
use std::net::TcpStream;

use common::*;
use serde_json::{Value, json};

/// Runs trials on the simulated system, which say little but are quick.
fn measured(place: &Place, out: &str) -> Value {
    let mut args = vec!["run", "--on", "simulated", "--repeats", "3", "-q"];
    args.extend(["--rate", "100/s", "--out", out]);
    args.extend(["--duration", "300ms", "--warm-up", "100ms"]);
    let done = place.run(&args);
    assert_eq!(done.err, "", "-q");
    place.results(out)
}

/// A run whose trials are valid, with these medians of latency in ns: a comparison rests on recorded
/// figures alone.
fn with_medians(place: &Place, like: &Value, run: &str, medians: &[u64]) {
    let mut results = like.clone();
    let first = like["trials"][0].clone();
    let trials = medians.iter().enumerate().map(|(nth, median)| {
        let mut trial = first.clone();
        trial["id"] = json!(nth);
        trial["repeat"] = json!(nth + 1);
        trial["verdict"] = json!({
            "status": "valid",
            "reasons": [],
            "system_failed": false,
            "latency_is_upper_bound": false,
        });
        trial["latency_ns"]["p50"] = json!(median);
        trial
    });
    results["trials"] = trials.collect();
    std::fs::create_dir(place.path_to(run)).unwrap();
    place.write(&format!("{run}/results.json"), results.to_string());
}

#[test]
fn figures_leave_in_every_form() {
    let place = Place::new();
    let results = measured(&place, "run");
    let trials = results["trials"].as_array().unwrap();
    for (format, first) in [
        ("csv", &b"run,"[..]),
        ("json", b"[\n{\"run\": \"run\""),
        ("parquet", b"PAR1"),
    ] {
        let done = place.run(&["export", "run", "--format", format]).exits(0);
        for table in ["trials", "flows", "series", "percentiles"] {
            let path = format!("run/export/{table}.{format}");
            assert!(done.out.contains(&path), "{}", done.out);
            let bytes = std::fs::read(place.path_to(&path)).unwrap();
            assert!(bytes.starts_with(first), "{path}");
        }
    }
    let text = std::fs::read_to_string(place.path_to("run/export/trials.json")).unwrap();
    let rows: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 3);
    for (row, trial) in rows.as_array().unwrap().iter().zip(trials) {
        assert_eq!(row["delivered"], trial["delivered"]);
        assert_eq!(row["latency_p50_ns"], trial["latency_ns"]["p50"]);
    }
    place
        .run(&["export", "run", "--format", "openmetrics"])
        .exits(0);
    let metrics = std::fs::read_to_string(place.path_to("run/export/metrics.txt")).unwrap();
    assert!(metrics.ends_with("# EOF\n"));
    assert!(metrics.contains("system=\"simulated\""), "{metrics}");
    place.run(&["export", "run", "--format", "junit"]).exits(0);
    let junit = std::fs::read_to_string(place.path_to("run/export/junit.xml")).unwrap();
    assert_eq!(junit.matches("<testcase").count(), 3, "{junit}");

    let one = ["export", "run", "--table", "trials", "--out", "-"];
    let printed = place.run(&one).exits(0).out;
    // The files that the example with pandas reads.
    let docs = std::fs::read_to_string(repository("docs/after-a-run.md")).unwrap();
    let example = docs.split("```python").nth(1).unwrap();
    for name in ["verdict", "workload", "system", "latency_p50_ns"] {
        assert!(example.contains(name), "{name}: {example}");
        let head = printed.lines().next().unwrap();
        assert!(head.split(',').any(|column| column == name), "{head}");
    }
    let written = std::fs::read_to_string(place.path_to("run/export/trials.csv")).unwrap();
    assert_eq!(printed, written);
    let listed = place
        .run(&["export", "run", "--out", "there", "--json"])
        .exits(0);
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!(
        listed["files"][0],
        json!({"path": "there/trials.csv", "rows": 3})
    );

    let before = place.files();
    let refused = |args: &[&str], why: &str| {
        place.run(args).exits(3).assert_says(why);
    };
    refused(
        &["export", "run", "--out", "-"],
        "one table can be written there",
    );
    refused(&["export", "none"], "none");
    let with = |more: [&'static str; 2]| {
        [vec!["export", "run", "--table", "flows"], more.to_vec()].concat()
    };
    refused(&with(["--format", "junit"]), "this form has no tables");
    assert_eq!(place.files(), before);
}

/// `--json` prints `results.json` and the answer; both keep to their schemas, and the answer is the screen's.
#[test]
fn the_answer_leaves_for_programs_and_for_ci() {
    let place = Place::new();
    let like = measured(&place, "run");
    with_medians(&place, &like, "quick", &[100_000, 101_000, 99_000]);
    // A machine that is busy measures whatever it measures.
    let mut quick = place.results("quick");
    for trial in quick["trials"].as_array_mut().unwrap() {
        trial.as_object_mut().unwrap().remove("parties");
        let latency = trial["latency_ns"].as_object_mut().unwrap();
        latency.remove("bounds");
        latency.extend([
            ("count".into(), json!(1000)),
            ("p99".into(), json!(1_000_000)),
        ]);
    }
    place.write("quick/results.json", quick.to_string());
    let printed = place.run(&["report", "quick", "--json"]).exits(0).out;
    let mut printed: Value = serde_json::from_str(&printed).unwrap();
    let answer = printed.as_object_mut().unwrap().remove("answer").unwrap();
    assert_eq!(printed, place.results("quick"));
    let schema = place.run(&["schema", "answer"]).exits(0).out;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<_> = validator.iter_errors(&answer).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    assert_eq!(answer["trials"]["valid"], json!(3));
    let cell = &answer["workloads"][0]["cells"][0];
    assert_eq!(cell["carries"], "yes", "{answer:#}");
    assert_eq!(cell["decided_by"]["figure"], "latency_ns.p99");
    assert_eq!(cell["decided_by"]["at_most"], json!(1e6));
    let screen = place.run(&["report", "quick"]).exits(0).out;
    assert!(screen.contains(" yes p99 "), "{screen}");

    let markdown = ["export", "quick", "--format", "markdown", "--out", "-"];
    let markdown = place.run(&markdown).exits(0).out;
    assert!(
        markdown.contains("| simulated | **yes** p99 "),
        "{markdown}"
    );
    let benchmark = ["export", "quick", "--format", "github-benchmark"];
    place.run(&benchmark).exits(0);
    let read = |name: &str| -> Value {
        let path = place.path_to(&format!("quick/export/benchmark-{name}.json"));
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    };
    let smaller = read("smaller");
    let names = smaller.as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|of| of["name"].as_str().unwrap()).collect();
    assert!(names[0].ends_with("/ latency.p50"), "{names:?}");
    assert_eq!(smaller[0]["value"], json!(0.1));
    assert_eq!(
        read("bigger"),
        json!([]),
        "a load that is paced has no rate to compare"
    );
    place
        .run(&[
            "export",
            "quick",
            "--format",
            "github-benchmark",
            "--out",
            "-",
        ])
        .exits(3)
        .assert_says("this form is two files");

    let columns = |more: &[&str]| {
        let args = [
            &["export", "quick", "--table", "trials", "--out", "-"],
            more,
        ]
        .concat();
        let csv = place.run(&args).exits(0).out;
        csv.lines().next().unwrap().split(',').count()
    };
    assert!(columns(&[]) + 50 < columns(&["--all-columns"]));
}

#[test]
fn comparisons_end_in_one_of_four_verdicts() {
    let place = Place::new();
    let like = measured(&place, "run");
    let a = [100_000, 101_000, 99_000, 100_500];
    with_medians(&place, &like, "a", &a);
    with_medians(
        &place,
        &like,
        "like-a",
        &[100_200, 100_900, 99_300, 100_100],
    );
    with_medians(&place, &like, "double", &a.map(|ns| 2 * ns));
    with_medians(&place, &like, "single", &a[..1]);
    let compare = |a: &str, b: &str, more: &[&str]| {
        let figure = ["--figure", "latency_ns.p50"];
        place.run(&[&["compare", a, b][..], &figure, more].concat())
    };
    for (b, margin, code, verdict) in [
        ("like-a", "5%", 0, "same"),
        ("double", "5%", 1, "worse"),
        ("double", "150%", 0, "same"),
        ("single", "5%", 2, "cannot tell"),
    ] {
        let done = compare("a", b, &["--margin", margin]).exits(code);
        assert!(done.out.contains(verdict), "{b}: {}", done.out);
        let done = compare("a", b, &["--margin", margin, "--json", "-q"]).exits(code);
        let said: Value = serde_json::from_str(&done.out).unwrap();
        assert_eq!(said["verdict"], verdict.replace(' ', "-"));
        let figure = &said["cells"][0]["figures"][0];
        assert_eq!(
            (&figure["figure"], &figure["unit"]),
            (&json!("latency.p50"), &json!("ns"))
        );
        assert_eq!(done.err, "");
    }
    let effect = compare("double", "a", &["--json"]).exits(0);
    let effect: Value = serde_json::from_str(&effect.out).unwrap();
    assert_eq!(effect["verdict"], "better");
    let change = effect["cells"][0]["figures"][0]["change"]["effect"].as_f64();
    assert!((change.unwrap() + 0.5).abs() < 1e-9, "{effect}");

    let gate = compare(
        "a",
        "double",
        &["--junit", "gate.xml", "--annotations", "github"],
    );
    gate.exits(1).assert_says("::error");
    let junit = std::fs::read_to_string(place.path_to("gate.xml")).unwrap();
    assert!(
        junit.contains("<failure") && junit.contains("latency.p50"),
        "{junit}"
    );

    // A cell that B lacks does not pass as if B had been measured there; one that is new in B does.
    let mut more: Value =
        serde_json::from_slice(&std::fs::read(place.path_to("a/results.json")).unwrap()).unwrap();
    let mut gone = more["trials"][0].clone();
    gone["id"] = json!(a.len());
    gone["cell"] = json!("gone");
    gone["workload"]["name"] = json!("gone");
    more["trials"].as_array_mut().unwrap().push(gone);
    std::fs::create_dir(place.path_to("more")).unwrap();
    place.write("more/results.json", more.to_string());
    let done = compare("more", "like-a", &["--junit", "gate.xml"]).exits(2);
    assert!(done.out.contains("gone: only in A"), "{}", done.out);
    let junit = std::fs::read_to_string(place.path_to("gate.xml")).unwrap();
    assert!(junit.contains("<error"), "{junit}");
    compare("like-a", "more", &[]).exits(0);

    let before = place.files();
    for (more, why) in [
        (["--margin", "5"], "expected a percentage"),
        (["--figure", "speed"], "no such figure"),
        (["--systems", "a,b,c"], "at most two"),
        (["--systems", "mosquitto"], "it has simulated"),
        (["--junit", "none/gate.xml"], "its folder does not exist"),
    ] {
        compare("a", "double", &more).exits(3).assert_says(why);
    }
    place
        .run(&["compare", "a"])
        .exits(3)
        .assert_says("the same trials");
    assert_eq!(place.files(), before);
}

#[test]
fn a_gate_is_told_of_every_criterion() {
    let place = Place::new();
    let mut study = String::from("name = \"gate\"\nsystems = \"simulated\"\n");
    study.push_str(
        "[phases]\nwarm-up = \"100ms\"\nmeasure = \"300ms\"\n[[workload]]\nname = \"w\"\n",
    );
    study.push_str("[[workload.flow]]\nrate = \"100/s\"\npayload = \"64B\"\n");
    study.push_str("[[criterion]]\nfigure = \"published\"\nabove = 1000000\n");
    study.push_str("[[criterion]]\nfigure = \"lost\"\nequals = 0\n");
    place.write("gate.toml", study);
    let mut command =
        place.command(&["run", "gate.toml", "-q", "--out", "run", "--junit", "j.xml"]);
    command.env("GITHUB_ACTIONS", "true");
    let done = place.finish(command).exits(1);
    assert!(done.err.contains("::error file=gate.toml"), "{}", done.err);
    assert!(done.err.contains("published above 1000000"), "{}", done.err);
    let junit = std::fs::read_to_string(place.path_to("j.xml")).unwrap();
    assert_eq!(junit.matches("<failure").count(), 1, "{junit}");
    assert!(junit.contains("lost equals 0"), "{junit}");
    // The stored run gives the same; without a gate nothing is annotated.
    let again = [
        "report",
        "run",
        "-q",
        "--junit",
        "k.xml",
        "--annotations",
        "none",
    ];
    assert_eq!(place.run(&again).exits(0).err, "");
    assert_eq!(
        std::fs::read_to_string(place.path_to("k.xml")).unwrap(),
        junit
    );
}

#[test]
fn live_figures_are_there_while_it_runs_and_gone_afterwards() {
    let place = Place::new();
    let mut args = vec!["run", "--on", "reference-broker", "--rate", "200/s"];
    args.extend(["--duration", "100s", "--warm-up", "200ms", "--out", "run"]);
    args.extend(["--listen", "0"]);
    let mut run = place.start(&args);
    run.until_said("/metrics");
    let address = listens_at(&run.said_so_far()).unwrap();
    let ask = || {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("# EOF\n"), "{answer}");
        answer
    };
    let value = |answer: &str, name: &str| -> Option<f64> {
        let line = answer.lines().find(|line| line.starts_with(name))?;
        line.rsplit(' ').next()?.parse().ok()
    };
    run.until("live latency", || ask().contains("quantile=\"0.99\"} "));
    let before = value(&ask(), "pubgauge_live_deliveries_total").unwrap();
    run.until("more deliveries", || {
        value(&ask(), "pubgauge_live_deliveries_total").unwrap() > before
    });
    let answer = ask();
    assert!(
        answer.contains("pubgauge_live_phase=\"measure\"} 1"),
        "{answer}"
    );
    assert_eq!(value(&answer, "pubgauge_run_trials_left"), Some(1.0));
    run.signal(libc::SIGINT);
    run.ends_within(std::time::Duration::from_secs(60)).exits(2);
    assert!(TcpStream::connect(&address).is_err());
    place.is_clean();
    let before = place.files();
    let refused = ["run", "--on", "simulated", "--listen", "nowhere"];
    place
        .run(&refused)
        .exits(3)
        .assert_says("hint: a port such as 9464");
    assert_eq!(place.files(), before);
}

#[test]
fn every_verb_that_tells_something_tells_it_as_json() {
    let place = Place::new();
    for verb in [
        "run",
        "plan",
        "systems",
        "check",
        "report",
        "compare",
        "export",
        "calibrate",
        "trace show",
        "trace convert",
        "schema",
    ] {
        let args: Vec<&str> = verb.split(' ').chain(["--help"]).collect();
        let help = place.run(&args).exits(0).out;
        assert!(
            help.contains("--json") && help.contains("-q, --quiet"),
            "{verb}: {help}"
        );
    }
    place.write("t.csv", "time,device,size\n0.0,a,20\n1.0,b,30\n");
    for args in [
        &["plan", "--on", "simulated"][..],
        &["systems"],
        &["systems", "--matrix", "--on", "reference-broker"],
        &["schema", "results"],
        &["trace", "show", "t.csv"],
    ] {
        let done = place.run(&[args, &["--json", "-q"]].concat()).exits(0);
        assert_eq!(done.err, "");
        let said: Value =
            serde_json::from_str(&done.out).unwrap_or_else(|e| panic!("{args:?}: {e}"));
        if args[0] == "trace" {
            assert_eq!(
                (&said["messages"], &said["size_largest_bytes"]),
                (&json!(2), &json!(30))
            );
        }
    }
}

#[test]
fn completions_and_manual_come_from_the_command_line() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = place.run(&["completions", shell]).exits(0).out;
        for word in ["pubgauge", "compare", "margin"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let done = place.run(&["man", "--out", "man"]).exits(0);
    for page in ["pubgauge.1", "pubgauge-run.1", "pubgauge-trace-convert.1"] {
        assert!(done.out.contains(&format!("man/{page}\n")), "{}", done.out);
    }
    assert!(!done.out.contains("serve"), "hidden verbs have no page");
    let page = place.run(&["man", "compare"]).exits(0).out;
    assert!(page.contains(".TH") && page.contains("margin"), "{page}");
    let written = std::fs::read_to_string(place.path_to("man/pubgauge-compare.1")).unwrap();
    assert_eq!(page, written);
    place
        .run(&["man", "nothing"])
        .exits(3)
        .assert_says("known are run, find, advise, guard, tune");
}

#[test]
fn a_plan_tells_what_was_done_otherwise_and_what_flows_ask_for() {
    let place = Place::new();
    let mut study = String::from(
        "name = \"notes\"\nsystems = \"reference-broker\"\n[[workload]]\nname = \"w\"\n",
    );
    study.push_str(
        "[[workload.flow]]\nname = \"up\"\npublishers = 3\npattern = \"n-1\"\npayload = \"64B\"\n",
    );
    study.push_str("rate = \"10/3s\"\npublish-as = \"meter\"\n");
    study.push_str("[[workload.flow]]\nname = \"down\"\npattern = \"1-n\"\nsubscribers = 3\npayload = \"1KiB\"\n");
    study.push_str("rate = \"1/s\"\nsubscribe-as = \"meter\"\n");
    study.push_str("[[workload.flow]]\nname = \"alarm\"\npayload = \"64B\"\nrate = \"1/s\"\n");
    study.push_str("settings = { reliability = \"at-least-once\" }\n");
    place.write("notes.toml", study);
    let short = place.run(&["plan", "notes.toml"]).exits(0).out;
    let plain = short.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "3 connections publish and subscribe; their client processor time is counted as publishing",
        "reference-broker: flow alarm: reliability = at-least-once: QoS 1 published, QoS 1 subscribed",
    ] {
        assert!(plain.contains(words), "{words} is not in\n{short}");
    }
    assert!(short.lines().count() <= 24, "one screen:\n{short}");
    let all = place.run(&["plan", "notes.toml", "--verbose"]).exits(0).out;
    assert!(
        all.contains("reference-broker (default), flow alarm of w\n"),
        "{all}"
    );
    assert!(all.contains("session-expiry-s = default"), "{all}");
    let json = place.run(&["plan", "notes.toml", "--json"]).exits(0).out;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["notes"].as_array().unwrap().len(), 1);
    assert_eq!(json["trials"][0]["flows"][0]["flow"], "alarm");
}
