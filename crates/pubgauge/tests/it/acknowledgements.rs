//! A broker whose acknowledgements somebody changes or keeps back on their way to the publishers.

use crate::common;

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::AtomicBool;

use pubgauge_testing::meddling::Scripted;
use pubgauge_testing::mosquitto::Mosquitto;

use common::*;

const STUDY: &str = r#"
name = "answers"
[phases]
warm-up = "200ms"
measure = "2s"
[[settings]]
reliability = "at-least-once"
[[workload]]
name = "w"
[[workload.flow]]
payload = "64B"
rate = "500/s"
"#;

const PUBACK: u8 = 0x40;

/// The length of the packet that begins these bytes, of at most 16 KiB; none where the length itself has not come yet.
fn packet_length(bytes: &[u8]) -> Option<usize> {
    match *bytes {
        [_, length @ ..=127, ..] => Some(2 + usize::from(length)),
        [_, low, high, ..] => Some(3 + usize::from(low & 0x7f) + (usize::from(high) << 7)),
        _ => None,
    }
}

/// A trial in which each hundredth PUBACK becomes these bytes, made of its packet identifier.
fn with_answers(becomes: fn([u8; 2]) -> Vec<u8>) -> serde_json::Value {
    let broker = Mosquitto::start();
    let server = Scripted::meddling(broker.port, move || {
        let (mut held, mut count) = (Vec::new(), 0);
        move |bytes: &[u8], client: &mut TcpStream, _: &AtomicBool| {
            held.extend_from_slice(bytes);
            let mut out = Vec::new();
            while let Some(length) = packet_length(&held).filter(|length| *length <= held.len()) {
                let packet: Vec<u8> = held.drain(..length).collect();
                count += u64::from(packet[0] == PUBACK);
                if packet[0] == PUBACK && count % 100 == 0 {
                    out.extend(becomes([packet[2], packet[3]]));
                } else {
                    out.extend(packet);
                }
            }
            client.write_all(&out)
        }
    });
    let place = Place::new();
    place.write("study.toml", STUDY);
    let args = [
        "run",
        "study.toml",
        "--on",
        &server.address(),
        "--out",
        "run",
    ];
    place.run(&args).exits(2);
    place.trial("run")
}

#[test]
fn rejected_messages_are_told_with_the_code_in_words() {
    for (code, name) in [
        (0x97, "quota exceeded (0x97)"),
        (0x95, "packet too large (0x95)"),
    ] {
        let trial = match code {
            0x97 => with_answers(|[high, low]| vec![PUBACK, 3, high, low, 0x97]),
            _ => with_answers(|[high, low]| vec![PUBACK, 3, high, low, 0x95]),
        };
        assert_eq!(verdict(&trial), "lossy", "{}", reasons(&trial));
        assert!(reasons(&trial).contains(name), "{}", reasons(&trial));
        assert_eq!(trial["rejections"][0]["code"], code);
        assert_eq!(trial["rejections"][0]["messages"], trial["refused"]);
        assert_eq!(count(&trial, "lost"), 0);
    }
}

#[test]
fn messages_that_are_never_acknowledged_are_told() {
    let trial = with_answers(|_| Vec::new());
    assert_eq!(verdict(&trial), "lossy", "{}", reasons(&trial));
    assert!(
        reasons(&trial).contains("never acknowledged"),
        "{}",
        reasons(&trial)
    );
    assert!(
        (8..=12).contains(&count(&trial, "unacknowledged")),
        "{}",
        brief(&trial)
    );
    assert_eq!(count(&trial, "lost"), 0);
}
