//! A running system, and the record of what was started for it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::time::{Duration, Instant};

use pubgauge_driver::{Lifecycle, ServerEnd, Target};
use tempfile::TempDir;

use crate::domain::Domain;
use crate::file::{Counters, When};
use crate::instance::{Instance, StartPlan, Stopped, Way, run_hooks, tree};
use crate::namespace::{self, NetworkHost};
use crate::ports::HeldPorts;
use crate::readiness::{NotReady, Readiness};
use crate::shares;
use crate::start_error::StartError;

/// A system that serves. It is stopped, and its folder removed, when this is dropped.
pub struct Running {
    /// Where and how drivers reach it.
    pub target: Target,
    /// Its version; `None` if it does not report one.
    pub version: Option<String>,
    /// The record of the started processes and their configuration.
    pub record: Record,
    /// Its own counters; `None` where nothing was started.
    pub(crate) counters: Option<Counters>,
    /// The guard of the system whose counts on topics have been used; 0: none yet.
    pub(crate) counted_since: AtomicI32,
    /// `None` where nothing was started.
    pub(crate) life: Option<Life>,
    /// The folder of a system without a process.
    pub(crate) folder: Option<TempDir>,
    /// Reserves the DDS domain.
    #[expect(dead_code, reason = "claims it by being there")]
    pub(crate) domain: Option<Domain>,
}

/// A started process and what is needed to start it again.
pub(crate) struct Life {
    pub instance: Arc<Instance>,
    pub plan: Arc<StartPlan>,
    pub readiness: Readiness,
    pub ports: Vec<u16>,
    /// Reserves the ports while the system is down.
    pub held: Option<HeldPorts>,
}

/// The started processes, for the results.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Record {
    pub system: String,
    /// Its variant, if it has any.
    pub variant: Option<String>,
    pub driver: String,
    /// The command line; empty if nothing was started.
    pub command: Vec<String>,
    /// The environment.
    pub env: BTreeMap<String, String>,
    /// The configuration files as they were written, by path in the private folder.
    pub files: BTreeMap<String, String>,
    /// How its share of the machine was limited.
    pub share: shares::HeldShare,
    /// Seconds until it was ready, with the preparation of its folder and the hooks.
    pub start_s: f64,
}

impl Running {
    /// How the system ended, in words with its last lines; `None` while it runs. To be called about once a second: it
    /// also keeps the system's log files short.
    pub fn exit_reason(&self) -> Option<String> {
        let instance = self.instance()?;
        instance.trim_logs();
        instance.describe_end()
    }

    /// The system's own process; `None` if nothing was started.
    pub fn pid(&self) -> Option<i32> {
        self.instance().and_then(Instance::system_pid)
    }

    /// All processes of the system: its own and all their descendants, daemons included.
    pub fn pids(&self) -> Vec<i32> {
        self.instance().map(tree).unwrap_or_default()
    }

    /// The guard, parent of all processes of the system, which is none of them: what a
    /// [`crate::ProcessSampler`] watches. It changes with [`Running::restart`].
    pub fn root_pid(&self) -> Option<i32> {
        self.instance().map(Instance::guard_pid)
    }

    /// The system's standard output and standard error since it was last started.
    pub fn output(&self) -> [String; 2] {
        self.instance().map(Instance::texts).unwrap_or_default()
    }

    /// Stops the system with all its descendants and removes its folder.
    pub fn stop(self) -> Stopped {
        let instance = self.instance();
        instance.map_or(Stopped::NothingToStop, Instance::stop)
    }

    /// Kills the system with all its descendants, as a crash would, and keeps its folder and its
    /// ports for [`Running::restart`]. Returns when all are gone.
    pub fn kill(&mut self) -> Stopped {
        self.end(Way::Kill)
    }

    /// Stops the system in order, and keeps its folder and its ports for [`Running::restart`].
    pub fn halt(&mut self) -> Stopped {
        self.end(Way::Order)
    }

    /// Suspends the system's processes, or lets them continue: SIGSTOP or SIGCONT to its process
    /// group and to descendants that left it.
    pub fn pause(&self, paused: bool) {
        if let Some(life) = &self.life {
            life.instance.pause(paused);
        }
    }

    /// Starts the system again, with the same command, in the same folder, on the same ports, and
    /// waits until it is ready; first stops it in order if it still runs. Returns how long that
    /// took, hooks included. The target stays the same. Does nothing where nothing was started.
    ///
    /// # Errors
    /// [`StartError`]; the system is then down, and its folder goes with this `Running`.
    pub fn restart(&mut self) -> Result<Duration, StartError> {
        self.halt();
        let host = self.host().cloned();
        let system = self.record.system.clone();
        let started = namespace::run_on(host.as_ref(), || self.start_again());
        started.map_err(|error| StartError::Host { system, error })?
    }

    fn start_again(&mut self) -> Result<Duration, StartError> {
        let Some(life) = &mut self.life else {
            return Ok(Duration::ZERO);
        };
        let system = life.plan.system.clone();
        let command = self.record.command.join(" ");
        let failed = |error| StartError::Spawn {
            system: system.clone(),
            command: command.clone(),
            error,
        };
        let hook_error = |what| StartError::Hook {
            system: system.clone(),
            what,
        };
        let begin = Instant::now();
        let skip = life.readiness.log_length();
        let folder = life.instance.take_folder().map_err(failed)?;
        run_hooks(&life.plan, When::BeforeStart, true).map_err(hook_error)?;
        drop(life.held.take());
        life.instance = Instance::start(life.plan.clone(), folder, true).map_err(failed)?;
        self.record.share = life.instance.held.clone();
        self.ready(skip)
            .map_err(|failure| failure.error(&command))?;
        if let Some(instance) = self.instance() {
            instance.hooks(When::AfterReady).map_err(hook_error)?;
        }
        Ok(begin.elapsed())
    }

    /// Waits until the system is ready.
    pub(crate) fn ready(&self, skip: u64) -> Result<(), NotReady> {
        match &self.life {
            Some(life) => life.readiness.wait(&life.instance, &self.target, skip),
            None => Ok(()),
        }
    }

    fn end(&mut self, way: Way) -> Stopped {
        let Some(life) = &mut self.life else {
            return Stopped::NothingToStop;
        };
        let stopped = life.instance.end(way);
        if life.held.is_none() {
            let held = namespace::run_on(life.plan.host.as_ref(), || HeldPorts::take(&life.ports));
            life.held = held.ok();
        }
        stopped
    }

    /// The host of a network that it runs on.
    pub(crate) fn host(&self) -> Option<&NetworkHost> {
        self.life.as_ref()?.plan.host.as_ref()
    }

    fn instance(&self) -> Option<&Instance> {
        self.life.as_ref().map(|life| &*life.instance)
    }
}

impl Lifecycle for Running {
    fn restart(&mut self, how: ServerEnd) -> Result<(), Box<dyn std::error::Error>> {
        match how {
            ServerEnd::Killed => self.kill(),
            ServerEnd::Stopped => self.halt(),
        };
        Running::restart(self)?;
        Ok(())
    }

    fn pause(&mut self, paused: bool) -> bool {
        Running::pause(self, paused);
        true
    }

    fn exit_reason(&mut self) -> Option<String> {
        // Connections end with a process, a moment before its parent is notified.
        let patience = Instant::now() + Duration::from_millis(500);
        loop {
            let end = Running::exit_reason(self);
            if end.is_some() || Instant::now() >= patience {
                return end;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(life) = &self.life {
            life.instance.stop();
        }
        drop(self.folder.take());
    }
}
