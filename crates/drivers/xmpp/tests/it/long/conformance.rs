//! The conformance suite against a real ejabberd.

use crate::common;

use common::Ejabberd;
use pubgauge_conformance::{self as conformance, Exception};
use pubgauge_driver::{MessagingPattern, Settings};
use pubgauge_driver_xmpp::XmppDriver;

fn conforms(mut server: Ejabberd, settings: &Settings, exceptions: &[Exception<'_>]) {
    let target = server.target();
    let outcomes =
        conformance::check_with_kill(&XmppDriver, &target, settings, exceptions, &mut server);
    let failures = conformance::failures(&outcomes);
    assert!(failures.is_empty(), "{failures:#?}\n{outcomes:#?}");
}

#[test]
fn publish_subscribe_conforms() {
    conforms(Ejabberd::start("xmpp"), &Settings::default(), &[]);
}

#[test]
fn publish_subscribe_with_a_last_value_conforms() {
    let settings = Settings {
        last_value: Some(true),
        ..Settings::default()
    };
    conforms(Ejabberd::start("xmpp"), &settings, &[]);
}

#[test]
fn anonymous_clients_conform() {
    conforms(Ejabberd::start("anonymous"), &Settings::default(), &[]);
}

const NO_WILDCARDS: &str =
    "a receiver of direct messages has one address, so that it cannot subscribe to a wildcard";

#[test]
fn point_to_point_conforms() {
    let settings = Settings {
        pattern: Some(MessagingPattern::PointToPoint),
        ..Settings::default()
    };
    let exceptions = [
        Exception::always("many-to-one-and-one-to-many", NO_WILDCARDS),
        Exception::always("closes-in-time", NO_WILDCARDS),
        Exception::always(
            "one-client-has-200-subscriptions",
            "a receiver of direct messages has one address",
        ),
    ];
    conforms(Ejabberd::start("xmpp"), &settings, &exceptions);
}
