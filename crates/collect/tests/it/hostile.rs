//! What answers as a broker and is none ends one connection, in words, and disturbs nothing else.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};

use pubgauge_collect::Notice;
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
            // What the client says yet is read: else its connection would be reset.
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
