//! Workers on other hosts: the agents that have joined, as a place for a trial's workers.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pubgauge_clock::udp::{Key, Server, monotonic};
use pubgauge_driver::{DriverError, Nanos, OnNetwork};
use pubgauge_engine::assignment::{Assignment, Role, Workers};
use pubgauge_engine::link::stream::link;
use pubgauge_engine::link::{Link, Order, Outbox, Place, Secrets};
use pubgauge_engine::recording::Recording;
use pubgauge_hosts::{
    Counts, CredentialsError, Identity, IdentityError, Joined, KeptCredentials, Listener, Machine,
    Missing, Options,
};
use pubgauge_results::host::{HostClock, WorkerHost};
use pubgauge_testbed::NetworkHost;

use crate::lock;

/// How long to wait for a host that was there before: it dials again as soon as its connection is in use.
pub const AGAIN: Duration = Duration::from_secs(15);
/// How long to wait for the next host before looking at the clock.
const GLANCE: Duration = Duration::from_millis(50);

/// Why workers on other hosts cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AgentsError {
    /// No certificate could be made.
    #[error("cannot make the certificate of the run: {0}")]
    Identity(#[from] IdentityError),
    /// The credentials cannot be written.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The address cannot be listened at.
    #[error(
        "cannot listen for hosts at {address}, TCP and UDP: {error}\n  hint: name an address of this host and a free port"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The operating system's error.
        error: std::io::Error,
    },
    /// Hosts that did not join in time.
    #[error(transparent)]
    Missing(Missing),
    /// The user ended the wait.
    #[error("ended by the user while hosts were waited for")]
    Stopped,
}

/// The agents of a run. When this is dropped, agents that wait are told that the run is over, no host is
/// let in any more and the credentials are removed.
#[derive(Debug)]
pub struct Agents {
    listener: Listener,
    /// Connections without an order yet, by rank.
    spares: Mutex<BTreeMap<u32, Joined>>,
    /// The host of each rank, as it joined last.
    known: Mutex<BTreeMap<u32, Known>>,
    /// The first address of this host that an agent has reached.
    reached: Mutex<Option<IpAddr>>,
    hosts: u32,
    machine: Machine,
    /// Lets hosts with other clocks query this one.
    _clock: Server,
    /// Removed when this is dropped.
    file: KeptCredentials,
}

impl Agents {
    /// Starts to let the agents of so many hosts in, at `address`; ranks count from 0. Their credentials are in
    /// `file`, which must not exist, until the end.
    ///
    /// # Errors
    /// If no certificate can be made, the file exists, or the address cannot be listened at.
    pub fn listen(hosts: u32, address: SocketAddr, file: &Path) -> Result<Agents, AgentsError> {
        let identity = Identity::generate()?;
        let credentials = identity.credentials(hosts)?;
        let failed = |error| AgentsError::Listen { address, error };
        let key = Key::random().map_err(failed)?;
        let clock = Server::start(address, key.clone(), Arc::new(monotonic));
        let clock = clock.map_err(failed)?;
        let options = Options {
            address,
            again: true,
            clock: Some((clock.address().port(), key)),
            ..Options::default()
        };
        let listener = Listener::start(&identity, &credentials, options).map_err(failed)?;
        // Last: whoever finds the file can connect.
        let file = KeptCredentials::write(&credentials, file)?;
        Ok(Agents {
            listener,
            spares: Mutex::default(),
            known: Mutex::default(),
            reached: Mutex::default(),
            hosts,
            machine: Machine::here(),
            _clock: clock,
            file,
        })
    }

    /// The address that it listens at.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// The file with the credentials of the agents.
    pub fn file(&self) -> &Path {
        self.file.path()
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    /// Numbers of hosts that joined and that were refused.
    pub fn counts(&self) -> Counts {
        self.listener.counts()
    }

    /// The name of the host of a rank; `None` if it never joined.
    pub fn name(&self, rank: u32) -> Option<String> {
        let known = lock(&self.known);
        known.get(&rank).map(|known| known.name.clone())
    }

    /// Waits until a connection of each rank is there, at most `longest`; calls `say` for each that joins.
    ///
    /// # Errors
    /// The ranks that have not joined; or that `stop` returned `true`.
    pub fn gather(
        &self,
        longest: Duration,
        stop: &dyn Fn() -> bool,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), AgentsError> {
        let until = Instant::now() + longest;
        loop {
            for (rank, host) in self.collect(GLANCE) {
                let missing = self.missing();
                let there = self.hosts as usize - missing.len();
                say(&format!(
                    "host {host} has joined as rank {rank}: {there} of {}{}",
                    self.hosts,
                    ranks(&missing)
                ));
            }
            let missing = self.missing();
            if missing.is_empty() {
                return Ok(());
            }
            if stop() {
                return Err(AgentsError::Stopped);
            }
            if Instant::now() >= until {
                return Err(AgentsError::Missing(Missing {
                    missing,
                    size: self.hosts,
                    seconds: longest.as_secs(),
                    counts: self.counts(),
                }));
            }
        }
    }

    /// Accepts the hosts that have joined, waiting `longest` for the first: (rank, host).
    fn collect(&self, longest: Duration) -> Vec<(u32, String)> {
        let mut came = Vec::new();
        let mut wait = longest;
        while let Some(joined) = self.listener.next(wait) {
            wait = Duration::ZERO;
            let rank = joined.hello.rank;
            let host = joined.host.clone();
            lock(&self.reached).get_or_insert(joined.reached.ip());
            let now = Known {
                name: host.clone(),
                address: joined.address.ip(),
                interface: joined.hello.interface.clone(),
            };
            let known = lock(&self.known).insert(rank, now);
            let was_there = lock(&self.spares).insert(rank, joined).is_some();
            if known.is_none_or(|known| known.name != host) || was_there {
                came.push((rank, host));
            }
        }
        came
    }

    /// Ranks without a live connection.
    fn missing(&self) -> Vec<u32> {
        let spares = lock(&self.spares);
        let lives = |rank: &u32| {
            spares
                .get(rank)
                .is_some_and(|spare| !spare.connection.is_gone())
        };
        (0..self.hosts).filter(|rank| !lives(rank)).collect()
    }

    /// Takes the spare connection of a rank; waits up to 15 s for the host to join again.
    ///
    /// # Errors
    /// A message, if the host is lost.
    fn take(&self, rank: u32) -> Result<Joined, String> {
        let until = Instant::now() + AGAIN;
        loop {
            self.collect(Duration::ZERO);
            let spare = lock(&self.spares).remove(&rank);
            if let Some(joined) = spare.filter(|spare| !spare.connection.is_gone()) {
                self.listener.release(rank);
                return Ok(joined);
            }
            if Instant::now() >= until {
                let host = self.name(rank).unwrap_or_else(|| "unknown".into());
                return Err(format!(
                    "host {host}, rank {rank}, is lost: it has not joined again within {} s",
                    AGAIN.as_secs()
                ));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The addresses by which clients on the host of a rank find those of the other hosts.
    ///
    /// # Errors
    /// A message, if a host has no IPv4 address, or its interface is not known.
    fn on_network(&self, rank: u32) -> Result<OnNetwork, String> {
        let known = lock(&self.known);
        let of = |known: &Known| match known.address.to_canonical() {
            IpAddr::V4(address) => Ok(address),
            IpAddr::V6(address) => Err(format!(
                "host {} joined from {address}, and systems without a broker have IPv4 addresses only\n  hint: let the hosts join at an IPv4 address",
                known.name
            )),
        };
        let own = known.get(&rank).filter(|own| !own.interface.is_empty());
        let own = own.ok_or_else(|| {
            format!("rank {rank} does not say at which network interface it joined")
        })?;
        let mut hosts = known.values().map(of).collect::<Result<Vec<_>, _>>()?;
        hosts.sort_unstable();
        hosts.dedup();
        Ok(OnNetwork {
            address: of(own)?,
            interface: own.interface.clone(),
            hosts,
        })
    }

    /// The address at which systems on this host listen, as the agents reach it.
    ///
    /// # Errors
    /// A message, if that is no IPv4 address.
    pub(crate) fn own_host(&self) -> Result<NetworkHost, String> {
        let listens = Some(self.address().ip()).filter(|address| !address.is_unspecified());
        let reached = listens.or(*lock(&self.reached));
        match reached.unwrap_or(Ipv4Addr::LOCALHOST.into()) {
            IpAddr::V4(address) => Ok(NetworkHost {
                address,
                namespace: None,
            }),
            IpAddr::V6(address) => Err(format!(
                "the hosts reach this one at {address}, and systems are started at IPv4 addresses only\n  hint: let the hosts join at an IPv4 address, or name a system that runs already"
            )),
        }
    }
}

/// A host that has joined.
#[derive(Clone, Debug)]
struct Known {
    /// Its name.
    name: String,
    /// The address it joined from.
    address: IpAddr,
    /// Its interface there; empty if not known.
    interface: String,
}

/// Words on ranks that have not joined.
fn ranks(missing: &[u32]) -> String {
    match missing {
        [] => String::new(),
        missing => format!("; missing: {}", pubgauge_hosts::ranks(missing)),
    }
}

/// The rank on which a worker runs: hosts of publishers come first, then those of subscribers. A single host
/// has all.
pub fn rank_of(assignment: &Assignment, workers: &Workers, hosts: u32) -> u32 {
    let (_, publishers) = workers.of(Role::Publishers);
    let rank = match assignment.role {
        Role::Publishers => assignment.host,
        Role::Subscribers => publishers + assignment.host,
    };
    rank % hosts.max(1)
}

/// The hosts of agents as a place for one trial's workers.
#[derive(Debug)]
pub struct AgentPlace {
    agents: Arc<Agents>,
    workers: Workers,
    /// The clients find each other by themselves: the system has no broker.
    brokerless: bool,
    /// The host of each worker, by the worker's number.
    used: Mutex<BTreeMap<u32, WorkerHost>>,
}

impl AgentPlace {
    /// The place of one trial with these workers; `brokerless`: its clients have to find each other.
    pub fn new(agents: Arc<Agents>, workers: Workers, brokerless: bool) -> AgentPlace {
        AgentPlace {
            agents,
            workers,
            brokerless,
            used: Mutex::default(),
        }
    }

    /// The hosts that workers were started on, by rank, with their clocks as reported in
    /// `recordings`.
    pub fn hosts(&self, recordings: &[Recording]) -> Vec<WorkerHost> {
        let mut hosts: BTreeMap<u32, WorkerHost> = BTreeMap::new();
        for (worker, host) in lock(&self.used).iter() {
            let own = recordings.iter().find(|own| own.worker == *worker);
            let clock = match (host.clock.shared, own) {
                (true, _) => host.clock,
                (false, own) => HostClock {
                    shared: false,
                    offset_ns: own.map_or(0, |own| own.clock_offset),
                    bound_ns: own.and_then(|own| own.clock_error),
                },
            };
            let known = hosts.entry(host.rank).or_insert_with(|| WorkerHost {
                clock,
                ..host.clone()
            });
            let bounds = known.clock.bound_ns.zip(clock.bound_ns);
            known.clock.bound_ns = bounds.map(|(one, other)| one.max(other));
        }
        hosts.into_values().collect()
    }

    /// The error of one-way times between hosts, ns, the largest of all pairs of a publishing worker and another:
    /// `None` where all have one clock, `Some(None)` where it is not known.
    pub fn one_way(&self, recordings: &[Recording]) -> Option<Option<Nanos>> {
        let used = lock(&self.used);
        let mut worst: Option<Nanos> = None;
        for publisher in recordings.iter().filter(|own| own.role == Role::Publishers) {
            for subscriber in recordings {
                let [from, to] = [publisher, subscriber].map(|own| used.get(&own.worker));
                let (Some(from), Some(to)) = (from, to) else {
                    return Some(None);
                };
                if from.rank == to.rank || from.clock.shared && to.clock.shared {
                    continue;
                }
                let Some((one, other)) = publisher.clock_error.zip(subscriber.clock_error) else {
                    return Some(None);
                };
                worst = worst.max(Some(one + other));
            }
        }
        worst.map(Some)
    }
}

impl Place for AgentPlace {
    fn start(
        &self,
        mut order: Order,
        secrets: Secrets,
        outbox: Outbox,
    ) -> Result<Box<dyn Link>, DriverError> {
        let rank = rank_of(&order.assignment, &self.workers, self.agents.hosts());
        let joined = self.agents.take(rank).map_err(DriverError::new)?;
        if self.brokerless {
            let on = self.agents.on_network(rank).map_err(DriverError::new)?;
            order.target.network = Some(on);
        }
        let host = WorkerHost {
            rank,
            name: self.agents.name(rank).unwrap_or_default(),
            clock: HostClock {
                shared: joined.hello.machine.shares_clock(&self.agents.machine),
                offset_ns: 0,
                bound_ns: Some(0),
            },
        };
        lock(&self.used).insert(order.assignment.worker, host);
        let peer = Arc::new(joined.connection);
        link(joined.reader, joined.writer, order, secrets, outbox, peer)
    }

    fn lead(&self) -> Nanos {
        300_000_000
    }

    fn is_here(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubgauge_driver::Mark;

    fn assignment(role: Role, host: u32) -> Assignment {
        Assignment {
            worker: 0,
            role,
            devices: Vec::new(),
            settings: 0,
            broker: 0,
            host,
            mark: Mark::from_seed(1),
            measured_limit: None,
            default_window: None,
            pacing_within: 0,
            realtime: None,
            pin_to: None,
        }
    }

    #[test]
    fn hosts_of_publishers_come_first() {
        let workers = Workers {
            publisher_hosts: 2,
            subscriber_hosts: 3,
            ..Workers::default()
        };
        let of = |role, host| rank_of(&assignment(role, host), &workers, 5);
        let publishers = (0..2).map(|host| of(Role::Publishers, host));
        let others = (0..3).map(|host| of(Role::Subscribers, host));
        assert_eq!(
            publishers.chain(others).collect::<Vec<_>>(),
            [0, 1, 2, 3, 4]
        );
        let alone = |role| rank_of(&assignment(role, 0), &Workers::default(), 1);
        assert_eq!([Role::Publishers, Role::Subscribers].map(alone), [0, 0]);
    }

    #[test]
    fn missing_ranks_are_told() {
        assert_eq!(ranks(&[]), "");
        assert_eq!(ranks(&[1, 2]), "; missing: rank 1, 2");
        let many: Vec<u32> = (0..12).collect();
        assert!(ranks(&many).ends_with("8, 9, ..."), "{}", ranks(&many));
    }
}
