//! Systems that tests start, and the conformance suite as a test.

use std::ops::{Deref, DerefMut};

use pubgauge_conformance::{self as conformance, Conformity, Exception};
use pubgauge_driver::{Driver, Drivers, Lifecycle, Settings, Target};
use pubgauge_testbed::{Catalog, Running, SystemFile, Testbed};
use tempfile::TempDir;

/// A private system; stopped, and its folder removed, when this is dropped.
pub struct Server {
    running: Running,
    _scratch: TempDir,
}

impl Server {
    /// Starts a system that these drivers speak to.
    ///
    /// # Panics
    /// If it is not installed, or does not start.
    pub fn start(
        drivers: impl Into<Drivers>,
        system: &SystemFile,
        variant: Option<&str>,
    ) -> Server {
        let scratch = tempfile::tempdir().unwrap();
        let testbed = Testbed::new().unwrap().drivers(drivers);
        let running = testbed.start(system, variant, scratch.path());
        Server {
            running: running.unwrap_or_else(|error| panic!("{error}")),
            _scratch: scratch,
        }
    }
}

impl Deref for Server {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.running
    }
}

impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut Running {
        &mut self.running
    }
}

/// The file of a system.
///
/// # Panics
/// If there is none of this name.
pub fn system(name: &str) -> SystemFile {
    let catalog = Catalog::load(&[]).unwrap();
    catalog.get(name).unwrap()
}

/// Runs the conformance suite.
///
/// # Panics
/// If a check fails, with all that failed.
#[track_caller]
pub fn conforms(
    driver: &dyn Driver,
    target: &Target,
    settings: &Settings,
    exceptions: &[Exception<'_>],
) {
    let outcomes = conformance::check(driver, target, settings, exceptions);
    passed(settings, &outcomes);
}

/// The same, in which the server is ended and comes back.
///
/// # Panics
/// If a check fails, with all that failed.
#[track_caller]
pub fn conforms_with_kill(
    driver: &dyn Driver,
    target: &Target,
    settings: &Settings,
    exceptions: &[Exception<'_>],
    server: &mut dyn Lifecycle,
) {
    let outcomes = conformance::check_with_kill(driver, target, settings, exceptions, server);
    passed(settings, &outcomes);
}

#[track_caller]
fn passed(settings: &Settings, outcomes: &[(&str, Conformity)]) {
    let failures = conformance::failures(outcomes);
    let failed = failures.join("\n");
    assert!(failures.is_empty(), "{settings:?}:\n{failed}");
}
