//! A trial on an emulated network: the host of each of its processes, and the traffic on their links.

use std::net::Ipv4Addr;
use std::sync::Arc;

use pubgauge_driver::OnNetwork;
use pubgauge_engine::assignment::Assignment;
use pubgauge_figures::network::{HostTraffic, NetworkTraffic};
use pubgauge_lab::{INTERFACE, Lab, LabError};
use pubgauge_network::{Host, HostRole};
use pubgauge_testbed::{Directions, InterfaceCounter, NetworkHost};

use crate::sizes::host_role;

/// A network that is up, as trials use it.
#[derive(Clone)]
pub struct TrialNetwork {
    /// Its number among the networks of the results.
    pub number: u32,
    /// The network.
    pub lab: Arc<Lab>,
}

impl std::fmt::Debug for TrialNetwork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "network {}", self.number)
    }
}

impl TrialNetwork {
    /// The host of the broker with this number, from 0: hosts are used in turn. `None` without broker
    /// hosts.
    pub(crate) fn broker(&self, number: usize) -> Option<NetworkHost> {
        self.host(HostRole::Broker, number as u32)
    }

    /// The host of a worker, and the network data that its clients need.
    pub(crate) fn worker(&self, assignment: &Assignment) -> Option<(NetworkHost, OnNetwork)> {
        let host = self.host(host_role(assignment.role), assignment.host)?;
        let clients = self.lab.hosts().iter();
        let clients = clients.filter(|own| own.host().role != HostRole::Broker);
        let on = OnNetwork {
            address: host.address,
            interface: INTERFACE.to_owned(),
            hosts: clients.map(|own| own.address()).collect::<Vec<Ipv4Addr>>(),
        };
        Some((host, on))
    }

    fn host(&self, role: HostRole, number: u32) -> Option<NetworkHost> {
        let hosts = self.lab.network().hosts_of(role).hosts;
        let number = number.checked_rem(hosts)? + 1;
        let own = self.lab.host(Host { role, number })?;
        Some(own.network_host())
    }
}

/// Counters at the links of all hosts.
pub(crate) struct LinkCounters {
    number: u32,
    path_ns: Option<u64>,
    /// The link of each host, without its counts, and its counter.
    links: Vec<(HostTraffic, InterfaceCounter)>,
    before: Vec<Directions>,
    crossed: Vec<Directions>,
    /// Why there are no counts.
    not_told: Option<String>,
}

impl LinkCounters {
    /// `brokerless`: no message crosses the link of a broker.
    pub(crate) fn open(network: &TrialNetwork, brokerless: bool) -> LinkCounters {
        let plan = network.lab.network();
        let opened = network.lab.hosts().iter().map(|own| {
            let traffic = HostTraffic {
                host: own.host().to_string(),
                rate_bits_per_s: plan.link(own.host()).rate_bits_per_s,
                ..HostTraffic::default()
            };
            Ok((traffic, own.counter()?))
        });
        let (links, not_told) = match opened.collect::<Result<Vec<_>, LabError>>() {
            Ok(links) => (links, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        LinkCounters {
            number: network.number,
            path_ns: Some(plan.path_ns(!brokerless)).filter(|ns| *ns > 0),
            links,
            before: Vec::new(),
            crossed: Vec::new(),
            not_told,
        }
    }

    fn read(&mut self) -> Vec<Directions> {
        let read: std::io::Result<Vec<Directions>> = self
            .links
            .iter()
            .map(|(_, counter)| counter.read_ways())
            .collect();
        read.unwrap_or_else(|error| {
            self.not_told = Some(error.to_string());
            Vec::new()
        })
    }

    /// The measurement begins.
    pub(crate) fn begin(&mut self) {
        self.before = self.read();
    }

    /// The measurement has ended.
    pub(crate) fn end_measurement(&mut self) {
        let now = self.read();
        self.crossed = (now.into_iter().zip(&self.before))
            .map(|(now, before)| now - *before)
            .collect();
    }

    /// The counts; `late` is why the readings do not cover the measurement.
    pub(crate) fn finish(self, late: Option<String>) -> NetworkTraffic {
        let hosts = self.links.into_iter().zip(self.crossed);
        NetworkTraffic {
            network: self.number,
            path_ns: self.path_ns,
            hosts: hosts
                .map(|((traffic, _), ways)| HostTraffic {
                    sent_bytes: ways.sent.bytes,
                    sent_packets: ways.sent.packets,
                    received_bytes: ways.received.bytes,
                    received_packets: ways.received.packets,
                    ..traffic
                })
                .collect(),
            not_told: self.not_told.or(late),
        }
    }
}
