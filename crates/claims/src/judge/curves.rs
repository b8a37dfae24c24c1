//! Rules along an axis: from cells to the judges of curves.

use pubgauge_figures::rule::{Bounds, Steps};
use pubgauge_quantities::stats::{Estimate, isotonic};
use pubgauge_quantities::written::amount;

use super::cells::{Point, Series, judge_range};
use super::judging::{AxisLine, Judged, Judging, log_range};
use super::measured::{Measured, estimate};
use crate::curve::{self, shown_ratio};
use crate::decide::{Estimated, Ways, inside, joint};
use crate::finding::Lack;

impl Judging<'_> {
    /// The trend over the axis; no step may be decided back. `up` is 1 for rises, -1 for falls.
    pub(super) fn steps(&self, line: &AxisLine<'_>, up: f64, asked: &Steps, outer: Ways) -> Judged {
        let points = two_points(line)?;
        // Steps, and the trend.
        let ways = Ways::every(points.len()).nested_in(outer);
        let change = |from: usize, to: usize| {
            self.weighted(line, !asked.plain, &|at| match at {
                at if at == to => Some(1.0),
                at if at == from => Some(-1.0),
                _ => None,
            })
        };
        let plain = |value: f64| (self.run.show)(&self.rule.figure, value);
        let (bound, ends, show): (f64, _, &dyn Fn(f64) -> String) = if asked.plain {
            (asked.tolerance, (asked.ends.low, asked.ends.high), &plain)
        } else {
            (
                (1.0 + asked.tolerance).ln(),
                log_range(asked.ends),
                &shown_ratio,
            )
        };
        let step_range = if up > 0.0 {
            (-bound, f64::INFINITY)
        } else {
            (f64::NEG_INFINITY, bound)
        };
        let step = |to: usize| {
            let name = format!("{} to {}", points[to - 1].0, points[to].0);
            (name, change(to - 1, to))
        };
        let steps: Vec<Estimated> = (1..points.len()).map(step).collect();
        let whole = judge_range(self.trend(line, !asked.plain), ends, ways, show);
        Ok(joint(
            (of_trend(points), whole),
            &steps,
            step_range,
            ways,
            show,
        ))
    }

    pub(super) fn flat(&self, line: &AxisLine<'_>, tolerance: f64, outer: Ways) -> Judged {
        let points = two_points(line)?;
        let ways = Ways::every(points.len() + 1).nested_in(outer);
        let bound = (1.0 + tolerance).ln();
        let range = (-bound, bound);
        let share = 1.0 / points.len() as f64;
        let at = |point: usize| {
            let own = |at| Some(if at == point { 1.0 - share } else { -share });
            (points[point].0.clone(), self.weighted(line, true, &own))
        };
        let each: Vec<Estimated> = (0..points.len()).map(at).collect();
        let whole = judge_range(self.trend(line, true), range, ways, &shown_ratio);
        Ok(joint(
            (of_trend(points), whole),
            &each,
            range,
            ways,
            &shown_ratio,
        ))
    }

    /// From first to last, were the curve a straight line over the order of its points.
    fn trend(&self, line: &AxisLine<'_>, logs: bool) -> Result<Estimate, Lack> {
        let weights = isotonic(line.terms[0].1.points.len());
        self.weighted(line, logs, &|at| Some(weights[at]))
    }

    /// A sum over the points of a line, each times its weight. One of weight 0 must have been measured; one without a
    /// weight is no part of it.
    fn weighted(
        &self,
        line: &AxisLine<'_>,
        logs: bool,
        weight: &dyn Fn(usize) -> Option<f64>,
    ) -> Result<Estimate, Lack> {
        let mut terms: Vec<(f64, &Result<Measured, Lack>)> = Vec::new();
        for (factor, series) in &line.terms {
            let points = series.points.iter().enumerate();
            terms.extend(points.filter_map(|(at, (_, found))| Some((factor * weight(at)?, found))));
        }
        estimate(&terms, logs, self.rule.paired)
    }

    pub(super) fn cross(&self, line: &AxisLine<'_>, from: &str, to: &str, ways: Ways) -> Judged {
        let points = &line.terms[0].1.points;
        let ratios: Vec<Estimated> = (0..points.len())
            .map(|at| (points[at].0.clone(), self.estimate_at(line, at, true)))
            .collect();
        if self.rule.wide {
            return Ok(curve::cross_anywhere(&ratios, ways));
        }
        let count = |fits: &dyn Fn(f64) -> bool| {
            let values = points.iter().filter_map(|(value, _)| amount(value));
            values.filter(|value| fits(*value)).count()
        };
        let ends = amount(from).zip(amount(to));
        let (from, to) = ends.ok_or("the ends of the crossing are not numbers")?;
        let (above, below) = (count(&|v| v <= from), count(&|v| v >= to));
        let mean = |first: usize, count: usize| {
            let within = first..first + count;
            let own = |at| within.contains(&at).then_some(1.0 / count as f64);
            self.weighted(line, true, &own)
        };
        Ok(curve::cross(&ratios, above, below, &mean, ways))
    }

    pub(super) fn jump(&self, line: &AxisLine<'_>, from: &str, to: &str, ways: Ways) -> Judged {
        let series = line.terms[0].1;
        series.numbers()?;
        let curves = series.curves(true)?;
        let ends = amount(from).zip(amount(to));
        let (from, to) = ends.ok_or("the ends of the jump are not numbers")?;
        let value = |at: usize| amount(&series.points[at].0).unwrap_or(f64::NAN);
        let inside = |step: &usize| value(*step) >= from && value(step + 1) <= to;
        let steps: Vec<usize> = (0..series.points.len().saturating_sub(1))
            .filter(inside)
            .collect();
        let curves: Vec<Vec<f64>> = curves
            .into_values()
            .map(|c| c.into_iter().map(|p| p.1).collect())
            .collect();
        let steps = (!self.rule.wide).then_some(&steps[..]);
        Ok(curve::jump(&curves, steps, ways))
    }

    pub(super) fn slope(&self, line: &AxisLine<'_>, linear: bool, ways: Ways) -> Judged {
        let (a, b) = (line.terms[0].1, line.terms[1].1);
        let curves = |s: &Series| -> Result<Vec<Vec<(f64, f64)>>, Lack> {
            s.numbers()?;
            Ok(s.curves(false)?.into_values().collect())
        };
        let (of_a, of_b) = (curves(a)?, curves(b)?);
        Ok(curve::slope(
            (&a.name, &of_a),
            (&b.name, &of_b),
            linear,
            ways,
        ))
    }

    /// Repeat by repeat, the point at which each side reaches `share` of its own largest value.
    pub(super) fn reaches(&self, line: &AxisLine<'_>, share: f64, ways: Ways) -> Judged {
        let (a, b) = (line.terms[0].1, line.terms[1].1);
        let (of_a, of_b) = (a.curves(false)?, b.curves(false)?);
        let both = of_a
            .iter()
            .filter_map(|(repeat, curve)| Some((curve.clone(), of_b.get(repeat)?.clone())));
        let (of_a, of_b): (Vec<_>, Vec<_>) = both.unzip();
        let [of_a, of_b] = [of_a, of_b].map(|curves| curve::reached(&curves, share));
        let name = |series: &Series, places: &[usize]| {
            let places: Vec<&str> = places.iter().map(|nth| &*series.points[*nth].0).collect();
            format!("{} at {}", series.name, places.join(", "))
        };
        let ours = format!("{}; {}", name(a, &of_a), name(b, &of_b));
        Ok(curve::earlier(&of_a, &of_b, ours, ways))
    }

    pub(super) fn spread(&self, line: &AxisLine<'_>, bounds: Bounds, ways: Ways) -> Judged {
        let spreads = |s: &Series| -> Result<Measured, Lack> {
            match self.rule.along {
                Some(_) => s.spreads_of_steps(),
                None => s.spreads_of_windows(),
            }
        };
        let of: Vec<_> = line
            .terms
            .iter()
            .map(|(factor, s)| (*factor, spreads(s)))
            .collect();
        let terms: Vec<_> = of
            .iter()
            .map(|(factor, spread)| (*factor, spread))
            .collect();
        let estimate = estimate(&terms, false, self.rule.paired)?;
        Ok(inside(&estimate, log_range(bounds), ways, &shown_ratio))
    }
}

fn of_trend(points: &[Point]) -> String {
    match points {
        [(first, _), .., (last, _)] => format!("trend from {first} to {last}"),
        _ => "trend".to_owned(),
    }
}

/// The points of a line, of which there must be two at least.
fn two_points<'s>(line: &AxisLine<'s>) -> Result<&'s [Point], Lack> {
    match &line.terms[0].1.points[..] {
        [] | [_] => Err("one point of the axis, at least two are needed".into()),
        points => Ok(points),
    }
}
