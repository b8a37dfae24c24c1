//! The findings of a tuning.

use pubgauge_quantities::stats::{CONFIDENCE, Estimate, moments, t_quantile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::factor::{Point, written};
use crate::finding::{Finding, Objective, Purpose, Question, Seen, Side};
use crate::steps::View;

/// Fewest whole pairs that an interval is drawn from.
const FEWEST_PAIRS: usize = 5;

/// The findings of a tuning so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Conclusion {
    /// Mean figure of the default while points were looked for; absent where none of its trials ranks.
    pub default_figure: Option<f64>,
    /// Each value of each factor alone, beside the default.
    pub effects: Vec<Effect>,
    /// The settings that lead, by name; those that are as they come are left out. Absent where nothing looked better.
    pub best: Option<Vec<(String, String)>>,
    /// Best against default, in pairs.
    pub verdict: Verdict,
    /// Points that were measured, the default included.
    pub points: usize,
    /// Measurements whose figure does not rank, because the system was overloaded or lost messages.
    pub hopeless: usize,
    /// Measurements that told nothing of the system.
    pub nothing: usize,
}

/// One factor at one value, all others as they come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Effect {
    pub factor: String,
    pub value: String,
    /// Figure over the default's, with its 95 % interval; absent without a figure that ranks.
    pub gain: Option<Gain>,
    /// Whether the system did not carry the load with it, or lost messages.
    pub hopeless: bool,
}

/// A ratio of figures with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Gain {
    /// Figure over that of the default.
    pub ratio: f64,
    /// Lower end; absent where nothing is known of the spread.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// Whether the best settings are better than the default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Verdict {
    /// The interval of the pairs leaves out no change, on the good side.
    Better { pairs: usize, gain: Gain },
    /// The interval contains no change, or lies on the other side.
    NotBetter { pairs: usize, gain: Gain },
    /// Nothing looked better than the default while it was looked for.
    NothingFound,
    /// It cannot be told.
    CannotTell { why: CannotTell },
}

/// Why it cannot be told whether the best settings are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CannotTell {
    /// No trial of the default ranks.
    NoDefault,
    /// The best settings did not carry the load in some pair.
    BestGaveWay,
    /// Too few pairs are whole.
    FewPairs,
}

/// The findings of a tuning so far.
pub fn conclude(objective: Objective, question: &Question, seen: &[Seen]) -> Conclusion {
    let view = View::new(question, seen);
    let base = Point::default_of(&question.factors);
    let mut points: Vec<&Point> = Vec::new();
    for one in seen {
        if !points.contains(&&one.point) {
            points.push(&one.point);
        }
    }
    let count = |finding: Finding| seen.iter().filter(|one| one.finding == finding).count();
    let best = view.leader();
    let named = best.as_ref().map(|point| {
        let named = point.named(&question.factors);
        named
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    });
    Conclusion {
        default_figure: view.mean(&base).map(|score| objective.figure(score)),
        effects: effects(objective, question, seen),
        verdict: verdict(objective, &view, seen, best.is_some()),
        best: named,
        points: points.len(),
        hopeless: count(Finding::Hopeless),
        nothing: count(Finding::Nothing),
    }
}

/// The ratio of figures for a difference of scores and its interval.
fn gain(objective: Objective, difference: f64, ends: Option<(f64, f64)>) -> Gain {
    let ratio = |score: f64| {
        if objective.is_larger_better() {
            (-score).exp()
        } else {
            score.exp()
        }
    };
    let ends = ends.map(|(low, high)| {
        let (a, b) = (ratio(low), ratio(high));
        (a.min(b), a.max(b))
    });
    Gain {
        ratio: ratio(difference),
        low: ends.map(|(low, _)| low),
        high: ends.map(|(_, high)| high),
    }
}

/// Each value of each factor alone: the spread of one measurement is that of the default's.
fn effects(objective: Objective, question: &Question, seen: &[Seen]) -> Vec<Effect> {
    let base = Point::default_of(&question.factors);
    let scores = |point: &Point, purpose: Purpose| -> Vec<f64> {
        let own = seen
            .iter()
            .filter(|one| one.purpose == purpose && one.point == *point);
        own.filter_map(|one| one.finding.score()).collect()
    };
    let bases = scores(&base, Purpose::Base);
    let (mean, variance) = moments(&bases);
    let half = |measured: usize| {
        let n = bases.len() as f64;
        let error = (variance * (1.0 / n + 1.0 / measured as f64)).sqrt();
        (bases.len() > 2).then(|| error * t_quantile(CONFIDENCE, n - 1.0))
    };
    let mut effects: Vec<Effect> = Vec::new();
    for one in seen.iter().filter(|one| one.purpose == Purpose::OneFactor) {
        let all = question.factors.iter().zip(&one.point.0);
        let Some((factor, value)) = all.filter_map(|(f, v)| Some((f, v.as_ref()?))).next() else {
            continue;
        };
        let (name, value) = (factor.name.clone(), written(value));
        if effects
            .iter()
            .any(|known| (&known.factor, &known.value) == (&name, &value))
        {
            continue;
        }
        let own = scores(&one.point, Purpose::OneFactor);
        let mut all = seen.iter().filter(|other| other.point == one.point);
        let change = (!own.is_empty() && !bases.is_empty()).then(|| moments(&own).0 - mean);
        effects.push(Effect {
            factor: name,
            value,
            gain: change.map(|change| {
                let ends = half(own.len()).map(|half| (change - half, change + half));
                gain(objective, change, ends)
            }),
            hopeless: all.any(|other| other.finding == Finding::Hopeless),
        });
    }
    let order = |effect: &Effect| {
        let mut names = question.factors.iter().map(|factor| &factor.name);
        names.position(|name| *name == effect.factor)
    };
    effects.sort_by_key(order);
    effects
}

fn verdict(objective: Objective, view: &View<'_>, seen: &[Seen], has_best: bool) -> Verdict {
    let side = |wanted: Side| {
        seen.iter().filter_map(move |one| match one.purpose {
            Purpose::Pair { nth, side } if side == wanted => Some((nth, one.finding)),
            _ => None,
        })
    };
    let cannot = |why| Verdict::CannotTell { why };
    let scored_base = seen
        .iter()
        .any(|one| one.point.is_default() && one.finding.score().is_some());
    if !scored_base {
        return cannot(CannotTell::NoDefault);
    }
    if !has_best {
        return Verdict::NothingFound;
    }
    if side(Side::Best).any(|(_, finding)| finding == Finding::Hopeless) {
        return cannot(CannotTell::BestGaveWay);
    }
    let score_of = |wanted: Side, nth: u32| {
        side(wanted).find_map(|(n, finding)| finding.score().filter(|_| n == nth))
    };
    let pairs = (1..=view.pairs() as u32)
        .filter_map(|nth| Some(score_of(Side::Best, nth)? - score_of(Side::Default, nth)?));
    let differences: Vec<f64> = pairs.collect();
    if differences.len() < FEWEST_PAIRS {
        return cannot(CannotTell::FewPairs);
    }
    let change = Estimate::mean_of(&differences);
    let (low, high) = change.interval(1);
    let (pairs, gain) = (
        differences.len(),
        gain(objective, change.middle(), Some((low, high))),
    );
    if high < 0.0 {
        Verdict::Better { pairs, gain }
    } else {
        Verdict::NotBetter { pairs, gain }
    }
}
