//! The steps that make a network, as data: the scripts of `ip`, `bridge`, `tc` and `nft`, and the command
//! lines of `vde_switch` and `wirefilter`. Pure: nothing here touches the machine.

mod error;
mod links;
mod rules;
mod shape;
mod step;
mod wires;

use std::fmt;

use crate::backends::Backends;
use pubgauge_network::{Host, LinkState, Network};

pub use error::{PlanError, Unavailable};
pub use shape::Bucket;
pub use step::{Act, INTERFACE, NetworkNames, PlanStep, Ready, StepNamespace};

/// The steps and rules that make a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkPlan {
    /// The steps, in this order. After them everything passes, except for losses in bursts.
    pub steps: Vec<PlanStep>,
    /// The script of `nft`, in the switch's namespace, that adds independent loss and partitions.
    pub rules: String,
    /// Whether the network has the delays and losses that were asked for, but not the throughput of links,
    /// because packets pass through programs. Throughput over such a network cannot be quoted.
    pub shape_only: bool,
}

impl NetworkPlan {
    /// Plans a network with the backends that work here.
    ///
    /// # Errors
    /// If the network is wrong, or needs a missing backend; each with what to do about it.
    ///
    /// # Panics
    /// If `names` does not have one file for each host.
    pub fn for_network(
        network: &Network,
        backends: &Backends,
        names: &NetworkNames,
    ) -> Result<NetworkPlan, PlanError> {
        let means = shape::Means::choose(network, backends)?;
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
        Ok(NetworkPlan {
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
/// ([`NetworkPlan::shape_only`]).
///
/// # Errors
/// As [`NetworkPlan::for_network`].
pub fn possible(network: &Network, backends: &Backends) -> Result<bool, PlanError> {
    let means = shape::Means::choose(network, backends)?;
    let mut hosts = network.hosts();
    Ok(hosts.any(|host| means.by_wirefilter(network.link(host))))
}

impl fmt::Display for NetworkPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for PlanStep { place, act } in &self.steps {
            match act {
                Act::Set { file, value } => writeln!(f, "{place}: {value} > /proc/sys/net/{file}")?,
                Act::Start { argv, .. } => writeln!(f, "{place}: {} &", argv.join(" "))?,
                Act::Run { argv, input } => indented(f, place, &argv.join(" "), input)?,
            }
        }
        indented(f, &StepNamespace::Switch, "nft -f -", &self.rules)
    }
}

fn indented(
    f: &mut fmt::Formatter<'_>,
    place: &StepNamespace,
    command: &str,
    input: &str,
) -> fmt::Result {
    writeln!(f, "{place}: {command}")?;
    input.lines().try_for_each(|line| writeln!(f, "    {line}"))
}
