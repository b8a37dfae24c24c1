//! Snapshots of the program's output, word for word.
//!
//! `INSTA_UPDATE=always cargo test -p pubgauge --test snapshots` accepts what it says now.

use crate::common;

use common::*;

/// All verbs, as they are typed.
const VERBS: [&str; 17] = [
    "",
    "run",
    "find",
    "plan",
    "systems",
    "check",
    "report",
    "compare",
    "export",
    "calibrate",
    "trace",
    "trace show",
    "trace convert",
    "schema",
    "completions",
    "worker",
    "man",
];

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn help_of_every_verb_fits_80_columns() {
    let place = Place::new();
    for verb in VERBS {
        let mut args = words(verb);
        args.push("--help");
        let done = place.run(&args).exits(0);
        for line in done.out.lines() {
            assert!(line.chars().count() <= 80, "{verb}: {line}");
        }
        let name = match verb {
            "" => "help".to_owned(),
            verb => format!("help-{}", verb.replace(' ', "-")),
        };
        insta::assert_snapshot!(name, done.out);
    }
}

/// A plan without what it says in a container with a quota.
fn anywhere(plan: &str) -> String {
    let lines = plan.split_inclusive('\n');
    lines
        .filter(|line| !line.starts_with("this container may use "))
        .collect()
}

#[test]
fn the_plan_of_the_first_look() {
    let place = Place::new();
    let study = repository("studies/first-look.toml").display().to_string();
    let on = "reference-broker,mosquitto,zeromq-direct,zeromq-forwarder";
    let before = place.files();
    let done = place.run(&["plan", &study, "--on", on]).exits(0);
    assert!(done.out.lines().all(|l| l.chars().count() <= 80));
    insta::assert_snapshot!("plan-first-look", anywhere(&done.out));
    let all = place
        .run(&["plan", &study, "--on", on, "--verbose"])
        .exits(0);
    assert!(all.out.lines().all(|l| l.chars().count() <= 80));
    insta::assert_snapshot!("plan-first-look-verbose", anywhere(&all.out));
    let json = place.run(&["plan", &study, "--on", on, "--json"]).exits(0);
    let plan: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(plan["trials"].as_array().unwrap().len(), 12);
    assert!(plan["trials"][0]["mappings"].as_array().unwrap().len() > 10);
    assert_eq!(place.files(), before, "a plan changes nothing");
    place.is_clean();
}

#[test]
fn what_cannot_be_had_stands_in_the_plan() {
    let place = Place::new();
    place.write(
        "safe.toml",
        "name = \"safe\"\n[[settings]]\nname = \"safe\"\nreliability = \"exactly-once\"\n\
         [[workload]]\nname = \"w\"\n[[workload.flow]]\npayload = \"64B\"\nrate = \"1k/s\"\n",
    );
    let on = "reference-broker,zeromq-direct";
    let done = place.run(&["plan", "safe.toml", "--on", on]).exits(0);
    let (_, rest) = done.out.split_once("\nwhat cannot be had\n").unwrap();
    insta::assert_snapshot!("plan-unsupported", rest);
    // Nothing at all can be had: bad input.
    let done = place
        .run(&["run", "safe.toml", "--on", "zeromq-direct"])
        .exits(3);
    insta::assert_snapshot!("run-unsupported", done.err);
}

#[test]
fn the_systems() {
    let place = Place::new();
    // Nothing is in this cache, whatever is in the user's.
    let mut command = place.command(&["systems"]);
    command
        .env("PUBGAUGE_CACHE", "/nowhere")
        .env_remove("PUBGAUGE_JORAMMQ");
    let done = place.finish(command).exits(0);
    assert!(done.out.lines().all(|l| l.chars().count() <= 80));
    // Whichever mosquitto is installed here.
    let version = |line: &str| match line.split_once("found     ") {
        Some((before, version)) => {
            assert!(version.contains(|c: char| c.is_ascii_digit()), "{line}");
            format!("{before}found     VERSION\n")
        }
        None => format!("{line}\n"),
    };
    let text: String = done.out.lines().map(version).collect();
    insta::assert_snapshot!("systems", text);
    let json = place.run(&["systems", "--json"]).exits(0);
    let systems: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let names: Vec<_> = systems.as_array().unwrap().iter().collect();
    assert!(
        names
            .iter()
            .any(|s| s["name"] == "mosquitto" && s["found"] == true),
        "these tests need mosquitto: {systems:#}"
    );
    assert!(names.iter().all(|s| s["install"].is_array()), "{systems:#}");
}

#[test]
fn the_schemas_are_the_committed_ones() {
    let place = Place::new();
    for of in ["study", "results", "answer", "claims", "fleet", "advice"] {
        let done = place.run(&["schema", of]).exits(0);
        let committed = std::fs::read_to_string(repository(&format!("schema/{of}.schema.json")));
        let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(parse(&done.out), parse(&committed.unwrap()), "{of}");
    }
}

#[test]
fn wrong_flags() {
    let place = Place::new();
    place.write("hello.toml", "name = \"hello\"\n[[workload]]\nname = \"w\"\n[[workload.flow]]\npayload = \"64B\"\nrate = \"1/s\"\n");
    std::fs::create_dir(place.path_to("full")).unwrap();
    place.write("full/something", "else");
    let lines = [
        "",
        "walk",
        "run --on nosuch",
        "run --on mosqitto",
        "run --on mosquitto:nosuch",
        "run --on mqtt://host:port",
        "run --on mqt://host",
        "run --on mqtt://ann:secret@host",
        "run nosuch.toml",
        "run hello.toml --rate 1/s",
        "run hello.toml --set phase.measure=1s",
        "run hello.toml --set phases.measure=1",
        "run --rate 5 --on simulated",
        "run --rate fast --on simulated",
        "run --payload 3 --on simulated",
        "run --payload 3B --on simulated",
        "run --duration 0s --on simulated",
        "run --duration ten --on simulated",
        "run --pacing-within 0s --on simulated",
        "run --pacing-within 1 --on simulated",
        "run hello.toml --pacing-within 101ms --on simulated",
        "run hello.toml --set client.pacing=1ms",
        "run --qos 3 --on simulated",
        "run --qos two --on simulated",
        "run --mqtt 4 --on mosquitto",
        "run --publishers -1 --on simulated",
        "run --repeats 0 --on simulated",
        "run --publisher-workers 0 --on simulated",
        "run --realtime 100 --on simulated",
        "run --pin 100000 --on simulated",
        "run --resume nosuch --on simulated --rate 1/s",
        "run --resume a --out b",
        "run --out full --on simulated --rate 1/s",
        "run --password-file nosuch --on simulated",
        "run --systems nosuch --on simulated",
        "run --cert x --on simulated",
        "run --ca nosuch --on mqtts://localhost",
        "report nosuch",
        "trace show nosuch.csv",
        "trace convert nosuch.csv --time t --out x.csv",
        "schema nosuch",
        "serve reference-broker --listen nowhere",
        "serve zeromq-forwarder --publishers tcp://127.0.0.1:1 --subscribers ipc:///x",
    ];
    let before = place.files();
    let mut all = String::new();
    for line in lines {
        let done = place.run(&words(line)).exits(3);
        assert_eq!(done.out, "", "{line}: errors go to standard error");
        assert_eq!(place.files(), before, "{line}: bad input changes nothing");
        // How many processors there are differs.
        let text = done.err.lines().map(|l| match l.split_once("usable are ") {
            Some((before, _)) => format!("{before}usable are ..."),
            None => l.trim_end().to_owned(),
        });
        let text: Vec<String> = text.collect();
        all.push_str(&format!(
            "$ pubgauge {line}\n{}\n\n",
            text.join("\n").trim_end()
        ));
    }
    place.is_clean();
    insta::assert_snapshot!("wrong-flags", all);
}

#[test]
fn help_and_version_are_no_errors() {
    let place = Place::new();
    place.run(&["--help"]).exits(0);
    let version = place.run(&["--version"]).exits(0);
    let expected = format!("pubgauge {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(version.out, expected);
}
