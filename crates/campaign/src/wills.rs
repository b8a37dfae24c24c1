//! Last wills: over which systems a study's devices can have theirs.

use std::collections::{BTreeMap, BTreeSet};

use pubgauge_driver::{Settings, Unsupported, Will};
use pubgauge_study::{Plan, PlannedTrial};
use pubgauge_testbed::Testbed;
use pubgauge_workload::{Flow, LastWill};

use crate::Chosen;

/// The wills of a trial's flows, each with the settings of its flow; a will that differs by its topic alone once for each flow.
fn wills(trial: &PlannedTrial) -> Vec<(&Flow, &Settings, &LastWill, usize)> {
    let all: Vec<&Settings> = trial.all_settings().collect();
    // A device of several flows has one will, which is told of the flow that gives it.
    let flows = trial.workload.flows.iter();
    let flows = flows.filter(|flow| flow.presence.is_some());
    let of_each = flows.filter_map(|flow| {
        let publishers = flow.publishers.iter().map(|p| p.device);
        let devices = publishers.chain(flow.subscribers.iter().map(|s| s.device));
        let devices: BTreeSet<u32> = devices.collect();
        let wills = devices
            .iter()
            .filter_map(|device| trial.workload.devices[*device as usize].will.as_deref());
        let wills: Vec<&LastWill> = wills.collect();
        let first = *wills.first()?;
        Some((flow, all[flow.settings as usize], first, wills.len()))
    });
    of_each.collect()
}

/// The first will of a trial that its system cannot have, and why.
pub(crate) fn refused(trial: &PlannedTrial, chosen: &Chosen) -> Option<Unsupported> {
    if !trial.workload.has_wills() {
        return None;
    }
    let target = Testbed::planned_target(&chosen.file, chosen.variant.as_deref()).ok()?;
    wills(trial)
        .into_iter()
        .find_map(|(flow, settings, own, _)| {
            let will = Will {
                topic: own.topic.clone(),
                payload: vec![0; own.bytes as usize],
                retain: own.retain,
                qos: own.qos,
                delay_s: own.delay_s,
            };
            let checked = chosen.driver.check_will(settings, &target, &will);
            Some(Unsupported {
                setting: "presence.will".into(),
                value: flow.name.clone(),
                reason: checked.err()?,
            })
        })
}

/// One sentence for each workload and flow whose devices have a will.
pub(crate) fn remarks(plan: &Plan) -> Vec<String> {
    let mut all = BTreeMap::new();
    for trial in plan.trials.iter().filter(|t| t.workload.has_wills()) {
        for (flow, _, will, devices) in wills(trial) {
            let mut words = vec![format!("{} B", will.bytes)];
            words.extend(will.qos.map(|qos| format!("QoS {qos}")));
            words.extend(will.retain.then(|| "retained".to_owned()));
            words.push(match will.delay_s {
                0 => "at once".to_owned(),
                s => format!("{s} s after the end of the connection"),
            });
            let who = match devices {
                1 => "1 device has a will".to_owned(),
                n => format!("{n} devices have a will"),
            };
            let expected = if flow.presence.as_ref().is_some_and(|p| p.vanishes) {
                "one is due whenever a connection is cut"
            } else {
                "none is due, because all leave in order"
            };
            let key = (trial.workload.name.clone(), flow.name.clone());
            all.entry(key).or_insert_with(|| {
                format!(
                    "{}, flow {}: {who} ({}), the first on `{}`: {expected}",
                    trial.workload.name,
                    flow.name,
                    words.join(", "),
                    will.topic
                )
            });
        }
    }
    all.into_values().collect()
}
