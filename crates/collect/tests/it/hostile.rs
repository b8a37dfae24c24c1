//! Peers that answer as a broker and are none end one connection, in words, and disturb nothing else.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};

use pubgauge_collect::{BrokerStatus, Notice};
use pubgauge_driver::Reliability;

use crate::common::*;

/// A server that answers each connection with these bytes, and ends it or says nothing more.
fn server(bytes: &'static [u8], ends: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else {
                return;
            };
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(bytes);
            // The client's remaining bytes are read: else its connection would be reset.
            if ends {
                let _ = stream.shutdown(Shutdown::Write);
            }
            std::thread::spawn(move || stream.read_to_end(&mut Vec::new()));
        }
    });
    format!("mqtt://{address}")
}

#[test]
fn each_wrong_answer_is_told_and_a_real_broker_beside_it_is_collected() {
    let broker = Broker::start();
    // CONNACK that accepts, under MQTT 5.
    const ACCEPTS: &[u8] = &[0x20, 3, 0, 0, 0];
    let cases: [(&[u8], &str); 9] = [
        (b"", "does this port speak TLS"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "is it an MQTT server"),
        (&[0x15, 3, 3, 0, 2, 2, 70], "speaks TLS"),
        (&[0x20, 3, 0, 0x87, 0], "not authorized"),
        (&[0x30, 4, 0, 1, b'a', 0], "PUBLISH before its CONNACK"),
        (&[0x20, 3, 0, 0, 0, 0xe0, 2, 0x8e, 0], "same name"),
        (&[0x20, 3, 0, 0, 0, 0x30, 5, 0, 1, b'#', 0, 1], "wildcard"),
        (
            &[0x20, 3, 0, 0, 0, 0x90, 4, 0, 1, 0, 0x87],
            "refused every subscription",
        ),
        (ACCEPTS, "closed the connection"),
    ];
    let urls: Vec<String> = cases.iter().map(|(bytes, _)| server(bytes, true)).collect();
    let mut brokers = urls.clone();
    brokers.push(broker.url());
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let collecting = Collecting::begin(config(&data, &brokers, "topics = [\"t/#\"]"));
    collecting.connected(1);
    for (url, (_, words)) in urls.iter().zip(cases) {
        let address = url.trim_start_matches("mqtt://");
        let of =
            |notice: &Notice| matches!(notice, Notice::Failed { broker, .. } if broker == address);
        let told = collecting.told(words, of).to_string();
        assert!(told.contains(words), "{words}: {told}");
    }
    Publisher::on(&broker, Reliability::AtLeastOnce).publish("t/a", 100, 50);
    collecting.stored(100);
    collecting.end();
    all_is_well(&data);
}

#[test]
fn a_broker_that_hangs_within_a_packet_is_missed_while_another_one_delivers() {
    let broker = Broker::start();
    // CONNACK, SUBACK, and the beginning of a PUBLISH.
    let url = server(
        &[0x20, 3, 0, 0, 0, 0x90, 4, 0, 1, 0, 1, 0x30, 9, 0, 1, b't'],
        false,
    );
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let rest = "topics = [\"t/#\"]\n[session]\nkeep-alive = \"1s\"";
    let collecting = Collecting::begin(config(&data, &[url, broker.url()], rest));
    collecting.connected(2);
    let mut publisher = Publisher::on(&broker, Reliability::AtLeastOnce);
    let is_silent =
        |notice: &Notice| matches!(notice, Notice::Failed { why, .. } if why.contains("silent"));
    until("its silence is told", || {
        publisher.publish("t/a", 10, 50);
        collecting.notices().iter().any(is_silent)
    });
    collecting.end();
}

/// A server that accepts a session and then sends the same bytes for as long as they are taken.
fn flood(begins: &'static [u8], again: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let many = again.repeat((64 << 10) / again.len());
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else {
                return;
            };
            let many = many.clone();
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 1024]);
                let _ = stream.write_all(begins);
                while stream.write_all(&many).is_ok() {}
            });
        }
    });
    format!("mqtt://{address}")
}

#[test]
fn brokers_that_flood_keep_no_other_waiting() {
    // CONNACK and SUBACK under MQTT 5.
    const UP: &[u8] = &[0x20, 3, 0, 0, 0, 0x90, 4, 0, 1, 0, 1];
    let floods: [(&[u8], &str); 4] = [
        (&[0xd0, 0], "more control packets"),
        (&[0x62, 2, 0, 1], "more control packets"),
        // Messages of QoS 1, whose acknowledgements it never reads.
        (&[0x32, 7, 0, 1, b'f', 0, 1, 0, b'x'], "reads none of"),
        // Messages of QoS 0 may come.
        (&[0x30, 5, 0, 1, b'f', 0, b'x'], ""),
    ];
    for (again, words) in floods {
        let broker = Broker::start();
        let url = flood(UP, again);
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("data");
        let brokers = [url.clone(), broker.url()];
        let collecting = Collecting::begin(config(&data, &brokers, "topics = [\"t/#\"]"));
        let (address, status) = (broker.address(), collecting.status.clone());
        let beside =
            |holds: fn(&BrokerStatus) -> bool| status.brokers().get(&address).is_some_and(holds);
        until("the broker beside it is connected", || {
            beside(|broker| broker.connected)
        });
        Publisher::on(&broker, Reliability::AtLeastOnce).publish("t/a", 100, 50);
        until("its messages", || beside(|broker| broker.messages == 100));
        if !words.is_empty() {
            let of = |notice: &Notice| matches!(notice, Notice::Failed { why, .. } if why.contains(words));
            collecting.told(words, of);
        }
        assert!(collecting.status.stuck_for() < std::time::Duration::from_secs(10));
        collecting.end();
    }
}

#[test]
fn a_message_that_is_too_large_is_told_and_those_around_it_are_stored() {
    let broker = Broker::start();
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    for (version, lives) in [("5", 1), ("3.1.1", 2)] {
        let rest = format!(
            "name = \"c\"\ntopics = [\"t/#\"]\nmqtt = {version:?}\n[session]\nlargest-message = \"64KiB\""
        );
        let collecting = Collecting::begin(config(&data, &[broker.url()], &rest));
        collecting.connected(1);
        let mut publisher = Publisher::on(&broker, Reliability::AtLeastOnce);
        publisher.publish("t/small", 10, 50);
        publisher.publish("t/large", 3, 20 << 20);
        publisher.publish("t/small", 10, 50);
        publisher.publish("t/fits", 1, 60_000);
        collecting.stored(21);
        let of = |notice: &Notice| matches!(notice, Notice::DeadLetter { topic, .. } if topic == "t/large");
        let told = collecting.told("a large message", of).to_string();
        assert!(told.contains("session.largest-message"), "{told}");
        let summary = collecting.end();
        assert_eq!(
            (summary.dead_letters, summary.messages, summary.acknowledged),
            (3, 21, 21)
        );
        assert_eq!(stored(&data).len(), 21 * lives);
        let letters = data.join("collectors/c").join(pubgauge_collect::dead::FILE);
        let letters = std::fs::read_to_string(letters).unwrap();
        assert_eq!(letters.lines().count(), 3 * lives);
    }
    all_is_well(&data);
}
