//! The conformance suite, in ways that this driver can be set up and of which `pubgauge check` tries none.

use crate::common;

use common::*;
use pubgauge_conformance::Exception;
use pubgauge_driver::{Settings, Target};
use pubgauge_driver_zeromq::ZeromqDriver;
use pubgauge_testing::conforms;
use serde_json::json;

fn check(target: &Target, settings: &Settings) {
    conforms(&ZeromqDriver, target, settings, &[]);
}

#[test]
fn direct_over_ipc() {
    let scratch = scratch();
    check(&direct(&scratch), &settings(json!({"transport": "ipc"})));
}

#[test]
fn direct_in_two_frames() {
    let scratch = scratch();
    let settings = settings(json!({"native": {"zeromq": {"framing": "multipart"}}}));
    check(&direct(&scratch), &settings);
}

#[test]
fn through_a_forwarder_over_ipc() {
    let scratch = scratch();
    let settings = settings(json!({"transport": "ipc"}));
    let running = ipc_forwarder(&scratch, &settings);
    check(&through(&running), &settings);
}

/// A receiver names its topic, and these checks subscribe to wildcards.
fn point_to_point_conforms(target: &Target, settings: &Settings) {
    let exceptions = ["many-to-one-and-one-to-many", "closes-in-time"]
        .map(|check| Exception::always(check, "under point-to-point a receiver names its topic"));
    conforms(&ZeromqDriver, target, settings, &exceptions);
}

#[test]
fn point_to_point_over_tcp() {
    let scratch = scratch();
    let settings = settings(json!({"pattern": "point-to-point"}));
    point_to_point_conforms(&direct(&scratch), &settings);
}

#[test]
fn point_to_point_over_ipc() {
    let scratch = scratch();
    let settings = settings(json!({"pattern": "point-to-point", "transport": "ipc"}));
    point_to_point_conforms(&direct(&scratch), &settings);
}

#[test]
fn point_to_point_in_two_frames() {
    let scratch = scratch();
    let settings = settings(json!(
        {"pattern": "point-to-point", "native": {"zeromq": {"framing": "multipart"}}}
    ));
    point_to_point_conforms(&direct(&scratch), &settings);
}
