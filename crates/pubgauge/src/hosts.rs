//! Workers on other hosts: which trials can run there, and the agents of a run.

pub mod kubernetes;
mod starter;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use clap::ValueEnum;
use pubgauge_driver::{Transport, Unsupported};
use pubgauge_engine::assignment::Workers;
use pubgauge_hosts::{DEFAULT_PORT, FILE_VARIABLE};
use pubgauge_network::{Hosts, Link, Network, Role};
use pubgauge_results::shell::quoted;
use pubgauge_runner::agents::{Agents, AgentsError};
use pubgauge_study::{PlannedTrial, Span};
use pubgauge_testbed::Kind;
use pubgauge_testbed::template::{HOST, names};

use crate::args::{ClientArgs, HostsArgs, WorkersFrom};
use crate::exit::Ending;
use crate::prepare::quantity;
use crate::prepared::Chosen;
use crate::progress::so_many;
use starter::{Objects, Srun, Starter};

/// Default time to wait for agents.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long a host that was lost may take to join again before the next trial.
const REJOIN: Duration = Duration::from_secs(30);
/// Default file for the credentials.
const FILE: &str = "pubgauge-join";

/// Why a trial cannot have its workers on other hosts.
pub fn refused(trial: &PlannedTrial, chosen: &Chosen) -> Option<Unsupported> {
    let reason = stays_here(trial, chosen, "which no other host reaches", |_| None);
    let reason = reason.or_else(|| of_network(trial.network.as_deref()?));
    let reason = reason.or_else(|| of_counts(trial))?;
    Some(Unsupported {
        setting: "--workers-from".into(),
        value: "other hosts".into(),
        reason,
    })
}

/// Why a system and its clients can only be on one host: `there` is said of one in pubgauge's own process, and
/// `other` are the caller's own reasons.
pub fn stays_here(
    trial: &PlannedTrial,
    chosen: &Chosen,
    there: &str,
    other: impl FnOnce(Kind) -> Option<&'static str>,
) -> Option<String> {
    let own = chosen.file.variant(chosen.variant.as_deref()).ok();
    let endpoints = own.map(|file| file.endpoints).unwrap_or_default();
    let placed = |endpoint: &String| names(endpoint).any(|name| name == HOST);
    let local = |transport: Option<Transport>| {
        matches!(transport, Some(Transport::Ipc | Transport::SharedMemory))
    };
    if chosen.driver.lives_here() {
        return Some(format!("it runs in pubgauge's own process, {there}"));
    }
    let reason = match chosen.file.kind {
        Kind::Process | Kind::Builtin if !endpoints.iter().all(placed) => Some(
            "its file lets it listen on this host's loopback alone: write {host} in `endpoints` and where it listens",
        ),
        kind => other(kind),
    };
    let one_host = "`transport = \"ipc\"` and `\"shared-memory\"` stay on one host: use tcp or udp";
    let mut all = trial.all_settings();
    let reason = reason.or_else(|| {
        let some = all.any(|settings| local(settings.transport));
        some.then_some(one_host)
    });
    reason.map(str::to_owned)
}

/// Why real hosts cannot serve as a study's network: of it, only the numbers of hosts apply to them.
fn of_network(network: &Network) -> Option<String> {
    let plain = |role: &Role| network.of(*role).link == Link::default();
    if !Role::ALL.iter().all(plain) {
        return Some(
            "[testbed.network] says what links do, which only a network that pubgauge makes can be told: leave all but `hosts` out"
                .into(),
        );
    }
    if network.broker.hosts > 1 {
        return Some(format!(
            "[testbed.network] has {} broker hosts, and systems are started on the host of the run: one is possible",
            network.broker.hosts
        ));
    }
    let lacking = |role: &&Role| network.of(**role).hosts == 0;
    let role = [Role::Publisher, Role::Subscriber].iter().find(lacking)?;
    Some(format!("[testbed.network] has no {} host", role.name()))
}

fn of_counts(trial: &PlannedTrial) -> Option<String> {
    if trial.count_system_calls || trial.count_interface.is_some() {
        return Some("system calls and interfaces are counted on the host of the run alone".into());
    }
    let limited = !trial.client_limits.is_empty();
    limited.then(|| "[client.limits] hold on the host of the run alone".into())
}

/// The number of other hosts that have the workers of a run; `None` if they are on this host.
///
/// # Errors
/// Bad input: a number of hosts that does not fit a trial, no number at all, or flags that are
/// about this host.
pub fn count<'a>(
    args: &HostsArgs,
    client: &ClientArgs,
    trials: impl IntoIterator<Item = &'a PlannedTrial>,
) -> Result<Option<u32>, Ending> {
    if args.workers_from.is_none() {
        return Ok(None);
    }
    if !client.pin.is_empty() {
        return Err(Ending::bad_input(
            "--pin names processors of this host, and the workers run on others\n  hint: leave it out",
        ));
    }
    let mut hosts = args.hosts;
    for trial in trials {
        let Some(network) = trial.network.as_deref() else {
            continue;
        };
        let (publishers, subscribers) = (network.publisher.hosts, network.subscriber.hosts);
        let both = publishers + subscribers;
        let there = *hosts.get_or_insert(both);
        if there != both && (there, there) != (publishers, subscribers) {
            return Err(Ending::bad_input(format!(
                "{}: [testbed.network] has {publishers} publisher and {subscribers} subscriber hosts, and the run has {there}\n  hint: --hosts {both}; where both are as many, so many hosts can have both",
                trial.workload.name
            )));
        }
    }
    hosts.map(Some).ok_or_else(|| {
        Ending::bad_input(
            "how many hosts there are is not said\n  hint: --hosts N, or `hosts` of the publisher and subscriber of [testbed.network]",
        )
    })
}

/// The workers of a trial on so many hosts: as its network says, else half of the hosts publish; a single
/// host has both sides.
pub fn placed(workers: Workers, trial: &PlannedTrial, hosts: u32) -> Workers {
    let of = |hosts: &Hosts| hosts.hosts.max(1);
    let (publishers, subscribers) = match trial.network.as_deref() {
        Some(network) => (of(&network.publisher), of(&network.subscriber)),
        None => (hosts - hosts / 2, (hosts / 2).max(1)),
    };
    Workers {
        publisher_hosts: publishers,
        subscriber_hosts: subscribers,
        ..workers
    }
}

/// The agents of a run, and what started them. Dropping it tells the agents that the run is over and ends
/// what started them.
pub struct Gathered {
    /// The agents.
    pub agents: Arc<Agents>,
    /// What started them, if this run did; dropped last.
    starter: Option<Starter>,
}

impl Gathered {
    /// Listens for the agents of a run, and starts them if the arguments ask for it.
    ///
    /// # Errors
    /// Bad input: an invalid time, an address or a file that cannot be used.
    pub fn listen(args: &HostsArgs, hosts: u32) -> Result<Gathered, Ending> {
        patience(args)?;
        let how = args.workers_from.unwrap_or(WorkersFrom::Join);
        let at = args.join_at.filter(|at| !at.ip().is_unspecified());
        if how != WorkersFrom::Join && at.is_none() {
            let value = how.to_possible_value();
            let how: String = value.iter().map(|value| value.get_name()).collect();
            return Err(Ending::bad_input(format!(
                "--workers-from {how}: where the agents reach this host is not said\n  hint: --join-at ADDRESS:PORT with an address of this host"
            )));
        }
        let loopback = (std::net::Ipv4Addr::LOCALHOST, DEFAULT_PORT).into();
        let file = args
            .join_file
            .clone()
            .unwrap_or_else(|| PathBuf::from(FILE));
        let address = args.join_at.unwrap_or(loopback);
        let file = std::path::absolute(file).map_err(Ending::bad_input)?;
        let agents = Agents::listen(hosts, address, &file).map_err(Ending::bad_input)?;
        let starter = match how {
            WorkersFrom::Join => None,
            WorkersFrom::Slurm => Some(Starter::Srun(Box::new(Srun::start(&agents)?))),
            WorkersFrom::Kubernetes => {
                let image = args.image.as_deref().unwrap_or_default();
                Some(Starter::Kubernetes(Objects::apply(&agents, image)?))
            }
        };
        Ok(Gathered {
            agents: Arc::new(agents),
            starter,
        })
    }

    /// Waits for all agents of a run that begins.
    ///
    /// # Errors
    /// Agents that have not joined in time; or what was to start them has ended.
    pub fn wait(
        &self,
        args: &HostsArgs,
        stop: &AtomicBool,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), Ending> {
        let (patience, agents) = (patience(args)?, &self.agents);
        let (address, file) = (agents.address(), quoted(agents.file()));
        let seconds = patience.as_secs();
        let hosts = so_many(agents.hosts().into(), "host");
        let waiting = format!("waiting up to {seconds} s for {hosts} at {address}");
        say(&match &self.starter {
            Some(starter) => format!("{waiting}, started by {}", starter.name()),
            None => format!(
                "{waiting}; on each, with its own rank from 0:\n  {FILE_VARIABLE}={file} pubgauge worker --join {address} --rank 0"
            ),
        });
        let over = || self.starter.as_ref().is_some_and(Starter::is_over);
        let gathered = agents.gather(patience, &|| stop.load(Relaxed) || over(), say);
        gathered.map_err(|error| match (&self.starter, error) {
            (Some(starter), AgentsError::Stopped) if !stop.load(Relaxed) => {
                Ending::not_valid(format!(
                    "hosts are missing, and {}, which was to start them, {}",
                    starter.name(),
                    starter.ending()
                ))
            }
            (_, error) => Ending::not_valid(error),
        })
    }
}

fn patience(args: &HostsArgs) -> Result<Duration, Ending> {
    let asked = quantity::<Span>("--join-within", &args.join_within)?;
    Ok(asked.map_or(PATIENCE, |span| Duration::from_nanos(span.0)))
}

/// Waits for all agents before the next trial; returns false if the user ends the run.
///
/// # Errors
/// A host that is lost.
pub fn gather_again(
    agents: &Agents,
    stop: &AtomicBool,
    say: &mut dyn FnMut(&str),
) -> Result<bool, Ending> {
    match agents.gather(REJOIN, &|| stop.load(Relaxed), say) {
        Ok(()) => Ok(true),
        Err(AgentsError::Stopped) => Ok(false),
        Err(AgentsError::Missing(missing)) => {
            let lost = missing.missing.iter().map(|rank| match agents.name(*rank) {
                Some(host) => format!("host {host}, rank {rank}"),
                None => format!("rank {rank}"),
            });
            Err(Ending::not_valid(format!(
                "lost: {}; it has not joined again within {} s\n  hint: start its agent again and go on with --resume",
                lost.collect::<Vec<_>>().join("; "),
                REJOIN.as_secs()
            )))
        }
        Err(error) => Err(Ending::not_valid(error)),
    }
}
