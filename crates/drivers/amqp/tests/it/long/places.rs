//! Publishers and subscribers at places of their own.

use crate::common;

use common::*;
use pubgauge_driver::{MessagingPattern, Settings};
use pubgauge_driver_amqp::AmqpDriver;

#[test]
fn publishers_and_subscribers_have_ports_of_their_own() {
    let rabbit = Rabbit::start(|system| {
        system.run.ports.push("second".into());
        system.ready.tcp.push("second".into());
        system.endpoints = vec!["amqp://127.0.0.1:{amqp},{second}".into()];
        let config = &mut system.files[0];
        assert_eq!(config.path, "rabbitmq.conf");
        config.content += "\nlisteners.tcp.2 = 127.0.0.1:{second}\n";
    });
    let (_, ports) = rabbit.target.endpoints[0].rsplit_once(':').unwrap();
    let (first, second) = ports.split_once(',').unwrap();
    let ports = [first, second].map(|port| port.parse().unwrap());
    for pattern in [
        MessagingPattern::PublishSubscribe,
        MessagingPattern::PointToPoint,
    ] {
        let settings = Settings {
            pattern: Some(pattern),
            ..Settings::default()
        };
        separate_places(&AmqpDriver, rabbit.target.clone(), settings, ports);
    }
}
