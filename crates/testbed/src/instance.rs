//! A started system, and the registry of all of them, through which they are stopped.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, Weak};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::command::{self, describe_exit};
use crate::file::{Hook, Limits, Stop, When};
use crate::guard::{Bounds, Guard, Report, Spec};
use crate::lock::lock;
use crate::log::{self, Log};
use crate::namespace::{self, NetworkHost};
use crate::procfs;
use crate::realtime::usable_cpus;
use crate::residents::{KILL_TIME, MARK, end_residents};
use crate::shares::{self, HeldShare, Holding, HostShare, Share};

/// How a system ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It ended in time when it was asked to.
    Orderly,
    /// It had to be killed.
    Killed,
    /// It had ended before it was asked.
    AlreadyOver,
    /// There was nothing to stop.
    NothingToStop,
    /// The kernel could not end it within ten seconds of SIGKILL.
    Stuck,
}

impl Stopped {
    /// How a system ended, in words that follow its name; `None` if it ended in order.
    pub fn in_words(self) -> Option<&'static str> {
        match self {
            Stopped::Killed => {
                Some("had to be killed: it did not end in time when it was asked to")
            }
            Stopped::Stuck => {
                Some("is still running: the kernel has not ended it within 10 s of SIGKILL")
            }
            Stopped::Orderly | Stopped::AlreadyOver | Stopped::NothingToStop => None,
        }
    }
}

/// The plan by which one process is started and stopped.
pub(crate) struct StartPlan {
    pub system: String,
    pub argv: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    pub directory: PathBuf,
    pub limits: Limits,
    pub hooks: Vec<Hook>,
    pub stop: Stop,
    /// The host of a network that it runs on; `None`: this host, on no network.
    pub host: Option<NetworkHost>,
    /// The host of a given size that it runs on, in place of a share of its own.
    pub host_share: Option<Arc<HostShare>>,
    /// Its number among the instances of its system, from 0.
    pub number: usize,
}

/// How a system is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It is asked to end, and killed once its grace period is over.
    Order,
    /// It is killed at once.
    Kill,
}

/// One started process with its descendants and its private folder.
pub(crate) struct Instance {
    plan: Arc<StartPlan>,
    /// Whether it is started for a second time or more in its folder.
    again: bool,
    folder: Mutex<Option<TempDir>>,
    stdout: Log,
    stderr: Log,
    /// Shared by the thread that waits for reports and the one that kills; taken out at the end.
    guard: RwLock<Option<Guard>>,
    guard_pid: i32,
    /// Its share of the machine. The guard removes the control groups; pubgauge does where the
    /// guard was killed.
    holding: Mutex<Holding>,
    /// Its share as it was held.
    pub held: HeldShare,
    state: Mutex<InstanceState>,
    /// How it ended. Locked while stopping, so that a second caller waits for the first.
    stopping: Mutex<Option<Stopped>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct InstanceState {
    system_pid: Option<i32>,
    exited: Option<i32>,
    /// How many of the signals that were asked for have been sent.
    signalled: u32,
    gone: bool,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    closed: false,
    instances: Vec::new(),
});

struct Registry {
    closed: bool,
    instances: Vec<Weak<Instance>>,
}

/// Stops every system that this process has started, all at once, and lets no further one start.
/// May be called from any thread (not from a signal handler) and any number of times; each call
/// returns when all are gone.
pub fn stop_everything() {
    let instances = close_registry();
    std::thread::scope(|scope| {
        for instance in &instances {
            scope.spawn(|| instance.stop());
        }
    });
}

/// Kills every system that this process has started, all at once and without a grace period, and
/// lets no further one start. May be called while another thread is stopping them, which this cuts
/// short; returns when all are gone.
pub fn kill_everything() {
    let instances = close_registry();
    for instance in &instances {
        instance.with_guard(Guard::kill);
    }
    // Nothing is left to wait for but the removal of folders.
    stop_everything();
}

/// Lets no further system start, and returns those that there are.
fn close_registry() -> Vec<Arc<Instance>> {
    let mut registry = lock(&REGISTRY);
    registry.closed = true;
    let instances = registry.instances.iter();
    instances.filter_map(Weak::upgrade).collect()
}

impl Instance {
    /// Starts the process and watches it. The error is that of the system call. With `again` it was
    /// started in this folder before.
    pub fn start(plan: Arc<StartPlan>, folder: TempDir, again: bool) -> io::Result<Arc<Instance>> {
        let stdout = Log::create(&folder.path().join("stdout.log"))?;
        let stderr = Log::create(&folder.path().join("stderr.log"))?;
        // Under the registry's lock, so that `stop_everything` knows of it at once.
        let mut registry = lock(&REGISTRY);
        if registry.closed {
            return Err(being_stopped());
        }
        let limits = &plan.limits;
        let host = plan.host_share.as_deref();
        let (share, own) = match host {
            Some(_) => (Share::default(), BTreeMap::new()),
            None => (limits.share(), limits.env.clone()),
        };
        let usable = shares::in_turn(&share, usable_cpus(), plan.number);
        let holding = shares::hold(&share, &usable, &limits.cpus, own);
        let mut env = plan.env.clone();
        let own = holding.env.iter();
        env.extend(own.map(|(name, value)| (name.into(), value.into())));
        let guard = Guard::spawn(Spec {
            argv: plan.argv.clone(),
            env,
            directory: plan.directory.clone(),
            stdin: None,
            stdout: stdout.writer()?,
            stderr: stderr.writer()?,
            bounds: Bounds {
                network: None,
                cpus: [
                    &holding.cpus,
                    host.map_or(&limits.cpus, |h| &h.holding().cpus),
                ]
                .into_iter()
                .find(|cpus| !cpus.is_empty())
                .unwrap_or(&limits.cpus)
                .clone(),
                address_space_bytes: limits.address_space_mib.map(|mib| mib << 20),
                open_files: limits.open_files,
                private: true,
                groups: holding.names(),
                shared_groups: host.map_or(Vec::new(), |host| host.holding().names()),
            },
        })?;
        let held = host.map_or(&holding.held, HostShare::held).clone();
        let instance = Arc::new(Instance {
            plan,
            again,
            folder: Mutex::new(Some(folder)),
            stdout,
            stderr,
            guard_pid: guard.pid(),
            guard: RwLock::new(Some(guard)),
            held,
            holding: Mutex::new(holding),
            state: Mutex::default(),
            stopping: Mutex::new(None),
        });
        registry
            .instances
            .retain(|instance| instance.strong_count() > 0);
        registry.instances.push(Arc::downgrade(&instance));
        Ok(instance)
    }

    /// Reads the guard's reports, waiting at most `time_out` for a new one.
    fn update(&self, time_out: Duration) -> InstanceState {
        let report = {
            let guard = self.shared_guard();
            guard.as_ref().and_then(|guard| guard.report(time_out))
        };
        if report == Some(Report::Gone) {
            let before = *lock(&self.state);
            // A guard that ends by itself has reported how the system ended.
            if !before.gone && before.exited.is_none() {
                self.end_residents();
            }
        }
        let mut state = lock(&self.state);
        match report {
            Some(Report::Started(pid)) => state.system_pid = Some(pid),
            Some(Report::Exited(status)) => state.exited = Some(status),
            Some(Report::Signalled) => state.signalled += 1,
            Some(Report::Gone) => state.gone = true,
            None => {}
        }
        *state
    }

    /// Kills the processes that a killed guard has left.
    fn end_residents(&self) {
        let mark = |(name, _): &&(OsString, OsString)| name == MARK;
        if let Some((_, home)) = self.plan.env.iter().find(mark) {
            end_residents(Path::new(home));
        }
    }

    /// The wait status, if the system itself has ended.
    pub fn exited(&self) -> Option<i32> {
        loop {
            let before = *lock(&self.state);
            let after = self.update(Duration::ZERO);
            if after.gone && after.exited.is_none() {
                // The guard was killed, and the system with it.
                return Some(libc::SIGKILL);
            }
            if after == before {
                return after.exited;
            }
        }
    }

    /// The system's own process; waits at most 1 s for the guard to report it.
    pub fn system_pid(&self) -> Option<i32> {
        let deadline = Instant::now() + Duration::from_secs(1);
        loop {
            let state = *lock(&self.state);
            if state.system_pid.is_some() || state.gone || Instant::now() >= deadline {
                return state.system_pid;
            }
            self.update(Duration::from_millis(10));
        }
    }

    /// The guard between pubgauge and the system.
    pub fn guard_pid(&self) -> i32 {
        self.guard_pid
    }

    /// Empties log files that have grown beyond their limit.
    pub fn trim_logs(&self) {
        self.stdout.trim();
        self.stderr.trim();
    }

    /// Standard output and standard error so far, without the middle where they are long.
    pub fn texts(&self) -> [String; 2] {
        self.trim_logs();
        [self.stdout.text(), self.stderr.text()]
    }

    /// How the system ended, in words with its last lines, if it has.
    pub fn describe_end(&self) -> Option<String> {
        let status = self.exited()?;
        let host = self.plan.host_share.as_ref();
        let share = host.map_or(self.plan.limits.share(), |host| host.share());
        let memory = self.held.words_behind_end(&share, status);
        Some(format!(
            "{} {}{memory}; {}",
            self.plan.system,
            describe_exit(status),
            log::last_lines(&self.texts(), 10)
        ))
    }

    /// Executes the hooks of a moment, in order.
    ///
    /// # Errors
    /// Which hook failed, and what it said.
    pub fn hooks(&self, when: When) -> Result<(), String> {
        run_hooks(&self.plan, when, self.again)
    }

    /// The folder of a system that has ended, to start it again there.
    ///
    /// # Errors
    /// If everything is being stopped, which removes the folder.
    pub fn take_folder(&self) -> io::Result<TempDir> {
        lock(&self.folder).take().ok_or_else(being_stopped)
    }

    /// Stops the system and everything it started, and removes its folder. Idempotent; a second
    /// caller waits for the first.
    pub fn stop(&self) -> Stopped {
        let how = self.end(Way::Order);
        // A folder that cannot be removed completely (because of a mount in it) is no error.
        drop(lock(&self.folder).take());
        how
    }

    /// Ends the system and everything it started, and leaves its folder. Idempotent; a second
    /// caller waits for the first.
    pub fn end(&self, way: Way) -> Stopped {
        let mut stopping = lock(&self.stopping);
        if let Some(done) = *stopping {
            return done;
        }
        let over = self.exited().is_some();
        if !over && way == Way::Order {
            // A hook that fails must not keep the system running.
            let _ = self.hooks(When::BeforeStop);
            self.with_guard(|guard| guard.signal(self.plan.stop.signal.number()));
        }
        let orderly = self.wait_gone(if over || way == Way::Kill {
            // Descendants that outlived the system get no grace period.
            Duration::ZERO
        } else {
            Duration::from_secs_f64(self.plan.stop.grace_s)
        });
        if !orderly {
            self.with_guard(Guard::kill);
        }
        let gone = orderly || self.wait_gone(KILL_TIME);
        let guard = self
            .guard
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(mut guard) = guard {
            guard.reap(if gone { KILL_TIME } else { Duration::ZERO });
        }
        lock(&self.holding).groups.clear();
        let _ = self.hooks(When::AfterStop);
        self.trim_logs();
        let how = match (gone, over, orderly) {
            (false, ..) => Stopped::Stuck,
            (_, true, _) => Stopped::AlreadyOver,
            (_, _, true) => Stopped::Orderly,
            (_, _, false) => Stopped::Killed,
        };
        *stopping = Some(how);
        how
    }

    fn shared_guard(&self) -> RwLockReadGuard<'_, Option<Guard>> {
        self.guard.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Suspends the processes (SIGSTOP), or lets them continue (SIGCONT), and returns once the signal
    /// has been sent.
    pub fn pause(&self, paused: bool) {
        let signal = if paused { libc::SIGSTOP } else { libc::SIGCONT };
        let before = self.update(Duration::ZERO).signalled;
        self.with_guard(|guard| guard.signal(signal));
        let deadline = Instant::now() + KILL_TIME;
        let sent = |state: InstanceState| state.signalled != before || state.gone;
        // Without a guard there is nothing to signal.
        let guarded = || self.shared_guard().is_some() && Instant::now() < deadline;
        while guarded() && !sent(self.update(Duration::from_millis(50))) {}
    }

    fn with_guard(&self, what: impl FnOnce(&Guard)) {
        if let Some(guard) = self.shared_guard().as_ref() {
            what(guard);
        }
    }

    /// Waits until nothing of the system is left.
    fn wait_gone(&self, time_out: Duration) -> bool {
        let deadline = Instant::now() + time_out;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if self.update(left.min(Duration::from_millis(50))).gone {
                return true;
            }
            if left.is_zero() {
                return false;
            }
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.stop();
    }
}

fn being_stopped() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "pubgauge is being stopped")
}

/// Executes the hooks of a moment in the plan's environment; `again` if the system was started in
/// its folder before.
pub(crate) fn run_hooks(plan: &StartPlan, when: When, again: bool) -> Result<(), String> {
    let now = |hook: &&Hook| hook.when == when && !(again && hook.first_start_only);
    for hook in plan.hooks.iter().filter(now) {
        let time_out = Duration::from_secs_f64(hook.time_out_s);
        let shown = hook.command.join(" ");
        let run = || command::run(&hook.command, &plan.env, &plan.directory, time_out);
        let output = namespace::run_on(plan.host.as_ref(), run)
            .and_then(|output| output)
            .map_err(|error| format!("the command `{shown}` cannot be executed: {error}"))?;
        if !output.success {
            let said = log::last_lines(&[output.text], 10);
            return Err(format!("the command `{shown}` {}; {said}", output.end));
        }
    }
    Ok(())
}

/// Makes the private folder of a system, for this user only, below `scratch`.
pub(crate) fn private_folder(system: &str, scratch: &Path) -> io::Result<TempDir> {
    std::fs::create_dir_all(scratch)?;
    let scratch = scratch.canonicalize()?;
    tempfile::Builder::new()
        .prefix(&format!("{system}-"))
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(scratch)
}

/// All descendants of a system's guard.
pub(crate) fn tree(instance: &Instance) -> Vec<i32> {
    procfs::descendants(instance.guard_pid())
}
