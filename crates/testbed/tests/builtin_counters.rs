//! The counts of the systems that are pubgauge itself: this program starts itself again as what
//! `pubgauge serve` is.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use pubgauge_driver::{Driver, OnFull, Reliability, Settings};
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_driver_zeromq::{ForwarderOptions, ZeromqDriver, forwarder};
use pubgauge_testbed::file::Counters;
use pubgauge_testbed::{SystemCount, SystemCounts};
use traffic::{Traffic, counted, start, system};

#[path = "it/traffic/mod.rs"]
mod traffic;

const MANY: Traffic = Traffic {
    publishers: 7,
    subscribers: 3,
    heard: 300,
    unheard: 200,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).skip(1).collect();
    match words[..] {
        ["serve", "reference-broker", "--listen", address] => serve_broker(address),
        [
            "serve",
            "zeromq-forwarder",
            "--publishers",
            one,
            "--subscribers",
            other,
            "--settings",
            settings,
        ] => serve_forwarder(one, other, settings),
        _ => {
            return pubgauge_testing::own_main(&[
                (
                    "the_reference_broker_counts_both",
                    the_reference_broker_counts_both,
                ),
                (
                    "it_counts_from_its_start_only",
                    it_counts_from_its_start_only,
                ),
                (
                    "what_topics_do_not_tell_is_not_read",
                    what_topics_do_not_tell_is_not_read,
                ),
                (
                    "the_forwarder_counts_what_it_forwards",
                    the_forwarder_counts_what_it_forwards,
                ),
            ]);
        }
    }
    ExitCode::SUCCESS
}

fn serve_broker(address: &str) {
    let options = pubgauge_broker::Options {
        listen: address.parse().expect("an address"),
        ..Default::default()
    };
    let ready = |address| println!("ready {address}");
    pubgauge_broker::run(options, ready, &AtomicBool::new(false)).expect("serves");
}

fn serve_forwarder(publishers: &str, subscribers: &str, settings: &str) {
    let (host, port) = publishers
        .trim_start_matches("tcp://")
        .rsplit_once(':')
        .unwrap();
    let (_, port2) = subscribers.rsplit_once(':').unwrap();
    let address = format!("zmq-forwarder+tcp://{host}:{port},{port2}");
    let address = address.parse().expect("an address");
    let settings = std::fs::read_to_string(settings).expect("what is asked for");
    assert_eq!(settings, "{}", "nothing is asked for");
    let options = ForwarderOptions::new(address, &Settings::default()).expect("options");
    let ready = |address: &_| println!("ready {address}");
    forwarder::run(&options, ready, &AtomicBool::new(false)).expect("serves");
}

fn the_reference_broker_counts_both() {
    let system = system("reference-broker");
    for reliability in [
        Reliability::AtMostOnce,
        Reliability::AtLeastOnce,
        Reliability::ExactlyOnce,
    ] {
        let scratch = tempfile::tempdir().unwrap();
        let running = start(&system, None, MqttDriver, scratch.path());
        let settings = Settings {
            reliability: Some(reliability),
            ..Settings::default()
        };
        let (happened, counted) = counted(&running, &MqttDriver, &settings, MANY);
        assert_eq!(counted, happened.both(), "{reliability:?} {happened:?}");
    }
}

fn it_counts_from_its_start_only() {
    let scratch = tempfile::tempdir().unwrap();
    let settings = Settings::default();
    let mut running = start(
        &system("reference-broker"),
        None,
        MqttDriver,
        scratch.path(),
    );
    let counting = running
        .begin_counting(std::slice::from_ref(&settings))
        .unwrap();
    running.restart().unwrap();
    let Some(SystemCount::NotRead(why)) =
        counting.finish(&running, &MqttDriver, |_| true).published
    else {
        panic!("the count went on over a restart");
    };
    assert!(why.contains("started again"), "{why}");
    let counting = running
        .begin_counting(std::slice::from_ref(&settings))
        .unwrap();
    let first = counting.finish(&running, &MqttDriver, |_| true);
    assert_eq!(first.published, Some(SystemCount::Messages(0)));
    let Some(SystemCount::NotRead(why)) =
        counted(&running, &MqttDriver, &settings, MANY).1.published
    else {
        panic!("the second trial's count has what the first one left");
    };
    assert!(why.contains("has served a trial already"), "{why}");
    running.kill();
    let Some(SystemCount::NotRead(why)) =
        counting.finish(&running, &MqttDriver, |_| true).published
    else {
        panic!("a killed broker told its count");
    };
    assert!(why.contains("SIGKILL"), "{why}");
}

fn what_topics_do_not_tell_is_not_read() {
    let not_read = |change: fn(&mut Counters), paused: bool| {
        let mut system = system("reference-broker");
        let mut counters = system.counters.take().unwrap();
        counters.time_out_s = 0.5;
        change(&mut counters);
        system.counters = Some(counters);
        let scratch = tempfile::tempdir().unwrap();
        let running = start(&system, None, MqttDriver, scratch.path());
        let counting = running.begin_counting(&[Settings::default()]).unwrap();
        running.pause(paused);
        let counted = counting.finish(&running, &MqttDriver, |_| false);
        running.pause(false);
        match counted.published {
            Some(SystemCount::NotRead(why)) => why,
            other => panic!("it was read: {other:?}"),
        }
    };
    assert_eq!(
        not_read(|c| c.update = Some("$SYS/none".into()), false),
        "no update on $SYS/none in time"
    );
    let none = |c: &mut Counters| c.published.as_mut().unwrap().topic = Some("none".into());
    assert_eq!(not_read(none, false), "no message on none in time");
    let text = |c: &mut Counters| {
        c.published.as_mut().unwrap().topic = Some("$SYS/broker/version".into());
    };
    let said = not_read(text, false);
    assert!(said.ends_with("`, which is no count"), "{said}");
    assert_eq!(not_read(|_| {}, true), "no answer to a login in time");
}

fn the_forwarder_counts_what_it_forwards() {
    let scratch = tempfile::tempdir().unwrap();
    let system = system("zeromq-forwarder");
    let mut settings = Settings::default();
    let running = start(&system, None, ZeromqDriver, scratch.path());
    // One subscriber, who gets all that is forwarded.
    let one = Traffic {
        subscribers: 1,
        ..MANY
    };
    let (happened, counted) = counted(&running, &ZeromqDriver, &settings, one);
    let routed = |count| SystemCounts {
        published: Some(count),
        delivered: None,
    };
    assert_eq!(
        counted,
        routed(SystemCount::Routed(happened.delivered)),
        "{happened:?}"
    );
    settings.on_full = Some(OnFull::Drop);
    assert!(ZeromqDriver.resolve(&settings, &running.target).is_ok());
    let counting = running
        .begin_counting(std::slice::from_ref(&settings))
        .unwrap();
    let why = "with on-full:drop: publishers drop what does not fit into their queues, before the forwarder";
    assert_eq!(
        counting.finish(&running, &ZeromqDriver, |_| true),
        routed(SystemCount::NotComparable(why.into()))
    );
}
