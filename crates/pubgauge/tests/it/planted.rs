//! A real server at fault, over real sockets: each kind of fault is planted once between a mosquitto and its clients, and the
//! verdict must name it. `crates/runner` plants them many times over, in simulated time.
//!
//! A machine that is busy may add reasons, and make a trial client-bound; what was planted is among the reasons all the same.

use crate::common;

use std::time::Duration;

use pubgauge_testing::mosquitto::Mosquitto;
use pubgauge_testing::throttle::{LaneMessage, MessageFault, QoS, Rules};

use common::*;
use serde_json::Value;

/// A study of one workload, `w`, none of whose messages is a warm-up's.
fn study(seconds: u32, rest: &str) -> String {
    format!(
        "name = \"planted\"\n[phases]\nready-within = \"60s\"\nwarm-up = \"0s\"\nmeasure = \"{seconds}s\"\n\
         drain-within = \"30s\"\n{rest}"
    )
}

/// One flow of 64 bytes on 20 topics, a hundred messages a second for 2 s.
fn steady() -> String {
    flow("payload = \"64B\"\ntopics = 20\nrate = \"100/s\"")
}

fn flow(lines: &str) -> String {
    study(
        2,
        &format!("[[workload]]\nname = \"w\"\n[[workload.flow]]\n{lines}\n"),
    )
}

/// A study that was run, over a server that does to its deliveries what these rules say.
struct Run {
    results: Value,
    /// All that readers see of it.
    printed: String,
}

impl Run {
    fn over(to_client: Rules, study: &str) -> Run {
        let broker = Mosquitto::start();
        let throttle = broker.throttled(Rules::default(), to_client);
        let place = Place::new();
        place.write("study.toml", study);
        let address = format!("mqtt://{}", throttle.address());
        let args = ["run", "study.toml", "--on", &address, "--out", "run", "-v"];
        let done = place.run(&args);
        done.ran_to_its_end();
        let run = Run {
            results: place.results("run"),
            printed: done.err + &done.out,
        };
        println!("{}{}", run.printed, reasons(run.trial()));
        run
    }

    fn trial(&self) -> &Value {
        &self.results["trials"][0]
    }
}

/// A trial over a server with this fault.
fn with_fault(fault: MessageFault, study: &str) -> Value {
    let rules = Rules {
        fault: Some(fault),
        ..Rules::default()
    };
    Run::over(rules, study).trial().clone()
}

/// The rules of a trial's reasons, by their names in `results.json`.
fn rules(trial: &Value) -> Vec<&str> {
    let reasons = trial["verdict"]["reasons"].as_array().unwrap();
    reasons
        .iter()
        .filter_map(|reason| reason["rule"].as_str())
        .collect()
}

#[track_caller]
fn is_by(trial: &Value, status: &str, rule: &str) {
    assert_eq!(verdict(trial), status, "{}", reasons(trial));
    assert!(rules(trial).contains(&rule), "{}", reasons(trial));
}

/// Asserts that none of these rules applied, unless the client had no time.
#[track_caller]
fn is_not_by(trial: &Value, not: &[&str]) {
    let wrong = rules(trial).iter().any(|rule| not.contains(rule));
    assert!(
        verdict(trial) == "client-bound" || !wrong,
        "{}\n{}",
        reasons(trial),
        brief(trial)
    );
}

const QUEUES: [&str; 4] = ["queue-grew", "subscriber-behind", "under-way", "unsent"];

/// Each hundredth of what came; a client that had no time sent less than the 200 that were due.
#[track_caller]
fn counts_each_hundredth(trial: &Value, figure: &str) {
    let hundredths = count(trial, "delivered") / 100;
    assert!(hundredths > 0, "{}", brief(trial));
    assert_eq!(count(trial, figure), hundredths, "{}", brief(trial));
}

#[test]
fn a_damaged_byte_in_the_middle_of_a_body_is_broken() {
    let damage = |message: &mut LaneMessage| {
        if message.is_each(100) {
            message.payload[512] ^= 1;
        }
    };
    let trial = with_fault(damage, &steady().replace("64B", "1KiB"));
    is_by(&trial, "broken", "corrupt");
    counts_each_hundredth(&trial, "odd.corrupt");
}

#[test]
fn a_body_that_was_cut_by_a_byte_is_broken() {
    let cut = |message: &mut LaneMessage| {
        if message.is_each(100) {
            message.payload.pop();
        }
    };
    let trial = with_fault(cut, &steady().replace("64B", "1KiB"));
    is_by(&trial, "broken", "corrupt");
    counts_each_hundredth(&trial, "odd.corrupt");
}

#[test]
fn a_delivery_on_another_topic_is_broken() {
    let misdirect = |message: &mut LaneMessage| {
        if message.is_each(100) {
            message.topic.push('x');
        }
    };
    let trial = with_fault(misdirect, &steady());
    is_by(&trial, "broken", "wrong-topic");
    counts_each_hundredth(&trial, "odd.misdirected");
}

#[test]
fn a_delivery_below_the_quality_that_was_asked_for_is_lossy() {
    let lower = |message: &mut LaneMessage| {
        if message.is_each(100) {
            message.qos = QoS::AtMostOnce;
        }
    };
    let settings = "[[settings]]\nreliability = \"at-least-once\"\n";
    let trial = with_fault(lower, &(steady() + settings));
    is_by(&trial, "lossy", "lower-quality");
    counts_each_hundredth(&trial, "odd.lowered");
}

#[test]
fn a_delivery_behind_later_ones_of_its_topic_is_lossy() {
    let hold_back = |message: &mut LaneMessage| {
        if message.is_each(80) {
            message.later = Duration::from_millis(400);
        }
    };
    let trial = with_fault(hold_back, &steady().replace("topics = 20", "topics = 1"));
    is_by(&trial, "lossy", "out-of-order");
    let held = count(&trial, "delivered") / 80;
    assert!(
        (1..=held).contains(&count(&trial, "reordered")),
        "{}",
        brief(&trial)
    );
}

#[test]
fn one_subscriber_of_twenty_that_falls_behind_is_named() {
    let slow = Rules {
        clients: "w-sub-7-",
        per_s: Some(15.0),
        ..Rules::default()
    };
    let fan = flow("payload = \"64B\"\nsubscribers = 20\nrate = \"20/s\"");
    let run = Run::over(slow, &fan.replace("measure = \"2s\"", "measure = \"4s\""));
    let trial = run.trial();
    let mut rising = trial["parties"]["rising"].as_array().unwrap().iter();
    let named = rising.any(|course| course["party"]["name"] == "w-sub-7");
    assert!(named, "{}", brief(trial));
    // A client without time is told instead.
    if verdict(trial) != "client-bound" {
        is_by(trial, "overloaded", "subscriber-behind");
        let reasons = reasons(trial);
        let named = "subscriber `w-sub-7` fell behind, alone of 20: ";
        assert!(reasons.contains(named), "{reasons}");
    }
}

/// 3 of 150 messages come 200 ms late. That no more than 1 % of all do, so few messages cannot tell.
#[test]
fn a_tail_of_too_few_messages_meets_no_criterion() {
    let late = Rules {
        fault: Some(|message| {
            if message.is_each(50) {
                message.later = Duration::from_millis(200);
            }
        }),
        ..Rules::default()
    };
    let few = flow("payload = \"64B\"\ntopics = 75\nrate = \"75/s\"")
        + "[[criterion]]\nfigure = \"latency.p99\"\nbelow = \"100ms\"\n";
    let run = Run::over(late, &few);
    let trial = run.trial();
    assert!(count(trial, "delivered") <= 150, "{}", brief(trial));
    let p99 = &trial["latency_ns"]["bounds"]["p99"];
    assert_eq!(p99["at_most"], Value::Null, "{p99}");
    let criterion = &run.results["study"]["criteria"][0];
    assert_ne!(criterion["met"], true, "{criterion}");
}

#[test]
fn what_nobody_subscribes_to_is_told_as_taken() {
    let study = flow("payload = \"64B\"\nsubscribers = 0\nrate = \"max\"");
    let run = Run::over(
        Rules::default(),
        &study.replace("measure = \"2s\"", "measure = \"1s\""),
    );
    assert!(run.printed.contains("takes "), "{}", run.printed);
    assert!(!run.printed.contains(" 0/s"), "{}", run.printed);
    assert_ne!(verdict(run.trial()), "broken", "{}", reasons(run.trial()));
}

#[test]
fn a_load_that_rises_over_a_long_path_is_no_queue() {
    let far = Rules {
        delay: Duration::from_millis(100),
        ..Rules::default()
    };
    let rising = study(
        4,
        "[[workload]]\nname = \"w\"\n[[workload.flow]]\nname = \"first\"\ntopic = \"a\"\npayload = \"64B\"\nrate = \"50/s\"\n\
         [[workload.flow]]\nname = \"later\"\ntopic = \"b\"\npayload = \"64B\"\nrate = \"250/s\"\nstart = \"2s\"\n",
    );
    let run = Run::over(far, &rising);
    adds_up(run.trial());
    is_not_by(run.trial(), &QUEUES);
}

/// The last message of one topic of a hundred, with the sentinel behind it: order is kept.
#[test]
fn one_late_message_at_the_end_is_no_standstill() {
    let hold_back = |message: &mut LaneMessage| {
        if message.number > 1_900 && message.topic.ends_with("/7") {
            message.later = Duration::from_secs(3);
        }
    };
    let steady = "payload = \"64B\"\ntopics = 100\nrate = \"1k/s\"";
    let trial = with_fault(hold_back, &flow(steady));
    adds_up(&trial);
    if count(&trial, "not_sent") == 0 {
        assert!(trial["latency_ns"]["max"].as_u64().unwrap() > 2_900_000_000);
    }
    is_not_by(&trial, &["system-silent"]);
    is_not_by(&trial, &QUEUES);
}
