//! The tables of a system file.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use pubgauge_quantities::Share;
use serde::{Deserialize, Serialize};

/// A deviation of a system from its promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Deviation {
    /// At every check.
    Always(String),
    /// At some checks: a check of the promise may also pass.
    Sometimes {
        /// Its behaviour then.
        sometimes: String,
    },
}

impl Deviation {
    /// Whether a check of the promise may pass too.
    pub fn is_sometimes(&self) -> bool {
        matches!(self, Deviation::Sometimes { .. })
    }
}

impl std::fmt::Display for Deviation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Deviation::Always(words) => f.write_str(words),
            Deviation::Sometimes { sometimes } => write!(f, "sometimes {sometimes}"),
        }
    }
}

/// How a system is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SystemKind {
    /// A program that is found on the machine and started for each trial.
    #[default]
    Process,
    /// pubgauge itself, started with other arguments as a process of its own.
    Builtin,
    /// A library inside the driver: nothing to start.
    Library,
    /// Already running somewhere; pubgauge neither starts nor stops it.
    External,
    /// Cannot be installed, for the reason that `install.note` gives; listed so that nobody
    /// searches for it.
    Unavailable,
}

/// Where a description came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// Built into the program.
    #[default]
    Embedded,
    /// A file of the user's.
    File(PathBuf),
    /// An address on the command line.
    Address,
}

/// Where the parts of a system are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Find {
    /// Names (looked up on `PATH` and in the `sbin` folders) or absolute paths (templates) of the
    /// executable; the first that exists becomes `{exe}`.
    pub executables: Vec<String>,
    /// An environment variable that, if set, names the executable and takes precedence. For an
    /// external system, the variable that holds its address, which becomes `{address}`.
    pub variable: Option<String>,
    /// Further files or folders that must exist, by placeholder: candidates (templates) of which
    /// each path component may hold one `*`; where several match, the highest version wins.
    pub paths: BTreeMap<String, Vec<String>>,
}

/// How a version is asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct VersionQuery {
    /// Command (templates) whose output names the version; its exit code does not matter.
    pub command: Vec<String>,
    /// A path (template) that names the version, where no command does.
    pub path: Option<String>,
    /// The text around the version, with `{version}` in its place: `mosquitto version {version}`.
    pub pattern: String,
}

/// Credentials of a private instance. They are no secret: the instance listens on loopback, for the
/// length of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Login {
    /// User name (template).
    pub username: String,
    /// Password (template).
    #[serde(default)]
    pub password: Option<String>,
}

/// The command to execute.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct RunCommand {
    /// The command (templates); must stay in the foreground.
    pub command: Vec<String>,
    /// Environment (templates), beyond `PATH`, `HOME`, `TMPDIR`, `USER`, `LOGNAME` and
    /// `LC_ALL=C.UTF-8`.
    pub env: BTreeMap<String, String>,
    /// Names of the loopback TCP ports it needs; each becomes a placeholder.
    pub ports: Vec<String>,
    /// Names of folders made in the private folder; each becomes a placeholder for its path.
    pub folders: Vec<String>,
    /// Working folder (template); the private folder if absent.
    pub directory: Option<String>,
}

/// A file written before the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ConfigFile {
    /// Path relative to the private folder.
    pub path: String,
    /// Content (template).
    pub content: String,
}

impl ConfigFile {
    /// Whether its path stays within the folder.
    pub(super) fn is_inside(&self) -> bool {
        let mut parts = Path::new(&self.path).components();
        !self.path.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
    }
}

/// How to know that a system serves. All rules that are given must hold; at least one is needed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Ready {
    /// These ports (names from `run.ports`) accept connections.
    pub tcp: Vec<String>,
    /// A line of standard output contains this text (template).
    pub stdout_line: Option<String>,
    /// A line of standard output or error contains this text (template), or, with `log-file`, a
    /// line of that file.
    pub log_line: Option<String>,
    /// The log file (template) for `log-line`, where the system writes one of its own.
    pub log_file: Option<String>,
    /// The driver itself must succeed in talking to it: some servers accept connections before
    /// they serve.
    pub probe: Option<Probe>,
    /// Seconds after which the start counts as failed. 30 if absent.
    pub time_out_s: f64,
}

impl Default for Ready {
    fn default() -> Self {
        Ready {
            tcp: Vec::new(),
            stdout_line: None,
            log_line: None,
            log_file: None,
            probe: None,
            time_out_s: 30.0,
        }
    }
}

/// A step in which the driver must succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Probe {
    /// Connect and log in.
    Connect,
    /// Connect, log in, subscribe, publish a message and get it back.
    Subscribe,
}

/// How a system is stopped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Stop {
    /// The signal that asks it to stop. SIGTERM if absent.
    pub signal: Signal,
    /// Seconds from that signal to SIGKILL. 5 if absent.
    pub grace_s: f64,
}

impl Default for Stop {
    fn default() -> Self {
        Stop {
            signal: Signal::Term,
            grace_s: 5.0,
        }
    }
}

/// Signals that ask a process to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Signal {
    /// SIGTERM.
    Term,
    /// SIGINT.
    Int,
    /// SIGQUIT.
    Quit,
    /// SIGHUP.
    Hup,
}

impl Signal {
    pub(crate) fn number(self) -> i32 {
        match self {
            Signal::Term => libc::SIGTERM,
            Signal::Int => libc::SIGINT,
            Signal::Quit => libc::SIGQUIT,
            Signal::Hup => libc::SIGHUP,
        }
    }
}

/// A command to execute at a certain moment, with the system's environment and working folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Hook {
    pub when: When,
    /// The command (templates).
    pub command: Vec<String>,
    /// Seconds after which it is killed and counts as failed. 10 if absent.
    #[serde(default = "ten")]
    pub time_out_s: f64,
    /// Not executed when the system is started again in the same folder, because its effect lasts:
    /// an account that was registered, for example.
    #[serde(default)]
    pub first_start_only: bool,
}

fn ten() -> f64 {
    10.0
}

/// Moments in the life of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// Before the start; a failure fails the start.
    BeforeStart,
    /// After it is ready; a failure fails the start.
    AfterReady,
    /// Before it is asked to stop; a failure does not matter.
    BeforeStop,
    /// After it is gone; a failure does not matter.
    AfterStop,
}

/// A system's limits on the use of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Limits {
    /// The processors it may run on, by number; all if empty.
    pub cpus: Vec<usize>,
    /// The most processor time that each of its instances gets, in processors, 0.1 and more: a held
    /// share ([`crate::shares`]). Not limited if absent.
    pub cores: Option<f64>,
    /// The most memory that each of its instances gets, in MiB: a held share too. Not limited if
    /// absent.
    pub memory_mib: Option<u64>,
    /// Variables of the environment that set a held share in the system's own words, where the
    /// kernel cannot hold it: `{cores}`, rounded up, and `{memory-mib}` are filled in.
    pub env: BTreeMap<String, String>,
    /// Address space in MiB (`RLIMIT_AS`), which is more than its memory; unlimited if absent.
    pub address_space_mib: Option<u64>,
    /// Open files (`RLIMIT_NOFILE`); as many as pubgauge itself may open if absent.
    pub open_files: Option<u64>,
    /// Open files that it needs without any client. 8 if absent.
    pub files_beside_clients: u64,
    /// Open files that it must be allowed for each client's connection: more than 1 where it keeps
    /// some in reserve. 1.0 if absent.
    pub files_per_client: f64,
}

impl Limits {
    /// The share that each of its instances gets.
    pub fn share(&self) -> Share {
        Share {
            cores: self.cores,
            memory_bytes: self.memory_mib.map(|mib| mib << 20),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            cpus: Vec::new(),
            cores: None,
            memory_mib: None,
            env: BTreeMap::new(),
            address_space_mib: None,
            open_files: None,
            files_beside_clients: 8,
            files_per_client: 1.0,
        }
    }
}

impl Limits {
    /// Open files that a server must be allowed for this number of connected clients.
    pub fn files_for(&self, clients: u64) -> u64 {
        let for_clients = (clients as f64 * self.files_per_client).ceil() as u64;
        for_clients.saturating_add(self.files_beside_clients)
    }
}
