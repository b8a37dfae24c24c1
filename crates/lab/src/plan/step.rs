//! Steps: what is done where, and the names that a network has outside of itself.

use std::fmt;
use std::path::PathBuf;

use crate::address::Subnet;
use pubgauge_network::Host;

/// The interface of each host on its link.
pub const INTERFACE: &str = "eth0";

/// The switch, in a namespace of its own. Its ports are named after the hosts.
pub(super) const SWITCH: &str = "switch0";

/// Names that a network has outside of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkNames {
    /// The file of each host's network namespace, in the order of [`pubgauge_network::Network::hosts`].
    pub hosts: Vec<String>,
    /// A folder for sockets of `vde_switch`.
    pub sockets: PathBuf,
    /// Addresses of the hosts.
    pub subnet: Subnet,
}

/// The network namespace in which a step is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepNamespace {
    /// The switch's.
    Switch,
    /// A host's.
    Host(Host),
}

impl fmt::Display for StepNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepNamespace::Switch => f.write_str("switch"),
            StepNamespace::Host(host) => host.fmt(f),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanStep {
    pub place: StepNamespace,
    pub act: Act,
}

/// The effect of a step.
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
