//! Systems at addresses, which are somebody's: a search is confirmed before it loads one, and each is tried before
//! the first trial.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pubgauge_campaign::{Chosen, Prepared};
use pubgauge_command::exit::Ending;
use pubgauge_driver::Tls;
use pubgauge_testbed::{Roles, SystemKind, Testbed, Visitor};
use pubgauge_workload::{Flow, Workload};

use crate::question;

/// Time after which addresses are named that have not answered, and for which nothing more is said then.
const PATIENCE: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(3600);

/// Asks, before a search loads systems at addresses until they give way.
///
/// # Errors
/// If the answer is no, or nobody can be asked.
pub fn confirm_search(prepared: &Prepared, yes: bool) -> Result<(), Ending> {
    let systems = prepared.systems.iter();
    let external = systems.filter(|(_, chosen)| chosen.file.kind == SystemKind::External);
    let addresses: Vec<&str> = external.map(|(name, _)| name.as_str()).collect();
    if yes || prepared.plan.search.is_none() || addresses.is_empty() {
        return Ok(());
    }
    let warning = format!(
        "this loads {} until it gives way: whoever else uses it will notice",
        addresses.join(", ")
    );
    question::ask(&warning, "go on", "nothing was sent", "add --yes")
}

/// Tries each address of the plan by one client that publishes and one that subscribes, as far as the workloads have such.
///
/// # Errors
/// The addresses that refuse them, and why. One that says nothing is left to the trials, which wait longer.
pub fn check_answers(
    prepared: &Prepared,
    testbed: &Testbed,
    tls: Option<&Tls>,
    remark: &dyn Fn(&str),
) -> Result<(), Ending> {
    let addresses = prepared.systems.iter();
    let addresses = addresses.filter(|(_, chosen)| chosen.file.kind == SystemKind::External);
    let names: Vec<&str> = addresses.clone().map(|(name, _)| name.as_str()).collect();
    let (said, heard) = mpsc::channel();
    // One that says nothing is waited for; the others are asked meanwhile.
    let told = thread::scope(|scope| {
        for (name, chosen) in addresses {
            let said = said.clone();
            scope.spawn(move || {
                let refusal = refusal(prepared, testbed, tls, name, chosen);
                // The other end lives as long as this scope.
                let _ = said.send((name.as_str(), refusal));
            });
        }
        drop(said);
        let mut told = Vec::new();
        let mut patience = PATIENCE;
        loop {
            match heard.recv_timeout(patience) {
                Ok(one) => told.push(one),
                Err(RecvTimeoutError::Timeout) => {
                    let silent = names
                        .iter()
                        .filter(|name| !told.iter().any(|(n, _)| n == *name));
                    let silent: Vec<&str> = silent.copied().collect();
                    remark(&format!("no answer yet from {}", silent.join(", ")));
                    patience = LONG;
                }
                Err(RecvTimeoutError::Disconnected) => break told,
            }
        }
    });
    let mut told = told;
    told.sort_by_key(|(name, _)| names.iter().position(|known| known == name));
    let mut refusals = Vec::new();
    for (_, refusal) in told {
        refusals.extend(refusal?);
    }
    if refusals.is_empty() {
        return Ok(());
    }
    let mut words = format!("nothing was measured: {}", refusals.join("\n"));
    if !words.contains("hint: ") {
        words += "\n  hint: check the address, the port, the user and that the system runs";
    }
    Err(Ending::not_valid(words))
}

/// Why an address refuses the clients of its trials; `None` if it takes them or says nothing.
fn refusal(
    prepared: &Prepared,
    testbed: &Testbed,
    tls: Option<&Tls>,
    name: &str,
    chosen: &Chosen,
) -> Result<Option<String>, Ending> {
    let trials = prepared.plan.trials.iter();
    let trials: Vec<_> = trials.filter(|trial| trial.system == name).collect();
    let first = |side: fn(&Flow) -> Option<u32>| {
        trials.iter().find_map(|trial| {
            let device = trial.workload.flows.iter().find_map(side)?;
            Some(visitor(&trial.workload, device))
        })
    };
    let publisher = first(|flow| flow.publishers.first().map(|one| one.device));
    let subscriber = first(|flow| flow.subscribers.first().map(|one| one.device));
    // A connection of both sides is one client: a second with its identifier would throw the first out.
    let id = publisher.as_ref().and_then(|visitor| visitor.id.clone());
    let roles = Roles {
        subscriber: subscriber.filter(|other| id.is_none() || other.id != id),
        publisher,
    };
    let mut settings = Vec::new();
    for trial in &trials {
        if !settings.contains(&*trial.settings) {
            settings.push((*trial.settings).clone());
        }
    }
    let variant = chosen.variant.as_deref();
    let refusal = testbed.refusal(&chosen.file, variant, &settings, &roles, tls);
    refusal.map_err(Ending::bad_input)
}

/// A client that tries an address as this device would.
fn visitor(workload: &Workload, device: u32) -> Visitor {
    let identity = workload.devices[device as usize].identity.as_ref();
    identity.map_or_else(Visitor::default, |own| Visitor {
        id: own.id.clone(),
        login: own.login(),
    })
}
