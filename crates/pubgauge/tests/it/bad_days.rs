//! Systems that fail: each time a clear message, no orphan process, and what was measured kept
//! and marked.

use crate::common;

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pubgauge_testing::free_port;
use pubgauge_testing::meddling::Scripted;
use pubgauge_testing::mosquitto::Mosquitto;
use pubgauge_testing::throttle::Rules;

use common::hypervisor;
use common::*;
use serde_json::Value;

/// Longer than any test waits: a run on a dead system must end by itself.
const LONG: [&str; 4] = ["--duration", "100s", "--warm-up", "200ms"];
/// How soon after the system's death a run has to be over, results written and all.
const SOON: Duration = Duration::from_secs(60);

/// A study whose clients have a second to get ready.
const IMPATIENT: &str = r#"
name = "impatient"
[phases]
ready-within = "1500ms"
warm-up = "200ms"
measure = "1s"
[[workload]]
name = "pair"
[[workload.flow]]
payload = "64B"
rate = "100/s"
[[criterion]]
figure = "latency.p99"
below = "1h"
[[criterion]]
figure = "lost"
equals = 0
[[criterion]]
figure = "delivered-rate"
at-least = "1/s"
"#;

fn long_run(on: &str) -> Vec<&str> {
    let mut args = vec!["run", "--on", on, "--rate", "500/s", "--out", "run"];
    args.extend(LONG);
    args
}

/// Runs the impatient study on an address with which no trial can be measured.
#[track_caller]
fn impatient(address: &str) -> (Place, Done) {
    let place = Place::new();
    place.write("impatient.toml", IMPATIENT);
    let (on, junit) = (["--on", address], ["--junit", "j.xml"]);
    let args = [&["run", "impatient.toml", "--out", "run"][..], &on, &junit].concat();
    let done = place.run(&args).exits(2);
    (place, done)
}

/// Runs the impatient study on an address; it must come to no measurement, so that no criterion is decided.
#[track_caller]
fn never_ready(address: &str, because: &[&str]) -> Value {
    let (place, done) = impatient(address);
    let junit = std::fs::read_to_string(place.path_to("j.xml")).unwrap();
    place.is_clean();
    assert!(done.err.contains("broken: "), "{}", done.err);
    assert!(done.out.contains("cannot tell: "), "{}", done.out);
    assert!(!done.out.contains("NOT MET"), "{}", done.out);
    // Three criteria and the trial.
    assert_eq!(junit.matches("<error").count(), 4, "{junit}");
    assert_eq!(junit.matches("<failure").count(), 0, "{junit}");
    let trial = place.trial("run");
    is_broken(&trial, because);
    assert_eq!(count(&trial, "published"), 0);
    trial
}

/// Runs the impatient study on an address that refuses; nothing may be measured, and nothing made.
#[track_caller]
fn refused(address: &str, because: &[&str]) {
    let (place, done) = impatient(address);
    for words in ["nothing was measured", "hint: "].iter().chain(because) {
        assert!(done.err.contains(words), "{}", done.err);
    }
    assert_eq!(done.err.matches("hint: ").count(), 1, "{}", done.err);
    assert!(!place.path_to("run").exists(), "a folder was made");
    place.is_clean();
}

/// Trials measured before the cut are in the results, and marked.
#[track_caller]
fn kept_and_marked(trial: &Value, because: &[&str]) {
    is_broken(trial, because);
    assert!(count(trial, "published") > 0, "{}", brief(trial));
    assert!(count(trial, "delivered") > 0, "{}", brief(trial));
    assert_eq!(
        count(trial, "latency_ns.count"),
        count(trial, "delivered"),
        "every delivery has its latency"
    );
    let duration = trial["duration_s"].as_f64().unwrap();
    assert!(duration > 0.0 && duration < 50.0, "{duration} s");
}

#[test]
fn nobody_is_there() {
    let address = format!("mqtt://127.0.0.1:{}", free_port());
    refused(&address, &["refused", "nothing listens there"]);
}

#[test]
fn the_host_has_no_address() {
    refused(
        "mqtt://no-such-host.invalid:1883",
        &["no-such-host.invalid"],
    );
}

#[test]
fn the_broker_refuses_strangers() {
    let broker = Mosquitto::with_password("abc", "");
    refused(&broker.address(), &["hint: ", "user"]);
}

#[test]
fn the_server_takes_connections_and_says_nothing() {
    let server = Scripted::silent();
    never_ready(
        &server.address(),
        &["only 0 of 2 clients were connected and subscribed within 1.5 s"],
    );
}

#[test]
fn the_server_hangs_up_at_once() {
    let server = Scripted::start(|_, _| {});
    // A reset, if what the client said first was still unread.
    refused(&server.address(), &["connection"]);
}

#[test]
fn the_server_hangs_up_after_connack() {
    let server = Scripted::answering(vec![0x20, 0x03, 0x00, 0x00, 0x00], true);
    let (place, done) = impatient(&server.address());
    // A client that reads answer and end at once was never connected; one that reads them one after the other lost its connection,
    // and tries again until the time is up.
    let refused = done.err.contains("nothing was measured");
    let lost = done
        .err
        .contains("of 2 clients were connected and subscribed within");
    assert!(refused || lost, "{}", done.err);
    for words in ["connection", "hint: "] {
        assert!(done.err.contains(words), "{}", done.err);
    }
    place.is_clean();
}

#[test]
fn the_server_sends_garbage() {
    let server = Scripted::answering(vec![0xff; 3000], false);
    refused(&server.address(), &["mqtt://"]);
}

#[test]
fn the_server_speaks_another_protocol() {
    let hello = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n".to_vec();
    let server = Scripted::answering(hello, false);
    refused(&server.address(), &["mqtt://"]);
}

/// A check whose broker is killed tells that, and not one failure after the other.
#[test]
fn a_check_whose_broker_is_killed_tells_the_death() {
    let place = Place::new();
    let check = place.start(&["check", "--on", "mosquitto:memory", "--verbose"]);
    let end = Instant::now() + Duration::from_secs(60);
    let broker = loop {
        let mut all = place.processes().into_iter();
        if let Some((pid, _)) = all.find(|(_, of)| of.contains("mosquitto -c")) {
            break pid;
        }
        assert!(Instant::now() < end, "{:?}", place.processes());
        std::thread::sleep(Duration::from_millis(20));
    };
    works(broker);
    kill(broker, libc::SIGKILL);
    let done = check.ends_within(Duration::from_secs(60)).exits(1);
    place.is_clean();
    assert!(
        done.out.contains("the system ended meanwhile"),
        "{}",
        done.out
    );
    let failed = done.out.lines().filter(|line| line.contains("FAILED"));
    assert!(failed.count() <= 2, "{}", done.out);
}

/// A trial of which what the broker sends is spoilt from the middle on.
fn spoilt_in_the_middle() -> Value {
    let broker = Mosquitto::start();
    let spoil = Arc::new(AtomicBool::new(false));
    let flag = spoil.clone();
    let server = Scripted::meddling(broker.port, move || {
        let flag = flag.clone();
        move |bytes: &[u8], client: &mut TcpStream, _: &AtomicBool| {
            if flag.load(Ordering::Relaxed) {
                return client.write_all(&vec![0xff; bytes.len()]);
            }
            client.write_all(bytes)
        }
    });
    let place = Place::new();
    let address = server.address();
    let mut args = vec!["run", "--on", &address, "--rate", "500/s", "--out", "run"];
    args.extend(["--duration", "3s", "--warm-up", "200ms"]);
    let mut run = place.start(&args);
    run.measures();
    works(broker.pid());
    spoil.store(true, Ordering::Relaxed);
    run.wait_for_end().exits(2);
    place.is_clean();
    place.trial("run")
}

#[test]
fn the_connections_are_closed_in_the_middle() {
    let broker = Mosquitto::start();
    let throttle = broker.throttled(Rules::default(), Rules::default());
    let place = Place::new();
    let address = format!("mqtt://{}", throttle.address());
    let mut run = place.start(&long_run(&address));
    run.measures();
    works(broker.pid());
    assert_eq!(throttle.cut(""), 2);
    run.ends_within(SOON).exits(2);
    place.is_clean();
    kept_and_marked(
        &place.trial("run"),
        &["all 2 connections were lost", "closed"],
    );
}

/// Kills a system that pubgauge itself started, in the middle.
fn killed_in_the_middle(system: &str) {
    let place = Place::new();
    let mut run = place.start(&long_run(system));
    run.measures();
    let systems = run.systems();
    assert_eq!(systems.len(), 1, "{systems:?}");
    works(systems[0]);
    kill(systems[0], libc::SIGKILL);
    let done = run.ends_within(SOON).exits(2).assert_says("broken: ");
    place.is_clean();
    assert!(done.out.contains(system), "{}", done.out);
    kept_and_marked(
        &place.trial("run"),
        &["was ended by SIGKILL", "the system ended during the trial"],
    );
}

#[test]
fn mosquitto_is_killed() {
    killed_in_the_middle("mosquitto");
}

#[test]
fn the_reference_broker_is_killed() {
    killed_in_the_middle("reference-broker");
}

#[test]
fn the_forwarder_is_killed() {
    killed_in_the_middle("zeromq-forwarder");
}

#[test]
fn a_killed_system_does_not_keep_the_others_from_being_measured() {
    let place = Place::new();
    let mut args = vec!["run", "--on", "reference-broker,mosquitto", "--out", "run"];
    args.extend(["--rate", "200/s", "--duration", "3s", "--warm-up", "200ms"]);
    let mut run = place.start(&args);
    run.measures();
    kill(run.systems()[0], libc::SIGKILL);
    run.wait_for_end().exits(2);
    place.is_clean();
    let results = place.results("run");
    let trials = results["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 2);
    is_broken(&trials[0], &["was ended by SIGKILL"]);
    adds_up(&trials[1]);
    assert_ne!(verdict(&trials[1]), "broken");
}

#[test]
fn a_broker_that_ran_already_is_killed() {
    let place = Place::new();
    let broker = Mosquitto::start();
    let address = broker.address();
    let mut run = place.start(&long_run(&address));
    run.measures();
    works(broker.pid());
    broker.signal(libc::SIGKILL);
    run.ends_within(SOON).exits(2);
    place.is_clean();
    kept_and_marked(&place.trial("run"), &["all 2 connections were lost"]);
}

#[test]
fn a_system_that_ends_before_it_is_ready_says_why() {
    let place = Place::new();
    let option = [("listener {port}", "no_such_option 1\nlistener {port}")];
    place.system("mosquitto", "spoilt", &option);
    let mut args = vec!["run", "--systems", "mine", "--on", "spoilt", "--out", "run"];
    args.extend(SHORT);
    place.run(&args).exits(2).assert_says("no_such_option");
    place.is_clean();
    is_broken(&place.trial("run"), &["spoilt", "no_such_option"]);
}

#[test]
fn a_system_that_does_not_end_when_asked_is_said() {
    let place = Place::new();
    place.stubborn_system("0.5");
    let mut args = argv("run --systems mine --on stubborn --out run");
    args.extend(["--rate", "100/s"]);
    args.extend(SHORT);
    let done = place.run(&args).assert_says("stubborn had to be killed");
    done.ran_to_its_end();
    place.is_clean();
    let said = place.trial("run")["not_in_order"][0].to_string();
    assert!(said.contains("did not end in time"), "{said}");
}

/// Stops (SIGSTOP) a private mosquitto in the middle, continues it after a while if asked, and
/// gives the trial.
fn stopped_in_the_middle(own: bool, qos: &str, go_on_after: Option<Duration>) -> Value {
    let place = Place::new();
    let broker = Mosquitto::start();
    let address = broker.address();
    let on = if own { "mosquitto" } else { &address };
    let mut args = vec![
        "run", "--on", on, "--rate", "500/s", "--qos", qos, "--out", "run",
    ];
    args.extend(["--duration", "3s", "--warm-up", "200ms"]);
    let mut run = place.start(&args);
    run.measures();
    let pid = if own { run.systems()[0] } else { broker.pid() };
    works(pid);
    kill(pid, libc::SIGSTOP);
    if let Some(time) = go_on_after {
        std::thread::sleep(time);
        kill(pid, libc::SIGCONT);
    }
    let done = run.ends_within(Duration::from_secs(60));
    place.is_clean();
    let trial = place.trial("run");
    if go_on_after.is_none() {
        done.exits(2);
    }
    trial
}

#[test]
fn the_broker_hangs_and_goes_on() {
    for qos in ["0", "1"] {
        let trial = stopped_in_the_middle(false, qos, Some(Duration::from_millis(700)));
        assert_ne!(verdict(&trial), "broken", "{}", reasons(&trial));
        adds_up(&trial);
        // Where some messages did not leave before the end, there is no largest latency.
        let longest = trial["latency_ns"]["max"].as_u64();
        assert!(
            longest.map_or(count(&trial, "not_sent") > 0, |ns| ns >= 600_000_000),
            "latency runs from when the message should have been sent: {}",
            brief(&trial)
        );
    }
}

#[test]
fn the_broker_runs_out_of_file_descriptors() {
    let place = Place::new();
    let broker = Mosquitto::with_open_files(40);
    let study = IMPATIENT.replace("payload", "pattern = \"n-1\"\npublishers = 100\npayload");
    place.write("many.toml", study.replace("1500ms", "3s"));
    let began = Instant::now();
    place
        .run(&[
            "run",
            "many.toml",
            "--on",
            &broker.address(),
            "--out",
            "run",
        ])
        .exits(2);
    assert!(began.elapsed() < Duration::from_secs(30));
    place.is_clean();
    let trial = place.trial("run");
    let made = count(&trial, "connections.made");
    assert_eq!(count(&trial, "connections.planned"), 101);
    assert!((1..40).contains(&made), "{made} connections made");
    is_broken(&trial, &[&format!("{made} of 101 connections were made")]);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let place = Place::new();
    place
        .run(&["serve", "reference-broker", "--listen", &address])
        .exits(2)
        .assert_says(&address)
        .assert_says("in use");
    let port = format!("tcp://{address}");
    let other = format!("tcp://127.0.0.1:{}", free_port());
    place
        .run(&[
            "serve",
            "zeromq-forwarder",
            "--publishers",
            &port,
            "--subscribers",
            &other,
        ])
        .exits(2)
        .assert_says("in use");
    place.is_clean();
}

/// Tests that need a machine that is not busy with other things.
mod real_time {
    use super::*;

    #[test]
    fn garbage_in_the_middle() {
        let trial = calm(spoilt_in_the_middle);
        // The verdict says what was sent, and by whom.
        let first = trial["client_failures"][0]["why"].as_str().unwrap();
        assert!(first.contains("mqtt://"), "{first}");
        kept_and_marked(&trial, &["connections were lost", first]);
    }

    #[test]
    fn the_broker_hangs_for_good() {
        for (own, qos) in [(true, "0"), (false, "0"), (false, "1")] {
            let trial = calm(|| stopped_in_the_middle(own, qos, None));
            let status = verdict(&trial).to_owned();
            assert!(
                ["lossy", "overloaded", "broken"].contains(&status.as_str()),
                "{status}"
            );
            assert!(
                count(&trial, "delivered") > 0,
                "QoS {qos}: what came before is kept: {}",
                brief(&trial)
            );
            assert!(
                count(&trial, "lost") > 0 || count(&trial, "not_sent") > 0,
                "QoS {qos}: what the hang cost is counted"
            );
        }
    }
}

/// A hypervisor that takes processor time, as the kernel tells of it, while a real broker is measured. The kernel's
/// figures are replaced for the run alone; its clock is no part of them, so that a busy machine changes nothing.
#[test]
fn processor_time_that_a_hypervisor_takes_is_told() {
    for (percent, told) in [(10, true), (1, false)] {
        let place = Place::new();
        let mut args = vec![
            "run",
            "--on",
            "mosquitto",
            "--rate",
            "200/s",
            "--out",
            "run",
        ];
        args.extend(["--duration", "2s", "--warm-up", "200ms"]);
        hypervisor::takes(percent, &place.path_to("stat"), || {
            let command = place.command_apart(&["--mount"], "mount --bind stat /proc/stat", &args);
            place.finish(command).ran_to_its_end();
        });
        let trial = place.trial("run");
        let stolen = trial["worker_load"]["machine_stolen"].as_f64().unwrap();
        assert!((stolen - percent as f64 / 100.0).abs() < 1e-9, "{stolen}");
        let rules = trial["verdict"]["reasons"].as_array().unwrap().iter();
        let mut rules = rules.map(|reason| reason["rule"].as_str().unwrap());
        assert_eq!(
            rules.any(|rule| rule == "time-stolen"),
            told,
            "{}",
            brief(&trial)
        );
        if told {
            assert_eq!(verdict(&trial), "client-bound", "{}", brief(&trial));
        }
    }
}
