//! The conditions that the cells of a study are measured under.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::file::{PhasesFile, StudyFile, WorkloadFile};

impl StudyFile {
    /// The conditions that each workload (`workload NAME`) and each variant of the settings (`settings NAME`) asks for, as
    /// JSON. Where they differ, trials of the same name have measured different things. The systems, the
    /// grid, the number of repeats and the claims are no part of them.
    pub fn conditions(&self) -> BTreeMap<String, Value> {
        let workloads = self.workload.iter().map(|workload| {
            let name = format!("workload {}", workload.name);
            (name, stated(self.conditions_of(workload)))
        });
        let variants = self.settings.iter().chain(&self.ablation).map(|variant| {
            let name = format!("settings {}", variant.shown_name());
            (name, stated(json!(variant)))
        });
        workloads.chain(variants).collect()
    }

    fn conditions_of(&self, workload: &WorkloadFile) -> Value {
        let replays = workload.flow.iter().filter_map(|flow| flow.replay.as_ref());
        let traces: BTreeMap<_, _> = replays
            .filter_map(|replay| self.trace.get_key_value(&replay.trace))
            .collect();
        json!({
            "flow": workload.flow,
            "trace": traces,
            "phases": merge_phases(&self.phases, &workload.phases),
            "topology": workload.topology.merge_over(&self.topology),
            "client": workload.client(&self.client),
            "testbed": workload.testbed(&self.testbed),
        })
    }
}

/// The keys that are set, the workload's before the study's.
fn merge_phases(study: &PhasesFile, workload: &PhasesFile) -> Map<String, Value> {
    let keys = |phases: &PhasesFile| match json!(phases) {
        Value::Object(keys) => keys,
        _ => Map::new(),
    };
    let mut merged = keys(study);
    let own = keys(workload).into_iter();
    merged.extend(own.filter(|(_, value)| !value.is_null()));
    merged
}

/// The keys that say something: a version that knows more keys finds the same conditions in an older study.
fn stated(value: Value) -> Value {
    let says = |value: &Value| match value {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(keys) => !keys.is_empty(),
        _ => true,
    };
    match value {
        Value::Array(list) => list.into_iter().map(stated).collect(),
        Value::Object(keys) => {
            let keys = keys.into_iter().map(|(key, value)| (key, stated(value)));
            keys.filter(|(_, value)| says(value)).collect()
        }
        other => other,
    }
}
