//! Repeats for claims that cannot be told: the next of them, in rounds, until the claims are decided or a budget is
//! spent.
//!
//! Claims are judged after a round, never within it: each look at the data costs confidence.

use std::borrow::Cow;
use std::collections::BTreeMap;

use pubgauge_conclusions::claims::open;
use pubgauge_figures::Results;
use pubgauge_figures::model::Trial;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::{Proposal, Proposer, next_number};
use crate::repeats::{Measured, RepeatsForecast, Round, spent_s, taken_up, wanted};

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
