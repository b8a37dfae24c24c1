//! Two sides of a comparison, figure by figure: the effect of going from A to B, its interval, and
//! one of four verdicts.
//!
//! Positive figures are compared by Welch's t on logarithms over repeats, as in [`pubgauge_quantities::stats`];
//! where A and B were measured in turns, by the t of the pairs, which removes what both have in
//! common. The intervals of a comparison hold together at 95 % (Bonferroni over the figures): two
//! identical systems are told apart in at most 5 of 100 comparisons, however many figures each has.
//!
//! - **same**: the interval lies within the margin.
//! - **better**, **worse**: the interval leaves out "no change".
//! - **cannot tell**: neither; or a side has a single repeat, lacks the figure, or has trials that
//!   show no such figure of the system (overloaded, lossy, broken).

mod figure;
mod pairing;
mod rounds;
pub mod trend;

use pubgauge_figures::comparison::ComparedFigure;
pub use pubgauge_figures::comparison::Difference;
use pubgauge_figures::{Status, Trial};
use pubgauge_quantities::stats::{CONFIDENCE, Estimate, MOST_REPEATS, MeanInterval};
use schemars::JsonSchema;
use serde::Serialize;

pub use figure::{NamedFigure, comparable, figures_of};
pub use pairing::{Choice, NotCompared, Nothing, Pair, Pairing, WhyNot, pair};
pub use pubgauge_figures::figure::{Better, Unit};
pub use rounds::{CellOf, ComparisonRule, conclude, next, spoilt};

/// How much a figure changed from A to B, with its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct FigureChange {
    /// Whether these are relative changes (0.1 is 10 % more). Otherwise they are differences in the
    /// figure's unit: those of figures that may be 0.
    pub relative: bool,
    /// The change.
    pub effect: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl FigureChange {
    /// The change that is stored for a figure; `None` where the two sides could not be compared.
    pub fn from_stored(figure: &ComparedFigure) -> Option<FigureChange> {
        Some(FigureChange {
            relative: figure.relative,
            effect: figure.change?,
            low: figure.low?,
            high: figure.high?,
        })
    }

    /// Half the width of the interval as a share, on the scale of ratios; `None` for a difference.
    pub fn half_width(&self) -> Option<f64> {
        let ratio = (1.0 + self.high) / (1.0 + self.low);
        self.relative.then(|| ratio.sqrt() - 1.0)
    }
}

/// The comparison of one figure of one pair of cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub figure: NamedFigure,
    /// Its mean over the repeats of A.
    pub a: Option<MeanInterval>,
    /// Its mean over the repeats of B.
    pub b: Option<MeanInterval>,
    /// The change from A to B.
    pub change: Option<FigureChange>,
    pub verdict: Difference,
    /// Why it is not decided, or a remark on the figure.
    pub why: Option<String>,
    /// Whether it was compared pair by pair.
    pub paired: bool,
    /// About how many repeats would decide it, where more repeats can.
    pub repeats_to_tell: Option<u32>,
}

/// The rows of one pair of cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The workload, and what else the two cells have in common.
    pub title: String,
    pub rows: Vec<Row>,
}

/// A whole comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Relative change up to which two figures are the same.
    pub margin: f64,
    /// Number of figures whose intervals hold together.
    pub intervals: usize,
    /// The pairs that were compared.
    pub sections: Vec<Section>,
}

impl Comparison {
    /// The worst verdict of any figure.
    pub fn verdict(&self) -> Difference {
        let rows = self.sections.iter().flat_map(|section| &section.rows);
        rows.map(|row| row.verdict)
            .max()
            .unwrap_or(Difference::CannotTell)
    }
}

/// The values of both sides' repeats, or why they cannot be compared.
struct PairedValues {
    a: Vec<f64>,
    b: Vec<f64>,
    paired: bool,
    why: Option<String>,
}

impl PairedValues {
    fn comparable(&self) -> bool {
        self.why.is_none()
    }
}

/// Compares pairs of cells by `figures` (those of [`figures_of`] if there are none), with `margin` as
/// a share: 0.05 is 5 %.
pub fn compare(pairs: &[Pair<'_>], figures: &[NamedFigure], margin: f64) -> Comparison {
    compare_at(pairs, figures, margin, CONFIDENCE)
}

/// As [`compare`], with the probability that all intervals hold together.
pub fn compare_at(
    pairs: &[Pair<'_>],
    figures: &[NamedFigure],
    margin: f64,
    confidence: f64,
) -> Comparison {
    let prepared: Vec<(&Pair<'_>, Vec<(NamedFigure, PairedValues)>)> = pairs
        .iter()
        .map(|pair| {
            let figures = match figures {
                [] => figures_of(pair),
                figures => figures.to_vec(),
            };
            let values = figures.into_iter().map(|f| {
                let values = values(pair, &f);
                (f, values)
            });
            (pair, values.collect())
        })
        .collect();
    let all = prepared.iter().flat_map(|(_, values)| values);
    let intervals = all.filter(|(_, values)| values.comparable()).count();
    let confidence = 1.0 - (1.0 - confidence) / intervals.max(1) as f64;
    let sections = prepared.into_iter().map(|(pair, values)| Section {
        title: pair.title.clone(),
        rows: (values.into_iter())
            .map(|(figure, values)| row(figure, values, confidence, margin))
            .collect(),
    });
    Comparison {
        margin,
        intervals,
        sections: sections.collect(),
    }
}

/// The values of the repeats that show a figure.
fn values(pair: &Pair<'_>, figure: &NamedFigure) -> PairedValues {
    let mut why = None;
    let mut side = |name: &str, trials: &[&Trial]| -> Vec<(u32, f64)> {
        let (kept, aside) = usable(trials, figure);
        let shown: Vec<(u32, f64)> = kept
            .iter()
            .filter_map(|trial| Some((trial.repeat, figure.value_in(trial)?)))
            .collect();
        let problem = match aside {
            Some(words) => Some(format!("{name}: {words}")),
            None if shown.len() < kept.len() => Some(format!("{name} does not show it")),
            None if shown.len() < 2 => Some(format!(
                "{name} has {}: nothing says how far repeats differ",
                repeats(shown.len())
            )),
            None => None,
        };
        why = why.take().or(problem);
        shown
    };
    let (a, b) = (side("A", &pair.a), side("B", &pair.b));
    let why = why.or_else(|| counted_apart(pair).filter(|_| figure.known.is_of_speed()));
    let paired = pair.interleaved;
    let in_both = |own: &[(u32, f64)], other: &[(u32, f64)]| -> Vec<(u32, f64)> {
        let both = |(repeat, _): &&(u32, f64)| other.iter().any(|(r, _)| r == repeat);
        own.iter().filter(both).copied().collect()
    };
    let (left, right) = (in_both(&a, &b), in_both(&b, &a));
    let too_few = "fewer than two repeats are valid on both sides";
    let why = why.or((paired && left.len() < 2).then(|| too_few.to_owned()));
    let (a, b) = if paired && why.is_none() {
        (left, right)
    } else {
        (a, b)
    };
    let of = |values: Vec<(u32, f64)>| values.into_iter().map(|(_, value)| value).collect();
    PairedValues {
        a: of(a),
        b: of(b),
        paired,
        why,
    }
}

/// Why speeds of both sides cannot be compared: only some of the trials had their system calls counted,
/// which slows them.
fn counted_apart(pair: &Pair<'_>) -> Option<String> {
    let all = || pair.a.iter().chain(&pair.b);
    let counted = all().filter(|trial| trial.system_calls.is_some()).count();
    (counted > 0 && counted < all().count()).then(|| {
        "system calls were counted in some of the trials, which slows them: have them counted in all or in none"
            .to_owned()
    })
}

/// The trials that show a figure of the system; and why the side cannot be compared if some of them
/// show the system at its limit, because leaving these out would flatter it. Unsteady and
/// client-bound trials, and those that were too short, are left out.
fn usable<'a>(trials: &[&'a Trial], figure: &NamedFigure) -> (Vec<&'a Trial>, Option<String>) {
    let counts = figure.known.of_any_trial;
    for status in [Status::Broken, Status::Overloaded, Status::Lossy] {
        let found = trials.iter().filter(|t| t.verdict.status == status).count();
        // Counts are compared in every trial that ran.
        if found > 0 && (status == Status::Broken || !counts) {
            let words = match (found, trials.len()) {
                (1, 1) => format!("{}, which shows no such figure", status.as_str()),
                (n, all) => format!("{n} of {} {}", repeats(all), status.as_str()),
            };
            return (trials.to_vec(), Some(words));
        }
    }
    let kept: Vec<&Trial> = trials
        .iter()
        .copied()
        .filter(|t| counts || t.verdict.status == Status::Valid)
        .collect();
    let none = kept.is_empty() && !trials.is_empty();
    let words = none.then(|| {
        let status = trials
            .iter()
            .map(|t| t.verdict.status)
            .max()
            .unwrap_or_default();
        match trials.len() {
            1 => status.as_str().to_owned(),
            all => format!("all {} {} or worse", repeats(all), status.as_str()),
        }
    });
    (kept, words)
}

fn repeats(count: usize) -> String {
    match count {
        1 => "a single repeat".to_owned(),
        n => format!("{n} repeats"),
    }
}

fn row(figure: NamedFigure, values: PairedValues, confidence: f64, margin: f64) -> Row {
    let mut row = Row {
        figure,
        a: MeanInterval::mean_of(&values.a),
        b: MeanInterval::mean_of(&values.b),
        change: None,
        verdict: Difference::CannotTell,
        paired: values.paired,
        why: values.why.clone(),
        repeats_to_tell: None,
    };
    if !values.comparable() {
        return row;
    }
    let (a, b) = (&values.a, &values.b);
    if a.iter().chain(b).all(|value| *value == 0.0) {
        row.verdict = Difference::Same;
        row.change = Some(FigureChange::default());
        return row;
    }
    // A share may be 0 in some repeats, where it has no logarithm: its difference is in percentage points.
    let relative = a.iter().chain(b).all(|value| *value > 0.0);
    if !relative && row.figure.known.unit != Unit::Share {
        row.why = Some("it is 0 in some repeats, so that there is no relative change".to_owned());
        return row;
    }
    let scale = |values: &[f64]| -> Vec<f64> {
        let logs = values.iter().map(|v| if relative { v.ln() } else { *v });
        logs.collect()
    };
    let change = Estimate::difference(&scale(a), &scale(b), values.paired);
    let (low, high) = change.interval_at(confidence);
    let plain = |value: f64| if relative { value.exp() - 1.0 } else { value };
    // Without a spread an interval says nothing of chance; that all values of A lie on one side of those of B does.
    let chance = by_chance(a.len(), b.len(), values.paired);
    let may_be_chance = low == high && chance > 1.0 - confidence;
    row.change = Some(FigureChange {
        relative,
        effect: plain(change.middle()),
        low: plain(low),
        high: plain(high),
    });
    let bound = (1.0 + margin).ln();
    row.verdict = if relative && low >= -bound && high <= bound {
        Difference::Same
    } else if may_be_chance {
        row.why = Some(
            "all repeats of a side are equal, and too few to tell a change from chance".to_owned(),
        );
        Difference::CannotTell
    } else if low > 0.0 || high < 0.0 {
        if (change.middle() > 0.0) == (row.figure.known.better == Better::More) {
            Difference::Better
        } else {
            Difference::Worse
        }
    } else {
        Difference::CannotTell
    };
    if row.verdict == Difference::CannotTell && relative {
        // The easier of the two to show: a change, or that the change is within the margin.
        let effect = change.middle().abs();
        let repeats = if may_be_chance {
            let enough =
                |n: &u32| by_chance(*n as usize, *n as usize, values.paired) <= 1.0 - confidence;
            (2..=MOST_REPEATS).find(enough)
        } else {
            change.repeats_for(effect.max(bound - effect), confidence)
        };
        row.repeats_to_tell = repeats.filter(|repeats| *repeats <= MOST_REPEATS);
    }
    row
}

/// How probable it is that all values of one side exceed all of the other although both are alike: the exact
/// permutation test, or that of signs where values are paired; for both directions.
fn by_chance(a: usize, b: usize, paired: bool) -> f64 {
    let orders = |n: usize| 2.0_f64.powi(n as i32);
    let choices: f64 = (1..=b).map(|n| (a + n) as f64 / n as f64).product();
    2.0 / if paired { orders(a) } else { choices }
}

#[cfg(test)]
mod tests;
