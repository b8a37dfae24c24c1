//! The conformance suite, in ways that this driver can be set up and of which `pubgauge check` tries none.

use pubgauge_conformance::Exception;
use pubgauge_driver::Target;
use pubgauge_driver_cyclonedds::CycloneddsDriver;
use pubgauge_testing::{conforms, settings};
use serde_json::{Value, json};

fn check(asked: Value, exceptions: &[Exception<'_>]) {
    let scratch = tempfile::tempdir().expect("a folder");
    let target = Target {
        scratch: scratch.path().to_owned(),
        ..Target::default()
    };
    conforms(&CycloneddsDriver, &target, &settings(asked), exceptions);
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
    check(
        json!({"reliability": "best-effort"}),
        &[lossy, disconnected, closed],
    );
}

#[test]
fn reliable_in_batches() {
    check(
        json!({"reliability": "reliable", "batching": "adaptive"}),
        &[],
    );
}

#[test]
fn exactly_once_with_last_values() {
    check(
        json!({"reliability": "exactly-once", "last-value": true}),
        &[],
    );
}

#[test]
fn over_multicast() {
    check(json!({"multicast": true, "batching": {"bytes": 8192}}), &[]);
}
