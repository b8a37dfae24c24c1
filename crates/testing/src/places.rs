//! Where clients are connected to, as the kernel reports it.

use pubgauge_driver::{ClientSpec, Clock, Driver, Settings, Target};

use crate::Rig;

/// How many sockets of this host are connected to this port of 127.0.0.1.
fn connections_to(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    // "sl: local-address rem-address state ..."; 01 is ESTABLISHED.
    let there = format!("0100007F:{port:04X}");
    let connected = |line: &&str| {
        let mut fields = line.split_ascii_whitespace().skip(2);
        fields.next() == Some(&*there) && fields.next() == Some("01")
    };
    table.lines().filter(connected).count()
}

/// Clients that only subscribe connect to the second port, all others to the first, and a message
/// published at the one is delivered at the other. No other client may be connected to the two
/// ports.
///
/// # Panics
/// If that is not so.
#[track_caller]
pub fn separate_places(driver: &dyn Driver, target: Target, settings: Settings, ports: [u16; 2]) {
    let mut rig = Rig::open(driver, target, settings);
    let spec = |name: &str, publishes, subscribes| ClientSpec {
        publishes,
        subscribes,
        ..Rig::spec(name)
    };
    let connected = || ports.map(connections_to);
    let subscriber = rig.client(&spec("subscriber", false, true));
    assert_eq!(connected(), [0, 1]);
    let publisher = rig.client(&spec("publisher", true, false));
    assert_eq!(connected(), [1, 1]);
    // A client that does both has one connection, to the first port.
    let both = rig.client(&spec("both", true, true));
    assert_eq!(connected(), [2, 1]);
    let beyond = ClientSpec {
        endpoint: 1,
        ..spec("beyond", true, false)
    };
    let error = rig.fleet.connect(&beyond).unwrap_err();
    assert!(error.to_string().contains("there are 1"), "{error}");

    rig.subscribe(subscriber, "places/of/their/own");
    for (sequence, client) in [publisher, both].into_iter().enumerate() {
        let topic = rig.fleet.advertise(client, "places/of/their/own");
        rig.publish(client, topic.unwrap(), sequence as u64, 64);
        rig.until("a message", |seen| seen.messages.len() > sequence);
    }
    assert_eq!(rig.sequences(subscriber), [0, 1]);
    let until = Clock::Monotonic.now() + 5 * crate::SECOND;
    rig.fleet.close(until);
    assert_eq!(connected(), [0, 0]);
}
