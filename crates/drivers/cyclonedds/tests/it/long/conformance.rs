//! The conformance suite that every driver must pass, in each way this one can be set up.

use pubgauge_conformance::{Exception, Proof, check, failures, prove};
use pubgauge_driver::{Capability, Driver, Settings, Support, Target};
use pubgauge_driver_cyclonedds::CycloneddsDriver;
use serde_json::json;

fn target(scratch: &tempfile::TempDir) -> Target {
    Target {
        scratch: scratch.path().to_owned(),
        ..Target::default()
    }
}

fn conforms(settings: serde_json::Value) {
    conforms_but(settings, &[]);
}

fn conforms_but(settings: serde_json::Value, exceptions: &[Exception<'_>]) {
    let scratch = tempfile::tempdir().expect("a folder");
    let target = target(&scratch);
    let settings: Settings = serde_json::from_value(settings).expect("settings");
    let outcomes = check(&CycloneddsDriver, &target, &settings, exceptions);
    assert_eq!(failures(&outcomes), Vec::<String>::new());
}

#[test]
fn with_no_setting_changed() {
    conforms(json!({}));
}

#[test]
fn best_effort() {
    let lossy = Exception::always(
        "delivers-in-order",
        "best effort: nobody reads while 20,000 messages come, and a reader keeps the \
                 last 1000",
    );
    let [disconnected, closed] = Exception::at_the_end(
        "best effort: a reader that hears of the writer's end first gives up what it has not \
                 read from its socket (0, 14 and 38 of 50 came to it, 7,152 B to its socket each time)",
    );
    conforms_but(
        json!({"reliability": "best-effort"}),
        &[lossy, disconnected, closed],
    );
}

#[test]
fn reliable_in_batches() {
    conforms(json!({"reliability": "reliable", "batching": "adaptive"}));
}

#[test]
fn exactly_once_with_last_values() {
    conforms(json!({"reliability": "exactly-once", "last-value": true}));
}

#[test]
fn over_multicast() {
    conforms(json!({"multicast": true, "batching": {"bytes": 8192}}));
}

/// What clients cannot see is shown in `wire.rs`.
#[test]
fn what_is_claimed_is_so() {
    let scratch = tempfile::tempdir().expect("a folder");
    let target = target(&scratch);
    let mut wrong = Vec::new();
    for capability in Capability::ALL {
        let answer = CycloneddsDriver.capability(capability, &target);
        assert!(!answer.words.is_empty(), "{capability}");
        if answer.support == Support::Unsupported {
            println!("{capability}: unsupported: {}", answer.words);
            continue;
        }
        match prove(&CycloneddsDriver, &target, capability, None) {
            Ok(Proof::Shown) => println!("{capability}: shown: {}", answer.words),
            Ok(Proof::Unseen(why)) => println!("{capability}: {why}: {}", answer.words),
            Err(why) => wrong.push(format!("{capability}: {why}")),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
