//! Many clients at once.

use crate::common;

use common::Ejabberd;
use pubgauge_driver::{ClientSpec, Subscription};
use pubgauge_testing::{Rig, settings};
use serde_json::json;

#[test]
fn hundreds_subscribe_at_once() {
    let server = Ejabberd::start("xmpp");
    let plain = json!({"native": {"xmpp": {"mechanism": "plain"}}});
    let mut rig = server.rig(settings(plain));
    let clients: Vec<_> = (0..300)
        .map(|n| {
            let spec = ClientSpec {
                publishes: false,
                ..Rig::spec(&format!("c{n}"))
            };
            rig.fleet.connect(&spec).unwrap()
        })
        .collect();
    rig.until("all connected", |seen| {
        seen.connected.len() == clients.len()
    });
    for client in &clients {
        let subscription = Subscription::matching(format!("t/{}", client.0 / 5));
        rig.fleet.subscribe(*client, &subscription).unwrap();
    }
    let start = std::time::Instant::now();
    rig.until("all subscribed", |seen| {
        seen.subscribed.len() == clients.len()
    });
    println!("{} subscribed within {:?}", clients.len(), start.elapsed());
    // Each node has its five.
    let publisher = rig.named_publisher("p");
    let topic = rig.fleet.advertise(publisher, "t/7").unwrap();
    rig.publish(publisher, topic, 0, 16);
    rig.until("five copies", |seen| seen.delivered == 5);
}
