//! Delays that the throttle plants, judged by its own record and by both ends of the connections, which the tests hold.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use pubgauge_driver::clock::monotonic_now;
use pubgauge_mqtt_codec::{Connect, Packet, Publish, QoS, Version};
use pubgauge_testing::bench::mqtt_bytes;
use pubgauge_testing::throttle::{Direction::*, Passage, Rules, Throttle};
use pubgauge_testing::{free_port, until};

const MS: u64 = 1_000_000;

/// A server that a test plays itself, behind a throttle.
struct Server {
    listener: TcpListener,
    throttle: Throttle,
}

impl Server {
    fn behind(to_server: Rules, to_client: Rules) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        Server {
            listener,
            throttle: Throttle::start(address, to_server, to_client),
        }
    }

    /// The client's end of a connection and the server's, after the CONNECT.
    fn connect(&self, client_id: &str) -> [TcpStream; 2] {
        let mut client = TcpStream::connect(self.throttle.address()).unwrap();
        let (mut served, _) = self.listener.accept().unwrap();
        for end in [&client, &served] {
            // A test that waits in vain fails.
            end.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        }
        let connect = Packet::Connect(Connect {
            version: Version::V311,
            clean_start: true,
            client_id,
            ..Connect::default()
        });
        let bytes = mqtt_bytes(Version::V311, connect);
        client.write_all(&bytes).unwrap();
        assert_eq!(read_exactly(&mut served, bytes.len()), bytes);
        [client, served]
    }
}

fn publish(number: u64, qos: QoS, len: usize) -> Vec<u8> {
    let mut payload = number.to_le_bytes().to_vec();
    payload.resize(len, 0x5a);
    let publish = Publish {
        topic: "a",
        qos,
        packet_id: u16::from(qos != QoS::AtMostOnce),
        payload: &payload,
        ..Publish::default()
    };
    mqtt_bytes(Version::V311, Packet::Publish(publish))
}

/// PUBLISH packets of QoS 0, numbered from 0.
fn numbers(count: u64) -> Vec<u8> {
    let publish = |number| publish(number, QoS::AtMostOnce, 8);
    (0..count).flat_map(publish).collect()
}

fn read_exactly(stream: &mut TcpStream, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

/// Writes from a thread of its own, for the kernel's buffers are short.
fn write_aside(stream: &TcpStream, bytes: &[u8]) {
    let (mut stream, bytes) = (stream.try_clone().unwrap(), bytes.to_vec());
    std::thread::spawn(move || stream.write_all(&bytes).unwrap());
}

/// Asserts that no packet was dropped, and none passed before it was due.
#[track_caller]
fn never_early(record: &[Passage]) {
    assert!(!record.is_empty());
    for of in record {
        let due_ns = of.due_ns.expect("it was not dropped");
        assert!(of.passed_ns.is_none_or(|at| at >= due_ns), "{of:?}");
    }
}

#[test]
fn without_rules_packets_pass_both_ways_to_their_end() {
    let server = Server::behind(Rules::default(), Rules::default());
    let [mut client, mut served] = server.connect("c");
    let bytes: Vec<u8> = (0..50)
        .flat_map(|n| publish(n, QoS::AtLeastOnce, 8 + (n as usize % 7) * 20_000))
        .collect();
    write_aside(&client, &bytes);
    write_aside(&served, &bytes);
    assert!(read_exactly(&mut served, bytes.len()) == bytes);
    assert!(read_exactly(&mut client, bytes.len()) == bytes);
    // One side ends, the other still speaks.
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(served.read(&mut [0; 9]).unwrap(), 0);
    served.write_all(&numbers(1)).unwrap();
    drop(served);
    let mut last = Vec::new();
    client.read_to_end(&mut last).unwrap();
    assert_eq!(last, numbers(1));
    for (direction, packets) in [(ToServer, 50), (ToClient, 51)] {
        let all_passed = || {
            let record = server.throttle.record(direction);
            record.len() == packets && record.iter().all(|of| of.passed_ns.is_some())
        };
        until("all to be recorded", all_passed);
        never_early(&server.throttle.record(direction));
    }
}

/// Whatever the machine does: by the clock of who reads, the n-th byte never comes early; by the record, each packet
/// is due one interval after the one before, or when it came if that is later.
#[test]
fn packets_of_all_clients_pass_at_the_rate() {
    const INTERVAL_NS: u64 = 500_000;
    let rules = Rules {
        per_s: Some(1e9 / INTERVAL_NS as f64),
        ..Rules::default()
    };
    let server = Server::behind(rules, Rules::default());
    let ends = ["first", "second"].map(|id| server.connect(id));
    // Other packets take no time, and keep their place.
    let mut bytes = numbers(300);
    bytes.extend(mqtt_bytes(Version::V311, Packet::PingReq));
    bytes.extend(numbers(300));
    let packet_len = numbers(1).len() as u64;
    let start = monotonic_now();
    for [client, _] in &ends {
        write_aside(client, &bytes);
    }
    for [_, mut served] in ends {
        let mut got = Vec::new();
        while got.len() < bytes.len() {
            let mut chunk = [0; 4096];
            let n = served.read(&mut chunk).unwrap();
            got.extend_from_slice(&chunk[..n]);
            let after = (got.len() as u64 / packet_len).saturating_sub(1) * INTERVAL_NS;
            assert!(monotonic_now() >= start + after, "{} bytes", got.len());
        }
        assert!(got == bytes, "the order is kept");
    }
    let record = server.throttle.record(ToServer);
    never_early(&record);
    assert_eq!(record.len(), 1_200);
    for pair in record.windows(2) {
        let next = pair[0].due_ns.unwrap() + INTERVAL_NS;
        assert_eq!(pair[1].due_ns, Some(next.max(pair[1].entered_ns)));
    }
}

#[test]
fn each_direction_has_its_delay() {
    let delay = |ms| Rules {
        delay: Duration::from_millis(ms),
        ..Rules::default()
    };
    let server = Server::behind(delay(30), delay(60));
    let [mut client, mut served] = server.connect("c");
    let bytes = numbers(3);
    let sent = monotonic_now();
    client.write_all(&bytes).unwrap();
    assert_eq!(read_exactly(&mut served, bytes.len()), bytes);
    assert!(monotonic_now() >= sent + 30 * MS);
    served.write_all(&bytes).unwrap();
    assert_eq!(read_exactly(&mut client, bytes.len()), bytes);
    assert!(monotonic_now() >= sent + 90 * MS);
    for (direction, ms) in [(ToServer, 30), (ToClient, 60)] {
        let record = server.throttle.record(direction);
        never_early(&record);
        for of in record {
            assert_eq!(of.due_ns, Some(of.entered_ns + ms * MS));
        }
    }
}

#[test]
fn a_share_of_qos_0_is_lost_and_known() {
    let rules = Rules {
        loss: 0.1,
        ..Rules::default()
    };
    let server = Server::behind(Rules::default(), rules);
    let [mut client, mut served] = server.connect("c");
    let promised = publish(7, QoS::AtLeastOnce, 8).repeat(500);
    served.write_all(&promised).unwrap();
    assert_eq!(read_exactly(&mut client, promised.len()), promised);
    served.write_all(&numbers(2_000)).unwrap();
    served.shutdown(Shutdown::Write).unwrap();
    let mut came = Vec::new();
    client.read_to_end(&mut came).unwrap();
    let record = server.throttle.record(ToClient);
    let kept = |of: &Passage| of.due_ns.is_some();
    assert!(record[..500].iter().all(kept));
    let expected: Vec<u8> = (0..2_000)
        .filter(|n| kept(&record[500 + *n as usize]))
        .flat_map(|n| publish(n, QoS::AtMostOnce, 8))
        .collect();
    assert!(came == expected);
    // Seven standard deviations; the seed decides, not chance.
    let lost = record.iter().filter(|of| !kept(of)).count();
    assert!((110..290).contains(&lost), "{lost}");
}

#[test]
fn a_sender_is_held_back_where_a_wait_has_a_bound() {
    const INTERVAL_NS: u64 = 100 * MS;
    let rules = Rules {
        per_s: Some(10.0),
        longest_wait: Some(Duration::from_millis(500)),
        ..Rules::default()
    };
    let server = Server::behind(rules, Rules::default());
    let [mut client, _served] = server.connect("c");
    // More than the kernel's buffers take.
    let bytes = numbers(2_000_000);
    client
        .set_write_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let error = client.write_all(&bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    until("two waits", || server.throttle.record(ToServer).len() > 10);
    let record = server.throttle.record(ToServer);
    never_early(&record);
    for of in record {
        assert!(
            of.due_ns.unwrap() <= of.entered_ns + 501 * MS + INTERVAL_NS,
            "{of:?}"
        );
    }
}

#[test]
fn some_clients_are_throttled_or_cut_and_the_others_go_on() {
    let rules = Rules {
        clients: "slow-",
        ..Rules::default()
    };
    let server = Server::behind(rules, Rules::default());
    let [mut slow, mut fast] = ["slow-7", "slow"].map(|id| server.connect(id));
    server
        .throttle
        .change(ToServer, |rules| rules.delay = Duration::from_secs(3_600));
    for ends in [&mut slow, &mut fast] {
        ends[0].write_all(&numbers(5)).unwrap();
    }
    let bytes = numbers(5);
    assert_eq!(read_exactly(&mut fast[1], bytes.len()), bytes);
    until("all", || {
        let record = server.throttle.record(ToServer);
        let passed = record.iter().filter(|of| of.passed_ns.is_some());
        record.len() == 10 && passed.count() == 5
    });
    assert_eq!(server.throttle.cut("slow-"), 1);
    assert_eq!(server.throttle.cut("slow-"), 0, "it has ended");
    for end in &mut slow {
        assert_eq!(end.read(&mut [0; 9]).unwrap(), 0);
    }
    fast[0].write_all(&bytes).unwrap();
    assert_eq!(read_exactly(&mut fast[1], bytes.len()), bytes);
    // Dropped, it leaves nothing open, although packets wait.
    let address = server.throttle.address();
    drop(server.throttle);
    for end in &mut fast {
        assert_eq!(end.read(&mut [0; 9]).unwrap(), 0);
    }
    let refused = TcpStream::connect(address).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_client_whose_server_is_not_there_is_hung_up_on() {
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let throttle = Throttle::start(nobody, Rules::default(), Rules::default());
    let mut client = TcpStream::connect(throttle.address()).unwrap();
    assert_eq!(client.read(&mut [0; 9]).unwrap(), 0);
}

/// Of five messages the third is held back, the fourth changed; what is no longer than a header counts as none.
#[test]
fn a_fault_changes_messages_and_lets_others_overtake() {
    let rules = Rules {
        fault: Some(|message| {
            assert_eq!(message.is_sentinel, message.payload.len() <= 16);
            match message.number {
                3 => message.later = Duration::from_millis(300),
                4 => {
                    (message.qos, message.topic) = (QoS::AtMostOnce, "b".into());
                    message.payload.pop();
                }
                _ => {}
            }
        }),
        ..Rules::default()
    };
    let server = Server::behind(Rules::default(), rules);
    let [mut client, mut served] = server.connect("c");
    let sentinel = publish(0, QoS::AtLeastOnce, 16);
    let message = |number| publish(number, QoS::AtLeastOnce, 17);
    let sent: Vec<u8> = (1..=5).flat_map(message).collect();
    served.write_all(&[&sentinel[..], &sent].concat()).unwrap();
    let changed = Publish {
        topic: "b",
        payload: &[&4_u64.to_le_bytes()[..], &[0x5a; 8]].concat(),
        ..Publish::default()
    };
    let changed = mqtt_bytes(Version::V311, Packet::Publish(changed));
    let [one, two, three, five] = [1, 2, 3, 5].map(message);
    let expected = [sentinel, one, two, changed, five, three].concat();
    assert_eq!(read_exactly(&mut client, expected.len()), expected);
    let record = server.throttle.record(ToClient);
    never_early(&record);
    assert!(record[3].due_ns.unwrap() >= record[3].entered_ns + 300 * MS);
}
