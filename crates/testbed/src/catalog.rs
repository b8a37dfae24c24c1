//! The systems that pubgauge knows: those built in and those in the user's folders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::file::{FileError, SystemFile};
use crate::spelling::spelling_hint;

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
        folder: PathBuf,
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
        let unknown = || CatalogError::Unknown {
            name: name.to_owned(),
            hint: spelling_hint(name, self.systems.keys()),
        };
        self.systems.get(name).cloned().ok_or_else(unknown)
    }

    /// All systems, by name.
    pub fn systems(&self) -> impl Iterator<Item = &SystemFile> {
        self.systems.values()
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
        if path.extension() == Some("toml".as_ref()) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}
