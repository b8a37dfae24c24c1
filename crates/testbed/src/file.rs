//! The format of `systems/NAME.toml`: one real system each, how it is found, installed,
//! configured, started, known ready, and stopped. Documented for users in
//! `docs/add-a-broker.md`.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use pubgauge_driver::Capability;
use serde::{Deserialize, Serialize};

use crate::log::open_file;
pub use check::FileError;
pub use counters::{Counter, Counters};
pub use install::{Install, Maven};

mod check;
mod counters;
pub(crate) mod install;

/// Largest system file in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// What a system does instead of what it promises.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Deviation {
    /// At every check.
    Always(String),
    /// At some checks: a check of the promise may also pass.
    Sometimes {
        /// What it does then.
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

/// A system as its file describes it.
///
/// In every string that is marked *template*, `{name}` stands for a value that is known only
/// when the system is started; see [`crate::template`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SystemFile {
    /// Its name in studies, on the command line and in results.
    pub name: String,
    /// The driver that speaks to it, for example `mqtt`.
    pub driver: String,
    /// One sentence for people.
    #[serde(default)]
    pub description: String,
    /// How it is started.
    #[serde(default)]
    pub kind: Kind,
    /// What it can do, in the driver's words, for example `mqtt-3.1.1`, `mqtt-5`, `tls`.
    #[serde(default)]
    pub features: Vec<String>,
    /// Part of the first look, the study that runs where none is named: it starts in under a second
    /// and needs little of the machine.
    #[serde(default)]
    pub first_look: bool,
    /// Where it was measured not to keep what its protocol promises, and what it does instead: by
    /// the name of the capability (`reliability:exactly-once`, `last-value`) or of the check of
    /// the conformance suite (`sizes-16-b-to-2-mb`).
    #[serde(default)]
    pub deviations: BTreeMap<String, Deviation>,
    /// What else was measured that a user should know of a capability, although the system has it
    /// on the whole.
    #[serde(default)]
    pub remarks: BTreeMap<String, String>,
    /// The variant that is taken if none is asked for; needed as soon as there are variants.
    #[serde(default)]
    pub default_variant: Option<String>,
    /// Where its parts are.
    #[serde(default)]
    pub find: Find,
    /// How its version is asked for.
    #[serde(default)]
    pub version: VersionQuery,
    /// How it is installed.
    #[serde(default)]
    pub install: Install,
    /// Addresses handed to the driver (templates), for example `mqtt://127.0.0.1:{port}`.
    #[serde(default)]
    pub endpoints: Vec<String>,
    /// User name and password of the private instance, if it wants them.
    #[serde(default)]
    pub login: Option<Login>,
    /// What is executed, and with what.
    #[serde(default)]
    pub run: Run,
    /// Files written into the private folder before the start.
    #[serde(default)]
    pub files: Vec<ConfigFile>,
    /// How to know that it serves.
    #[serde(default)]
    pub ready: Ready,
    /// Where it publishes its own counts of messages; absent if it has none.
    #[serde(default)]
    pub counters: Option<Counters>,
    /// How it is stopped.
    #[serde(default)]
    pub stop: Stop,
    /// Commands to execute at certain moments of its life.
    #[serde(default)]
    pub hooks: Vec<Hook>,
    /// What it may use of the machine.
    #[serde(default)]
    pub limits: Limits,
    /// Values of further placeholders.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
    /// Named ways to run it, for example `memory` and `persistent`.
    #[serde(default)]
    pub variants: BTreeMap<String, Variant>,
    /// Where the description came from.
    #[serde(skip)]
    pub origin: Origin,
    /// The application's settings as JSON: the placeholder `{settings}`. `{}` if `None`.
    #[serde(skip)]
    pub settings: Option<String>,
}

/// How a system is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
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

/// What is executed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Run {
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

/// What the driver must do successfully.
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
    /// When.
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

/// What a system may use of the machine.
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

/// A named way to run a system: what it changes of the description around it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Variant {
    /// One sentence for people.
    pub description: String,
    /// Another driver, where a server speaks several protocols.
    pub driver: Option<String>,
    /// Features instead of the common ones.
    pub features: Option<Vec<String>>,
    /// Features beyond the others.
    pub add_features: Vec<String>,
    /// Deviations beyond or instead of the common ones.
    pub deviations: BTreeMap<String, Deviation>,
    /// Remarks beyond or instead of the common ones.
    pub remarks: BTreeMap<String, String>,
    /// Addresses instead of the common ones.
    pub endpoints: Option<Vec<String>>,
    /// Login instead of the common one.
    pub login: Option<Login>,
    /// Another command.
    pub command: Option<Vec<String>>,
    /// Environment beyond the common one.
    pub env: BTreeMap<String, String>,
    /// Values of placeholders, beyond or instead of the common ones.
    pub values: BTreeMap<String, String>,
    /// Files beyond or (same path) instead of the common ones.
    pub files: Vec<ConfigFile>,
    /// Readiness instead of the common one.
    pub ready: Option<Ready>,
    /// Counters instead of the common ones.
    pub counters: Option<Counters>,
}

impl SystemFile {
    /// A description with every field empty or at its default.
    pub(crate) fn empty() -> Self {
        SystemFile {
            name: String::new(),
            driver: String::new(),
            description: String::new(),
            kind: Kind::default(),
            features: Vec::new(),
            first_look: false,
            deviations: BTreeMap::new(),
            remarks: BTreeMap::new(),
            default_variant: None,
            find: Find::default(),
            version: VersionQuery::default(),
            install: Install::default(),
            endpoints: Vec::new(),
            login: None,
            run: Run::default(),
            files: Vec::new(),
            ready: Ready::default(),
            counters: None,
            stop: Stop::default(),
            hooks: Vec::new(),
            limits: Limits::default(),
            values: BTreeMap::new(),
            variants: BTreeMap::new(),
            origin: Origin::Embedded,
            settings: None,
        }
    }

    /// Parses the text of a system file. `file` is only named in errors.
    ///
    /// # Errors
    /// With file, line, column, what was expected and the nearest right spelling.
    pub fn parse(text: &str, file: &str) -> Result<Self, FileError> {
        let parsed: SystemFile =
            toml::from_str(text).map_err(|error| FileError::of_toml(&error, text, file))?;
        parsed
            .validate()
            .map_err(|fault| FileError::of_fault(fault, text, file))?;
        Ok(parsed)
    }

    /// Reads and parses a system file of the user's.
    ///
    /// # Errors
    /// As [`SystemFile::parse`], and if the file cannot be read, is over 1 MiB or no text.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let name = path.display().to_string();
        let fault = |what: String| FileError {
            file: name.clone(),
            line: 1,
            column: 1,
            what,
            hint: Some(
                "a system file is a small text file in TOML; see docs/add-a-broker.md".into(),
            ),
        };
        let unreadable = |e: std::io::Error| fault(format!("cannot be read: {e}"));
        let file = open_file(path).map_err(unreadable)?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(fault("is longer than 1 MiB, which is the limit".into()));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let before = String::from_utf8_lossy(&error.as_bytes()[..at]).into_owned();
            let line_start = before.rfind('\n').map_or(0, |end| end + 1);
            FileError {
                line: before.matches('\n').count() + 1,
                column: before[line_start..].chars().count() + 1,
                ..fault(format!(
                    "is not UTF-8 text: byte {at} does not belong there"
                ))
            }
        })?;
        let mut system = Self::parse(&text, &name)?;
        system.origin = Origin::File(path.to_owned());
        Ok(system)
    }

    /// What it does instead where it was measured not to keep the promise of a capability; `None`
    /// where it keeps it.
    pub fn deviation(&self, capability: Capability) -> Option<&Deviation> {
        self.deviations.get(&capability.to_string())
    }

    /// The description with a variant's changes applied: `None` takes the default variant.
    ///
    /// # Errors
    /// The names of the variants, if there is no such one.
    pub fn variant(&self, name: Option<&str>) -> Result<SystemFile, UnknownVariant> {
        let Some(name) = name.or(self.default_variant.as_deref()) else {
            return Ok(self.clone());
        };
        let unknown = || UnknownVariant {
            system: self.name.clone(),
            variant: name.to_owned(),
            known: self.variants.keys().cloned().collect(),
        };
        let variant = self.variants.get(name).cloned().ok_or_else(unknown)?;
        let mut system = self.clone();
        system.default_variant = Some(name.to_owned());
        system.driver = variant.driver.unwrap_or(system.driver);
        system.features = variant.features.unwrap_or(system.features);
        system.features.extend(variant.add_features);
        system.deviations.extend(variant.deviations);
        system.remarks.extend(variant.remarks);
        system.endpoints = variant.endpoints.unwrap_or(system.endpoints);
        system.login = variant.login.or(system.login);
        system.run.command = variant.command.unwrap_or(system.run.command);
        system.run.env.extend(variant.env);
        system.values.extend(variant.values);
        system.ready = variant.ready.unwrap_or(system.ready);
        system.counters = variant.counters.or(system.counters);
        for file in variant.files {
            system.files.retain(|common| common.path != file.path);
            system.files.push(file);
        }
        Ok(system)
    }
}

/// A variant that a system does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{system} has no variant `{variant}`\n  hint: {}", spelling_hint(variant, &known.iter().map(String::as_str).collect::<Vec<_>>()))]
pub struct UnknownVariant {
    /// The system.
    pub system: String,
    /// The name asked for.
    pub variant: String,
    /// The names there are.
    pub known: Vec<String>,
}

/// The hint for a wrong name: the nearest known one, else all of them.
pub(crate) fn spelling_hint(wrong: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(wrong, name), *name))
        .min()
        .filter(|(distance, name)| *distance <= 1 + name.len() / 3);
    match (nearest, known) {
        (Some((_, name)), _) => format!("did you mean `{name}`?"),
        (None, []) => "there is nothing to choose from".to_owned(),
        (None, _) => format!("there are: {}", known.join(", ")),
    }
}
