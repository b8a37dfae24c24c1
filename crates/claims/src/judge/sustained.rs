//! Figures over all trials of a side: the largest step that a system sustains, the share of trials that lost nothing.

use std::collections::BTreeMap;

use pubgauge_figures::rule::{CellFilter, ClaimRule};
use pubgauge_quantities::stats::Estimate;
use pubgauge_quantities::written::amount;

use super::measured::Measured;
use super::run::{MeasuredRun, Observation};
use crate::curve::{FEWEST, too_few};
use crate::finding::Lack;

/// Between which values of its axis a system gives way: at the largest that it sustains or above, and below the smallest
/// that it does not. It sustains a value where three repeats at least count, and none is overloaded, lossy or broken; it
/// does not where all are, three at least.
pub(super) fn sustained(
    run: &MeasuredRun<'_>,
    rule: &ClaimRule,
    filter: &CellFilter,
) -> Result<Measured, Lack> {
    let axis = rule.along.as_deref().unwrap_or_default();
    let mut steps: BTreeMap<&str, Vec<&Observation<'_>>> = BTreeMap::new();
    for trial in run.trials_of(filter)? {
        let value = trial.cell.value(axis).unwrap_or_default();
        steps.entry(value).or_default().push(trial);
    }
    let (mut carried, mut over) = (Vec::new(), f64::INFINITY);
    for (value, trials) in steps {
        let number = amount(value).ok_or_else(|| format!("`{value}` is not a number"))?;
        if trials.iter().any(|trial| trial.cell != trials[0].cell) {
            return Err(format!("several cells fit at {value}; name settings or workload").into());
        }
        let kept = trials
            .iter()
            .filter(|trial| rule.counts(&trial.verdict))
            .count();
        let failed = trials
            .iter()
            .filter(|trial| trial.shows_limit_of_system())
            .count();
        match (kept, failed) {
            (FEWEST.., 0) => carried.push(number),
            (_, FEWEST..) if failed == trials.len() => over = over.min(number),
            _ => {}
        }
    }
    let low = carried.into_iter().filter(|number| *number < over);
    let low = low.fold(0.0, f64::max);
    if low == 0.0 && over.is_infinite() {
        return Err(format!("no {axis} has three repeats that tell").into());
    }
    // A load that is not sustained lies above the limit.
    Ok(Measured::Between(low, over * (1.0 - 1e-9)))
}

/// The share of repeats whose figure is 1, over all points together; each counts once.
pub(super) fn share(terms: &[(f64, &Result<Measured, Lack>)]) -> Result<Estimate, Lack> {
    let mut told = Vec::new();
    for (_, measured) in terms {
        match measured.as_ref().map_err(Lack::clone)? {
            Measured::Repeats { values, .. } => told.extend(values.iter().map(|(_, v)| *v > 0.0)),
            Measured::AtLeast(_) | Measured::AtMost(_) | Measured::Between(..) => {
                return Err("a share of trials has no lower bound".into());
            }
        }
    }
    if told.len() < FEWEST {
        return Err(too_few(told.len()));
    }
    Ok(Estimate::Share {
        hits: told.iter().filter(|hit| **hit).count(),
        all: told.len(),
    })
}
