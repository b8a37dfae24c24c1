//! A fleet leaves nothing on a real ejabberd when it has been closed.

use crate::common;

use std::time::Duration;

use common::{Ejabberd, text};
use pubgauge_driver::{Settings, monotonic_now};
use pubgauge_testing::SECOND;

const TOPICS: [&str; 3] = ["trial/early", "trial/other", "site/theirs"];

fn lasting() -> Settings {
    Settings {
        last_value: Some(true),
        ..Settings::default()
    }
}

/// The topics of which a newcomer gets a last value: those of nodes that are there.
fn last_values(server: &Ejabberd) -> Vec<String> {
    let mut late = server.rig(lasting());
    let newcomer = late.named_subscriber("late");
    for topic in TOPICS {
        late.subscribe(newcomer, topic);
    }
    late.until("theirs", |seen| {
        seen.messages.iter().any(|m| m.topic == "site/theirs")
    });
    late.poll_for(Duration::from_millis(500));
    // The last that was published on each topic is the topic's name.
    for message in &late.seen.messages {
        assert_eq!(text(message), message.topic.as_bytes());
    }
    let messages = late.seen.messages.iter();
    let mut topics: Vec<_> = messages.map(|m| m.topic.clone()).collect();
    topics.sort_unstable();
    // Its own nodes, made where there was none, go with it.
    late.fleet.close(monotonic_now() + 5 * SECOND);
    assert_eq!(late.fleet.left_behind(), None);
    topics
}

#[test]
fn nodes_are_gone_after_the_end_but_for_those_of_others() {
    let server = Ejabberd::start("xmpp");
    let mut theirs = server.rig(lasting());
    let owner = theirs.named_publisher("owner");
    let topic = theirs.fleet.advertise(owner, "site/theirs").unwrap();
    theirs.publish_body(owner, topic, b"before", 0);
    theirs.until("answered", |seen| seen.acknowledged.len() == 1);

    let mut trial = server.rig(lasting());
    let publisher = trial.named_publisher("p");
    let subscriber = trial.named_subscriber("s");
    // Made by the subscriber, made by the publisher, there before.
    trial.subscribe(subscriber, TOPICS[0]);
    for (tag, name) in TOPICS.iter().enumerate() {
        let topic = trial.fleet.advertise(publisher, name).unwrap();
        trial.publish_body(publisher, topic, name.as_bytes(), tag as u64);
    }
    trial.until("answered", |seen| seen.acknowledged.len() == TOPICS.len());
    assert_eq!(
        last_values(&server),
        ["site/theirs", "trial/early", "trial/other"]
    );
    let start = monotonic_now();
    // It would wait until the end of its time for a node that stays.
    trial.fleet.close(start + 120 * SECOND);
    assert!(monotonic_now() - start < 100 * SECOND, "it waited in vain");
    assert_eq!(trial.fleet.left_behind(), None);
    assert_eq!(last_values(&server), ["site/theirs"]);
}
