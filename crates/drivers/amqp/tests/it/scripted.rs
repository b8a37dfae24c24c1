//! The driver against servers that follow a script: they block, reject, return, hang, refuse,
//! close, talk nonsense.

use crate::common;

use std::io::Read;
use std::time::Duration;

use common::peer::*;
use common::*;
use pubgauge_driver::*;
use pubgauge_driver_amqp::codec::method::*;
use pubgauge_driver_amqp::codec::{HEARTBEAT, Method, Properties};

fn spec(publishes: bool) -> ClientSpec {
    ClientSpec {
        name: "c".into(),
        publishes,
        ..ClientSpec::default()
    }
}

fn close(code: u16, text: &'static str) -> ConnectionClose<'static> {
    ConnectionClose {
        reply_code: code,
        reply_text: text.as_bytes(),
        ..ConnectionClose::default()
    }
}

#[test]
fn a_blocked_connection_holds_the_publisher_until_it_is_unblocked() {
    let (port, server) = scripted(|listener| {
        let mut peer = Peer::accept(&listener);
        peer.welcome(0);
        peer.publisher();
        peer.published();
        let reason = b"low on memory";
        let blocked = ConnectionBlocked {
            reason,
            ..ConnectionBlocked::default()
        };
        peer.send(0, Method::ConnectionBlocked(blocked));
        peer.send(1, confirm(1, false));
        std::thread::sleep(Duration::from_millis(300));
        peer.send(
            0,
            Method::ConnectionUnblocked(ConnectionUnblocked::default()),
        );
        assert_eq!(peer.published().routing_key, "a.b");
        peer.send(1, confirm(2, false));
        // channel.flow does the same, and wants an answer.
        let stop = ChannelFlow::default();
        peer.send(1, Method::ChannelFlow(stop));
        peer.expect("channel.flow-ok");
        std::thread::sleep(Duration::from_millis(100));
        let go = ChannelFlow {
            active: 1,
            ..ChannelFlow::default()
        };
        peer.send(1, Method::ChannelFlow(go));
        peer.expect("channel.flow-ok");
        peer.published();
        peer.send(1, confirm(3, false));
        peer.until_closed();
    });
    let mut rig = on(port, reliable());
    let client = rig.client(&spec(true));
    let topic = rig.fleet.advertise(client, "a/b").unwrap();
    rig.publish(client, topic, 1, 64);
    rig.until("the first confirm", |s| s.acknowledged.len() == 1);
    let begin = clock::monotonic_now();
    assert_eq!(rig.try_publish(client, topic, 2, 64), Publish::Blocked);
    rig.until("word that it goes on", |s| s.writable.len() == 1);
    assert!(clock::monotonic_now() - begin > SECOND / 10);
    rig.publish(client, topic, 2, 64);
    rig.until("the second confirm", |s| s.acknowledged.len() == 2);
    // Until channel.flow has come.
    rig.poll_for(Duration::from_millis(50));
    assert_eq!(rig.try_publish(client, topic, 3, 64), Publish::Blocked);
    rig.until("word that it goes on", |s| s.writable.len() == 2);
    rig.publish(client, topic, 3, 64);
    rig.until("the third confirm", |s| s.acknowledged.len() == 3);
    drop(rig);
    server.join().unwrap();
}

#[test]
fn confirms_rejections_and_returns_find_their_messages() {
    let (port, server) = scripted(|listener| {
        let mut peer = Peer::accept(&listener);
        peer.welcome(0);
        peer.publisher();
        let messages: Vec<Published> = (0..6).map(|_| peer.published()).collect();
        // The fourth comes back, its frames cut in two by a sign of life on the way.
        let mut bytes = Vec::new();
        let returned = BasicReturn {
            reply_code: 312,
            reply_text: b"NO_ROUTE",
            exchange: b"amq.topic",
            routing_key: b"a.b",
            ..BasicReturn::default()
        };
        Method::BasicReturn(returned).encode(1, &mut bytes).unwrap();
        bytes.extend(HEARTBEAT);
        let properties = Properties {
            message_id: messages[3].message_id.as_deref(),
            ..Properties::default()
        };
        bytes.extend(content(1, properties, &messages[3].body, 20));
        peer.raw(&bytes);
        peer.send(1, confirm(2, false));
        let nack = BasicNack {
            delivery_tag: 3,
            ..BasicNack::default()
        };
        peer.send(1, Method::BasicNack(nack));
        peer.send(1, confirm(5, true));
        peer.send(1, confirm(6, false));
        peer.until_closed();
    });
    let mut rig = on(port, native(reliable(), "mandatory", true.into()));
    let client = rig.client(&spec(true));
    let topic = rig.fleet.advertise(client, "a/b").unwrap();
    for n in 1..=6 {
        rig.publish(client, topic, n * 10, 64);
    }
    assert_eq!(rig.fleet.unsettled(), 6);
    rig.until("six answers", |s| s.acknowledged.len() == 6);
    use Acknowledgement::*;
    let expected = [
        (20, Taken),
        (30, Rejected(0)),
        (10, Taken),
        (40, NoSubscriber),
        (50, Taken),
        (60, Taken),
    ];
    let got: Vec<_> = rig
        .seen
        .acknowledged
        .iter()
        .map(|(_, t, a)| (*t, *a))
        .collect();
    assert_eq!(got, expected);
    assert_eq!(rig.fleet.unsettled(), 0);
    drop(rig);
    server.join().unwrap();
}

#[test]
fn deliveries_are_put_together_wherever_they_are_cut() {
    // Deliveries in one frame and in several, an empty one, signs of life within, all cut in two
    // at every byte.
    let wire = |round: usize| {
        let tag = 4 * round as u64;
        let mut wire = delivery(tag + 1, "a.b", &[1; 40], 100);
        wire.extend(delivery(tag + 2, "a.b", &[2; 250], 100));
        wire.extend(HEARTBEAT);
        wire.extend(delivery(tag + 3, "a.c", &[], 100));
        let mut split = delivery(tag + 4, "a.d", &[4; 30], 30);
        let header_at = split.len() - 38 - 22;
        split.splice(header_at..header_at, HEARTBEAT);
        wire.extend(split);
        wire
    };
    let cuts = wire(0).len();
    let (port, server) = scripted(move |listener| {
        let mut peer = Peer::accept(&listener);
        peer.stream.set_nodelay(true).unwrap();
        peer.welcome(0);
        peer.consumer();
        for cut in 0..cuts {
            let whole = wire(cut);
            peer.raw(&whole[..cut]);
            std::thread::sleep(Duration::from_micros(300));
            peer.raw(&whole[cut..]);
            // One answer for each read that brought something whole.
            let mut acknowledged = 0;
            while acknowledged < 4 * (cut as u64 + 1) {
                acknowledged = peer.method(|channel, method| match method {
                    Method::BasicAck(ack) => {
                        assert_eq!((channel, ack.bits), (2, MULTIPLE));
                        ack.delivery_tag
                    }
                    other => panic!("{other:?}"),
                });
            }
        }
        peer.until_closed();
    });
    let mut rig = on(port, reliable());
    let client = rig.client(&spec(false));
    rig.subscribe(client, "a/+");
    rig.until("all", |s| s.messages.len() == 4 * cuts);
    for round in rig.seen.messages.chunks(4) {
        let got: Vec<_> = round
            .iter()
            .map(|m| (m.topic.as_str(), m.payload.len()))
            .collect();
        assert_eq!(got, [("a/b", 40), ("a/b", 250), ("a/c", 0), ("a/d", 30)]);
        assert!(round[1].payload.iter().all(|b| *b == 2));
    }
    drop(rig);
    server.join().unwrap();
}

/// Connects, and subscribes if it gets so far, to a server that ends with these methods and bytes;
/// gives the reason of the failure.
fn failure(stage: u8, answer: impl FnOnce(&mut Peer) + Send + 'static) -> String {
    let (port, server) = scripted(move |listener| {
        let mut peer = Peer::accept(&listener);
        match stage {
            0 => {}
            1 => {
                peer.start("PLAIN");
                peer.expect("connection.start-ok");
            }
            2 => {
                peer.welcome(0);
                peer.publisher();
            }
            _ => {
                peer.welcome(0);
                peer.consumer();
            }
        }
        answer(&mut peer);
        // Keeps the connection open until the client has had enough of it.
        let _ = peer.stream.read(&mut [0; 4096]);
    });
    let mut rig = on(port, reliable());
    let client = rig.fleet.connect(&spec(stage == 2)).unwrap();
    if stage > 2 {
        rig.until("connected", |s| !s.connected.is_empty());
        let subscription = Subscription::matching("a");
        rig.fleet.subscribe(client, &subscription).unwrap();
    }
    rig.until("failed", |s| !s.failed.is_empty());
    server.join().unwrap();
    rig.seen.failed.remove(0).1
}

#[test]
fn refusals_are_told_in_the_servers_words_with_advice() {
    let told = |why: String, words: &[&str]| {
        assert!(why.contains("amqp://127.0.0.1:"), "{why}");
        assert!(why.contains("hint: "), "{why}");
        for words in words {
            assert!(why.contains(words), "{words}: {why}");
        }
    };
    let refused = close(403, "ACCESS_REFUSED - Login was refused");
    told(
        failure(1, move |p| {
            p.send(0, Method::ConnectionClose(refused));
            p.expect("connection.close-ok");
        }),
        &[
            "Login was refused",
            "403",
            "no user name",
            "PUBGAUGE_PASSWORD",
        ],
    );
    let stopping = close(320, "CONNECTION_FORCED - broker forced connection closure");
    told(
        failure(2, move |p| p.send(0, Method::ConnectionClose(stopping))),
        &["CONNECTION_FORCED", "320", "was stopped"],
    );
    let missing = ChannelClose {
        reply_code: 404,
        reply_text: b"NOT_FOUND - no exchange 'x' in vhost '/'",
        class_id: 60,
        method_id: 40,
        ..ChannelClose::default()
    };
    told(
        failure(2, move |p| {
            p.send(1, Method::ChannelClose(missing));
            p.expect("channel.close-ok");
        }),
        &[
            "publishing channel",
            "no exchange 'x'",
            "404, about method 60.40",
        ],
    );
    told(
        failure(0, |p| p.start("GSSAPI")),
        &["does not take SASL PLAIN, only GSSAPI"],
    );
    told(
        failure(0, |p| p.raw(b"AMQP\x00\x01\x00\x00")),
        &["another version of AMQP: 0.1.0.0", "AMQP 1.0"],
    );
    told(
        failure(0, |p| p.raw(b"HTTP/1.1 400 Bad Request\r\n")),
        &["broke the protocol"],
    );
    told(
        failure(1, |p| p.stream.shutdown(std::net::Shutdown::Both).unwrap()),
        &[
            "during the login",
            "no user name and no password were given",
            "PUBGAUGE_PASSWORD",
        ],
    );
}

#[test]
fn servers_that_break_the_protocol_are_left() {
    let header = |size: u64| {
        let mut bytes = delivery(1, "a", &[9; 10], 100);
        // The body size stands 8 bytes before the flags, at the end of the header frame.
        let at = bytes.len() - 18 - 3 - 8;
        bytes[at..at + 8].copy_from_slice(&size.to_be_bytes());
        bytes
    };
    let cases: Vec<(u8, Vec<u8>, &str)> = vec![
        (3, header(5), "longer than its header says"),
        (3, header(u64::MAX), "takes up to"),
        (
            3,
            content(2, Properties::default(), b"x", 1),
            "header out of turn",
        ),
        (
            3,
            delivery(1, "a", b"xyz", 3)[..1]
                .iter()
                .copied()
                .chain([0xff; 20])
                .collect(),
            "bytes where",
        ),
        (
            3,
            b"\x03\0\x02\0\0\0\x01x\xce".to_vec(),
            "body frame out of turn",
        ),
        (
            3,
            b"\x03\0\x02\0\0\0\x01x\x00".to_vec(),
            "without its end octet",
        ),
        (
            3,
            b"\x01\0\x02\0\0\0\x04\0\x3c\0\x48\xce".to_vec(),
            "method 60.72",
        ),
        (
            3,
            b"\x01\0\x09\0\0\0\x04\0\x14\0\x29\xce".to_vec(),
            "channel.close-ok out of turn",
        ),
        (
            2,
            {
                let mut bytes = Vec::new();
                confirm(7, false).encode(1, &mut bytes).unwrap();
                bytes
            },
            "message 7, which does not wait",
        ),
        (2, delivery(1, "a", b"x", 9), "nothing is consumed"),
        (
            2,
            {
                let mut bytes = Vec::new();
                Method::TxCommitOk(TxCommitOk::default())
                    .encode(1, &mut bytes)
                    .unwrap();
                bytes
            },
            "tx.commit-ok out of turn",
        ),
    ];
    for (stage, bytes, words) in cases {
        let shown = format!("{bytes:02x?}");
        let why = failure(stage, move |p| p.raw(&bytes));
        assert!(
            why.contains(words) && why.contains("hint"),
            "{shown}: {why}"
        );
    }
}

#[test]
fn unconfirmed_messages_are_forgotten_with_their_connection() {
    let (port, server) = scripted(|listener| {
        for round in 0..2 {
            let mut peer = Peer::accept(&listener);
            peer.welcome(0);
            peer.publisher();
            assert_eq!(peer.published().body.len(), 64);
            if round == 1 {
                // Numbers begin anew on a new channel.
                peer.send(1, confirm(1, false));
                peer.until_closed();
            }
        }
    });
    let mut rig = on(port, reliable());
    let client = rig.client(&spec(true));
    let topic = rig.fleet.advertise(client, "a").unwrap();
    rig.publish(client, topic, 1, 64);
    rig.until("failed", |s| !s.failed.is_empty());
    assert_eq!(rig.fleet.unsettled(), 0);
    rig.fleet.reconnect(client).unwrap();
    rig.until("connected again", |s| s.connected.len() == 2);
    rig.publish(client, topic, 2, 64);
    rig.until("its confirm", |s| !s.acknowledged.is_empty());
    assert_eq!(rig.seen.acknowledged, [(0, 2, Acknowledgement::Taken)]);
    drop(rig);
    server.join().unwrap();
}

#[test]
fn the_window_bounds_what_is_unconfirmed() {
    let (port, server) = scripted(|listener| {
        let mut peer = Peer::accept(&listener);
        peer.welcome(0);
        peer.publisher();
        for _ in 0..3 {
            peer.published();
        }
        peer.send(1, confirm(3, true));
        peer.until_closed();
    });
    let mut rig = on(
        port,
        Settings {
            in_flight: Some(3),
            ..reliable()
        },
    );
    let client = rig.client(&spec(true));
    let topic = rig.fleet.advertise(client, "a").unwrap();
    for n in 0..3 {
        rig.publish(client, topic, n, 64);
    }
    assert_eq!(rig.try_publish(client, topic, 3, 64), Publish::Blocked);
    rig.until("room", |s| {
        s.writable.len() == 1 && s.acknowledged.len() == 3
    });
    assert_eq!(rig.try_publish(client, topic, 3, 64), Publish::Accepted);
    drop(rig);
    server.join().unwrap();
}

/// Bytes that come to a server without the client having polled after publishing, for so many
/// messages of 200 bytes.
fn written_unasked(batching: Option<Batching>, messages: u64) -> usize {
    let (tell, told) = std::sync::mpsc::channel();
    let (port, server) = scripted(move |listener| {
        let mut peer = Peer::accept(&listener);
        peer.welcome(0);
        assert_eq!(peer.expect("channel.open"), 1);
        peer.send(1, Method::ChannelOpenOk(ChannelOpenOk::default()));
        let patience = Some(Duration::from_millis(400));
        peer.stream.set_read_timeout(patience).unwrap();
        let mut came = 0;
        let mut chunk = [0; 65_536];
        while let Ok(n @ 1..) = peer.stream.read(&mut chunk) {
            came += n;
        }
        tell.send(came).unwrap();
        // Messages that waited go out with the next poll.
        peer.stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        while came < messages as usize * 200 {
            came += peer.stream.read(&mut chunk).unwrap();
        }
    });
    let mut rig = on(
        port,
        Settings {
            batching,
            ..Settings::default()
        },
    );
    let client = rig.client(&spec(true));
    let topic = rig.fleet.advertise(client, "a").unwrap();
    for n in 0..messages {
        rig.publish(client, topic, n, 200);
    }
    let came = told.recv().unwrap();
    while !server.is_finished() {
        rig.poll_for(Duration::from_millis(10));
    }
    server.join().unwrap();
    came
}

/// Bytes of one message of 200 bytes on the wire, at least.
const MESSAGE: usize = 200 + 58;

#[test]
fn without_batching_each_message_is_written_at_once() {
    for messages in [1, 7] {
        let came = written_unasked(Some(Batching::Off), messages);
        assert!(came >= messages as usize * MESSAGE, "{came}");
    }
}

#[test]
fn fixed_batching_gathers_so_many_bytes() {
    let fixed = Some(Batching::Bytes(4096));
    assert_eq!(written_unasked(fixed, 10), 0);
    let came = written_unasked(fixed, 30);
    assert!((4096..30 * MESSAGE).contains(&came), "{came}");
}

#[test]
fn adaptive_batching_gathers_until_there_is_nothing_due() {
    assert_eq!(written_unasked(Some(Batching::Adaptive), 30), 0);
    let came = written_unasked(Some(Batching::Adaptive), 100);
    assert!((16_384..100 * (MESSAGE + 40)).contains(&came), "{came}");
}

/// Tests that need a machine that is not busy with other things.
mod real_time {
    use super::*;

    #[test]
    fn a_silent_server_is_given_up_and_a_silent_client_gives_signs() {
        let (port, server) = scripted(|listener| {
            let mut peer = Peer::accept(&listener);
            peer.welcome(1);
            let mut signs = 0;
            // Nothing is published; the server says nothing.
            while let Some((kind, channel, _)) = peer.frame() {
                assert_eq!(
                    (kind, channel),
                    (pubgauge_driver_amqp::codec::FrameKind::Heartbeat, 0)
                );
                signs += 1;
            }
            assert!((2..=8).contains(&signs), "{signs} in two seconds");
        });
        let mut rig = on(port, Settings::default());
        rig.client(&spec(false));
        let begin = clock::monotonic_now();
        rig.until("given up", |s| !s.failed.is_empty());
        let took = clock::monotonic_now() - begin;
        assert!((SECOND..4 * SECOND).contains(&took), "{took} ns");
        assert!(
            rig.seen.failed[0].1.contains("no sign of life"),
            "{:?}",
            rig.seen.failed
        );
        server.join().unwrap();
    }

    #[test]
    fn a_server_that_gives_signs_is_kept() {
        let (port, server) = scripted(|listener| {
            let mut peer = Peer::accept(&listener);
            peer.welcome(1);
            for _ in 0..6 {
                std::thread::sleep(Duration::from_millis(500));
                peer.raw(&HEARTBEAT);
            }
            peer.until_closed();
        });
        let mut rig = on(port, Settings::default());
        rig.client(&spec(false));
        rig.poll_for(Duration::from_millis(3200));
        assert!(rig.seen.failed.is_empty(), "{:?}", rig.seen.failed);
        drop(rig);
        server.join().unwrap();
    }
}
