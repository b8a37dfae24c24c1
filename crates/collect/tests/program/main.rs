//! The program, as it is typed.

mod canary;
mod collecting;
mod compact;
mod exposure;
mod hostile;
mod leave;
mod partitions;
mod pods;
mod reload;
mod replay;
mod service;
mod snapshots;
mod tls;
mod tutorial;
#[cfg(feature = "upload")]
mod uploads;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use pubgauge_testing::mosquitto::Mosquitto;
use pubgauge_testing::program::{Done, Place, Started, argv, listens_at, repository, terminal};

/// Where the program is.
const PROGRAM: &str = env!("CARGO_BIN_EXE_pubgauge-collect");

/// A place in which the program runs.
fn new_place() -> Place {
    Place::new(PROGRAM)
}

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

/// Flags of a collector of `m/#`.
fn collector_flags<'a>(address: &'a str, data: &'a str) -> [&'a str; 6] {
    ["--on", address, "--topic", "m/#", "--to", data]
}

/// Starts a collector that ends after so many messages of a broker, with more flags, and returns once it is connected.
fn start_collecting<'a>(
    place: &'a Place,
    broker: &Mosquitto,
    data: &str,
    count: u32,
    more: &[&str],
) -> Started<'a> {
    let (url, count) = (url(broker), count.to_string());
    let flags = collector_flags(&url, data);
    let mut collector = place.start(&[&flags[..], &["--messages", &count], more].concat());
    collector.until_said("connected, with");
    collector
}
