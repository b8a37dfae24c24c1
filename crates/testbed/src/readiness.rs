//! Waits until a system serves, at its first start and at each further one.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pubgauge_driver::{Driver, Target};

use crate::file::Ready;
use crate::instance::{Instance, tree};
use crate::log;
use crate::ports;
use crate::probe::probe;
use crate::start_error::StartError;
use crate::template::{HOST, fill};

/// The rules of one started system.
pub(crate) struct Readiness {
    pub system: String,
    pub driver: Option<Arc<dyn Driver>>,
    pub ready: Ready,
    pub values: BTreeMap<String, String>,
}

/// Why a system is not ready.
pub(crate) enum NotReady {
    /// It ended: in which way, with its last lines.
    Ended(String),
    /// It took too long.
    TimedOut(StartError),
}

impl NotReady {
    /// The error of a start by `command`.
    pub fn error(self, command: &str) -> StartError {
        match self {
            NotReady::Ended(what) => StartError::Ended {
                what,
                command: command.to_owned(),
            },
            NotReady::TimedOut(error) => error,
        }
    }
}

impl Readiness {
    /// Waits until all rules hold. The first `skip` bytes of the system's own log file are from an
    /// earlier start and are ignored.
    pub fn wait(&self, instance: &Instance, target: &Target, skip: u64) -> Result<(), NotReady> {
        let deadline = Instant::now() + Duration::from_secs_f64(self.ready.time_out_s);
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(end) = instance.describe_end() {
                return Err(NotReady::Ended(end));
            }
            let waiting_for = match self.unmet(instance, target, skip, deadline) {
                None => return Ok(()),
                Some(waiting_for) => waiting_for,
            };
            if Instant::now() >= deadline {
                return Err(NotReady::TimedOut(StartError::NotReady {
                    system: self.system.clone(),
                    seconds: self.ready.time_out_s,
                    waiting_for,
                    last: log::last_lines(&instance.texts(), 10),
                }));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// Length in bytes of the system's own log file, if it writes one.
    pub fn log_length(&self) -> u64 {
        let file = self.ready.log_file.as_ref();
        file.and_then(|file| std::fs::metadata(fill(file, &self.values)).ok())
            .map_or(0, |meta| meta.len())
    }

    /// The first rule that does not hold yet, in words; `None` if all hold.
    fn unmet(
        &self,
        instance: &Instance,
        target: &Target,
        skip: u64,
        deadline: Instant,
    ) -> Option<String> {
        let (ready, values) = (&self.ready, &self.values);
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
                Some(file) => {
                    let file = fill(file, values);
                    match log::fresh(Path::new(&file), skip) {
                        Ok(text) => has_line(&text, &line),
                        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
                        Err(error) => {
                            return Some(format!("its log {file} cannot be read: {error}"));
                        }
                    }
                }
                None => instance.texts().iter().any(|text| has_line(text, &line)),
            };
            if !there {
                return Some(format!("no line with `{line}` in its log"));
            }
        }
        let host = values.get(HOST).and_then(|host| host.parse().ok());
        let host = host.unwrap_or(Ipv4Addr::LOCALHOST);
        for name in &ready.tcp {
            let port = values.get(name).and_then(|port| port.parse().ok());
            if !port.is_some_and(|port| ports::accepts(host, port, &tree(instance))) {
                return Some(format!(
                    "it does not accept connections on its port `{name}`"
                ));
            }
        }
        let (Some(what), Some(driver)) = (ready.probe, &self.driver) else {
            return None;
        };
        let refused = probe(&**driver, what, target, deadline).err()?;
        Some(format!("the driver {} says: {refused}", driver.name()))
    }
}
