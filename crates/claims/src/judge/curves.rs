//! Rules along an axis: from cells to the judges of curves.

use super::cells::{self, Measured, Series};
use super::{Judging, Line, log_range};
use crate::curve::{self, shown_ratio};
use crate::decide::{Finding, Ways, all, inside};
use crate::rule::{Bounds, Steps, quantity};

impl Judging<'_> {
    /// Step by step, then last over first. `up` is 1 for rises, -1 for falls.
    pub(super) fn steps(&self, line: &Line<'_>, up: f64, asked: &Steps, outer: Ways) -> Finding {
        let points = &line.terms[0].1.points;
        if points.len() < 2 {
            return Finding::cannot_tell("one point of the axis, at least two are needed");
        }
        // Steps, and the ends.
        let ways = Ways::every(points.len()).within(outer);
        let change = |from: usize, to: usize| {
            let terms = line
                .terms
                .iter()
                .flat_map(|(factor, s)| [(*factor, &s.points[to].1), (-factor, &s.points[from].1)]);
            self.estimate(&terms.collect::<Vec<_>>(), !asked.plain)
        };
        let plain = |value: f64| (self.run.show)(&self.rule.figure, value);
        let (bound, ends, show): (f64, _, &dyn Fn(f64) -> String) = match asked.plain {
            true => (asked.tolerance, (asked.ends.low, asked.ends.high), &plain),
            false => (
                (1.0 + asked.tolerance).ln(),
                log_range(asked.ends),
                &shown_ratio,
            ),
        };
        let step_range = match up > 0.0 {
            true => (-bound, f64::INFINITY),
            false => (f64::NEG_INFINITY, bound),
        };
        let judged = |from: usize, to: usize, range| {
            let finding = match change(from, to) {
                Ok(estimate) => inside(&estimate, range, ways, show),
                Err(why) => cells::lacking(why),
            };
            (format!("{} to {}", points[from].0, points[to].0), finding)
        };
        let mut all_steps: Vec<_> = (1..points.len())
            .map(|to| judged(to - 1, to, step_range))
            .collect();
        all_steps.push(judged(0, points.len() - 1, ends));
        all(&all_steps)
    }

    pub(super) fn flat(&self, line: &Line<'_>, tolerance: f64, outer: Ways) -> Finding {
        let points = &line.terms[0].1.points;
        let count = points.len();
        if count < 2 {
            return Finding::cannot_tell("one point of the axis, at least two are needed");
        }
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
            let finding = match self.estimate(&terms.collect::<Vec<_>>(), true) {
                Ok(estimate) => inside(&estimate, (-bound, bound), ways, &shown_ratio),
                Err(why) => cells::lacking(why),
            };
            (points[point].0.clone(), finding)
        };
        all(&(0..count).map(at).collect::<Vec<_>>())
    }

    pub(super) fn cross(&self, line: &Line<'_>, from: &str, to: &str, ways: Ways) -> Finding {
        let points = &line.terms[0].1.points;
        let ratios: Vec<curve::Ratio> = (0..points.len())
            .map(|at| (points[at].0.clone(), self.at(line, at, true)))
            .collect();
        if self.rule.wide {
            return curve::cross_anywhere(&ratios, ways);
        }
        let count = |fits: &dyn Fn(f64) -> bool| {
            let values = points.iter().filter_map(|(value, _)| quantity(value));
            values.filter(|value| fits(*value)).count()
        };
        match quantity(from).zip(quantity(to)) {
            Some((from, to)) => {
                curve::cross(&ratios, count(&|v| v <= from), count(&|v| v >= to), ways)
            }
            None => Finding::cannot_tell("the ends of the crossing are not numbers"),
        }
    }

    pub(super) fn jump(&self, line: &Line<'_>, from: &str, to: &str, ways: Ways) -> Finding {
        let series = line.terms[0].1;
        let curves = match series.numbers().and_then(|()| series.curves(true)) {
            Ok(curves) => curves,
            Err(why) => return cells::lacking(why),
        };
        let (Some(from), Some(to)) = (quantity(from), quantity(to)) else {
            return Finding::cannot_tell("the ends of the jump are not numbers");
        };
        let value = |at: usize| quantity(&series.points[at].0).unwrap_or(f64::NAN);
        let inside = |step: &usize| value(*step) >= from && value(step + 1) <= to;
        let steps: Vec<usize> = (0..series.points.len().saturating_sub(1))
            .filter(inside)
            .collect();
        let curves: Vec<Vec<f64>> = curves
            .into_iter()
            .map(|c| c.into_iter().map(|p| p.1).collect())
            .collect();
        curve::jump(&curves, (!self.rule.wide).then_some(&steps[..]), ways)
    }

    pub(super) fn slope(&self, line: &Line<'_>, linear: bool, ways: Ways) -> Finding {
        let (a, b) = (line.terms[0].1, line.terms[1].1);
        let curves = |s: &Series| s.numbers().and_then(|()| s.curves(false));
        match (curves(a), curves(b)) {
            (Ok(of_a), Ok(of_b)) => curve::slope((&a.name, &of_a), (&b.name, &of_b), linear, ways),
            (Err(why), _) | (_, Err(why)) => cells::lacking(why),
        }
    }

    /// Repeat by repeat, the point at which each side reaches `share` of its own largest value.
    pub(super) fn reaches(&self, line: &Line<'_>, share: f64, ways: Ways) -> Finding {
        let (a, b) = (line.terms[0].1, line.terms[1].1);
        match (a.curves(false), b.curves(false)) {
            (Ok(of_a), Ok(of_b)) => {
                let (of_a, of_b) = (curve::reached(&of_a, share), curve::reached(&of_b, share));
                let at = |series: &Series, nth: &usize| series.points[*nth].0.clone();
                let name = |series: &Series, places: &[usize]| {
                    let places: Vec<String> = places.iter().map(|nth| at(series, nth)).collect();
                    format!("{} at {}", series.name, places.join(", "))
                };
                let ours = format!("{}; {}", name(a, &of_a), name(b, &of_b));
                curve::earlier(&of_a, &of_b, ours, ways)
            }
            (Err(why), _) | (_, Err(why)) => cells::lacking(why),
        }
    }

    pub(super) fn spread(&self, line: &Line<'_>, bounds: Bounds, ways: Ways) -> Finding {
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
        match self.estimate(&terms, false) {
            Ok(estimate) => inside(&estimate, log_range(bounds), ways, &shown_ratio),
            Err(why) => cells::lacking(why),
        }
    }
}
