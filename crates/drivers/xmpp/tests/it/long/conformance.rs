//! The conformance suite against a real ejabberd, under settings of which `pubgauge check` tries none.

use crate::common;

use common::Ejabberd;
use pubgauge_conformance::Exception;
use pubgauge_driver::{MessagingPattern, Settings};
use pubgauge_driver_xmpp::XmppDriver;
use pubgauge_testing::conforms_with_kill;

fn check(settings: &Settings, exceptions: &[Exception<'_>]) {
    let mut server = Ejabberd::start("xmpp").server;
    let target = server.target.clone();
    conforms_with_kill(&XmppDriver, &target, settings, exceptions, &mut *server);
}

#[test]
fn publish_subscribe_with_a_last_value_conforms() {
    let settings = Settings {
        last_value: Some(true),
        ..Settings::default()
    };
    check(&settings, &[]);
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
    check(&settings, &exceptions);
}
