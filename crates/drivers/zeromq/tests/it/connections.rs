//! Connections that fail, end, and come back.

use crate::common;

use common::*;
use pubgauge_driver::{Change, ClientId, Driver, Publish, Refusal, Settings, Target};
use pubgauge_driver_zeromq::{ForwarderAddress, ForwarderOptions, ZeromqDriver, forwarder};
use pubgauge_testing::{config, free_port, scripted};
use serde_json::json;

/// Waits for a failure of the subscriber and returns its words.
fn failure(rig: &mut Rig, id: ClientId) -> String {
    let failed = rig.poll_until(60 * SECOND, |s| s.failure(id).is_some());
    assert!(failed, "no failure: {:?}", rig.seen.changes);
    let why = rig.seen.failure(id).unwrap().to_owned();
    rig.seen.changes.clear();
    why
}

/// Two clients publish to each other until both have heard the other.
fn hear_each_other(rig: &mut Rig, a: ClientId, b: ClientId) {
    rig.subscribe(a, "to/a");
    rig.subscribe(b, "to/b");
    let to_a = rig.fleet.advertise(b, "to/a").unwrap();
    let to_b = rig.fleet.advertise(a, "to/b").unwrap();
    for sequence in 0..500 {
        rig.send(a, to_b, 0, sequence, 64);
        rig.send(b, to_a, 1, sequence, 64);
        rig.poll_for(SECOND / 100);
        let heard = |id| !rig.seen.sequences(id).is_empty();
        if heard(a) && heard(b) {
            return;
        }
    }
    panic!("{:?}", rig.seen.seen);
}

#[test]
fn a_publisher_that_is_not_there() {
    let scratch = scratch();
    let driver = ZeromqDriver;
    let mut rig = Rig::open(driver, Settings::default(), direct(&scratch), 0);
    for address in [
        format!("tcp://127.0.0.1:{}", free_port()),
        format!("ipc://{}/none", scratch.path().display()),
    ] {
        let id = rig
            .fleet
            .connect(&subscriber("s", std::slice::from_ref(&address)))
            .unwrap();
        let why = failure(&mut rig, id);
        assert!(
            why.contains(&address) && why.contains("nobody listens"),
            "{why}"
        );
    }
}

#[test]
fn a_listener_that_says_nothing_is_given_up_in_time() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", silent.local_addr().unwrap());
    let scratch = scratch();
    let settings = settings(json!({"native": {"zeromq": {"connect-timeout-ms": 200}}}));
    let mut rig = Rig::open(ZeromqDriver, settings, direct(&scratch), 0);
    let id = rig
        .fleet
        .connect(&subscriber("s", std::slice::from_ref(&address)))
        .unwrap();
    let why = failure(&mut rig, id);
    assert!(why.contains(&address) && why.contains("200 ms"), "{why}");
}

#[test]
fn a_listener_that_speaks_something_else() {
    let (port, _) = scripted(|other| {
        use std::io::Write;
        while let Ok((mut stream, _)) = other.accept() {
            let _ =
                stream.write_all(b"SSH-2.0-OpenSSH_9.9 this is no ZMTP greeting at all\r\n\r\n");
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
    });
    let address = format!("tcp://127.0.0.1:{port}");
    let scratch = scratch();
    let settings = settings(json!({"native": {"zeromq": {"handshake-ms": 300}}}));
    let mut rig = Rig::open(ZeromqDriver, settings, direct(&scratch), 0);
    let id = rig
        .fleet
        .connect(&subscriber("s", std::slice::from_ref(&address)))
        .unwrap();
    let why = failure(&mut rig, id);
    assert!(why.contains(&address), "{why}");
}

#[test]
fn an_address_that_is_none() {
    let scratch = scratch();
    let driver = ZeromqDriver;
    let mut rig = Rig::open(driver, Settings::default(), direct(&scratch), 0);
    let wrong = rig
        .fleet
        .connect(&subscriber("s", &["tcp:/nowhere".into()]))
        .unwrap_err();
    assert!(wrong.to_string().contains("tcp:/nowhere"), "{wrong}");
    // The fleet goes on, with the same number for the next client.
    let (id, _) = rig.connect(&publisher("p"));
    assert_eq!(id.0, 0);
}

/// A peer below ZMTP 3, or whatever else connects, neither counts as a subscriber nor is given messages.
#[test]
fn a_stranger_is_refused() {
    let scratch = scratch();
    let settings = settings(json!({"transport": "tcp"}));
    let mut pair = Pair::open(ZeromqDriver, &settings, &direct(&scratch));
    let address = pair.address.clone().expect("the address of the publisher");
    let port = address.strip_prefix("tcp://").expect("TCP");
    let mut stranger = std::net::TcpStream::connect(port).unwrap();
    // ZMTP 1.0: an empty identity. A PUB socket of libzmq takes such a peer to want everything.
    std::io::Write::write_all(&mut stranger, b"\x01\x00").unwrap();
    stranger
        .set_read_timeout(Some(std::time::Duration::from_secs(60)))
        .unwrap();
    let mut given = Vec::new();
    let ended = std::io::Read::read_to_end(&mut stranger, &mut given);
    let reset = |e: &std::io::Error| e.kind() == std::io::ErrorKind::ConnectionReset;
    assert!(
        ended.is_ok() || ended.is_err_and(|e| reset(&e)),
        "still there"
    );
    assert!(given.len() <= 10, "more than a greeting: {given:?}");
    pair.prove_delivery();
}

/// The publisher ends, is found gone, and comes back at the same address; the subscriber
/// connects again and hears it.
fn restart(settings: Settings) {
    let scratch = scratch();
    let mut pair = Pair::open(ZeromqDriver, &settings, &direct(&scratch));
    let (from, to) = (pair.from, pair.to);
    for round in 0..3u32 {
        if round == 2 {
            pair.publishing.fleet.disconnect(from);
            let closed = |c: &Change| *c == Change::Closed;
            pair.publishing.await_change(from, closed);
        } else {
            pair.publishing.fleet.abort(from);
        }
        let refused = pair.publishing.publish(from, pair.topic, 1, 0, 64);
        assert_eq!(refused, Publish::Refused(Refusal::NotConnected));
        let why = failure(&mut pair.subscribing, to);
        assert!(why.contains("was lost"), "{why}");

        // While the publisher is away, connecting again fails again.
        pair.subscribing.fleet.reconnect(to).unwrap();
        let why = failure(&mut pair.subscribing, to);
        assert!(why.contains("nobody listens"), "{why}");

        pair.publishing.fleet.reconnect(from).unwrap();
        assert_eq!(pair.publishing.connected(from), pair.address);
        pair.subscribing.fleet.reconnect(to).unwrap();
        pair.subscribing.connected(to);
        pair.subscribing.subscribe(to, "a/b");
        pair.prove_delivery();
        pair.publishing.send(from, pair.topic, round, 7, 64);
        assert!(
            pair.subscribing
                .poll_until(60 * SECOND, |s| !s.seen.is_empty())
        );
        assert_eq!(pair.subscribing.seen.sequences(to), [7]);
        pair.subscribing.seen.seen.clear();
    }
}

#[test]
fn a_publisher_restarts_over_tcp() {
    restart(Settings::default());
}

#[test]
fn a_publisher_restarts_over_ipc() {
    restart(settings(json!({"transport": "ipc"})));
}

#[test]
fn what_a_vanished_publisher_had_sent_is_delivered_before_the_failure() {
    let scratch = scratch();
    let mut pair = Pair::open(ZeromqDriver, &Settings::default(), &direct(&scratch));
    for sequence in 0..900 {
        pair.publishing.send(pair.from, pair.topic, 1, sequence, 64);
    }
    pair.publishing.close(); // In order: lingers until all is sent.
    std::thread::sleep(std::time::Duration::from_millis(200));
    failure(&mut pair.subscribing, pair.to);
    assert!(
        pair.subscribing
            .seen
            .sequences(pair.to)
            .into_iter()
            .eq(0..900)
    );
}

#[test]
fn losing_one_of_two_publishers_keeps_the_other() {
    let scratch = scratch();
    let driver = ZeromqDriver;
    let target = direct(&scratch);
    let mut publishing = Rig::open(driver, Settings::default(), target.clone(), 0);
    let (first, first_address) = publishing.connect(&publisher("p0"));
    let (second, second_address) = publishing.connect(&publisher("p1"));
    let topics = [first, second].map(|id| {
        publishing
            .fleet
            .advertise(id, &format!("t/{}", id.0))
            .unwrap()
    });
    let mut subscribing = Rig::open(driver, Settings::default(), target, 1);
    let peers = [first_address.unwrap(), second_address.unwrap()];
    let (to, _) = subscribing.connect(&subscriber("s", &peers));
    subscribing.subscribe(to, "t/#");
    let hear = |publishing: &mut Rig, subscribing: &mut Rig, wanted: &[u32]| {
        subscribing.seen.seen.clear();
        for sequence in 0.. {
            assert!(sequence < 500, "not heard: {wanted:?}");
            for &n in wanted {
                let id = [first, second][n as usize];
                publishing.send(id, topics[n as usize], n, sequence, 64);
            }
            publishing.poll_for(0);
            subscribing.poll_for(SECOND / 100);
            let heard = |n: &u32| subscribing.seen.seen.iter().any(|s| s.stream == *n);
            if wanted.iter().all(heard) {
                return;
            }
        }
    };
    hear(&mut publishing, &mut subscribing, &[0, 1]);
    publishing.fleet.abort(first);
    let why = failure(&mut subscribing, to);
    assert!(why.contains(&peers[0]), "{why}");
    hear(&mut publishing, &mut subscribing, &[1]);
    publishing.fleet.reconnect(first).unwrap();
    publishing.connected(first);
    subscribing.fleet.reconnect(to).unwrap();
    let kept = subscribing.poll_until(60 * SECOND, |s| {
        s.has(to, |c| {
            matches!(
                c,
                Change::Connected {
                    session_present: true,
                    ..
                }
            )
        })
    });
    assert!(
        kept,
        "the socket, with its subscriptions, is kept: {:?}",
        subscribing.seen.changes
    );
    hear(&mut publishing, &mut subscribing, &[0, 1]);
}

#[test]
fn a_forwarder_ends_and_comes_back() {
    let driver = ZeromqDriver;
    let settings = Settings::default();
    let running = tcp_forwarder(&settings);
    let address = running.address.clone();
    let mut pair = Pair::open(driver, &settings, &through(&running));
    let (from, to) = (pair.from, pair.to);
    running.stop();
    assert!(failure(&mut pair.publishing, from).contains("forwarder"));
    assert!(failure(&mut pair.subscribing, to).contains("forwarder"));
    let refused = pair.publishing.publish(from, pair.topic, 1, 0, 64);
    assert_eq!(refused, Publish::Refused(Refusal::NotConnected));
    let _again = forwarder_at(address, &settings);
    pair.publishing.fleet.reconnect(from).unwrap();
    pair.publishing.connected(from);
    pair.subscribing.fleet.reconnect(to).unwrap();
    pair.subscribing.connected(to);
    pair.subscribing.subscribe(to, "a/b");
    pair.prove_delivery();
}

#[test]
fn a_forwarder_says_what_stands_against_it() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let address = ForwarderAddress::Tcp {
        host: "127.0.0.1".into(),
        xsub_port: 0,
        xpub_port: port,
    };
    let options = ForwarderOptions::new(address.clone(), &Settings::default()).unwrap();
    let error = forwarder::run(&options, |_| panic!("not ready"), &false.into()).unwrap_err();
    assert!(error.to_string().contains(&port.to_string()), "{error}");
    let ipc = ForwarderOptions::new(address, &settings(json!({"transport": "ipc"})));
    assert!(ipc.unwrap_err().to_string().contains("transport"));
}

#[test]
fn a_client_that_publishes_and_subscribes_through_a_forwarder() {
    let settings = Settings::default();
    let running = tcp_forwarder(&settings);
    let driver = ZeromqDriver;
    let mut rig = Rig::open(driver, settings, through(&running), 0);
    let both = pubgauge_driver::ClientSpec {
        publishes: true,
        ..subscriber("both", &[])
    };
    let (a, _) = rig.connect(&both);
    let (b, _) = rig.connect(&both);
    hear_each_other(&mut rig, a, b);
}

#[test]
fn many_clients_in_one_fleet() {
    const CLIENTS: u32 = 60;
    let settings = Settings::default();
    let running = tcp_forwarder(&settings);
    let driver = ZeromqDriver;
    let mut publishing = Rig::open(driver, settings.clone(), through(&running), 0);
    let mut subscribing = Rig::open(driver, settings, through(&running), 1);
    let (to, _) = subscribing.connect(&subscriber("s", &[]));
    subscribing.subscribe(to, "#");
    let ids: Vec<_> = (0..CLIENTS)
        .map(|n| {
            publishing
                .fleet
                .connect(&publisher(&format!("p{n}")))
                .unwrap()
        })
        .collect();
    let connected = |s: &Recorder| {
        let up = s
            .changes
            .iter()
            .filter(|(_, c)| matches!(c, Change::Connected { .. }));
        up.count() == CLIENTS as usize
    };
    assert!(publishing.poll_until(60 * SECOND, connected));
    let topics: Vec<_> = ids
        .iter()
        .map(|id| {
            publishing
                .fleet
                .advertise(*id, &format!("site/{}", id.0))
                .unwrap()
        })
        .collect();
    let heard = |s: &Recorder| {
        let mut streams: Vec<u32> = s.seen.iter().map(|s| s.stream).collect();
        streams.sort_unstable();
        streams.dedup();
        streams.len() == CLIENTS as usize
    };
    for sequence in 0..200 {
        for (n, id) in ids.iter().enumerate() {
            publishing.send(*id, topics[n], n as u32, sequence, 32);
        }
        publishing.poll_for(0);
        if subscribing.poll_until(SECOND / 50, heard) {
            return;
        }
    }
    panic!("not all are heard");
}

#[test]
fn what_zeromq_does_not_have_is_refused_where_it_is_asked_for() {
    let scratch = scratch();
    let driver = ZeromqDriver;
    let mut rig = Rig::open(driver, Settings::default(), direct(&scratch), 0);
    let (id, _) = rig.connect(&subscriber("s", &[]));
    let group = Subscription::matching("a").of_group("g");
    let refused = rig.fleet.subscribe(id, &group).unwrap_err();
    assert!(refused.to_string().contains("group"), "{refused}");
    let plus = rig
        .fleet
        .subscribe(id, &Subscription::matching("a/+"))
        .unwrap_err();
    assert!(plus.to_string().contains("prefixes"), "{plus}");
    let will = pubgauge_driver::ClientSpec {
        will: Some(pubgauge_driver::Will {
            topic: "t".into(),
            payload: Vec::new(),
            retain: false,
            qos: None,
            delay_s: 0,
        }),
        ..publisher("p")
    };
    assert!(
        rig.fleet
            .connect(&will)
            .unwrap_err()
            .to_string()
            .contains("will")
    );
}

#[test]
fn endpoints_must_be_forwarders() {
    let other = Target::single("mqtt://127.0.0.1:1883");
    let opened = ZeromqDriver.open(config(other, Settings::default()));
    let error = opened.err().expect("refused").to_string();
    assert!(error.contains("mqtt://127.0.0.1:1883"), "{error}");
}

#[test]
fn closing_is_bounded_even_if_nobody_reads() {
    let scratch = scratch();
    let mut pair = Pair::open(
        ZeromqDriver,
        &settings(json!({"queue-limit": 0})),
        &direct(&scratch),
    );
    // Far more than the socket buffers hold, for a subscriber whose fleet is never polled, over
    // a queue of its own that is full.
    for sequence in 0..200 {
        pair.publishing
            .send(pair.from, pair.topic, 1, sequence, 1 << 20);
    }
    let start = std::time::Instant::now();
    let now = pubgauge_driver::Clock::Monotonic.now();
    pair.publishing.fleet.close(now + SECOND / 2);
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}

#[test]
fn a_lost_publisher_that_is_named_again_is_heard_again() {
    let scratch = scratch();
    let mut pair = Pair::open(ZeromqDriver, &Settings::default(), &direct(&scratch));
    let address = pair.address.clone().unwrap();
    pair.publishing.fleet.abort(pair.from);
    pair.publishing.poll_for(SECOND / 20);
    pair.publishing.fleet.reconnect(pair.from).unwrap();
    pair.publishing.connected(pair.from);
    pair.subscribing.fleet.add_peer(pair.to, &address).unwrap();
    pair.prove_delivery();
    assert_eq!(pair.subscribing.seen.failure(pair.to), None);
    // Naming it once more changes nothing.
    pair.subscribing.fleet.add_peer(pair.to, &address).unwrap();
    pair.prove_delivery();
}

#[test]
fn two_clients_that_publish_and_subscribe_hear_each_other_directly() {
    let scratch = scratch();
    let mut rig = Rig::open(ZeromqDriver, Settings::default(), direct(&scratch), 0);
    let both = pubgauge_driver::ClientSpec {
        publishes: true,
        ..subscriber("both", &[])
    };
    let (a, a_address) = rig.connect(&both);
    let (b, b_address) = rig.connect(&both);
    rig.fleet.add_peer(a, &b_address.unwrap()).unwrap();
    rig.fleet.add_peer(b, &a_address.unwrap()).unwrap();
    hear_each_other(&mut rig, a, b);
}

/// libzmq reports a connection's end from the thread that moves all bytes of a fleet, and that
/// thread waits for as long as nobody takes the report. A client that is dropped just when its
/// publisher goes must not leave it waiting: nobody in the fleet would hear anything any more.
#[test]
fn clients_dropped_along_with_their_publisher_leave_the_fleet_working() {
    let scratch = scratch();
    let open = |worker| Rig::open(ZeromqDriver, Settings::default(), direct(&scratch), worker);
    let (mut publishing, mut subscribing) = (open(0), open(1));
    for round in 0..10 {
        let (from, address) = publishing.connect(&publisher("p"));
        let spec = subscriber("s", &[address.expect("direct")]);
        let ids: Vec<_> = (0..40).map(|_| subscribing.connect(&spec).0).collect();
        for id in ids {
            subscribing.fleet.abort(id);
        }
        publishing.fleet.abort(from);
        let (_, address) = publishing.connect(&publisher("next"));
        let (to, _) = subscribing.connect(&subscriber("next", &[address.expect("direct")]));
        assert_eq!(subscribing.seen.failure(to), None, "round {round}");
    }
}
