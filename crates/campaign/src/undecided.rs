//! Repeats for claims that cannot be told: which cells are measured again, in rounds, until the claims are decided or
//! a budget is spent.
//!
//! A round doubles the repeats of the cells that it takes up, in turns. Claims are judged after a round, never within it:
//! each look at the data costs confidence.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use pubgauge_conclusions::claims::{Open, open};
use pubgauge_figures::Results;
use pubgauge_figures::model::Trial;
use pubgauge_quantities::shown::so_many;
use pubgauge_quantities::stats::MOST_REPEATS;
use pubgauge_runner::searching;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use crate::proposer::next_number;
use crate::{Proposal, Proposer};

/// The trials of a round, in order: index in the plan, and repeat.
pub(crate) type Round = Vec<(usize, u32)>;

/// How long it would take to decide claims, if their figures stay as they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RepeatsForecast {
    /// Seconds of trials after which so many claims are decided; rising.
    pub seconds: Vec<f64>,
    /// Claims that more than 1000 repeats would decide.
    pub beyond: usize,
}

impl RepeatsForecast {
    /// `more repeats would decide 5 claims: 1 within about 2 min, 3 within 8 min, all within 41 min`.
    pub fn sentence(&self) -> String {
        let all = self.seconds.len();
        let minutes = |seconds: f64| (seconds / 60.0).ceil().max(1.0);
        let counts = BTreeSet::from([1, all.div_ceil(2), all]);
        let steps = counts
            .into_iter()
            .filter(|count| (1..=all).contains(count))
            .map(|count| {
                let who = if count == all && all > 1 {
                    "all".to_owned()
                } else {
                    count.to_string()
                };
                let within = minutes(self.seconds[count - 1]);
                format!("{who} within about {within} min")
            });
        let steps: Vec<String> = steps.collect();
        let beyond = match self.beyond {
            0 => String::new(),
            some => format!(
                "{} would take more than {MOST_REPEATS} repeats",
                so_many(some as u64, "claim")
            ),
        };
        let near = match all {
            0 => "no claim waits for repeats".to_owned(),
            all => {
                let claims = so_many(all as u64, "claim");
                format!("more repeats would decide {claims}: {}", steps.join(", "))
            }
        };
        let parts = [near, beyond].into_iter().filter(|words| !words.is_empty());
        parts.collect::<Vec<_>>().join("; ")
    }
}

/// A claim that repeats would decide.
struct Wanted {
    /// Cells, with the repeats that they lack.
    cells: BTreeMap<String, u32>,
    seconds: f64,
    beyond: bool,
}

/// The time that trials of each cell took, and their number.
struct Measured(BTreeMap<String, (u32, f64)>);

impl Measured {
    fn from_trials(trials: &[Trial]) -> Measured {
        let mut cells: BTreeMap<String, (u32, f64)> = BTreeMap::new();
        for trial in trials.iter().filter(|trial| trial.search.is_none()) {
            let (count, seconds) = cells.entry(trial.cell.clone()).or_default();
            *count += 1;
            *seconds += searching::seconds(trial);
        }
        Measured(cells)
    }

    fn repeats(&self, cell: &str) -> u32 {
        self.0.get(cell).map_or(0, |(count, _)| *count)
    }

    /// Mean length of a trial of the cell.
    fn seconds(&self, cell: &str) -> f64 {
        let of = |(count, seconds): &(u32, f64)| seconds / f64::from((*count).max(1));
        self.0.get(cell).map_or(0.0, of)
    }
}

/// The claims that repeats would decide, the quickest ones first.
fn wanted(open: Vec<Option<Open>>, measured: &Measured) -> Vec<Wanted> {
    let one = |open: Open| {
        let lacks = |cell: String| {
            let lacks = open.repeats.saturating_sub(measured.repeats(&cell)).max(1);
            (cell, lacks)
        };
        let cells: BTreeMap<String, u32> = open.cells.into_iter().map(lacks).collect();
        let seconds = cells
            .iter()
            .map(|(cell, n)| f64::from(*n) * measured.seconds(cell));
        Wanted {
            seconds: seconds.sum(),
            beyond: open.repeats > MOST_REPEATS,
            cells,
        }
    };
    let mut wanted: Vec<Wanted> = open.into_iter().flatten().map(one).collect();
    wanted.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    wanted
}

/// How many more repeats each cell gets in a round that takes `budget_s` at most: as many as it has, for the claims that
/// are decided soonest; fewer for the first of them, where not even that fits.
fn taken_up(wanted: &[Wanted], measured: &Measured, budget_s: f64) -> BTreeMap<String, u32> {
    let mut taken: BTreeMap<String, u32> = BTreeMap::new();
    let mut spent = 0.0;
    for claim in wanted {
        let new = claim.cells.keys().filter(|cell| !taken.contains_key(*cell));
        let new: Vec<(String, u32)> = new
            .map(|cell| (cell.clone(), measured.repeats(cell)))
            .collect();
        let costs = new
            .iter()
            .map(|(cell, n)| f64::from(*n) * measured.seconds(cell));
        let costs: f64 = costs.sum();
        if spent + costs <= budget_s {
            spent += costs;
            taken.extend(new);
        }
    }
    if let (Some(first), true) = (wanted.first(), taken.is_empty()) {
        let once: f64 = first.cells.keys().map(|cell| measured.seconds(cell)).sum();
        let times = (budget_s / once).floor() as u32;
        let fewer = |cell: &String| (cell.clone(), times.min(measured.repeats(cell)));
        taken.extend(first.cells.keys().map(fewer).filter(|(_, n)| *n > 0));
    }
    taken
}

/// Seconds that trials of rounds before `round` took.
fn spent_s(trials: &[Trial], round: u32) -> f64 {
    let extra = trials.iter().filter(|t| (1..round).contains(&t.round));
    extra.map(searching::seconds).sum()
}

impl Proposer<'_> {
    /// Lets [`Proposer::propose_repeat`] propose trials that take so many seconds at most, beyond those of the plan.
    pub fn until_decided(mut self, budget_s: Option<f64>) -> Self {
        self.budget_s = budget_s;
        self
    }

    /// The results that claims are judged by: without the trials of a round that is not over, which would be one more
    /// look at the data.
    pub(crate) fn whole_rounds<'r>(&self, results: &'r Results) -> Cow<'r, Results> {
        let rounds = results.trials.iter().map(|trial| trial.round);
        let last = rounds.max().unwrap_or(0);
        match self.propose_repeat(results) {
            Some(next) if next.round == last => results_before(results, last),
            _ => Cow::Borrowed(results),
        }
    }

    /// The trial to measure after those of the plan, for claims that are undecided; `None` where none is, or the budget
    /// is spent.
    pub fn propose_repeat(&self, results: &Results) -> Option<Proposal> {
        let (budget_s, trials) = (self.budget_s?, &results.trials);
        if self.plan().rounds().is_some() || spent_s(trials, u32::MAX) >= budget_s {
            return None;
        }
        let last = trials.iter().map(|trial| trial.round).max().unwrap_or(0);
        let rounds = [last, last + 1].into_iter().filter(|round| *round > 0);
        for number in rounds {
            let is_done = |at: usize, repeat: u32| {
                let cell = &self.plan().trials[at].cell;
                let same = |t: &Trial| (t.round, t.repeat) == (number, repeat) && t.cell == *cell;
                trials.iter().any(same)
            };
            let round = self.round(number, results, budget_s);
            let left = round
                .into_iter()
                .filter(|(at, repeat)| !is_done(*at, *repeat));
            let proposed = left.map(|(at, repeat)| {
                let mut trial = self.plan().trials[at].clone();
                trial.repeat = repeat;
                self.at_its_load(&trial, trials)
            });
            // A load that is a share of an unknown limit has no trial.
            if let Some(mut proposal) = proposed.flatten().next() {
                proposal.trial.order = next_number(trials);
                proposal.round = number;
                return Some(proposal);
            }
        }
        None
    }

    /// The trials of a round. They follow from what was stored before it, so that a resumed run has the same.
    fn round(&self, number: u32, results: &Results, budget_s: f64) -> Round {
        if let Some((known, round)) = &*self.round.borrow()
            && *known == number
        {
            return round.clone();
        }
        let before = results_before(results, number);
        let measured = Measured::from_trials(&before.trials);
        let wanted = wanted(open(&before, &self.plan().claims), &measured);
        let left_s = budget_s - spent_s(&before.trials, number);
        let taken = taken_up(&wanted, &measured, left_s);
        let most = taken.values().max().copied().unwrap_or(0);
        // One turn has one number, as trials are paired by it: all cells begin after the last number of any.
        let plain = before.trials.iter().filter(|trial| trial.search.is_none());
        let first = plain.map(|trial| trial.repeat).max().unwrap_or(0);
        let templates = self.plan().trials.iter().enumerate();
        let templates = templates.filter(|(_, trial)| trial.repeat == 1 && trial.seeks().is_none());
        let templates: Vec<(usize, &String)> = templates
            .map(|(at, trial)| (at, &trial.cell))
            .filter(|(_, cell)| taken.contains_key(*cell))
            .collect();
        let turn = |n: u32| {
            let due = templates.iter().filter(|(_, cell)| taken[*cell] >= n);
            let mut due: Vec<(usize, u32)> = due.map(|(at, _)| (*at, first + n)).collect();
            // With one order, what drifts would tell cells apart.
            if self.plan().shuffled {
                let seed = self.plan().seed.wrapping_add(u64::from(first + n));
                due.shuffle(&mut StdRng::seed_from_u64(seed));
            }
            due
        };
        let round: Round = (1..=most).flat_map(turn).collect();
        *self.round.borrow_mut() = Some((number, round.clone()));
        round
    }

    /// How long it would take to decide the claims that are undecided.
    pub fn forecast(&self, results: &Results) -> RepeatsForecast {
        let measured = Measured::from_trials(&results.trials);
        let wanted = wanted(open(results, &self.plan().claims), &measured);
        let mut lacking: BTreeMap<String, u32> = BTreeMap::new();
        let mut forecast = RepeatsForecast::default();
        for claim in wanted {
            if claim.beyond {
                forecast.beyond += 1;
                continue;
            }
            // Claims share cells.
            for (cell, n) in claim.cells {
                let lacks = lacking.entry(cell).or_insert(0);
                *lacks = n.max(*lacks);
            }
            let seconds = lacking
                .iter()
                .map(|(cell, n)| f64::from(*n) * measured.seconds(cell));
            forecast.seconds.push(seconds.sum());
        }
        forecast
    }
}

/// The results as they were before a round.
fn results_before(results: &Results, round: u32) -> Cow<'_, Results> {
    if results.trials.iter().all(|trial| trial.round < round) {
        return Cow::Borrowed(results);
    }
    let mut before = results.clone();
    before.trials.retain(|trial| trial.round < round);
    Cow::Owned(before)
}

#[cfg(test)]
mod tests;
