//! The client's own resources end, and a forwarder's do. libzmq tells little of it, and ends the
//! process in places: whatever is missing, the driver says what.

use crate::common;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use common::*;
use pubgauge_driver::{
    Change, ClientId, Clock, Crowd, Driver, DriverError, Failure, FleetConfig, Resource, Settings,
    Target,
};
use pubgauge_driver_zeromq::ZeromqDriver;
use pubgauge_testing::confined::{Limits, confined, leave_files, leave_threads};
use pubgauge_testing::this_test;
use serde_json::json;

fn impatient(pattern: &str) -> Settings {
    settings(json!({
        "pattern": pattern,
        "native": {"zeromq": {"connect-timeout-ms": 400, "handshake-ms": 300}},
    }))
}

/// Three publishers with two topics, each heard by three subscribers; the fleet, or the first
/// failure.
fn three_to_three(settings: &Settings, target: &Target) -> Result<Rig, Failure> {
    let opened = ZeromqDriver.open(FleetConfig {
        target: target.clone(),
        settings: settings.clone(),
        max_payload: 1024,
        clients: 6,
        ..FleetConfig::default()
    });
    let mut rig = Rig::around(opened?, 1024);
    let mut peers = Vec::new();
    let mut topics = Vec::new();
    for n in 0..3 {
        let id = rig.fleet.connect(&publisher(&format!("p{n}")))?;
        peers.extend(up(&mut rig, id)?);
        for topic in [format!("t/{n}/0"), format!("t/{n}/1")] {
            topics.push((id, rig.fleet.advertise(id, &topic)?));
        }
    }
    for n in 0..3 {
        let id = rig.fleet.connect(&subscriber(&format!("s{n}"), &peers))?;
        up(&mut rig, id)?;
        for topic in 0..6 {
            let filter = format!("t/{}/{}", topic / 2, topic % 2);
            rig.fleet.subscribe(id, &Subscription::matching(&filter))?;
        }
    }
    // Until all is heard: under point-to-point the queues are connected to only now.
    let mut sequence = 0;
    let end = Clock::Monotonic.now() + 60 * SECOND;
    loop {
        for (stream, (id, topic)) in (0..).zip(&topics) {
            rig.publish(*id, *topic, stream, sequence, 16);
        }
        sequence += 1;
        rig.poll_for(SECOND / 100);
        if let Some(failure) = first_failure(&rig) {
            return Err(failure);
        }
        let heard = |client: u32, stream: u32| {
            let mut seen = rig.seen.seen.iter();
            seen.any(|s| s.client.0 == client && s.stream == stream)
        };
        if (3..6).all(|client| (0..6).all(|stream| heard(client, stream))) {
            return Ok(rig);
        }
        assert!(Clock::Monotonic.now() < end, "neither heard nor failed");
    }
}

fn first_failure(rig: &Rig) -> Option<Failure> {
    rig.seen
        .changes
        .iter()
        .find_map(|(_, change)| match change {
            Change::Failed(failure) => Some(failure.clone()),
            _ => None,
        })
}

/// Waits until a client is connected; its address.
fn up(rig: &mut Rig, id: ClientId) -> Result<Option<String>, Failure> {
    let settled = rig.poll_until(60 * SECOND, |seen| {
        seen.has(id, |c| {
            matches!(c, Change::Connected { .. } | Change::Failed(_))
        })
    });
    assert!(settled, "neither connected nor failed");
    match first_failure(rig) {
        Some(failure) => Err(failure),
        None => Ok(rig.connected(id)),
    }
}

/// Runs out of descriptors at every place there is: with 0, 1, 2, ... of them.
fn at_every_place(settings: &Settings) {
    let scratch = scratch();
    let target = direct(&scratch);
    let mut places = Vec::new();
    for more in 0.. {
        leave_files(more);
        match three_to_three(settings, &target) {
            Ok(_) => break,
            Err(failure) => {
                assert_eq!(
                    failure.exhausted,
                    Some(Resource::Descriptors),
                    "{more} left: {failure}"
                );
                assert!(failure.why.contains("ulimit -n"), "{failure}");
                let what = failure.why.split([':', '\n']).next().unwrap().to_owned();
                if places.last() != Some(&what) {
                    places.push(what);
                }
            }
        }
        assert!(more < 400, "three to three need {more} descriptors?");
    }
    println!("{places:#?}");
    assert!(places.len() > 3, "{places:?}");
}

#[test]
fn descriptors_end() {
    confined(Limits::default(), || {
        at_every_place(&impatient("publish-subscribe"));
    });
}

#[test]
fn descriptors_end_under_point_to_point() {
    confined(Limits::default(), || {
        at_every_place(&impatient("point-to-point"))
    });
}

fn count(what: &str) -> u64 {
    std::fs::read_dir(format!("/proc/self/{what}"))
        .unwrap()
        .count() as u64
}

/// Waits until so many files are open: libzmq closes them in its own time.
#[track_caller]
fn await_files(files: u64, what: &str) {
    let end = Clock::Monotonic.now() + 60 * SECOND;
    while count("fd") != files {
        assert!(
            Clock::Monotonic.now() < end,
            "{what}: {} open files, expected {files}",
            count("fd")
        );
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn clients_take_what_was_said() {
    confined(Limits::default(), || {
        let scratch = scratch();
        let crowd = Crowd {
            fleets: 1,
            clients: 6,
            publishers: 3,
            subscribers: 3,
            streams: 6,
            links: 9,
            stream_links: 18,
        };
        let compare = |pattern: &str, target: &Target| {
            let settings = impatient(pattern);
            let said = ZeromqDriver.footprint(&settings, target, &crowd);
            let (files, threads) = (count("fd"), count("task"));
            let rig = three_to_three(&settings, target).expect("connects");
            // Messages that a forwarder in this process has accepted are none of the clients'.
            let accepted = said.server_connections;
            await_files(files + said.descriptors + accepted, pattern);
            assert_eq!(count("task") - threads, said.threads, "{pattern}");
            rig.close();
            await_files(files, "closed");
        };
        compare("publish-subscribe", &direct(&scratch));
        compare("point-to-point", &direct(&scratch));
        let files = count("fd");
        let forwarder = tcp_forwarder(&impatient("publish-subscribe"));
        // Mailboxes and epolls of its context, two bound sockets.
        await_files(files + 8 + 6, "a forwarder");
        compare("publish-subscribe", &through(&forwarder));
        forwarder.stop();
    });
}

#[test]
fn ports_end() {
    let limits = Limits {
        ports: Some((40_000, 40_009)),
        ..Limits::default()
    };
    confined(limits, || {
        let scratch = scratch();
        let settings = impatient("publish-subscribe");
        // A publisher takes a port of its own.
        let mut rig = Rig::open(ZeromqDriver, settings.clone(), direct(&scratch), 0);
        let mut bound = Vec::new();
        let failure = loop {
            let id = rig.fleet.connect(&publisher("p")).expect("begins");
            match up(&mut rig, id) {
                Ok(address) => bound.extend(address),
                Err(failure) => break failure,
            }
        };
        assert_eq!(failure.exhausted, Some(Resource::Ports), "{failure}");
        assert_eq!(bound.len(), 10);
        // No port is left to connect to one of them from.
        let subscriber = subscriber("s", &bound[..1]);
        let id = rig.fleet.connect(&subscriber).expect("begins");
        rig.seen.changes.clear();
        let failure = up(&mut rig, id).expect_err("no port");
        assert_eq!(failure.exhausted, Some(Resource::Ports), "{failure}");
        assert!(failure.why.contains("ip_local_port_range"), "{failure}");
    });
}

/// A forwarder with 30 open files, in a process of its own: subscribers that it cannot accept
/// have run out of nothing.
#[test]
fn a_forwarder_runs_out_of_descriptors() {
    const SERVE: &str = "PUBGAUGE_SERVE_FORWARDER";
    let settings = impatient("publish-subscribe");
    if std::env::var_os(SERVE).is_some() {
        leave_files(20);
        let forwarder = tcp_forwarder(&settings);
        println!("serves {}", forwarder.address);
        std::io::stdout().flush().unwrap();
        // Until the other end of standard input is closed.
        let _ = std::io::stdin().read_line(&mut String::new());
        return;
    }
    let mut server = Command::new(std::env::current_exe().unwrap())
        .args([&*this_test(), "--exact", "--nocapture"])
        .env(SERVE, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let address = lines
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| Some(line.split_once("serves ")?.1.to_owned()))
        .expect("serves");
    let mut rig = Rig::open(ZeromqDriver, settings, Target::single(address), 0);
    let failure = (0..100).find_map(|n| {
        let spec = subscriber(&format!("s{n}"), &[]);
        let id = rig.fleet.connect(&spec).expect("begins");
        up(&mut rig, id).err()
    });
    drop(server.stdin.take());
    server.wait().unwrap();
    let failure = failure.expect("20 files do not do for 100 subscribers");
    assert_eq!(failure.exhausted, None, "{failure}");
}

/// Where threads have ended libzmq would end the process.
#[test]
fn threads_end() {
    let limits = Limits {
        account: true,
        ..Limits::default()
    };
    confined(limits, || {
        leave_threads(1);
        let opened: Result<_, DriverError> = ZeromqDriver.open(FleetConfig {
            target: Target::default(),
            settings: Settings::default(),
            max_payload: 1024,
            clients: 1,
            ..FleetConfig::default()
        });
        let error = opened.err().expect("one thread is too few");
        assert_eq!(error.exhausted, Some(Resource::Threads), "{error}");
    });
}
