//! Emulated networks on one machine: hosts with links of a given rate, delay and loss around one switch.
//!
//! A [`pubgauge_network::Network`] is plain data. [`NetworkPlan::for_network`] is a pure function from it to the scripts that make it;
//! [`Lab::up`] executes them. Each host is a network namespace, and so is the switch, a bridge: the machine's own
//! interfaces, routes and rules are never touched. The namespaces have no names: open files of this process keep them,
//! and the kernel removes them when it ends, in whatever way.
//!
//! A process runs on a host by the host's namespace: by its path ([`pubgauge_testbed::Namespace::path`]), which
//! replaces a name of `ip netns`, or by its file ([`pubgauge_testbed::Namespace::file`]); a thread by
//! [`pubgauge_testbed::Namespace::run`].
//!
//! Linux only; [`Backends`] are tried, not assumed.

mod access;
mod address;
mod backends;
mod baseline;
mod lab;
mod plan;
mod tool;

pub use address::Subnet;
pub use backends::{Backends, Works};
pub use lab::{Lab, LabError, LabHost};
pub use plan::{
    Act, Bucket, INTERFACE, NetworkNames, NetworkPlan, PlanError, PlanStep, Ready, StepNamespace,
    Unavailable, possible, states_script,
};
pub use tool::ToolError;
