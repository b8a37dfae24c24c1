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

/// `nats:mqtt` as the system and its variant; a name alone has the default one.
fn split(name: &str) -> (&str, Option<&str>) {
    name.split_once(':')
        .map_or((name, None), |(name, variant)| (name, Some(variant)))
}

/// The file of a system, with the changes of the variant that its name ends with.
pub fn system(name: &str) -> SystemFile {
    let (name, variant) = split(name);
    pubgauge_testing::system(name).variant(variant).unwrap()
}

/// Starts a system; fails loudly if it is not installed.
pub fn start(name: &str, variant: Option<&str>, scratch: &Path) -> Running {
    let (name, named) = split(name);
    let variant = variant.or(named);
    let system = pubgauge_testing::system(name);
    let testbed = Testbed::new().unwrap().drivers(MqttDriver);
    testbed
        .start(&system, variant, scratch)
        .unwrap_or_else(|error| {
            panic!("{error}\nthis test needs it: pubgauge systems --install {name} --yes")
        })
}
