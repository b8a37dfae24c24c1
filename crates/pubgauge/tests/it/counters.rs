//! Counts against mosquitto's own, to the message.

use pubgauge_testing::mosquitto::Mosquitto;

use crate::common;

use common::*;
use serde_json::Value;

/// Two publishers and three subscribers who all hear everything, against a fresh mosquitto whose
/// only other client is the one that reads the counters, afterwards.
fn counts_agree(mqtt: &str, qos: &str, rate: &str) {
    let place = Place::new();
    let broker = Mosquitto::start();
    let address = broker.address();
    let mut args = vec!["run", "--on", &address, "--out", "run"];
    args.extend(["--publishers", "2", "--subscribers", "3", "--rate", rate]);
    args.extend(["--mqtt", mqtt, "--qos", qos]);
    args.extend(SHORT);
    place.run(&args);
    place.is_clean();
    let trial = place.trial("run");
    assert_ne!(verdict(&trial), "broken", "{}", reasons(&trial));
    adds_up(&trial);
    let published = count(&trial, "published")
        + count(&trial, "warm_up.published")
        + count(&trial, "sentinels");
    assert!(count(&trial, "warm_up.published") > 0 && count(&trial, "sentinels") > 0);
    assert_eq!(
        count(&trial, "warm_up.delivered"),
        3 * count(&trial, "warm_up.published")
    );
    assert_eq!(count(&trial, "delivered"), 3 * count(&trial, "published"));

    let names = [
        "messages/received",
        "publish/messages/received",
        "publish/messages/sent",
    ];
    let [packets, received, sent] = broker.counters(names).map(i64::unsigned_abs);
    let what = format!("MQTT {mqtt}, QoS {qos}, {rate}");
    assert_eq!(sent, 3 * published, "{what}: sent to the subscribers");
    if qos == "2" && rate == "max" {
        // The last handshakes of a queue that is cut off are not all completed, so that only
        // PUBLISH packets can be compared; those received mosquitto does not count.
        assert!(
            packets >= 2 * published + 3 * published,
            "{what}: {packets}"
        );
    } else if qos == "2" {
        // mosquitto 2.0.11 leaves QoS 2 out of its count of PUBLISH received. Its count of all
        // packets has them: CONNECT and DISCONNECT of all, SUBSCRIBE of three, PUBLISH and PUBREL
        // of each message, PUBREC and PUBCOMP of each delivery. Those of the reading client's own
        // that came before its subscription was answered count too: CONNECT and SUBSCRIBE. Two clients have tried the
        // address before.
        let ours = 2 * (5 + 2) + 3 + 2 * published + 2 * 3 * published;
        assert!(
            (ours..=ours + 2).contains(&packets),
            "{what}: {packets} packets received, expected {ours} and the reader's"
        );
    } else {
        assert_eq!(received, published, "{what}: received from the publishers");
    }
}

#[test]
fn counts_agree_under_3_1_1_at_qos_0() {
    counts_agree("3.1.1", "0", "500/s");
}

#[test]
fn counts_agree_under_3_1_1_at_qos_1() {
    counts_agree("3.1.1", "1", "500/s");
}

#[test]
fn counts_agree_under_3_1_1_at_qos_2() {
    counts_agree("3.1.1", "2", "500/s");
}

#[test]
fn counts_agree_under_5_at_qos_0() {
    counts_agree("5", "0", "500/s");
}

#[test]
fn counts_agree_under_5_at_qos_1() {
    counts_agree("5", "1", "500/s");
}

#[test]
fn counts_agree_under_5_at_qos_2() {
    counts_agree("5", "2", "500/s");
}

/// The comparisons of a trial with what its system counted.
fn with_the_system<'a>(trial: &'a Value, system: &str) -> Vec<&'a Value> {
    let checks = trial["checks"].as_array().unwrap().iter();
    checks
        .filter(|check| check["counts"][1][0] == system)
        .collect()
}

/// A broker whose file names its count of received bytes as that of received messages.
#[test]
fn a_system_that_counts_otherwise_makes_the_trial_broken() {
    let place = Place::new();
    let bytes = [("publish/messages/received", "publish/bytes/received")];
    place.system("mosquitto", "liar", &bytes);
    let mut args = vec!["run", "--systems", "mine", "--on", "liar"];
    args.extend(["--publishers", "1", "--subscribers", "3", "--rate", "500/s"]);
    args.extend(SHORT);
    // Where the broker gets no processor, its counts come too late to be compared.
    let trial = (1..=20).find_map(|number| {
        let out = format!("run-{number}");
        let done = place.run(&[&args[..], &["--out", &out]].concat());
        place.is_clean();
        let trial = place.trial(&out);
        // A count that was not read names no system.
        let are_read = !with_the_system(&trial, "liar").is_empty();
        are_read.then(|| done.exits(2))?;
        Some(trial)
    });
    let trial = trial.expect("counts that are read");
    let checks = &trial["checks"];
    assert_eq!(verdict(&trial), "broken", "{} {checks}", reasons(&trial));
    let published = count(&trial, "published")
        + count(&trial, "warm_up.published")
        + count(&trial, "sentinels");
    let said = format!("messages published differ: {published} by the publishers, ");
    assert!(reasons(&trial).contains(&said), "{}", reasons(&trial));
}

/// Tests that take long.
mod long {
    use super::*;

    #[test]
    fn counts_agree_flat_out() {
        for qos in ["0", "1", "2"] {
            counts_agree("5", qos, "max");
        }
    }

    /// Every trial compares on its own, and the numbers are those of the figures.
    #[test]
    fn started_systems_are_asked_for_their_counts() {
        for (system, both, qos) in [
            ("mosquitto", true, "1"),
            ("reference-broker", true, "1"),
            ("nats:mqtt", false, "1"),
            ("nats", true, "0"),
        ] {
            let place = Place::new();
            let mut args = vec!["run", "--on", system, "--out", "run", "--rate", "2000/s"];
            args.extend(["--publishers", "3", "--subscribers", "2", "--qos", qos]);
            args.extend(SHORT);
            place.run(&args);
            place.is_clean();
            let trial = place.trial("run");
            assert_ne!(verdict(&trial), "broken", "{}", reasons(&trial));
            let checks = with_the_system(&trial, system);
            assert_eq!(
                checks.len(),
                if both { 2 } else { 1 },
                "{}",
                trial["checks"]
            );
            let published = count(&trial, "published")
                + count(&trial, "warm_up.published")
                + count(&trial, "sentinels");
            assert_eq!(checks[0]["counts"][0][1], published);
            for check in checks {
                assert_eq!(check["not_compared"], Value::Null, "{check}");
                let [ours, theirs] = [0, 1].map(|n| check["counts"][n][1].as_u64().unwrap());
                let tolerance = count(check, "tolerance");
                assert!(
                    ours.abs_diff(theirs) <= tolerance && tolerance <= 10,
                    "{check}"
                );
            }
        }
    }
}
