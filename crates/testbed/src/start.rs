//! Starts a system: folder, ports, configuration, process, readiness.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::time::{Duration, Instant};

use pubgauge_driver::{Driver, Drivers, Secret, Settings, Target, Tls};

use crate::certificates;
use crate::domain::Domain;
use crate::file::{SystemFile, SystemKind, UnknownVariant, When};
use crate::find::{self, Installation, Missing};
use crate::instance::{Instance, StartPlan, private_folder, run_hooks};
use crate::limits::max_open_files;
use crate::namespace::{self, Site};
use crate::ports::{self, Ports};
use crate::probe::{ProbeError, Roles, log_in};
use crate::readiness::{NotReady, Readiness};
use crate::realtime::{list, usable_cpus};
use crate::residents::MARK;
use crate::running::{Life, Record, Running};
use crate::shares::HeldShare;
use crate::start_error::{PLAIN, StartError};
use crate::template::{DOMAIN, HOST, fill, fill_all, names};

/// How often a start is tried again when another program took a port first.
const PORT_TRIES: usize = 5;

/// How long a system at an address may take to refuse a client before a trial tries it anyway.
const REFUSES_WITHIN: Duration = Duration::from_secs(3);

/// Starts systems.
pub struct Testbed {
    program: PathBuf,
    drivers: Drivers,
    password: Option<Secret>,
}

impl Testbed {
    /// A testbed; built-in systems are started from the program that is running now.
    ///
    /// # Errors
    /// If the operating system does not tell which program that is.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self::with_program(std::env::current_exe()?))
    }

    /// A testbed that starts built-in systems from another program.
    pub fn with_program(program: impl Into<PathBuf>) -> Self {
        Testbed {
            program: program.into(),
            drivers: Drivers::default(),
            password: None,
        }
    }

    /// Speaks to systems through `drivers`: asks them whether a system serves, where its file says
    /// so, and what is missing for it.
    #[must_use]
    pub fn drivers(mut self, drivers: impl Into<Drivers>) -> Self {
        self.drivers = drivers.into();
        self
    }

    /// The drivers that it speaks to systems through.
    pub fn known_drivers(&self) -> &Drivers {
        &self.drivers
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

    /// The driver of a system, if the testbed was given it.
    pub(crate) fn driver_of(&self, system: &SystemFile) -> Option<Arc<dyn Driver>> {
        self.drivers.by_name(&system.driver)
    }

    /// Looks for the parts of a system on this machine.
    ///
    /// # Errors
    /// Says what was looked for, where, and how to install it.
    pub fn find(&self, system: &SystemFile) -> Result<Installation, Missing> {
        find::find(system, &self.program, &self.drivers)
    }

    /// The target that [`pubgauge_driver::Driver::resolve`] gets before anything is started: with
    /// features, but without ports.
    ///
    /// # Errors
    /// If there is no such variant.
    pub fn planned_target(
        system: &SystemFile,
        variant: Option<&str>,
    ) -> Result<Target, UnknownVariant> {
        let system = system.variant(variant)?;
        Ok(Target {
            // The other placeholders have no value yet.
            endpoints: fill_all(&system.endpoints, &find::loopback()),
            features: system.features,
            ..Target::default()
        })
    }

    /// Starts a system in a private folder below `scratch` and waits until it is ready.
    ///
    /// # Errors
    /// [`StartError`]; nothing of the system is left then.
    pub fn start(
        &self,
        system: &SystemFile,
        variant: Option<&str>,
        scratch: &Path,
    ) -> Result<Running, StartError> {
        self.start_on(&Site::default(), system, variant, scratch)
    }

    /// As [`Testbed::start`], on a host: of a network, the system listens on the host's address.
    ///
    /// # Errors
    /// As [`Testbed::start`].
    pub fn start_on(
        &self,
        site: &Site,
        system: &SystemFile,
        variant: Option<&str>,
        scratch: &Path,
    ) -> Result<Running, StartError> {
        let system = system.variant(variant)?.with_options();
        let mut found = self.find(&system)?;
        if let Some(host) = &site.host {
            let address = host.address.to_string();
            found.values.insert(HOST.to_owned(), address);
        }
        if system.ready.probe.is_some() && self.driver_of(&system).is_none() {
            return Err(StartError::NoProbe {
                system: system.name.clone(),
                driver: system.driver.clone(),
            });
        }
        check_limits(&system)?;
        let version = find::version(&system, &found);
        let mut running = match system.kind {
            SystemKind::Library | SystemKind::External | SystemKind::Unavailable => {
                self.reach(&system, &found, scratch)?
            }
            SystemKind::Process | SystemKind::Builtin => {
                self.start_process(site, &system, &found, scratch)?
            }
        };
        running.version = version;
        Ok(running)
    }

    /// Why a system that runs already takes no client with any of these settings: it, or the way to it, says no, at which
    /// of its addresses. `None` if it takes one; also if it says nothing, because a trial waits longer than this.
    ///
    /// # Errors
    /// If there is no such variant.
    pub fn refusal(
        &self,
        system: &SystemFile,
        variant: Option<&str>,
        settings: &[Settings],
        roles: &Roles,
        tls: Option<&Tls>,
    ) -> Result<Option<String>, UnknownVariant> {
        let system = system.variant(variant)?;
        let (SystemKind::External, Some(driver)) = (system.kind, self.driver_of(&system)) else {
            return Ok(None);
        };
        // Clients of a system at an address have no files.
        let Ok(found) = self.find(&system) else {
            return Ok(None);
        };
        let whole = self.target(&system, &found.values, Path::new(""));
        let refusal = |endpoint: &String| {
            let one = Target {
                endpoints: vec![endpoint.clone()],
                tls: tls.cloned(),
                ..whole.clone()
            };
            let mut refused = None;
            for settings in settings {
                // A session that the server keeps would stay there.
                let settings = Settings {
                    session: None,
                    ..settings.clone()
                };
                let deadline = Instant::now() + REFUSES_WITHIN;
                match log_in(&*driver, roles, &one, &settings, deadline) {
                    Err(ProbeError::Refused(why)) => refused = refused.or(Some(why)),
                    Ok(()) | Err(ProbeError::Silent(_)) => return None,
                }
            }
            refused.map(|why| {
                if why.contains(endpoint) {
                    why
                } else {
                    format!("{endpoint}: {why}")
                }
            })
        };
        // One that says nothing is waited for; the others are asked meanwhile.
        let refusals: Vec<String> = std::thread::scope(|scope| {
            let asked = whole.endpoints.iter();
            let asked: Vec<_> = asked.map(|one| scope.spawn(|| refusal(one))).collect();
            let told = asked.into_iter().map(|one| one.join());
            told.filter_map(|told| told.unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        });
        Ok(Some(refusals.join("\n")).filter(|words| !words.is_empty()))
    }

    /// Prepares a system that has no process to start.
    fn reach(
        &self,
        system: &SystemFile,
        found: &Installation,
        scratch: &Path,
    ) -> Result<Running, StartError> {
        let folder = private_folder(&short_name(system), scratch)
            .map_err(|error| folder_error(system, scratch, error))?;
        let mut values = found.values.clone();
        values.insert("dir".into(), folder.path().display().to_string());
        let mut domain = None;
        if system
            .endpoints
            .iter()
            .any(|e| names(e).any(|name| name == DOMAIN))
        {
            let taken = Domain::take().map_err(|error| StartError::Port {
                system: system.name.clone(),
                error,
            })?;
            values.insert(DOMAIN.into(), taken.number().to_string());
            domain = Some(taken);
        }
        Ok(Running {
            target: self.target(system, &values, folder.path()),
            version: None,
            record: record(system),
            counters: None,
            counted_since: AtomicI32::default(),
            life: None,
            folder: Some(folder),
            domain,
        })
    }

    fn start_process(
        &self,
        site: &Site,
        system: &SystemFile,
        found: &Installation,
        scratch: &Path,
    ) -> Result<Running, StartError> {
        check_place(system, scratch)?;
        let mut last = String::new();
        for _ in 0..PORT_TRIES {
            let start = || match &site.share {
                Some(share) => share.free_while(|| self.try_process(site, system, found, scratch)),
                None => self.try_process(site, system, found, scratch),
            };
            let tried = namespace::run_on(site.host.as_ref(), start);
            let tried = tried.map_err(|error| StartError::Host {
                system: system.name.clone(),
                error,
            })?;
            match tried? {
                Ok(running) => return Ok(running),
                Err(how) => last = how,
            }
        }
        Err(StartError::PortsTaken {
            system: system.name.clone(),
            tries: PORT_TRIES,
            last,
        })
    }

    /// Runs on a thread that has entered the host's network namespace, if there is a host: the system stays in it.
    /// The inner error is how the system ended because another program had taken one of its ports first.
    fn try_process(
        &self,
        site: &Site,
        system: &SystemFile,
        found: &Installation,
        scratch: &Path,
    ) -> Result<Result<Running, String>, StartError> {
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
        let mut tls = None;
        if system.has_certificate() {
            let made = certificates::write(&fill("{host}", &values), folder.path());
            let (files, of_run) = made.map_err(|e| folder_error(system, folder.path(), e))?;
            values.extend(files);
            tls = Some(of_run);
        }

        let mut record = record(system);
        write_files(system, folder.path(), &mut values, &mut record)
            .map_err(|error| folder_error(system, folder.path(), error))?;
        let directory = match &system.run.directory {
            Some(directory) => PathBuf::from(fill(directory, &values)),
            None => folder.path().to_owned(),
        };
        record.command = fill_all(&system.run.command, &values);
        record.env = environment(system, folder.path(), &values);
        let os_env =
            |(key, value): (&String, &String)| (OsString::from(key), OsString::from(value));
        let mut hooks = system.hooks.clone();
        for hook in &mut hooks {
            hook.command = fill_all(&hook.command, &values);
        }
        let plan = StartPlan {
            system: name(),
            argv: record.command.iter().map(OsString::from).collect(),
            env: record.env.iter().map(os_env).collect(),
            directory,
            limits: system.limits.clone(),
            hooks,
            stop: system.stop.clone(),
            host: site.host.clone(),
            host_share: site.share.clone(),
            number: site.number,
        };
        let hook_error = |what| StartError::Hook {
            system: name(),
            what,
        };
        run_hooks(&plan, When::BeforeStart, false).map_err(hook_error)?;
        let plan = Arc::new(plan);
        let target = Target {
            tls,
            ..self.target(system, &values, folder.path())
        };
        let counters = system.counters.as_ref().map(|c| c.filled(&values));
        let command = record.command.join(" ");
        let numbers = ports.release();
        let instance =
            Instance::start(plan.clone(), folder, false).map_err(|error| StartError::Spawn {
                system: name(),
                command: command.clone(),
                error,
            })?;
        record.share = instance.held.clone();
        let readiness = Readiness {
            system: name(),
            driver: self.driver_of(system),
            ready: system.ready.clone(),
            values,
        };
        let mut running = Running {
            target,
            version: None,
            record,
            counters,
            counted_since: AtomicI32::default(),
            life: Some(Life {
                instance: Arc::clone(&instance),
                plan,
                readiness,
                ports: numbers.clone(),
                held: None,
            }),
            folder: None,
            domain: None,
        };
        match running.ready(0) {
            Err(NotReady::Ended(what)) if ports_taken(&what, &numbers, &instance) => {
                return Ok(Err(what));
            }
            other => other.map_err(|failure| failure.error(&command))?,
        }
        instance.hooks(When::AfterReady).map_err(hook_error)?;
        running.record.start_s = begin.elapsed().as_secs_f64();
        Ok(Ok(running))
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
            (SystemKind::External, None) => self.password.clone(),
            _ => None,
        };
        Target {
            endpoints: fill_all(&system.endpoints, values),
            features: system.features.clone(),
            username: login.map(|login| fill(&login.username, values)),
            password,
            scratch: folder.to_owned(),
            ..Target::default()
        }
    }
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

/// Checks that systems read the path of `scratch` as a path. Built-in systems read no
/// configuration.
fn check_place(system: &SystemFile, scratch: &Path) -> Result<(), StartError> {
    let odd = |c: &char| !(c.is_alphanumeric() || PLAIN.contains(*c));
    let what = match scratch.to_str() {
        _ if system.kind == SystemKind::Builtin => return Ok(()),
        None => "what is not UTF-8".to_owned(),
        Some(path) => match path.chars().find(odd) {
            None => return Ok(()),
            Some(' ') => "a space".to_owned(),
            Some(c) => format!("the character `{c}`"),
        },
    };
    Err(StartError::Place {
        system: system.name.clone(),
        folder: scratch.to_owned(),
        what,
    })
}

/// Checks that this machine can limit the system as its file says.
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
    let allowed = max_open_files();
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
        share: not_started(system),
        ..Record::default()
    }
}

/// How the share of a system that is not started is held: not at all. Of a system that is started,
/// the start tells.
fn not_started(system: &SystemFile) -> HeldShare {
    let why = match system.kind {
        _ if system.limits.share().is_none() => return HeldShare::default(),
        SystemKind::Library => "the system works inside the client",
        SystemKind::External => "pubgauge did not start the system",
        _ => return HeldShare::default(),
    };
    HeldShare {
        not_held: vec![format!("cores and memory: {why}")],
        ..HeldShare::default()
    }
}

/// A name fit for a folder: the name of an external system is an address.
fn short_name(system: &SystemFile) -> String {
    match system.kind {
        SystemKind::External => "external".to_owned(),
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

fn write_files(
    system: &SystemFile,
    folder: &Path,
    values: &mut BTreeMap<String, String>,
    record: &mut Record,
) -> std::io::Result<()> {
    for name in system.run.folders.iter().map(String::as_str).chain(["tmp"]) {
        let path = folder.join(name);
        private_folders().create(&path)?;
        values
            .entry(name.to_owned())
            .or_insert_with(|| path.display().to_string());
    }
    // A value may itself be a template, for example one with a path.
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
            private_folders().create(parent)?;
        }
        write_private(&path, &content)?;
        record.files.insert(file.path.clone(), content);
    }
    Ok(())
}

/// Makes folders, and missing ones above, for this user only, whatever the umask.
fn private_folders() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder
}

/// Writes a file that only this user can read, because it may hold passwords.
fn write_private(path: &Path, content: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content.as_bytes())
}

/// A clean environment: variables of the user's shell must not change a measurement.
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
        (MARK, folder.display().to_string()),
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
