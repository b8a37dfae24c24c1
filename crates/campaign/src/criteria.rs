//! A study's criteria in the names and units of `results.json`.

use pubgauge_results::criterion::{CriterionSpec, Filter};
use pubgauge_results::model::Status;
use pubgauge_study::{Criterion, Limit, Plan};

/// A criterion of `plan` in the form that results are evaluated by.
pub fn spec(criterion: &Criterion, plan: &Plan) -> CriterionSpec {
    let value = match &criterion.value {
        Limit::Number(number) => *number,
        Limit::Verdict(word) => {
            serde_json::from_value::<Status>(serde_json::Value::String(word.clone()))
                .map_or(f64::NAN, |status| f64::from(status as u8))
        }
    };
    let one = |name: &Option<String>| name.iter().cloned().collect::<Vec<_>>();
    CriterionSpec {
        text: criterion.text.clone(),
        figure: match &criterion.filter.window {
            None => criterion.figure.recorded.clone(),
            Some(window) => format!("{}@{window}", criterion.figure.recorded),
        },
        comparison: criterion.comparison,
        value,
        filter: Filter {
            systems: one(&criterion.filter.system),
            workloads: one(&criterion.filter.workload),
            cells: cells(criterion, plan),
            flow: criterion.filter.flow.clone(),
        },
    }
}

/// The cells with the settings that the criterion is about; empty stands for all.
fn cells(criterion: &Criterion, plan: &Plan) -> Vec<String> {
    let Some(settings) = &criterion.filter.settings else {
        return Vec::new();
    };
    let mut cells: Vec<String> = plan
        .trials
        .iter()
        .filter(|t| t.settings_name == *settings)
        .map(|t| t.cell.clone())
        .collect();
    if cells.is_empty() {
        // Selects no cell, since none has an empty name; an empty list would select all.
        cells.push(String::new());
    }
    cells
}
