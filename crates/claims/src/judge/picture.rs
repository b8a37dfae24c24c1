//! The curves of a claim: the figure of each side over the axis.

use pubgauge_figures::rule::{CellFilter, Claim, ClaimRule};
use pubgauge_quantities::stats::Estimate;
use pubgauge_quantities::written::amount;

use super::cells::{Series, points};
use super::measured::Measured;
use super::{lacking, lacks};
use crate::curve::FEWEST;

use super::MeasuredRun;

/// The figure of each side of one part of a claim, along the part's axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Name of the part; empty if the claim has one.
    pub part: String,
    /// The figure, by its name in studies.
    pub figure: String,
    /// The axis, as the rule names it.
    pub axis: String,
    /// The sides; each implementation of a side is one.
    pub sides: Vec<Curve>,
}

/// One side.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its name; with several implementations also which.
    pub side: String,
    /// Its measured points; those that cannot be judged are left out.
    pub points: Vec<Point>,
}

/// One value of the axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The value of the axis, as the study has it: `1KiB`.
    pub at: String,
    /// Its value in base units (bytes, messages a second, seconds), where it is a number.
    pub number: Option<f64>,
    /// The figure: the mean over repeats (the geometric one where all are positive), or the middle of a
    /// limit's interval, or its only end.
    pub value: f64,
    /// Lower end of its 95 % interval; `None` with fewer repeats than claims are judged by, or where a limit
    /// has one end.
    pub low: Option<f64>,
    /// Upper end; `None` also where the client was the limit of the repeats.
    pub high: Option<f64>,
}

/// The curves of all parts of a claim that have an axis and are applicable; none where nothing was
/// measured along it.
pub fn pictures(claim: &Claim, run: &MeasuredRun<'_>) -> Vec<Picture> {
    if lacking(claim, run).is_some() {
        return Vec::new();
    }
    let parts = claim.parts.iter();
    let parts = parts.filter(|part| lacks(part, run).is_none());
    let rules = parts.flat_map(|part| part.rules().into_iter().map(move |rule| (part, rule)));
    let drawn = rules.filter_map(|(part, rule)| {
        let axis = rule.axis()?.clone();
        let sides = curves(rule, run);
        let some = sides.iter().any(|side| !side.points.is_empty());
        some.then(|| Picture {
            part: part.name.clone(),
            figure: rule.figure.clone(),
            axis,
            sides,
        })
    });
    drawn.collect()
}

fn curves(rule: &ClaimRule, run: &MeasuredRun<'_>) -> Vec<Curve> {
    let mut sides: Vec<(String, &CellFilter)> = Vec::new();
    for side in rule.sides.iter().chain(&rule.against) {
        for filter in &side.alternatives {
            let name = match &side.alternatives[..] {
                [_] => side.name.clone(),
                _ => {
                    let which: Vec<String> = filter.values().map(|v| v.join("/")).collect();
                    format!("{}: {}", side.name, which.join(" "))
                }
            };
            if !sides.contains(&(name.clone(), filter)) {
                sides.push((name, filter));
            }
        }
    }
    let filters: Vec<&CellFilter> = sides.iter().map(|(_, filter)| *filter).collect();
    let axis = points(run, rule, &filters);
    let curve = |(name, filter): (String, &CellFilter)| {
        let series = Series::from_run(run, rule, name.clone(), filter, &axis);
        let measured = series.points.into_iter();
        Curve {
            side: name,
            points: measured
                .filter_map(|(at, found)| point(at, &found.ok()?))
                .collect(),
        }
    };
    sides.into_iter().map(curve).collect()
}

fn point(at: String, measured: &Measured) -> Option<Point> {
    let (value, low, high) = match measured {
        Measured::Between(low, high) => {
            let estimate = Estimate::Between {
                low: *low,
                high: *high,
            };
            let end = |end: f64| (*low > 0.0 && high.is_finite()).then_some(end);
            (estimate.middle(), end(*low), end(*high))
        }
        // A chart has no mark for an upper bound.
        Measured::AtMost(_) => return None,
        Measured::Repeats { values, .. } | Measured::AtLeast(values) => {
            let logs = values.iter().all(|(_, value)| *value > 0.0);
            let to = |value: f64| if logs { value.ln() } else { value };
            let back = |value: f64| if logs { value.exp() } else { value };
            let values: Vec<f64> = values.iter().map(|(_, value)| to(*value)).collect();
            if values.is_empty() {
                return None;
            }
            let estimate = Estimate::mean_of(&values);
            let (low, high) = estimate.interval(1);
            let enough = values.len() >= FEWEST;
            let bounded = enough && !matches!(measured, Measured::AtLeast(_));
            (
                back(estimate.middle()),
                enough.then_some(back(low)),
                bounded.then_some(back(high)),
            )
        }
    };
    value.is_finite().then(|| Point {
        number: amount(&at),
        at,
        value,
        low,
        high,
    })
}
