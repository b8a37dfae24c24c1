//! Real systems on emulated networks: brokers and workers on hosts of their own, links with planted rate, delay
//! and multicast, and nothing left. Needs root, `ip`, `tc`, `nft` and `vde2`.

use crate::common;

use std::process::Command;

use common::*;
use serde_json::Value;

/// A paced study of one publisher and subscribers on a network; `{}` stands for what differs.
fn study(place: &Place, name: &str, network: &str, rest: &str) {
    let text = format!(
        "name = \"{name}\"\n[phases]\nwarm-up = \"300ms\"\nmeasure = \"2s\"\ndrain-quiet = \"500ms\"\n\
         ready-within = \"60s\"\ndrain-within = \"60s\"\n[testbed.network]\n{network}\n{rest}"
    );
    place.write(&format!("{name}.toml"), text);
}

fn trials(results: &Value) -> &Vec<Value> {
    results["trials"].as_array().unwrap()
}

fn system(trial: &Value) -> &str {
    trial["system"]["name"].as_str().unwrap()
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// A figure of a host's link.
fn link(trial: &Value, host: &str, figure: &str) -> f64 {
    let hosts = trial["network"]["hosts"].as_array().unwrap();
    let own = hosts.iter().find(|own| own["host"] == host);
    let own = own.unwrap_or_else(|| panic!("no host {host}: {hosts:?}"));
    number(&own[figure])
}

/// The machine's own network: interfaces, addresses and rules.
fn machine() -> String {
    let said = |line: &str| {
        let mut words = line.split(' ');
        let output = Command::new(words.next().unwrap()).args(words).output();
        let output = output.unwrap_or_else(|error| panic!("{line}: {error}"));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    // Names alone: counters of other tests go on.
    let links = said("ip -brief link");
    let links = links
        .lines()
        .map(|line| line.split_whitespace().next().unwrap_or_default());
    let links: Vec<&str> = links.collect();
    format!(
        "{links:?}\n{}\n{}",
        said("ip route"),
        said("nft list ruleset")
    )
}

/// Every driver that has something to do with a network, brokers with their own counts among them.
#[test]
fn systems_of_every_kind_run_on_hosts() {
    let place = Place::new();
    let before = machine();
    study(
        &place,
        "kinds",
        "broker = {}\npublisher = {}\nsubscriber = { hosts = 3 }",
        "[[workload]]\nname = \"paced\"\nflow = [{ pattern = \"1-n\", subscribers = 3, payload = \"1000B\", rate = \"200/s\" }]\n",
    );
    let systems = "mosquitto,nats:mqtt,rabbitmq,ejabberd,reference-broker,zeromq-direct,zeromq-forwarder,cyclonedds,fastdds";
    place
        .run(&[
            "run",
            "kinds.toml",
            "--on",
            systems,
            "--out",
            "run",
            "--quiet",
        ])
        .ran_to_its_end();
    assert_eq!(machine(), before);
    place.is_clean();
    let results = place.results("run");
    assert_eq!(results["networks"].as_array().unwrap().len(), 1);
    assert_eq!(results["networks"][0]["shape_only"], false);
    assert_eq!(trials(&results).len(), 9);
    for trial in trials(&results) {
        let name = system(trial);
        let status = &trial["verdict"]["status"];
        let told = status != "broken" && status != "lossy";
        assert!(told, "{name}: {}", trial["verdict"]);
        assert_eq!(trial["lost"], 0, "{name}");
        assert_eq!(trial["offered"], 400, "{name}");
        assert_eq!(trial["network"]["not_told"], Value::Null, "{name}");
        let payload = 400.0 * 1000.0;
        let through_broker = !["zeromq-direct", "cyclonedds", "fastdds"].contains(&name);
        // Each payload crosses the publisher's link once to a broker, else once to each host; acknowledgements,
        // headers and base64 (XMPP) come on top.
        let copies = if through_broker { 1.0 } else { 3.0 };
        let sent = link(trial, "publisher-1", "sent_bytes");
        assert!(
            sent >= 0.98 * copies * payload && sent <= 2.5 * copies * payload,
            "{name}: {sent}"
        );
        for host in ["subscriber-1", "subscriber-2", "subscriber-3"] {
            let got = link(trial, host, "received_bytes");
            assert!(
                got >= 0.98 * payload && got <= 2.5 * payload,
                "{name}, {host}: {got}"
            );
        }
        let relayed = link(trial, "broker-1", "sent_bytes");
        if through_broker {
            assert!(relayed >= 0.98 * 3.0 * payload, "{name}: {relayed}")
        } else {
            assert!(relayed < 0.01 * payload, "{name}: {relayed}")
        }
        if ["mosquitto", "nats:mqtt", "rabbitmq"].contains(&name) {
            let checks = trial["checks"].as_array().unwrap();
            let read = |check: &&Value| check["not_compared"].is_null();
            let of_broker = checks
                .iter()
                .filter(|c| c["counts"].to_string().contains(name));
            let counted = of_broker.filter(read).count() > 0;
            assert!(
                counted,
                "{name}: its counts are read on its host: {checks:?}"
            );
        }
    }
}

/// By unicast each subscriber host costs the publisher's link a copy, by multicast all together one.
#[test]
fn multicast_crosses_the_publishers_link_once() {
    let place = Place::new();
    study(
        &place,
        "multicast",
        "publisher = {}\nsubscriber = { hosts = 5 }",
        "[[settings]]\nname = \"unicast\"\nreliability = \"reliable\"\n\
         [[settings]]\nname = \"multicast\"\nreliability = \"reliable\"\nmulticast = true\n\
         [[workload]]\nname = \"paced\"\nflow = [{ pattern = \"1-n\", subscribers = 5, payload = \"1000B\", rate = \"500/s\" }]\n",
    );
    place
        .run(&argv(
            "run multicast.toml --on cyclonedds,fastdds --out run --quiet",
        ))
        .ran_to_its_end();
    let results = place.results("run");
    for name in ["cyclonedds", "fastdds"] {
        let of = |settings: &str| {
            let one = trials(&results)
                .iter()
                .find(|trial| system(trial) == name && trial["settings_name"] == settings);
            let one = one.unwrap_or_else(|| panic!("{name}, {settings}"));
            assert_eq!(one["lost"], 0);
            link(one, "publisher-1", "sent_bytes") / number(&one["published"])
        };
        let (unicast, multicast) = (of("unicast"), of("multicast"));
        assert!(
            (5000.0..7500.0).contains(&unicast),
            "{name}: {unicast} B for each message"
        );
        assert!(
            (1000.0..1500.0).contains(&multicast),
            "{name}: {multicast} B for each message"
        );
    }
}

/// A link that is slow for the slowest machine is filled, and no more than that comes out of it.
#[test]
fn a_slow_link_is_what_limits() {
    let place = Place::new();
    study(
        &place,
        "slow",
        "broker = { rate = \"10Mbit/s\" }\npublisher = { rate = \"10Mbit/s\" }\nsubscriber = { rate = \"10Mbit/s\" }",
        "[[workload]]\nname = \"flood\"\nflow = [{ pattern = \"1-1\", payload = \"2kB\", rate = \"max\", window = 200 }]\n",
    );
    place
        .run(&argv(
            "run slow.toml --on mosquitto,zeromq-direct --out run --quiet --set phases.measure=4s",
        ))
        .ran_to_its_end();
    let results = place.results("run");
    let bare = &results["networks"][0]["baseline"]["tcp"];
    let bytes: f64 = bare["received_bytes"]
        .as_array()
        .unwrap()
        .iter()
        .map(number)
        .sum();
    let bare = bytes * 1e9 / number(&bare["span_ns"]);
    assert!((1.10e6..1.25e6).contains(&bare), "bare TCP: {bare} B/s");
    for trial in trials(&results) {
        let payload = 2000.0 * number(&trial["delivered_msgs_per_s"]);
        let share = payload / bare;
        assert!(
            (0.90..1.03).contains(&share),
            "{}: {share} of bare TCP",
            system(trial)
        );
    }
    let said = place.run(&["report", "run", "-v"]).exits(0).out;
    assert!(said.contains("of what bare TCP carries"), "{said}");
    assert!(
        said.contains("Network: 3 hosts around one switch"),
        "{said}"
    );
    let page = std::fs::read_to_string(place.path_to("run/report.html")).unwrap();
    assert!(page.contains("<svg class=\"network\"") && page.contains("bare links, publisher-1"));
}

/// 16 KiB are 12 segments of TCP, 17.2 kB of frames. After a pause 2 frames pass at once and the rest at 1.1 times the rate
/// at most: 1.08 ms over 95 Mbit/s. No delivery is faster, however busy the machine is.
#[test]
fn a_message_takes_as_long_as_its_bytes_take_on_the_link() {
    let place = Place::new();
    study(
        &place,
        "bytes",
        "broker = {}\npublisher = { rate = \"95Mbit/s\" }\nsubscriber = {}",
        "[[workload]]\nname = \"seldom\"\nflow = [{ pattern = \"1-1\", payload = \"16KiB\", rate = \"50/s\" }]\n",
    );
    let args = argv("run bytes.toml --on mosquitto,zeromq-direct --out run --quiet");
    place.run(&args).ran_to_its_end();
    let results = place.results("run");
    for trial in trials(&results) {
        let fastest = number(&trial["latency_from_send_ns"]["min"]);
        assert!(fastest >= 1.05e6, "{}: {fastest} ns", system(trial));
        assert!(number(&trial["delivered"]) >= 90.0, "{}", system(trial));
    }
}

/// How far it goes over a link is planted: 10 Mbit/s of frames carry 1448 of 1514 bytes as MQTT, and a message of
/// 1000 bytes on `a/b` is one of 1009 (QoS 0, MQTT 5: two bytes of type, three of length and topic length, three of
/// topic, one of properties).
#[test]
fn a_search_finds_the_link_and_names_it() {
    let place = Place::new();
    study(
        &place,
        "limit",
        "broker = {}\npublisher = { rate = \"10Mbit/s\" }\nsubscriber = {}",
        "[search]\nwidth = 0.10\nbudget = \"100s\"\nconfirm = \"4s\"\n\
         [[workload]]\nname = \"far\"\nflow = [{ pattern = \"1-1\", topic = \"a/b\", payload = \"1000B\", rate = \"find\" }]\n",
    );
    place
        .run(&argv("run limit.toml --on mosquitto --out run --quiet"))
        .ran_to_its_end();
    let results = place.results("run");
    let search = &results["searches"][0];
    let truth = 10e6 / 8.0 * 1448.0 / 1514.0 / 1009.0;
    let end = |name: &str| {
        search[name]
            .as_f64()
            .unwrap_or_else(|| panic!("no {name}: {search}"))
    };
    let (low, high) = (end("low"), end("high"));
    // A busy machine takes from the lower end, never adds to the upper one.
    assert!(
        low <= 1.02 * truth && low >= 0.7 * truth,
        "{low} to {high}, planted {truth}"
    );
    assert!(high <= 1.25 * truth, "{low} to {high}, planted {truth}");
    assert_eq!(search["gave_way"]["what"], "link", "{search}");
    let words = search["gave_way"]["words"].as_str().unwrap();
    assert!(
        words.contains("the link of publisher-1") && words.contains("10 Mbit/s"),
        "{words}"
    );
}

/// 20 ms on the publisher's link, each way: 20 ms to a subscriber, 40 ms there and back.
#[test]
fn planted_delay_shows_one_way_and_there_and_back() {
    let place = Place::new();
    study(
        &place,
        "delay",
        "publisher = { delay = \"20ms\" }\nsubscriber = {}",
        "[[workload]]\nname = \"one-way\"\nflow = [{ pattern = \"1-1\", payload = \"64B\", rate = \"50/s\" }]\n\
         [[workload]]\nname = \"there-and-back\"\nflow = [{ pattern = \"1-1\", payload = \"64B\", exchange = \"ping-pong\", rate = \"10/s\" }]\n",
    );
    place
        .run(&argv(
            "run delay.toml --repeats 3 --on zeromq-direct --out run --quiet",
        ))
        .ran_to_its_end();
    place.is_clean();
    let results = place.results("run");
    // A busy machine adds to it, and takes nothing off: the least of three.
    let of = |workload: &str| {
        let own = trials(&results)
            .iter()
            .filter(|t| t["workload"]["name"] == workload);
        let medians = own.map(|one| {
            let latency = if one["round_trip_ns"].is_null() {
                &one["latency_from_send_ns"]
            } else {
                &one["round_trip_ns"]
            };
            number(&latency["p50"]) / 1e6
        });
        medians
            .min_by(f64::total_cmp)
            .unwrap_or_else(|| panic!("{workload}"))
    };
    let (one_way, back) = (of("one-way"), of("there-and-back"));
    assert!((20.0..30.0).contains(&one_way), "{one_way} ms");
    assert!((40.0..60.0).contains(&back), "{back} ms");
    assert!(
        (1.8..2.2).contains(&(back / one_way)),
        "{back} ms against {one_way} ms"
    );
}

/// Before anything is made: what a network cannot carry, by name, with what to do.
#[test]
fn what_cannot_be_on_a_network_is_refused() {
    let place = Place::new();
    let workload = "[[workload]]\nname = \"w\"\nflow = [{ pattern = \"1-1\", payload = \"64B\", rate = \"1/s\" }]\n";
    study(
        &place,
        "brokerless",
        "publisher = {}\nsubscriber = {}",
        workload,
    );
    study(&place, "deaf", "broker = {}\npublisher = {}", workload);
    study(
        &place,
        "counted",
        "broker = {}\npublisher = {}\nsubscriber = {}\n[testbed]\ncount-interface = \"lo\"",
        workload,
    );
    let files = place.files();
    for (study, on, why) in [
        (
            "counted.toml",
            "mosquitto",
            "the links of the network's hosts are counted anyway",
        ),
        (
            "brokerless.toml",
            "mosquitto",
            "the network has no broker host",
        ),
        ("brokerless.toml", "mqtt://127.0.0.1:1", "it runs already"),
        (
            "deaf.toml",
            "mosquitto",
            "the network has no subscriber host",
        ),
    ] {
        place
            .run(&["run", study, "--on", on, "--out", "run"])
            .exits(3)
            .assert_says(why);
        assert_eq!(place.files(), files, "{study} on {on}");
    }
}

/// The guard, the namespaces and what is in them end with the program, however that ends.
#[test]
fn nothing_is_left_of_a_killed_run() {
    let place = Place::new();
    let before = machine();
    study(
        &place,
        "killed",
        "broker = {}\npublisher = { delay = \"1ms\" }\nsubscriber = { hosts = 2 }",
        "[[workload]]\nname = \"paced\"\nflow = [{ pattern = \"1-n\", subscribers = 2, payload = \"64B\", rate = \"100/s\" }]\n",
    );
    let args = [
        "run",
        "killed.toml",
        "--on",
        "mosquitto",
        "--out",
        "run",
        "--set",
        "phases.measure=60s",
    ];
    let mut run = place.start(&args);
    run.measures();
    let on_hosts = place.processes().len();
    assert!(on_hosts >= 5, "broker, workers and guards: {on_hosts}");
    run.signal(libc::SIGKILL);
    place.has_no_process_soon();
    assert_eq!(machine(), before);
    // Folders of sockets that it left are removed by the next run, which takes up where it was killed.
    let again = [
        "run",
        "killed.toml",
        "--on",
        "mosquitto",
        "--out",
        "again",
        "--set",
        "phases.measure=1s",
        "--quiet",
    ];
    place.run(&again).ran_to_its_end();
    place.is_clean();
}
