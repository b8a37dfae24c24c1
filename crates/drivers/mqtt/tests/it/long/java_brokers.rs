//! The seam's conformance suite on the brokers that `systems/*.toml` describe: each at every QoS
//! and in every version that it has. What one cannot do is a named exception.

use crate::common;

use common::systems::{one_at_a_time, start};
use common::{alive, port_of, reliable};
use pubgauge_conformance::{self as conformance, Exception};
use pubgauge_driver::Reliability;
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_testbed::Stopped;

const QOS: [Reliability; 3] = [
    Reliability::AtMostOnce,
    Reliability::AtLeastOnce,
    Reliability::ExactlyOnce,
];

/// Starts a system, runs the suite, stops it, and looks for what is left.
fn conforms(
    name: &str,
    versions: &[&str],
    qos: &[Reliability],
    exceptions: impl Fn(&str, Reliability) -> Vec<Exception>,
) {
    let _one = one_at_a_time();
    let scratch = tempfile::tempdir().unwrap();
    let running = start(name, None, scratch.path());
    eprintln!("{name} started in {:.1} s", running.record.start_s);
    let mut failures = Vec::new();
    for version in versions {
        for &reliability in qos {
            let settings = reliable(version, reliability);
            let begin = std::time::Instant::now();
            let outcomes = conformance::check(
                &MqttDriver,
                &running.target,
                &settings,
                &exceptions(version, reliability),
            );
            eprintln!("{name} {version} {reliability:?}: {:?}", begin.elapsed());
            for failure in conformance::failures(&outcomes) {
                failures.push(format!("MQTT {version}, {reliability:?}: {failure}"));
            }
        }
    }
    assert_eq!(running.exit_reason(), None);
    let (pids, output) = (running.pids(), running.output());
    let port = port_of(&running);
    assert_eq!(running.stop(), Stopped::Orderly, "{output:?}");
    assert!(
        failures.is_empty(),
        "{name}:\n{}\nit said: {output:?}",
        failures.join("\n")
    );
    assert!(pids.iter().all(|pid| !alive(*pid)));
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
    assert_eq!(scratch.path().read_dir().unwrap().count(), 0);
}

#[test]
fn activemq_conforms() {
    conforms("activemq", &["3.1.1"], &QOS, |_, _| Vec::new());
}

#[test]
fn artemis_conforms() {
    conforms("artemis", &["3.1.1", "5"], &QOS, |_, _| Vec::new());
}

#[test]
fn apollo_conforms() {
    conforms("apollo", &["3.1.1"], &QOS, |_, _| {
        vec![Exception::sometimes(
            "a-new-connection-brings-nothing-of-the-old",
            "a subscriber whose connection broke under 400 KB messages hears nothing once it is back",
        )]
    });
}

#[test]
fn hivemq_conforms() {
    conforms("hivemq", &["3.1.1", "5"], &QOS, |_, _| Vec::new());
}

#[test]
fn nats_conforms() {
    conforms("nats:mqtt", &["3.1.1"], &QOS[..2], |_, _| Vec::new());
}
