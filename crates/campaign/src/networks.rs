//! Emulated networks of a run: which trials can run on them, and the one that is up.

use std::sync::Arc;
use std::time::Duration;

use pubgauge_driver::Unsupported;
use pubgauge_figures::network::NetworkInfo;
use pubgauge_lab::{Backends, Lab, LabError};
use pubgauge_network::{Host, HostRole, Network};
use pubgauge_quantities::lists::unique;
use pubgauge_runner::network::TrialNetwork;
use pubgauge_study::PlannedTrial;
use pubgauge_testbed::SystemKind;

use crate::capacity::brokers;
use crate::hosts::stays_here;
use crate::{Chosen, Error};

/// How long each kind of traffic is measured on bare links; there are four.
const BASELINE: Duration = Duration::from_secs(1);

/// Why a trial cannot run on the network that it asks for.
pub fn refused(trial: &PlannedTrial, chosen: &Chosen) -> Option<Unsupported> {
    let network = trial.setup.network.as_deref()?;
    if let Some(interface) = &trial.setup.counts.interface {
        return Some(Unsupported {
            setting: "testbed.count-interface".into(),
            value: interface.clone(),
            reason: "nothing of an emulated network crosses an interface of this host; leave it out: the links of the network's hosts are counted anyway".into(),
        });
    }
    let has_broker_host = network.hosts_of(HostRole::Broker).hosts > 0;
    let reason = stays_here(
        trial,
        chosen,
        "where no link is crossed",
        |kind| match kind {
            SystemKind::External => Some("it runs already, and is on no emulated network"),
            SystemKind::Process | SystemKind::Builtin if !has_broker_host => {
                Some("it has a broker, and the network has no broker host")
            }
            _ => None,
        },
    );
    let reason = reason.or_else(|| of_roles(network, trial))?;
    Some(Unsupported {
        setting: "testbed.network".into(),
        value: format!("{} hosts", network.hosts().count()),
        reason,
    })
}

/// The error if a side of the workload would have no host.
fn of_roles(network: &Network, trial: &PlannedTrial) -> Option<String> {
    let clients = brokers(&trial.workload, trial.setup.brokers);
    let sides = [
        (
            HostRole::Publisher,
            clients.iter().any(|c| c.publishers > 0),
        ),
        (HostRole::Subscriber, clients.iter().any(|c| c.others > 0)),
    ];
    let lacking = |(role, there): &(HostRole, bool)| *there && network.hosts_of(*role).hosts == 0;
    let (role, _) = sides.into_iter().find(lacking)?;
    Some(format!("the network has no {} host", role.name()))
}

/// Checks that this machine can make the networks of these trials; makes each of them once, because
/// missing rights and kernel modules show only then.
///
/// # Errors
/// Bad input: what a network needs and this machine or user does not have, and what to do.
pub fn check<'a>(trials: impl IntoIterator<Item = &'a PlannedTrial>) -> Result<(), Error> {
    let trials = trials.into_iter();
    for network in unique(trials.filter_map(|trial| trial.setup.network.as_deref())) {
        drop(Lab::up(network).map_err(refusal)?);
    }
    Ok(())
}

fn refusal(error: LabError) -> Error {
    Error::bad_input(format!("[testbed.network]: {error}"))
}

/// A network in words: its hosts and links, and whether only its shape can be emulated.
pub fn describe_network(network: &Network) -> String {
    let mut words = network.describe();
    // Without the rights this is not known; a run reports what is missing.
    let shape_only =
        Backends::look().is_ok_and(|b| pubgauge_lab::possible(network, &b) == Ok(true));
    if shape_only {
        words.push_str(
            "shape only: every packet crosses programs, so that throughput is not quotable\n",
        );
    }
    words
}

/// Most networks that are up at a time.
const MOST_UP: usize = 8;
/// Most hosts that all of them have together.
const MOST_HOSTS: usize = 250;

/// The networks of a run so far. They stay up beside each other, so that trials may change between them in any order:
/// without traffic they take no processor time. The one that was used longest ago goes where there would be too many.
pub struct Networks {
    infos: Vec<NetworkInfo>,
    /// The last one is the one that was used last.
    up: Vec<TrialNetwork>,
}

impl Networks {
    /// None is up; `infos` are those of a resumed run.
    pub fn new(infos: &[NetworkInfo]) -> Networks {
        Networks {
            infos: infos.to_vec(),
            up: Vec::new(),
        }
    }

    /// The descriptions and bare measurements of all so far.
    pub fn infos(&self) -> &[NetworkInfo] {
        &self.infos
    }

    /// The network that a trial asks for, up. Before the first trial on it, its bare links are measured; `measuring` is
    /// called when that begins.
    ///
    /// # Errors
    /// If it cannot be made or measured.
    pub fn bring_up(
        &mut self,
        trial: &PlannedTrial,
        measuring: impl FnOnce(),
    ) -> Result<Option<TrialNetwork>, Error> {
        let Some(network) = trial.setup.network.as_deref() else {
            return Ok(None);
        };
        let is_asked_for = |up: &TrialNetwork| up.lab.network() == network;
        let asked = match self.up.iter().position(is_asked_for) {
            Some(at) => self.up.remove(at),
            None => self.create(network, measuring)?,
        };
        self.up.push(asked.clone());
        Ok(Some(asked))
    }

    fn create(
        &mut self,
        network: &Network,
        measuring: impl FnOnce(),
    ) -> Result<TrialNetwork, Error> {
        let hosts = |up: &TrialNetwork| up.lab.hosts().len();
        while !self.up.is_empty()
            && (self.up.len() >= MOST_UP
                || self.up.iter().map(hosts).sum::<usize>() + network.hosts().count() > MOST_HOSTS)
        {
            self.up.remove(0);
        }
        let lab = Arc::new(Lab::up(network).map_err(refusal)?);
        let known = self.infos.iter().position(|info| info.network == *network);
        let number = match known {
            Some(number) => number,
            None => {
                measuring();
                self.infos.push(measured(&lab)?);
                self.infos.len() - 1
            }
        };
        Ok(TrialNetwork {
            number: number as u32,
            lab,
        })
    }
}

fn measured(lab: &Lab) -> Result<NetworkInfo, Error> {
    let network = lab.network();
    let of = |role: HostRole| network.hosts().filter(move |host| host.role == role);
    let all: Vec<Host> = network.hosts().collect();
    let from = of(HostRole::Publisher).next().unwrap_or(all[0]);
    let mut to: Vec<Host> = of(HostRole::Subscriber).collect();
    if to.is_empty() {
        to = all.iter().copied().filter(|host| *host != from).collect();
    }
    let baseline = lab.baseline(from, &to, BASELINE);
    let baseline = baseline.map_err(|e| Error::not_valid(format!("[testbed.network]: {e}")))?;
    Ok(NetworkInfo {
        network: network.clone(),
        shape_only: lab.shape_only(),
        baseline: Some(baseline),
    })
}
