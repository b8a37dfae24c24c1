//! The steps of a tuning.

use serde_json::Value;

use crate::estimator;
use crate::factor::Point;
use crate::finding::{Finding, KnownPoint, Purpose, Question, Seen, Side};

/// Measurements of the default before all else: they tell how much of a difference is chance.
const BASES: usize = 3;
/// Tries of one measurement that may tell nothing before it is given up.
const TRIES: usize = 2;
/// Measurements of the default that may have no score before the tuning is given up.
const BASE_TRIES: usize = 5;
/// Others between two measurements of the default, which show whether the machine drifts.
const BETWEEN_BASES: usize = 8;
/// Ratio to the default beyond which a level is hopeless: levels further out are left out.
const HOPELESS: f64 = 3.0;
/// Scores that a point needs to be compared with the default.
const LEADS_AFTER: usize = 3;
/// Most measurements of points that lead, and those that time is kept for.
const MOST_AGAIN: usize = 10;
const KEPT_AGAIN: usize = 5;
/// Combinations without a better one after which the search ends, for each factor, and at the least.
const PATIENCE: usize = 8;
const LEAST_PATIENCE: usize = 24;
/// Fewest and most pairs.
const FEWEST_PAIRS: usize = 5;
const MOST_PAIRS: usize = 12;

/// The next thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Measure {
        purpose: Purpose,
        point: Point,
    },
    /// Somebody else names a combination, and it is measured; if nobody does, [`View::after_asking`] is next.
    Ask,
    End(Ended),
}

/// Why a tuning is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The pairs are measured.
    Compared,
    /// Nothing looked better than the default.
    NothingBetter,
    /// The default itself has no score: it does not carry the load, or nothing can be told of it.
    NoBase,
    /// There is nothing to vary.
    NoFactors,
}

/// The next step.
pub fn next(question: &Question, seen: &[Seen]) -> Step {
    View::new(question, seen).next(false)
}

/// All that was seen, put in order.
pub struct View<'a> {
    question: &'a Question,
    seen: &'a [Seen],
}

impl<'a> View<'a> {
    pub fn new(question: &'a Question, seen: &'a [Seen]) -> View<'a> {
        View { question, seen }
    }

    /// The next step, where nobody had another combination to name.
    pub fn after_asking(&self) -> Step {
        self.next(true)
    }

    fn next(&self, nobody_asks: bool) -> Step {
        if self.question.factors.is_empty() {
            return Step::End(Ended::NoFactors);
        }
        let explored = self.explored();
        if explored == self.seen.len()
            && let Some(step) = self.explore(nobody_asks)
        {
            return step;
        }
        let Some(leader) = self.leader() else {
            return Step::End(Ended::NothingBetter);
        };
        if let Some(point) = self.leader_again() {
            return measure(Purpose::Again, point);
        }
        let Some((nth, side)) = self.pair() else {
            return Step::End(Ended::Compared);
        };
        let point = match side {
            Side::Default => self.base_point(),
            Side::Best => leader,
        };
        measure(Purpose::Pair { nth, side }, point)
    }

    /// How many of the first ones were measured while points were looked for.
    fn explored(&self) -> usize {
        let ends = |seen: &Seen| seen.purpose == Purpose::Again || seen.is_of_pair();
        let first = self.seen.iter().position(ends);
        first.unwrap_or(self.seen.len())
    }

    fn base_point(&self) -> Point {
        Point::default_of(&self.question.factors)
    }

    /// Mean seconds of a measurement.
    fn each_s(&self) -> f64 {
        let all: f64 = self.seen.iter().map(|seen| seen.seconds).sum();
        match self.seen.len() {
            0 => self.question.expected_s,
            n => all / n as f64,
        }
    }

    /// Whether there is time for so many measurements and the fewest pairs.
    fn has_time(&self, measurements: usize) -> bool {
        let spent: f64 = self.seen.iter().map(|seen| seen.seconds).sum();
        let pairs = 2 * self.question.pairs.max(FEWEST_PAIRS);
        spent + (pairs + measurements) as f64 * self.each_s() <= self.question.budget_s
    }

    /// The next measurement that looks for better points.
    fn explore(&self, nobody_asks: bool) -> Option<Step> {
        let of = |purpose: Purpose| self.seen.iter().filter(move |one| one.purpose == purpose);
        let bases = || of(Purpose::Base);
        let scored = bases().filter(|one| one.finding.score().is_some()).count();
        if scored < BASES {
            if bases().count() >= BASE_TRIES && scored == 0 {
                return Some(Step::End(Ended::NoBase));
            }
            if bases().count() < BASE_TRIES {
                return Some(measure(Purpose::Base, self.base_point()));
            }
        }
        if !self.has_time(KEPT_AGAIN + 1) {
            return None;
        }
        let since = self.seen.iter().rev();
        let since = since.take_while(|one| one.purpose != Purpose::Base).count();
        if since >= BETWEEN_BASES {
            return Some(measure(Purpose::Base, self.base_point()));
        }
        if let Some(point) = self.one_factor() {
            return Some(measure(Purpose::OneFactor, point));
        }
        if self.question.is_led {
            return (!nobody_asks).then_some(Step::Ask);
        }
        let point = self.combination()?;
        Some(measure(Purpose::Combination, point))
    }

    /// Whether nothing is left to be learnt of a point: it has a score, is hopeless, or was tried in vain.
    fn is_settled(&self, point: &Point) -> bool {
        let own = self.of_point(point);
        let told = |one: &&&Seen| one.finding != Finding::Nothing;
        own.iter().any(|one| told(&one)) || own.len() >= TRIES
    }

    fn of_point(&self, point: &Point) -> Vec<&'a Seen> {
        self.seen.iter().filter(|one| one.point == *point).collect()
    }

    /// Mean score while points were looked for and measured again; `None` where it has none, or was hopeless once.
    pub(crate) fn mean(&self, point: &Point) -> Option<f64> {
        let own = self.seen.iter().filter(|one| one.point == *point);
        let own = own.filter(|one| !one.is_of_pair());
        let mut scores = Vec::new();
        for one in own {
            match one.finding {
                Finding::Score(score) => scores.push(score),
                Finding::Hopeless => return None,
                Finding::Nothing => {}
            }
        }
        pubgauge_quantities::stats::mean(scores)
    }

    /// The next point with one factor at another value: the first values of all factors come before the second ones.
    fn one_factor(&self) -> Option<Point> {
        let base = self.base_point();
        let ladders = self.question.factors.iter().enumerate();
        let ladders: Vec<(usize, Vec<Value>)> = ladders
            .flat_map(|(nth, factor)| {
                let ladders = factor.levels.ladders().into_iter();
                ladders.map(move |ladder| (nth, ladder))
            })
            .collect();
        let most = ladders.iter().map(|(_, ladder)| ladder.len()).max()?;
        let base_score = self.mean(&base);
        let is_hopeless = |point: &Point| {
            let own = self.of_point(point);
            let far = base_score.zip(self.mean(point));
            own.iter().any(|one| one.finding == Finding::Hopeless)
                || far.is_some_and(|(base, own)| own - base > HOPELESS.ln())
        };
        for rung in 0..most {
            for (nth, ladder) in &ladders {
                let Some(value) = ladder.get(rung) else {
                    continue;
                };
                let at = |value: &Value| base.with_value(*nth, Some(value.clone()));
                if ladder[..rung].iter().any(|before| is_hopeless(&at(before))) {
                    continue;
                }
                let point = at(value);
                if !self.is_settled(&point) {
                    return Some(point);
                }
            }
        }
        None
    }

    /// The next combination: the best value of each factor together, then those of the estimator. `None` where none is left,
    /// or the last ones were no better.
    fn combination(&self) -> Option<Point> {
        let greedy = self.greedy();
        if let Some(point) = greedy.filter(|point| !self.is_settled(point)) {
            return Some(point);
        }
        let combinations = self.seen.iter();
        let combinations = combinations.filter(|one| one.purpose == Purpose::Combination);
        // One that told nothing is tried again.
        if let Some(last) = combinations.clone().next_back()
            && !self.is_settled(&last.point)
        {
            return Some(last.point.clone());
        }
        let patience = LEAST_PATIENCE.max(PATIENCE * self.question.factors.len());
        let scores: Vec<f64> = combinations
            .map(|one| one.finding.score().unwrap_or(f64::INFINITY))
            .collect();
        let best = (0..scores.len()).min_by(|a, b| scores[*a].total_cmp(&scores[*b]));
        if best.is_some_and(|best| scores.len() - best > patience) {
            return None;
        }
        let known = self.known();
        // The estimator looks at each factor by itself: what helps only together with another one, a walk around the
        // leader finds.
        let around = (scores.len() % 2 == 1).then(|| self.beside_leader(&known));
        around
            .flatten()
            .or_else(|| estimator::propose(&self.question.factors, &known, self.question.seed))
    }

    /// The next point that differs from the leader in one factor; `None` where all were measured.
    fn beside_leader(&self, known: &[KnownPoint]) -> Option<Point> {
        let scored = known.iter().filter_map(|one| Some((one, one.score?)));
        let (leader, _) = scored.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let factors = self.question.factors.iter().enumerate();
        let beside = factors.flat_map(|(nth, factor)| {
            let values = factor.levels.ladders().into_iter().flatten().map(Some);
            let values = values.chain([None]);
            values.map(move |value| leader.point.with_value(nth, value))
        });
        let is_known = |point: &Point| known.iter().any(|known| known.point == *point);
        beside.into_iter().find(|point| !is_known(point))
    }

    /// The best value of each factor together, where two factors have a better one than the default.
    fn greedy(&self) -> Option<Point> {
        let base = self.base_point();
        let base_score = self.mean(&base)?;
        let mut point = base.clone();
        for (nth, factor) in self.question.factors.iter().enumerate() {
            let values = factor.levels.ladders().into_iter().flatten();
            let scored = values.filter_map(|value| {
                let score = self.mean(&base.with_value(nth, Some(value.clone())))?;
                (score < base_score).then_some((value, score))
            });
            let best = scored.min_by(|(_, a), (_, b)| a.total_cmp(b));
            point.0[nth] = best.map(|(value, _)| value);
        }
        (point.0.iter().flatten().count() > 1).then_some(point)
    }

    /// All points that were measured, in order.
    fn known(&self) -> Vec<KnownPoint> {
        let mut known: Vec<KnownPoint> = Vec::new();
        for one in self.seen {
            if known.iter().all(|known| known.point != one.point) {
                let own = self.of_point(&one.point);
                let searched = own.iter().filter(|one| !one.is_of_pair());
                known.push(KnownPoint {
                    point: one.point.clone(),
                    score: self.mean(&one.point),
                    scores: searched.filter(|one| one.finding.score().is_some()).count(),
                    is_hopeless: own.iter().any(|one| one.finding == Finding::Hopeless),
                });
            }
        }
        known
    }

    /// The point that leads: of those with the best means, better than the default's, the first that was measured often
    /// enough; the first of all while none was.
    pub fn leader(&self) -> Option<Point> {
        let base = self.base_point();
        let base_score = self.mean(&base)?;
        let is_better = |known: &KnownPoint| {
            known.point != base && known.score.is_some_and(|score| score < base_score)
        };
        let mut better: Vec<KnownPoint> = self.known().into_iter().filter(is_better).collect();
        let order = |known: &KnownPoint| known.score.unwrap_or(f64::INFINITY);
        better.sort_by(|a, b| order(a).total_cmp(&order(b)));
        let sure = better.iter().position(|known| known.scores >= LEADS_AFTER);
        let leads = sure.filter(|_| !self.may_measure_again()).unwrap_or(0);
        (leads < better.len()).then(|| better.swap_remove(leads).point)
    }

    /// Whether points that lead may be measured again.
    fn may_measure_again(&self) -> bool {
        let again = self.seen.iter().filter(|one| one.purpose == Purpose::Again);
        again.count() < MOST_AGAIN && self.first_pair().is_none() && self.has_time(1)
    }

    /// The leader, while it has too few scores.
    fn leader_again(&self) -> Option<Point> {
        let leader = self.leader().filter(|_| self.may_measure_again())?;
        let own = self.of_point(&leader).into_iter();
        let scores = own.filter(|one| one.finding.score().is_some());
        (scores.count() < LEADS_AFTER).then_some(leader)
    }

    fn first_pair(&self) -> Option<usize> {
        self.seen.iter().position(Seen::is_of_pair)
    }

    /// How many pairs are measured: as many as there was time for when they began. A number that depended on their results
    /// would find a difference where there is none.
    pub fn pairs(&self) -> usize {
        let before = &self.seen[..self.first_pair().unwrap_or(self.seen.len())];
        let spent: f64 = before.iter().map(|one| one.seconds).sum();
        let each = match before.len() {
            0 => self.question.expected_s,
            n => spent / n as f64,
        };
        let fit = ((self.question.budget_s - spent) / (2.0 * each))
            .floor()
            .max(0.0) as usize;
        let fewest = self.question.pairs.max(FEWEST_PAIRS);
        fit.clamp(fewest, MOST_PAIRS.max(fewest))
    }

    /// The next side of a pair. The default comes first in odd pairs, so that drift favours neither.
    fn pair(&self) -> Option<(u32, Side)> {
        for nth in 1..=self.pairs() as u32 {
            let order = match nth % 2 {
                1 => [Side::Default, Side::Best],
                _ => [Side::Best, Side::Default],
            };
            for side in order {
                let wanted = Purpose::Pair { nth, side };
                let own: Vec<&Seen> = self
                    .seen
                    .iter()
                    .filter(|one| one.purpose == wanted)
                    .collect();
                let told = own.iter().any(|one| one.finding != Finding::Nothing);
                if !told && own.len() < TRIES {
                    return Some((nth, side));
                }
            }
        }
        None
    }
}

fn measure(purpose: Purpose, point: Point) -> Step {
    Step::Measure { purpose, point }
}
