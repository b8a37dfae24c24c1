//! The description of a run before its first trial.

use std::collections::BTreeMap;

use pubgauge_conclusions::claims::rule_words;
use pubgauge_figures::model::{Machine, StudyInfo, UnsupportedCell};
use pubgauge_figures::rule::Claim;
use pubgauge_results::store::NewRun;
use pubgauge_runner::trial::now;
use pubgauge_study::{Plan, without_claims};
use pubgauge_testbed::{load_average, machine_facts};
use pubgauge_workload::trace::Remarks;
use serde_json::{Value, json};

use crate::{Prepared, capabilities, specs};

/// A run that begins now on this machine. `invocation` says how, as JSON.
pub fn new_run(prepared: &Prepared, invocation: String, calibration: Option<Value>) -> NewRun {
    let plan = &prepared.plan;
    let unsupported = plan.unsupported.iter().map(|cell| UnsupportedCell {
        system: cell.system.clone(),
        settings: cell.settings.clone(),
    });
    NewRun {
        invocation,
        study_toml: if prepared.given.is_empty() {
            plan.resolved.clone()
        } else {
            prepared.given.clone()
        },
        study_resolved: resolved(plan),
        machine: machine(calibration),
        study: StudyInfo {
            name: plan.name.clone(),
            question: plan.question.clone(),
            started: now().to_string(),
            planned_trials: plan.trials.len() as u32,
            criteria: Vec::new(),
            criterion_specs: specs(prepared),
            unsupported: unsupported.collect(),
            capabilities: capabilities::of_plan(prepared),
            recordings: plan.recordings.clone(),
            claim_rules: rules(&plan.claims),
            scale: plan.scale.clone(),
            until_decided_s: None,
            seed: plan.seed,
            cut_off: true,
        },
    }
}

/// The rule of each claim in words, by the claim's name.
fn rules(claims: &[Claim]) -> BTreeMap<String, String> {
    let rule = |claim: &Claim| (claim.id.clone(), rule_words(claim));
    claims.iter().map(rule).collect()
}

/// The plan of a run, with the readings that it replays, and the claims that it is judged by.
pub fn resolved(plan: &Plan) -> Value {
    let trials = plan.trials.iter().map(|trial| {
        json!({
            "id": trial.order, "cell": trial.cell, "system": trial.system, "settings": trial.settings,
            "of_flows": trial.of_flows, "repeat": trial.repeat,
        })
    });
    let trials: Vec<Value> = trials.collect();
    let mut resolved = json!({
        "study": plan.resolved, "seed": plan.seed, "repeats": plan.repeats, "trials": trials,
    });
    // The study has the names of the files alone.
    if !plan.traces.is_empty() {
        let traces = plan.traces.iter().map(|trace| {
            let mut told = json!({ "readings": trace.readings.len(), "crc32": trace.checksum() });
            if trace.remarks != Remarks::default() {
                told["remarks"] = json!(trace.remarks);
            }
            told
        });
        resolved["traces"] = traces.collect();
    }
    resolved
}

/// The machine of now, with its newest calibration.
pub fn machine(calibration: Option<Value>) -> Machine {
    let facts = machine_facts();
    Machine {
        kernel: facts.kernel,
        os: facts.os,
        cpu_model: facts.cpu_model,
        cores: facts.cores,
        quota_cores: facts.quota_cores,
        memory_bytes: facts.memory_bytes,
        governor: facts.governor,
        idle_driver: facts.idle_driver,
        max_open_files: facts.max_open_files,
        load_average_1min: load_average(),
        pubgauge_version: env!("CARGO_PKG_VERSION").into(),
        pubgauge_commit: option_env!("PUBGAUGE_COMMIT").unwrap_or_default().into(),
        calibration,
    }
}

/// Of that, what must be the same for a run to be resumed: all but its claims, which may be added or changed after the
/// first trial.
pub fn decisive(resolved: &Value) -> Value {
    let mut decisive = resolved.clone();
    if let Some(study) = decisive.get_mut("study")
        && let Some(measured) = study.as_str().and_then(without_claims)
    {
        *study = measured;
    }
    decisive
}
