//! Every capability that the driver claims on ejabberd is shown there, and nothing else is claimed;
//! so is every one that the MQTT driver claims on the same server.

use crate::common;

use std::collections::BTreeMap;

use common::{Ejabberd, system};
use pubgauge_conformance::{self as conformance, Proof};
use pubgauge_driver::{Capability, Driver, Support};
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_driver_xmpp::XmppDriver;

/// What clients cannot see, and why that is shown by other means.
const UNSEEN: [&str; 1] = [
    // What was started shows it: there is a server, and clients know no other address.
    "topology:brokered",
];

fn all_are_shown(variant: &str, driver: &dyn Driver) {
    let mut server = Ejabberd::start(variant);
    let target = server.target();
    let file = system().variant(Some(variant)).unwrap();
    let mut wrong = Vec::new();
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for capability in Capability::ALL {
        let answer = driver.capability(capability, &target);
        let name = capability.to_string();
        if answer.support == Support::Unsupported {
            found.entry("unsupported".into()).or_default().push(name);
            continue;
        }
        let proof = conformance::prove(driver, &target, capability, Some(&mut server));
        match (proof, file.deviations.get(&name)) {
            (Ok(Proof::Shown), None) => found.entry("shown".into()).or_default().push(name),
            (Ok(Proof::Unseen(_)), None) if UNSEEN.contains(&name.as_str()) => {}
            (Err(_), Some(_)) => found.entry("broken".into()).or_default().push(name),
            (proof, deviation) => wrong.push(format!("{name}: {proof:?}, deviation {deviation:?}")),
        }
    }
    println!("{found:#?}");
    assert!(wrong.is_empty(), "{wrong:#?}\n{found:#?}");
}

#[test]
fn of_xmpp() {
    all_are_shown("xmpp", &XmppDriver);
}

#[test]
fn of_anonymous_clients() {
    all_are_shown("anonymous", &XmppDriver);
}

#[test]
fn of_mqtt() {
    all_are_shown("mqtt", &MqttDriver);
}
