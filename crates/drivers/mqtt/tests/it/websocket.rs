//! MQTT over WebSocket: on real mosquitto, and against servers that misbehave.

use crate::common;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use common::*;
use pubgauge_driver::*;
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_testing::certificates::Authority;
use tungstenite::handshake::server::{ErrorResponse, Request, Response};

/// A mosquitto with one more listener, whose port it is.
fn with_listener(more: &str) -> (Mosquitto, u16) {
    let port = free_port();
    let lines =
        format!("allow_anonymous true\nlistener {port} 127.0.0.1\nprotocol websockets\n{more}");
    let broker = Mosquitto::start_with(&lines);
    listens(port);
    (broker, port)
}

/// Waits for the second listener, which comes after the first.
fn listens(port: u16) {
    common::until("it listens", || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
}

fn at(url: String) -> Target {
    Target::single(url)
}

/// Messages of many sizes from one client to another; all come, in order, also those that were accepted just before the end.
fn messages_come(target: &Target, settings: Settings) {
    let settings_are_exact = settings.reliability == Some(Reliability::ExactlyOnce);
    let mut rig = open(target.clone(), settings);
    let s = rig.named("s");
    rig.subscribe(s, "t");
    let p = rig.named("p");
    let topic = rig.fleet.advertise(p, "t").unwrap();
    for n in 0..500 {
        rig.publish(p, topic, n, 16 + n as usize);
    }
    // This server takes a second for each that is larger than its buffer, whoever sends it.
    rig.publish(p, topic, 500, 200_000);
    rig.until("all delivered", |s| s.delivered == 501);
    for n in 501..600 {
        rig.publish(p, topic, n, 64);
    }
    // A handshake of QoS 2 that is not finished is cut off.
    if settings_are_exact {
        rig.until("all acknowledged", |s| s.acknowledged.len() == 600);
    }
    rig.disconnect(p);
    rig.until("the last ones delivered", |s| s.delivered == 600);
    assert!(rig.sequences(s).into_iter().eq(0..600));
    assert_eq!(rig.seen.messages[500].payload.len(), 200_000);
    assert_eq!(rig.fleet.unsettled(), 0);
    rig.fleet.close(clock::monotonic_now() + SECOND);
}

#[test]
fn messages_come_over_websocket_as_they_come_over_tcp() {
    let (broker, port) = with_listener("");
    let url = format!("ws://127.0.0.1:{port}");
    for (version, reliability) in [
        ("3.1.1", Reliability::AtMostOnce),
        ("5", Reliability::AtLeastOnce),
        ("5", Reliability::ExactlyOnce),
    ] {
        messages_come(
            &at(format!("{url}/any/path")),
            reliable(version, reliability),
        );
    }
    // One end over WebSocket and the other over TCP; each message in a frame of its own.
    let mut settings = reliable("5", Reliability::AtMostOnce);
    settings.batching = Some(Batching::Off);
    let mut publishing = open(at(url), settings);
    let mut heard = on(broker.port, version("5"));
    let s = heard.named("s");
    heard.subscribe(s, "t");
    let p = publishing.named("p");
    let topic = publishing.fleet.advertise(p, "t").unwrap();
    for n in 0..100 {
        publishing.publish(p, topic, n, 20);
    }
    publishing.disconnect(p);
    heard.until("all heard", |s| s.delivered == 100);
    assert!(heard.sequences(s).into_iter().eq(0..100));
}

#[test]
fn the_pair_of_a_lost_connection_goes_on_over_websocket() {
    let (mut broker, port) = with_listener("persistence true\npersistence_location {dir}/");
    let settings = durable("5", Reliability::AtLeastOnce);
    let mut rig = open(at(format!("ws://127.0.0.1:{port}")), settings);
    let s = rig.named("s");
    rig.subscribe(s, "t");
    let p = rig.named("p");
    let topic = rig.fleet.advertise(p, "t").unwrap();
    rig.publish(p, topic, 0, 64);
    rig.until("one delivered", |s| s.delivered == 1);
    broker.restart();
    rig.until("both have failed", |seen| seen.failed.len() == 2);
    listens(port);
    for client in [s, p] {
        rig.fleet.reconnect(client).unwrap();
    }
    rig.until("both are back", |seen| seen.connected.len() == 4);
    rig.publish(p, topic, 1, 64);
    rig.until("the next one is delivered", |s| s.delivered == 2);
}

#[test]
fn with_tls_both_sides_prove_their_names() {
    let authority = Authority::new();
    let full = authority.both_sides("meter");
    let dir = authority.dir().display();
    let (_broker, port) = with_listener(&format!(
        "cafile {dir}/ca.pem\ncertfile {dir}/server.pem\nkeyfile {dir}/server.key\nrequire_certificate true"
    ));
    let target = |tls: &Tls| Target {
        tls: Some(tls.clone()),
        ..at(format!("wss://localhost:{port}/mqtt"))
    };
    messages_come(&target(&full), reliable("5", Reliability::AtLeastOnce));
    let alone = Tls {
        cert_file: None,
        key_file: None,
        ..full.clone()
    };
    let other = Authority::new();
    let foreign = Tls {
        ca_file: Some(other.file("ca.pem")),
        ..full
    };
    for (tls, words) in [(alone, "certificate"), (foreign, "has issued")] {
        let why = Rig::failure(&MqttDriver, target(&tls), version("5"));
        assert!(
            why.contains(words) && why.contains("wss://localhost"),
            "{why}"
        );
    }
}

/// Accepts connections over WebSocket and does this with the socket of each, once the CONNECT came. The address.
fn server(then: impl Fn(&mut TcpStream) + Clone + Send + 'static) -> String {
    let (port, _) = scripted(move |listener| {
        for stream in listener.incoming().map_while(Result::ok) {
            #[allow(clippy::result_large_err)] // As the library has it.
            let answer = |_: &Request, mut answer: Response| -> Result<Response, ErrorResponse> {
                let name = "Sec-WebSocket-Protocol";
                answer.headers_mut().insert(name, "mqtt".parse().unwrap());
                Ok(answer)
            };
            let mut socket = tungstenite::accept_hdr(stream, answer).unwrap();
            let connect = socket.read().unwrap().into_data();
            assert_eq!(connect[0], 0x10, "the whole CONNECT, in a frame of its own");
            then(socket.get_mut());
        }
    });
    format!("ws://127.0.0.1:{port}/mqtt")
}

/// Answers each request with these bytes, and ends the connection.
fn answers(bytes: &'static [u8]) -> String {
    let (port, _) = scripted(move |listener| {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(bytes);
            let _ = stream.shutdown(Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    format!("ws://127.0.0.1:{port}/mqtt")
}

/// CONNACK under MQTT 5, in a frame.
const CONNACK: &[u8] = &[0x82, 5, 0x20, 3, 0, 0, 0];

/// A frame with a part of what a server says.
fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![opcode, 127];
    frame.extend((payload.len() as u64).to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// A PUBLISH of QoS 0 to `t`, under MQTT 5.
fn publish(sequence: u64, len: usize) -> Vec<u8> {
    let mut rest = 4 + len;
    let mut packet = vec![0x30];
    while rest > 0 {
        packet.push((rest % 128) as u8 | if rest > 127 { 0x80 } else { 0 });
        rest /= 128;
    }
    packet.extend([0, 1, b't', 0]);
    packet.extend(head(sequence));
    packet.resize(packet.len() + len - header::HEADER_LEN, 7);
    packet
}

#[test]
fn what_is_no_broker_is_told() {
    let sends = |bytes: &'static [u8]| {
        server(move |stream| {
            let _ = stream.write_all(bytes);
            let _ = stream.read_to_end(&mut Vec::new());
        })
    };
    for (url, words, hint) in [
        (answers(b"HTTP/1.1 404 Not Found\r\n\r\n"), "HTTP 404", "at this path"),
        (answers(&[0x20, 2, 0, 0]), "no HTTP server", "at this port"),
        (answers(&[0x15, 3, 3, 0, 2, 2, 70]), "speaks TLS", "wss://"),
        (answers(b""), "in place of beginning WebSocket", "at this port"),
        (
            answers(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n"),
            "Sec-WebSocket-Accept",
            "at this port",
        ),
        (sends(&[0x81, 1, b'a']), "a frame of text", "hint"),
        (sends(&[0x82, 0x85, 0, 0, 0, 0]), "masked frame", "hint"),
        (sends(&[0x82, 4, b'H', b'T', b'T', b'P']), "broke the protocol", "§"),
        (sends(&[0x88, 2, 3, 0xf0]), "closed WebSocket (close code 1008)", "its log"),
        (
            // A frame of nearly all the bytes there are, with a packet that is longer than any may be.
            sends(&[0x82, 127, 0x7f, 255, 255, 255, 255, 255, 255, 255, 0x20, 255, 255, 255, 127]),
            "larger than allowed",
            "takes packets of up to",
        ),
    ] {
        let why = Rig::failure(&MqttDriver, at(url.clone()), version("5"));
        let place = url.trim_end_matches("/mqtt");
        assert!(why.contains(words) && why.contains(hint), "{words}: {why}");
        assert!(why.contains(place), "{why}");
    }
    // The listener of the same broker that speaks plain MQTT.
    let broker = Mosquitto::start();
    let url = format!("ws://127.0.0.1:{}", broker.port);
    let why = Rig::failure(&MqttDriver, at(url), version("5"));
    assert!(
        why.contains("does the server speak WebSocket at this port"),
        "{why}"
    );
}

#[test]
fn messages_of_any_size_come_in_frames_of_any_size() {
    // One in three frames with a ping between, one in frames of a byte, several in one frame.
    let parts = publish(0, 500_000);
    let (first, rest) = parts.split_at(3);
    let (second, third) = rest.split_at(400_000);
    let several: Vec<u8> = (2..100).flat_map(|n| publish(n, 100)).collect();
    let each: Vec<u8> = publish(1, 70)
        .iter()
        .flat_map(|one| [0x82, 1, *one])
        .collect();
    let sent = [
        CONNACK.to_vec(),
        frame(0x02, first),
        frame(0x00, second),
        vec![0x89, 1, b'p'],
        frame(0x80, third),
        each,
        frame(0x82, &several),
    ]
    .concat();
    let (answered, answer) = std::sync::mpsc::channel();
    let url = server(move |stream| {
        // In pieces that end anywhere.
        for piece in sent.chunks(77_777) {
            let _ = stream.write_all(piece);
        }
        let mut got = Vec::new();
        let _ = stream.read_to_end(&mut got);
        let _ = answered.send(got);
    });
    let mut rig = open(at(url), version("5"));
    let client = rig.named("c");
    rig.until("all delivered", |seen| seen.delivered == 100);
    assert!(rig.sequences(client).into_iter().eq(0..100));
    assert_eq!(rig.seen.messages[0].payload.len(), 500_000);
    rig.disconnect(client);
    // A pong with what the ping had, and the DISCONNECT, both masked.
    let mut bytes = &answer.recv().unwrap()[..];
    let mut frames = Vec::new();
    while let [opcode, len, mask @ ..] = bytes {
        let (len, (mask, rest)) = (usize::from(len & 0x7f), mask.split_at(4));
        let carried = rest[..len].iter().zip(mask.iter().cycle());
        frames.push((
            *opcode,
            carried.map(|(byte, mask)| byte ^ mask).collect::<Vec<u8>>(),
        ));
        bytes = &rest[len..];
    }
    assert_eq!(frames[0], (0x8a, b"p".to_vec()));
    assert_eq!((frames[1].0, frames[1].1[0]), (0x82, 0xe0), "DISCONNECT");
    assert_eq!(frames.len(), 2);
}

#[test]
fn a_flood_of_frames_that_carry_nothing_takes_neither_memory_nor_the_turn_of_others() {
    for flood in [&[0x89, 0][..], &[0x82, 0], &[0x89, 4, 1, 2, 3, 4, 0x8a, 0]] {
        let many = flood.repeat((64 << 10) / flood.len());
        let url = server(move |stream| {
            let _ = stream.write_all(CONNACK);
            while stream.write_all(&many).is_ok() {}
        });
        let (_broker, port) = with_listener("");
        let target = Target {
            endpoints: vec![url, format!("ws://127.0.0.1:{port}")],
            ..Target::default()
        };
        let mut rig = open(target, version("5"));
        rig.named("flooded");
        let beside = |name: &str| ClientSpec {
            endpoint: 1,
            ..Rig::spec(name)
        };
        let s = rig.client(&beside("s"));
        rig.subscribe(s, "t");
        let topic = rig.fleet.advertise(s, "t").unwrap();
        for n in 0..100 {
            rig.publish(s, topic, n, 64);
        }
        rig.until("all delivered", |seen| seen.delivered == 100);
    }
}
