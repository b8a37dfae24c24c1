//! The systems that pubgauge knows: those built in and those in the user's folders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::file::{FileError, Kind, Origin, SystemFile, spelling_hint};
use crate::find;
use crate::start::Testbed;

/// The descriptions in `systems/`, by file name.
const EMBEDDED: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/systems.rs"));

/// The systems that are known, by name.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    systems: BTreeMap<String, SystemFile>,
}

/// Why a catalog could not be read or a system not be found in it.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// A system file is wrong.
    #[error(transparent)]
    File(#[from] FileError),
    /// A folder of system files cannot be read.
    #[error("the folder of system files {} cannot be read: {error}\n  hint: name a folder that holds NAME.toml files; see docs/add-a-broker.md", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// No system has that name.
    #[error("there is no system `{name}`\n  hint: {hint}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The nearest name, or all names.
        hint: String,
    },
}

impl Catalog {
    /// The systems built in, and those in `folders`: each file `*.toml` there adds a system, or
    /// replaces the one of the same name; later folders win.
    ///
    /// # Errors
    /// If a folder cannot be read, or a file in it is wrong.
    pub fn load(folders: &[PathBuf]) -> Result<Self, CatalogError> {
        let mut systems = BTreeMap::new();
        for (name, text) in EMBEDDED.iter().copied() {
            let system = SystemFile::parse(text, &format!("systems/{name}"))?;
            systems.insert(system.name.clone(), system);
        }
        for folder in folders {
            for path in toml_files(folder)? {
                let system = SystemFile::read(&path)?;
                systems.insert(system.name.clone(), system);
            }
        }
        Ok(Catalog { systems })
    }

    /// The system of that name.
    ///
    /// # Errors
    /// With the nearest name if there is none.
    pub fn get(&self, name: &str) -> Result<SystemFile, CatalogError> {
        self.systems.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = self.systems.keys().map(String::as_str).collect();
            CatalogError::Unknown {
                name: name.to_owned(),
                hint: spelling_hint(name, &known),
            }
        })
    }

    /// All systems, by name.
    pub fn systems(&self) -> impl Iterator<Item = &SystemFile> {
        self.systems.values()
    }

    /// Looks for each system on this machine. One whose driver lacks its library is not found.
    pub fn list(&self, testbed: &Testbed) -> Vec<Listing> {
        self.systems()
            .map(|system| listing(system, testbed))
            .collect()
    }
}

/// A known system and whether it is on this machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Listing {
    /// Its name.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// The driver that speaks to it.
    pub driver: String,
    /// How it is started.
    pub kind: Kind,
    /// Its variants, the default one first.
    pub variants: Vec<String>,
    /// What it can do, in the driver's words.
    pub features: Vec<String>,
    /// Where it was measured not to keep a promise, by capability.
    pub deviations: BTreeMap<String, String>,
    /// What else was measured, by capability.
    pub remarks: BTreeMap<String, String>,
    /// Part of the first look, the study that runs where none is named.
    pub first_look: bool,
    /// Whether it can be started here.
    pub found: bool,
    /// Its version, where the system is found and reports one.
    pub version: Option<String>,
    /// Its executable.
    pub path: Option<PathBuf>,
    /// Why it is not found; `None` if it is.
    pub reason: Option<String>,
    /// Commands that install it, by package manager, the one of this machine first.
    pub install: Vec<InstallCommands>,
    /// What to know about the package, for example that it starts a service of its own.
    pub notes: Vec<String>,
    /// The file with its description; `None` for a system that is built in.
    pub file: Option<PathBuf>,
}

/// The commands of one package manager.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstallCommands {
    /// The package manager.
    pub manager: String,
    /// The commands, to be executed in this order.
    pub commands: Vec<String>,
}

fn listing(system: &SystemFile, testbed: &Testbed) -> Listing {
    let mut variants: Vec<String> = system.variants.keys().cloned().collect();
    variants.sort_by_key(|name| Some(name) != system.default_variant.as_ref());
    let found = testbed.find(system);
    let driver = testbed.driver_of(system);
    let without = driver.as_ref().and_then(|driver| driver.missing());
    let without = without.map(|how| format!("this pubgauge was built without it: {how}"));
    let install = &system.install;
    let service = install.starts_service.iter().map(|manager| {
        let remedy = match &install.stop_service {
            Some(command) => format!("; stop it with: {command}"),
            None => String::new(),
        };
        format!("its {manager} package starts a service, which disturbs measurements{remedy}")
    });
    Listing {
        name: system.name.clone(),
        description: system.description.clone(),
        driver: system.driver.clone(),
        kind: system.kind,
        variants,
        features: system.features.clone(),
        first_look: system.first_look,
        deviations: system
            .deviations
            .iter()
            .map(|(claim, deviation)| (claim.clone(), deviation.to_string()))
            .collect(),
        remarks: system.remarks.clone(),
        found: found.is_ok() && without.is_none(),
        version: found
            .as_ref()
            .ok()
            .and_then(|found| find::version(system, found).or_else(|| driver.as_ref()?.library())),
        path: found
            .as_ref()
            .ok()
            .and_then(|found| found.executable.clone()),
        reason: without.or(found.err().map(|missing| missing.reason)),
        install: find::install_commands(system)
            .into_iter()
            .map(|(manager, commands)| InstallCommands { manager, commands })
            .collect(),
        notes: service.chain(install.note.clone()).collect(),
        file: match &system.origin {
            Origin::File(path) => Some(path.clone()),
            _ => None,
        },
    }
}

fn toml_files(folder: &Path) -> Result<Vec<PathBuf>, CatalogError> {
    let unreadable = |error| CatalogError::Folder {
        folder: folder.to_owned(),
        error,
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}
