//! Ctrl-C once: finish what must be finished, clean up, and end. Twice: end at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

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
                    std::process::exit(130);
                }
                eprintln!("\nending in order; press Ctrl-C again to end at once");
            }
        })?;
    Ok(stop)
}
