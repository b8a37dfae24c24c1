//! The judgement of each flow of a workload that has several: which part of a fleet's traffic is carried.

use pubgauge_figures::criterion::{CriterionSpec, default_for};
use pubgauge_figures::figure::{Figure, Unit, figure};
use pubgauge_figures::{FlowFigures, Status, Trial};

use super::{JudgedRepeat, Judgement, by_demand, is_by_default};
use crate::cell::Cell;

/// One flow of a cell.
pub struct FlowJudgement<'a> {
    /// Its name.
    pub flow: &'a str,
    /// The judgement by what is asked of it.
    pub judgement: Judgement<'a>,
}

/// The flows of a cell in their order; none where its workload has one flow alone.
pub fn by_flow<'a>(cell: &Cell<'a>, specs: &[CriterionSpec]) -> Vec<FlowJudgement<'a>> {
    let flows = &cell.trials[0].flows;
    if flows.len() < 2 {
        return Vec::new();
    }
    let one = |flow: &'a FlowFigures| FlowJudgement {
        flow: &flow.name,
        judgement: Judgement::from_repeats(
            cell,
            cell.trials
                .iter()
                .flat_map(|trial| repeat(trial, &flow.name, specs))
                .collect(),
        ),
    };
    flows.iter().map(one).collect()
}

/// A repeat of a flow by each demand on it.
fn repeat<'a>(trial: &'a Trial, name: &str, specs: &[CriterionSpec]) -> Vec<JudgedRepeat<'a>> {
    let Some(flow) = trial.flows.iter().find(|flow| flow.name == name) else {
        return Vec::new();
    };
    let bearing = specs.iter().filter(|spec| spec.filter.lets_through(trial));
    let mut asked: Vec<_> = bearing
        .filter_map(|spec| on_flow(trial, flow, spec))
        .collect();
    if is_by_default(trial, specs) && !flow.flat_out && flow.messages.expected > 0 {
        asked.extend(on_flow(trial, flow, &default_for(trial)));
    }
    let judged = asked.iter().map(|spec| {
        let one = by_demand(trial, spec);
        JudgedRepeat {
            met: met_by_flow(trial, flow, spec, one.met),
            ..one
        }
    });
    judged.collect()
}

/// A demand on one flow: one that names it, or one on all flows for a figure that each has.
fn on_flow(trial: &Trial, flow: &FlowFigures, spec: &CriterionSpec) -> Option<CriterionSpec> {
    if let Some(named) = &spec.filter.flow {
        return (*named == flow.name).then(|| spec.clone());
    }
    let (asked, window) = Figure::in_window(&spec.figure)?;
    let is_of_flow = match asked.value_in(trial, Some(&flow.name), window) {
        Ok(_) => asked.unit != Unit::Verdict,
        Err(too_few) => too_few.is_some(),
    };
    let mut of_flow = spec.clone();
    of_flow.filter.flow = Some(flow.name.clone());
    is_of_flow.then_some(of_flow)
}

/// Whether a flow meets a demand, where the verdict on the whole trial says that some flow does not: one that lost nothing
/// and meets its limit is carried beside another that lost messages; beside a queue that grows, that is not known.
fn met_by_flow(
    trial: &Trial,
    flow: &FlowFigures,
    spec: &CriterionSpec,
    met: Option<bool>,
) -> Option<bool> {
    let status = trial.verdict.status;
    if !matches!(status, Status::Lossy | Status::Overloaded) || met != Some(false) {
        return met;
    }
    let value = figure(trial, Some(&flow.name), &spec.figure);
    let holds = value.is_some_and(|value| spec.comparison.holds(value, spec.value));
    match flow.shortfall.lost {
        0 if holds => (status == Status::Lossy).then_some(true),
        0 if value.is_none() => None,
        _ => Some(false),
    }
}
