//! Several brokers behind one name, whose addresses come and go.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use pubgauge_collect::{EndsAfter, Notice, names};
use pubgauge_driver::Reliability;

use crate::common::*;

/// A name service whose answer tests change.
fn name_service(addresses: &[String]) -> (Arc<Mutex<Vec<SocketAddr>>>, names::LookUp) {
    let known = addresses
        .iter()
        .map(|address| address.parse().unwrap())
        .collect();
    let known = Arc::new(Mutex::new(known));
    let asked = known.clone();
    (known, Arc::new(move |_| Ok(asked.lock().unwrap().clone())))
}

#[test]
fn each_address_of_a_name_is_a_broker_and_one_that_is_gone_is_still_collected() {
    let brokers = [Broker::start(), Broker::start()];
    let addresses = [brokers[0].address(), brokers[1].address()];
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let rest = "topics = [\"t/#\"]\n[session]\nresolve-every = \"1s\"";
    let (known, look_up) = name_service(&addresses[..1]);
    let config = || config(&data, &["mqtt://fleet.example".into()], rest);
    let collecting = Collecting::with(config(), look_up, EndsAfter::default());
    collecting.connected(1);
    known.lock().unwrap().push(addresses[1].parse().unwrap());
    collecting.connected(2);
    known.lock().unwrap().remove(0);
    let gone = |notice: &Notice| matches!(notice, Notice::AddressGone { .. });
    let told = collecting.told("an address is gone", gone);
    let name = "mqtt://fleet.example".to_owned();
    assert_eq!(
        told,
        Notice::AddressGone {
            name,
            broker: addresses[0].clone()
        }
    );
    let mut sent = Publisher::on(&brokers[0], Reliability::AtLeastOnce).publish("t/a", 100, 50);
    let mut second = Publisher::on(&brokers[1], Reliability::AtLeastOnce);
    second.skip(1000);
    sent.extend(second.publish("t/a", 100, 50));
    collecting.stored(200);
    let by_broker = collecting.status.brokers();
    assert!(
        by_broker.values().all(|broker| broker.messages == 100),
        "{by_broker:?}"
    );
    assert!(by_broker[&addresses[0]].gone && !by_broker[&addresses[1]].gone);
    collecting.end();
    assert_eq!(numbers(&data).into_keys().collect::<BTreeSet<_>>(), sent);
    // Messages queued at the address that is gone are collected after a restart too.
    let mut first = Publisher::on(&brokers[0], Reliability::AtLeastOnce);
    first.skip(2000);
    first.publish("t/a", 50, 50);
    let (_, look_up) = name_service(&addresses[1..]);
    let again = Collecting::with(config(), look_up, EndsAfter::default());
    again.told("the address is gone", gone);
    again.stored(50);
    again.end();
    all_is_well(&data);
}

#[test]
fn a_broker_that_was_killed_is_connected_again() {
    let mut broker = Broker::start();
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let collecting = Collecting::begin(config(&data, &[broker.url()], "topics = [\"t/#\"]"));
    collecting.connected(1);
    broker.running.kill();
    collecting.told("the connection is lost", |notice| {
        matches!(notice, Notice::Failed { .. })
    });
    assert!(collecting.status.ill().unwrap().contains(&broker.address()));
    broker.running.restart().unwrap();
    collecting.connected(2);
    // It had saved nothing when it was killed.
    collecting.told("the session is lost", |notice| {
        matches!(notice, Notice::SessionLost { .. })
    });
    until("healthy", || collecting.status.ill().is_none());
    Publisher::on(&broker, Reliability::AtLeastOnce).publish("t/a", 10, 50);
    collecting.stored(10);
    collecting.end();
    all_is_well(&data);
}

#[test]
fn an_address_whose_session_has_expired_is_given_up() {
    let broker = Broker::start();
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let closed = format!("127.0.0.1:{}", pubgauge_testing::free_port());
    let (known, look_up) = name_service(&[broker.address(), closed.clone()]);
    let rest = "topics = [\"t/#\"]\n[session]\nresolve-every = \"1s\"\nexpiry = \"1s\"";
    let config = config(&data, &["mqtt://fleet.example".into()], rest);
    let collecting = Collecting::with(config, look_up, EndsAfter::default());
    collecting.connected(1);
    until("two brokers", || collecting.status.brokers().len() == 2);
    known.lock().unwrap().pop();
    // It never had a session there, so that nothing is lost with it.
    until("one broker", || collecting.status.brokers().len() == 1);
    assert!(!collecting.status.brokers().contains_key(&closed));
    let given_up = |notice: &&Notice| matches!(notice, Notice::AddressGivenUp { .. });
    assert_eq!(collecting.notices().iter().filter(given_up).count(), 0);
    collecting.end();
}

/// A kill leaves what was written last: that a broker is connected is written again while it is.
#[test]
fn how_long_a_broker_was_connected_is_written_down_meanwhile() {
    let broker = Broker::start();
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let rest = "topics = [\"t/#\"]\nname = \"c\"\n[session]\nexpiry = \"20s\"";
    let collecting = Collecting::begin(config(&data, &[broker.url()], rest));
    collecting.connected(1);
    let path = data.join("collectors/c/sessions.json");
    until("written once", || path.exists());
    let first = std::fs::read_to_string(&path).unwrap();
    until("written again", || {
        std::fs::read_to_string(&path).unwrap() != first
    });
    collecting.end();
}

/// Secrets that nobody but the user's broker may hear.
const SECRET: &str = "Wq7-of-the-user";

fn give_password(config: &mut pubgauge_collect::Config) {
    for broker in &mut config.brokers {
        broker.password = Some(pubgauge_driver::Secret::new(SECRET));
    }
}

fn with_password(data: &std::path::Path, rest: &str) -> pubgauge_collect::Config {
    let mut config = config(data, &["mqtt://ann@fleet.example".into()], rest);
    give_password(&mut config);
    config
}

fn is_held(notice: &Notice) -> bool {
    matches!(notice, Notice::AddressHeld { .. })
}

#[test]
fn a_planted_address_of_a_session_gets_no_password() {
    let (stranger, own) = (Listener::start(), Listener::start());
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let collector = data.join("collectors/c");
    std::fs::create_dir_all(&collector).unwrap();
    let name = "mqtt://fleet.example";
    let planted = format!(
        r#"{{"brokers": {{"{}": {{"name": "{name}", "connected_s": 99999999999}}}}, "filters": []}}"#,
        stranger.address
    );
    std::fs::write(collector.join("sessions.json"), planted).unwrap();
    let (_, look_up) = name_service(&[own.address.to_string()]);
    let config = with_password(&data, "topics = [\"t/#\"]\nname = \"c\"");
    let collecting = Collecting::with(config, look_up, EndsAfter::default());
    let broker = stranger.address.to_string();
    let told = collecting.told("the planted address is named", is_held);
    let name = name.to_owned();
    assert_eq!(told, Notice::AddressHeld { name, broker });
    // It would have been tried as often.
    until("the user's own is tried", || own.heard_of(SECRET) >= 3);
    collecting.end();
    assert_eq!(stranger.heard(), [] as [Vec<u8>; 0]);
}

#[test]
fn an_address_that_a_name_had_before_gets_no_password_any_more() {
    let (before, now) = (Listener::start(), Listener::start());
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let rest = "topics = [\"t/#\"]\n[session]\nresolve-every = \"1s\"";
    let (known, look_up) = name_service(&[before.address.to_string()]);
    let collecting = Collecting::with(with_password(&data, rest), look_up, EndsAfter::default());
    until("it is tried", || before.heard_of(SECRET) >= 1);
    known.lock().unwrap()[0] = now.address;
    collecting.told("the old address is named", is_held);
    let heard = before.heard().len();
    until("the new one is tried", || now.heard_of(SECRET) >= 4);
    collecting.end();
    // One may have been under way.
    assert!(before.heard().len() <= heard + 1);
}

#[test]
fn an_address_that_a_name_loses_while_it_is_connected_gets_no_password() {
    let (before, now) = (
        std::net::TcpListener::bind("127.0.0.1:0"),
        Listener::start(),
    );
    let before = before.unwrap();
    let address = before.local_addr().unwrap();
    // Its queue is full: whoever comes next is neither taken nor refused.
    rustix::net::listen(&before, 0).unwrap();
    let _full = std::net::TcpStream::connect(address).unwrap();
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let rest = "topics = [\"t/#\"]\n[session]\nresolve-every = \"1s\"";
    let (known, look_up) = name_service(&[address.to_string()]);
    let collecting = Collecting::with(with_password(&data, rest), look_up, EndsAfter::default());
    until("it is tried", || collecting.status.brokers().len() == 1);
    known.lock().unwrap()[0] = now.address;
    collecting.told("the old address is named", is_held);
    let (_first, _) = before.accept().unwrap();
    // The kernel tries again meanwhile, after one second and two more.
    until("the new one is tried", || now.heard_of(SECRET) >= 6);
    collecting.end();
    before.set_nonblocking(true).unwrap();
    while let Ok((mut stream, _)) = before.accept() {
        let mut heard = Vec::new();
        std::io::Read::read_to_end(&mut stream, &mut heard).unwrap();
        assert!(heard.is_empty(), "it was connected, and heard something");
    }
}

#[test]
fn a_session_under_another_name_does_not_keep_a_broker_from_its_own() {
    let own = Listener::start();
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let collector = data.join("collectors/c");
    std::fs::create_dir_all(&collector).unwrap();
    let planted = format!(
        r#"{{"brokers": {{"{}": {{"name": "mqtt://other.example", "connected_s": 1}}}}, "filters": []}}"#,
        own.address
    );
    std::fs::write(collector.join("sessions.json"), planted).unwrap();
    let here = own.address;
    let look_up: names::LookUp = Arc::new(move |endpoint| {
        Ok(if endpoint.host == "fleet.example" {
            vec![here]
        } else {
            Vec::new()
        })
    });
    let brokers = [
        "mqtt://eve@other.example".into(),
        "mqtt://ann@fleet.example".into(),
    ];
    let mut config = config(&data, &brokers, "topics = [\"t/#\"]\nname = \"c\"");
    give_password(&mut config);
    let collecting = Collecting::with(config, look_up, EndsAfter::default());
    until("it is logged in to as ann", || own.heard_of("ann") >= 1);
    collecting.end();
    assert_eq!(own.heard_of("eve"), 0);
}
