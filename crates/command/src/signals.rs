//! Signals. The first Ctrl-C ends a program in order; the second ends it at once.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::exit::{Ending, tell};

/// The shell's exit code for an interrupted program.
const INTERRUPTED: i32 = 130;

/// Whether the process is ending at once.
static AT_ONCE: AtomicBool = AtomicBool::new(false);

/// The exit code of a program that ends normally with `own`: it may have ended only because the
/// second signal took away what it waited for.
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

/// Reactions of a program to SIGINT, SIGTERM and SIGHUP.
pub struct Reactions {
    /// Called at the first signal, which also sets the flag that [`install`] returns.
    pub first: Box<dyn Fn() + Send>,
    /// Called at the second signal, after which the process ends.
    pub second: fn(),
    /// SIGHUP sets it and ends nothing, unless it came because the terminal is gone.
    pub again: Option<Arc<AtomicBool>>,
}

impl Default for Reactions {
    /// The first signal is answered in words.
    fn default() -> Reactions {
        Reactions {
            first: Box::new(|| tell!("\nending in order; press Ctrl-C again to end at once")),
            second: || {},
            again: None,
        }
    }
}

/// Installs the handlers. The first signal sets the returned flag; the second ends the process with the shell's code for
/// an interrupted program.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn install(reactions: Reactions) -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let flag = stop.clone();
    let had_terminal = std::io::stderr().is_terminal();
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for signal in signals.forever() {
                let hung_up = had_terminal && !std::io::stderr().is_terminal();
                let again = reactions.again.as_ref();
                if let Some(again) = again.filter(|_| signal == SIGHUP && !hung_up) {
                    again.store(true, Ordering::SeqCst);
                    continue;
                }
                if flag.swap(true, Ordering::SeqCst) {
                    AT_ONCE.store(true, Ordering::SeqCst);
                    (reactions.second)();
                    // Without the libraries' exit handlers, which could clash with running threads.
                    signal_hook::low_level::exit(INTERRUPTED);
                }
                (reactions.first)();
            }
        })?;
    Ok(stop)
}
