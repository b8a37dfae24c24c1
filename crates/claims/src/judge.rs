//! Judging a claim by a run.

mod cells;
mod curves;
mod gap;
mod picture;

use std::collections::BTreeMap;

use pubgauge_quantities::shown;
use pubgauge_quantities::stats::{Estimate, wilson};

use crate::curve::shown_ratio;
use crate::decide::{Finding, Outcome, Show, Ways, agree, all, any, least};
use crate::rule::{Bounds, Claim, Filter, Judge, Needs, Part, Points, Rule, Side};
pub use cells::{Absent, Cell, Figures, Limit, Observation, Run};
use cells::{Series, estimate};
pub use picture::{Curve, Picture, Point, pictures};

/// Fewest decided points by which a share is judged.
const FEWEST_DECIDED: usize = 6;

/// Judges a claim by what a run measured.
///
/// Where a side has several implementations, the claim is judged for each combination of them, and
/// all must agree.
pub fn judge(claim: &Claim, run: &Run<'_>) -> Finding {
    if let Some(why) = lacking(claim, run) {
        return Finding::new(Outcome::NotApplicable, why, "");
    }
    let chosen = combinations(claim);
    let judged: Vec<(String, Finding)> = chosen
        .iter()
        .map(|choice| {
            let names: Vec<String> = choice
                .iter()
                .map(|(name, nth)| chosen_name(claim, name, *nth))
                .collect();
            let finding = match claim.share {
                Some(share) => share_of_points(claim, choice, share, run),
                None => all_of(&claim.parts, choice, run, Ways::ONE),
            };
            (names.join(", "), finding)
        })
        .collect();
    let mut finding = match &judged[..] {
        [(_, one)] => one.clone(),
        several => agree(several),
    };
    if let (Outcome::CannotTell, Some(repeats)) = (finding.outcome, finding.repeats_to_tell) {
        finding
            .reason
            .push_str(&format!("; about {repeats} repeats would tell"));
    }
    finding
}

/// Why a claim is not applicable to the run.
fn lacking(claim: &Claim, run: &Run<'_>) -> Option<String> {
    let rules: Vec<&Rule> = claim.parts.iter().flat_map(Part::rules).collect();
    missing(&claim.needs, &rules, run)
}

/// Why a part of a claim is not applicable to the run.
fn lacks(part: &Part, run: &Run<'_>) -> Option<String> {
    missing(&part.needs, &part.rules(), run)
}

/// Why these rules of a claim are not applicable to the run. The network that they need is that of their cells.
fn missing(needs: &Needs, rules: &[&Rule], run: &Run<'_>) -> Option<String> {
    if let Some(why) = &needs.never {
        return Some(why.clone());
    }
    let has = |system: &String| run.systems().any(|s| s == system);
    let lacking: Vec<&str> = needs
        .systems
        .iter()
        .filter(|s| !has(s))
        .map(String::as_str)
        .collect();
    if !lacking.is_empty() {
        return Some(format!("the run has no {}", lacking.join(", no ")));
    }
    let wanted = needs.network.as_ref()?;
    match &run.network_of(rules)[..] {
        [] if run.networks.is_empty() => Some(format!(
            "it needs {wanted}; the run has no network between hosts"
        )),
        [] => Some(format!(
            "it needs {wanted}; not all of its cells ran on such a network"
        )),
        is if !is.contains(&&**wanted) => Some(format!(
            "it needs {wanted}; its cells have {}",
            is.join(", ")
        )),
        _ => None,
    }
}

/// The number of the alternative of each side.
type Choice = BTreeMap<String, usize>;

fn sides(claim: &Claim) -> impl Iterator<Item = &Side> {
    let rules = claim.parts.iter().flat_map(Part::rules);
    rules.flat_map(|rule| rule.sides.iter().chain(&rule.against))
}

fn combinations(claim: &Claim) -> Vec<Choice> {
    let several: BTreeMap<&str, usize> = sides(claim)
        .filter(|side| side.alternatives.len() > 1)
        .map(|side| (side.chosen_by(), side.alternatives.len()))
        .collect();
    several
        .into_iter()
        .fold(vec![Choice::new()], |choices, (name, count)| {
            let with = |choice: &Choice, nth| {
                let mut choice = choice.clone();
                choice.insert(name.to_owned(), nth);
                choice
            };
            choices
                .iter()
                .flat_map(|choice| (0..count).map(move |nth| with(choice, nth)))
                .collect()
        })
}

/// An alternative, named by what distinguishes it from the others of its side.
fn chosen_name(claim: &Claim, name: &str, nth: usize) -> String {
    let Some(side) = sides(claim).find(|s| s.chosen_by() == name) else {
        return name.to_owned();
    };
    let differs = |key: &String| {
        let mut values = side.alternatives.iter().map(|filter| filter.get(key));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let words = side.alternatives.get(nth).map(|filter| {
        let told = filter.iter().filter(|(key, _)| differs(key));
        let told: Vec<String> = told.map(|(_, values)| values.join("/")).collect();
        told.join(" ")
    });
    words.unwrap_or_else(|| name.to_owned())
}

/// Whether there is something to judge by.
fn applicable(part: &Part, run: &Run<'_>) -> bool {
    (part.rule.is_some() || part.group.is_some()) && lacks(part, run).is_none()
}

fn all_of(parts: &[Part], choice: &Choice, run: &Run<'_>, outer: Ways) -> Finding {
    let count = parts.iter().filter(|part| applicable(part, run)).count();
    let ways = Ways::every(count).within(outer);
    all(&each(parts, choice, run, ways))
}

/// The finding of each part, by its name.
fn each(parts: &[Part], choice: &Choice, run: &Run<'_>, ways: Ways) -> Vec<(String, Finding)> {
    let judged = |part: &Part| match (lacks(part, run), &part.rule, &part.group) {
        (Some(why), ..) => Finding::new(Outcome::NotApplicable, why, ""),
        (None, Some(rule), _) => Judging { rule, choice, run }.part(ways),
        (None, None, Some(group)) => {
            let of = |parts: &[Part]| parts.iter().filter(|p| applicable(p, run)).count();
            match group.least {
                None => all_of(&group.parts, choice, run, ways),
                Some(count) => {
                    let ways = Ways::least(count, of(&group.parts)).within(ways);
                    least(count, &each(&group.parts, choice, run, ways))
                }
            }
        }
        (None, None, None) => Finding::new(Outcome::NotApplicable, "no rule", ""),
    };
    let named = |part: &Part| (part.name.clone(), judged(part));
    parts.iter().map(named).collect()
}

/// More than a share of the decided points of all parts must hold: Wilson's interval. Ties are left
/// out.
fn share_of_points(claim: &Claim, choice: &Choice, share: f64, run: &Run<'_>) -> Finding {
    let applicable = |part: &&Part| lacks(part, run).is_none();
    let parts = claim.parts.iter().filter(applicable);
    let rules = parts.filter_map(|part| part.rule.as_ref());
    let points: Vec<(String, Finding)> = rules
        .flat_map(|rule| Judging { rule, choice, run }.points(Ways::ONE))
        .flatten()
        .collect();
    let count = |outcome| points.iter().filter(|(_, f)| f.outcome == outcome).count();
    let (won, lost) = (count(Outcome::Holds), count(Outcome::DoesNotHold));
    let decided = won + lost;
    let (low, high) = wilson(won, decided);
    let percent = |share: f64| shown::number(100.0 * share);
    let ours = format!(
        "{won} of {decided} decided points, {} ties or missing ({} % to {} %)",
        points.len() - decided,
        percent(low),
        percent(high)
    );
    if decided < FEWEST_DECIDED {
        let reason = format!("{decided} decided points, at least {FEWEST_DECIDED} are needed");
        return Finding::new(Outcome::CannotTell, reason, ours);
    }
    let (outcome, reason) = match (low > share, high < share) {
        (true, _) => (Outcome::Holds, ""),
        (_, true) => (Outcome::DoesNotHold, ""),
        _ => (
            Outcome::CannotTell,
            "the share's interval has both sides of it",
        ),
    };
    Finding::new(outcome, reason, ours)
}

/// One side, or the ratio or difference of two, along the axis.
struct Line<'s> {
    name: String,
    terms: Vec<(f64, &'s Series)>,
}

/// What became of a line along an axis; or why it cannot be judged.
type Judged = Result<Finding, String>;

/// A rule with a choice among its sides' implementations.
struct Judging<'a> {
    rule: &'a Rule,
    choice: &'a Choice,
    run: &'a Run<'a>,
}

fn log_range(bounds: Bounds) -> (f64, f64) {
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
    fn filter<'f>(&self, side: &'f Side) -> Option<&'f Filter> {
        side.alternatives
            .get(self.choice.get(side.chosen_by()).copied().unwrap_or(0))
    }

    fn series(&self, sides: &[Side]) -> Vec<Series> {
        let points = cells::points(self.run, self.rule, &self.filters());
        let each = |side: &Side| {
            let filter = self.filter(side).cloned().unwrap_or_default();
            Series::of(self.run, self.rule, side.name.clone(), &filter, &points)
        };
        let all: Vec<Series> = sides.iter().map(each).collect();
        if self.rule.gap && !all.is_empty() {
            vec![gap::series(&all)]
        } else {
            all
        }
    }

    /// The cells of all sides.
    fn filters(&self) -> Vec<&Filter> {
        let sides = self.rule.sides.iter().chain(&self.rule.against);
        sides.filter_map(|side| self.filter(side)).collect()
    }

    /// Pairs of sides: each with each of `against`, or in a chain each with the next.
    fn lines<'s>(&self, sides: &'s [Series], against: &'s [Series], ratios: bool) -> Vec<Line<'s>> {
        let pair = |a: &'s Series, b: &'s Series| Line {
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
            let one = |side: &'s Series| Line {
                name: side.name.clone(),
                terms: vec![(1.0, side)],
            };
            sides.iter().map(one).collect()
        }
    }

    fn at(&self, line: &Line<'_>, point: usize, logs: bool) -> Result<Estimate, String> {
        let terms: Vec<_> = line
            .terms
            .iter()
            .map(|(f, s)| (*f, &s.points[point].1))
            .collect();
        estimate(&terms, logs, self.rule.paired)
    }

    fn part(&self, outer: Ways) -> Finding {
        if let Some(why) = cells::apart(self.run, self.rule, &self.filters()) {
            return Finding::cannot_tell(why);
        }
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
        let over = |lines: &[Line<'_>], judged: &dyn Fn(&Line<'_>, Ways) -> Judged| {
            let ways = Ways::every(lines.len()).within(outer);
            let each = lines.iter().map(|line| {
                let finding = judged(line, ways).unwrap_or_else(cells::lacking);
                (line.name.clone(), finding)
            });
            all(&each.collect::<Vec<_>>())
        };
        match &self.rule.judge {
            Judge::Value(_) | Judge::Ratio(_) | Judge::Difference(_) | Judge::Equal(_) => {
                let lines = self.points(outer).into_iter();
                let one = lines.map(|points| match self.rule.points {
                    Points::Some => any(&points),
                    _ => all(&points),
                });
                all(&one.map(|f| (String::new(), f)).collect::<Vec<_>>())
            }
            Judge::Count(wanted) => {
                let cells = lines
                    .iter()
                    .flat_map(|line| &line.terms)
                    .flat_map(|(_, s)| {
                        s.points
                            .iter()
                            .map(|(point, m)| (s.at(point), cells::count(m, *wanted)))
                    });
                all(&cells.collect::<Vec<_>>())
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

    /// The points of each line, for judges that look at one point at a time.
    fn points(&self, outer: Ways) -> Vec<Vec<(String, Finding)>> {
        let (sides, against) = (
            self.series(&self.rule.sides),
            self.series(&self.rule.against),
        );
        let ratios = !matches!(self.rule.judge, Judge::Value(_));
        let lines = self.lines(&sides, &against, ratios);
        let count = sides.first().map_or(0, |s| s.points.len());
        let ways = match self.rule.points {
            Points::Some => Ways::some(count).within(Ways::every(lines.len())),
            Points::Every => Ways::every(count * lines.len()),
            Points::Mean => Ways::every(lines.len()),
        };
        let ways = ways.within(outer);
        let of = |line: &Line<'_>| -> Vec<(String, Finding)> {
            if self.rule.points == Points::Mean {
                return vec![(line.name.clone(), self.mean(line, count, ways))];
            }
            let at = |point: usize| {
                let name = cells::at(&line.name, &line.terms[0].1.points[point].0);
                (
                    name,
                    self.point(line, ways, &|logs| self.at(line, point, logs)),
                )
            };
            (0..count).map(at).collect()
        };
        lines.iter().map(of).collect()
    }

    fn mean(&self, line: &Line<'_>, count: usize, ways: Ways) -> Finding {
        let share = 1.0 / count as f64;
        let terms: Vec<_> = line
            .terms
            .iter()
            .flat_map(|(factor, s)| s.points.iter().map(move |(_, m)| (factor * share, m)))
            .collect();
        self.point(line, ways, &|logs| estimate(&terms, logs, self.rule.paired))
    }

    fn point(
        &self,
        line: &Line<'_>,
        ways: Ways,
        at: &dyn Fn(bool) -> Result<Estimate, String>,
    ) -> Finding {
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
        let judged = |estimate, range, show: Show<'_>| cells::within(estimate, range, ways, show);
        match self.rule.judge {
            Judge::Ratio(bounds) => judged(at(true), log_range(wide(bounds)), &shown_ratio),
            Judge::Equal(tolerance) => {
                let bounds = Bounds {
                    low: 1.0 / (1.0 + tolerance),
                    high: 1.0 + tolerance,
                };
                judged(at(true), log_range(bounds), &shown_ratio)
            }
            Judge::Difference(bounds) => judged(at(false), (bounds.low, bounds.high), &plain),
            // A share may be 0 in some repeats, and has no logarithm then.
            Judge::Value(bounds) => {
                if line.terms.iter().all(|(_, s)| s.positive()) {
                    judged(at(true), log_range(wide(bounds)), &|log| plain(log.exp()))
                } else {
                    judged(at(false), (bounds.low, bounds.high), &plain)
                }
            }
            _ => unreachable!("judges of points only"),
        }
    }
}
