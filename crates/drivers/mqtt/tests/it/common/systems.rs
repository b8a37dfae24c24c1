//! Systems from `systems/*.toml`, which must be installed.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_testbed::{Running, SystemFile, Testbed};

/// One broker at a time: several Java servers at once starve each other on a small machine.
pub fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file of a system, with its default variant's changes.
pub fn system(name: &str) -> SystemFile {
    pubgauge_testing::system(name).variant(None).unwrap()
}

/// Starts a system; fails loudly if it is not installed.
pub fn start(name: &str, variant: Option<&str>, scratch: &Path) -> Running {
    let system = pubgauge_testing::system(name);
    let testbed = Testbed::new().unwrap().drivers(MqttDriver);
    testbed
        .start(&system, variant, scratch)
        .unwrap_or_else(|error| {
            panic!("{error}\nthis test needs it: pubgauge systems --install {name} --yes")
        })
}
