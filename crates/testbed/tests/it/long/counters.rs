//! Systems' own counts are what was published and delivered, to the message.

use crate::traffic;

use std::sync::{Mutex, MutexGuard, PoisonError};

use pubgauge_driver::{Driver, MessagingPattern, Reliability, Session, Settings};
use pubgauge_driver_amqp::AmqpDriver;
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_testbed::{SystemCount, SystemCounts};
use traffic::{Happened, Traffic, counted, start, system};

const ONE_TO_ONE: Traffic = Traffic {
    publishers: 1,
    subscribers: 1,
    heard: 2000,
    unheard: 0,
};
const MANY: Traffic = Traffic {
    publishers: 7,
    subscribers: 3,
    heard: 300,
    unheard: 200,
};
const UNHEARD: Traffic = Traffic {
    publishers: 2,
    subscribers: 0,
    heard: 0,
    unheard: 5000,
};

/// One system at a time: several servers at once starve each other on a small machine.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn qos(number: u8) -> Settings {
    Settings {
        reliability: Some(match number {
            0 => Reliability::AtMostOnce,
            1 => Reliability::AtLeastOnce,
            _ => Reliability::ExactlyOnce,
        }),
        ..Settings::default()
    }
}

/// Every message is retained.
fn last_value() -> Settings {
    Settings {
        last_value: Some(true),
        ..qos(1)
    }
}

fn durable() -> Settings {
    Settings {
        session: Some(Session::Durable),
        ..qos(1)
    }
}

fn point_to_point() -> Settings {
    Settings {
        pattern: Some(MessagingPattern::PointToPoint),
        ..qos(1)
    }
}

/// Traffic of all kinds under each of the settings. Counts on topics begin with the system, so
/// that it is started for each; others are read before and after.
fn exchanges<D: Driver + Copy + 'static>(
    name: &str,
    variant: Option<&str>,
    driver: D,
    all: &[Settings],
    expected: impl Fn(&Settings, Happened) -> SystemCounts,
) {
    let _one = one_at_a_time();
    let scratch = tempfile::tempdir().unwrap();
    let system = system(name);
    let counters = system.variant(variant).unwrap().counters.unwrap();
    let again = || start(&system, variant, driver, scratch.path());
    let mut running = again();
    eprintln!("{name} started in {:.2} s", running.record.start_s);
    for (nth, settings) in all.iter().enumerate() {
        for traffic in [MANY, ONE_TO_ONE, UNHEARD] {
            // Messages that are retained, or kept for sessions, are counted alike for one and for many.
            let is_many = traffic.publishers == MANY.publishers;
            if nth > 0 && !is_many && settings.pattern != Some(MessagingPattern::PointToPoint) {
                continue;
            }
            if settings.pattern == Some(MessagingPattern::PointToPoint) && traffic.subscribers != 1
            {
                continue;
            }
            let (happened, counted) = counted(&running, &driver, settings, traffic);
            let what = format!("{name} {settings:?} {traffic:?} {happened:?}");
            assert_eq!(counted, expected(settings, happened), "{what}");
            if counters.http.is_none() {
                running.stop();
                running = again();
            }
        }
    }
}

/// The counts of a system that keeps only that of what is published.
fn published_only(happened: Happened) -> SystemCounts {
    SystemCounts {
        delivered: None,
        ..happened.both()
    }
}

/// Counts that are not comparable under some settings, for these reasons.
fn excepting(count: &mut Option<SystemCount>, settings: &Settings, reasons: &[(Settings, &str)]) {
    if let Some((_, why)) = reasons.iter().find(|(at, _)| at == settings) {
        *count = Some(SystemCount::NotComparable((*why).into()));
    }
}

#[test]
fn mosquitto_counts_both_but_qos_2_and_retained_received() {
    let all = [qos(0), qos(1), qos(2), last_value(), durable()];
    exchanges("mosquitto", None, MqttDriver, &all, |settings, happened| {
        let mut counted = happened.both();
        let reasons = [
            (
                qos(2),
                "with reliability:exactly-once: before 2.0.15 it leaves out every PUBLISH with QoS 2",
            ),
            (
                last_value(),
                "with last-value: before 2.0.15 it leaves out every PUBLISH with RETAIN",
            ),
        ];
        excepting(&mut counted.published, settings, &reasons);
        counted
    });
}

#[test]
fn nats_counts_what_is_published() {
    let all = [qos(0), qos(1), last_value(), durable()];
    exchanges("nats", Some("mqtt"), MqttDriver, &all, |_, h| {
        published_only(h)
    });
}

#[test]
fn rabbitmq_counts_both_over_amqp() {
    let all = [qos(0), qos(1), point_to_point(), durable()];
    exchanges("rabbitmq", Some("amqp"), AmqpDriver, &all, |_, h| h.both());
}

#[test]
fn rabbitmq_counts_both_over_mqtt_but_last_values_sent() {
    let all = [qos(0), qos(1), last_value(), durable()];
    exchanges(
        "rabbitmq",
        Some("mqtt"),
        MqttDriver,
        &all,
        |settings, happened| {
            let mut counted = happened.both();
            let why = "with last-value: retained messages go past the counter";
            excepting(&mut counted.delivered, settings, &[(last_value(), why)]);
            counted
        },
    );
}

#[test]
fn hivemq_counts_both() {
    let all = [qos(0), qos(1), qos(2), last_value(), durable()];
    exchanges("hivemq", None, MqttDriver, &all, |_, h| h.both());
}

#[test]
fn activemq_counts_both() {
    let all = [qos(0), qos(1), qos(2), last_value(), durable()];
    exchanges("activemq", None, MqttDriver, &all, |_, h| h.both());
}

#[test]
fn artemis_counts_what_is_published() {
    let all = [qos(0), qos(1), qos(2), last_value(), durable()];
    exchanges("artemis", None, MqttDriver, &all, |_, h| published_only(h));
}

#[test]
fn apollo_counts_both() {
    let all = [qos(0), qos(1), qos(2), last_value(), durable()];
    exchanges("apollo", None, MqttDriver, &all, |_, h| h.both());
}
