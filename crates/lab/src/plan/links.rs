//! Hosts, the switch, and the links between them.

use std::fmt::Write;

use super::step::{Act, INTERFACE, Names, Place, SWITCH, Step};
use crate::address::{PREFIX, hardware};
use pubgauge_network::Host;

/// MTU of Ethernet.
const MTU: u32 = 1500;

/// The data that the steps are made from.
pub(super) struct All<'a> {
    pub hosts: &'a [Host],
    /// For each host, whether `wirefilter` connects it.
    pub wired: &'a [bool],
    pub names: &'a Names,
}

impl All<'_> {
    /// Disables IPv6, whose neighbour discovery would use links, and the IP firewall of bridges.
    pub fn settings(&self) -> Vec<Step> {
        let quiet = |place| {
            ["all", "default"].map(|which| Step {
                place,
                act: Act::Set {
                    file: match which {
                        "all" => "ipv6/conf/all/disable_ipv6",
                        _ => "ipv6/conf/default/disable_ipv6",
                    },
                    value: "1",
                },
            })
        };
        let mut steps: Vec<Step> = self.places().flat_map(quiet).collect();
        let files = [
            "bridge/bridge-nf-call-iptables",
            "bridge/bridge-nf-call-arptables",
        ];
        steps.extend(files.map(|file| Step {
            place: Place::Switch,
            act: Act::Set { file, value: "0" },
        }));
        steps
    }

    fn places(&self) -> impl Iterator<Item = Place> + '_ {
        std::iter::once(Place::Switch).chain(self.hosts.iter().copied().map(Place::Host))
    }

    /// The switch, and a pair of interfaces for each host that `wirefilter` does not connect to it.
    ///
    /// Multicast goes to every port: without a querier a snooping switch would forget members.
    pub fn pairs(&self) -> Step {
        let mut script = format!(
            "link set lo up\n\
             link add {SWITCH} address 02:00:00:00:00:ff type bridge stp_state 0 forward_delay 0 mcast_snooping 0\n\
             link set {SWITCH} up\n"
        );
        for (index, host) in self.hosts.iter().enumerate() {
            if !self.wired[index] {
                let namespace = &self.names.hosts[index];
                add(
                    &mut script,
                    format_args!(
                        "link add {host} type veth peer name {INTERFACE} netns {namespace}"
                    ),
                );
            }
        }
        run(Place::Switch, &["ip", "-batch", "-"], script)
    }

    /// The interface of each host, its neighbour entries, and then the ports of the switch.
    pub fn interfaces(&self) -> Vec<Step> {
        let hosts = (0..self.hosts.len()).map(|index| {
            let place = Place::Host(self.hosts[index]);
            run(place, &["ip", "-batch", "-"], self.interface(index))
        });
        let mut steps: Vec<Step> = hosts.collect();
        let mut ports = String::new();
        for host in self.hosts {
            add(
                &mut ports,
                format_args!("link set {host} mtu {MTU} gso_max_segs 1 master {SWITCH} up"),
            );
        }
        steps.push(run(Place::Switch, &["ip", "-batch", "-"], ports));
        steps
    }

    /// One segment per packet: otherwise up to 64 KiB of TCP would cross links, counters, losses and queues
    /// as one packet. All hosts' hardware addresses are set, so that none needs ARP; multicast uses this
    /// interface.
    fn interface(&self, index: usize) -> String {
        let subnet = self.names.subnet;
        let mut script = String::from("link set lo up\n");
        for line in [
            format_args!(
                "link set {INTERFACE} address {} mtu {MTU} gso_max_segs 1 up",
                hardware(index)
            ),
            format_args!("addr add {}/{PREFIX} dev {INTERFACE}", subnet.host(index)),
            format_args!("route add 224.0.0.0/4 dev {INTERFACE}"),
        ] {
            add(&mut script, line);
        }
        for other in (0..self.hosts.len()).filter(|other| *other != index) {
            add(
                &mut script,
                format_args!(
                    "neigh replace {} lladdr {} dev {INTERFACE} nud permanent",
                    subnet.host(other),
                    hardware(other)
                ),
            );
        }
        script
    }

    /// The switch's port of each hardware address: only multicast is flooded to all ports.
    pub fn known_addresses(&self) -> Step {
        let mut script = String::new();
        for (index, host) in self.hosts.iter().enumerate() {
            add(
                &mut script,
                format_args!("fdb replace {} dev {host} master static", hardware(index)),
            );
        }
        run(Place::Switch, &["bridge", "-batch", "-"], script)
    }
}

/// Adds a line to a script.
pub(super) fn add(script: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(script, "{line}");
}

/// A step that runs a program.
pub(super) fn run(place: Place, argv: &[&'static str], input: String) -> Step {
    Step {
        place,
        act: Act::Run {
            argv: argv.to_vec(),
            input,
        },
    }
}
