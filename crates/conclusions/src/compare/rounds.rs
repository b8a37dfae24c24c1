//! Cells measured in rounds until their comparison is precise enough: the next trial, and the outcome.
//! Pure: everything is decided from stored trials, so that a run that was cut off continues from what is
//! on disk.
//!
//! A round is one trial of each cell that is still compared. The run ends on the width of the intervals, never
//! on their position: to stop once a difference shows finds differences where there are none. Ending on width
//! has a bias too: the spread of few pairs sometimes looks small by chance, and the run ends then. Three rules
//! counter it: at least [`FEWEST`] pairs, precise twice in a row, and intervals at [`ENDED_ON_WIDTH`] instead
//! of 95 %. With them the intervals contain the true value in 95 of 100 comparisons, which
//! `tests/it/long/planted_pairs.rs` counts.

use pubgauge_figures::comparison::{
    ComparedFigure, ComparedSystem, Difference, Ended, GuardOutcome, PairComparison,
};
use pubgauge_figures::figure::Better;
use pubgauge_figures::model::{AxisValue, Rule};
use pubgauge_figures::{Status, Trial};
use pubgauge_quantities::stats::{CONFIDENCE, MeanInterval};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::pairing::standing;
use super::{NamedFigure, Pair, Row, compare_at, figures_of};

/// Confidence of the intervals where the run ends on their width, so that they hold at 95 %.
const ENDED_ON_WIDTH: f64 = 0.97;
/// Number of pairs below which no interval counts as precise.
const FEWEST: u32 = 6;
/// How often a trial that the client spoilt is repeated in its round.
const AGAIN: usize = 2;
/// Spoilt trials of a cell from which its comparisons are given up, if they are also more than half.
const SPOILT: usize = 6;

/// How cells are compared.
#[derive(Clone, Debug)]
pub struct ComparisonRule {
    /// Half-width of the interval at which a pair is complete, as a share: 0.03; absent: all rounds run.
    pub precision: Option<f64>,
    /// Change up to which two figures are the same, as a share.
    pub margin: f64,
    /// Whether the first cell is an old release, and the others are judged by whether they are worse than it by
    /// more than the margin.
    pub guard: bool,
    /// The figures that decide. If empty: flat out the delivered rate, else the median latency and the
    /// system's processor time per message.
    pub figures: Vec<NamedFigure>,
    /// The largest number of rounds.
    pub most: u32,
    /// Seconds after which no round begins.
    pub seconds: f64,
    /// Seed of the order within each round; absent: in the order of the list.
    pub shuffled: Option<u64>,
    /// Name of the settings that all others are compared with, system by system; absent where the first cell
    /// is compared with all others.
    pub ablation: Option<String>,
}

/// A cell, as it is planned.
#[derive(Clone, Debug, PartialEq)]
pub struct CellOf {
    /// The name that its trials carry.
    pub cell: String,
    pub system: String,
    /// Name of the settings.
    pub settings: String,
    pub workload: String,
    /// Values of the grid's axes.
    pub axes: Vec<AxisValue>,
}

/// The pairs of cells that are compared, by index: the first cell of each workload and point of the grid
/// with each other one there; in an ablation, that with the base's settings with the others of its system.
fn pairs(question: &ComparisonRule, cells: &[CellOf]) -> Vec<(usize, usize)> {
    let alike = |a: &CellOf, b: &CellOf| a.workload == b.workload && a.axes == b.axes;
    let base = |at: usize| match &question.ablation {
        Some(name) => {
            let base = |c: &CellOf| c.settings == *name && c.system == cells[at].system;
            (0..cells.len()).find(|b| base(&cells[*b]) && alike(&cells[*b], &cells[at]))
        }
        None => (0..at).find(|other| alike(&cells[*other], &cells[at])),
    };
    let found = (0..cells.len()).filter_map(|at| Some((base(at)?, at)));
    found.filter(|(base, other)| base != other).collect()
}

/// Whether a trial shows nothing of the system: the client was the limit, there was no steady state, it was too
/// short, a hypervisor took time of the machine, or it did not run as planned while the system was well.
pub fn spoilt(trial: &Trial) -> bool {
    match trial.verdict.status {
        _ if trial.verdict.has(Rule::TimeStolen) => true,
        Status::HostBound
        | Status::SettingBound
        | Status::TooShort
        | Status::Unsteady
        | Status::ClientBound => true,
        Status::Broken => trial.circumstances.system_died.is_empty(),
        Status::Valid | Status::Overloaded | Status::Lossy => false,
    }
}

/// The next trial: the index of a cell, and its round, from 1. `spent_s` is the time that the trials
/// took, in seconds. `None` at the end.
pub fn next(
    question: &ComparisonRule,
    cells: &[CellOf],
    trials: &[Trial],
    spent_s: f64,
) -> Option<(usize, u32)> {
    // Beyond the rounds that were asked for, trials are repeats of claims that were not decided.
    let round = trials.iter().map(|t| t.repeat).max().unwrap_or(1);
    let round = round.min(question.most);
    let left = |round: u32| next_of_round(question, cells, trials, round).map(|cell| (cell, round));
    if let Some(next) = left(round) {
        return Some(next);
    }
    if round >= question.most || spent_s >= question.seconds {
        None
    } else {
        left(round + 1)
    }
}

/// The next cell of a round; `None` at its end.
fn next_of_round(
    question: &ComparisonRule,
    cells: &[CellOf],
    trials: &[Trial],
    round: u32,
) -> Option<usize> {
    let before: Vec<&Trial> = trials.iter().filter(|t| t.repeat < round).collect();
    let mut wanted = vec![false; cells.len()];
    for (base, other) in pairs(question, cells) {
        let pair = pair(cells, &before, base, other);
        if reason_to_end(question, &pair).is_none() {
            (wanted[base], wanted[other]) = (true, true);
        }
    }
    // Every cell is measured, also one without a partner.
    if question.precision.is_none() || round == 1 {
        wanted.fill(true);
    }
    let mut order: Vec<usize> = (0..cells.len()).filter(|at| wanted[*at]).collect();
    if let Some(seed) = question.shuffled {
        order.shuffle(&mut StdRng::seed_from_u64(
            seed.wrapping_add(u64::from(round)),
        ));
    }
    let tried = |at: usize| -> Vec<&Trial> {
        let own = |t: &&Trial| t.repeat == round && t.cell == cells[at].cell;
        trials.iter().filter(own).collect()
    };
    let fresh = order.iter().find(|at| tried(**at).is_empty());
    let again = || {
        let spoilt = |tried: Vec<&Trial>| tried.len() <= AGAIN && tried.into_iter().all(spoilt);
        order.iter().find(|at| spoilt(tried(**at)))
    };
    match question.precision {
        Some(_) => fresh.or_else(again).copied(),
        None => fresh.copied(),
    }
}

/// The trials of two cells: the last of each round, which is valid if any was.
fn pair<'a>(cells: &[CellOf], trials: &[&'a Trial], base: usize, other: usize) -> Pair<'a> {
    let of = |at: usize| {
        let own = trials.iter().filter(|t| t.cell == cells[at].cell);
        standing(own.copied())
    };
    Pair {
        title: cells[other].cell.clone(),
        a: of(base),
        b: of(other),
        interleaved: true,
    }
}

/// Rounds in which both sides are valid.
fn valid_rounds(pair: &Pair<'_>) -> Vec<u32> {
    let valid = |t: &&&Trial| t.verdict.status == Status::Valid;
    let b: Vec<u32> = pair.b.iter().filter(valid).map(|t| t.repeat).collect();
    let a = pair.a.iter().filter(valid).map(|t| t.repeat);
    a.filter(|repeat| b.contains(repeat)).collect()
}

/// Why a pair needs no more trials; `None` if it does.
fn reason_to_end(question: &ComparisonRule, pair: &Pair<'_>) -> Option<Ended> {
    let precision = question.precision?;
    let all = || pair.a.iter().chain(&pair.b);
    if all().any(|t| t.verdict.status != Status::Valid && !spoilt(t)) {
        return Some(Ended::System);
    }
    for side in [&pair.a, &pair.b] {
        let spoilt = side.iter().filter(|t| spoilt(t)).count();
        if spoilt >= SPOILT && 2 * spoilt > side.len() {
            return Some(Ended::Client);
        }
    }
    let rounds = valid_rounds(pair);
    let (last, enough) = (rounds.last()?, rounds.len() as u32 >= FEWEST);
    let mut before = pair.clone();
    before.a.retain(|t| t.repeat < *last);
    before.b.retain(|t| t.repeat < *last);
    let precise = |pair: &Pair<'_>| {
        let rows = rows(question, pair, &decisive(question, pair));
        rows.iter().all(|row| is_precise(row, precision))
    };
    (enough && precise(pair) && precise(&before)).then_some(Ended::Precision)
}

/// The figures that decide the precision.
fn decisive(question: &ComparisonRule, pair: &Pair<'_>) -> Vec<NamedFigure> {
    if !question.figures.is_empty() {
        return question.figures.clone();
    }
    let all = || pair.a.iter().chain(&pair.b);
    let names: &[&str] = if all().any(|t| t.workload.flat_out) {
        &["delivered-rate"]
    } else {
        &["latency.p50", "round-trip.p50", "system-cpu-per-message"]
    };
    // A system within its client has no processor time of its own, one-way traffic no round trips.
    let shown = |figure: &NamedFigure| {
        let has_it = |t: &&Trial| figure.value_in(t).is_some();
        all().any(has_it) && all().all(|t| spoilt(t) || has_it(t))
    };
    let figures = names.iter().filter_map(|name| NamedFigure::named(name));
    let figures: Vec<NamedFigure> = figures.filter(shown).collect();
    if figures.is_empty() {
        figures_of(pair)
    } else {
        figures
    }
}

fn rows(question: &ComparisonRule, pair: &Pair<'_>, figures: &[NamedFigure]) -> Vec<Row> {
    let confidence = match question.precision {
        Some(_) => ENDED_ON_WIDTH,
        None => CONFIDENCE,
    };
    let pairs = std::slice::from_ref(pair);
    let compared = compare_at(pairs, figures, question.margin, confidence);
    compared.sections.into_iter().flat_map(|s| s.rows).collect()
}

/// Whether the ratio of both sides is known to within plus or minus `precision`.
fn is_precise(row: &Row, precision: f64) -> bool {
    row.change.is_some_and(|change| {
        let is_narrow = |half: f64| half <= precision;
        change.low == change.high || change.half_width().is_some_and(is_narrow)
    })
}

/// The outcomes of the comparisons, from the trials that exist.
pub fn conclude(
    question: &ComparisonRule,
    cells: &[CellOf],
    trials: &[Trial],
    spent_s: f64,
) -> Vec<PairComparison> {
    let measured: Vec<&Trial> = trials.iter().collect();
    let over = next(question, cells, trials, spent_s).is_none();
    let one = |(base, other): (usize, usize)| {
        let pair = pair(cells, &measured, base, other);
        let all = || {
            let of = |t: &&&Trial| t.cell == cells[base].cell || t.cell == cells[other].cell;
            measured.iter().filter(of)
        };
        let figures = if question.figures.is_empty() && question.precision.is_none() {
            figures_of(&pair)
        } else {
            decisive(question, &pair)
        };
        let side = |cell: &CellOf| ComparedSystem {
            system: cell.system.clone(),
            settings: cell.settings.clone(),
        };
        PairComparison {
            workload: cells[base].workload.clone(),
            axes: cells[base].axes.clone(),
            base: side(&cells[base]),
            other: side(&cells[other]),
            ablation: question
                .ablation
                .is_some()
                .then(|| cells[other].settings.clone()),
            pairs: valid_rounds(&pair).len() as u32,
            not_valid: all().filter(|t| t.verdict.status != Status::Valid).count() as u32,
            precision: question.precision,
            margin: question.margin,
            ended: match (reason_to_end(question, &pair), over, question.precision) {
                (Some(why), _, _) => why,
                (None, false, _) => Ended::Cut,
                (None, true, Some(_)) => Ended::Budget,
                (None, true, None) => Ended::Repeats,
            },
            figures: rows(question, &pair, &figures)
                .into_iter()
                .map(|row| stored(row, question))
                .collect(),
        }
    };
    pairs(question, cells).into_iter().map(one).collect()
}

fn stored(row: Row, question: &ComparisonRule) -> ComparedFigure {
    let guard = question.guard.then(|| guard(&row, question.margin));
    let mean = |estimate: Option<MeanInterval>| estimate.map(|e| e.mean);
    ComparedFigure {
        figure: row.figure.name.to_string(),
        unit: row.figure.known.unit.symbol().to_owned(),
        base: mean(row.a),
        other: mean(row.b),
        change: row.change.map(|change| change.effect),
        low: row.change.map(|change| change.low),
        high: row.change.map(|change| change.high),
        relative: row.change.is_none_or(|change| change.relative),
        verdict: row.verdict,
        guard,
        why: row.why,
    }
}

/// Whether B is worse than A by more than the margin, as far as the interval tells. The margin is a ratio, so that
/// halves and doubles are as far from "no change"; of shares it is in percentage points.
fn guard(row: &Row, margin: f64) -> GuardOutcome {
    let Some(change) = row.change else {
        return GuardOutcome::CannotTell;
    };
    let scale = |change: f64, relative| if relative { change.ln_1p() } else { change };
    let (low, high) = (
        scale(change.low, change.relative),
        scale(change.high, change.relative),
    );
    // How much worse B is, at least and at most.
    let (least, most) = match row.figure.known.better {
        Better::More => (-high, -low),
        Better::Less => (low, high),
    };
    let bound = scale(margin, change.relative);
    match row.verdict {
        _ if most <= bound => GuardOutcome::WithinMargin,
        Difference::Worse if least > bound => GuardOutcome::Worse,
        _ => GuardOutcome::CannotTell,
    }
}
