//! `pubgauge collect`, as it is typed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use crate::common;

use common::servers::Mosquitto;
use common::*;

fn publish(broker: &Mosquitto, topic: &str, count: u32) {
    let port = broker.port.to_string();
    let count = count.to_string();
    let mut command = Command::new("mosquitto_pub");
    command.args([
        "-p",
        &port,
        "-q",
        "1",
        "-t",
        topic,
        "-m",
        "{\"watts\": 100}",
    ]);
    command.args(["--repeat", &count, "--repeat-delay", "0"]);
    let status = command
        .status()
        .expect("these tests need mosquitto_pub (apt install mosquitto-clients)");
    assert!(status.success());
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes())
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn url(broker: &Mosquitto) -> String {
    format!("mqtt://127.0.0.1:{}", broker.port)
}

#[test]
fn sigterm_ends_it_in_order_and_all_is_in_files() {
    let broker = Mosquitto::start();
    let place = Place::new();
    let config = format!(
        "brokers = [{:?}]\ntopics = [\"m/#\"]\nto = \"data\"\nlisten = \"0\"\n",
        url(&broker)
    );
    place.write("collect.toml", config);
    let mut collector = place.start(&["collect", "--config", "collect.toml"]);
    collector.until_said("connected, with a new session");
    publish(&broker, "m/1", 50);
    let said = collector.said_so_far();
    let address = said
        .split("http://")
        .nth(1)
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .to_owned();
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
    assert!(get(&address, "/").starts_with("HTTP/1.1 404"));
    collector.signal(libc::SIGTERM);
    let done = collector.ends_within(Duration::from_secs(60)).exits(0);
    assert!(
        done.out
            .contains("50 messages stored, 50 of them acknowledged, in 1 finished file"),
        "{done:?}"
    );
    let found = place.run(&["collect", "verify", "data"]).exits(0);
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
fn events_and_results_are_json_where_that_is_asked_for() {
    let broker = Mosquitto::start();
    let place = Place::new();
    let url = url(&broker);
    let flags = [
        "collect", "--on", &url, "--topic", "m/#", "--to", "data", "--once", "--json",
    ];
    let done = place.run(&flags).exits(0);
    assert_eq!(done.err, "");
    let events: Vec<&str> = done
        .out
        .lines()
        .filter(|line| line.contains("\"event\""))
        .collect();
    let events: Vec<serde_json::Value> = events
        .into_iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events[0]["event"], "begun");
    assert!(
        events.iter().any(|event| event["event"] == "connected"),
        "{events:?}"
    );
    let found = place.run(&["collect", "verify", "data", "--json"]).exits(0);
    let found: serde_json::Value = serde_json::from_str(&found.out).unwrap();
    assert_eq!(
        (&found["messages"], &found["faults"]),
        (&0.into(), &serde_json::json!([]))
    );
}

/// With `--once` what waits at a broker out of reach is missing, and that is said.
#[test]
fn one_broker_of_two_that_is_not_there_is_no_complete_collection() {
    let broker = Mosquitto::start();
    let place = Place::new();
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nowhere = format!("mqtt://{}", unused.local_addr().unwrap());
    drop(unused);
    let both = format!("{},{nowhere}", url(&broker));
    let flags = ["collect", "--on", &both, "--topic", "m/#", "--to", "data"];
    let done = place.run(&[&flags[..], &["--once"]].concat()).exits(2);
    let says = "1 broker not connected at the end: what waits there is not here\n";
    assert!(done.out.ends_with(says), "{done:?}");
    assert!(done.err.contains("is the server running"), "{done:?}");
}

#[test]
fn a_planted_fault_is_found_with_exit_code_1() {
    let broker = Mosquitto::start();
    let place = Place::new();
    let url = url(&broker);
    let mut collector = place.start(&[
        "collect",
        "--on",
        &url,
        "--topic",
        "m/#",
        "--to",
        "data",
        "--messages",
        "20",
    ]);
    collector.until_said("connected, with a new session");
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
    let found = place.run(&["collect", "verify", "data"]).exits(1);
    assert!(found.out.contains("fault: date="), "{found:?}");
    assert!(found.out.contains("has the checksum"), "{found:?}");
}

#[test]
fn wrong_configurations_are_told_with_their_place_and_change_nothing() {
    let place = Place::new();
    place.write(
        "wrong.toml",
        "brokers = [\"mqtt://h\"]\ntopics = [\"a#\"]\nto = \"data\"\n",
    );
    let before = place.files();
    for (line, words) in [
        (
            "collect --config wrong.toml",
            "wrong.toml:2:11: `a#` is no topic filter",
        ),
        (
            "collect --config nosuch.toml",
            "nosuch.toml: cannot be read",
        ),
        (
            "collect --on mqtt://h --topic a# --to data",
            "--topic: `a#` is no topic filter",
        ),
        ("collect --on amqp://h --topic a --to data", "--on: "),
        (
            "collect --on mqtt://h --topic a --to data --qos 3",
            "--qos: QoS is 0, 1 or 2",
        ),
        (
            "collect --on mqtt://h --topic a --to data --for 5",
            "--for 5: ",
        ),
        ("collect --on mqtt://h --to data", "--topic"),
        ("collect", "--config"),
        ("collect verify .", "is no data folder of a collector"),
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let done = place.run(&args).exits(3);
        assert!(done.err.contains(words), "{line}: {}", done.err);
        assert_eq!(place.files(), before, "{line}: bad input changes nothing");
    }
}

/// The `sh` blocks of the page, from the second on; the first one installs.
fn blocks(page: &str) -> Vec<String> {
    let begin = page.split("## In five minutes").nth(1).unwrap();
    let section = begin.split("\n## ").next().unwrap();
    let parts = section.split("```sh\n").skip(2);
    parts
        .map(|part| part.split("```").next().unwrap().to_owned())
        .collect()
}

/// What the page has a newcomer do, up to the query, on a broker of the test's own.
fn newcomer(place: &Place, broker: &Mosquitto, blocks: &[String]) -> String {
    let own = program().parent().unwrap().to_path_buf();
    let usual = std::env::var_os("PATH").unwrap_or_default();
    let path =
        std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&usual))).unwrap();
    let mut printed = String::new();
    for block in blocks {
        let mut shell = Command::new("sh");
        shell.args(["-ec", &block.replace("18830", &broker.port.to_string())]);
        place.here(&mut shell);
        shell.env("PATH", &path);
        printed += &place.finish(shell).exits(0).out;
    }
    printed
}

#[test]
fn the_page_brings_a_newcomer_to_files_that_are_whole() {
    let page = std::fs::read_to_string(repository("docs/collect.md")).unwrap();
    let (place, broker) = (Place::new(), Mosquitto::start());
    let blocks = blocks(&page);
    assert_eq!(blocks.len(), 4);
    let printed = newcomer(&place, &broker, &blocks[..3]);
    assert!(
        printed.contains("3 messages of 1 collector: 3 in 1 finished file"),
        "{printed}"
    );
}

/// What needs a package of PyPI.
mod long {
    use super::*;

    #[test]
    fn the_page_brings_a_newcomer_to_a_query() {
        let page = std::fs::read_to_string(repository("docs/collect.md")).unwrap();
        let (place, broker) = (Place::new(), Mosquitto::start());
        let printed = newcomer(&place, &broker, &blocks(&page));
        for line in [
            "meters/1/power │   100",
            "meters/2/power │   200",
            "meters/3/power │   300",
        ] {
            assert!(printed.contains(line), "{printed}");
        }
    }
}
