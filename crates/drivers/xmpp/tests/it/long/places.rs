//! Publishers and subscribers at places of their own.

use crate::common;

use common::Ejabberd;
use pubgauge_driver::{MessagingPattern, Settings};
use pubgauge_driver_xmpp::XmppDriver;
use pubgauge_testing::separate_places;

#[test]
fn publishers_and_subscribers_have_ports_of_their_own() {
    let server = Ejabberd::start_with("xmpp", |text| {
        let listener = "  -\n    port: {xmpp}\n";
        let at = text.find(listener).expect("a listener for XMPP");
        let (listener, _) = text[at..].split_once("\"\"\"").expect("its end");
        let second = listener.replace("{xmpp}", "{second}");
        text.replace(listener, &format!("{listener}{second}"))
            .replace("ports = [\"xmpp\"", "ports = [\"second\", \"xmpp\"")
            .replace("tcp = [\"xmpp\"]", "tcp = [\"xmpp\", \"second\"]")
            .replace(
                "{host}:{xmpp}/localhost",
                "{host}:{xmpp},{second}/localhost",
            )
    });
    let target = server.target();
    let (_, ports) = target.endpoints[0].rsplit_once(':').unwrap();
    let (first, second) = ports
        .trim_end_matches("/localhost")
        .split_once(',')
        .unwrap();
    let ports = [first, second].map(|port| port.parse().unwrap());
    for pattern in [
        MessagingPattern::PublishSubscribe,
        MessagingPattern::PointToPoint,
    ] {
        let settings = Settings {
            pattern: Some(pattern),
            ..Settings::default()
        };
        separate_places(&XmppDriver, target.clone(), settings, ports);
    }
}
