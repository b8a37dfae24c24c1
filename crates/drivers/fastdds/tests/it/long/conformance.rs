//! The conformance suite over the system's Fast DDS.

use crate::common;

use common::{settings, target};
use pubgauge_conformance::Exception;
use pubgauge_driver_fastdds::FastddsDriver;
use pubgauge_testing::conforms;
use serde_json::{Value, json};

fn check(asked: Value, exceptions: &[Exception]) {
    let scratch = tempfile::tempdir().expect("a folder");
    let (target, settings) = (target(&scratch), settings(asked));
    conforms(&FastddsDriver, &target, &settings, exceptions);
}

#[test]
fn reliable() {
    check(json!({"reliability": "reliable"}), &[]);
}

#[test]
fn best_effort() {
    let lossy = Exception::always(
        "delivers-in-order",
        "best effort: a reader that is not read from keeps a bounded number of samples \
                 and gives up the rest",
    );
    let [disconnected, closed] = Exception::at_the_end(
        "best effort: a reader that hears of the writer's end first gives up what it has not \
                 read from its socket (0 of 50 came to it, 14,896 and 22,660 B to its socket)",
    );
    check(
        json!({"reliability": "best-effort"}),
        &[lossy, disconnected, closed],
    );
}

#[test]
fn reliable_with_the_default_preset() {
    let native = json!({"fastdds": {"preset": "default"}});
    check(json!({"reliability": "reliable", "native": native}), &[]);
}

/// Messages through memory that clients share go through no socket.
fn no_wire() -> Exception<'static> {
    Exception::always(
        "counts-the-bytes-of-the-wire",
        "messages are in memory that writers and readers share: there is no wire",
    )
}

#[test]
fn over_shared_memory() {
    check(json!({"transport": "shared-memory"}), &[no_wire()]);
}

#[test]
fn with_data_sharing() {
    let stuck = Exception::sometimes(
        "many-to-one-and-one-to-many",
        "one of several writers is not told that its samples were read, and stays \
                 blocked (31 of 500 taken)",
    );
    // Samples are in the writer's own memory, which goes with it.
    let [disconnected, closed] = Exception::at_the_end("a writer takes its samples with it");
    check(
        json!({"native": {"fastdds": {"data-sharing": true}}}),
        &[stuck, no_wire(), disconnected, closed],
    );
}
