//! Starting a system: folder, ports, configuration, process, readiness.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pubgauge_driver::{Secret, Target};

use crate::file::{Kind, Probe, SystemFile, UnknownVariant, When};
use crate::find::{self, Found};
use crate::instance::{Instance, Plan, private_folder, run_hooks};
use crate::limits::max_open_files;
use crate::log;
use crate::ports::{self, Ports};
use crate::realtime::{list, usable_cpus};
use crate::running::{Record, Running, tree};
use crate::start_error::StartError;
use crate::template::fill;

/// How often a start is tried again when another program took a port first.
const PORT_TRIES: usize = 5;

/// Asks a driver whether a system serves: `Ok` once it does, else why not yet.
pub type ProbeFn = dyn Fn(Probe, &Target) -> Result<(), String> + Send + Sync;

/// Starts systems.
pub struct Testbed {
    program: PathBuf,
    probe: Option<Box<ProbeFn>>,
    password: Option<Secret>,
}

impl Testbed {
    /// A testbed; built-in systems are started from the program that is running now.
    ///
    /// # Errors
    /// If the system does not tell which program that is.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self::with_program(std::env::current_exe()?))
    }

    /// A testbed that starts built-in systems from another program.
    pub fn with_program(program: impl Into<PathBuf>) -> Self {
        Testbed {
            program: program.into(),
            probe: None,
            password: None,
        }
    }

    /// Uses `probe` for systems whose file says so.
    #[must_use]
    pub fn probe(mut self, probe: Box<ProbeFn>) -> Self {
        self.probe = Some(probe);
        self
    }

    /// Uses `password` for external systems with a user name.
    #[must_use]
    pub fn password(mut self, password: Option<Secret>) -> Self {
        self.password = password;
        self
    }

    /// pubgauge's own program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The target that [`pubgauge_driver::Driver::resolve`] sees before anything is started:
    /// features, but no port yet.
    ///
    /// # Errors
    /// If there is no such variant.
    pub fn planned_target(
        system: &SystemFile,
        variant: Option<&str>,
    ) -> Result<Target, UnknownVariant> {
        let system = system.variant(variant)?;
        Ok(Target {
            endpoints: system.endpoints,
            features: system.features,
            ..Target::default()
        })
    }

    /// Starts a system in a private folder below `scratch` and waits until it is ready.
    ///
    /// # Errors
    /// [`StartError`]; nothing of the system is then left.
    pub fn start(
        &self,
        system: &SystemFile,
        variant: Option<&str>,
        scratch: &Path,
    ) -> Result<Running, StartError> {
        let system = system.variant(variant)?;
        let found = find::find(&system, &self.program)?;
        if system.ready.probe.is_some() && self.probe.is_none() {
            return Err(StartError::NoProbe {
                system: system.name.clone(),
                driver: system.driver.clone(),
            });
        }
        check_limits(&system)?;
        let version = find::version(&system, &found);
        let mut running = match system.kind {
            Kind::Library | Kind::External => self.reach(&system, &found, scratch)?,
            Kind::Process | Kind::Builtin => self.start_process(&system, &found, scratch)?,
        };
        running.version = version;
        Ok(running)
    }

    /// A system of which nothing has to be started.
    fn reach(
        &self,
        system: &SystemFile,
        found: &Found,
        scratch: &Path,
    ) -> Result<Running, StartError> {
        let folder = private_folder(&short_name(system), scratch)
            .map_err(|error| folder_error(system, scratch, error))?;
        let mut values = found.values.clone();
        values.insert("dir".into(), folder.path().display().to_string());
        Ok(Running {
            target: self.target(system, &values, folder.path()),
            version: None,
            record: record(system),
            instance: None,
            folder: Some(folder),
        })
    }

    fn start_process(
        &self,
        system: &SystemFile,
        found: &Found,
        scratch: &Path,
    ) -> Result<Running, StartError> {
        let mut last = String::new();
        for _ in 0..PORT_TRIES {
            match self.try_process(system, found, scratch) {
                Err(Attempt::PortTaken(how)) => last = how,
                Err(Attempt::Failed(error)) => return Err(error),
                Ok(running) => return Ok(running),
            }
        }
        Err(StartError::PortsTaken {
            system: system.name.clone(),
            tries: PORT_TRIES,
            last,
        })
    }

    fn try_process(
        &self,
        system: &SystemFile,
        found: &Found,
        scratch: &Path,
    ) -> Result<Running, Attempt> {
        let begin = Instant::now();
        let name = || system.name.clone();
        let ports = Ports::take(&system.run.ports).map_err(|error| StartError::Port {
            system: name(),
            error,
        })?;
        let folder = private_folder(&short_name(system), scratch)
            .map_err(|error| folder_error(system, scratch, error))?;
        let mut values = found.values.clone();
        values.insert("dir".into(), folder.path().display().to_string());
        values.extend(ports.values());

        let mut record = record(system);
        write_files(system, folder.path(), &mut values, &mut record)
            .map_err(|error| folder_error(system, folder.path(), error))?;
        let directory = match &system.run.directory {
            Some(directory) => PathBuf::from(fill(directory, &values)),
            None => folder.path().to_owned(),
        };
        record.command = filled(&system.run.command, &values);
        record.env = environment(system, folder.path(), &values);
        let os_env =
            |(key, value): (&String, &String)| (OsString::from(key), OsString::from(value));
        let mut hooks = system.hooks.clone();
        for hook in &mut hooks {
            hook.command = filled(&hook.command, &values);
        }
        let plan = Plan {
            system: name(),
            argv: record.command.iter().map(OsString::from).collect(),
            env: record.env.iter().map(os_env).collect(),
            directory,
            cpus: system.limits.cpus.clone(),
            address_space_bytes: system.limits.address_space_mib.map(|mib| mib << 20),
            open_files: system.limits.open_files,
            hooks,
            stop: system.stop.clone(),
        };
        let hook_error = |what| StartError::Hook {
            system: name(),
            what,
        };
        run_hooks(&plan, When::BeforeStart).map_err(hook_error)?;
        let target = self.target(system, &values, folder.path());
        let command = record.command.join(" ");
        let numbers = ports.release();
        let instance = Instance::start(plan, folder).map_err(|error| StartError::Spawn {
            system: name(),
            command: command.clone(),
            error,
        })?;
        let mut running = Running {
            target,
            version: None,
            record,
            instance: Some(Arc::clone(&instance)),
            folder: None,
        };
        self.wait_ready(system, &values, &instance, &running.target)
            .map_err(|failure| match failure {
                NotYet::Ended(what) if ports_taken(&what, &numbers, &instance) => {
                    Attempt::PortTaken(what)
                }
                NotYet::Ended(what) => StartError::Ended { what, command }.into(),
                NotYet::TimedOut(waiting_for) => StartError::NotReady {
                    system: name(),
                    seconds: system.ready.time_out_s,
                    waiting_for,
                    last: log::last_lines(&instance.texts(), 10),
                }
                .into(),
            })?;
        instance.hooks(When::AfterReady).map_err(hook_error)?;
        running.record.start_s = begin.elapsed().as_secs_f64();
        Ok(running)
    }

    /// Waits until all rules hold.
    fn wait_ready(
        &self,
        system: &SystemFile,
        values: &BTreeMap<String, String>,
        instance: &Instance,
        target: &Target,
    ) -> Result<(), NotYet> {
        let ready = &system.ready;
        let deadline = Instant::now() + Duration::from_secs_f64(ready.time_out_s);
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(end) = instance.describe_end() {
                return Err(NotYet::Ended(end));
            }
            let waiting_for = match self.unmet(system, values, instance, target) {
                None => return Ok(()),
                Some(waiting_for) => waiting_for,
            };
            if Instant::now() >= deadline {
                return Err(NotYet::TimedOut(waiting_for));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// The first rule that does not hold yet, in words.
    fn unmet(
        &self,
        system: &SystemFile,
        values: &BTreeMap<String, String>,
        instance: &Instance,
        target: &Target,
    ) -> Option<String> {
        let ready = &system.ready;
        let has_line = |text: &str, wanted: &str| text.lines().any(|line| line.contains(wanted));
        if let Some(line) = &ready.stdout_line {
            let line = fill(line, values);
            if !has_line(&instance.texts()[0], &line) {
                return Some(format!("no line with `{line}` on its standard output"));
            }
        }
        if let Some(line) = &ready.log_line {
            let line = fill(line, values);
            let there = match &ready.log_file {
                Some(file) => std::fs::read_to_string(fill(file, values))
                    .is_ok_and(|text| has_line(&text, &line)),
                None => instance.texts().iter().any(|text| has_line(text, &line)),
            };
            if !there {
                return Some(format!("no line with `{line}` in its log"));
            }
        }
        for name in &ready.tcp {
            let port = values.get(name).and_then(|port| port.parse().ok());
            if !port.is_some_and(|port| ports::accepts(port, &tree(instance))) {
                return Some(format!(
                    "it does not accept connections on its port `{name}`"
                ));
            }
        }
        let (Some(probe), Some(ask)) = (ready.probe, &self.probe) else {
            return None;
        };
        let refused = ask(probe, target).err()?;
        Some(format!("the driver {} says: {refused}", system.driver))
    }

    fn target(
        &self,
        system: &SystemFile,
        values: &BTreeMap<String, String>,
        folder: &Path,
    ) -> Target {
        let login = system.login.as_ref();
        let own = login.and_then(|login| login.password.as_ref());
        let password = match (system.kind, own) {
            (_, Some(password)) => Some(Secret::new(fill(password, values))),
            (Kind::External, None) => self.password.clone(),
            _ => None,
        };
        Target {
            endpoints: filled(&system.endpoints, values),
            features: system.features.clone(),
            username: login.map(|login| fill(&login.username, values)),
            password,
            tls: None,
            scratch: folder.to_owned(),
            shared: None,
        }
    }
}

enum Attempt {
    PortTaken(String),
    Failed(StartError),
}

impl From<StartError> for Attempt {
    fn from(error: StartError) -> Self {
        Attempt::Failed(error)
    }
}

enum NotYet {
    Ended(String),
    TimedOut(String),
}

/// Whether a system ended because a port was no longer free: it says so, or another program
/// holds it.
fn ports_taken(what: &str, ports: &[u16], instance: &Instance) -> bool {
    if ports.is_empty() {
        return false;
    }
    let what = what.to_lowercase();
    let says = ["address already in use", "address in use", "eaddrinuse"];
    if says.iter().any(|text| what.contains(text)) {
        return true;
    }
    // Its own descendants may still hold the ports.
    instance.stop();
    ports.iter().any(|&port| !ports::is_free(port))
}

/// Whether this machine can limit the system as its file says.
fn check_limits(system: &SystemFile) -> Result<(), StartError> {
    let refuse = |what: String, hint: String| StartError::Limits {
        system: system.name.clone(),
        what,
        hint,
    };
    let usable = usable_cpus();
    if let Some(cpu) = system.limits.cpus.iter().find(|cpu| !usable.contains(cpu)) {
        let hint = format!("limits.cpus may name: {}", list(&usable));
        return Err(refuse(format!("there is no processor {cpu} here"), hint));
    }
    let allowed = max_open_files().unwrap_or(u64::MAX);
    match system.limits.open_files {
        Some(wanted) if wanted > allowed => Err(refuse(
            format!("{wanted} open files are more than pubgauge itself may have"),
            format!("limits.open-files may be {allowed} at most"),
        )),
        _ => Ok(()),
    }
}

fn record(system: &SystemFile) -> Record {
    Record {
        system: system.name.clone(),
        variant: system.default_variant.clone(),
        driver: system.driver.clone(),
        ..Record::default()
    }
}

/// A name fit for a folder: that of an external system is an address.
fn short_name(system: &SystemFile) -> String {
    match system.kind {
        Kind::External => "external".to_owned(),
        _ => system.name.clone(),
    }
}

fn folder_error(system: &SystemFile, folder: &Path, error: std::io::Error) -> StartError {
    StartError::Folder {
        system: system.name.clone(),
        folder: folder.to_owned(),
        error,
    }
}

fn filled(templates: &[String], values: &BTreeMap<String, String>) -> Vec<String> {
    templates
        .iter()
        .map(|template| fill(template, values))
        .collect()
}

fn write_files(
    system: &SystemFile,
    folder: &Path,
    values: &mut BTreeMap<String, String>,
    record: &mut Record,
) -> std::io::Result<()> {
    for name in system.run.folders.iter().map(String::as_str).chain(["tmp"]) {
        let path = folder.join(name);
        std::fs::create_dir_all(&path)?;
        values
            .entry(name.to_owned())
            .or_insert_with(|| path.display().to_string());
    }
    // A value may itself be a template: that of a variant holds a path, say.
    let nested: Vec<(String, String)> = system
        .values
        .iter()
        .map(|(name, value)| (name.clone(), fill(value, values)))
        .collect();
    values.extend(nested);
    for file in &system.files {
        let path = folder.join(&file.path);
        let content = fill(&file.content, values);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&path, &content)?;
        record.files.insert(file.path.clone(), content);
    }
    Ok(())
}

/// A clean environment: what the user's shell happens to hold must not change a measurement.
fn environment(
    system: &SystemFile,
    folder: &Path,
    values: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".to_owned());
    let user = values.get("user").cloned().unwrap_or_default();
    let mut env: BTreeMap<String, String> = [
        ("PATH", format!("{path}:/usr/local/sbin:/usr/sbin:/sbin")),
        ("HOME", folder.display().to_string()),
        ("TMPDIR", folder.join("tmp").display().to_string()),
        ("USER", user.clone()),
        ("LOGNAME", user),
        ("LC_ALL", "C.UTF-8".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let own = system.run.env.iter();
    env.extend(own.map(|(name, value)| (name.clone(), fill(value, values))));
    env
}
