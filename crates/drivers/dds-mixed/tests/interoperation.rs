//! Fast DDS and Cyclone DDS on one wire: the conformance suite (20,000 reliable messages in a row,
//! sizes to 2 MB) and what is claimed, in both directions.

use pubgauge_conformance::{Exception, check, failures, prove};
use pubgauge_driver::{
    Acknowledgement, Capability, Change, ClientId, ClientSpec, Clock, Delivery, Driver, Events,
    Filler, FleetConfig, Header, Kind, Mark, Payload, Publish, Settings, Subscription, Support,
    Target,
};
use pubgauge_driver_dds_mixed::Mixed;
use serde_json::json;

const MARK: Mark = Mark::from_seed(7);

/// In a domain that no other test is in.
fn target(scratch: &tempfile::TempDir) -> Target {
    Target {
        endpoints: vec![format!(
            "dds://localhost/{}",
            pubgauge_testing::dds_domain()
        )],
        scratch: scratch.path().to_owned(),
        ..Target::default()
    }
}

fn conforms(driver: &dyn Driver, settings: serde_json::Value, exceptions: &[Exception<'_>]) {
    let settings: Settings = serde_json::from_value(settings).expect("settings");
    let scratch = tempfile::tempdir().expect("a folder");
    let target = target(&scratch);
    let outcomes = check(driver, &target, &settings, exceptions);
    let failures = failures(&outcomes);
    assert!(failures.is_empty(), "{failures:#?}");
}

fn shows_what_it_claims(driver: &dyn Driver) {
    let scratch = tempfile::tempdir().expect("a folder");
    let target = target(&scratch);
    let mut wrong = Vec::new();
    for capability in Capability::ALL {
        if driver.capability(capability, &target).support == Support::Unsupported {
            continue;
        }
        match prove(driver, &target, capability, None) {
            Ok(proof) => println!("{capability}: {proof:?}"),
            Err(why) => wrong.push(format!("{capability}: {why}")),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[derive(Default)]
struct Seen {
    got: Vec<u32>,
    changes: Vec<(ClientId, Change)>,
}

impl Events for Seen {
    fn arrived(&mut self) {}

    fn delivered(&mut self, _: ClientId, delivery: Delivery<'_>) {
        let header = Header::decode(delivery.payload, MARK).expect("a header of ours");
        self.got.push(header.sequence);
    }

    fn acknowledged(&mut self, _: ClientId, _: u64, _: Acknowledgement) {}

    fn changed(&mut self, client: ClientId, change: Change) {
        self.changes.push((client, change));
    }
}

#[test]
fn a_client_of_both_is_connected_once_and_hears_itself() {
    let scratch = tempfile::tempdir().expect("a folder");
    let clock = Clock::Monotonic;
    let mut fleet = Mixed::FAST_TO_CYCLONE
        .open(FleetConfig {
            target: target(&scratch),
            settings: Settings::default(),
            clock: clock.clone(),
            max_payload: 64,
            clients: 1,
            worker: 1,
        })
        .expect("opens");
    let mut seen = Seen::default();
    let spec = ClientSpec {
        name: "both".into(),
        publishes: true,
        subscribes: true,
        ..ClientSpec::default()
    };
    let client = fleet.connect(&spec).expect("connects");
    let topic = fleet.advertise(client, "self/t").expect("advertises");
    let everything = Subscription {
        filter: "self/#".into(),
        group: None,
    };
    fleet.subscribe(client, &everything).expect("subscribes");
    let filler = Filler::new(64);
    let give_up = clock.now() + 10_000_000_000;
    let mut sequence = 0;
    while seen.got.len() < 20 {
        assert!(clock.now() < give_up, "nothing came within 10 s");
        let head = Header {
            kind: Kind::Measured,
            intended: 0,
            lag: 0,
            stream: 0,
            sequence,
        };
        let payload = Payload {
            head: &head.encode(MARK),
            body: filler.body(0, sequence, 64),
        };
        if fleet.publish(client, topic, payload, 0) == Publish::Accepted {
            sequence += 1;
        }
        fleet
            .poll(clock.now() + 5_000_000, &mut seen)
            .expect("polls");
    }
    assert!(seen.got.windows(2).all(|pair| pair[0] < pair[1]));
    fleet.disconnect(client);
    while !seen.changes.contains(&(client, Change::Closed)) {
        assert!(clock.now() < give_up, "no end within 10 s");
        fleet
            .poll(clock.now() + 5_000_000, &mut seen)
            .expect("polls");
    }
    let connected = |(_, change): &&(ClientId, Change)| matches!(change, Change::Connected { .. });
    assert_eq!(seen.changes.iter().filter(connected).count(), 1);
    let closed = |(_, change): &&(ClientId, Change)| *change == Change::Closed;
    assert_eq!(seen.changes.iter().filter(closed).count(), 1);
}

/// What takes long.
mod long {
    use super::*;

    #[test]
    fn fast_dds_to_cyclone_dds_reliable() {
        conforms(
            &Mixed::FAST_TO_CYCLONE,
            json!({"reliability": "reliable"}),
            &[],
        );
    }

    #[test]
    fn cyclone_dds_to_fast_dds_reliable() {
        let exceptions = [Exception::always(
            "one-client-has-200-subscriptions",
            "Cyclone DDS does not match a reader again whose partitions change \
             (https://github.com/eclipse-cyclonedds/cyclonedds/pull/195)",
        )];
        let reliable = json!({"reliability": "reliable"});
        conforms(&Mixed::SWAPPED, reliable, &exceptions);
    }

    #[test]
    fn what_fast_dds_to_cyclone_dds_claims_is_so() {
        shows_what_it_claims(&Mixed::FAST_TO_CYCLONE);
    }

    #[test]
    fn what_cyclone_dds_to_fast_dds_claims_is_so() {
        shows_what_it_claims(&Mixed::SWAPPED);
    }
}
