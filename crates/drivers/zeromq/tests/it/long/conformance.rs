//! The conformance suite that every driver must pass, in each way this one can be set up.

use crate::common;

use common::*;
use pubgauge_conformance::{Exception, Proof, check, failures, prove};
use pubgauge_driver::{Capability, MessagingPattern, Settings, Target};
use pubgauge_driver_zeromq::ZeromqDriver;
use serde_json::json;

fn conforms(target: &Target, settings: &Settings) {
    let outcomes = check(&ZeromqDriver, target, settings, &[]);
    assert_eq!(failures(&outcomes), Vec::<String>::new());
}

#[test]
fn direct_over_tcp() {
    let scratch = scratch();
    conforms(&direct(&scratch), &Settings::default());
}

#[test]
fn direct_over_ipc() {
    let scratch = scratch();
    conforms(&direct(&scratch), &settings(json!({"transport": "ipc"})));
}

#[test]
fn direct_in_two_frames() {
    let scratch = scratch();
    let settings = settings(json!({"native": {"zeromq": {"framing": "multipart"}}}));
    conforms(&direct(&scratch), &settings);
}

#[test]
fn through_a_forwarder_over_tcp() {
    let running = RunningForwarder::tcp(&Settings::default());
    conforms(&running.target(), &Settings::default());
}

#[test]
fn through_a_forwarder_over_ipc() {
    let scratch = scratch();
    let settings = settings(json!({"transport": "ipc"}));
    let running = RunningForwarder::ipc(&scratch, &settings);
    conforms(&running.target(), &settings);
}

/// A receiver names its topic, and these checks subscribe to wildcards.
fn point_to_point_conforms(target: &Target, settings: &Settings) {
    let exceptions = ["many-to-one-and-one-to-many", "closes-in-time"]
        .map(|check| Exception::always(check, "under point-to-point a receiver names its topic"));
    let outcomes = check(&ZeromqDriver, target, settings, &exceptions);
    assert_eq!(failures(&outcomes), Vec::<String>::new());
}

#[test]
fn point_to_point_over_tcp() {
    let scratch = scratch();
    let settings = settings(json!({"pattern": "point-to-point"}));
    point_to_point_conforms(&direct(&scratch), &settings);
    let shown = prove(
        &ZeromqDriver,
        &direct(&scratch),
        Capability::Pattern(MessagingPattern::PointToPoint),
        None,
    );
    assert_eq!(shown, Ok(Proof::Shown));
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
