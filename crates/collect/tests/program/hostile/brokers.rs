//! Real brokers with somebody between them and the collector who changes, delays or ends what they send.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use pubgauge_testing::hostile::{Dice, ended_well, files_below};
use pubgauge_testing::meddling::{MEDDLINGS, meddled};
use pubgauge_testing::mosquitto::Mosquitto;
use serde_json::Value;

use crate::new_place;

/// A collection with the patience that it gives to a broker that says nothing: seconds, in all.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

/// Options of a collector that stores what can be read line by line.
const COLLECTS: [&str; 6] = ["--topic", "m/#", "--form", "ndjson", "--to", "data"];

/// A collector of a real broker with somebody between them, beside one that nobody meddles with: of that one every message is
/// stored.
pub fn broker_misbehaves(dice: &mut Dice) {
    let place = new_place();
    let meddling = dice.one_of(&MEDDLINGS);
    let (broker, beside) = (Mosquitto::start(), Mosquitto::start());
    let (address, _meddlers) = meddled(&broker.address(), meddling, dice);
    let mut command = place.command(&COLLECTS);
    command.args(["--on", &address, "--on", &beside.address()]);
    if dice.below(2) == 0 {
        command.args(["--mqtt", "3.1.1"]);
    }
    println!("{meddling:?}");
    let mut run = place.spawn(command);
    run.until_said(&format!("127.0.0.1:{}: connected", beside.port));
    for broker in [&broker, &beside] {
        publish_numbers(broker.port);
    }
    std::thread::sleep(Duration::from_millis(dice.throw() % 800));
    run.signal(libc::SIGTERM);
    ended_well(&run.ends_within(ENDS_WITHIN));
    place.is_clean();
    // Messages that it has not acknowledged wait in its session.
    let mut command = place.command(&COLLECTS);
    command.args(["--on", &beside.address(), "--once"]);
    ended_well(&place.spawn(command).ends_within(ENDS_WITHIN));
    let (broker, mut stored) = (format!("127.0.0.1:{}", beside.port), BTreeSet::new());
    for file in files_below(&place.path_to("data")) {
        if file
            .extension()
            .is_some_and(|extension| extension == "ndjson")
        {
            let text = std::fs::read_to_string(file).unwrap();
            let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
            let own = lines.filter(|line: &Value| line["broker"] == *broker);
            stored.extend(own.map(|line| line["payload"].as_str().unwrap().to_owned()));
        }
    }
    let expected: BTreeSet<String> = (1..=NUMBERS).map(|n| n.to_string()).collect();
    assert_eq!(stored, expected);
}

/// How many messages [`publish_numbers`] publishes.
const NUMBERS: u32 = 200;

/// Publishes numbers from 1 on at QoS 1, and returns once all are acknowledged.
pub fn publish_numbers(port: u16) {
    let mut command = Command::new("mosquitto_pub");
    command.args(["-p", &port.to_string(), "-q", "1", "-t", "m/a", "-l"]);
    let mut publisher = command.stdin(Stdio::piped()).spawn().unwrap();
    let numbers: String = (1..=NUMBERS).map(|n| format!("{n}\n")).collect();
    let mut input = publisher.stdin.take().unwrap();
    input.write_all(numbers.as_bytes()).unwrap();
    drop(input);
    assert!(publisher.wait().unwrap().success());
}
