//! Subscribers that come late: over which systems they can be measured, and what they will not get.

use std::collections::BTreeSet;

use pubgauge_driver::{Topology, Unsupported};
use pubgauge_study::{Plan, PlannedTrial};
use pubgauge_testbed::Testbed;
use pubgauge_workload::Flow;

use crate::Chosen;

fn has_late(flow: &&Flow) -> bool {
    flow.subscribers.iter().any(|s| s.late.is_some())
}

/// The first of a trial's flows with late subscribers whose system does not say when they are there, and why that is needed.
pub(crate) fn refused(trial: &PlannedTrial, chosen: &Chosen) -> Option<Unsupported> {
    let flow = trial.workload.flows.iter().find(has_late)?;
    let target = Testbed::planned_target(&chosen.file, chosen.variant.as_deref()).ok()?;
    let brokered = chosen.driver.topology(&target) == Topology::Brokered;
    (!brokered).then(|| Unsupported {
        setting: "late".into(),
        value: flow.name.clone(),
        reason: "a system without a broker does not say when a subscription has its effect, so that what is lost cannot be \
                 told from what came too early"
            .into(),
    })
}

/// One sentence for each system and flow whose late subscribers get no last values, because none are asked for.
pub(crate) fn remarks(plan: &Plan) -> Vec<String> {
    let mut all = BTreeSet::new();
    for trial in &plan.trials {
        let flows = &trial.workload.flows;
        let settings: Vec<_> = trial.all_settings().collect();
        let mut asked = flows
            .iter()
            .map(|flow| settings[flow.settings as usize].last_value);
        if asked.any(|last_value| last_value == Some(true)) {
            continue;
        }
        all.extend(flows.iter().filter(has_late).map(|flow| {
            format!(
                "{}, flow {}: the system is not asked to keep last values (`last-value = true` does), so that late subscribers \
                 get what is published once they have subscribed, and what the system stores anyway",
                trial.system, flow.name
            )
        }));
    }
    all.into_iter().collect()
}
