//! The proxy's rules for any protocol: what it plants, judged by its own time stamps and by both ends
//! of the connections, which the tests hold themselves.

use crate::common;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use common::*;
use pubgauge_driver::clock::monotonic_now;
use pubgauge_testing::free_port;
use pubgauge_testing::proxy::{
    Action, Direction::*, Duplicate, Freeze, Passed, Proxy, Rate, Rules, SLOT_NS, Select,
};

const MS: u64 = 1_000_000;

/// So many bytes, no two of them alike within a short distance.
fn noise(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * i / 7 + i / 251) as u8).collect()
}

fn read_exactly(stream: &mut TcpStream, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

/// Writes from a thread of its own, for the kernel's buffers are short.
fn write_aside(stream: &TcpStream, bytes: &[u8]) -> std::thread::JoinHandle<()> {
    let (mut stream, bytes) = (stream.try_clone().unwrap(), bytes.to_vec());
    std::thread::spawn(move || stream.write_all(&bytes).unwrap())
}

#[test]
fn without_rules_any_protocol_passes_both_ways_to_its_end() {
    let server = Server::new();
    let proxy = Proxy::to(server.address()).start().unwrap();
    let (mut client, mut served) = server.connect(&proxy);
    let bytes = noise(3_000_000);
    let writing = [write_aside(&client, &bytes), write_aside(&served, &bytes)];
    assert!(read_exactly(&mut served, bytes.len()) == bytes);
    assert!(read_exactly(&mut client, bytes.len()) == bytes);
    for thread in writing {
        thread.join().unwrap();
    }
    // One side ends, the other still speaks.
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(served.read(&mut [0; 9]).unwrap(), 0);
    served.write_all(b"last words").unwrap();
    drop(served);
    let mut last = Vec::new();
    client.read_to_end(&mut last).unwrap();
    assert_eq!(last, b"last words");
    until("the end", || {
        proxy.counts().connections[0].ended_ns.is_some()
    });
    let counts = proxy.counts();
    let [to_server, to_client] = [ToServer, ToClient].map(|d| counts.total(d));
    assert_eq!(to_server.passed.bytes, bytes.len() as u64);
    assert_eq!(to_client.passed.bytes, bytes.len() as u64 + 10);
    assert_eq!(counts.connections[0].problem, None);
    for traffic in [to_server, to_client] {
        adds_up(&traffic);
        assert_eq!(
            (traffic.received, traffic.passed.publishes),
            (traffic.passed, 0)
        );
    }
}

#[test]
fn bytes_pass_at_the_rate_and_never_early() {
    let server = Server::new();
    let builder = Proxy::to(server.address()).rate(ToServer, Rate::BytesPerS(100_000.0));
    let proxy = builder.traced().start().unwrap();
    let (mut client, mut served) = server.connect(&proxy);
    let bytes = noise(200_000);
    let start = monotonic_now();
    client.write_all(&bytes).unwrap();
    let mut got = 0;
    while got < bytes.len() {
        let mut chunk = [0; 5000];
        let n = served.read(&mut chunk).unwrap();
        assert!(n > 0 && chunk[..n] == bytes[got..got + n]);
        got += n;
        assert!(monotonic_now() - start >= got as u64 * 10_000);
    }
    // The other way is free.
    served.write_all(&bytes).unwrap();
    assert!(read_exactly(&mut client, bytes.len()) == bytes);
    let trace = proxy.trace();
    let passed = way(&trace, ToServer);
    on_schedule(&passed, 100_000.0, true, 1, |p| p.amount.bytes);
    assert!(
        passed.iter().all(|p| p.amount.bytes <= 50),
        "in pieces of 0.5 ms"
    );
    for free in way(&trace, ToClient) {
        assert_eq!(free.due_ns, free.entered_ns);
    }
    // Each slot has what passed in it.
    for slot in proxy.counts().total(ToServer).slots {
        let within = |p: &&Passed| (slot.start_ns..slot.start_ns + SLOT_NS).contains(&p.passed_ns);
        let bytes: u64 = passed.iter().filter(within).map(|p| p.amount.bytes).sum();
        assert_eq!(slot.passed.bytes, bytes);
    }
}

/// A sender that always has something passes at the rate through a buffer of this size.
fn held_back_at_the_same_rate(buffer_bytes: usize) {
    let server = Server::new();
    let builder = Proxy::to(server.address())
        .rate(ToServer, Rate::BytesPerS(2e6))
        .buffer(ToServer, buffer_bytes);
    let proxy = builder.traced().start().unwrap();
    let (client, mut served) = server.connect(&proxy);
    // The sender fills the kernel's buffers first, so that the link is never idle.
    proxy.freeze(Duration::from_millis(200));
    let bytes = noise(5_000_000);
    let writing = write_aside(&client, &bytes);
    let mut got = Vec::new();
    while got.len() < bytes.len() {
        assert!(proxy.counts().total(ToServer).waiting.bytes <= buffer_bytes as u64);
        let mut chunk = vec![0; 200_000];
        let n = served.read(&mut chunk).unwrap();
        got.extend_from_slice(&chunk[..n]);
    }
    writing.join().unwrap();
    assert!(got == bytes);
    on_schedule(&proxy.trace(), 2e6, true, 5, |p| p.amount.bytes);
}

#[test]
fn a_short_buffer_holds_the_sender_back_at_the_same_rate() {
    held_back_at_the_same_rate(50_000);
}

#[test]
fn a_buffer_that_is_empty_before_it_is_filled_again_costs_no_time() {
    // 0.2 ms of the rate: the proxy wakes later than that.
    held_back_at_the_same_rate(400);
}

#[test]
fn a_full_buffer_stops_the_sender_and_no_buffer_takes_all() {
    let server = Server::new();
    let slow = Rules {
        rate: Some(Rate::BytesPerS(10.0)),
        ..Rules::default()
    };
    let short = Rules {
        buffer_bytes: Some(4096),
        ..slow
    };
    let builder = Proxy::to(server.address())
        .rules(Select::Order(0), ToServer, short)
        .rules(Select::Order(1), ToServer, slow);
    let proxy = builder.start().unwrap();
    // More than the kernel's buffers of both sockets take.
    let bytes = noise(40_000_000);
    let (mut stuck, mut served) = server.connect(&proxy);
    stuck
        .set_write_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    let mut written = 0;
    let error = loop {
        match stuck.write(&bytes[written..]) {
            Ok(n) => written += n,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    let waiting = |order: usize| proxy.counts().connections[order].to_server.waiting.bytes;
    assert!((1..=4096).contains(&waiting(0)), "{}", waiting(0));
    let (mut deep, _other) = server.connect(&proxy);
    deep.write_all(&bytes).unwrap();
    until("all of it in the queue", || waiting(1) > 39_000_000);
    // Once there is no limit, all comes that the first has sent.
    proxy.change(&Select::Order(0), ToServer, |rules| rules.rate = None);
    assert!(read_exactly(&mut served, written) == bytes[..written]);
}

#[test]
fn a_delay_is_the_same_for_all_and_holds_nobody_up() {
    let server = Server::new();
    let delay = Duration::from_millis(30);
    let builder = Proxy::to(server.address())
        .delay(ToServer, delay)
        .delay(ToClient, 2 * delay);
    let proxy = builder.traced().start().unwrap();
    let (mut client, mut served) = server.connect(&proxy);
    // Another connection is under load.
    let (mut loaded, mut sink) = server.connect(&proxy);
    let load = std::thread::spawn(move || {
        for _ in 0..400 {
            loaded.write_all(&[1; 20_000]).unwrap();
        }
    });
    let sunk = std::thread::spawn(move || read_exactly(&mut sink, 8_000_000));
    let speaking = std::thread::spawn(move || {
        for _ in 0..300 {
            client.write_all(&monotonic_now().to_le_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        client
    });
    for _ in 0..300 {
        let stamp = read_exactly(&mut served, 8).try_into().unwrap();
        assert!(monotonic_now() - u64::from_le_bytes(stamp) >= 30 * MS);
    }
    let before = monotonic_now();
    served.write_all(b"back").unwrap();
    let mut client = speaking.join().unwrap();
    assert_eq!(read_exactly(&mut client, 4), b"back");
    assert!(monotonic_now() - before >= 60 * MS);
    load.join().unwrap();
    sunk.join().unwrap();
    let trace = proxy.trace();
    never_early(&trace);
    for passed in &trace {
        let delay_ns = if passed.direction == ToServer {
            30 * MS
        } else {
            60 * MS
        };
        assert_eq!(passed.due_ns, passed.entered_ns + delay_ns);
    }
    let least = trace.iter().map(|p| p.passed_ns - p.due_ns).min();
    assert!(least < Some(MS), "never within 1 ms: {least:?}");
}

#[test]
fn a_freeze_delays_everything_and_loses_nothing() {
    let server = Server::new();
    let delay = Duration::from_millis(50);
    let builder = Proxy::to(server.address())
        .delay(ToServer, delay)
        .rate(ToClient, Rate::BytesPerS(100_000.0))
        .after(
            Duration::from_millis(500),
            Action::Freeze(Duration::from_millis(150)),
        );
    let proxy = builder.traced().start().unwrap();
    let (mut client, mut served) = server.connect(&proxy);
    let bytes = noise(200_000);
    served.write_all(&bytes).unwrap();
    // Numbers go the other way all the time.
    let mut speaker = client.try_clone().unwrap();
    let speaking = std::thread::spawn(move || {
        for n in 0..1200_u32 {
            speaker.write_all(&n.to_le_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    until("the first freeze", || !proxy.counts().freezes.is_empty());
    std::thread::sleep(Duration::from_millis(100));
    let before = monotonic_now();
    proxy.freeze(Duration::from_millis(300));
    let after = monotonic_now();
    for n in 0..1200_u32 {
        assert_eq!(read_exactly(&mut served, 4), n.to_le_bytes());
    }
    assert!(read_exactly(&mut client, bytes.len()) == bytes);
    speaking.join().unwrap();
    let counts = proxy.counts();
    let freezes: [Freeze; 2] = counts.freezes.try_into().unwrap();
    assert!((before..=after).contains(&freezes[1].from_ns));
    let trace = proxy.trace();
    never_early(&trace);
    for (freeze, planted_ms) in freezes.iter().zip([150, 300]) {
        assert!(freeze.to_ns - freeze.from_ns >= planted_ms * MS);
        for passed in &trace {
            assert!(!(freeze.from_ns..freeze.to_ns).contains(&passed.passed_ns));
        }
    }
    // What was under way comes later by the whole freeze, and the rate makes nothing up.
    let frozen = |passed: &Passed| -> u64 {
        let within = |f: &&Freeze| passed.entered_ns < f.from_ns && f.from_ns <= passed.due_ns;
        freezes
            .iter()
            .filter(within)
            .map(|f| f.to_ns - f.from_ns)
            .sum()
    };
    for passed in way(&trace, ToServer) {
        assert_eq!(passed.due_ns, passed.entered_ns + 50 * MS + frozen(&passed));
    }
    let [first, .., last] = &way(&trace, ToClient)[..] else {
        panic!("nothing has passed")
    };
    let sent_ns = (bytes.len() as u64 - first.amount.bytes) * 10_000;
    let still = frozen(last) - frozen(first);
    assert_eq!(last.due_ns - first.due_ns, sent_ns + still);
    assert!(still >= 300 * MS);
}

#[test]
fn rules_change_while_it_runs() {
    let server = Server::new();
    let builder = Proxy::to(server.address()).rate(ToServer, Rate::BytesPerS(1.0));
    let proxy = builder.traced().start().unwrap();
    let (mut client, mut served) = server.connect(&proxy);
    client.write_all(&noise(100_000)).unwrap();
    until("all in the queue", || {
        proxy.counts().total(ToServer).received.bytes == 100_000
    });
    let from = monotonic_now();
    proxy.change(&Select::All, ToServer, |rules| {
        assert_eq!(rules.rate, Some(Rate::BytesPerS(1.0)));
        rules.rate = Some(Rate::BytesPerS(1e6));
        rules.delay = Duration::from_millis(20);
    });
    assert!(read_exactly(&mut served, 100_000) == noise(100_000));
    assert!(monotonic_now() - from >= 99 * MS);
    proxy.trace();
    client.write_all(b"later").unwrap();
    assert_eq!(read_exactly(&mut served, 5), b"later");
    let trace = proxy.trace();
    assert_eq!(trace[0].due_ns, trace[0].entered_ns + 20 * MS + 5_000);
}

#[test]
fn what_cannot_be_started_says_why() {
    let server = Server::new();
    let wrong = |edit: fn(&mut Rules)| {
        let mut rules = Rules::default();
        edit(&mut rules);
        Proxy::to(server.address()).rules(Select::All, ToServer, rules)
    };
    let twice = |share| Duplicate {
        share,
        late: Duration::ZERO,
    };
    assert!(wrong(|_| {}).start().is_ok());
    for (proxy, why) in [
        (wrong(|r| r.rate = Some(Rate::BytesPerS(0.0))), "above 0"),
        (
            wrong(|r| r.rate = Some(Rate::MessagesPerS(f64::NAN))),
            "above 0",
        ),
        (wrong(|r| r.buffer_bytes = Some(0)), "above 0 bytes"),
        (wrong(|r| r.lose = 1.1), "from 0 to 1"),
        (
            wrong(|_| {}).duplicate(ToServer, twice(-0.1)),
            "from 0 to 1",
        ),
        (wrong(|_| {}).realtime(200), "from 1 to 99"),
        (wrong(|_| {}).listen(server.address()), "in use"),
    ] {
        let error = proxy.start().unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
#[should_panic(expected = "no link was set up for Order(3)")]
fn a_link_that_was_not_set_up_cannot_be_changed() {
    let proxy = Proxy::to(Server::new().address()).start().unwrap();
    proxy.change(&Select::Order(3), ToServer, |_| {});
}

#[test]
fn one_slow_connection_leaves_the_others_alone() {
    let server = Server::new();
    let slow = Rules {
        rate: Some(Rate::BytesPerS(1000.0)),
        ..Rules::default()
    };
    let builder = Proxy::to(server.address()).rules(Select::Order(1), ToClient, slow);
    let proxy = builder.traced().start().unwrap();
    let mut ends: Vec<_> = (0..3).map(|_| server.connect(&proxy)).collect();
    for (_, served) in &mut ends {
        served.write_all(&noise(500)).unwrap();
    }
    for (client, _) in &mut ends {
        assert!(read_exactly(client, 500) == noise(500));
    }
    let trace = proxy.trace();
    for passed in trace.iter().filter(|p| p.connection != 1) {
        assert_eq!(passed.due_ns, passed.entered_ns);
    }
    let slow: Vec<_> = trace
        .iter()
        .filter(|p| p.connection == 1)
        .copied()
        .collect();
    assert_eq!(slow.last().unwrap().due_ns - slow[0].due_ns, 499 * MS);
    never_early(&trace);
}

#[test]
fn a_cut_ends_some_connections_at_a_moment() {
    let server = Server::new();
    let builder = Proxy::to(server.address()).rate(ToServer, Rate::BytesPerS(10.0));
    let proxy = builder.start().unwrap();
    let mut ends: Vec<_> = (0..3).map(|_| server.connect(&proxy)).collect();
    ends[1].0.write_all(&noise(5000)).unwrap();
    until("5000 bytes in the queue", || {
        proxy.counts().total(ToServer).received.bytes == 5000
    });
    assert_eq!(proxy.cut(Select::Order(1)), 1);
    assert_eq!(proxy.cut(Select::Order(1)), 0, "it has ended");
    for end in [&ends[1].0, &ends[1].1] {
        let (mut end, mut rest) = (end, Vec::new());
        // An end, or a reset if something was under way.
        let _ = end.read_to_end(&mut rest);
        assert!(rest.len() < 5000);
    }
    let counts = proxy.counts();
    let cut = &counts.connections[1];
    assert_eq!(
        cut.ended_ns.map(|at| at >= counts.cuts[0].at_ns),
        Some(true)
    );
    assert_eq!(cut.to_server.waiting.bytes, 0);
    assert_eq!(
        cut.to_server.passed.bytes + cut.to_server.discarded.bytes,
        5000
    );
    // What was cut costs the link no more time: the others go on.
    proxy.change(&Select::All, ToServer, |rules| rules.rate = None);
    for (client, served) in [0, 2].map(|n| &ends[n]) {
        let (mut client, mut served) = (client, served);
        client.write_all(b"on").unwrap();
        let mut on = [0; 2];
        served.read_exact(&mut on).unwrap();
        assert_eq!(&on, b"on");
    }
    let at = monotonic_now() + 20 * MS;
    proxy.schedule(at, Action::Cut(Select::All));
    for (client, _) in [0, 2].map(|n| &ends[n]) {
        let mut client = client;
        assert_eq!(client.read(&mut [0; 9]).unwrap(), 0);
        assert!(monotonic_now() >= at);
    }
    let cuts = proxy.counts().cuts;
    assert_eq!(
        cuts.iter().map(|c| c.connections).collect::<Vec<_>>(),
        [1, 0, 2]
    );
    assert!(cuts[2].at_ns >= at);
}

#[test]
fn a_server_that_is_not_there_is_a_problem() {
    let nobody = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let proxy = Proxy::to(nobody).start().unwrap();
    let mut client = TcpStream::connect(proxy.address()).unwrap();
    assert_eq!(client.read(&mut [0; 9]).unwrap(), 0);
    let counts = proxy.counts();
    let problem = counts.connections[0].problem.as_deref().unwrap();
    assert!(problem.contains("connection refused"), "{problem}");
}

#[test]
fn dropped_it_leaves_nothing_open() {
    let server = Server::new();
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let builder = Proxy::to(server.address())
        .listen(address)
        .delay(ToServer, Duration::from_secs(60));
    let proxy = builder.start().unwrap();
    let (mut client, mut served) = server.connect(&proxy);
    client.write_all(b"under way").unwrap();
    until("it to be read", || {
        proxy.counts().total(ToServer).waiting.bytes == 9
    });
    proxy.freeze(Duration::from_secs(60));
    assert_eq!(proxy.address(), address);
    drop(proxy);
    assert_eq!(client.read(&mut [0; 9]).unwrap(), 0);
    assert_eq!(served.read(&mut [0; 9]).unwrap(), 0);
    let refused = TcpStream::connect(address).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}
