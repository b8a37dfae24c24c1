//! Systems at addresses, which are somebody's: a search is confirmed before it loads one, and each is tried before
//! the first trial.

use pubgauge_campaign::Prepared;
use pubgauge_command::exit::Ending;
use pubgauge_driver::Tls;
use pubgauge_testbed::{Roles, SystemKind, Testbed};

use crate::question;

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
) -> Result<(), Ending> {
    let mut refusals = Vec::new();
    for (name, chosen) in &prepared.systems {
        let trials = prepared.plan.trials.iter();
        let trials: Vec<_> = trials.filter(|trial| trial.system == *name).collect();
        let flows = || trials.iter().flat_map(|trial| &trial.workload.flows);
        let roles = Roles {
            publishers: flows().any(|flow| !flow.publishers.is_empty()),
            subscribers: flows().any(|flow| !flow.subscribers.is_empty()),
        };
        let mut settings = Vec::new();
        for trial in &trials {
            if !settings.contains(&*trial.settings) {
                settings.push((*trial.settings).clone());
            }
        }
        let variant = chosen.variant.as_deref();
        let refusal = testbed.refusal(&chosen.file, variant, &settings, roles, tls);
        refusals.extend(refusal.map_err(Ending::bad_input)?);
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
