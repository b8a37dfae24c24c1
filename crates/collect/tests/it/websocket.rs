//! MQTT over WebSocket, against mosquitto, and against what answers and is no broker.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use pubgauge_collect::{BrokerStatus, Config, Notice};
use pubgauge_driver::Reliability;
use pubgauge_testing::certificates::Authority;
use pubgauge_testing::free_port;
use pubgauge_testing::mosquitto::Mosquitto;
use tungstenite::handshake::server::{ErrorResponse, Request, Response};

use crate::common::*;

/// A mosquitto with one more listener, and the address of that.
fn with_listener(scheme: &str, more: &str) -> (Mosquitto, String) {
    let port = free_port();
    let lines =
        format!("allow_anonymous true\nlistener {port} 127.0.0.1\nprotocol websockets\n{more}");
    (
        Mosquitto::start_with(&lines),
        format!("{scheme}://127.0.0.1:{port}/mqtt"),
    )
}

/// HOST:PORT.
fn address_of(url: &str) -> &str {
    url.trim_start_matches("ws://").trim_end_matches("/mqtt")
}

fn ours(data: &Path, url: &str, rest: &str) -> Config {
    config(
        data,
        &[url.to_owned()],
        &format!("topics = [\"t/#\"]\nname = \"c\"\n{rest}"),
    )
}

#[test]
fn messages_come_over_websocket_as_they_come_over_tcp() {
    let (broker, url) = with_listener("ws", "");
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let mut publisher = Publisher::at(broker.address(), Reliability::ExactlyOnce);
    let mut sent = BTreeSet::new();
    // Each life goes on with the session of the one before.
    for (version, count) in [("5", 1010), ("3.1.1", 1030)] {
        let rest = format!("qos = 2\nmqtt = {version:?}\n[session]\nkeep-alive = \"1s\"");
        let collecting = Collecting::begin(ours(&data, &url, &rest));
        collecting.connected(1);
        // This mosquitto takes a second for each message that is larger than a buffer of its, whoever subscribes.
        for (many, len) in [(1000, 50), (10, 10_000)] {
            sent.extend(publisher.publish("t/a", many, len));
        }
        collecting.stored(count);
        let summary = collecting.end();
        assert_eq!((summary.acknowledged, summary.out_of_reach), (count, 0));
        sent.extend(publisher.publish("t/a", 20, 50));
    }
    let collecting = Collecting::begin(ours(&data, &url, "mqtt = \"3.1.1\""));
    collecting.stored(20);
    collecting.end();
    let there = numbers(&data);
    assert!(there.values().all(|count| *count == 1));
    assert_eq!(there.into_keys().collect::<BTreeSet<_>>(), sent);
    all_is_well(&data);
}

#[test]
fn with_tls_both_sides_prove_their_names() {
    let authority = Authority::new();
    let files = authority.both_sides("client");
    let shown = |name: &str| authority.file(name).display().to_string();
    let (broker, url) = with_listener(
        "wss",
        &format!(
            "cafile {}\ncertfile {}\nkeyfile {}\nrequire_certificate true",
            shown("ca.pem"),
            shown("server.pem"),
            shown("server.key")
        ),
    );
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let own = format!("[tls]\nca = {:?}\n", files.ca_file.unwrap());
    let certificate = format!(
        "cert = {:?}\nkey = {:?}\n",
        files.cert_file.unwrap(),
        files.key_file.unwrap()
    );
    let whole = format!("{own}{certificate}");
    let collecting = Collecting::begin(ours(&data, &url, &whole));
    collecting.connected(1);
    let sent = Publisher::at(broker.address(), Reliability::AtLeastOnce).publish("t/a", 200, 500);
    collecting.stored(200);
    collecting.end();
    assert_eq!(numbers(&data).into_keys().collect::<BTreeSet<_>>(), sent);
    let other = Authority::new();
    let theirs = format!("[tls]\nca = {:?}\n{certificate}", other.file("ca.pem"));
    for (rest, words) in [(theirs, "nobody in"), (own, "certificate")] {
        let collecting = Collecting::begin(ours(&data, &url, &rest));
        let told = collecting.told(words, |one| matches!(one, Notice::Failed { .. }));
        let told = told.to_string();
        assert!(
            told.contains("wss://127.0.0.1") && told.contains(words),
            "{told}"
        );
        collecting.end();
    }
}

/// Accepts each connection over WebSocket, and then does this with the socket.
fn server(then: impl Fn(&mut TcpStream) + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let then = then.clone();
            std::thread::spawn(move || {
                #[allow(clippy::result_large_err)] // As the library has it.
                let answer =
                    |_: &Request, mut answer: Response| -> Result<Response, ErrorResponse> {
                        let name = "Sec-WebSocket-Protocol";
                        answer.headers_mut().insert(name, "mqtt".parse().unwrap());
                        Ok(answer)
                    };
                let mut socket = tungstenite::accept_hdr(stream, answer).unwrap();
                // The CONNECT.
                let _ = socket.read();
                then(socket.get_mut());
            });
        }
    });
    format!("ws://{address}/mqtt")
}

/// Answers each request with these bytes, and ends the connection.
fn answers(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(bytes);
            // The client's remaining bytes are read: else its connection would be reset.
            let _ = stream.shutdown(std::net::Shutdown::Write);
            std::thread::spawn(move || stream.read_to_end(&mut Vec::new()));
        }
    });
    format!("ws://{address}/mqtt")
}

/// CONNACK and SUBACK under MQTT 5, in one frame.
const UP: &[u8] = &[0x82, 11, 0x20, 3, 0, 0, 0, 0x90, 4, 0, 1, 0, 1];

/// A frame with a part of what a server says.
fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![opcode, 127];
    frame.extend((payload.len() as u64).to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// A PUBLISH of QoS 1 to `t`, under MQTT 5.
fn publish(id: u8, len: usize) -> Vec<u8> {
    let mut rest = 6 + len;
    let mut packet = vec![0x32];
    while rest > 0 {
        packet.push((rest % 128) as u8 | if rest > 127 { 0x80 } else { 0 });
        rest /= 128;
    }
    packet.extend([0, 1, b't', 0, id, 0]);
    packet.extend(std::iter::repeat_n(id, len));
    packet
}

#[test]
fn messages_of_any_size_come_in_frames_of_any_size() {
    // One too large in a frame of its own, one in three frames with a ping between, several in one frame.
    let parts = publish(2, 500_000);
    let (first, rest) = parts.split_at(3);
    let (second, third) = rest.split_at(400_000);
    let several: Vec<u8> = (3..100).flat_map(|id| publish(id, 100)).collect();
    let sent = [
        UP.to_vec(),
        frame(0x82, &publish(1, 20 << 20)),
        frame(0x02, first),
        frame(0x00, second),
        vec![0x89, 1, b'p'],
        frame(0x80, third),
        frame(0x82, &several),
    ]
    .concat();
    let url = server(move |stream| {
        let _ = stream.write_all(&sent);
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let collecting = Collecting::begin(ours(&data, &url, ""));
    collecting.stored(98);
    let summary = collecting.end();
    assert_eq!((summary.dead_letters, summary.acknowledged), (1, 98));
    let lengths: Vec<usize> = stored(&data).iter().map(|one| one.payload.len()).collect();
    assert_eq!(lengths, [vec![500_000], vec![100; 97]].concat());
    all_is_well(&data);
}

#[test]
fn what_is_no_broker_is_told_and_one_beside_it_is_collected() {
    let (broker, url) = with_listener("ws", "");
    let sends = |bytes: &'static [u8]| {
        server(move |stream| {
            let _ = stream.write_all(bytes);
            let _ = stream.read_to_end(&mut Vec::new());
        })
    };
    let cases = [
        (answers(b"HTTP/1.1 404 Not Found\r\n\r\n"), "HTTP 404"),
        (answers(&[0x15, 3, 3, 0, 2, 2, 70]), "speaks TLS"),
        (answers(b""), "does this port speak TLS"),
        (sends(&[0x81, 1, b'a']), "a frame of text"),
        (sends(&[0x82, 0x85, 0, 0, 0, 0]), "masked frame"),
        (
            sends(&[0x82, 4, b'H', b'T', b'T', b'P']),
            "is it an MQTT server",
        ),
        (sends(&[0x88, 2, 3, 0xf0]), "before it answered CONNECT"),
        (
            sends(&[
                0x82, 11, 0x20, 3, 0, 0, 0, 0x90, 4, 0, 1, 0, 1, 0x88, 2, 3, 0xf0,
            ]),
            "(WebSocket 1008)",
        ),
    ];
    let mut brokers: Vec<String> = cases.iter().map(|(url, _)| url.clone()).collect();
    brokers.push(url.clone());
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let collecting = Collecting::begin(config(&data, &brokers, "topics = [\"t/#\"]\nname = \"c\""));
    for (url, words) in cases {
        let address = address_of(&url).to_owned();
        let is_told = |one: &Notice| match one {
            Notice::Failed { broker, why, .. } => *broker == address && why.contains(words),
            _ => false,
        };
        collecting.told(words, is_told);
    }
    let (real, status) = (address_of(&url), collecting.status.clone());
    until("the real one is connected", || {
        status.brokers()[real].connected
    });
    Publisher::at(broker.address(), Reliability::AtLeastOnce).publish("t/a", 100, 50);
    collecting.stored(100);
    collecting.end();
    all_is_well(&data);
}

#[test]
fn frames_that_carry_nothing_keep_no_other_broker_waiting() {
    for flood in [&[0x89, 0][..], &[0x82, 0], &[0x89, 4, 1, 2, 3, 4, 0x8a, 0]] {
        let many = flood.repeat((64 << 10) / flood.len());
        let url = server(move |stream| {
            let _ = stream.write_all(UP);
            while stream.write_all(&many).is_ok() {}
        });
        let (broker, beside) = with_listener("ws", "");
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("data");
        let brokers = [url, beside.clone()];
        let collecting = Collecting::begin(config(&data, &brokers, "topics = [\"t/#\"]"));
        let address = address_of(&beside);
        let status = collecting.status.clone();
        let beside = |holds: &dyn Fn(&BrokerStatus) -> bool| {
            status.brokers().get(address).is_some_and(holds)
        };
        until("the broker beside it is connected", || {
            beside(&|status| status.connected)
        });
        Publisher::at(broker.address(), Reliability::AtLeastOnce).publish("t/a", 100, 50);
        until("its messages", || beside(&|status| status.messages == 100));
        assert!(collecting.status.stuck_for() < std::time::Duration::from_secs(10));
        collecting.end();
    }
}

#[test]
fn no_password_goes_to_a_server_that_does_not_accept() {
    const SECRET: &str = "Wq7-of-the-user";
    let (accepts, refuses) = (Listener::start(), Listener::start());
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    std::fs::write(place.path().join("password"), SECRET).unwrap();
    let brokers = [
        format!("ws://ann@{}", refuses.address),
        format!("mqtt://ann@{}", accepts.address),
    ];
    let rest = "topics = [\"t\"]\npassword-file = \"password\"";
    let collecting = Collecting::begin(config(&data, &brokers, rest));
    until("both are tried", || {
        accepts.heard_of(SECRET) >= 3 && refuses.heard_of("GET /mqtt HTTP/1.1") >= 3
    });
    collecting.end();
    // A frame would be masked: behind the request is nothing.
    let is_request = |heard: &Vec<u8>| heard.ends_with(b"\r\n\r\n");
    assert!(refuses.heard().iter().all(is_request));
}
