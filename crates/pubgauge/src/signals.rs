//! Signals of a program that has started systems: they are killed if they do not end in time, and scratch is removed.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pubgauge_command::signals::{self, Reactions};
use pubgauge_testbed::OwnedFolder;

use crate::lock;

/// How long after the first signal systems that have not ended are killed: the program must end
/// within five seconds.
const PATIENCE: Duration = Duration::from_millis(3500);

/// Folders to be removed when the process ends at once.
static SCRATCH: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A folder for the systems' files, removed when it is dropped and also when the process ends at
/// once. Folders that a killed pubgauge has left are removed first.
///
/// # Errors
/// If it cannot be made.
pub fn scratch() -> std::io::Result<OwnedFolder> {
    let folder = OwnedFolder::create(&std::env::temp_dir(), "pubgauge-run-")?;
    lock(&SCRATCH).push(folder.path().to_owned());
    Ok(folder)
}

/// Installs the handlers. The first signal sets the returned flag; the second kills all systems
/// and ends the process with the shell's code for an interrupted program.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn install() -> std::io::Result<Arc<AtomicBool>> {
    let told = Reactions::default();
    signals::install(Reactions {
        first: Box::new(move || {
            // A system that ends slowly is killed after [`PATIENCE`].
            std::thread::spawn(|| {
                std::thread::sleep(PATIENCE);
                pubgauge_testbed::kill_everything();
            });
            (told.first)();
        }),
        second: end_systems,
        again: None,
    })
}

/// Kills all systems, and removes what they worked in.
fn end_systems() {
    pubgauge_testbed::kill_everything();
    for folder in lock(&SCRATCH).iter() {
        let _ = std::fs::remove_dir_all(folder);
    }
}
