//! Judging one rule: its sides along the axis, and which judge looks at them.

use pubgauge_figures::rule::{Bounds, CellFilter, ClaimRule, Judge, Points, Side};
use pubgauge_quantities::stats::Estimate;

use super::cells::{self, Series};
use super::choice::Choice;
use super::measured;
use super::run::MeasuredRun;
use super::{gap, looks};
use crate::decide::Ways;
use crate::finding::{Finding, Lack};
use crate::several::{all_hold, any};

/// One side, or the ratio or difference of two, along the axis.
pub(super) struct AxisLine<'s> {
    pub(super) name: String,
    pub(super) terms: Vec<(f64, &'s Series)>,
}

/// The finding for a line along an axis; or why it cannot be judged.
pub(super) type Judged = Result<Finding, Lack>;

/// A rule with a choice among its sides' implementations.
pub(super) struct Judging<'a> {
    pub(super) rule: &'a ClaimRule,
    pub(super) choice: &'a Choice,
    pub(super) run: &'a MeasuredRun<'a>,
}

pub(super) fn log_range(bounds: Bounds) -> (f64, f64) {
    // No logarithm below 0: everything positive is above.
    let log = |end: f64| {
        if end <= 0.0 {
            f64::NEG_INFINITY
        } else {
            end.ln()
        }
    };
    (log(bounds.low), log(bounds.high))
}

impl Judging<'_> {
    fn filter<'f>(&self, side: &'f Side) -> Option<&'f CellFilter> {
        side.alternatives
            .get(self.choice.get(side.chosen_by()).copied().unwrap_or(0))
    }

    pub(super) fn series(&self, sides: &[Side]) -> Vec<Series> {
        let points = cells::points(self.run, self.rule, &self.filters());
        let each = |side: &Side| {
            let filter = self.filter(side).cloned().unwrap_or_default();
            Series::from_run(self.run, self.rule, side.name.clone(), &filter, &points)
        };
        let all: Vec<Series> = sides.iter().map(each).collect();
        if self.rule.gap && !all.is_empty() {
            vec![gap::series(&all)]
        } else {
            all
        }
    }

    /// The cells of all sides.
    pub(super) fn filters(&self) -> Vec<&CellFilter> {
        let sides = self.rule.sides.iter().chain(&self.rule.against);
        sides.filter_map(|side| self.filter(side)).collect()
    }

    /// Pairs of sides: each with each of `against`, or in a chain each with the next.
    pub(super) fn lines<'s>(
        &self,
        sides: &'s [Series],
        against: &'s [Series],
        ratios: bool,
    ) -> Vec<AxisLine<'s>> {
        let pair = |a: &'s Series, b: &'s Series| AxisLine {
            name: format!("{}/{}", a.name, b.name),
            terms: vec![(1.0, a), (-1.0, b)],
        };
        if !against.is_empty() {
            return sides
                .iter()
                .flat_map(|a| against.iter().map(move |b| pair(a, b)))
                .collect();
        }
        if ratios {
            sides.windows(2).map(|two| pair(&two[0], &two[1])).collect()
        } else {
            let one = |side: &'s Series| AxisLine {
                name: side.name.clone(),
                terms: vec![(1.0, side)],
            };
            sides.iter().map(one).collect()
        }
    }

    pub(super) fn estimate_at(
        &self,
        line: &AxisLine<'_>,
        point: usize,
        logs: bool,
    ) -> Result<Estimate, Lack> {
        let terms: Vec<_> = line
            .terms
            .iter()
            .map(|(f, s)| (*f, &s.points[point].1))
            .collect();
        self.estimated(&terms, logs)
    }

    pub(super) fn judge_part(&self, outer: Ways) -> Finding {
        if let Some(why) = cells::slowed_apart(self.run, self.rule, &self.filters()) {
            return Finding::cannot_tell(why);
        }
        let outer = self.with_looks(outer);
        let (sides, against) = (
            self.series(&self.rule.sides),
            self.series(&self.rule.against),
        );
        let count = sides.first().map_or(0, |s| s.points.len());
        if count == 0 {
            return Finding::cannot_tell(match &self.run.scale {
                Some(_) => self.run.not_measured(),
                None => "the run has none of its cells".to_owned(),
            });
        }
        let lines = self.lines(&sides, &against, false);
        let pairs = self.lines(&sides, &against, true);
        let of_points = if self.is_of_pairs() { &pairs } else { &lines };
        let over = |lines: &[AxisLine<'_>], judged: &dyn Fn(&AxisLine<'_>, Ways) -> Judged| {
            let ways = Ways::every(lines.len()).nested_in(outer);
            let each = lines.iter().map(|line| {
                let finding = judged(line, ways).unwrap_or_else(Finding::from);
                (line.name.clone(), finding)
            });
            all_hold(&each.collect::<Vec<_>>())
        };
        match &self.rule.judge {
            Judge::Value(_) | Judge::Ratio(_) | Judge::Difference(_) | Judge::Equal(_)
                if self.rule.points == Points::Joint =>
            {
                over(of_points, &|line, ways| Ok(self.jointly(line, count, ways)))
            }
            Judge::Value(_) | Judge::Ratio(_) | Judge::Difference(_) | Judge::Equal(_) => {
                let ways = match self.rule.points {
                    Points::Some => Ways::any_of(count).nested_in(Ways::every(of_points.len())),
                    Points::Every | Points::Joint => Ways::every(count * of_points.len()),
                    Points::Mean => Ways::every(of_points.len()),
                };
                let lines = self
                    .points(of_points, count, ways.nested_in(outer))
                    .into_iter();
                let one = lines.map(|points| match self.rule.points {
                    Points::Some => any(&points),
                    _ => all_hold(&points),
                });
                all_hold(&one.map(|f| (String::new(), f)).collect::<Vec<_>>())
            }
            Judge::Count(wanted) => {
                let cells = lines
                    .iter()
                    .flat_map(|line| &line.terms)
                    .flat_map(|(_, s)| {
                        s.points
                            .iter()
                            .map(|(point, m)| (s.name_at(point), measured::count(m, *wanted)))
                    });
                all_hold(&cells.collect::<Vec<_>>())
            }
            Judge::Rises(steps) => over(&lines, &|line, ways| self.steps(line, 1.0, steps, ways)),
            Judge::Falls(steps) => over(&lines, &|line, ways| self.steps(line, -1.0, steps, ways)),
            Judge::Flat(tolerance) => over(&lines, &|line, ways| self.flat(line, *tolerance, ways)),
            Judge::Jump(from, to) => over(&lines, &|line, ways| self.jump(line, from, to, ways)),
            Judge::Cross(from, to) => over(&pairs, &|line, ways| self.cross(line, from, to, ways)),
            Judge::Slope { .. } if pairs.is_empty() => {
                Finding::cannot_tell("a slope needs two sides")
            }
            Judge::Slope { .. } if count < 3 => {
                Finding::cannot_tell("a slope needs three points at least")
            }
            Judge::Slope { linear } => over(&pairs, &|line, ways| self.slope(line, *linear, ways)),
            Judge::Reaches(share) => over(&pairs, &|line, ways| self.reaches(line, *share, ways)),
            Judge::Spread(bounds) => over(&pairs, &|line, ways| self.spread(line, *bounds, ways)),
        }
    }

    /// With how often the cells were looked at, and among how many sides a gap is chosen.
    pub(super) fn with_looks(&self, outer: Ways) -> Ways {
        let filters = self.filters().into_iter().map(|own| self.rule.cells(own));
        let looks = looks(&filters.collect::<Vec<_>>(), self.run);
        let gap = if self.rule.gap {
            gap::ways(self.rule.sides.len())
        } else {
            Ways::ONE
        };
        gap.nested_in(looks).nested_in(outer)
    }
}
