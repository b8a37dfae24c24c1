//! Other hosts as the place for a trial's workers.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use pubgauge_driver::{Attempt, Course, DriverError, Nanos};
use pubgauge_engine::assignment::{Assignment, Role};
use pubgauge_engine::link::stream::{Peer, link};
use pubgauge_engine::link::{Order, Outbox, Secrets, WorkerLink, WorkerSite};
use pubgauge_figures::host::{HostClock, WorkerHost};
use pubgauge_hosts::{Companion, Hosts};
use pubgauge_testbed::{NetworkHost, Piped};

use crate::lock;

/// Which hosts have the workers of each side: numbers among the hosts of the run. A host may have both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sides {
    /// Those of the publishing devices, in the order of [`Assignment::host`].
    pub publishers: Vec<usize>,
    /// Those of the others.
    pub subscribers: Vec<usize>,
}

impl Sides {
    /// The host of a worker.
    fn host_of(&self, assignment: &Assignment) -> Option<usize> {
        let side = match assignment.role {
            Role::Publishers => &self.publishers,
            Role::Subscribers => &self.subscribers,
        };
        side.get(assignment.host as usize).copied()
    }
}

/// Other hosts as the place for one trial's workers.
pub struct HostsPlace {
    hosts: Arc<Hosts>,
    sides: Sides,
    /// The clients find each other by themselves: the system has no broker.
    brokerless: bool,
    /// The records of what was started, by host.
    used: Mutex<BTreeMap<usize, Used>>,
}

/// A host with workers.
struct Used {
    companion: Arc<Companion>,
    /// How its clock is converted: the same for all of its workers, so that the bound is no error between them. `None`: it is
    /// the conductor's clock.
    course: Option<Course>,
    roles: Vec<Role>,
}

/// The hosts of a trial that is over, and their clocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clocks {
    /// Those that had workers.
    pub hosts: Vec<WorkerHost>,
    /// The error of one-way times between hosts, ns, for the worst pair of one with publishers and another: `None` where
    /// all have one clock, `Some(None)` where it is not known.
    pub one_way: Option<Option<Nanos>>,
    /// Why clocks are not known, in words.
    pub errors: Vec<String>,
}

impl HostsPlace {
    /// The place of one trial; `brokerless`: its clients have to find each other.
    pub fn new(hosts: Arc<Hosts>, sides: Sides, brokerless: bool) -> HostsPlace {
        HostsPlace {
            hosts,
            sides,
            brokerless,
            used: Mutex::default(),
        }
    }

    /// The clocks of the hosts from the start of their workers until now.
    pub fn clocks(&self) -> Clocks {
        let used = lock(&self.used);
        let mut clocks = Clocks::default();
        for (number, own) in used.iter() {
            let clock = match (own.companion.watch(), own.course) {
                (Some(watch), Some(course)) => HostClock {
                    shared: false,
                    offset_ns: course.far as i64 - course.near as i64,
                    bound_ns: watch
                        .largest_error(&course)
                        .map_err(|error| clocks.errors.push(self.unknown(*number, &error)))
                        .ok(),
                },
                _ => HostClock {
                    shared: true,
                    offset_ns: 0,
                    bound_ns: Some(0),
                },
            };
            clocks.hosts.push(WorkerHost {
                rank: *number as u32,
                name: own.companion.hello().machine.host.clone(),
                clock,
            });
        }
        let all: Vec<_> = used.values().zip(&clocks.hosts).collect();
        let of = |role| all.iter().filter(move |(own, _)| own.roles.contains(&role));
        for (_, from) in of(Role::Publishers) {
            for (_, to) in of(Role::Subscribers) {
                if from.rank == to.rank || from.clock.shared && to.clock.shared {
                    continue;
                }
                let both = from.clock.bound_ns.zip(to.clock.bound_ns);
                let pair = both.map(|(one, other)| one + other);
                clocks.one_way = Some(match clocks.one_way {
                    Some(worst) => worst.zip(pair).map(|(worst, pair)| worst.max(pair)),
                    None => pair,
                });
            }
        }
        clocks
    }

    fn unknown(&self, number: usize, error: &dyn std::fmt::Display) -> String {
        format!(
            "the clock of {} is not known: {error}",
            self.hosts.label(number)
        )
    }

    /// Notes that a host has a worker of this side; how its clock is converted.
    fn begin(&self, number: usize, role: Role) -> Result<(Arc<Companion>, Option<Course>), String> {
        let label = || self.hosts.label(number);
        let companion = self.hosts.companion(number);
        let companion = companion.ok_or_else(|| format!("{} is not there", label()))?;
        if let Some(why) = companion.lost() {
            return Err(format!("{} is lost: {why}", label()));
        }
        let mut used = lock(&self.used);
        if let Some(own) = used.get_mut(&number) {
            own.roles.push(role);
            return Ok((companion, own.course));
        }
        let course = companion.watch().map(|watch| watch.begin());
        let course = course
            .transpose()
            .map_err(|error| self.unknown(number, &error))?;
        let own = Used {
            companion: companion.clone(),
            course,
            roles: vec![role],
        };
        used.insert(number, own);
        Ok((companion, course))
    }
}

impl WorkerSite for HostsPlace {
    fn start(
        &self,
        mut order: Order,
        secrets: Secrets,
        outbox: Outbox,
    ) -> Result<Box<dyn WorkerLink>, DriverError> {
        let number = self.sides.host_of(&order.assignment);
        let number =
            number.ok_or_else(|| DriverError::new("no host is for a worker".to_owned()))?;
        let role = order.assignment.role;
        let (companion, course) = self.begin(number, role).map_err(DriverError::new)?;
        if self.brokerless {
            let on = self.hosts.on_network(number);
            let on = on.map_err(|error| DriverError::new(error.to_string()))?;
            order.target.network = Some(on);
        }
        let course = course.map(|course| course.to_string());
        let arguments = course
            .iter()
            .flat_map(|course| ["--clock", course.as_str()]);
        let arguments: Vec<&str> = arguments.collect();
        let command = self.hosts.host(number).worker(&arguments);
        let started = companion.worker(&command);
        let (process, streams) = started.map_err(|error| {
            let what = format!("cannot start a worker on {}", self.hosts.label(number));
            DriverError::of_io(what, Attempt::Start, &error)
        })?;
        let peer = Arc::new(There {
            process,
            companion,
            label: self.hosts.label(number),
        });
        link(streams.output, streams.input, order, secrets, outbox, peer)
    }

    fn lead(&self) -> Nanos {
        300_000_000
    }

    /// The way to another host may take 50 ms more.
    fn notice(&self) -> Nanos {
        62_000_000
    }

    fn is_here(&self) -> bool {
        false
    }
}

/// A worker on another host.
struct There {
    process: Arc<Piped>,
    companion: Arc<Companion>,
    label: String,
}

impl Peer for There {
    fn kill(&self) {
        self.process.kill();
    }

    fn ending(&self) -> String {
        let ending = self.process.ending();
        match self.companion.lost() {
            Some(why) => format!("{} is lost: {why}", self.label),
            None => format!("its process on {} {ending}", self.label),
        }
    }

    fn host(&self) -> Option<String> {
        Some(self.label.clone())
    }
}

/// The address at which systems on this host listen, as the other hosts reach it.
///
/// # Errors
/// A message, if that is no IPv4 address.
pub(crate) fn own_host(hosts: &Hosts) -> Result<NetworkHost, String> {
    match hosts.conductor_address().to_canonical() {
        IpAddr::V4(address) => Ok(NetworkHost {
            address,
            namespace: None,
        }),
        IpAddr::V6(address) => Err(format!(
            "the hosts reach this one at {address}, and systems are started at IPv4 addresses only\n  hint: --at with an IPv4 address of this host, or name a system that runs already"
        )),
    }
}
