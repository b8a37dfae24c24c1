//! Ctrl-C once: finish what must be finished, clean up, and end. Twice: end at once.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Folders to be removed when the process ends at once.
static SCRATCH: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Has a scratch folder removed also when the process ends at once.
pub fn remove_at_once(folder: &Path) {
    let mut folders = SCRATCH.lock().unwrap_or_else(PoisonError::into_inner);
    folders.push(folder.to_owned());
}

/// Installs the handlers. The first signal sets the returned flag; the second stops all systems
/// and ends the process with the shell's code for an interrupted program.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn install() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let flag = stop.clone();
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for _ in signals.forever() {
                if flag.swap(true, Ordering::SeqCst) {
                    pubgauge_testbed::stop_everything();
                    for folder in SCRATCH
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .iter()
                    {
                        let _ = std::fs::remove_dir_all(folder);
                    }
                    std::process::exit(130);
                }
                eprintln!("\nending in order; press Ctrl-C again to end at once");
            }
        })?;
    Ok(stop)
}
