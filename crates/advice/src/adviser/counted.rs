//! Stored trials in an advice: what they leave to be measured, and where figures come from.

use std::collections::{BTreeMap, BTreeSet};

use pubgauge_figures::Trial;
use pubgauge_results::verdict::spoilt_by_others;
use pubgauge_strict_toml::InvalidInput;

use super::{Adviser, cost_figure, key};
use crate::evidence::{Evidence, EvidenceOf, NotCounted, StoredAt, evidence};
use crate::stage::{Candidate, StageKind};
use crate::stored::{Here, LargerLoad, SameLoad, StoredRun, demands, select};
use crate::variation::Variation;

/// With so many repeats the mean of a figure has an interval.
const ENOUGH_REPEATS: usize = 3;

/// Evidence from stored runs.
#[derive(Debug, Default)]
pub(super) struct Stored {
    /// The runs that trials are from, by system, workload and repeat.
    pub(super) trials: BTreeMap<(String, String, u32), StoredAt>,
    /// The runs that searches are from, by system.
    pub(super) searches: BTreeMap<String, StoredAt>,
    /// Larger loads that were carried.
    pub(super) larger: Vec<LargerLoad>,
    /// Runs, or trials of them, that do not count, and why.
    pub(super) not_counted: Vec<NotCounted>,
}

impl Adviser {
    /// Counts stored trials that stand for some of this advice, before its first step. `not_counted`: runs that could not be
    /// read.
    ///
    /// # Errors
    /// When the fleet's own study is none.
    pub fn count_stored(
        &mut self,
        here: &Here,
        runs: &[StoredRun],
        not_counted: Vec<NotCounted>,
    ) -> Result<(), InvalidInput> {
        let mut changes = self.demanded();
        changes.extend(self.other_fleets());
        let demands = demands(&self.fleet, &self.candidates, changes)?;
        let selection = select(&demands, here, runs);
        self.criteria.clone_from(&here.criteria);
        for SameLoad { mut trial, at, .. } in selection.same {
            trial.repeat = 1 + self
                .trials
                .iter()
                .filter(|of| key(of) == key(&trial))
                .count() as u32;
            let (system, workload) = key(&trial);
            let place = (system, workload, trial.repeat);
            self.stored.trials.insert(place, at);
            self.trials.push(trial);
        }
        for (search, at) in selection.searches {
            self.stored.searches.insert(search.system.clone(), at);
            self.searches.push(search);
        }
        self.stored.larger = selection.larger;
        self.stored.not_counted = not_counted;
        self.stored.not_counted.extend(selection.not_counted);
        Ok(())
    }

    /// Stored trials, searches and larger loads that count.
    pub fn stored_count(&self) -> usize {
        let Stored {
            trials,
            searches,
            larger,
            ..
        } = &self.stored;
        trials.len() + searches.len() + larger.len()
    }

    /// The systems and changes of which stored trials tell enough for a step.
    pub(super) fn known(&self, kind: StageKind, changes: &[Variation]) -> Vec<(String, Variation)> {
        let is_enough = |one: &Candidate, change: Variation| {
            let own = self.trials_of(one, change).into_iter();
            let own = own.filter(|trial| !spoilt_by_others(trial)).count();
            let larger = self
                .larger(one, change)
                .map(|larger| larger.repeats)
                .sum::<usize>();
            match (kind, change) {
                (StageKind::Limit, _) => self.limit(one).is_some(),
                (StageKind::Confirm, Variation::None) => own >= ENOUGH_REPEATS,
                (StageKind::Confirm, _) => own + larger >= ENOUGH_REPEATS,
                // Figures are of the fleet at its own load.
                (_, Variation::None) => own > 0,
                _ => own + larger > 0,
            }
        };
        let all = self.candidates.iter();
        let all = all.flat_map(|one| changes.iter().map(move |&change| (one, change)));
        all.filter(|&(one, change)| is_enough(one, change))
            .map(|(one, change)| (one.system.clone(), change))
            .collect()
    }

    /// Stored loads, larger than a changed fleet, that a system carried.
    pub(super) fn larger(
        &self,
        candidate: &Candidate,
        change: Variation,
    ) -> impl Iterator<Item = &LargerLoad> {
        let larger = self.stored.larger.iter();
        larger.filter(move |of| of.system == candidate.system && of.change == change)
    }

    /// The runs that the cost is from, by the folders of what was measured in turns; empty for this advice.
    pub(super) fn cost_from(&self, candidate: &Candidate) -> BTreeSet<String> {
        let all = self
            .figures_of_trials(candidate, &cost_figure())
            .into_iter();
        let from = all.map(|(_, trial)| self.stored_at(trial).map(|at| at.together.clone()));
        from.map(Option::unwrap_or_default).collect()
    }

    /// The stored run that a trial is from; `None` for one of this advice.
    pub(super) fn stored_at(&self, trial: &Trial) -> Option<&StoredAt> {
        let (system, workload) = key(trial);
        self.stored.trials.get(&(system, workload, trial.repeat))
    }

    /// The runs by which a changed fleet is carried; `None` for this advice.
    pub(super) fn carried_by(
        &self,
        candidate: &Candidate,
        change: Variation,
    ) -> Vec<Option<&StoredAt>> {
        let trials = self.trials_of(candidate, change).into_iter();
        let own = trials.filter(|trial| !spoilt_by_others(trial));
        let own: Vec<Option<&StoredAt>> = own.map(|trial| self.stored_at(trial)).collect();
        if own.is_empty() {
            let larger = self.larger(candidate, change);
            return larger.map(|larger| Some(&larger.at)).collect();
        }
        own
    }

    /// Where the figures of a choice come from.
    pub(super) fn evidence_of(&self, candidate: &Candidate) -> Vec<Evidence> {
        let carried = |figure, change| evidence(figure, self.carried_by(candidate, change));
        let of_trials = |figure, name: &str| {
            let all = self.figures_of_trials(candidate, name).into_iter();
            evidence(figure, all.map(|(_, trial)| self.stored_at(trial)))
        };
        let limit = self.limit(candidate);
        let limit = limit.map(|_| self.stored.searches.get(&candidate.system));
        let mut all = vec![carried(EvidenceOf::Fleet, Variation::None)];
        let more = self
            .demanded()
            .into_iter()
            .filter(|of| *of != Variation::None);
        all.extend(more.map(|change| carried(EvidenceOf::Headroom, change)));
        all.extend([
            evidence(EvidenceOf::Limit, limit),
            of_trials(EvidenceOf::P99, "latency.p99"),
            of_trials(EvidenceOf::Cost, &cost_figure()),
            of_trials(EvidenceOf::Memory, "system-memory"),
        ]);
        all
    }
}
