//! Many clients at once.

use crate::common;

use common::{Ejabberd, Rig, native};
use pubgauge_driver::{Change, Subscription};

#[test]
fn hundreds_subscribe_at_once() {
    let server = Ejabberd::start("xmpp");
    let settings = native(&[("mechanism", "\"plain\"")]);
    let mut rig = Rig::open(&server.target(), &settings);
    let clients: Vec<_> = (0..300)
        .map(|n| rig.begin(&format!("c{n}"), true))
        .collect();
    rig.until("all connected", |seen| seen.changes.len() == clients.len());
    rig.seen.changes.clear();
    for client in &clients {
        let subscription = Subscription {
            filter: format!("t/{}", client.0 / 5),
            group: None,
        };
        rig.fleet.subscribe(*client, &subscription).unwrap();
    }
    let start = std::time::Instant::now();
    rig.until("all subscribed", |seen| seen.changes.len() == clients.len());
    println!("{} subscribed within {:?}", clients.len(), start.elapsed());
    let subscribed = |change: &Change| *change == Change::Subscribed;
    assert!(
        rig.seen
            .changes
            .iter()
            .all(|(_, change)| subscribed(change))
    );
    // Each node has its five.
    let publisher = rig.connect("p", false);
    let topic = rig.advertise(publisher, "t/7");
    rig.publish(publisher, topic, b"", 0);
    rig.until("five copies", |seen| seen.delivered.len() == 5);
    rig.close();
}
