//! The answer of a run for programs: what the terminal's screen and the page word, as data.

use std::collections::BTreeSet;

use pubgauge_figures::criterion::{Comparator, CriterionSpec};
use pubgauge_figures::figure::Unit;
use pubgauge_figures::search::{Axis, LimitedBy, NoteOf, Search};
use pubgauge_figures::{AxisValue, Reason, Results, Rule, Status};
use pubgauge_quantities::lists::grouped;
use pubgauge_quantities::stats::mean;
use pubgauge_results::verdict::spoilt_by_others;
use schemars::JsonSchema;
use serde::Serialize;

use crate::carries::Carries;
use crate::cell::Cell;
use crate::device_cost::{self, DeviceCost};
use crate::judgement::{FlowJudgement, JudgedRepeat, Judgement, by_flow, demands, is_by_default};
use crate::metric::{Bound, Contest};
use crate::summary::{Summary, WorkloadCells};
use crate::wins::{self, Contender, ContestResult, Factor, Outcome};

/// Name and version of the format.
pub const FORMAT: &str = "pubgauge-answer/1";

/// The answer of a run: which cells carry their load, who is best at what, which limits were found, and what would tell
/// more. Figures are in the unit beside them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RunAnswer {
    /// Name and version of the format: `pubgauge-answer/1`.
    pub format: String,
    /// Name of the study.
    pub study: String,
    /// How many trials stand, and how many can be trusted.
    pub trials: TrialCounts,
    /// Each workload, in the order in which they ran.
    pub workloads: Vec<AnsweredWorkload>,
    /// Limits that searches found.
    pub limits: Vec<Limit>,
    /// Why cells cannot be told, or are not carried: each cause once, the most frequent first.
    pub causes: Vec<Cause>,
    /// The things that would tell more.
    pub would_tell: WouldTell,
}

/// Numbers of trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TrialCounts {
    /// Trials that stand.
    pub all: u32,
    /// Of these, valid ones.
    pub valid: u32,
    /// Of these, such that only give bounds because other programs had the processors.
    pub spoilt_by_others: u32,
}

/// The answer of one workload.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AnsweredWorkload {
    /// Its name.
    pub workload: String,
    /// The demands on its figures; besides, nothing may be lost against what the settings promise, and no queue may grow.
    /// Empty flat out without criteria.
    pub demands: Vec<Demand>,
    /// Whether pubgauge's default is among the demands: the study has no criterion for some cells.
    pub by_default: bool,
    /// Its cells.
    pub cells: Vec<AnsweredCell>,
    /// Who is best at what, for each point of a varied load.
    pub contests: Vec<AnsweredContest>,
    /// The cost of one more connection or topic, where the grid changes how many there are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<DeviceCost>,
}

/// A demand on a figure.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Demand {
    /// The figure, as results have it: `latency_ns.p99`.
    pub figure: String,
    /// The flow that it is about; absent: all flows together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// The systems that it applies to; absent: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub systems: Vec<String>,
    /// How the figure is compared with the limit.
    pub comparison: Comparator,
    /// The limit, in `unit`.
    pub limit: f64,
    /// Symbol of the unit: `ns`, `1/s`, `B`, `1`.
    pub unit: &'static str,
}

/// The answer of one cell: one entry of the matrix.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AnsweredCell {
    /// The cell, as trials name it.
    pub cell: String,
    /// Its row in the matrix: system, settings.
    pub row: String,
    /// Its column within the workload: `payload = 1 KiB`; empty where no load was varied.
    pub at: String,
    /// The system.
    pub system: String,
    /// Whether it carries its load; absent flat out without criteria, where `rate` is the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carries: Option<Carries>,
    /// The figure that decided; absent where the verdict alone did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<DecidedBy>,
    /// Verdict of the repeat that decided, or of those that the rate is from.
    pub verdict: Status,
    /// The rule behind a verdict that is not valid; the text is among the `causes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Rule>,
    /// Deliveries per second; absent if lossy, unsteady or broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<CarriedRate>,
    /// Processor time of system and client for a delivery, in microseconds; absent without a valid repeat, and for systems
    /// out of sight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_us_per_msg: Option<f64>,
    /// Repeats that ran.
    pub repeats: u32,
    /// Valid ones among them.
    pub valid: u32,
    /// Whether nothing can be told because other programs had the processors.
    pub spoilt_by_others: bool,
    /// The parts of its load, where the workload has several flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<AnsweredFlow>,
}

/// The answer of one flow of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AnsweredFlow {
    /// Its name.
    pub flow: String,
    /// Whether it is carried; absent where nothing is asked of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carries: Option<Carries>,
    /// The figure that decided; absent where nothing is asked of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<DecidedBy>,
    /// Most of its deliveries that were lost in a repeat.
    pub lost: u64,
}

/// The figure that decided, with its limit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DecidedBy {
    /// The demand.
    #[serde(flatten)]
    pub demand: Demand,
    /// The figure is this or more; the same as `at_most` where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// The figure is this or less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// How many times better than its limit the figure is, where the load is carried and it can be divided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times_better: Option<f64>,
    /// The repeat that decided, from 1.
    pub repeat: u32,
}

/// A rate, and how it bounds what the system can deliver.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CarriedRate {
    /// Deliveries per second, mean over repeats.
    pub msgs_per_s: f64,
    /// Whether the system can deliver exactly this, or more.
    pub bound: Bound,
}

/// Who is best at one thing.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AnsweredContest {
    /// The point of the varied load; empty where none was varied.
    pub at: String,
    /// The figure in which cells are compared, as studies name it: `latency.p50`.
    pub figure: String,
    /// Symbol of its unit.
    pub unit: &'static str,
    /// How far it is decided.
    pub outcome: Outcome,
    /// The best, and all that repeats do not tell from it.
    pub best: Vec<ContestPlace>,
    /// The next one, which is not as good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<ContestPlace>,
    /// How many times apart the best and the next one are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<Factor>,
    /// Cells that were compared.
    pub compared: u32,
    /// About how many repeats would decide what is open; absent where it is not open, or nothing says how far repeats differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats_to_tell: Option<u32>,
}

/// The figure of one cell in a contest.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ContestPlace {
    /// The row of the cell.
    pub row: String,
    /// Its figure, mean over repeats.
    pub value: f64,
    /// Half the width of its 95 % interval; absent below three repeats, and for a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_width: Option<f64>,
    /// Repeats that it is from.
    pub repeats: u32,
    /// How it bounds what the system can do.
    pub bound: Bound,
}

/// The limit that a search found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Limit {
    /// The system.
    pub system: String,
    /// Name of the variant of the settings.
    pub settings: String,
    /// The workload.
    pub workload: String,
    /// Values of the grid's axes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub axes: Vec<AxisValue>,
    /// The axis that was varied; loads are in its unit.
    pub axis: Axis,
    /// Symbol of the unit of the loads.
    pub unit: &'static str,
    /// Lower end of the 95 % interval of the limit; absent: no load stayed within what was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end; absent: the system carries at least `low`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The load that a long trial stayed within.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<f64>,
    /// The reason why the search ended.
    pub bound: LimitedBy,
    /// The part that gave way beyond the limit, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gave_way: Option<String>,
    /// Why the limit is not known better.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<NoteOf>,
}

/// Why cells cannot be told, or are not carried.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Cause {
    /// The rule of verdicts.
    pub rule: Rule,
    /// The answer that it stands behind; absent flat out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carries: Option<Carries>,
    /// How many cells have it.
    pub count: u32,
    /// These cells, as trials name them.
    pub cells: Vec<String>,
    /// The reason of the first of them, in a sentence.
    pub text: String,
    /// The next thing to do, in a sentence.
    pub advice: &'static str,
}

/// The things that would tell more than is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WouldTell {
    /// A machine on which nothing else runs: other programs spoilt trials.
    pub quiet_machine: bool,
    /// More repeats: some contests are open.
    pub more_repeats: bool,
    /// About how many repeats would decide all contests that are open; absent where nothing says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u32>,
}

impl RunAnswer {
    /// The answer of a run.
    pub fn new(results: &Results) -> RunAnswer {
        let summary = Summary::summarize(results);
        let workloads: Vec<AnsweredWorkload> = (summary.workloads.iter())
            .map(|workload| AnsweredWorkload::new(&results.study.criterion_specs, workload))
            .collect();
        let trials = TrialCounts::new(results);
        let would_tell = WouldTell::new(trials, &workloads);
        RunAnswer {
            format: FORMAT.to_owned(),
            study: results.study.name.clone(),
            trials,
            causes: causes(&summary, &workloads),
            workloads,
            limits: results.searches.iter().map(Limit::new).collect(),
            would_tell,
        }
    }
}

impl TrialCounts {
    /// The numbers of a run.
    pub fn new(results: &Results) -> TrialCounts {
        let mut counts = TrialCounts {
            all: 0,
            valid: 0,
            spoilt_by_others: 0,
        };
        for trial in results.standing() {
            counts.all += 1;
            counts.valid += u32::from(trial.verdict.status == Status::Valid);
            counts.spoilt_by_others += u32::from(spoilt_by_others(trial));
        }
        counts
    }
}

impl AnsweredWorkload {
    fn new(specs: &[CriterionSpec], workload: &WorkloadCells<'_>) -> AnsweredWorkload {
        let cell = |cell| AnsweredCell::new(cell, specs, &workload.points[cell.point].label);
        let contests = (0..workload.points.len()).flat_map(|point| {
            let cells: Vec<&Cell<'_>> = workload.cells_at(point).collect();
            let at = &workload.points[point].label;
            let each = Contest::contests_of(&cells).into_iter();
            let each = each.map(move |contest| wins::answer(&cells, contest));
            each.map(move |result| AnsweredContest::new(at, &result))
        });
        let mut firsts = workload.cells.iter().map(|cell| cell.trials[0]);
        AnsweredWorkload {
            workload: workload.name.clone(),
            demands: demands(specs, workload).iter().map(Demand::new).collect(),
            by_default: firsts.any(|trial| is_by_default(trial, specs)),
            cells: workload.cells.iter().map(cell).collect(),
            contests: contests.collect(),
            costs: device_cost::of_workload(workload),
        }
    }
}

impl Demand {
    fn new(spec: &CriterionSpec) -> Demand {
        let unit = spec.catalogued_figure().map_or(Unit::Count, |of| of.unit);
        Demand {
            figure: spec.figure.clone(),
            flow: spec.filter.flow.clone(),
            systems: spec.filter.systems.clone(),
            comparison: spec.comparison,
            limit: spec.value,
            unit: unit.symbol(),
        }
    }
}

impl AnsweredCell {
    fn new(cell: &Cell<'_>, specs: &[CriterionSpec], at: &str) -> AnsweredCell {
        let judgement = Judgement::new(cell, specs);
        let decisive = judgement.decisive();
        let cost = |trial: &_| Contest::CPU_PER_MESSAGE.value(trial);
        AnsweredCell {
            cell: cell.id.clone(),
            row: cell.row.clone(),
            at: at.to_owned(),
            system: cell.system.clone(),
            carries: judgement.carries,
            decided_by: decisive.and_then(|one| DecidedBy::new(one, &judgement)),
            verdict: decisive.map_or(cell.status(), |one| one.trial.verdict.status),
            cause: cause(cell, &judgement).map(|reason| reason.rule),
            rate: cell.carried().map(|carried| CarriedRate {
                msgs_per_s: carried.estimate.mean,
                bound: carried.bound,
            }),
            cpu_us_per_msg: mean(cell.valid().filter_map(cost)),
            repeats: cell.trials.len() as u32,
            valid: cell.valid().count() as u32,
            spoilt_by_others: cell.is_spoilt(judgement.carries),
            flows: (by_flow(cell, specs).iter())
                .map(|flow| AnsweredFlow::new(cell, flow))
                .collect(),
        }
    }
}

impl AnsweredFlow {
    fn new(cell: &Cell<'_>, flow: &FlowJudgement<'_>) -> AnsweredFlow {
        let decisive = flow.judgement.decisive();
        let trials = cell.trials.iter();
        AnsweredFlow {
            flow: flow.flow.to_owned(),
            carries: flow.judgement.carries,
            decided_by: decisive.and_then(|one| DecidedBy::new(one, &flow.judgement)),
            lost: trials
                .flat_map(|trial| &trial.flows)
                .filter(|of| of.name == flow.flow)
                .map(|of| of.shortfall.lost)
                .max()
                .unwrap_or(0),
        }
    }
}

/// The reason behind a judgement that does not say that the load is carried.
fn cause<'a>(cell: &Cell<'a>, judgement: &Judgement<'a>) -> Option<&'a Reason> {
    match judgement.decisive() {
        Some(one) if one.met == Some(true) => None,
        Some(one) if one.is_by_verdict() => one.trial.verdict.reasons.first(),
        Some(_) => None,
        None if cell.says_nothing(None) => cell.cause(),
        None => None,
    }
}

impl DecidedBy {
    fn new(one: &JudgedRepeat<'_>, judgement: &Judgement<'_>) -> Option<DecidedBy> {
        let (spec, bearing) = one.demand.as_ref()?;
        let (at_least, at_most) = bearing.range();
        Some(DecidedBy {
            demand: Demand::new(spec),
            at_least,
            at_most,
            times_better: judgement.times_better(),
            repeat: one.trial.repeat,
        })
    }
}

impl AnsweredContest {
    fn new(at: &str, result: &ContestResult) -> AnsweredContest {
        let figure = result.contest.figure();
        let outcome = result.outcome();
        let is_open = outcome == Outcome::Open;
        AnsweredContest {
            at: at.to_owned(),
            figure: figure.name.clone(),
            unit: figure.unit.symbol(),
            outcome,
            best: result.winners.iter().map(ContestPlace::new).collect(),
            next: result.runner_up.as_ref().map(ContestPlace::new),
            factor: result.factor(),
            compared: result.compared as u32,
            repeats_to_tell: result.repeats_to_tell.filter(|_| is_open),
        }
    }
}

impl ContestPlace {
    fn new(place: &Contender) -> ContestPlace {
        let is_exact = place.bound == Bound::Exact;
        ContestPlace {
            row: place.row.clone(),
            value: place.estimate.mean,
            half_width: place.estimate.half_width.filter(|_| is_exact),
            repeats: place.estimate.n as u32,
            bound: place.bound,
        }
    }
}

impl Limit {
    fn new(search: &Search) -> Limit {
        let unit = match search.axis {
            Axis::Rate => "1/s",
            Axis::Payload => "B",
            _ => "1",
        };
        let notes = search.notes.iter().map(|note| note.of);
        Limit {
            system: search.system.clone(),
            settings: search.settings.clone(),
            workload: search.workload.clone(),
            axes: search.axes.clone(),
            axis: search.axis,
            unit,
            low: search.low,
            high: search.high,
            confirmed: search.confirmed,
            bound: search.bound,
            gave_way: search.gave_way.as_ref().map(|of| of.words.clone()),
            because: notes.filter(|of| of.cause().is_some()).collect(),
        }
    }
}

/// Each cause once, the most frequent first.
fn causes(summary: &Summary<'_>, workloads: &[AnsweredWorkload]) -> Vec<Cause> {
    let cells = summary
        .workloads
        .iter()
        .flat_map(|workload| &workload.cells);
    let answers = workloads.iter().flat_map(|workload| &workload.cells);
    let caused = cells.zip(answers).filter_map(|(cell, answer)| {
        let rule = answer.cause?;
        let mut trials = cell.trials.iter();
        let reason = trials.find_map(|trial| trial.verdict.reason(rule));
        Some(((rule, answer.carries), (answer, reason)))
    });
    let mut causes: Vec<Cause> = (grouped(caused).into_iter())
        .map(|((rule, carries), alike)| Cause {
            rule,
            carries,
            count: alike.len() as u32,
            cells: alike
                .iter()
                .map(|(answer, _)| answer.cell.clone())
                .collect(),
            text: (alike[0].1).map_or(String::new(), |reason| reason.text.clone()),
            advice: rule.advice(),
        })
        .collect();
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.count));
    causes
}

impl WouldTell {
    fn new(trials: TrialCounts, workloads: &[AnsweredWorkload]) -> WouldTell {
        let contests = workloads.iter().flat_map(|workload| &workload.contests);
        let open = contests.filter(|contest| contest.outcome == Outcome::Open);
        let repeats: BTreeSet<Option<u32>> = open.map(|contest| contest.repeats_to_tell).collect();
        WouldTell {
            quiet_machine: trials.spoilt_by_others > 0,
            more_repeats: !repeats.is_empty(),
            repeats: match repeats.first() {
                // Of one at least nothing says how many it takes.
                None | Some(None) => None,
                Some(_) => repeats.last().copied().flatten(),
            },
        }
    }
}

/// The schema as it stands in `schema/answer.schema.json`, pretty-printed with a final newline.
pub fn schema() -> String {
    pubgauge_results::schema::pretty::<RunAnswer>(FORMAT)
}
