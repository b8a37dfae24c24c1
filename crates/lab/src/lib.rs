//! Emulated networks on one machine: hosts with links of a given rate, delay and loss around one switch.
//!
//! A [`pubgauge_network::Network`] is plain data. [`Plan::of`] is a pure function from it to the scripts that make it; [`Lab::up`]
//! carries them out. Each host is a network namespace, and so is the switch, a bridge: the machine's own
//! interfaces, routes and rules are never touched. Namespaces have no names: open files of this process keep
//! them, so that the kernel removes them when it ends, however it ends.
//!
//! What is to run on a host gets its namespace: a process by [`pubgauge_testbed::Namespace::path`], which stands where a name of
//! `ip netns` would, or by [`pubgauge_testbed::Namespace::file`]; a thread by [`pubgauge_testbed::Namespace::run`].
//!
//! Linux only; [`Backends`] are looked for, not assumed.

mod access;
mod address;
mod backends;
mod baseline;
mod lab;
mod plan;
mod tool;

pub use address::Subnet;
pub use backends::{Backends, Found};
pub use lab::{Lab, LabError, LabHost};
pub use plan::{
    Act, Bucket, INTERFACE, Names, Place, Plan, PlanError, Ready, Refusal, Step, possible,
    states_script,
};
