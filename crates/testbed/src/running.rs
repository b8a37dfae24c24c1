//! A system that runs, and what was started for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use pubgauge_driver::Target;
use tempfile::TempDir;

use crate::instance::{Instance, Stopped};
use crate::procfs;

/// A system that serves. It is stopped, and its folder removed, when this is dropped.
pub struct Running {
    /// Where and how drivers reach it.
    pub target: Target,
    /// Its version as it reports it, if it does.
    pub version: Option<String>,
    /// What was started and with which configuration.
    pub record: Record,
    pub(crate) instance: Option<Arc<Instance>>,
    /// Keeps the folder of a system without a process.
    pub(crate) folder: Option<TempDir>,
}

/// What was started, for the results.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Record {
    /// The system.
    pub system: String,
    /// Its variant, if it has any.
    pub variant: Option<String>,
    /// The driver.
    pub driver: String,
    /// The command line; empty if nothing was started.
    pub command: Vec<String>,
    /// The environment.
    pub env: BTreeMap<String, String>,
    /// The configuration files as they were written, by path in the private folder.
    pub files: BTreeMap<String, String>,
    /// Seconds from the start to readiness.
    pub start_s: f64,
}

impl Running {
    /// Checks that the system still runs. To be called about once a second: it also keeps the
    /// system's log files short.
    ///
    /// # Errors
    /// How it ended, and its last lines.
    pub fn check(&self) -> Result<(), String> {
        let Some(instance) = &self.instance else {
            return Ok(());
        };
        instance.trim_logs();
        instance.describe_end().map_or(Ok(()), Err)
    }

    /// The system's own process; `None` if nothing was started.
    pub fn pid(&self) -> Option<i32> {
        self.instance
            .as_ref()
            .and_then(|instance| instance.system_pid())
    }

    /// All processes of the system: its own and all their descendants, daemons included.
    pub fn pids(&self) -> Vec<i32> {
        self.instance.as_deref().map(tree).unwrap_or_default()
    }

    /// The parent of all processes of the system, itself none of them: what a
    /// [`crate::ProcessSampler`] watches.
    pub fn root_pid(&self) -> Option<i32> {
        self.instance.as_ref().map(|instance| instance.guard_pid())
    }

    /// What the system wrote to standard output and standard error.
    pub fn output(&self) -> [String; 2] {
        self.instance
            .as_ref()
            .map(|instance| instance.texts())
            .unwrap_or_default()
    }

    /// Stops the system with all its descendants and removes its folder.
    pub fn stop(self) -> Stopped {
        match &self.instance {
            Some(instance) => instance.stop(),
            None => Stopped::NothingToStop,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(instance) = &self.instance {
            instance.stop();
        }
        drop(self.folder.take());
    }
}

/// All descendants of a system's guard.
pub(crate) fn tree(instance: &Instance) -> Vec<i32> {
    procfs::descendants(instance.guard_pid())
}
