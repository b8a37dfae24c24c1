//! The fleet over TCP under a small protocol: units of a length (4 bytes) and as many bytes. A client
//! says `hello`, the server `welcome`; whatever else comes is a message.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use pubgauge_driver::{
    Change, ClientId, ClientSpec, Delivery, DriverError, Encryption, Events, Fleet, FleetConfig,
    Payload, Publish, Refusal, Scheme, Settings, Subscription, Target, TopicId,
};
use pubgauge_net::endpoint::{Addressing, Endpoint};
use pubgauge_net::fleet::{Broken, ClientLink, Protocol, State, Taken, TcpFleet, Tuning};
use pubgauge_net::lookups::LookUp;
use pubgauge_testing::{Rig, config, head};

const ADDRESSING: Addressing = Addressing {
    name: "units",
    schemes: &[Scheme {
        name: "units",
        also: &[],
        encryption: Encryption::None,
        usual_port: None,
        path: None,
        websocket: None,
    }],
};

#[derive(Default)]
struct Units {
    /// It tells the length of a unit that has begun.
    knows_lengths: bool,
    keep_alive_s: u16,
    /// How connections ended: whether in order.
    ends: Vec<bool>,
}

fn unit(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_le_bytes(), bytes].concat()
}

fn len_of(bytes: &[u8]) -> Option<usize> {
    let len = bytes.first_chunk::<4>()?;
    Some(4 + u32::from_le_bytes(*len) as usize)
}

impl Protocol for Units {
    type Client = ();
    const TURNED_AWAY: [&'static str; 2] = ["before its welcome", "units"];

    fn client(&mut self, _: &ClientSpec) -> Result<(), DriverError> {
        Ok(())
    }

    fn greet(&mut self, link: &mut ClientLink<'_, ()>) -> Result<(), Broken> {
        link.out().bytes.extend(unit(b"hello"));
        Ok(())
    }

    fn receive(
        &mut self,
        link: &mut ClientLink<'_, ()>,
        bytes: &[u8],
        events: &mut dyn Events,
    ) -> Result<usize, Broken> {
        let mut at = 0;
        while let Some(len) = len_of(&bytes[at..]).filter(|len| at + len <= bytes.len()) {
            let payload = &bytes[at + 4..at + len];
            at += len;
            match (link.client.state, payload) {
                (State::Greeting, b"welcome") => {
                    link.connected();
                    link.keep_alive(self.keep_alive_s);
                    let (session_present, address) = (false, None);
                    let connected = Change::Connected {
                        session_present,
                        address,
                    };
                    link.report(events, connected);
                }
                (State::Connected, b"nonsense") => {
                    return Err(Broken {
                        code: Some(b'!'),
                        ..link.protocol_broken("nonsense", "none")
                    });
                }
                (State::Connected, payload) => {
                    let delivery = Delivery {
                        payload,
                        topic: None,
                        retained: false,
                        redelivered: false,
                    };
                    link.deliver(events, delivery);
                    if link.client.is_busy() {
                        break;
                    }
                }
                _ => return Err(link.broken("out of turn")),
            }
        }
        Ok(at)
    }

    fn unit_len(&self, beginning: &[u8]) -> Option<usize> {
        len_of(beginning).filter(|_| self.knows_lengths)
    }

    fn subscribe(
        &mut self,
        _: &mut ClientLink<'_, ()>,
        _: &Subscription,
    ) -> Result<(), DriverError> {
        Err(DriverError::new("everybody gets everything"))
    }

    fn advertise(&mut self, _: &mut ClientLink<'_, ()>, _: &str) -> Result<TopicId, DriverError> {
        Ok(TopicId(0))
    }

    fn publish(
        &mut self,
        link: &mut ClientLink<'_, ()>,
        _: TopicId,
        payload: Payload<'_>,
        _: u64,
    ) -> Taken {
        let out = link.out();
        out.bytes.extend((payload.len() as u32).to_le_bytes());
        payload.append_to(&mut out.bytes);
        out.messages += 1;
        Taken::Accepted
    }

    fn ping(&mut self, link: &mut ClientLink<'_, ()>) {
        link.out().bytes.extend(unit(b"ping"));
    }

    fn goodbye(&mut self, link: &mut ClientLink<'_, ()>) {
        link.out().bytes.extend(unit(b"bye"));
    }

    fn failing(&mut self, link: &mut ClientLink<'_, ()>, code: Option<u8>) -> bool {
        let words = code.map(|code| unit(&[code]));
        link.out().bytes.extend(words.into_iter().flatten());
        code.is_some()
    }

    fn dropped(&mut self, _: &mut ClientLink<'_, ()>, in_order: bool) {
        self.ends.push(in_order);
    }
}

/// A fleet, and the server's end of its one client, which is connected.
fn connected(protocol: Units) -> (TcpFleet<Units>, Rig, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (mut fleet, mut rig) = fleet_at(&listener, protocol);
    fleet.connect(&Rig::spec("c")).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    server.write_all(&unit(b"welcome")).unwrap();
    until(&mut fleet, &mut rig, |b| !b.seen.connected.is_empty());
    expect(&mut server, b"hello");
    (fleet, rig, server)
}

fn fleet_at(listener: &TcpListener, protocol: Units) -> (TcpFleet<Units>, Rig) {
    fleet_of(&listener.local_addr().unwrap().to_string(), protocol)
}

fn fleet_of(place: &str, protocol: Units) -> (TcpFleet<Units>, Rig) {
    let endpoint = Endpoint::parse(&format!("units://{place}"), &ADDRESSING).unwrap();
    let open = |protocol| {
        let config: FleetConfig = config(Target::default(), Settings::default());
        let endpoints = vec![endpoint.clone(), endpoint.clone()];
        TcpFleet::open(config, endpoints, Tuning::default(), protocol).unwrap()
    };
    // The note-book comes with a fleet, which has no clients here.
    let rig = Rig {
        fleet: Box::new(open(Units::default())),
        seen: Default::default(),
    };
    (open(protocol), rig)
}

#[track_caller]
fn until(fleet: &mut TcpFleet<Units>, rig: &mut Rig, holds: impl Fn(&Rig) -> bool) {
    let end = fleet.now() + 20_000_000_000;
    while !holds(rig) {
        assert!(fleet.now() < end, "waited in vain: {:?}", rig.seen.failed);
        fleet.poll(fleet.now() + 20_000_000, &mut rig.seen).unwrap();
    }
}

#[track_caller]
fn expect(server: &mut TcpStream, words: &[u8]) {
    let mut read = vec![0; words.len() + 4];
    server.read_exact(&mut read).unwrap();
    assert_eq!(read, unit(words));
}

const C: ClientId = ClientId(0);

#[test]
fn units_come_whole_however_they_are_cut_and_however_long() {
    for knows_lengths in [true, false] {
        let (mut fleet, mut rig, mut server) = connected(Units {
            knows_lengths,
            ..Units::default()
        });
        let units: Vec<Vec<u8>> = [0, 1, 70_000, 130_000, 3 << 20, 5, 200_000, 1]
            .iter()
            .map(|len| vec![*len as u8; *len])
            .collect();
        let bytes: Vec<u8> = units.iter().flat_map(|bytes| unit(bytes)).collect();
        let writer = thread::spawn(move || {
            for piece in bytes.chunks(99_991) {
                server.write_all(piece).unwrap();
                thread::sleep(Duration::from_millis(1));
            }
            server
        });
        until(&mut fleet, &mut rig, |b| {
            b.seen.messages.len() == units.len()
        });
        for (message, unit) in rig.seen.messages.iter().zip(&units) {
            assert!(message.payload == *unit, "{} bytes", unit.len());
        }
        let all: usize = units.iter().map(|unit| unit.len() + 4).sum();
        assert_eq!(fleet.wire_bytes().received, all as u64 + 11);
        drop(writer.join().unwrap());
    }
}

#[test]
fn a_publisher_is_held_back_until_the_server_reads() {
    let (mut fleet, mut rig, mut server) = connected(Units::default());
    let body = vec![7; 10_000];
    let payload = Payload {
        head: &head(1),
        body: &body,
    };
    let mut accepted = 0;
    while fleet.publish(C, TopicId(0), payload, 0) == Publish::Accepted {
        accepted += 1;
        assert!(accepted < 10_000, "nothing holds it back");
    }
    assert!(fleet.unsettled() > 0);
    let reader = thread::spawn(move || {
        let mut read = vec![0; accepted * (10_016 + 4)];
        server.read_exact(&mut read).unwrap();
        server
    });
    until(&mut fleet, &mut rig, |b| !b.seen.writable.is_empty());
    while fleet.unsettled() > 0 {
        let now = fleet.now();
        fleet.poll(now + 10_000_000, &mut rig.seen).unwrap();
    }
    assert_eq!(rig.seen.writable, [0]);
    drop(reader.join().unwrap());
    // Messages lost with the connection are settled by that.
    until(&mut fleet, &mut rig, |b| !b.seen.failed.is_empty());
    assert_eq!(fleet.unsettled(), 0);
    let refused = fleet.publish(C, TopicId(0), payload, 0);
    assert_eq!(refused, Publish::Refused(Refusal::NotConnected));
}

#[test]
fn a_server_that_gives_no_sign_of_life_is_given_up() {
    let (mut fleet, mut rig, mut server) = connected(Units {
        keep_alive_s: 1,
        ..Units::default()
    });
    let pinged = |fleet: &mut TcpFleet<Units>, rig: &mut Rig, server: &mut TcpStream| {
        let sent = fleet.wire_bytes().sent;
        let end = fleet.now() + 20_000_000_000;
        while fleet.wire_bytes().sent == sent {
            assert!(fleet.now() < end, "no ping");
            fleet.poll(fleet.now() + 20_000_000, &mut rig.seen).unwrap();
        }
        expect(server, b"ping");
    };
    pinged(&mut fleet, &mut rig, &mut server);
    // Any byte is a sign of life.
    server.write_all(&unit(b"x")).unwrap();
    pinged(&mut fleet, &mut rig, &mut server);
    assert!(rig.seen.failed.is_empty());
    until(&mut fleet, &mut rig, |b| !b.seen.failed.is_empty());
    let why = &rig.seen.failed[0].1;
    assert!(
        why.contains("no sign of life") && why.contains("after a ping"),
        "{why}"
    );
    assert_eq!(fleet.protocol.ends, [false]);
}

/// Bytes that wait are no question. Before, a server that stood still and then went on was given up without one.
#[test]
fn a_server_that_stood_still_is_asked() {
    let (mut fleet, mut rig, mut server) = connected(Units {
        keep_alive_s: 2,
        ..Units::default()
    });
    let body = vec![7; 10_000];
    let payload = Payload {
        head: &head(1),
        body: &body,
    };
    while fleet.publish(C, TopicId(0), payload, 0) == Publish::Accepted {}
    // Longer than three quarters of the interval.
    let end = fleet.now() + 1_700_000_000;
    while fleet.now() < end {
        fleet.poll(fleet.now() + 20_000_000, &mut rig.seen).unwrap();
    }
    let reader = thread::spawn(move || {
        let mut len = [0; 4];
        while server.read_exact(&mut len).is_ok() {
            let mut words = vec![0; u32::from_le_bytes(len) as usize];
            if server.read_exact(&mut words).is_err() {
                return false;
            }
            if words == b"ping" {
                return true;
            }
        }
        false
    });
    while !reader.is_finished() {
        fleet.poll(fleet.now() + 20_000_000, &mut rig.seen).unwrap();
    }
    assert!(reader.join().unwrap(), "{:?}", rig.seen.failed);
}

#[test]
fn who_disconnects_ends_in_order_once_the_server_has_ended_too() {
    let (mut fleet, mut rig, mut server) = connected(Units::default());
    fleet.disconnect(C);
    let now = fleet.now();
    fleet.poll(now + 100_000_000, &mut rig.seen).unwrap();
    expect(&mut server, b"bye");
    assert_eq!(
        server.read(&mut [0; 1]).unwrap(),
        0,
        "the writing side is shut"
    );
    assert!(rig.seen.closed.is_empty());
    drop(server);
    until(&mut fleet, &mut rig, |b| !b.seen.closed.is_empty());
    assert_eq!(fleet.protocol.ends, [true]);
    assert!(rig.seen.failed.is_empty());
}

#[test]
fn a_server_is_told_that_it_broke_the_protocol() {
    let (mut fleet, mut rig, mut server) = connected(Units::default());
    server.write_all(&unit(b"nonsense")).unwrap();
    until(&mut fleet, &mut rig, |b| !b.seen.failed.is_empty());
    assert!(rig.seen.failed[0].1.contains("broke the protocol"));
    expect(&mut server, b"!");
    assert_eq!(server.read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(fleet.protocol.ends, [false]);
}

#[test]
fn who_is_turned_away_is_told_and_may_come_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (mut fleet, mut rig) = fleet_at(&listener, Units::default());
    fleet.connect(&Rig::spec("c")).unwrap();
    drop(listener.accept().unwrap());
    until(&mut fleet, &mut rig, |b| !b.seen.failed.is_empty());
    assert!(rig.seen.failed[0].1.contains("before its welcome"));
    fleet.reconnect(C).unwrap();
    assert!(fleet.reconnect(C).is_err(), "it is connecting");
    let (mut server, _) = listener.accept().unwrap();
    server.write_all(&unit(b"welcome")).unwrap();
    until(&mut fleet, &mut rig, |b| !b.seen.connected.is_empty());
    assert_eq!(fleet.clients[0].epoch, 2);
}

/// A name service that gives the addresses of a name in turn, another first for each question, and of the `missing`
/// question none.
fn in_turn(addresses: Vec<SocketAddr>, missing: usize) -> LookUp {
    let asked = AtomicUsize::new(0);
    Arc::new(move |_| {
        let number = asked.fetch_add(1, Relaxed);
        if number == missing {
            return Err(DriverError::new("the host was not found"));
        }
        let mut found = addresses.clone();
        found.rotate_left(number % addresses.len());
        Ok(found)
    })
}

#[test]
fn each_connection_takes_the_first_address_of_a_look_up_of_its_own() {
    let servers = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let addresses = servers.each_ref().map(|s| s.local_addr().unwrap()).to_vec();
    let (mut fleet, mut rig) = fleet_of("localhost:1", Units::default());
    fleet.look_up_each(&in_turn(addresses, 5)).unwrap();
    for client in 0..4 {
        fleet.connect(&Rig::spec(&format!("c{client}"))).unwrap();
    }
    let accept = |server: &TcpListener| {
        let (mut connection, _) = server.accept().unwrap();
        connection.write_all(&unit(b"welcome")).unwrap();
        connection
    };
    let of_first = thread::scope(|scope| {
        let accepted = servers
            .each_ref()
            .map(|server| scope.spawn(move || [accept(server), accept(server)]));
        until(&mut fleet, &mut rig, |b| b.seen.connected.len() == 4);
        accepted.map(|thread| thread.join().unwrap())
    });

    // Question 4 is one of the first server again, 5 has no answer, 6 is one of the first.
    drop(of_first);
    until(&mut fleet, &mut rig, |b| b.seen.failed.len() == 4);
    fleet.reconnect(C).unwrap();
    let again = thread::scope(|scope| {
        let accepted = scope.spawn(|| accept(&servers[0]));
        until(&mut fleet, &mut rig, |b| b.seen.connected.len() == 5);
        accepted.join().unwrap()
    });
    drop(again);
    until(&mut fleet, &mut rig, |b| b.seen.failed.len() == 5);
    fleet.reconnect(C).unwrap();
    until(&mut fleet, &mut rig, |b| b.seen.failed.len() == 6);
    assert!(rig.seen.failed[5].1.contains("the host was not found"));
    assert_eq!(fleet.clients[0].state, State::Down);
    fleet.reconnect(C).unwrap();
    thread::scope(|scope| {
        let accepted = scope.spawn(|| accept(&servers[0]));
        until(&mut fleet, &mut rig, |b| b.seen.connected.len() == 6);
        accepted.join().unwrap()
    });
}

#[test]
fn a_look_up_that_takes_long_holds_nobody_else_and_may_be_given_up() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let (mut fleet, mut rig) = fleet_of("localhost:1", Units::default());
    let asked = AtomicUsize::new(0);
    let (answer, answers) = std::sync::mpsc::channel::<()>();
    let answers = std::sync::Mutex::new(answers);
    let slow_first: LookUp = Arc::new(move |_| {
        if asked.fetch_add(1, Relaxed) == 0 {
            let _ = answers.lock().unwrap().recv();
        }
        Ok(vec![address])
    });
    fleet.look_up_each(&slow_first).unwrap();
    fleet.connect(&Rig::spec("slow")).unwrap();
    fleet.connect(&Rig::spec("quick")).unwrap();
    let (mut connection, _) = thread::scope(|scope| {
        let accepted = scope.spawn(|| server.accept().unwrap());
        while !accepted.is_finished() {
            fleet.poll(fleet.now() + 1_000_000, &mut rig.seen).unwrap();
        }
        accepted.join().unwrap()
    });
    connection.write_all(&unit(b"welcome")).unwrap();
    until(&mut fleet, &mut rig, |b| !b.seen.connected.is_empty());
    let states = |fleet: &TcpFleet<Units>| [0, 1].map(|client| fleet.clients[client].state);
    // Either client may have asked first.
    let mut before = states(&fleet);
    before.sort_by_key(|state| *state == State::Connected);
    assert_eq!(before, [State::Connecting, State::Connected]);

    let slow = states(&fleet)
        .iter()
        .position(|state| *state == State::Connecting);
    fleet.disconnect(ClientId(slow.unwrap() as u32));
    until(&mut fleet, &mut rig, |b| !b.seen.closed.is_empty());
    answer.send(()).unwrap();
    let end = fleet.now() + 50_000_000;
    fleet.poll(end, &mut rig.seen).unwrap();
    server.set_nonblocking(true).unwrap();
    assert!(
        server.accept().is_err(),
        "an answer that comes too late connects nobody"
    );
}

/// Bytes that are not taken wait in the socket, and then before the server; none of them is lost, and its end is told last.
#[test]
fn who_takes_so_many_messages_is_read_from_no_further() {
    const UNITS: usize = 200_000;
    let (mut fleet, mut rig, mut server) = connected(Units {
        keep_alive_s: 1,
        ..Units::default()
    });
    fleet.take_at_most(C, Some(1)).unwrap();
    let writer = thread::spawn(move || {
        for number in 0..UNITS as u32 {
            let mut words = [7; 200];
            words[..4].copy_from_slice(&number.to_le_bytes());
            server.write_all(&unit(&words)).unwrap();
        }
        // A connection with unread pings would be reset, and what is on its way lost.
        server.shutdown(std::net::Shutdown::Write).unwrap();
        let _ = std::io::copy(&mut server, &mut std::io::sink());
    });
    // Longer than a server may be silent after a ping.
    let end = fleet.now() + 2_500_000_000;
    while fleet.now() < end {
        fleet.poll(fleet.now() + 20_000_000, &mut rig.seen).unwrap();
    }
    assert_eq!(rig.seen.messages.len(), 1);
    assert!(
        fleet.wire_bytes().received < 10_000,
        "{:?}",
        fleet.wire_bytes()
    );
    assert!(!writer.is_finished(), "the server is held back");
    for taken in [2, 3, 10, 90] {
        let more = taken - rig.seen.messages.len() as u32;
        fleet.take_at_most(C, Some(more)).unwrap();
        for _ in 0..20 {
            fleet.poll(fleet.now() + 1_000_000, &mut rig.seen).unwrap();
        }
        assert_eq!(rig.seen.messages.len(), taken as usize);
    }
    assert!(rig.seen.failed.is_empty(), "{:?}", rig.seen.failed);
    fleet.take_at_most(C, None).unwrap();
    until(&mut fleet, &mut rig, |b| !b.seen.failed.is_empty());
    writer.join().unwrap();
    assert_eq!(rig.seen.messages.len(), UNITS);
    for (number, message) in (0..UNITS as u32).zip(&rig.seen.messages) {
        assert_eq!(message.payload[..4], number.to_le_bytes());
    }
    assert!(rig.seen.failed[0].1.contains("the server closed"));
}
