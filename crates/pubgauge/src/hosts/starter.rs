//! Starts the agents of a run: by `srun` or `kubectl`.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use pubgauge_hosts::{Address, Credentials, FILE_VARIABLE};
use pubgauge_runner::agents::Agents;
use pubgauge_testbed::{Confinement, Piped};

use super::kubernetes::Manifests;
use crate::exit::{Ending, tell};

/// How long agents may take to end after they were told that the run is over.
const ENDING: Duration = Duration::from_secs(10);
/// Flag of `kubectl`: how long a cluster may take to answer.
const ANSWER: &str = "--request-timeout=30s";

/// What started agents. Dropping it waits for their end, and removes the objects it has made.
pub enum Starter {
    /// A program that runs as long as they do.
    Srun(Box<Srun>),
    /// Objects in a cluster.
    Kubernetes(Objects),
}

impl Starter {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Starter::Srun(_) => "srun",
            Starter::Kubernetes(_) => "kubectl",
        }
    }

    /// Whether it starts no more agents.
    pub fn is_over(&self) -> bool {
        match self {
            Starter::Srun(srun) => srun.is_over(),
            Starter::Kubernetes(_) => false,
        }
    }

    /// How it ended.
    pub fn ending(&self) -> String {
        match self {
            Starter::Srun(srun) => srun.process.ending(),
            Starter::Kubernetes(objects) => format!("has made {}", objects.name),
        }
    }
}

/// `srun`.
pub struct Srun {
    process: Piped,
    over: Arc<AtomicBool>,
}

impl Srun {
    /// `srun` with one agent on each of as many nodes as there are hosts. It waits for nodes that do not answer; the
    /// run waits for a limited time.
    pub fn start(agents: &Agents) -> Result<Srun, Ending> {
        let failed = |error| Ending::not_valid(format!("cannot start srun: {error}"));
        let program = std::env::current_exe().map_err(failed)?;
        let hosts = agents.hosts();
        let arguments = [
            format!("{FILE_VARIABLE}={}", agents.file().display()),
            "srun".into(),
            format!("--nodes={hosts}"),
            format!("--ntasks={hosts}"),
            "--ntasks-per-node=1".into(),
            "--input=none".into(),
            // A task that is lost does not end the others: the run tells them when to end.
            "--kill-on-bad-exit=0".into(),
            program.display().to_string(),
            "worker".into(),
            "--quiet".into(),
            // Whoever starts programs there may read there what its user may.
            "--files".into(),
            "/".into(),
            "--join".into(),
            agents.address().to_string(),
        ];
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let env = Path::new("/usr/bin/env");
        let started = Piped::start(env, &arguments, &Confinement::default());
        let (process, streams) = started.map_err(failed)?;
        let over = Arc::<AtomicBool>::default();
        let (mut output, is_over) = (streams.output, over.clone());
        std::thread::spawn(move || {
            // Agents print nothing there: this waits for the end of output.
            let _ = std::io::copy(&mut output, &mut std::io::sink());
            is_over.store(true, Relaxed);
        });
        Ok(Srun { process, over })
    }

    fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }
}

impl Drop for Srun {
    fn drop(&mut self) {
        let end = Instant::now() + ENDING;
        while !self.is_over() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Objects created in a cluster.
pub struct Objects {
    /// The name of all of them.
    name: String,
}

impl Objects {
    /// A Job that runs an agent on each of as many pods as there are hosts, what it needs, and the service that
    /// gives the pods names.
    pub fn apply(agents: &Agents, image: &str) -> Result<Objects, Ending> {
        let credentials = Credentials::read(agents.file()).map_err(Ending::not_valid)?;
        let conductor = agents.address();
        let conductor = Address {
            host: conductor.ip().to_string(),
            port: conductor.port(),
        };
        let manifests = Manifests::new(&credentials, conductor, image.to_owned(), None)?;
        let objects = Objects {
            name: manifests.name.clone(),
        };
        // If it fails halfway, what is there already is removed.
        let applied = kubectl(&["apply", "--filename=-"], &manifests.text()?);
        applied.map_err(Ending::not_valid)?;
        Ok(objects)
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        let label = format!("--selector={}={}", super::kubernetes::LABEL, self.name);
        let what = "job,service,secret";
        let delete = ["delete", what, &label, "--ignore-not-found", "--wait=false"];
        if let Err(why) = kubectl(&delete, "") {
            tell!("not removed: {what} {}: {why}", self.name);
        }
    }
}

/// Runs `kubectl` in the context and the namespace that it has.
///
/// # Errors
/// Its error text.
fn kubectl(arguments: &[&str], input: &str) -> Result<(), String> {
    let mut command = Command::new("kubectl");
    command.args(arguments).arg(ANSWER);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let started = command.stderr(Stdio::piped()).spawn();
    let mut process = started.map_err(|error| {
        format!(
            "cannot start kubectl: {error}\n  hint: without it, pubgauge hosts render writes what a cluster needs, for a run with --workers-from join"
        )
    })?;
    if let Some(mut their_input) = process.stdin.take() {
        // If it stops reading, its exit says why.
        let _ = their_input.write_all(input.as_bytes());
    }
    let output = process.wait_with_output().map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rfind(|line| !line.trim().is_empty());
    let verb = arguments.first().copied().unwrap_or_default();
    Err(format!("kubectl {verb}: {}", last.unwrap_or("it failed")))
}
