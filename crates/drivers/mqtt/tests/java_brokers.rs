//! The seam's conformance suite on the brokers that `systems/*.toml` describe: each at every QoS
//! and in every version that it has. What one cannot do is a named exception.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use pubgauge_driver::conformance::{self, Exception};
use pubgauge_driver::{Reliability, Settings};
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_testbed::{Catalog, Running, Stopped, Testbed};

/// One broker at a time: several Java servers at once starve each other on a small machine.
static ONE: Mutex<()> = Mutex::new(());

const QOS: [Reliability; 3] = [
    Reliability::AtMostOnce,
    Reliability::AtLeastOnce,
    Reliability::ExactlyOnce,
];

/// Starts a system that must be installed.
fn start(name: &str, variant: Option<&str>, scratch: &Path) -> Running {
    let system = Catalog::load(&[]).unwrap().get(name).unwrap();
    let testbed = Testbed::new()
        .unwrap()
        .probe(Box::new(|_, what, target, until| {
            pubgauge_testbed::probe(&MqttDriver, what, target, until)
        }));
    testbed
        .start(&system, variant, scratch)
        .unwrap_or_else(|error| {
            panic!("{error}\nthis test needs it: pubgauge systems --install {name} --yes")
        })
}

fn alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Starts a system, runs the suite, stops it, and looks for what is left.
fn conforms(
    name: &str,
    versions: &[&str],
    qos: &[Reliability],
    exceptions: impl Fn(&str, Reliability) -> Vec<Exception>,
) {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = tempfile::tempdir().unwrap();
    let running = start(name, None, scratch.path());
    eprintln!("{name} started in {:.1} s", running.record.start_s);
    let mut failures = Vec::new();
    for version in versions {
        for &reliability in qos {
            let settings = Settings {
                reliability: Some(reliability),
                native: [(
                    "mqtt".to_owned(),
                    [("version".to_owned(), serde_json::json!(version))].into(),
                )]
                .into(),
                ..Settings::default()
            };
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
    running.check().unwrap();
    let (pids, output) = (running.pids(), running.output());
    let port = running.target.endpoints[0]
        .rsplit_once(':')
        .unwrap()
        .1
        .to_owned();
    assert_eq!(running.stop(), Stopped::Orderly, "{output:?}");
    assert!(
        failures.is_empty(),
        "{name}:\n{}\nit said: {output:?}",
        failures.join("\n")
    );
    assert!(pids.iter().all(|pid| !alive(*pid)));
    assert!(std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_err());
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
    conforms("apollo", &["3.1.1"], &QOS, |_, _| Vec::new());
}

#[test]
fn hivemq_conforms() {
    conforms("hivemq", &["3.1.1", "5"], &QOS, |_, _| Vec::new());
}

#[test]
fn nats_conforms() {
    conforms("nats", &["3.1.1"], &QOS[..2], |_, _| Vec::new());
}
