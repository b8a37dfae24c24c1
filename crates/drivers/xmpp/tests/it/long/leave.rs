//! What a fleet leaves on a real ejabberd when it has been closed: nothing.

use crate::common;

use common::{Ejabberd, Rig, text};
use pubgauge_driver::{Settings, Target, clock};

const TOPICS: [&str; 3] = ["trial/early", "trial/other", "site/theirs"];

fn lasting() -> Settings {
    Settings {
        last_value: Some(true),
        ..Settings::default()
    }
}

/// The last values that a newcomer gets: those of nodes that are there.
fn last_values(target: &Target, patience_ms: u64) -> Vec<String> {
    let mut late = Rig::open(target, &lasting());
    let newcomer = late.connect("late", true);
    for topic in TOPICS {
        late.subscribe(newcomer, topic);
    }
    late.until("theirs", |seen| {
        seen.delivered.iter().any(|m| text(m) == b"site/theirs")
    });
    late.wait(patience_ms);
    let mut values: Vec<_> = late.seen.delivered.iter().map(text).collect();
    values.sort_unstable();
    let words = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
    let values = values.into_iter().map(words).collect();
    // Its own nodes, made where there was none, go with it.
    late.fleet.close(clock::monotonic_now() + 5_000_000_000);
    assert_eq!(late.fleet.left_behind(), None);
    values
}

#[test]
fn nodes_are_gone_after_the_end_but_for_those_of_others() {
    let server = Ejabberd::start("xmpp");
    let target = server.target();
    let mut theirs = Rig::open(&target, &lasting());
    let owner = theirs.connect("owner", false);
    let topic = theirs.advertise(owner, "site/theirs");
    theirs.publish(owner, topic, b"before", 0);
    theirs.until("answered", |seen| seen.acknowledged.len() == 1);

    let mut trial = Rig::open(&target, &lasting());
    let publisher = trial.connect("p", false);
    let subscriber = trial.connect("s", true);
    // Made by the subscriber, made by the publisher, there before.
    trial.subscribe(subscriber, TOPICS[0]);
    for (tag, name) in TOPICS.iter().enumerate() {
        let topic = trial.advertise(publisher, name);
        trial.publish(publisher, topic, name.as_bytes(), tag as u64);
    }
    trial.until("answered", |seen| seen.acknowledged.len() == TOPICS.len());
    assert_eq!(
        last_values(&target, 500),
        ["site/theirs", "trial/early", "trial/other"]
    );
    trial.fleet.close(clock::monotonic_now() + 10_000_000_000);
    assert_eq!(trial.fleet.left_behind(), None);
    assert_eq!(last_values(&target, 500), ["site/theirs"]);
    theirs.close();
}
