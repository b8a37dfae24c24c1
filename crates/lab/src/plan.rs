//! The steps that make a network, as data: the scripts of `ip`, `bridge`, `tc` and `nft`, and the command
//! lines of `vde_switch` and `wirefilter`. Pure: nothing here touches the machine.

mod links;
mod rules;
mod shape;
mod wires;

use std::fmt;
use std::path::PathBuf;

use crate::address::Subnet;
use crate::backends::Backends;
use pubgauge_network::Problem;
use pubgauge_network::{Host, LinkState, Network};

pub use shape::{Bucket, Refusal};

/// The interface of each host on its link.
pub const INTERFACE: &str = "eth0";
/// The switch, in a namespace of its own. Its ports are named after the hosts.
pub(crate) const SWITCH: &str = "switch0";

/// Names that a network has outside of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The file of each host's network namespace, in the order of [`Network::hosts`].
    pub hosts: Vec<String>,
    /// A folder for sockets of `vde_switch`.
    pub sockets: PathBuf,
    /// Addresses of the hosts.
    pub subnet: Subnet,
}

/// The network namespace in which a step is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The switch's.
    Switch,
    /// A host's.
    Host(Host),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Switch => f.write_str("switch"),
            Place::Host(host) => host.fmt(f),
        }
    }
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where.
    pub place: Place,
    /// What.
    pub act: Act,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Writes a setting of the namespace, if the kernel has it.
    Set {
        /// File below `/proc/sys/net`.
        file: &'static str,
        /// Its content.
        value: &'static str,
    },
    /// Runs a program to its end.
    Run {
        /// The program and its arguments.
        argv: Vec<&'static str>,
        /// Its standard input.
        input: String,
    },
    /// Starts a program that runs as long as the network.
    Start {
        /// The program and its arguments.
        argv: Vec<String>,
        /// How it shows that it serves.
        ready: Ready,
    },
}

/// How a program shows that it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// This interface and this file exist.
    Interface(String, PathBuf),
    /// Each of these folders of `vde_switch` holds the socket of a second port.
    Ports([PathBuf; 2]),
}

/// The steps and rules that make a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The steps, in this order. After them everything passes, except for losses in bursts.
    pub steps: Vec<Step>,
    /// The script of `nft`, in the switch's namespace, that adds independent loss and partitions.
    pub rules: String,
    /// Whether the network has the delays and losses that were asked for, but not the throughput of links,
    /// because packets pass through programs. Throughput over such a network cannot be quoted.
    pub shape_only: bool,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The network is wrong.
    #[error("{}", lines(.0))]
    Network(Vec<Problem>),
    /// This machine cannot make it.
    #[error("{}", lines(.0))]
    Refused(Vec<Refusal>),
}

fn lines<T: fmt::Display>(list: &[T]) -> String {
    let texts: Vec<String> = list.iter().map(T::to_string).collect();
    texts.join("\n")
}

impl Plan {
    /// Plans a network with the backends that work here.
    ///
    /// # Errors
    /// If the network is wrong, or needs a missing backend; each with what to do about it.
    ///
    /// # Panics
    /// If `names` does not have one file for each host.
    pub fn of(network: &Network, backends: &Backends, names: &Names) -> Result<Plan, PlanError> {
        let means = shape::Means::of(network, backends)?;
        let hosts: Vec<Host> = network.hosts().collect();
        assert_eq!(hosts.len(), names.hosts.len(), "a namespace for each host");
        let wired: Vec<bool> = hosts
            .iter()
            .map(|host| means.by_wirefilter(network.link(*host)))
            .collect();
        let all = links::All {
            hosts: &hosts,
            wired: &wired,
            names,
        };
        let mut steps = all.settings();
        steps.push(all.pairs());
        steps.extend(wires::starts(&all, network));
        steps.extend(all.interfaces());
        steps.push(all.known_addresses());
        steps.extend(shape::queues(&all, network, &means));
        Ok(Plan {
            steps,
            rules: rules::script(network),
            shape_only: wired.contains(&true),
        })
    }
}

/// The script of `nft` that sets the states of all links at once.
pub fn states_script(states: &[(Host, LinkState)]) -> String {
    rules::states(states)
}

/// Checks that this machine can make a network; returns whether throughput over it cannot be quoted
/// ([`Plan::shape_only`]).
///
/// # Errors
/// As [`Plan::of`].
pub fn possible(network: &Network, backends: &Backends) -> Result<bool, PlanError> {
    let means = shape::Means::of(network, backends)?;
    let mut hosts = network.hosts();
    Ok(hosts.any(|host| means.by_wirefilter(network.link(host))))
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Step { place, act } in &self.steps {
            match act {
                Act::Set { file, value } => writeln!(f, "{place}: {value} > /proc/sys/net/{file}")?,
                Act::Start { argv, .. } => writeln!(f, "{place}: {} &", argv.join(" "))?,
                Act::Run { argv, input } => indented(f, place, &argv.join(" "), input)?,
            }
        }
        indented(f, &Place::Switch, "nft -f -", &self.rules)
    }
}

fn indented(f: &mut fmt::Formatter<'_>, place: &Place, command: &str, input: &str) -> fmt::Result {
    writeln!(f, "{place}: {command}")?;
    input.lines().try_for_each(|line| writeln!(f, "    {line}"))
}
