//! A network that is up.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pubgauge_testbed::{
    Confinement, InterfaceCounter, Namespace, NetworkHost, OwnedFolder, Piped, Streams, on_path,
};

use crate::access;
use crate::address::{self, Subnet};
use crate::backends::Backends;
use crate::plan::{
    Act, INTERFACE, NetworkNames, NetworkPlan, PlanError, PlanStep, Ready, StepNamespace,
    states_script,
};
use crate::tool;
use pubgauge_network::{Host, LinkState, Network};

/// How long a program of the network may take until it serves, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause between two checks of that.
const LOOKS: Duration = Duration::from_millis(2);
/// Folders of sockets begin with this.
const FOLDER: &str = "pubgauge-lab-";

/// Why a network is not up, or a link not as asked for.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The network is wrong, or needs what this machine lacks.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// This process may not make network namespaces.
    #[error("{0}")]
    Access(String),
    /// A program failed while it made the network.
    #[error(
        "{place}: `{command}` failed: {said}\n  while making an emulated network, whose other parts are gone again"
    )]
    Step {
        /// The namespace: `switch`, or a host.
        place: String,
        /// The program with its arguments.
        command: String,
        said: String,
    },
    /// The machine's routes are not known, or overlap with all addresses.
    #[error("no addresses for an emulated network: {0}")]
    Addresses(String),
    /// The network does not have this host.
    #[error("the network has no host `{0}`")]
    NoHost(Host),
    /// A system call failed.
    #[error("{what}: {error}")]
    Io {
        /// The operation that failed.
        what: String,
        /// How it failed.
        error: io::Error,
    },
}

impl LabError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> LabError {
        let what = what.into();
        |error| LabError::Io { what, error }
    }
}

/// A host of a network that is up.
#[derive(Debug)]
pub struct LabHost {
    host: Host,
    address: Ipv4Addr,
    namespace: Arc<Namespace>,
}

impl LabHost {
    /// Its role and number.
    pub fn host(&self) -> Host {
        self.host
    }

    /// Its address on the network.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Its network namespace, for processes that are to run on it.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The host, as the testbed takes it for processes that run on it.
    pub fn network_host(&self) -> NetworkHost {
        NetworkHost {
            address: self.address,
            namespace: Some(self.namespace.clone()),
        }
    }

    /// A new socket of the host, at a free port of its address.
    pub(crate) fn udp(&self) -> io::Result<UdpSocket> {
        self.namespace.run(|| UdpSocket::bind((self.address, 0)))
    }

    /// The counters of its interface.
    ///
    /// # Errors
    /// If they cannot be opened.
    pub fn counter(&self) -> Result<InterfaceCounter, LabError> {
        let path = self.namespace.path();
        let opened = InterfaceCounter::open(INTERFACE, Some(path));
        opened.map_err(LabError::io(format!("counters of {}", self.host)))
    }
}

/// A network that is up until this is dropped, or its process ends.
pub struct Lab {
    network: Network,
    subnet: Subnet,
    shape_only: bool,
    hosts: Vec<LabHost>,
    switch: Namespace,
    states: Mutex<BTreeMap<Host, LinkState>>,
    // Fields are dropped in this order: programs, then the folder of their sockets.
    programs: Vec<(Piped, Streams)>,
    _folder: OwnedFolder,
}

impl Lab {
    /// Makes a network. First removes the remains of one that a killed process has left.
    ///
    /// # Errors
    /// [`LabError`]; nothing of the network is left then.
    pub fn up(network: &Network) -> Result<Lab, LabError> {
        network.check().map_err(PlanError::Network)?;
        let access = |error| match access::why_not(&error) {
            Some(why) => LabError::Access(why),
            None => LabError::io("a network namespace")(error),
        };
        let switch = Namespace::create().map_err(access)?;
        let backends = Backends::look().map_err(access)?;
        let subnet = free_subnet()?;
        let folder = OwnedFolder::create(&std::env::temp_dir(), FOLDER)
            .map_err(LabError::io("a folder for sockets"))?;
        let mut hosts = Vec::new();
        for (index, host) in network.hosts().enumerate() {
            hosts.push(LabHost {
                host,
                address: subnet.host(index),
                namespace: Arc::new(Namespace::create().map_err(access)?),
            });
        }
        let names = NetworkNames {
            hosts: hosts
                .iter()
                .map(|h| h.namespace.path().to_owned())
                .collect(),
            sockets: folder.path().to_owned(),
            subnet,
        };
        let plan = NetworkPlan::for_network(network, &backends, &names)?;
        let mut lab = Lab {
            network: network.clone(),
            subnet,
            shape_only: plan.shape_only,
            hosts,
            switch,
            states: Mutex::new(
                network
                    .hosts()
                    .map(|h| (h, network.link(h).state))
                    .collect(),
            ),
            programs: Vec::new(),
            _folder: folder,
        };
        for step in &plan.steps {
            lab.perform(step)?;
        }
        lab.hear_all()?;
        lab.rule(&plan.rules)?;
        Ok(lab)
    }

    /// The network that was asked for.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The hosts: brokers, publishers, subscribers.
    pub fn hosts(&self) -> &[LabHost] {
        &self.hosts
    }

    pub fn host(&self, host: Host) -> Option<&LabHost> {
        self.hosts.iter().find(|own| own.host == host)
    }

    /// The range of the hosts' addresses.
    pub fn subnet(&self) -> Subnet {
        self.subnet
    }

    /// Whether throughput over it is not quotable, see [`NetworkPlan::shape_only`].
    pub fn shape_only(&self) -> bool {
        self.shape_only
    }

    /// Sets what passes on a host's link, from one packet to the next; other links stay as they are.
    ///
    /// # Errors
    /// If the network has no such host, or `nft` failed: the link is as before.
    pub fn set(&self, host: Host, state: LinkState) -> Result<(), LabError> {
        self.set_all(&[(host, state)])
    }

    /// As [`Lab::set`] for several links at the same moment.
    ///
    /// # Errors
    /// As [`Lab::set`].
    pub fn set_all(&self, changes: &[(Host, LinkState)]) -> Result<(), LabError> {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wanted = states.clone();
        for &(host, state) in changes {
            match wanted.get_mut(&host) {
                Some(own) => *own = state,
                None => return Err(LabError::NoHost(host)),
            }
        }
        let list: Vec<_> = wanted.iter().map(|(host, state)| (*host, *state)).collect();
        self.rule(&states_script(&list))?;
        *states = wanted;
        Ok(())
    }

    /// The state of a host's link; `None` if the network has no such host.
    pub fn state(&self, host: Host) -> Option<LinkState> {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        states.get(&host).copied()
    }

    fn rule(&self, script: &str) -> Result<(), LabError> {
        self.run(StepNamespace::Switch, &["nft", "-f", "-"], script)
    }

    fn run(&self, place: StepNamespace, argv: &[&str], input: &str) -> Result<(), LabError> {
        tool::run(self.namespace_of(place)?, argv, input).map_err(|error| LabError::Step {
            place: place.to_string(),
            command: argv.join(" "),
            said: error.to_string(),
        })
    }

    fn namespace_of(&self, place: StepNamespace) -> Result<&Namespace, LabError> {
        match place {
            StepNamespace::Switch => Ok(&self.switch),
            StepNamespace::Host(host) => {
                let own = self.host(host).ok_or(LabError::NoHost(host))?;
                Ok(&own.namespace)
            }
        }
    }

    fn perform(&mut self, step: &PlanStep) -> Result<(), LabError> {
        match &step.act {
            Act::Set { file, value } => {
                let path = PathBuf::from("/proc/sys/net").join(file);
                let write = || match std::fs::write(&path, value) {
                    // The kernel lacks IPv6, or its bridges call no firewall.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                    other => other,
                };
                let what = format!("{}: {}", step.place, path.display());
                self.namespace_of(step.place)?
                    .run(write)
                    .map_err(LabError::io(what))
            }
            Act::Run { argv, input } => self.run(step.place, argv, input),
            Act::Start { argv, ready } => {
                let program = self.start(step.place, argv, ready)?;
                self.programs.push(program);
                Ok(())
            }
        }
    }

    /// Starts a program under a guard, which ends it with this process. Its input is a pipe that stays open.
    fn start(
        &self,
        place: StepNamespace,
        argv: &[String],
        ready: &Ready,
    ) -> Result<(Piped, Streams), LabError> {
        let failed = |said| LabError::Step {
            place: place.to_string(),
            command: argv.join(" "),
            said,
        };
        let namespace = self.namespace_of(place)?;
        let confinement = Confinement {
            namespace: Some(namespace.path()),
            ..Confinement::default()
        };
        let file = on_path(&argv[0]).ok_or_else(|| failed("there is no such program".into()))?;
        let arguments: Vec<&str> = argv[1..].iter().map(String::as_str).collect();
        let (program, streams) = Piped::start(&file, &arguments, &confinement)
            .map_err(|error| failed(error.to_string()))?;
        let deadline = Instant::now() + PATIENCE;
        while !ready
            .is(namespace)
            .map_err(LabError::io("a program's state"))?
        {
            if Instant::now() > deadline {
                program.kill();
                return Err(failed(format!("it does not serve: {}", program.ending())));
            }
            std::thread::sleep(LOOKS);
        }
        Ok((program, streams))
    }

    /// Waits until every host receives from the first one and the first one from it, and no such packet
    /// is under way.
    fn hear_all(&self) -> Result<(), LabError> {
        let sockets: io::Result<Vec<UdpSocket>> = self.hosts.iter().map(LabHost::udp).collect();
        let heard = sockets.and_then(|sockets| {
            let (first, others) = sockets.split_first().ok_or(io::ErrorKind::InvalidInput)?;
            let under_way = self.under_way();
            let mut at_once = true;
            for other in others {
                at_once &= hear(first, other, under_way)? & hear(other, first, under_way)?;
            }
            let twice = |own: &LabHost| self.network.link(own.host).duplicated > 0.0;
            if !at_once || self.hosts.iter().any(twice) {
                // Sockets stay open meanwhile: to later packets the kernel would send errors.
                std::thread::sleep(under_way);
            }
            Ok(())
        });
        heard.map_err(LabError::io(
            "the hosts of the network do not hear each other",
        ))
    }

    /// The longest time that a packet is under way on an idle network, twice, and 20 ms.
    fn under_way(&self) -> Duration {
        let links = self.hosts.iter().map(|own| self.network.link(own.host));
        let longest = links.map(|link| link.delay_ns + link.jitter_ns).max();
        Duration::from_nanos(longest.unwrap_or(0)) * 4 + Duration::from_millis(20)
    }
}

/// Sends once per `under_way` until the receiver gets a packet; returns whether it was the first.
fn hear(sender: &UdpSocket, receiver: &UdpSocket, under_way: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + PATIENCE + under_way * 10;
    let (from, to) = (sender.local_addr()?, receiver.local_addr()?);
    receiver.set_read_timeout(Some(under_way))?;
    let mut at_once = true;
    while Instant::now() < deadline {
        sender.send_to(&[], to)?;
        match receiver.recv_from(&mut [0]) {
            // Ignores duplicates from an earlier sender.
            Ok((_, who)) if who == from => return Ok(at_once),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => at_once = false,
        }
    }
    let silence = format!("{to} heard nothing of {from}");
    Err(io::Error::new(io::ErrorKind::TimedOut, silence))
}

impl Ready {
    fn is(&self, namespace: &Namespace) -> io::Result<bool> {
        match self {
            Ready::Interface(name, file) => {
                let list =
                    namespace.run(|| std::fs::read_to_string("/proc/thread-self/net/dev"))?;
                let mut names = list.lines().filter_map(|line| line.split_once(':'));
                Ok(names.any(|(own, _)| own.trim() == name) && file.exists())
            }
            Ready::Ports(folders) => Ok(folders.iter().all(|folder| {
                let ports = std::fs::read_dir(folder).map(Iterator::count);
                ports.is_ok_and(|ports| ports > 1)
            })),
        }
    }
}

/// A range that overlaps with none of the machine's routes.
fn free_subnet() -> Result<Subnet, LabError> {
    let argv = ["ip", "-json", "-4", "route", "show", "table", "all"];
    let listed = tool::run_in_namespace(&argv, "")
        .map_err(|error| LabError::Addresses(error.to_string()))?;
    let routes = address::routes(&listed).map_err(LabError::Addresses)?;
    Subnet::free_subnet(&routes).ok_or_else(|| {
        let taken = "the machine's routes leave no private range free (10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16)";
        LabError::Addresses(taken.to_owned())
    })
}
