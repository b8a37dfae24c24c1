//! Fast DDS and Cyclone DDS on one wire: the conformance suite (20,000 reliable messages in a row,
//! sizes to 2 MB) and what is claimed, in both directions.

use pubgauge_conformance::{Exception, prove};
use pubgauge_driver::{
    Capability, Change, Clock, Driver, Publish, Settings, Subscription, Support, Target,
};
use pubgauge_driver_dds_mixed::Mixed;
use pubgauge_testing::{CheckedRig, Rig, SECOND, config, conforms, dds_domain, settings};
use serde_json::{Value, json};

/// In a domain that no other test is in.
fn target(scratch: &tempfile::TempDir) -> Target {
    Target {
        scratch: scratch.path().to_owned(),
        ..Target::single(format!("dds://localhost/{}", dds_domain()))
    }
}

fn check(driver: &dyn Driver, asked: Value, exceptions: &[Exception<'_>]) {
    let scratch = tempfile::tempdir().expect("a folder");
    conforms(driver, &target(&scratch), &settings(asked), exceptions);
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

#[test]
fn a_client_of_both_is_connected_once_and_hears_itself() {
    let scratch = tempfile::tempdir().expect("a folder");
    let fleet = Mixed::FAST_TO_CYCLONE.open(config(target(&scratch), Settings::default()));
    let mut rig = CheckedRig::around(fleet.expect("opens"), 64);
    let both = Rig::spec("both");
    let client = rig.fleet.connect(&both).expect("connects");
    let topic = rig.fleet.advertise(client, "self/t").expect("advertises");
    let everything = Subscription::matching("self/#");
    rig.fleet
        .subscribe(client, &everything)
        .expect("subscribes");
    let give_up = Clock::Monotonic.now() + 60 * SECOND;
    let mut sequence = 0;
    while rig.seen.seen.len() < 20 {
        assert!(Clock::Monotonic.now() < give_up, "nothing came within 60 s");
        if rig.publish(client, topic, 0, sequence, 64) == Publish::Accepted {
            sequence += 1;
        }
        rig.poll_for(SECOND / 200);
    }
    let got = rig.seen.sequences(client);
    assert!(got.windows(2).all(|pair| pair[0] < pair[1]));
    rig.fleet.disconnect(client);
    let closed = |change: &Change| *change == Change::Closed;
    assert!(rig.poll_until(60 * SECOND, |seen| seen.has(client, closed)));
    let connected = |change: &Change| matches!(change, Change::Connected { .. });
    let once: [fn(&Change) -> bool; 2] = [connected, closed];
    for once in once {
        let times = rig.seen.changes.iter().filter(|(_, change)| once(change));
        assert_eq!(times.count(), 1);
    }
}

/// Tests that take long.
mod long {
    use super::*;

    #[test]
    fn fast_dds_to_cyclone_dds_reliable() {
        check(
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
        check(&Mixed::SWAPPED, reliable, &exceptions);
    }

    #[test]
    fn what_cyclone_dds_to_fast_dds_claims_is_so() {
        shows_what_it_claims(&Mixed::SWAPPED);
    }
}
