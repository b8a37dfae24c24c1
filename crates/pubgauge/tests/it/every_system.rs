//! Every system in every variant, as it is on this machine: what its driver and its file claim is
//! shown by `pubgauge check`, and nothing is left of it, also when it is killed in the middle.

use crate::common;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use common::*;
use serde_json::Value;

/// How long one system's check may take.
const CHECK: Duration = Duration::from_secs(600);
/// How long a run may take to notice that its system is gone, and to end.
const SOON: Duration = Duration::from_secs(60);

/// Facts that clients cannot see, by driver: the test of the driver's own that shows it.
const OWN_TESTS: [(&str, &str, &str, &str); 11] = [
    (
        "amqp",
        "batching:off",
        "crates/drivers/amqp/tests/it/scripted.rs",
        "without_batching_each_message_is_written_at_once",
    ),
    (
        "amqp",
        "batching:fixed",
        "crates/drivers/amqp/tests/it/scripted.rs",
        "fixed_batching_gathers_so_many_bytes",
    ),
    (
        "amqp",
        "batching:adaptive",
        "crates/drivers/amqp/tests/it/scripted.rs",
        "adaptive_batching_gathers_until_there_is_nothing_due",
    ),
    (
        "zeromq",
        "batching:adaptive",
        "crates/drivers/zeromq/tests/it/wire.rs",
        "waiting_messages_go_out_together",
    ),
    (
        "zeromq",
        "priority",
        "crates/drivers/zeromq/tests/it/wire.rs",
        "a_priority_marks_the_packets",
    ),
    (
        "cyclonedds",
        "multicast",
        "crates/drivers/cyclonedds/tests/it/wire.rs",
        "unicast_sends_to_each_and_multicast_once_for_all",
    ),
    (
        "cyclonedds",
        "batching:off",
        "crates/drivers/cyclonedds/tests/it/wire.rs",
        "batches_share_datagrams",
    ),
    (
        "cyclonedds",
        "batching:fixed",
        "crates/drivers/cyclonedds/tests/it/wire.rs",
        "batches_share_datagrams",
    ),
    (
        "cyclonedds",
        "batching:adaptive",
        "crates/drivers/cyclonedds/tests/it/wire.rs",
        "adaptive_batches_follow_the_rate",
    ),
    (
        "fastdds",
        "in-flight",
        "crates/drivers/fastdds/tests/it/delivery.rs",
        "in_flight_limits_what_is_not_acknowledged",
    ),
    (
        "fastdds",
        "multicast",
        "crates/drivers/fastdds/tests/it/delivery.rs",
        "multicast_sends_once_for_many_subscribers",
    ),
];

macro_rules! systems {
    ($list:ident: $($test:ident: $name:literal,)*) => {
        pub const $list: &[&str] = &[$($name),*];
        $(
            #[test]
            fn $test() {
                one($name);
            }
        )*
    };
}

// One for each driver: what starts fast, and no package manager but the system's is needed for.
systems! { SOON_STARTED:
    mosquitto_in_memory: "mosquitto:memory",
    rabbitmq_amqp: "rabbitmq:amqp",
    ejabberd_xmpp: "ejabberd:xmpp",
    nats_core: "nats:core",
    zeromq_direct: "zeromq-direct",
    cyclonedds: "cyclonedds",
    fastdds_tuned: "fastdds:tuned",
    reference_broker: "reference-broker",
}

/// All others.
mod long {
    use super::*;

    systems! { OTHERS:
        mosquitto_by_default: "mosquitto:defaults",
        mosquitto_with_short_queues: "mosquitto:queues-100",
        mosquitto_with_long_queues: "mosquitto:queues-unlimited",
        mosquitto_on_disk: "mosquitto:persistent",
        mosquitto_each_second: "mosquitto:persistent-1s",
        mosquitto_on_changes: "mosquitto:persistent-on-changes",
        mosquitto_with_tls: "mosquitto:tls",
        nats_with_tls: "nats:tls",
        rabbitmq_with_tls: "rabbitmq:tls",
        zeromq_forwarder: "zeromq-forwarder",
        activemq_in_memory: "activemq:memory",
        activemq_on_disk: "activemq:persistent",
        activemq_with_two_connectors: "activemq:two-connectors",
        artemis_in_memory: "artemis:memory",
        artemis_on_disk: "artemis:persistent",
        apollo_in_memory: "apollo:memory",
        apollo_on_disk: "apollo:persistent",
        hivemq_in_memory: "hivemq:memory",
        hivemq_on_disk: "hivemq:persistent",
        nats_mqtt: "nats:mqtt",
        rabbitmq_mqtt: "rabbitmq:mqtt",
        rabbitmq_mqtt_with_two_connectors: "rabbitmq:mqtt-two-connectors",
        ejabberd_anonymous: "ejabberd:anonymous",
        ejabberd_mqtt: "ejabberd:mqtt",
        fastdds_default: "fastdds:default",
        fastdds_with_cyclonedds: "fastdds-cyclonedds",
    }

    #[test]
    fn every_variant_is_tested_here() {
        let place = Place::new();
        let systems = listing(&place);
        for system in systems.as_array().unwrap() {
            let kind = system["kind"].as_str().unwrap();
            if kind == "external" || kind == "unavailable" {
                continue;
            }
            let name = system["name"].as_str().unwrap();
            assert_eq!(
                system["found"], true,
                "{name} is not on this machine: pubgauge systems --install {name}"
            );
            let variants = system["variants"].as_array().unwrap();
            let names: Vec<String> = if variants.is_empty() {
                vec![name.to_owned()]
            } else {
                variants
                    .iter()
                    .map(|v| format!("{name}:{}", v.as_str().unwrap()))
                    .collect()
            };
            for name in names {
                let tested = [SOON_STARTED, OTHERS].concat();
                assert!(tested.contains(&name.as_str()), "{name} is not tested here");
            }
        }
    }
}

/// pubgauge, with the folder of downloaded systems that the user has.
fn with_cache(place: &Place, args: &[&str]) -> Command {
    let cache = std::env::var("PUBGAUGE_CACHE").unwrap_or_else(|_| {
        let home = std::env::var("HOME").expect("a home folder");
        format!("{home}/.cache/pubgauge")
    });
    let mut command = place.command(args);
    command.env("PUBGAUGE_CACHE", cache);
    command
}

/// Folders and files in which systems might leave something outside their own folder.
fn outside() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for folder in [
        "/dev/shm",
        "/run/netns",
        "/var/lib/rabbitmq",
        "/var/lib/ejabberd",
    ] {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            found.insert(entry.path().display().to_string());
        }
    }
    found
}

fn one(name: &str) {
    let before = outside();
    checked(name);
    killed(name);
    // Tests of these run one at a time: what one leaves behind is not taken for another's.
    if name.contains("dds") {
        let mut left: Vec<_> = outside().difference(&before).cloned().collect();
        // Processes that other tests use at the moment vanish with them.
        let end = Instant::now() + SOON;
        while !left.is_empty() {
            assert!(Instant::now() < end, "{name} left {left:?}");
            std::thread::sleep(Duration::from_millis(200));
            let there = outside();
            left.retain(|path| there.contains(path));
        }
    }
}

/// Every claim holds, or is listed as broken in the system's file; what clients cannot see has a
/// test elsewhere.
fn checked(name: &str) {
    let place = Place::new();
    let check = with_cache(&place, &["check", "--on", name, "--json"]);
    let done = place.spawn(check).ends_within(CHECK);
    place.is_clean();
    let done = done.exits(0);
    let reports: Value = serde_json::from_str(&done.out).unwrap();
    let report = &reports[0];
    assert_eq!(report["system"], name);
    let lines = report["lines"].as_array().unwrap();
    let found = |finding: &str| lines.iter().filter(|l| l["finding"] == finding).count();
    assert!(found("shown") > 25, "{name}: {}", done.out);
    let systems = listing(&place);
    for line in lines.iter().filter(|l| l["finding"] == "unseen") {
        shown_elsewhere(driver_of(&systems, name), line["claim"].as_str().unwrap());
    }
}

fn listing(place: &Place) -> Value {
    let done = place
        .spawn(with_cache(place, &["systems", "--json"]))
        .wait_for_end()
        .exits(0);
    serde_json::from_str(&done.out).unwrap()
}

fn driver_of<'a>(systems: &'a Value, name: &str) -> &'a str {
    let plain = name.split(':').next().unwrap();
    let of = systems
        .as_array()
        .unwrap()
        .iter()
        .find(|s| s["name"] == plain);
    of.unwrap()["driver"].as_str().unwrap()
}

fn shown_elsewhere(driver: &str, claim: &str) {
    let own = OWN_TESTS
        .iter()
        .find(|(d, c, ..)| *d == driver && *c == claim);
    let Some((.., file, function)) = own else {
        panic!("clients cannot see {claim} over {driver}, and no other test shows it");
    };
    let text = std::fs::read_to_string(repository(file)).unwrap();
    assert!(
        text.contains(&format!("fn {function}(")),
        "{file} has no test {function}, which is to show {claim} over {driver}"
    );
}

/// A run whose system is killed in the middle ends with what was measured, and leaves nothing. Where
/// no process of the system's own runs, the run itself is interrupted.
fn killed(name: &str) {
    let place = Place::new();
    let args = [
        "run",
        "--on",
        name,
        "--rate",
        "100/s",
        "--duration",
        "100s",
        "--warm-up",
        "200ms",
        "--out",
        "run",
        "--set",
        "phases.ready-within=60s",
        "--listen",
        "0",
    ];
    let mut run = place.spawn(with_cache(&place, &args));
    run.delivers();
    let processes = run.systems();
    if processes.is_empty() {
        run.signal(libc::SIGINT)
    } else {
        processes.iter().for_each(|pid| kill_if_there(*pid))
    }
    run.ends_within(SOON).exits(2);
    place.is_clean();
    let results = place.results("run");
    let trials = results["trials"].as_array().unwrap();
    if !processes.is_empty() {
        is_broken(&trials[0], &[]);
        assert!(count(&trials[0], "delivered") > 0, "{}", brief(&trials[0]));
    }
}

/// Some of a system's processes end with others.
fn kill_if_there(pid: i32) {
    if Path::new(&format!("/proc/{pid}")).exists() {
        // SAFETY: kill takes no pointers; the id is that of a process found in this test's place.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
}
