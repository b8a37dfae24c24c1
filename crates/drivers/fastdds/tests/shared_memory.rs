//! Messages through shared memory do not go through the network, and nothing of them is left behind,
//! also not by a process that was killed. A program of its own (no test harness), because it kills
//! itself in another role.

#[path = "it/common/mod.rs"]
mod common;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use common::{Rig, SECOND, settings, target};
use serde_json::{Value, json};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, role, json] = &arguments[..]
        && role == "hold"
    {
        hold(serde_json::from_str(json).expect("JSON"));
    }
    pubgauge_testing::own_main(&[
        ("shared_memory", || {
            by_memory(json!({"transport": "shared-memory"}), "fastrtps_")
        }),
        ("data_sharing", || {
            by_memory(
                json!({"native": {"fastdds": {"data-sharing": true}}}),
                "fast_datasharing_",
            )
        }),
        ("udp_as_the_control", || {
            assert!(
                sent_for_a_million_bytes(&json!({})) > 1_000_000,
                "over UDP they are sent"
            )
        }),
    ])
}

fn by_memory(settings: Value, prefix: &str) {
    passes_by_the_network(&settings);
    leaves_nothing_when_killed(&settings, prefix);
}

fn sent_for_a_million_bytes(json: &Value) -> u64 {
    let scratch = tempfile::tempdir().expect("a folder");
    let (mut out, mut into, client, topic) = common::pair(&scratch, &settings(json.clone()));
    out.len = 10_000;
    let before = out.fleet().wire_bytes().sent;
    for n in 0..100 {
        out.send(client, topic, n);
        common::step(&mut out, &mut into);
    }
    common::run(&mut out, &mut into, 5 * SECOND, |_, into| {
        into.count() >= 100
    });
    assert_eq!(into.got(), (0..100).collect::<Vec<u32>>());
    out.fleet().wire_bytes().sent - before
}

fn passes_by_the_network(json: &Value) {
    let sent = sent_for_a_million_bytes(json);
    assert!(sent < 300_000, "{sent} B crossed the network with {json}");
}

fn files() -> BTreeSet<String> {
    std::fs::read_dir("/dev/shm")
        .expect("/dev/shm")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

fn leaves_nothing_when_killed(json: &Value, prefix: &str) {
    let before = files();
    let mut child = Command::new(std::env::current_exe().expect("a path"))
        .args(["hold", &json.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped"))
        .read_line(&mut line)
        .expect("readable");
    let held: Vec<String> = files().difference(&before).cloned().collect();
    assert!(
        held.iter().any(|name| name.starts_with(prefix)),
        "with {json} there is {held:?}"
    );
    child.kill().expect("it lives");
    child.wait().expect("a child");
    let start = Instant::now();
    while held.iter().any(|name| files().contains(name)) {
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "5 s after the kill there still is {:?}",
            files()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Uses memory until it is killed.
fn hold(json: Value) -> ! {
    let scratch = tempfile::tempdir().expect("a folder");
    let settings = settings(json);
    let mut out = Rig::open(&target(&scratch), &settings, 1);
    let (client, topic) = out.publisher("held/t");
    let mut into = Rig::open(&target(&scratch), &settings, 2);
    into.subscriber("held/t");
    common::prove(&mut out, &mut into, client, topic);
    println!("holding");
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}
