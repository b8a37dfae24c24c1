//! Systems from `systems/*.toml`, which must be installed.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_testbed::{Catalog, Running, SystemFile, Testbed};

/// One broker at a time: several Java servers at once starve each other on a small machine.
pub fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file of a system, with its default variant's changes.
pub fn system(name: &str) -> SystemFile {
    let catalog = Catalog::load(&[]).unwrap();
    catalog.get(name).unwrap().variant(None).unwrap()
}

/// Starts a system; fails loudly if it is not installed.
pub fn start(name: &str, variant: Option<&str>, scratch: &Path) -> Running {
    let system = Catalog::load(&[]).unwrap().get(name).unwrap();
    let testbed = Testbed::new().unwrap().drivers(MqttDriver);
    testbed
        .start(&system, variant, scratch)
        .unwrap_or_else(|error| {
            panic!("{error}\nthis test needs it: pubgauge systems --install {name} --yes")
        })
}

/// The port of a system's first endpoint.
pub fn port_of(running: &Running) -> u16 {
    let (_, port) = running.target.endpoints[0].rsplit_once(':').unwrap();
    port.parse().unwrap()
}

/// Whether a process is there and no zombie.
pub fn alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
