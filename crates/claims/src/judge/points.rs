//! Judges that look at one point of an axis at a time, or at all points together.

use pubgauge_figures::rule::{Bounds, Judge, LOSS_FREE, Points};
use pubgauge_quantities::shown;
use pubgauge_quantities::stats::Estimate;

use super::cells;
use super::judging::{AxisLine, Judging, log_range};
use super::measured::{Measured, estimate};
use super::sustained::share;
use crate::curve::shown_ratio;
use crate::decide::{Demand, Estimated, Ways, joint};
use crate::finding::{Finding, Lack, Tells};

impl Judging<'_> {
    /// The points of all lines, each told by itself: one that fails needs no more confidence than one that holds.
    pub(super) fn judge_separately(&self, outer: Ways) -> Vec<(String, Finding)> {
        let (sides, against) = (
            self.series(&self.rule.sides),
            self.series(&self.rule.against),
        );
        let lines = self.lines(&sides, &against, self.is_of_pairs());
        let count = sides.first().map_or(0, |s| s.points.len());
        self.points(&lines, count, self.with_looks(outer)).concat()
    }

    /// The points of each line, for judges that look at one point at a time.
    pub(super) fn points(
        &self,
        lines: &[AxisLine<'_>],
        count: usize,
        ways: Ways,
    ) -> Vec<Vec<(String, Finding)>> {
        let of = |line: &AxisLine<'_>| -> Vec<(String, Finding)> {
            if self.rule.points == Points::Mean {
                return vec![(line.name.clone(), self.mean(line, count, ways))];
            }
            let at = |point: usize| {
                let name = cells::name_at(&line.name, &line.terms[0].1.points[point].0);
                (
                    name,
                    self.point(line, ways, &|logs| self.estimate_at(line, point, logs)),
                )
            };
            (0..count).map(at).collect()
        };
        lines.iter().map(of).collect()
    }

    /// Whether its judge of points takes pairs, and not one value.
    pub(super) fn is_of_pairs(&self) -> bool {
        !matches!(self.rule.judge, Judge::Value(_))
    }

    /// The mean over the axis decides, and no point may be decided against.
    pub(super) fn jointly(&self, line: &AxisLine<'_>, count: usize, outer: Ways) -> Finding {
        // The points, and the mean.
        let ways = Ways::every(count + 1).nested_in(outer);
        let whole = (String::new(), self.mean(line, count, ways));
        let scale = self.scale(line);
        let points: Vec<Estimated> = (0..count)
            .map(|at| {
                let name = line.terms[0].1.points[at].0.clone();
                (name, self.estimate_at(line, at, scale.logs))
            })
            .collect();
        joint(whole, &points, scale.demand, ways, &scale.show)
    }

    fn mean(&self, line: &AxisLine<'_>, count: usize, ways: Ways) -> Finding {
        let share = 1.0 / count as f64;
        let terms: Vec<_> = line
            .terms
            .iter()
            .flat_map(|(factor, s)| s.points.iter().map(move |(_, m)| (factor * share, m)))
            .collect();
        let found = self.point(line, ways, &|logs| self.estimated(&terms, logs));
        // A share of trials counts those of all points.
        let per_repeat = if self.rule.figure == LOSS_FREE {
            count as u32
        } else {
            1
        };
        Finding {
            tells: found.tells.map(|tells| Tells {
                repeats: tells.repeats.div_ceil(per_repeat),
                ..tells
            }),
            ..found
        }
    }

    /// A sum of points, each times its factor; of a figure that is a share of trials, the share over all points.
    pub(super) fn estimated(
        &self,
        terms: &[(f64, &Result<Measured, Lack>)],
        logs: bool,
    ) -> Result<Estimate, Lack> {
        match self.rule.figure.as_str() {
            LOSS_FREE => share(terms),
            _ => estimate(terms, logs, self.rule.paired),
        }
    }

    fn point(
        &self,
        line: &AxisLine<'_>,
        ways: Ways,
        at: &dyn Fn(bool) -> Result<Estimate, Lack>,
    ) -> Finding {
        let scale = self.scale(line);
        cells::judge_range(at(scale.logs), scale.demand, ways, &scale.show)
    }

    /// In which range a point must lie for judges that look at one point at a time.
    fn scale(&self, line: &AxisLine<'_>) -> Scale<'_> {
        let wide = |bounds: Bounds| {
            if self.rule.wide {
                bounds.wide()
            } else {
                bounds
            }
        };
        let plain = |value: f64| {
            if self.rule.gap {
                shown::number(value)
            } else {
                (self.run.show)(&self.rule.figure, value)
            }
        };
        let logs = |bounds, show| Scale {
            logs: true,
            demand: log_range(bounds).into(),
            show,
        };
        let plainly = |bounds: Bounds| Scale {
            logs: false,
            demand: (bounds.low, bounds.high).into(),
            show: Box::new(plain),
        };
        match self.rule.judge {
            Judge::Ratio(bounds) => {
                let scale = logs(wide(bounds), Box::new(shown_ratio));
                Scale {
                    demand: Demand {
                        margin: self.rule.margin.ln_1p(),
                        ..scale.demand
                    },
                    ..scale
                }
            }
            Judge::Equal(tolerance) => {
                let bounds = Bounds {
                    low: 1.0 / (1.0 + tolerance),
                    high: 1.0 + tolerance,
                };
                logs(bounds, Box::new(shown_ratio))
            }
            Judge::Difference(bounds) => plainly(bounds),
            // A share may be 0 in some repeats, and has no logarithm then.
            Judge::Value(bounds)
                if self.rule.figure != LOSS_FREE
                    && line.terms.iter().all(|(_, s)| s.positive()) =>
            {
                logs(wide(bounds), Box::new(move |log| plain(log.exp())))
            }
            Judge::Value(bounds) => plainly(wide(bounds)),
            _ => unreachable!("judges of points only"),
        }
    }
}

/// How a point is judged: where it must lie, on logarithms or plain, and how it is shown.
struct Scale<'a> {
    logs: bool,
    demand: Demand,
    show: Box<dyn Fn(f64) -> String + 'a>,
}
