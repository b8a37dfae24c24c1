//! The seam's conformance suite on a private RabbitMQ, at every reliability.

use crate::common;

use common::*;
use pubgauge_driver::{Batching, Reliability, Session, Settings};
use pubgauge_driver_amqp::AmqpDriver;

fn ways() -> Vec<Settings> {
    let at = |reliability| Settings {
        reliability: Some(reliability),
        ..Settings::default()
    };
    vec![
        at(Reliability::AtMostOnce),
        Settings {
            batching: Some(Batching::Off),
            ..at(Reliability::BestEffort)
        },
        at(Reliability::AtLeastOnce),
        at(Reliability::Reliable),
        Settings {
            session: Some(Session::Durable),
            ..at(Reliability::AtLeastOnce)
        },
        // And the shortest frames, so that larger sizes take several.
        native(
            native(at(Reliability::AtLeastOnce), "transactions", 50.into()),
            "frame-max-bytes",
            4096.into(),
        ),
    ]
}

#[test]
fn rabbitmq_conforms() {
    let mut rabbit = Rabbit::start(|_| {});
    let target = rabbit.target.clone();
    for (n, settings) in ways().into_iter().enumerate() {
        // To kill the server takes a while: once is enough for each way of publishing.
        if n == 0 || n == 4 {
            conforms_with_kill(&AmqpDriver, &target, &settings, &[], rabbit.running());
        } else {
            conforms(&AmqpDriver, &target, &settings, &[]);
        }
    }
}
