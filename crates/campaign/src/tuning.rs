//! Tuning of one cell: which settings are varied, which trial comes next, and what was found. The next step follows from the
//! trials that are stored, unless somebody else leads.

mod factors;
mod optimizer;
mod side_effects;

use std::cell::RefCell;

use pubgauge_driver::Settings;
use pubgauge_figures::criterion::CriterionSpec;
use pubgauge_figures::model::Trial;
use pubgauge_figures::search::Search;
use pubgauge_runner::searching::{self, stored_step};
use pubgauge_runner::tuning::{PointSearch, Told, judge_trial};
use pubgauge_search::{Axis, Question as SearchQuestion, Step as SearchStep};
use pubgauge_study::PlannedTrial;
use pubgauge_tuning::{
    Conclusion, Ended, Finding, Objective, Point, Purpose, Question, Seen, Side, Step, View,
    conclude,
};

pub use factors::{LeftOut, TunedFactor, factors};
pub use optimizer::Optimizer;
pub use side_effects::{SideEffect, side_effects};

use crate::{Error, Prepared};

/// Names of the settings of the default and of other points while points are looked for, and in pairs.
const BASE: &str = "base";
const TRY: &str = "try-";
/// Name of the settings of the default in pairs.
pub const DEFAULT: &str = "default";
/// Name of the best settings in pairs.
pub const TUNED: &str = "tuned";
/// Trials that a search for the limit of one point takes about, and at most.
const LIMIT_TRIALS: usize = 8;
/// Width of the interval at which the search for the limit of a point ends: pairs even it out.
const LIMIT_WIDTH: f64 = 0.15;

/// Combinations in a row that somebody else may name although they were measured before.
const MOST_KNOWN: usize = 100;

/// The cell's factors, the figure that is to become better, and the time for it.
#[derive(Clone, Debug)]
pub struct TuningPlan {
    pub objective: Objective,
    pub factors: Vec<TunedFactor>,
    pub left_out: Vec<LeftOut>,
    /// Seconds that all trials may take together.
    pub budget_s: f64,
    /// Fewest pairs of best and default.
    pub pairs: usize,
}

/// Leads the trials of a tuning.
pub struct Tuner<'a> {
    plan: &'a TuningPlan,
    /// The cell that is tuned: the default.
    template: &'a PlannedTrial,
    question: Question,
    search: SearchQuestion,
    axis: Axis,
    criteria: Vec<CriterionSpec>,
    optimizer: Option<RefCell<Box<dyn Optimizer>>>,
    /// Whether nothing is left to measure.
    is_over: RefCell<bool>,
}

/// A trial that a tuning asks for.
pub(crate) struct TunedTrial {
    pub(crate) trial: PlannedTrial,
    pub(crate) search: Option<pubgauge_figures::search::SearchStep>,
}

/// The trials of one measurement of a point.
struct Measurement<'t> {
    name: &'t str,
    repeat: u32,
    point: Point,
    /// Its number among the measurements.
    number: u32,
    trials: Vec<&'t Trial>,
}

impl<'a> Tuner<'a> {
    /// A tuning of the only cell of a plan. `search`: the question of a search for its limit.
    ///
    /// # Errors
    /// If the plan has no cell, or several.
    pub fn new(
        prepared: &'a Prepared,
        plan: &'a TuningPlan,
        optimizer: Option<Box<dyn Optimizer>>,
    ) -> Result<Tuner<'a>, Error> {
        let template = only_cell(prepared)?;
        let mut once_s = template.duration_estimate() as f64 / 1e9 + 1.0;
        if plan.objective == Objective::Limit {
            once_s *= LIMIT_TRIALS as f64;
        }
        let axis = template.seeks().unwrap_or(Axis::Rate);
        let (least, most) = axis.range();
        Ok(Tuner {
            plan,
            template,
            question: Question {
                factors: plan
                    .factors
                    .iter()
                    .map(|tuned| tuned.factor.clone())
                    .collect(),
                budget_s: plan.budget_s,
                expected_s: once_s,
                pairs: plan.pairs,
                seed: prepared.plan.seed,
                is_led: optimizer.is_some(),
            },
            search: SearchQuestion {
                flat_out: true,
                least,
                most,
                width: LIMIT_WIDTH,
                most_trials: LIMIT_TRIALS,
                most_seconds: f64::INFINITY,
                ..SearchQuestion::default()
            },
            axis,
            criteria: crate::specs(prepared),
            optimizer: optimizer.map(RefCell::new),
            is_over: RefCell::new(false),
        })
    }

    /// The plan that it carries out.
    pub fn plan(&self) -> &TuningPlan {
        self.plan
    }

    /// Seconds that one measurement of a point is expected to take.
    pub fn expected_s(&self) -> f64 {
        self.question.expected_s
    }

    /// Measurements that one factor at a time takes, at most.
    pub fn count_alone(&self) -> usize {
        let factors = self.question.factors.iter();
        factors.map(|factor| factor.levels.count_alone()).sum()
    }

    pub(crate) fn is_over(&self) -> bool {
        *self.is_over.borrow()
    }

    /// The next trial.
    ///
    /// # Errors
    /// If somebody else leads, and there is no sense in it.
    pub(crate) fn next(&self, done: &[Trial]) -> Result<Option<TunedTrial>, Error> {
        let measurements = self.measurements(done);
        if let Some(going) = measurements.last()
            && let Some(trial) = self.go_on(going, done)?
        {
            return Ok(Some(trial));
        }
        let seen = self.seen_of(&measurements, done);
        let view = View::new(&self.question, &seen);
        let mut step = pubgauge_tuning::next(&self.question, &seen);
        if step == Step::Ask {
            step = match self.ask(&seen).map_err(Error::bad_input)? {
                Some(point) => Step::Measure {
                    purpose: Purpose::Combination,
                    point,
                },
                None => view.after_asking(),
            };
        }
        let Step::Measure { purpose, point } = step else {
            *self.is_over.borrow_mut() = true;
            return Ok(None);
        };
        let (name, repeat) = name_of(purpose, &point, &measurements);
        let number = measurements.len() as u32;
        self.trial(&point, (&name, repeat), number, done)
    }

    /// The combination that somebody else names: one that was not measured before.
    fn ask(&self, seen: &[Seen]) -> Result<Option<Point>, String> {
        let Some(optimizer) = &self.optimizer else {
            return Ok(None);
        };
        let mut optimizer = optimizer.borrow_mut();
        for _ in 0..MOST_KNOWN {
            let Some(point) = optimizer.ask(seen)? else {
                return Ok(None);
            };
            let told = |one: &&Seen| one.point == point && one.finding != Finding::Nothing;
            match seen.iter().find(told) {
                None => return Ok(Some(point)),
                Some(known) => optimizer.tell_known(known)?,
            }
        }
        Ok(None)
    }

    /// Why a tuning is over, once it is.
    pub fn reason_to_end(&self, done: &[Trial]) -> Option<Ended> {
        let seen = self.points_seen(done);
        match View::new(&self.question, &seen).after_asking() {
            Step::End(ended) => Some(ended),
            _ => None,
        }
    }

    /// The measurements, each with its finding.
    pub fn points_seen(&self, done: &[Trial]) -> Vec<Seen> {
        self.seen_of(&self.measurements(done), done)
    }

    /// The findings so far.
    pub fn conclusion(&self, done: &[Trial]) -> Conclusion {
        conclude(self.plan.objective, &self.question, &self.points_seen(done))
    }

    /// The best point so far, where one looks better than the default.
    pub fn best(&self, done: &[Trial]) -> Option<Point> {
        View::new(&self.question, &self.points_seen(done)).leader()
    }

    /// The settings of a point.
    ///
    /// # Errors
    /// If a factor cannot have its value.
    pub fn settings(&self, point: &Point) -> Result<Settings, Error> {
        factors::settings_at(&self.template.settings, &self.question.factors, point)
            .map_err(Error::bad_input)
    }

    /// The searches for the limits of points.
    pub(crate) fn searches(&self, done: &[Trial]) -> Vec<Search> {
        let measurements = self.measurements(done);
        let searches = measurements
            .iter()
            .filter(|_| self.plan.objective == Objective::Limit);
        let one = |own: &Measurement<'_>| {
            let first = own.trials.first();
            let about = Search {
                system: self.template.system.clone(),
                settings: own.name.to_owned(),
                workload: self.template.workload.name.clone(),
                axes: first.map_or_else(Vec::new, |trial| self.own_axes(trial)),
                axis: self.axis,
                ..Search::default()
            };
            let all = (
                &self.search,
                self.axis,
                own.number,
                done,
                &self.criteria[..],
            );
            searching::conclude(all.0, all.1, all.2, all.3, all.4, about)
        };
        searches.map(one).collect()
    }

    /// The axes of a trial without the load of its search.
    fn own_axes(&self, trial: &Trial) -> Vec<pubgauge_figures::model::AxisValue> {
        let is_load = |name: &str| name == self.axis.name();
        let axes = trial.axes.iter().filter(|axis| !is_load(&axis.name));
        axes.cloned().collect()
    }

    fn point_search(&self, number: u32) -> PointSearch<'_> {
        PointSearch {
            question: &self.search,
            axis: self.axis,
            number,
            criteria: &self.criteria,
        }
    }

    /// The next trial of a measurement that takes several, if it is not over.
    fn go_on(&self, going: &Measurement<'_>, done: &[Trial]) -> Result<Option<TunedTrial>, Error> {
        if self.plan.objective != Objective::Limit {
            return Ok(None);
        }
        let name = (going.name, going.repeat);
        self.trial(&going.point, name, going.number, done)
    }

    /// The rate that the default delivered flat out at first, where that is another measurement than this one.
    fn default_flat_out(&self, number: u32, done: &[Trial]) -> Option<f64> {
        (number > 0)
            .then(|| self.point_search(0).flat_out(done))
            .flatten()
    }

    /// A trial of a point, if its measurement needs one more.
    fn trial(
        &self,
        point: &Point,
        (name, repeat): (&str, u32),
        number: u32,
        done: &[Trial],
    ) -> Result<Option<TunedTrial>, Error> {
        let factors = &self.question.factors;
        let mut trial = self.template.clone();
        let at = |settings: &Settings| factors::settings_at(settings, factors, point);
        trial.settings = at(&trial.settings).map_err(Error::bad_input)?.into();
        let of_flows = trial.of_flows.iter().map(at).collect::<Result<_, _>>();
        trial.of_flows = of_flows.map_err(Error::bad_input)?;
        trial.settings_name = name.to_owned();
        trial.cell = format!("{} / {name}", trial.cell);
        let named = point.named(factors);
        trial
            .axes
            .extend(named.map(|(name, value)| (name.to_owned(), value)));
        let mut search = None;
        if self.plan.objective == Objective::Limit {
            let flat_out = self.default_flat_out(number, done);
            let Some(step) = self.point_search(number).next(done, flat_out) else {
                return Ok(None);
            };
            let load = match step {
                SearchStep::Short(load) => Some(load),
                _ => None,
            };
            let length = trial.workload.phases.measure.latest();
            trial = trial.seeking(load, length).map_err(Error::bad_input)?;
            search = stored_step(number, step);
        }
        trial.repeat = repeat;
        trial.order = done.iter().map(|trial| trial.id + 1).max().unwrap_or(0);
        Ok(Some(TunedTrial { trial, search }))
    }

    /// The measurements of points that trials are.
    fn measurements<'t>(&self, done: &'t [Trial]) -> Vec<Measurement<'t>> {
        let mut all: Vec<Measurement<'t>> = Vec::new();
        for trial in done {
            let number = trial.search.map_or(all.len() as u32, |step| step.search);
            if let Some(last) = all.last_mut()
                && last.number == number
            {
                last.trials.push(trial);
                continue;
            }
            let is_factor = |name: &str| self.question.factors.iter().any(|f| f.name == name);
            let axes = trial.axes.iter().filter(|axis| is_factor(&axis.name));
            let named = axes.map(|axis| (axis.name.as_str(), axis.value.as_str()));
            let Some(point) = Point::from_named(&self.question.factors, named) else {
                continue;
            };
            all.push(Measurement {
                name: &trial.settings_name,
                repeat: trial.repeat,
                point,
                number,
                trials: vec![trial],
            });
        }
        all
    }

    fn judge(&self, own: &Measurement<'_>, done: &[Trial]) -> Told {
        match (self.plan.objective, &own.trials[..]) {
            (Objective::Limit, _) => {
                let flat_out = self.default_flat_out(own.number, done);
                self.point_search(own.number).judge(done, flat_out)
            }
            (objective, [.., trial]) => judge_trial(objective, trial),
            (_, []) => Told {
                finding: Finding::Nothing,
                why: Vec::new(),
            },
        }
    }

    fn seen_of(&self, measurements: &[Measurement<'_>], done: &[Trial]) -> Vec<Seen> {
        let mut seen: Vec<Seen> = Vec::with_capacity(measurements.len());
        for own in measurements {
            let one = Seen {
                purpose: purpose_of(own, &seen),
                point: own.point.clone(),
                finding: self.judge(own, done).finding,
                seconds: own
                    .trials
                    .iter()
                    .map(|trial| searching::seconds(trial))
                    .sum(),
            };
            seen.push(one);
        }
        seen
    }
}

/// The only cell of a plan.
///
/// # Errors
/// If it has none, or several.
pub fn only_cell(prepared: &Prepared) -> Result<&PlannedTrial, Error> {
    let cells = prepared
        .plan
        .trials
        .iter()
        .filter(|trial| trial.repeat == 1);
    let cells: Vec<&PlannedTrial> = cells.collect();
    match &cells[..] {
        [] => Err(Error::bad_input(
            "there is nothing to tune: the plan has no trial",
        )),
        [only] => Ok(only),
        several => {
            let names: Vec<&str> = several
                .iter()
                .take(5)
                .map(|trial| trial.cell.as_str())
                .collect();
            let more = if several.len() > names.len() {
                "; ..."
            } else {
                ""
            };
            Err(Error::bad_input(format!(
                "one cell can be tuned at a time, and this plan has {}: {}{more}\n  hint: one system (--on), one workload (--workload \
                 NAME), one variant of the settings, and no grid",
                several.len(),
                names.join("; "),
            )))
        }
    }
}

/// Why a stored measurement was made: its name says it, and what was measured before.
fn purpose_of(own: &Measurement<'_>, before: &[Seen]) -> Purpose {
    let side = match own.name {
        BASE => return Purpose::Base,
        DEFAULT => Some(Side::Default),
        TUNED => Some(Side::Best),
        _ => None,
    };
    if let Some(side) = side {
        return Purpose::Pair {
            nth: own.repeat,
            side,
        };
    }
    let told = |one: &Seen| one.point == own.point && one.finding != Finding::Nothing;
    match own.point.0.iter().flatten().count() {
        _ if before.iter().any(told) => Purpose::Again,
        1 => Purpose::OneFactor,
        _ => Purpose::Combination,
    }
}

/// The name of a measurement, and its repeat.
fn name_of(purpose: Purpose, point: &Point, before: &[Measurement<'_>]) -> (String, u32) {
    let repeat = |name: &str| before.iter().filter(|own| own.name == name).count() as u32 + 1;
    match purpose {
        Purpose::Base => (BASE.to_owned(), repeat(BASE)),
        Purpose::Pair { nth, side } => {
            let name = match side {
                Side::Default => DEFAULT,
                Side::Best => TUNED,
            };
            (name.to_owned(), nth)
        }
        Purpose::OneFactor | Purpose::Combination | Purpose::Again => {
            let tries = || before.iter().filter(|own| own.name.starts_with(TRY));
            let known = tries().find(|own| own.point == *point);
            let new = || {
                let mut points: Vec<&str> = tries().map(|own| own.name).collect();
                points.dedup();
                points.sort_unstable();
                points.dedup();
                format!("{TRY}{:03}", points.len() + 1)
            };
            let name = known.map_or_else(new, |own| own.name.to_owned());
            let repeat = repeat(&name);
            (name, repeat)
        }
    }
}

#[cfg(test)]
mod tests;
