//! Listing what is on this machine.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::catalog::Catalog;
use crate::file::{Origin, SystemFile, SystemKind, Tunable};
use crate::find;
use crate::package_manager::InstallCommands;
use crate::start::Testbed;

/// A known system and whether it is on this machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Listing {
    pub name: String,
    /// One sentence.
    pub description: String,
    /// The driver that speaks to it.
    pub driver: String,
    /// How it is started.
    pub kind: SystemKind,
    /// Its variants, the default one first.
    pub variants: Vec<String>,
    /// Its capabilities in the driver's words.
    pub features: Vec<String>,
    /// Where it was measured not to keep a promise, by capability.
    pub deviations: BTreeMap<String, String>,
    /// Other measurements, by capability.
    pub remarks: BTreeMap<String, String>,
    /// Settings, and options of its own, that can be tuned.
    pub tunable: Vec<Tunable>,
    /// Part of the first look, the study that runs where none is named.
    pub first_look: bool,
    /// Whether it can be started here.
    pub found: bool,
    /// Its version, where the system is found and its version is known without running it.
    pub version: Option<String>,
    /// Its executable.
    pub path: Option<PathBuf>,
    /// Why it is not found; `None` if it is.
    pub reason: Option<String>,
    /// Commands that install it, by package manager, the one of this machine first.
    pub install: Vec<InstallCommands>,
    /// A note on the package, for example that it starts a service of its own.
    pub notes: Vec<String>,
    /// The file with its description; `None` for a system that is built in.
    pub file: Option<PathBuf>,
}

impl Catalog {
    /// Looks for each system on this machine, running nothing: system files may be a stranger's. One whose driver
    /// lacks its library is not found.
    pub fn list(&self, testbed: &Testbed) -> Vec<Listing> {
        self.systems()
            .map(|system| listing(system, testbed))
            .collect()
    }
}

fn listing(system: &SystemFile, testbed: &Testbed) -> Listing {
    let mut variants: Vec<String> = system.variants.keys().cloned().collect();
    variants.sort_by_key(|name| Some(name) != system.default_variant.as_ref());
    let found = testbed.find(system);
    let here = found.as_ref().ok();
    let deviations = system.deviations.iter();
    let driver = testbed.driver_of(system);
    let without = driver.as_ref().and_then(|driver| driver.missing());
    let without = without.map(|how| format!("this pubgauge was built without it: {how}"));
    let install = &system.install;
    let service = install.starts_service.iter().map(|manager| {
        let remedy = install.remedy();
        format!("its {manager} package starts a service, which disturbs measurements{remedy}")
    });
    Listing {
        name: system.name.clone(),
        description: system.description.clone(),
        driver: system.driver.clone(),
        kind: system.kind,
        variants,
        features: system.features.clone(),
        tunable: system.tunable.clone(),
        first_look: system.first_look,
        deviations: deviations
            .map(|(claim, deviation)| (claim.clone(), deviation.to_string()))
            .collect(),
        remarks: system.remarks.clone(),
        found: here.is_some() && without.is_none(),
        version: here.and_then(|found| {
            find::version_at_rest(system, found).or_else(|| driver.as_ref()?.library())
        }),
        path: here.and_then(|found| found.executable.clone()),
        reason: without.or(found.err().map(|missing| missing.reason)),
        install: find::install_commands(system),
        notes: service.chain(install.note.clone()).collect(),
        file: match &system.origin {
            Origin::File(path) => Some(path.clone()),
            _ => None,
        },
    }
}
