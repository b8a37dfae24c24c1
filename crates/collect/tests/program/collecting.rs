//! Collecting: its end, its words, what is wrong with its arguments.

use std::io::Read;
use std::process::Command;
use std::time::Duration;

use super::*;

#[test]
fn sigterm_ends_it_in_order_and_all_is_in_files() {
    let broker = Mosquitto::start();
    let place = new_place();
    let config = format!(
        "brokers = [{:?}]\ntopics = [\"m/#\"]\nto = \"data\"\nlisten = \"0\"\n",
        url(&broker)
    );
    place.write("collect.toml", config);
    let mut collector = place.start(&["--config", "collect.toml"]);
    collector.until_said("connected, with a new session");
    publish(&broker, "m/1", 50);
    let address = listens_at(&collector.said_so_far()).unwrap();
    collector.until("50 messages", || {
        get(&address, "/metrics").contains("pubgauge_collect_acknowledged_messages_total 50\n")
    });
    assert!(get(&address, "/health").starts_with("HTTP/1.1 200"));
    let metrics = get(&address, "/metrics");
    assert!(
        metrics.contains("pubgauge_collect_received_messages_total{qos=\"1\"} 50\n"),
        "{metrics}"
    );
    let up = format!(
        "pubgauge_collect_broker_connected{{broker=\"127.0.0.1:{}\"}} 1\n",
        broker.port
    );
    assert!(metrics.contains(&up), "{metrics}");
    assert!(get(&address, "/live").starts_with("HTTP/1.1 200"));
    assert!(get(&address, "/").starts_with("HTTP/1.1 404"));
    collector.signal(libc::SIGTERM);
    let done = collector.ends_within(Duration::from_secs(60)).exits(0);
    assert!(
        done.out
            .contains("50 messages stored, 50 of them acknowledged, in 1 finished file"),
        "{done:?}"
    );
    let found = place.run(&["verify", "data"]).exits(0);
    assert!(
        found
            .out
            .starts_with("50 messages of 1 collector: 50 in 1 finished file, 0 in the log\n"),
        "{found:?}"
    );
    assert!(
        found.out.ends_with("everything is as it was written\n"),
        "{found:?}"
    );
}

#[test]
fn a_time_that_is_over_with_a_broker_never_connected_is_no_success() {
    let place = new_place();
    let flags = |url: &str, time: &str| {
        let ends = ["--for", time, "--messages", "1"];
        place.run(&[&collector_flags(url, "data")[..], &ends].concat())
    };
    // Nobody listens there.
    let done = flags("mqtt://127.0.0.1:1", "1s").exits(2);
    assert!(done.out.contains("1 broker never connected\n"), "{done:?}");
    let broker = Mosquitto::start();
    let port = broker.port.to_string();
    let retained = ["-p", &port, "-q", "1", "-r", "-t", "m/1", "-m", "1"];
    let mut publisher = Command::new("mosquitto_pub");
    assert!(publisher.args(retained).status().unwrap().success());
    flags(&url(&broker), "10min").exits(0);
}

#[test]
fn events_and_results_are_json_where_that_is_asked_for() {
    let broker = Mosquitto::start();
    let place = new_place();
    let url = url(&broker);
    let flags = collector_flags(&url, "data");
    let json = ["--once", "--json", "--log", "json", "--listen", "0"];
    let done = place.run(&[&flags[..], &json].concat()).exits(0);
    let summary: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(summary["messages"], 0);
    let events = events(&done.err);
    let named = |name: &str| events.iter().find(|event| event["event"] == name).unwrap();
    for name in ["begun", "address-found", "connected", "ending"] {
        assert_eq!(named(name)["level"], "info", "{events:?}");
    }
    let address = named("serving")["address"].as_str().unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let found = place.run(&["verify", "data", "--json"]).exits(0);
    let found: serde_json::Value = serde_json::from_str(&found.out).unwrap();
    assert_eq!(
        (&found["messages"], &found["faults"]),
        (&0.into(), &serde_json::json!([]))
    );
}

/// The lines of a log.
fn events(log: &str) -> Vec<serde_json::Value> {
    let line = |line: &str| {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        let time = event["time"].as_str().unwrap();
        assert!(time.starts_with("20") && time.ends_with('Z'), "{line}");
        assert!(!event["message"].as_str().unwrap().is_empty(), "{line}");
        event
    };
    log.lines().map(line).collect()
}

/// Errors are an object in a line, too, and no line holds a password.
#[test]
fn a_log_of_json_has_nothing_else_and_no_secret() {
    let broker = Mosquitto::with_password("right", "");
    let place = new_place();
    let url = format!("mqtt://ann@127.0.0.1:{}", broker.port);
    let flags = collector_flags(&url, "data");
    let mut command = place.command(&[&flags[..], &["--log", "json"]].concat());
    command.env("PUBGAUGE_PASSWORD", "wr0ng-s3cret");
    let mut collector = place.spawn(command);
    collector.until_said("\"event\":\"failed\"");
    collector.signal(libc::SIGTERM);
    let done = collector.wait_for_end().exits(0);
    let failed = events(&done.err);
    let failed = failed.iter().find(|event| event["event"] == "failed");
    let why = failed.unwrap()["why"].as_str().unwrap();
    assert!(why.contains("the password is wrong"), "{why}");
    let all = format!("{}{}", done.out, done.err);
    assert!(!all.contains("wr0ng-s3cret"), "{all}");
    assert_eq!(place.mentions("wr0ng-s3cret"), None);

    let wrong = ["--config", "nosuch.toml", "--log", "json"];
    let done = place.run(&wrong).exits(3);
    let told = events(&done.err);
    assert_eq!((told.len(), &told[0]["exit_code"]), (1, &3.into()));
    assert!(done.err.contains("nosuch.toml: cannot be read"), "{done:?}");
}

/// Errors alone are told then.
#[test]
fn a_quiet_collection_says_nothing_while_all_is_well() {
    let broker = Mosquitto::start();
    let place = new_place();
    let url = url(&broker);
    let flags = collector_flags(&url, "data");
    let done = place
        .run(&[&flags[..], &["--once", "-q"]].concat())
        .exits(0);
    assert_eq!(done.err, "");
}

#[test]
fn progress_has_a_line_of_the_terminal() {
    let broker = Mosquitto::start();
    let place = new_place();
    let url = url(&broker);
    let [mut far, near] = terminal();
    let flags = collector_flags(&url, "data");
    let mut command = place.command(&flags);
    command.env("TERM", "xterm").stderr(near);
    let collector = place.spawn_with_stderr(command);
    let mut shown = String::new();
    while !shown.contains("1 of 1 broker") {
        let mut bytes = [0; 4096];
        let read = far.read(&mut bytes).unwrap();
        shown += &String::from_utf8_lossy(&bytes[..read]);
    }
    assert!(
        shown.contains("msg/s, 0 stored, oldest waits 0 ms, 0 files"),
        "{shown}"
    );
    // The terminal goes away, and with it the collector: nobody would miss it.
    drop(far);
    collector.signal(libc::SIGHUP);
    collector.wait_for_end().exits(0);
}

/// With `--once` what waits at a broker out of reach is missing, and that is said.
#[test]
fn one_broker_of_two_that_is_not_there_is_no_complete_collection() {
    let broker = Mosquitto::start();
    let place = new_place();
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nowhere = format!("mqtt://{}", unused.local_addr().unwrap());
    drop(unused);
    let both = format!("{},{nowhere}", url(&broker));
    let flags = collector_flags(&both, "data");
    let done = place.run(&[&flags[..], &["--once"]].concat()).exits(2);
    let says = "1 broker not connected at the end: what waits there is not here\n1 broker never connected\n";
    assert!(done.out.ends_with(says), "{done:?}");
    assert!(done.err.contains("is the server running"), "{done:?}");
}

#[test]
fn a_planted_fault_is_found_with_exit_code_1() {
    let broker = Mosquitto::start();
    let place = new_place();
    let collector = start_collecting(&place, &broker, "data", 20, &[]);
    publish(&broker, "m/1", 20);
    collector.ends_within(Duration::from_secs(60)).exits(0);
    let file = place
        .files()
        .into_iter()
        .find(|path| path.extension().is_some_and(|e| e == "parquet"))
        .unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let found = place.run(&["verify", "data"]).exits(1);
    assert!(found.out.contains("fault: date="), "{found:?}");
    assert!(found.out.contains("has the checksum"), "{found:?}");
}

#[test]
fn wrong_configurations_are_told_with_their_place_and_change_nothing() {
    let place = new_place();
    place.write(
        "wrong.toml",
        "brokers = [\"mqtt://h\"]\ntopics = [\"a#\"]\nto = \"data\"\n",
    );
    let before = place.files();
    for (line, words) in [
        (
            "--config wrong.toml",
            "wrong.toml:2:11: `a#` is no topic filter",
        ),
        ("--config nosuch.toml", "nosuch.toml: cannot be read"),
        (
            "--on mqtt://h --topic a# --to data",
            "--topic: `a#` is no topic filter",
        ),
        ("--on amqp://h --topic a --to data", "--on: "),
        (
            "--on mqtt://h --topic a --to data --qos 3",
            "--qos: QoS is 0, 1 or 2",
        ),
        ("--on mqtt://h --topic a --to data --for 5", "--for 5: "),
        ("--on mqtt://h --to data", "--topic"),
        ("--config wrong.toml --ca ca.pem", "--ca"),
        (
            "--on mqtts://h --topic a --to data --ca nosuch.pem",
            "cannot read CA certificates from nosuch.pem",
        ),
        ("verify .", "is no data folder of a collector"),
        ("compact .", "is no data folder of a collector"),
        ("compact . --older-than 5", "--older-than 5: "),
        ("compact . --target lots", "--target lots: "),
    ] {
        let args = argv(line);
        let done = place.run(&args).exits(3);
        assert!(done.err.contains(words), "{line}: {}", done.err);
        assert_eq!(place.files(), before, "{line}: bad input changes nothing");
    }
}
