//! Rules along an axis: from cells to the judges of curves.

use pubgauge_quantities::written::amount;

use super::cells::{Measured, Point, Series, estimate, within};
use super::{Judged, Judging, Line, log_range};
use crate::curve::{self, shown_ratio};
use crate::decide::{Ways, all, inside};
use crate::rule::{Bounds, Steps};

impl Judging<'_> {
    /// Step by step, then last over first. `up` is 1 for rises, -1 for falls.
    pub(super) fn steps(&self, line: &Line<'_>, up: f64, asked: &Steps, outer: Ways) -> Judged {
        let points = two_points(line)?;
        // Steps, and the ends.
        let ways = Ways::every(points.len()).within(outer);
        let change = |from: usize, to: usize| {
            let terms = line
                .terms
                .iter()
                .flat_map(|(factor, s)| [(*factor, &s.points[to].1), (-factor, &s.points[from].1)]);
            estimate(&terms.collect::<Vec<_>>(), !asked.plain, self.rule.paired)
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
        let step = |from: usize, to: usize, range| {
            let name = format!("{} to {}", points[from].0, points[to].0);
            (name, within(change(from, to), range, ways, show))
        };
        let steps = (1..points.len()).map(|to| step(to - 1, to, step_range));
        let ends = step(0, points.len() - 1, ends);
        Ok(all(&steps.chain([ends]).collect::<Vec<_>>()))
    }

    pub(super) fn flat(&self, line: &Line<'_>, tolerance: f64, outer: Ways) -> Judged {
        let points = two_points(line)?;
        let count = points.len();
        let ways = Ways::every(count).within(outer);
        let bound = (1.0 + tolerance).ln();
        let share = 1.0 / count as f64;
        let at = |point: usize| {
            let terms = line.terms.iter().flat_map(|(factor, s)| {
                let own = move |other| if other == point { 1.0 - share } else { -share };
                s.points
                    .iter()
                    .enumerate()
                    .map(move |(other, (_, m))| (factor * own(other), m))
            });
            let estimate = estimate(&terms.collect::<Vec<_>>(), true, self.rule.paired);
            let finding = within(estimate, (-bound, bound), ways, &shown_ratio);
            (points[point].0.clone(), finding)
        };
        Ok(all(&(0..count).map(at).collect::<Vec<_>>()))
    }

    pub(super) fn cross(&self, line: &Line<'_>, from: &str, to: &str, ways: Ways) -> Judged {
        let points = &line.terms[0].1.points;
        let ratios: Vec<curve::Ratio> = (0..points.len())
            .map(|at| (points[at].0.clone(), self.at(line, at, true)))
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
        Ok(curve::cross(&ratios, above, below, ways))
    }

    pub(super) fn jump(&self, line: &Line<'_>, from: &str, to: &str, ways: Ways) -> Judged {
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
            .into_iter()
            .map(|c| c.into_iter().map(|p| p.1).collect())
            .collect();
        let steps = (!self.rule.wide).then_some(&steps[..]);
        Ok(curve::jump(&curves, steps, ways))
    }

    pub(super) fn slope(&self, line: &Line<'_>, linear: bool, ways: Ways) -> Judged {
        let (a, b) = (line.terms[0].1, line.terms[1].1);
        let curves = |s: &Series| s.numbers().and_then(|()| s.curves(false));
        let (of_a, of_b) = (curves(a)?, curves(b)?);
        Ok(curve::slope(
            (&a.name, &of_a),
            (&b.name, &of_b),
            linear,
            ways,
        ))
    }

    /// Repeat by repeat, the point at which each side reaches `share` of its own largest value.
    pub(super) fn reaches(&self, line: &Line<'_>, share: f64, ways: Ways) -> Judged {
        let (a, b) = (line.terms[0].1, line.terms[1].1);
        let of_a = curve::reached(&a.curves(false)?, share);
        let of_b = curve::reached(&b.curves(false)?, share);
        let name = |series: &Series, places: &[usize]| {
            let places: Vec<&str> = places.iter().map(|nth| &*series.points[*nth].0).collect();
            format!("{} at {}", series.name, places.join(", "))
        };
        let ours = format!("{}; {}", name(a, &of_a), name(b, &of_b));
        Ok(curve::earlier(&of_a, &of_b, ours, ways))
    }

    pub(super) fn spread(&self, line: &Line<'_>, bounds: Bounds, ways: Ways) -> Judged {
        let spreads = |s: &Series| -> Result<Measured, String> {
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

/// The points of a line, of which there must be two at least.
fn two_points<'s>(line: &Line<'s>) -> Result<&'s [Point], String> {
    match &line.terms[0].1.points[..] {
        [] | [_] => Err("one point of the axis, at least two are needed".to_owned()),
        points => Ok(points),
    }
}
