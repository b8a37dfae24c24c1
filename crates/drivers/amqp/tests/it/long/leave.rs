//! A fleet leaves nothing on a private RabbitMQ when it has been closed.

use crate::common;

use common::*;
use pubgauge_driver::*;

fn queues(rabbit: &Rabbit) -> Vec<String> {
    let text = rabbit.ctl(&["list_queues", "-q", "--no-table-headers", "name"]);
    let mut names: Vec<_> = text.lines().map(str::to_owned).collect();
    names.sort();
    names
}

#[test]
fn queues_of_durable_sessions_are_gone_after_the_end() {
    let rabbit = Rabbit::start(|_| {});
    let settings = Settings {
        session: Some(Session::Durable),
        reliability: Some(Reliability::AtLeastOnce),
        ..Settings::default()
    };
    let before = queues(&rabbit);
    let mut first = rabbit.rig(settings.clone());
    let mut second = rabbit.rig(settings.clone());
    for (rig, name) in [(&mut first, "leave-a"), (&mut second, "leave-b")] {
        let client = rig.named(name);
        rig.subscribe(client, "leave/#");
        rig.subscribe_shared(client, "leave/#", Some("team"));
        // Messages that nobody waits for any more go with the queue.
        let topic = rig.fleet.advertise(client, "leave/x").unwrap();
        rig.publish(client, topic, 0, 64);
    }
    let during = queues(&rabbit);
    assert_eq!(
        during.len(),
        before.len() + 3,
        "two of their own and a shared one: {during:?}"
    );
    for rig in [&mut first, &mut second] {
        rig.fleet.close(clock::monotonic_now() + 10 * SECOND);
        assert_eq!(rig.fleet.left_behind(), None);
    }
    assert_eq!(queues(&rabbit), before);

    // The queue of a client that is not connected at the end stays, and that is told.
    let mut third = rabbit.rig(settings);
    let client = third.named("leave-c");
    third.subscribe(client, "leave/#");
    third.fleet.abort(client);
    third.fleet.close(clock::monotonic_now() + SECOND);
    let left = third.fleet.left_behind().expect("it is told");
    assert!(left.contains("for 1 of its clients"), "{left}");
    assert_eq!(queues(&rabbit).len(), before.len() + 1);
}
