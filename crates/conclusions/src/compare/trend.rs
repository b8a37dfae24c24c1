//! Several runs in the order of time: each figure of each cell from run to run, and where it changed by more than repeats
//! of one run differ by.
//!
//! A run is compared with the latest earlier one that was measured under the same conditions (machine, workload, settings,
//! length of the measurement), and the last with the first, as [`compare`](super::compare()) does it. The intervals of all
//! cells, figures and runs hold together at 95 %: of trends in which nothing changes, at most 5 of 100 have a mark.

mod conditions;

use pubgauge_figures::{Results, Status, Trial};
use pubgauge_quantities::lists::{grouped, unique};
use pubgauge_quantities::stats::{CONFIDENCE, MeanInterval};
use schemars::JsonSchema;
use serde::Serialize;

use super::pairing::CellKey;
use super::{Difference, NamedFigure, Pair, PairedValues, Row, figures_of, repeats, row, usable};
use crate::Carries;
use crate::answer::TrialCounts;
use crate::cell::Cell;
use crate::judgement::Judgement;
use conditions::Conditions;

/// Name and version of the format.
pub const FORMAT: &str = "pubgauge-trend/1";

/// Fewest repeats by which a change is told from noise.
pub const FEWEST_REPEATS: usize = 3;

/// A run with the name that it is told by.
#[derive(Clone, Debug)]
pub struct NamedRun {
    /// Its folder.
    pub name: String,
    pub results: Results,
}

/// Several runs in the order of time. Numbers of runs begin at 1.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Trend {
    /// Name and version of the format: `pubgauge-trend/1`.
    pub format: String,
    /// Relative change up to which a figure is the same, as a share.
    pub margin: f64,
    /// Probability that all intervals hold at once.
    pub confidence: f64,
    /// Number of these intervals.
    pub intervals: u32,
    /// The runs, the oldest first.
    pub runs: Vec<TrendRun>,
    /// The cells, in the order in which they were first run.
    pub cells: Vec<CellTrend>,
}

/// One of the runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrendRun {
    /// Its folder, as it was named.
    pub name: String,
    /// Its study.
    pub study: String,
    /// When it began (RFC 3339).
    pub started: String,
    /// How many trials stand, and how many can be trusted.
    pub trials: TrialCounts,
    /// The systems, with their versions.
    pub systems: Vec<String>,
    /// The ways in which its conditions differ from those of the run before, so that the two are not compared, in sentences.
    pub not_compared: Vec<String>,
    /// The other ways in which it differs from the run before, in sentences.
    pub remarks: Vec<String>,
}

/// A cell over the runs that have it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CellTrend {
    /// The workload.
    pub workload: String,
    /// Values of the grid's axes: `payload = 1 KiB`; empty where none was varied.
    pub at: String,
    /// The system and, where it has a name, the variant of the settings.
    pub row: String,
    /// The runs that have it.
    pub runs: Vec<CellInRun>,
    /// Its figures.
    pub figures: Vec<FigureTrend>,
}

/// A cell in one run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CellInRun {
    /// Number of the run.
    pub run: u32,
    /// The version of the system.
    pub version: String,
    /// Whether it carries its load; absent flat out without criteria.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carries: Option<Carries>,
    /// Its mildest verdict.
    pub verdict: Status,
    /// Repeats that stand.
    pub repeats: u32,
}

/// A figure of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FigureTrend {
    /// The figure, as studies name it: `latency.p50`.
    pub figure: String,
    /// Symbol of its unit.
    pub unit: &'static str,
    /// Its value in each run that has the cell.
    pub points: Vec<TrendPoint>,
    /// The change from the first run to the last; absent where these are neighbours, or have no such figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<TrendStep>,
}

/// A figure in one run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrendPoint {
    /// Number of the run.
    pub run: u32,
    /// Mean over repeats, in the figure's unit; absent where the run shows no such figure of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Lower end of its 95 % interval; of two repeats the smaller value, of one absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Repeats that it is from.
    pub repeats: u32,
    /// The change from an earlier run; absent in the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<TrendStep>,
}

/// How a figure changed from one run to a later one.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TrendStep {
    /// Number of the earlier run.
    pub from: u32,
    /// Number of the later run.
    pub to: u32,
    /// Better or worse: it changed beyond noise. The same: within the margin. Otherwise it cannot be told.
    pub verdict: Difference,
    /// The change as a share (0.1 is 10 % more), or in the figure's unit; absent where the two could not be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<super::FigureChange>,
    /// Why it cannot be told; absent where the interval has "no change" in it and is wider than the margin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// About how many repeats of each run would tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats_to_tell: Option<u32>,
}

impl TrendStep {
    /// Whether the figure changed by more than repeats differ by.
    pub fn is_change(&self) -> bool {
        matches!(self.verdict, Difference::Better | Difference::Worse)
    }
}

impl FigureTrend {
    /// All steps: from run to run, then from the first to the last.
    pub fn steps(&self) -> impl Iterator<Item = &TrendStep> {
        let steps = self.points.iter().filter_map(|point| point.step.as_ref());
        steps.chain(&self.whole)
    }
}

/// The repeats of a cell in one run.
struct CellRepeats<'a> {
    /// Number of the run.
    run: u32,
    trials: Vec<&'a Trial>,
    conditions: Conditions,
}

/// One figure of a cell in one run.
struct Side {
    values: Vec<f64>,
    /// Why it cannot be compared.
    why: Option<String>,
}

/// The part of a step that is known before the number of intervals is.
enum Planned {
    /// It is compared: the places of both sides.
    Compared(usize, usize),
    /// It cannot be told.
    Open { from: u32, to: u32, why: String },
}

/// The runs in the order of time, compared by `figures` (those of [`figures_of`] if there are none), with `margin` as a
/// share.
pub fn trend(mut runs: Vec<NamedRun>, figures: &[NamedFigure], margin: f64) -> Trend {
    // Times of one form, in UTC: their texts are in the order of time.
    runs.sort_by(|a, b| a.results.study.started.cmp(&b.results.study.started));
    let cells = cells(&runs);
    let measured: Vec<Vec<(NamedFigure, Vec<Side>)>> = (cells.iter())
        .map(|(_, in_runs)| measured_sides(in_runs, figures))
        .collect();
    let planned: Vec<Vec<Steps>> = (cells.iter().zip(&measured))
        .map(|((_, in_runs), figures)| {
            let each = figures.iter();
            each.map(|(_, sides)| Steps::plan(in_runs, sides)).collect()
        })
        .collect();
    let steps = planned.iter().flatten().flat_map(Steps::all_steps);
    let intervals = steps.filter(|step| matches!(step, Planned::Compared(..)));
    let intervals = intervals.count();
    let confidence = 1.0 - (1.0 - CONFIDENCE) / intervals.max(1) as f64;
    let told = cells.iter().zip(measured).zip(planned);
    let shown = told.map(|(((key, in_runs), figures), planned)| CellTrend {
        workload: key.workload.clone(),
        at: key.axes.join(", "),
        row: key.row(),
        runs: (in_runs.iter())
            .map(|cell| cell_in_run(cell, &runs))
            .collect(),
        figures: (figures.into_iter().zip(planned))
            .map(|((figure, sides), steps)| {
                figure_trend(&figure, in_runs, &sides, &steps, (confidence, margin))
            })
            .collect(),
    });
    Trend {
        format: FORMAT.to_owned(),
        margin,
        confidence: CONFIDENCE,
        intervals: intervals as u32,
        cells: shown.collect(),
        runs: (0..runs.len())
            .map(|nth| told_run(&runs, nth, &cells))
            .collect(),
    }
}

/// The schema as it stands in `schema/trend.schema.json`, pretty-printed with a final newline.
pub fn schema() -> String {
    pubgauge_results::schema::pretty::<Trend>(FORMAT)
}

/// Each cell with its repeats in each run that has it.
fn cells(runs: &[NamedRun]) -> Vec<(CellKey, Vec<CellRepeats<'_>>)> {
    let each = runs.iter().zip(1..).flat_map(|(run, number)| {
        let trials = run.results.standing();
        let of_cell = grouped(trials.map(|trial| (CellKey::new(trial), trial)));
        of_cell.into_iter().map(move |(key, trials)| {
            let conditions = Conditions::new(&run.results, &trials);
            let in_run = CellRepeats {
                run: number,
                trials,
                conditions,
            };
            (key, in_run)
        })
    });
    grouped(each)
}

/// The figures of a cell, each with its values in each run.
fn measured_sides(
    in_runs: &[CellRepeats<'_>],
    figures: &[NamedFigure],
) -> Vec<(NamedFigure, Vec<Side>)> {
    let shown = in_runs.iter().flat_map(|cell| {
        figures_of(&Pair {
            title: String::new(),
            a: cell.trials.clone(),
            b: Vec::new(),
            interleaved: false,
        })
    });
    let figures = match figures {
        [] => unique(shown),
        figures => figures.to_vec(),
    };
    let each = figures.into_iter().map(|figure| {
        let sides = in_runs.iter().map(|cell| Side::new(&cell.trials, &figure));
        let sides: Vec<Side> = sides.collect();
        (figure, sides)
    });
    // A figure that no run has is none of this cell.
    each.filter(|(_, sides)| sides.iter().any(|side| !side.values.is_empty()))
        .collect()
}

impl Side {
    fn new(trials: &[&Trial], figure: &NamedFigure) -> Side {
        let (kept, aside) = usable(trials, figure);
        if let Some(words) = aside {
            let (values, why) = (Vec::new(), Some(words));
            return Side { values, why };
        }
        let values = kept.iter().filter_map(|trial| figure.value_in(trial));
        let values: Vec<f64> = values.collect();
        let why = if values.len() < kept.len() {
            Some("not every repeat shows it".to_owned())
        } else if values.len() < FEWEST_REPEATS {
            Some(format!(
                "{}, and fewer than three do not tell a change from noise",
                repeats(values.len())
            ))
        } else {
            None
        };
        Side { values, why }
    }
}

/// The steps of a figure that are to be told.
struct Steps {
    /// For each run; `None` for the first.
    each: Vec<Option<Planned>>,
    /// From the first to the last.
    whole: Option<Planned>,
}

impl Steps {
    fn plan(in_runs: &[CellRepeats<'_>], sides: &[Side]) -> Steps {
        let is_told = |at: usize| sides[at].why.is_none();
        let alike = |a: usize, b: usize| in_runs[a].conditions == in_runs[b].conditions;
        let partner = |at: usize| (0..at).rev().find(|&q| alike(q, at) && is_told(q));
        let step = |at: usize| {
            let before = at.checked_sub(1)?;
            let to = in_runs[at].run;
            let open = |from: usize, why: String| Planned::Open {
                from: in_runs[from].run,
                to,
                why,
            };
            if let Some(why) = &sides[at].why {
                return Some(open(before, format!("run {to}: {why}")));
            }
            if let Some(partner) = partner(at) {
                return Some(Planned::Compared(partner, at));
            }
            let same = (0..at).rev().find(|&q| alike(q, at));
            Some(match same.map(|q| (q, &sides[q].why)) {
                Some((q, why)) => {
                    let why = why.as_deref().unwrap_or_default();
                    open(q, format!("run {}: {why}", in_runs[q].run))
                }
                None => {
                    let other = &in_runs[before];
                    let differ = in_runs[at]
                        .conditions
                        .differences(&other.conditions, other.run);
                    let first = differ.into_iter().next().unwrap_or_default();
                    open(before, format!("not compared: {first}"))
                }
            })
        };
        let each: Vec<Option<Planned>> = (0..in_runs.len()).map(step).collect();
        let last = (0..in_runs.len()).rev().find(|&at| is_told(at));
        let whole = last.and_then(|last| {
            let first = (0..last).find(|&at| alike(at, last) && is_told(at))?;
            (partner(last) != Some(first)).then_some(Planned::Compared(first, last))
        });
        Steps { each, whole }
    }

    fn all_steps(&self) -> impl Iterator<Item = &Planned> {
        self.each.iter().flatten().chain(&self.whole)
    }
}

fn figure_trend(
    figure: &NamedFigure,
    in_runs: &[CellRepeats<'_>],
    sides: &[Side],
    steps: &Steps,
    (confidence, margin): (f64, f64),
) -> FigureTrend {
    let told = |planned: &Planned| match planned {
        Planned::Open { from, to, why } => TrendStep {
            from: *from,
            to: *to,
            verdict: Difference::CannotTell,
            change: None,
            why: Some(why.clone()),
            repeats_to_tell: None,
        },
        Planned::Compared(from, to) => {
            let values = PairedValues {
                a: sides[*from].values.clone(),
                b: sides[*to].values.clone(),
                paired: false,
                why: None,
            };
            let row: Row = row(figure.clone(), values, confidence, margin);
            TrendStep {
                from: in_runs[*from].run,
                to: in_runs[*to].run,
                verdict: row.verdict,
                change: row.change,
                why: row.why,
                repeats_to_tell: row.repeats_to_tell,
            }
        }
    };
    let each = in_runs.iter().zip(sides).zip(&steps.each);
    let points = each.map(|((cell, side), step)| {
        let estimate = MeanInterval::mean_of(&side.values);
        let end = |of: fn(&MeanInterval) -> f64| estimate.filter(|e| e.n > 1).map(|e| of(&e));
        TrendPoint {
            run: cell.run,
            value: estimate.map(|estimate| estimate.mean),
            low: end(MeanInterval::low),
            high: end(MeanInterval::high),
            repeats: side.values.len() as u32,
            step: step.as_ref().map(told),
        }
    });
    FigureTrend {
        figure: figure.name.clone().into_owned(),
        unit: figure.known.unit.symbol(),
        points: points.collect(),
        whole: steps.whole.as_ref().map(told),
    }
}

fn cell_in_run(cell: &CellRepeats<'_>, runs: &[NamedRun]) -> CellInRun {
    let specs = &runs[cell.run as usize - 1].results.study.criterion_specs;
    let of_cell = Cell::from_repeats(cell.trials.clone());
    CellInRun {
        run: cell.run,
        version: cell.trials[0].system.version.clone(),
        carries: Judgement::new(&of_cell, specs).carries,
        verdict: of_cell.status(),
        repeats: cell.trials.len() as u32,
    }
}

/// A run, and how it differs from the one before.
fn told_run(runs: &[NamedRun], nth: usize, cells: &[(CellKey, Vec<CellRepeats<'_>>)]) -> TrendRun {
    let NamedRun { name, results } = &runs[nth];
    let number = nth as u32 + 1;
    let version = |trial: &Trial| format!("{} {}", trial.system.name, trial.system.version);
    let (mut not_compared, mut remarks) = (Vec::new(), Vec::new());
    if let Some(before) = nth.checked_sub(1) {
        remarks.extend(conditions::remarks(
            [&runs[before].results, results],
            nth as u32,
        ));
        for (key, in_runs) in cells {
            let of = |run: u32| in_runs.iter().find(|cell| cell.run == run);
            match (of(number - 1), of(number)) {
                (Some(earlier), Some(now)) => {
                    not_compared.extend(now.conditions.differences(&earlier.conditions, nth as u32))
                }
                (Some(_), None) => remarks.push(format!("{} is not in it", key.title())),
                (None, Some(_)) => remarks.push(format!("{} is not in run {nth}", key.title())),
                (None, None) => {}
            }
        }
    }
    let searched = results.trials.iter().filter(|trial| trial.search.is_some());
    match searched.count() {
        0 => {}
        trials => remarks.push(format!(
            "{trials} trials of searches for a limit are not shown"
        )),
    }
    TrendRun {
        name: name.clone(),
        study: results.study.name.clone(),
        started: results.study.started.clone(),
        trials: TrialCounts::new(results),
        systems: unique(results.standing().map(version)),
        not_compared: unique(not_compared),
        remarks: unique(remarks),
    }
}

#[cfg(test)]
mod tests;
