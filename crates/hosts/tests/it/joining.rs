//! Workers that join over real sockets, and those of them that must not.

use crate::common;

use std::io::Read;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{PATIENCE, Run, dial, refused};
use pubgauge_clock::udp::Key;
use pubgauge_engine::link::frames;
use pubgauge_engine::link::stream::Peer;
use pubgauge_hosts::{Counts, Identity, JoinError, Listener, Machine, Options, join};

#[test]
fn workers_join_and_both_sides_speak() {
    let run = Run::of(3);
    let members = [2, 0, 1].map(|rank| run.join(rank));
    let all = run.listener.all(PATIENCE).unwrap();
    assert_eq!(
        all.iter().map(|one| one.hello.rank).collect::<Vec<_>>(),
        [0, 1, 2]
    );
    run.counts(Counts {
        joined: 3,
        ..Counts::default()
    });
    let here = Machine::here();
    let mut ends = all.into_iter().map(|one| {
        assert!(one.hello.machine.shares_clock(&here) && one.address.ip().is_loopback());
        (one.reader, one.writer, one.connection)
    });
    let (mut reader, mut writer, connection) = ends.next().unwrap();
    let member = members.into_iter().nth(1).unwrap();
    assert!(member.welcome.machine.shares_clock(&here) && member.welcome.clock.is_none());
    let (mut theirs, mut their_writer) = (member.reader, member.writer);
    // Both write more than sockets hold before either reads: nobody waits for the other for ever.
    let long = "x".repeat(8 << 20);
    std::thread::scope(|scope| {
        scope.spawn(|| frames::write(&mut writer, &long).unwrap());
        scope.spawn(|| frames::write(&mut their_writer, &vec![7u8; 2 << 20]).unwrap());
        let heard = scope.spawn(|| frames::read::<String>(&mut theirs).unwrap().unwrap());
        let back = frames::read::<Vec<u8>>(&mut reader).unwrap().unwrap();
        assert!(back.len() == 2 << 20 && back.iter().all(|byte| *byte == 7));
        assert_eq!(heard.join().unwrap(), long);
    });
    // An end that is told is told from one that is not.
    drop(their_writer);
    assert_eq!(frames::read::<String>(&mut reader).unwrap(), None);
    let ending = connection.ending();
    assert!(
        ending.contains("rank 0") && ending.contains("closed it"),
        "{ending}"
    );
}

#[test]
fn a_worker_that_is_cut_off_is_told_by_name() {
    let run = Run::of(1);
    let member = run.join(0);
    let mut joined = run.listener.next(PATIENCE).unwrap();
    member.connection.kill();
    let mut bytes = Vec::new();
    assert_eq!(joined.reader.read_to_end(&mut bytes).unwrap(), 0);
    let ending = joined.connection.ending();
    assert!(
        ending.contains("rank 0") && ending.contains(&Machine::here().host),
        "{ending}"
    );
    assert!(
        ending.contains("cut off") || ending.contains("lost"),
        "{ending}"
    );
}

#[test]
fn the_clock_server_is_told_to_those_who_are_in() {
    let identity = Identity::generate().unwrap();
    let credentials = identity.credentials(1).unwrap();
    let key = Key::random().unwrap();
    let options = Options {
        clock: Some((4_711, key.clone())),
        ..Options::default()
    };
    let listener = Listener::start(&identity, &credentials, options).unwrap();
    let member = join(&dial(listener.address(), credentials, 0)).unwrap();
    let clock = member.welcome.clock.unwrap();
    assert_eq!(clock.port, 4_711);
    assert_eq!(clock.key().unwrap().bytes(), key.bytes());
}

#[test]
fn a_wrong_token_is_refused() {
    let run = Run::of(3);
    let mut swapped = run.dial(1);
    let other = run.credentials.tokens[&0].clone();
    swapped.credentials.tokens.insert(1, other);
    let why = refused(join(&swapped));
    assert!(why.contains("rank 1") && why.contains("token"), "{why}");
    // A rank that there is not, with a token that there is.
    let mut beyond = run.dial(3);
    let token = run.credentials.tokens[&0].clone();
    beyond.credentials.tokens.insert(3, token);
    refused(join(&beyond));
    let mut none = run.dial(0);
    none.credentials.tokens.clear();
    assert!(matches!(join(&none), Err(JoinError::Credentials(_))));
    run.counts(Counts {
        wrong_token: 2,
        ..Counts::default()
    });
    run.still_lets_in(1);
}

#[test]
fn each_rank_joins_once() {
    let run = Run::of(2);
    let mut first = run.join(0);
    let why = refused(join(&run.dial(0)));
    assert!(why.contains("joined already"), "{why}");
    run.counts(Counts {
        joined: 1,
        replayed: 1,
        ..Counts::default()
    });
    // The first is not disturbed.
    let mut joined = run.listener.next(PATIENCE).unwrap();
    frames::write(&mut joined.writer, &"still here").unwrap();
    let heard = frames::read::<String>(&mut first.reader).unwrap();
    assert_eq!(heard.as_deref(), Some("still here"));
    // Its token is used up, also when it is gone.
    drop((first, joined));
    refused(join(&run.dial(0)));
    run.still_lets_in(1);
}

#[test]
fn a_rank_joins_again_when_its_connection_is_in_use_or_gone() {
    let identity = Identity::generate().unwrap();
    let credentials = identity.credentials(2).unwrap();
    let options = Options {
        again: true,
        ..Options::default()
    };
    let listener = Listener::start(&identity, &credentials, options).unwrap();
    let run = Run {
        credentials,
        listener,
    };
    let first = run.join(0);
    let waiting = run.listener.next(PATIENCE).unwrap();
    assert_eq!(run.listener.missing(), [1]);
    // Nothing was asked of it yet: a second one is one too many.
    let why = refused(join(&run.dial(0)));
    assert!(why.contains("joined already"), "{why}");
    // In use, and the rank waits with another.
    run.listener.release(0);
    assert_eq!(run.listener.missing(), [0, 1]);
    let second = run.join(0);
    refused(join(&run.dial(0)));
    assert_eq!(run.listener.missing(), [1]);
    // One that is gone keeps nobody out.
    second.connection.kill();
    let until = Instant::now() + PATIENCE;
    while run.listener.missing() != [0, 1] {
        assert!(Instant::now() < until, "{:?}", run.listener.missing());
        std::thread::sleep(Duration::from_millis(2));
    }
    run.still_lets_in(0);
    run.counts(Counts {
        joined: 3,
        replayed: 2,
        ..Counts::default()
    });
    // The first is not disturbed.
    let (mut writer, mut reader) = (waiting.writer, first.reader);
    frames::write(&mut writer, &"still here").unwrap();
    let heard = frames::read::<String>(&mut reader).unwrap();
    assert_eq!(heard.as_deref(), Some("still here"));
    drop(writer);
    assert_eq!(frames::read::<String>(&mut reader).unwrap(), None);
    assert!(first.connection.was_closed() && !second.connection.was_closed());
}

#[test]
fn of_many_with_one_token_one_is_in() {
    let run = Run::of(1);
    let joined = std::thread::scope(|scope| {
        let tries = (0..16).map(|_| scope.spawn(|| join(&run.dial(0))));
        let tries: Vec<_> = tries.collect();
        tries
            .into_iter()
            .map(|one| one.join().unwrap())
            .filter(Result::is_ok)
            .count()
    });
    assert_eq!(joined, 1);
    run.counts(Counts {
        joined: 1,
        replayed: 15,
        ..Counts::default()
    });
}

#[test]
fn a_conductor_may_come_later() {
    let identity = Identity::generate().unwrap();
    let credentials = identity.credentials(1).unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    drop(taken);
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| join(&dial(address, credentials.clone(), 0)));
        std::thread::sleep(Duration::from_millis(400));
        let options = Options {
            address,
            ..Options::default()
        };
        let listener = Listener::start(&identity, &credentials, options).unwrap();
        worker.join().unwrap().unwrap();
        assert_eq!(listener.all(PATIENCE).unwrap().len(), 1);
    });
}

/// A process with a monotonic clock of its own is on the same kernel, and has not the same clock.
#[test]
fn a_time_namespace_is_another_clock() {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["-U", "-r"]);
    }
    command.args(["-T", "--monotonic", "5", "readlink", "/proc/self/ns/time"]);
    let output = command.output().expect("unshare, of util-linux");
    assert!(output.status.success(), "{output:?}");
    let here = Machine::here();
    let there = Machine {
        time_namespace: String::from_utf8(output.stdout).unwrap().trim().into(),
        ..here.clone()
    };
    assert!(there.time_namespace.starts_with("time:["), "{there:?}");
    assert!(!here.shares_clock(&there), "{here:?} {there:?}");
}

#[test]
fn it_listens_on_loopback_unless_asked() {
    assert!(Options::default().address.ip().is_loopback());
    assert!(Run::of(1).listener.address().ip().is_loopback());
}

#[test]
fn no_secret_is_in_debug_output() {
    let run = Run::of(1);
    let text = run.credentials.text();
    let token = text.lines().last().unwrap().rsplit(' ').next().unwrap();
    assert_eq!(token.len(), 64);
    let member = run.join(0);
    let joined = run.listener.next(PATIENCE).unwrap();
    let bytes: Vec<u8> = (0..32)
        .map(|n| u8::from_str_radix(&token[2 * n..2 * n + 2], 16).unwrap())
        .collect();
    let listed = format!("{:?}", &bytes[..8]);
    let listed = listed.trim_matches(['[', ']']);
    for text in [
        format!("{:?}", run.credentials),
        format!("{:?}", run.dial(0)),
        format!("{:?}", run.listener),
        format!("{member:?}"),
        format!("{joined:?}"),
    ] {
        assert!(!text.contains(token) && !text.contains(listed), "{text}");
    }
}
