//! The client's own resources end, and a server's do.

use pubgauge_driver::Settings;
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_testbed::{SystemFile, Testbed};
use pubgauge_testing::Rig;

pubgauge_testing::exhaustion_tests!(MqttDriver, "mqtt://127.0.0.1:{}");

/// A real one with 40 open files, of which clients get 32, as its file says: never fewer. What it
/// opens itself differs by what it finds (one less without a system log), so that a few more fit.
#[test]
fn mosquitto_runs_out_of_descriptors() {
    let text = include_str!("../../../../../systems/mosquitto.toml");
    let mut system = SystemFile::parse(text, "mosquitto.toml").unwrap();
    system.limits.open_files = Some(40);
    let scratch = tempfile::tempdir().unwrap();
    let testbed = Testbed::new().unwrap();
    let running = testbed.start(&system, None, scratch.path()).unwrap();
    let mut rig = Rig::open(&MqttDriver, running.target.clone(), Settings::default());
    for n in 0..50 {
        rig.fleet.connect(&Rig::spec(&format!("c{n}"))).unwrap();
        let heard = n + 1;
        rig.until("an answer", |s| s.connected.len() + s.failed.len() == heard);
    }
    let connected = rig.seen.connected.len();
    assert!((32..=35).contains(&connected), "{connected} connected");
    assert_eq!(system.limits.files_for(32), 40);
    assert_eq!(rig.seen.exhausted, [], "{:?}", rig.seen.failed);
    running.stop();
}
