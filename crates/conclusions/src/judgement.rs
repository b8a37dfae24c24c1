//! Whether a cell carries its load: each repeat judged by each demand, the one that decides first.

mod flows;

use std::collections::BTreeSet;

use pubgauge_figures::criterion::{Comparator, CriterionSpec, default_for};
use pubgauge_figures::figure::figure;
use pubgauge_figures::{Status, Trial};
use pubgauge_results::criterion::{Bearing, bearing};
use pubgauge_results::verdict::failures_decide;

use crate::carries::Carries;
use crate::cell::Cell;
use crate::summary::WorkloadCells;

pub use flows::{FlowJudgement, by_flow};

/// The judgement of a cell.
pub struct Judgement<'a> {
    /// Whether it carries its load; absent flat out without criteria.
    pub carries: Option<Carries>,
    /// Each repeat by each demand: a failure first, then what is undecided, then what came nearest to failing.
    pub judged: Vec<JudgedRepeat<'a>>,
}

/// One repeat judged by one demand.
pub struct JudgedRepeat<'a> {
    /// The repeat.
    pub trial: &'a Trial,
    /// The demand and its bearing; absent where the verdict alone decided.
    pub demand: Option<(CriterionSpec, Bearing)>,
    /// Whether it meets the demand; `None` if that cannot be decided.
    pub met: Option<bool>,
    /// The used share of what is allowed; 1 is the limit.
    pub used: f64,
    /// It failed, and too many other repeats were disturbed by the machine for that to decide.
    pub outvoted: bool,
}

impl<'a> Judgement<'a> {
    /// Judges the repeats of a cell by the criteria that bear on them, by pubgauge's default where none does.
    pub fn new(cell: &Cell<'a>, specs: &[CriterionSpec]) -> Judgement<'a> {
        let trials = cell.trials.iter();
        let judged = trials.flat_map(|trial| of_trial(trial, specs)).collect();
        Judgement::from_repeats(cell, judged)
    }

    /// The judgement that follows from each repeat by each demand.
    fn from_repeats(cell: &Cell<'a>, mut judged: Vec<JudgedRepeat<'a>>) -> Judgement<'a> {
        let has_failed = |trial: &Trial| {
            let mut of_repeat = judged.iter().filter(|one| one.trial.repeat == trial.repeat);
            of_repeat.any(|one| one.met == Some(false))
        };
        if !failures_decide(&cell.trials, has_failed) {
            let failures = judged.iter_mut().filter(|one| one.met == Some(false));
            failures.for_each(|one| {
                one.met = None;
                one.outvoted = true;
            });
        }
        let rank = |one: &JudgedRepeat<'_>| (one.met != Some(false), one.met.is_some());
        judged.sort_by(|a, b| rank(a).cmp(&rank(b)).then(b.used.total_cmp(&a.used)));
        let carries = judged.first().map(|decisive| match decisive.met {
            Some(true) => Carries::Yes,
            Some(false) => Carries::No,
            None => Carries::CannotTell,
        });
        Judgement { carries, judged }
    }

    /// The judgement that decided.
    pub fn decisive(&self) -> Option<&JudgedRepeat<'a>> {
        self.judged.first()
    }

    /// How many repeats have a demand of this outcome.
    pub fn repeats(&self, met: Option<bool>) -> usize {
        let alike = self.judged.iter().filter(|one| one.met == met);
        let repeats: BTreeSet<u32> = alike.map(|one| one.trial.repeat).collect();
        repeats.len()
    }

    /// The share of what is allowed that the deciding figure uses, 1 at the limit; absent where a verdict decided, nothing
    /// could be told, or the figure cannot be divided.
    pub fn used(&self) -> Option<f64> {
        let decisive = self.decisive()?;
        let is_by_figure = decisive.met.is_some() && !decisive.is_by_verdict();
        Some(decisive.used).filter(|used| is_by_figure && used.is_normal())
    }

    /// How many times better than its limit the deciding figure is; absent where the load is not carried, or the figure
    /// cannot be divided.
    pub fn times_better(&self) -> Option<f64> {
        let decisive = self.decisive()?;
        let is_met = decisive.met == Some(true) && decisive.used.is_normal();
        is_met.then(|| 1.0 / decisive.used)
    }
}

impl JudgedRepeat<'_> {
    /// Whether the verdict decided, not a figure: that of a trial that is not valid. A client-bound trial that misses the
    /// limit all the same is decided by its figure.
    pub fn is_by_verdict(&self) -> bool {
        let status = self.trial.verdict.status;
        match &self.demand {
            None => true,
            Some((_, bearing)) => match bearing.met {
                Some(true) => false,
                Some(false) => status > Status::ClientBound,
                None => status != Status::Valid,
            },
        }
    }
}

/// The outcomes of all criteria for a trial.
fn of_trial<'a>(trial: &'a Trial, specs: &[CriterionSpec]) -> Vec<JudgedRepeat<'a>> {
    let bearing_on_it = specs.iter().filter(|spec| spec.filter.lets_through(trial));
    let mut judged: Vec<_> = bearing_on_it.map(|spec| by_demand(trial, spec)).collect();
    if trial.workload.flat_out {
        return judged;
    }
    let by_verdict = |met, used| JudgedRepeat {
        trial,
        demand: None,
        met,
        used,
        outvoted: false,
    };
    let status = trial.verdict.status;
    if judged.is_empty() && trial.messages.expected > 0 {
        judged.push(by_demand(trial, &default_for(trial)));
    } else if judged.is_empty() {
        // Without subscribers there is no latency to judge.
        judged.push(match status {
            Status::Valid => by_verdict(Some(true), 0.0),
            Status::HostBound
            | Status::SettingBound
            | Status::TooShort
            | Status::Unsteady
            | Status::ClientBound => by_verdict(None, f64::INFINITY),
            Status::Broken if !trial.verdict.system_failed => by_verdict(None, f64::INFINITY),
            _ => by_verdict(Some(false), f64::INFINITY),
        });
    } else if status == Status::Overloaded {
        // A load under which the queue grows is not carried, whatever the criteria say.
        judged.push(by_verdict(Some(false), f64::INFINITY));
    }
    judged
}

/// The outcome of a criterion for a trial.
pub fn by_demand<'a>(trial: &'a Trial, spec: &CriterionSpec) -> JudgedRepeat<'a> {
    let bearing = bearing(trial, spec);
    let value = figure(trial, spec.filter.flow.as_deref(), &spec.figure);
    let value = bearing.at_most().or(value);
    let limit = spec.value;
    let exact = spec.comparison == Comparator::Equal;
    let used = value.map_or(f64::INFINITY, |value| {
        match (is_upper(spec), value == limit) {
            (_, true) if exact || limit == 0.0 => 0.0,
            _ if exact => f64::INFINITY,
            (true, _) => value / limit,
            (false, _) => limit / value,
        }
    });
    JudgedRepeat {
        trial,
        met: bearing.met,
        demand: Some((spec.clone(), bearing)),
        used,
        outvoted: false,
    }
}

/// Whether a criterion limits its figure from above.
pub fn is_upper(spec: &CriterionSpec) -> bool {
    !matches!(spec.comparison, Comparator::Greater | Comparator::AtLeast)
}

/// The demands on a workload: the study's criteria that apply to it, and pubgauge's default where
/// none applies to a row.
pub fn demands(specs: &[CriterionSpec], workload: &WorkloadCells<'_>) -> Vec<CriterionSpec> {
    let trials = || workload.cells.iter().map(|cell| cell.trials[0]);
    let bears = |spec: &&CriterionSpec| trials().any(|trial| spec.filter.lets_through(trial));
    let own = specs.iter().filter(bears).cloned();
    let mut all: Vec<CriterionSpec> = own.collect();
    // Paths of different lengths have different ones.
    for trial in trials().filter(|trial| is_by_default(trial, specs)) {
        let default = default_for(trial);
        if !all.contains(&default) {
            all.push(default);
        }
    }
    all
}

/// Whether only the default applies to a trial.
pub fn is_by_default(trial: &Trial, specs: &[CriterionSpec]) -> bool {
    !trial.workload.flat_out && !specs.iter().any(|spec| spec.filter.lets_through(trial))
}
