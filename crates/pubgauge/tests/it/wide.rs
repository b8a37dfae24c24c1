//! One client with thousands of topics or subscriptions of its own.

use crate::common;

use common::*;

/// One publisher, one subscriber, and so many topics, which the subscriber asks for one by one.
fn study(topics: u32) -> String {
    format!(
        r#"
name = "wide"
[phases]
warm-up = "200ms"
measure = "1s"
ready-within = "60s"
[[workload]]
name = "wide"
[[workload.flow]]
pattern = "1-1"
publishers = 1
subscribers = 1
topics = {topics}
payload = "64B"
rate = "200/s"
"#
    )
}

#[track_caller]
fn counts_all(topics: u32, system: &str) {
    let place = Place::new();
    place.write("wide.toml", study(topics));
    place.run(&["run", "wide.toml", "--on", system, "--out", "run"]);
    place.is_clean();
    let trial = place.trial("run");
    assert_ne!(verdict(&trial), "broken", "{system}: {}", reasons(&trial));
    adds_up(&trial);
    assert_eq!(trial["workload"]["topics"], topics);
}

#[test]
fn an_mqtt_client_has_more_subscriptions_than_numbers_for_its_requests() {
    for system in ["mosquitto", "reference-broker"] {
        counts_all(3000, system);
    }
}

#[test]
fn a_zeromq_publisher_has_more_topics_than_its_queue_holds_messages() {
    for topics in [1200, 3000] {
        counts_all(topics, "zeromq-direct");
    }
}

mod long {
    use super::counts_all;

    #[test]
    fn a_client_has_ten_thousand_topics() {
        for system in ["mosquitto", "zeromq-direct"] {
            counts_all(10_000, system);
        }
    }
}

/// A reader's topics are announced in one datagram: more than it holds are refused with whose limit that is.
#[cfg(feature = "fastdds")]
#[test]
fn more_topics_than_fast_dds_can_announce_are_told() {
    let place = Place::new();
    place.write("wide.toml", study(3000));
    place.run(&["run", "wide.toml", "--on", "fastdds", "--out", "run"]);
    let trial = place.trial("run");
    is_broken(&trial, &["3000 topics", "Fast DDS announces", "about 2"]);
}
