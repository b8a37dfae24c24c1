//! Exchanges over real sockets: honest ones, and all that strangers can send.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pubgauge_clock::udp::{Client, Key, Pace, Reading, Server, Watch, monotonic};
use pubgauge_clock::{Caps, FitError, fit};

/// Long enough on a machine that others keep busy.
const PATIENCE: Duration = Duration::from_secs(60);

fn here() -> Reading {
    Arc::new(monotonic)
}

fn soon() -> Instant {
    Instant::now() + PATIENCE
}

fn short() -> Instant {
    Instant::now() + Duration::from_millis(100)
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let until = soon();
    while !is_so() {
        assert!(Instant::now() < until, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The far clock gains 40 ppm and is 1.5 s ahead at first: the true offset is known at every moment.
#[test]
fn a_drifting_clock_is_followed() {
    let start = monotonic();
    let ahead = move |near: u64| 1_500_000_000 + (near - start) / 25_000;
    let drifting = Arc::new(move || {
        let near = monotonic();
        near + ahead(near)
    });
    let key = Key::random().unwrap();
    let server = Server::start("127.0.0.1:0", key.clone(), drifting).unwrap();
    let client = Client::connect(server.address(), key, here()).unwrap();
    let pace = Pace {
        gap: Duration::from_millis(50),
        ..Pace::default()
    };
    let watch = Watch::start(client, pace).unwrap();
    let before = watch.before(PATIENCE);
    let first = fit(&before, Caps::default()).unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    assert!(watch.exchanges().len() >= before.len());
    let (all, counts) = watch.finish();
    assert_eq!(all.len() as u64, counts.heard);
    assert_eq!(
        (
            counts.garbage,
            counts.forged,
            counts.replayed,
            counts.failed
        ),
        (0, 0, 0, 0)
    );
    assert!(
        counts.asked > 210,
        "two bursts of 100 and what was asked in between: {counts:?}"
    );
    let last = fit(&all, Caps::default()).unwrap();
    for near in (last.from()..last.until()).step_by(1_000_000) {
        let (truth, offset) = (ahead(near) as i64, last.offset(near));
        let error = (offset.ns - truth).unsigned_abs();
        assert!(
            error <= offset.bound_ns,
            "{error} beyond {}",
            offset.bound_ns
        );
        let early = first.offset(near);
        assert!((early.ns - truth).unsigned_abs() <= early.bound_ns);
    }
    println!("{counts:?}, bound +-{} ns", last.bound_ns());
    assert!(
        last.bound_ns() < 10_000_000,
        "over loopback: {} ns",
        last.bound_ns()
    );
    let served = server.stop();
    assert!(served.answered >= counts.heard);
}

/// Somebody between a client and a server.
struct Between {
    socket: UdpSocket,
    server: SocketAddr,
}

impl Between {
    fn new(server: SocketAddr) -> Between {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Between { socket, server }
    }

    fn next(&self) -> (Vec<u8>, SocketAddr) {
        let mut bytes = [0; 200];
        let (length, from) = self.socket.recv_from(&mut bytes).expect("a packet");
        (bytes[..length].to_vec(), from)
    }

    fn to_server(&self, bytes: &[u8]) {
        self.socket.send_to(bytes, self.server).unwrap();
    }

    fn to(&self, whom: SocketAddr, bytes: &[u8]) {
        self.socket.send_to(bytes, whom).unwrap();
    }
}

fn changed(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 1;
    bytes
}

#[test]
fn a_server_ignores_what_strangers_send() {
    let key = Key::random().unwrap();
    let server = Server::start("127.0.0.1:0", key.clone(), here()).unwrap();
    let between = Between::new(server.address());
    let own = between.socket.local_addr().unwrap();
    let mut client = Client::connect(own, key, here()).unwrap();
    client.ask();
    let (question, _) = between.next();
    between.to_server(&question);
    let (answer, _) = between.next();
    assert_eq!(
        answer.len(),
        question.len(),
        "an answer is no longer than its question"
    );
    // The same again; changed in its time, its MAC, its session; an answer; garbage of several lengths.
    between.to_server(&question);
    for at in [24, 50, 8] {
        between.to_server(&changed(&question, at));
    }
    between.to_server(&answer);
    for garbage in [
        &b""[..],
        b"x",
        &question[..79],
        &[&question[..], b"x"].concat(),
        &[0; 80],
    ] {
        between.to_server(garbage);
    }
    let mut stranger = Client::connect(server.address(), Key::random().unwrap(), here()).unwrap();
    stranger.ask();
    let counted = || {
        let counts = server.counts();
        (
            counts.answered,
            counts.replayed,
            counts.forged,
            counts.garbage,
            counts.failed,
        )
    };
    wait_for("counts", || counted() == (1, 1, 4, 6, 0));
    assert_eq!(stranger.hear(short()), None);
    // None of that keeps it from answering.
    client.ask();
    let (question, _) = between.next();
    between.to_server(&question);
    between.next();
    wait_for("one more", || counted() == (2, 1, 4, 6, 0));
}

#[test]
fn a_client_ignores_what_strangers_send() {
    let key = Key::random().unwrap();
    let server = Server::start("127.0.0.1:0", key.clone(), here()).unwrap();
    let between = Between::new(server.address());
    let own = between.socket.local_addr().unwrap();
    let mut client = Client::connect(own, key.clone(), here()).unwrap();
    let mut other = Client::connect(own, key, here()).unwrap();
    client.ask();
    let (question, asking) = between.next();
    between.to_server(&question);
    let (answer, _) = between.next();
    other.ask();
    let (theirs, _) = between.next();
    between.to_server(&theirs);
    let (their_answer, _) = between.next();
    // Its own question; changed answers; an answer to somebody else; garbage.
    between.to(asking, &question);
    for at in [24, 32, 40, 79] {
        between.to(asking, &changed(&answer, at));
    }
    between.to(asking, &their_answer);
    between.to(asking, b"garbage");
    // From another address: the kernel drops it.
    UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .send_to(&answer, asking)
        .unwrap();
    between.to(asking, &answer);
    between.to(asking, &answer);
    let exchange = client.hear(soon()).expect("the one answer");
    assert!(exchange.under_way() >= 0 && exchange.heard >= exchange.sent);
    assert_eq!(client.hear(short()), None);
    let counts = client.counts();
    assert_eq!((counts.asked, counts.heard), (1, 1));
    assert_eq!(
        (
            counts.garbage,
            counts.forged,
            counts.replayed,
            counts.failed
        ),
        (2, 4, 2, 0)
    );
}

/// Answers that come late and in another order are exchanges too.
#[test]
fn reordered_answers_are_taken() {
    let key = Key::random().unwrap();
    let server = Server::start("127.0.0.1:0", key.clone(), here()).unwrap();
    let between = Between::new(server.address());
    let own = between.socket.local_addr().unwrap();
    let mut client = Client::connect(own, key, here()).unwrap();
    let mut answers = Vec::new();
    let mut asking = own;
    for _ in 0..3 {
        client.ask();
        let (question, from) = between.next();
        asking = from;
        between.to_server(&question);
        answers.push(between.next().0);
    }
    // The second is lost.
    between.to(asking, &answers[2]);
    between.to(asking, &answers[0]);
    let (third, first) = (client.hear(soon()).unwrap(), client.hear(soon()).unwrap());
    assert!(first.sent < third.sent && first.heard > third.heard);
    let counts = client.counts();
    assert_eq!((counts.asked, counts.heard), (3, 2));
    let fit = fit(&[third, first], Caps::default()).unwrap();
    // One clock: the offset is zero.
    let offset = fit.offset(first.sent);
    assert!(offset.ns.unsigned_abs() <= offset.bound_ns, "{offset:?}");
}

#[test]
fn nobody_there_is_told() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    drop(taken);
    let client = Client::connect(address, Key::random().unwrap(), here()).unwrap();
    let pace = Pace {
        burst: 5,
        linger: Duration::from_millis(20),
        ..Pace::default()
    };
    let (all, counts) = Watch::start(client, pace).unwrap().finish();
    assert!(all.is_empty() && counts.heard == 0 && counts.asked >= 10);
    assert!(counts.failed > 0, "{counts:?}");
    let error = fit(&all, Caps::default()).unwrap_err();
    assert_eq!(error, FitError::NoExchange);
    assert!(error.to_string().contains("hint:"));
}

/// A flood of forged packets is counted, and neither keeps a server from answering nor from ending.
#[test]
fn a_flood_does_not_keep_a_server_from_ending() {
    let key = Key::random().unwrap();
    let server = Server::start("127.0.0.1:0", key.clone(), here()).unwrap();
    let address = server.address();
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                // A full buffer there is none of the flood's concern.
                let _ = socket.send_to(&[1; 80], address);
            }
        });
        wait_for("a flood", || server.counts().garbage > 1_000);
        let mut client = Client::connect(address, key, here()).unwrap();
        // Some questions are lost in a full buffer.
        let until = soon();
        let heard = loop {
            client.ask();
            let next = Instant::now() + Duration::from_millis(5);
            if client.hear(next).is_some() {
                break true;
            }
            if Instant::now() > until {
                break false;
            }
        };
        let counts = server.stop();
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(heard && counts.answered >= 1, "{counts:?}");
    });
}

#[test]
fn a_watch_makes_bursts_when_asked_to_and_forgets() {
    let key = Key::random().unwrap();
    let server = Server::start("127.0.0.1:0", key.clone(), here()).unwrap();
    let client = Client::connect(server.address(), key, here()).unwrap();
    let pace = Pace {
        burst: 20,
        burst_gap: Duration::from_millis(10),
        gap: Duration::from_secs(1_000),
        ..Pace::default()
    };
    let watch = Watch::start(client, pace).unwrap();
    let first = watch.before(PATIENCE).len();
    // A question is asked between the bursts, whose answer counts here or there.
    assert!((1..=21).contains(&first), "{first}");
    let began = here()();
    let both = watch.burst(PATIENCE).len();
    assert!(both > first && both <= 42, "{first}, {both}");
    watch.forget(began);
    let left = watch.exchanges();
    assert!(left.len() < both && left.iter().all(|one| one.sent >= began));
    watch.forget(u64::MAX);
    assert_eq!(watch.exchanges(), []);
    // What was asked before may be answered now.
    let last = watch.burst(PATIENCE).len();
    assert!((1..=42).contains(&last), "{last}");
}

#[test]
fn an_abandoned_watch_ends_at_once() {
    let key = Key::random().unwrap();
    let server = Server::start("127.0.0.1:0", key.clone(), here()).unwrap();
    let client = Client::connect(server.address(), key, here()).unwrap();
    let pace = Pace {
        gap: Duration::from_secs(3_600),
        ..Pace::default()
    };
    let watch = Watch::start(client, pace).unwrap();
    watch.before(PATIENCE);
    let start = Instant::now();
    drop(watch);
    assert!(start.elapsed() < PATIENCE);
}

#[test]
fn a_key_is_in_no_debug_output() {
    let key = Key::from_bytes([0xab; 32]);
    let server = Server::start("127.0.0.1:0", key.clone(), here()).unwrap();
    for text in [format!("{key:?}"), format!("{server:?}")] {
        assert!(
            !text.contains("171, 171") && !text.to_lowercase().contains("abab"),
            "{text}"
        );
    }
    assert_eq!(key.bytes(), &[0xab; 32]);
}
