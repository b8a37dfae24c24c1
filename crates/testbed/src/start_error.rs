//! Why a system could not be started.

use std::path::PathBuf;

use crate::catalog::CatalogError;
use crate::file::UnknownVariant;
use crate::find::Missing;

/// Characters that a path may hold beside letters and digits. Measured with mosquitto 2.0.11, NATS 2.9.10, RabbitMQ
/// 3.10.8, ejabberd 23.01 and Artemis 2.40.0: letters beyond ASCII and `$` work with all; a space breaks RabbitMQ and
/// Artemis, `'` breaks RabbitMQ, `"` breaks all but mosquitto; `:` separates the entries of a class path.
pub(crate) const PLAIN: &str = "/._-+=@,~$";

/// Why a system could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It is not known.
    #[error(transparent)]
    Unknown(#[from] CatalogError),
    /// It has no such variant.
    #[error(transparent)]
    Variant(#[from] UnknownVariant),
    /// It is not on this machine.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// Its private folder or a file in it cannot be written.
    #[error("the private folder of {system} in {} cannot be prepared: {error}\n  hint: is the disk full, or the folder read-only?", folder.display())]
    Folder {
        system: String,
        folder: PathBuf,
        error: std::io::Error,
    },
    /// The host of a network that it was to run on cannot be entered.
    #[error("the host of a network that {system} was to run on cannot be entered: {error}")]
    Host {
        system: String,
        error: std::io::Error,
    },
    /// The path of its folder holds a character that configuration files or shells do not take as
    /// part of a path.
    #[error(
        "{system} cannot be started in {}: {what} in a path means something else to configuration files and shells\n  hint: set TMPDIR to a folder whose path has letters, digits and {PLAIN} alone",
        folder.display()
    )]
    Place {
        system: String,
        folder: PathBuf,
        /// The character, in words.
        what: String,
    },
    /// No free port.
    #[error("no free loopback port or DDS domain for {system}: {error}")]
    Port {
        system: String,
        error: std::io::Error,
    },
    /// Other programs took the ports first, again and again.
    #[error(
        "{system} found its ports taken {tries} times in a row; {last}\n  hint: does its configuration name a fixed port? use {{port}} and run.ports"
    )]
    PortsTaken {
        system: String,
        /// How often it was tried.
        tries: usize,
        /// How it ended the last time.
        last: String,
    },
    /// Its file sets a limit that this machine cannot hold.
    #[error("{system} cannot be limited as its file says: {what}\n  hint: {hint}")]
    Limits {
        system: String,
        /// The limit that is impossible.
        what: String,
        /// A way that would be possible.
        hint: String,
    },
    /// The command cannot be executed.
    #[error("{system} cannot be started: {command}: {error}\n  hint: try that command by hand")]
    Spawn {
        system: String,
        command: String,
        error: std::io::Error,
    },
    /// It ended before it was ready.
    #[error("{what}\n  hint: it ended before it was ready; try its command by hand: {command}")]
    Ended {
        /// How it ended and its last lines.
        what: String,
        command: String,
    },
    /// It did not become ready in time.
    #[error(
        "{system} was not ready after {seconds} s: {waiting_for}; {last}\n  hint: raise ready.time-out-s in its file if the machine is slow"
    )]
    NotReady {
        system: String,
        /// The time-out.
        seconds: f64,
        /// The rule that did not hold.
        waiting_for: String,
        /// Its last lines.
        last: String,
    },
    /// A hook failed.
    #[error("{system}: {what}")]
    Hook {
        system: String,
        /// The operation that failed.
        what: String,
    },
    /// Its file asks for a probe by a driver that this testbed was not given.
    #[error(
        "the file of {system} asks for a probe by the driver {driver}, which this pubgauge was built without\n  hint: use tcp, stdout-line or log-line in [ready]"
    )]
    NoProbe { system: String, driver: String },
}
