//! The seam's conformance suite on a private RabbitMQ, at every reliability, and a proof of every
//! capability that the driver claims.

use crate::common;

use common::*;
use pubgauge_conformance::{self as conformance, Proof};
use pubgauge_driver::{
    Batching, Capability, Driver, MessagingPattern, Reliability, Session, Settings, Support,
};
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
        native(at(Reliability::AtLeastOnce), "transactions", 50.into()),
    ]
}

#[test]
fn rabbitmq_conforms() {
    let mut rabbit = Rabbit::start(|_| {});
    let target = rabbit.target.clone();
    for (n, settings) in ways().into_iter().enumerate() {
        // To kill the server takes a while: once is enough for each way of publishing.
        let outcomes = if n == 0 || n == 4 {
            conformance::check_with_kill(&AmqpDriver, &target, &settings, &[], &mut rabbit)
        } else {
            conformance::check(&AmqpDriver, &target, &settings, &[])
        };
        let failures = conformance::failures(&outcomes);
        assert!(
            failures.is_empty(),
            "{settings:?}:\n{}",
            failures.join("\n")
        );
    }
}

#[test]
fn what_is_claimed_is_so() {
    let mut rabbit = Rabbit::start(|_| {});
    let target = rabbit.target.clone();
    let mut wrong = Vec::new();
    let mut shown = 0;
    for capability in Capability::ALL {
        let answer = AmqpDriver.capability(capability, &target);
        if !matches!(answer.support, Support::Native | Support::Emulated)
            || capability == Capability::Pattern(MessagingPattern::RequestReply)
        {
            continue;
        }
        match conformance::prove(&AmqpDriver, &target, capability, Some(&mut rabbit)) {
            Ok(Proof::Shown) => shown += 1,
            Ok(Proof::Unseen(_)) => {}
            Err(why) => wrong.push(format!("{capability}: {why}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(shown >= 20, "{shown}");
}
