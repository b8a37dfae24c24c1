//! Times to connect, against a server that answers each client after a known time.

use crate::common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use common::*;

/// From a client's CONNECT to the answer.
const ANSWER: Duration = Duration::from_millis(50);
/// How much later a client may have read it, and how much earlier its attempt may have begun.
const MARGIN: Duration = Duration::from_millis(3);

/// Answers CONNECT (MQTT 5, section 3.2: accepted, no session, no properties) after [`ANSWER`], and then nothing.
fn answer(mut client: TcpStream) {
    let mut bytes = [0; 4096];
    if client.read(&mut bytes).is_err() {
        return;
    }
    std::thread::sleep(ANSWER);
    let _ = client.write_all(&[0x20, 3, 0, 0, 0]);
    while client.read(&mut bytes).is_ok_and(|count| count > 0) {}
}

#[test]
fn a_client_is_connected_once_it_was_answered() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("mqtt://{}", server.local_addr().expect("its address"));
    std::thread::spawn(move || {
        for client in server.incoming().flatten() {
            std::thread::spawn(move || answer(client));
        }
    });
    let place = Place::new();
    let load = [
        "--publishers",
        "400",
        "--subscribers",
        "0",
        "--rate",
        "100/s",
    ];
    let length = ["--duration", "1s", "--warm-up", "0s", "--out"];
    let mut runs = ["1", "2", "3", "4", "5"].into_iter();
    let trial = calm(|| {
        let run = runs.next().expect("five tries at most");
        let flags = [&["run", "--on", &url][..], &load, &length, &[run]].concat();
        place.run(&flags).exits(0);
        place.trial(run)
    });
    let times = &trial["connections"]["time_to_connect_ns"];
    assert_eq!(times["count"], 400, "{times}");
    let [least, most] = [ANSWER, ANSWER + MARGIN].map(|time| time.as_nanos() as u64);
    for name in ["min", "p50", "p90"] {
        let ns = count(times, name);
        assert!((least..=most).contains(&ns), "{name}: {times}");
    }
    place.is_clean();
}
