//! Hosts, the switch, and the links between them.

use super::step::{Act, INTERFACE, NetworkNames, PlanStep, SWITCH, StepNamespace};
use crate::address::{PREFIX, hardware};
use pubgauge_network::Host;

/// MTU of Ethernet.
const MTU: u32 = 1500;

/// The data that the steps are made from.
pub(super) struct All<'a> {
    pub hosts: &'a [Host],
    /// For each host, whether `wirefilter` connects it.
    pub wired: &'a [bool],
    pub names: &'a NetworkNames,
}

impl All<'_> {
    /// Disables IPv6, whose neighbour discovery would use links, and the IP firewall of bridges.
    pub fn settings(&self) -> Vec<PlanStep> {
        let ipv6 = [
            "ipv6/conf/all/disable_ipv6",
            "ipv6/conf/default/disable_ipv6",
        ];
        let firewall = [
            "bridge/bridge-nf-call-iptables",
            "bridge/bridge-nf-call-arptables",
        ];
        let set = |place, file, value| PlanStep {
            place,
            act: Act::Set { file, value },
        };
        let quiet = |place| ipv6.map(|file| set(place, file, "1"));
        let mut steps: Vec<PlanStep> = self.namespaces().flat_map(quiet).collect();
        steps.extend(firewall.map(|file| set(StepNamespace::Switch, file, "0")));
        steps
    }

    fn namespaces(&self) -> impl Iterator<Item = StepNamespace> + '_ {
        std::iter::once(StepNamespace::Switch)
            .chain(self.hosts.iter().copied().map(StepNamespace::Host))
    }

    /// The switch, and a pair of interfaces for each host that `wirefilter` does not connect to it.
    ///
    /// Multicast goes to every port: without a querier a snooping switch would forget members.
    pub fn pairs(&self) -> PlanStep {
        let mut script = format!(
            "link set lo up\n\
             link add {SWITCH} address 02:00:00:00:00:ff type bridge stp_state 0 forward_delay 0 mcast_snooping 0\n\
             link set {SWITCH} up\n"
        );
        for (index, host) in self.hosts.iter().enumerate() {
            if !self.wired[index] {
                let namespace = &self.names.hosts[index];
                script +=
                    &format!("link add {host} type veth peer name {INTERFACE} netns {namespace}\n");
            }
        }
        run(StepNamespace::Switch, &["ip", "-batch", "-"], script)
    }

    /// The interface of each host, its neighbour entries, and then the ports of the switch.
    pub fn interfaces(&self) -> Vec<PlanStep> {
        let hosts = (0..self.hosts.len()).map(|index| {
            let place = StepNamespace::Host(self.hosts[index]);
            run(place, &["ip", "-batch", "-"], self.interface(index))
        });
        let mut steps: Vec<PlanStep> = hosts.collect();
        let mut ports = String::new();
        for host in self.hosts {
            ports += &format!("link set {host} mtu {MTU} gso_max_segs 1 master {SWITCH} up\n");
        }
        steps.push(run(StepNamespace::Switch, &["ip", "-batch", "-"], ports));
        steps
    }

    /// One segment per packet: otherwise up to 64 KiB of TCP would cross links, counters, losses and queues
    /// as one packet. All hosts' hardware addresses are set, so that none needs ARP; multicast uses this
    /// interface.
    fn interface(&self, index: usize) -> String {
        let subnet = self.names.subnet;
        let (own, address) = (hardware(index), subnet.host(index));
        let mut script = format!(
            "link set lo up\n\
             link set {INTERFACE} address {own} mtu {MTU} gso_max_segs 1 up\n\
             addr add {address}/{PREFIX} dev {INTERFACE}\n\
             route add 224.0.0.0/4 dev {INTERFACE}\n"
        );
        for other in (0..self.hosts.len()).filter(|other| *other != index) {
            let (address, theirs) = (subnet.host(other), hardware(other));
            script +=
                &format!("neigh replace {address} lladdr {theirs} dev {INTERFACE} nud permanent\n");
        }
        script
    }

    /// The switch's port of each hardware address: only multicast is flooded to all ports.
    pub fn known_addresses(&self) -> PlanStep {
        let mut script = String::new();
        for (index, host) in self.hosts.iter().enumerate() {
            let address = hardware(index);
            script += &format!("fdb replace {address} dev {host} master static\n");
        }
        run(StepNamespace::Switch, &["bridge", "-batch", "-"], script)
    }
}

/// A step that runs a program.
pub(super) fn run(place: StepNamespace, argv: &[&'static str], input: String) -> PlanStep {
    PlanStep {
        place,
        act: Act::Run {
            argv: argv.to_vec(),
            input,
        },
    }
}
