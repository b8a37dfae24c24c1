//! Signals. The first Ctrl-C ends the run after clean-up; the second ends it at once.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pubgauge_testbed::OwnedFolder;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::exit::{Ending, tell};
use crate::lock;

/// How long after the first signal systems that have not ended are killed: the program must end
/// within five seconds.
const PATIENCE: Duration = Duration::from_millis(3500);

/// The shell's exit code for an interrupted program.
const INTERRUPTED: i32 = 130;

/// Whether the process is ending at once.
static AT_ONCE: AtomicBool = AtomicBool::new(false);

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

/// The exit code of a program that ends normally with `own`: it may have ended only because the
/// second signal killed its systems.
pub fn exit_code(own: i32) -> i32 {
    if AT_ONCE.load(Ordering::SeqCst) {
        INTERRUPTED
    } else {
        own
    }
}

/// Makes a write beyond the largest file size (`ulimit -f`) fail with an error instead of ending the program.
/// Processes that it starts are not affected.
///
/// # Errors
/// If the handler cannot be installed.
pub fn ignore_size_limit() -> Result<(), Ending> {
    signal_hook::flag::register(SIGXFSZ, Arc::default())
        .map(drop)
        .map_err(|error| Ending::not_valid(format!("SIGXFSZ cannot be handled: {error}")))
}

/// Installs the handlers. The first signal sets the returned flag; the second kills all systems
/// and ends the process with the shell's code for an interrupted program.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn install() -> std::io::Result<Arc<AtomicBool>> {
    install_with(
        || tell!("\nending in order; press Ctrl-C again to end at once"),
        None,
    )
}

/// As [`install`]; the first signal calls `ending`. With `again`, SIGHUP sets that flag and ends nothing, unless it came
/// because the terminal is gone.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn install_with(
    ending: impl Fn() + Send + 'static,
    again: Option<Arc<AtomicBool>>,
) -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let flag = stop.clone();
    let had_terminal = std::io::stderr().is_terminal();
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for signal in signals.forever() {
                let hung_up = had_terminal && !std::io::stderr().is_terminal();
                if let Some(again) = again.as_ref().filter(|_| signal == SIGHUP && !hung_up) {
                    again.store(true, Ordering::SeqCst);
                    continue;
                }
                if flag.swap(true, Ordering::SeqCst) {
                    at_once();
                }
                // A system that ends slowly is killed after [`PATIENCE`].
                std::thread::spawn(|| {
                    std::thread::sleep(PATIENCE);
                    pubgauge_testbed::kill_everything();
                });
                ending();
            }
        })?;
    Ok(stop)
}

/// Kills all systems and ends the process.
fn at_once() -> ! {
    AT_ONCE.store(true, Ordering::SeqCst);
    pubgauge_testbed::kill_everything();
    for folder in lock(&SCRATCH).iter() {
        let _ = std::fs::remove_dir_all(folder);
    }
    // Without the libraries' exit handlers, which could clash with running threads.
    signal_hook::low_level::exit(INTERRUPTED);
}
