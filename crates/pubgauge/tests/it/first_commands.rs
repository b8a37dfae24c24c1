//! A command that somebody types first: studies by name, addresses that refuse, searches of strangers' servers.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Stdio;

use pubgauge_testing::mosquitto::Mosquitto;

use crate::common::*;

/// The address of a port that nobody listens at.
fn refusing_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("mqtt://{}", listener.local_addr().unwrap())
}

#[test]
fn an_address_that_refuses_is_told_before_anything_is_measured() {
    let place = Place::new();
    let address = refusing_port();
    let mosquitto = Mosquitto::start();
    let both = format!("{},{address}", mosquitto.address());
    let done = place
        .run(&["run", "--on", &both, "--rate", "10/s"])
        .exits(2);
    assert!(done.err.contains("nothing was measured"), "{}", done.err);
    assert!(done.err.contains(&address), "{}", done.err);
    assert!(done.err.contains("refused"), "{}", done.err);
    assert!(!place.path_to("results").exists(), "a folder was made");
    place.is_clean();
}

/// A server that answers each MQTT login with this reason code of MQTT 5.
fn answers_with(code: u8) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("mqtt://ann@{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let mut client = client;
            let _ = client.read(&mut [0; 512]);
            let _ = client.write_all(&[0x20, 3, 0, code, 0]);
        }
    });
    address
}

#[test]
fn a_wrong_password_is_told_before_anything_is_measured() {
    let place = Place::new();
    let address = answers_with(0x86);
    let mut command = place.command(&["run", "--on", &address, "--rate", "10/s"]);
    command.env("PUBGAUGE_PASSWORD", "Xy7-hunting-high");
    let done = place.finish(command).exits(2);
    assert!(done.err.contains("nothing was measured"), "{}", done.err);
    assert!(done.err.contains("password"), "{}", done.err);
    assert!(!done.err.contains("Xy7"), "{}", done.err);
}

#[test]
fn a_search_asks_before_it_loads_an_address() {
    let place = Place::new();
    let address = refusing_port();
    let done = place.run(&["find", "--on", &address]).exits(3);
    assert!(done.err.contains("until it gives way"), "{}", done.err);
    assert!(done.err.contains("--yes"), "{}", done.err);
    // With the consent the address is tried.
    let done = place.run(&["find", "--on", &address, "--yes"]).exits(2);
    assert!(done.err.contains("nothing was measured"), "{}", done.err);
}

#[test]
fn studies_that_come_with_the_program_are_found_by_name_anywhere() {
    let place = Place::new();
    for name in ["first-look", "ablation", "papers/kang2020", "kang2020"] {
        let plan = place.run(&["plan", name, "--on", "mosquitto,zeromq-direct"]);
        plan.exits(0);
    }
    // Results of the same name are no study.
    std::fs::create_dir(place.path_to("first-look")).unwrap();
    place.write("first-look/results.json", "{}");
    for args in [&["plan"][..], &["plan", "first-look"]] {
        let plan = [args, &["--on", "mosquitto"]].concat();
        assert!(place.run(&plan).exits(0).out.contains("study first-look"));
    }
    let done = place.run(&["plan", "papers/kang2021"]).exits(3);
    assert!(done.err.contains("papers/kang2020"), "{}", done.err);
}

#[test]
fn only_the_cells_of_a_claim_are_planned() {
    let place = Place::new();
    let trials = |more: &[&str]| {
        let mut args = vec!["plan", "claims", "--on", "mosquitto", "--json"];
        args.extend(more);
        let done = place.run(&args).exits(0);
        let plan: serde_json::Value = serde_json::from_str(&done.out).unwrap();
        plan["trials"].as_array().unwrap().len()
    };
    // C5 is about one payload of three, and two variants of the settings less one.
    assert_eq!((trials(&[]), trials(&["--claim", "C5"])), (30, 5));
    let done = place
        .run(&["plan", "claims", "--on", "mosquitto", "--claim", "C55"])
        .exits(3);
    assert!(done.err.contains("did you mean `C5`"), "{}", done.err);
}

#[test]
fn a_study_is_read_from_standard_input() {
    let place = Place::new();
    let text = std::fs::read_to_string(repository("studies/claims.toml")).unwrap();
    for (text, code, said) in [
        (text, 0, "study claims"),
        ("name = 7".to_owned(), 3, "standard input:1"),
        (String::new(), 3, "standard input:1:1: is empty"),
    ] {
        let mut command = place.command(&["plan", "-", "--on", "mosquitto"]);
        command.stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let shown = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(code), "{shown}");
        assert!(shown.contains(said), "{shown}");
    }
}

#[test]
fn a_guard_names_two_releases() {
    let place = Place::new();
    for (args, said) in [
        (vec!["--old", "nats", "--new", "nats"], "is the old one"),
        (
            vec!["--old", "nats", "--new", "mosquitto", "--on", "nats"],
            "--old and --new",
        ),
        (
            vec!["--old", "nats", "--new", "mosquitto", "--margin", "5"],
            "a percentage from",
        ),
        (vec!["--old", "nats"], "--new"),
    ] {
        let done = place.run(&[&["guard"], &args[..]].concat()).exits(3);
        assert!(done.err.contains(said), "{}", done.err);
    }
}

/// A server of which one version of MQTT or one client is refused serves those that it takes: that is for the trials.
#[test]
fn a_server_that_takes_some_of_the_clients_is_measured() {
    let place = Place::new();
    let one = Mosquitto::start_with("allow_anonymous true\nmax_connections 1");
    let address = one.address();
    let mut args = vec![
        "run",
        "--on",
        &address,
        "--subscribers",
        "0",
        "--out",
        "one",
    ];
    args.extend(["--rate", "100/s"]);
    args.extend(SHORT);
    place.run(&args);
    assert!(count(&place.trial("one"), "published") > 0);

    // Each login as MQTT 5 has the answer that this version is not spoken.
    let address = answers_with(0x84);
    let done = place.run(&["run", "--on", &address, "--mqtt", "5", "--rate", "10/s"]);
    done.exits(2).assert_says("nothing was measured");
}

#[test]
fn a_search_of_a_described_server_asks_too() {
    let place = Place::new();
    let broker = Mosquitto::start();
    let mut command = place.command(&["find", "--on", "jorammq", "--out", "run"]);
    command.env("PUBGAUGE_JORAMMQ", broker.address());
    place.finish(command).exits(3).assert_says("loads jorammq");
    assert!(!place.path_to("run").exists());
}

/// Words whose meaning is another one here, or that no option takes.
#[test]
fn options_of_other_tools_are_understood() {
    let place = Place::new();
    for (args, said) in [
        (&["run", "-h", "localhost", "-p", "1883"][..], "--on"),
        (&["run", "-q", "1"], "--qos 1"),
        (
            &["run", "-u", "alice", "-P", "secret"],
            "mqtt://alice@localhost",
        ),
        (&["run", "tcp://localhost:1883"], "mqtt://localhost:1883"),
        (&["run", "--on", "ssl://broker"], "mqtts://broker"),
        (&["run", "--workload", "w.yaml"], "pubgauge run study.toml"),
        (&["run", "--on", "kafka"], "docs/add-a-broker.md"),
    ] {
        place.run(args).exits(3).assert_says(said);
    }
    // Help is help, also with options before it.
    for args in [&["run", "-h"][..], &["-h"], &["run", "-h", "--on", "nats"]] {
        place.run(args).exits(0);
    }
}

/// An address that says nothing does not hold the others up, and is named while it is waited for.
#[test]
fn silent_addresses_are_asked_side_by_side() {
    let place = Place::new();
    // They take connections, and never answer.
    let silent: Vec<TcpListener> = (0..3)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    let addresses = silent.iter().map(|one| {
        let address = one.local_addr().unwrap();
        format!("mqtt://{address}")
    });
    let addresses: Vec<String> = addresses.collect();
    let refusing = refusing_port();
    let on = format!("{},{refusing}", addresses.join(","));
    let began = std::time::Instant::now();
    let done = place.run(&["run", "--on", &on, "--rate", "10/s"]).exits(2);
    assert!(done.err.contains("nothing was measured"), "{}", done.err);
    assert!(done.err.contains("no answer yet from"), "{}", done.err);
    // Three seconds for each, one after the other, would be nine.
    assert!(began.elapsed().as_secs_f64() < 8.0, "{:?}", began.elapsed());
}

/// A folder of studies runs without those whose recordings nobody has named.
#[test]
fn studies_without_their_recordings_are_left_out_by_name() {
    let place = Place::new();
    std::fs::create_dir(place.path_to("mine")).unwrap();
    let study = |name: &str| {
        format!(
            "name = \"{name}\"\nsystems = [\"simulated\"]\n[[workload]]\nname = \"w\"\n[[workload.flow]]\npayload = \"64B\"\nrate = \"10/s\"\n"
        )
    };
    place.write("mine/a.toml", study("a"));
    let trace = "[trace.t]\nfiles = \"${PUBGAUGE_NOT_THERE}/x.csv\"\n";
    place.write("mine/b.toml", study("b") + trace);
    let done = place.run(&["plan", "mine"]).exits(0);
    assert!(done.out.contains("study a"), "{}", done.out);
    assert!(
        done.err
            .contains("left out: mine/b.toml (set PUBGAUGE_NOT_THERE"),
        "{}",
        done.err
    );
    // Alone it is refused with the place.
    place.run(&["plan", "mine/b.toml"]).exits(3);
    std::fs::remove_file(place.path_to("mine/a.toml")).unwrap();
    place.run(&["plan", "mine"]).exits(3);
}

#[test]
fn several_numbers_of_brokers_are_measured_each() {
    let place = Place::new();
    let args = [
        "plan",
        "--on",
        "mosquitto",
        "--topics",
        "4",
        "--brokers",
        "1,2,4",
    ];
    let done = place.run(&[&args[..], &["--json"]].concat()).exits(0);
    let plan: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    let trials = plan["trials"].as_array().unwrap();
    let mut brokers: Vec<u64> = trials.iter().map(|t| count(t, "brokers")).collect();
    brokers.sort_unstable();
    assert_eq!(brokers, [1, 2, 4]);
}
