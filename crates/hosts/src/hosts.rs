//! All other hosts of a run.

use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pubgauge_driver::OnNetwork;

use crate::companion::{Companion, Starting};
use crate::{Host, HostError, HostsError, lock};

/// Pause between two attempts to start a host's companion.
const PAUSE: Duration = Duration::from_millis(500);
/// How long to wait for one host before looking at the next.
const GLANCE: Duration = Duration::from_millis(20);

/// The other hosts of a run, in the order in which they were given. Dropping it ends their companions.
pub struct Hosts {
    at: IpAddr,
    all: Vec<HostMember>,
}

struct HostMember {
    host: Host,
    companion: Mutex<Option<Arc<Companion>>>,
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts = self.all.iter().map(|member| &member.host);
        f.debug_list().entries(hosts).finish()
    }
}

impl Hosts {
    /// These hosts, which reach this one at `at`. Nothing is started yet.
    pub fn new(hosts: Vec<Host>, at: IpAddr) -> Hosts {
        let member = |host| HostMember {
            host,
            companion: Mutex::default(),
        };
        Hosts {
            at,
            all: hosts.into_iter().map(member).collect(),
        }
    }

    /// The address at which they reach this host.
    pub fn conductor_address(&self) -> IpAddr {
        self.at
    }

    /// How many they are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// A host as it was given.
    pub fn host(&self, number: usize) -> &Host {
        &self.all[number].host
    }

    /// A host's companion, unless it was never there.
    pub fn companion(&self, number: usize) -> Option<Arc<Companion>> {
        lock(&self.all[number].companion).clone()
    }

    /// A host for messages: its name, if that is known, and its prefix.
    pub fn label(&self, number: usize) -> String {
        let prefix = &self.all[number].host.prefix;
        match self.companion(number) {
            Some(companion) => format!("host {} ({prefix})", companion.hello().machine.host),
            None => format!("host {number} ({prefix})"),
        }
    }

    /// Starts the companions of those that have none, or have lost theirs, and waits until all are there; calls `say` with
    /// words on each that comes. A host that cannot be used is tried again until `again` is over.
    ///
    /// # Errors
    /// A host that cannot be used; that `stop` returned `true`.
    pub fn gather(
        &self,
        again: Duration,
        stop: &dyn Fn() -> bool,
        say: &mut dyn FnMut(&str),
    ) -> Result<(), HostsError> {
        let end = Instant::now() + again;
        let lives = |member: &HostMember| {
            let companion = lock(&member.companion);
            companion.as_ref().is_some_and(|one| one.lost().is_none())
        };
        let missing = (0..self.count()).filter(|number| !lives(&self.all[*number]));
        let mut waiting: VecDeque<(usize, Option<Starting>, Instant)> = missing
            .map(|number| (number, None, Instant::now()))
            .collect();
        while let Some((number, attempt, not_before)) = waiting.pop_front() {
            if stop() {
                return Err(HostsError::Stopped);
            }
            let attempt = match attempt {
                Some(attempt) => Ok(attempt),
                None if Instant::now() < not_before => {
                    std::thread::sleep(GLANCE);
                    waiting.push_back((number, None, not_before));
                    continue;
                }
                None => Starting::new(self.host(number), self.at),
            };
            let outcome = match attempt {
                Ok(attempt) => match attempt.first_message(GLANCE) {
                    Some(said) => said.and_then(|hello| attempt.accept(hello)),
                    None => {
                        waiting.push_back((number, Some(attempt), not_before));
                        continue;
                    }
                },
                Err(error) => Err(error),
            };
            match outcome {
                Ok(companion) => {
                    *lock(&self.all[number].companion) = Some(Arc::new(companion));
                    let (there, all) = (self.count() - waiting.len(), self.count());
                    say(&format!(
                        "{} is there: {there} of {all}",
                        self.label(number)
                    ));
                }
                Err(_) if Instant::now() + PAUSE < end => {
                    waiting.push_back((number, None, Instant::now() + PAUSE));
                }
                Err(error) => {
                    let host = self.label(number);
                    return Err(HostsError::Host { host, error });
                }
            }
        }
        Ok(())
    }

    /// The addresses by which clients on a host find those of the other hosts.
    ///
    /// # Errors
    /// A host that has no IPv4 address towards this one, or whose interface is not known.
    pub fn on_network(&self, number: usize) -> Result<OnNetwork, HostsError> {
        let of_host = |number: usize, error| HostsError::Host {
            host: self.label(number),
            error,
        };
        let known = |number| {
            let companion = self.companion(number);
            companion.ok_or_else(|| of_host(number, HostError::NotThere))
        };
        let of = |number: usize| match known(number)?.hello().address.to_canonical() {
            IpAddr::V4(address) => Ok(address),
            IpAddr::V6(address) => Err(of_host(number, HostError::NoIpv4(address))),
        };
        let interface = known(number)?.hello().interface.clone();
        if interface.is_empty() {
            return Err(of_host(number, HostError::NoInterface));
        }
        let mut hosts = (0..self.count())
            .map(of)
            .collect::<Result<Vec<Ipv4Addr>, _>>()?;
        hosts.sort_unstable();
        hosts.dedup();
        Ok(OnNetwork {
            address: of(number)?,
            interface,
            hosts,
        })
    }
}
