//! Searches of a plan: their next step, their results, and the loads that are shares of them.

use pubgauge_figures::model::Trial;
use pubgauge_figures::search::{LimitShare, LimitedBy, NotMeasured, NoteOf, Search, SearchNote};
use pubgauge_runner::searching::{self, stored_step};
use pubgauge_search::Axis;
use pubgauge_search::{Question, Step};
use pubgauge_study::{NoLoad, PlannedTrial};
use pubgauge_workload::SECOND;

use super::{Proposal, Proposer, next_number};
use crate::Error;
use crate::prepared::axes;

impl Proposer<'_> {
    /// The next trial of a search; `None` at its end.
    pub(super) fn step(
        &self,
        number: u32,
        template: &PlannedTrial,
        done: &[Trial],
    ) -> Result<Option<Proposal>, Error> {
        if self.known(number, done).is_some() {
            return Ok(None);
        }
        let (question, axis) = self.question(template);
        let step = searching::next(&question, axis, number, done, &self.criteria);
        let Some(stored) = stored_step(number, step) else {
            if let Some(found) = self.search(number, template, done) {
                let trials = trials_of_search(number, done).count();
                self.over.borrow_mut().insert(number, (trials, found));
            }
            return Ok(None);
        };
        let length = match (step, &self.prepared.plan.search) {
            (Step::Long(_), Some(rules)) => rules.long,
            _ => template.workload.phases.measure.latest(),
        };
        let trial = template.seeking(stored.load, length);
        let mut trial = trial.map_err(Error::bad_input)?;
        trial.repeat = done.iter().filter(|other| other.cell == trial.cell).count() as u32 + 1;
        trial.order = next_number(done);
        Ok(Some(Proposal {
            processes: self.processes_for(&trial)?,
            search: Some(stored),
            limit_share: None,
            round: 0,
            ends_once_hopeless: false,
            trial,
        }))
    }

    /// Whether nothing is left to measure in a search.
    pub(super) fn is_over(&self, number: u32, template: &PlannedTrial, done: &[Trial]) -> bool {
        self.known(number, done).is_some() || matches!(self.step(number, template, done), Ok(None))
    }

    /// The result of a search that is over.
    fn known(&self, number: u32, done: &[Trial]) -> Option<Search> {
        let over = self.over.borrow();
        let (trials, found) = over.get(&number)?;
        (*trials == trials_of_search(number, done).count()).then(|| found.clone())
    }

    /// The results of the searches so far.
    pub fn searches(&self, done: &[Trial]) -> Vec<Search> {
        if let Some(tuner) = self.tuner {
            return tuner.searches(done);
        }
        let searches = (0..).zip(self.prepared.plan.searches());
        let found = searches.map(|(number, template)| self.so_far(number, template, done));
        found.flatten().collect()
    }

    /// The result of a search so far, from the cache if it is over; `None` before its first trial.
    fn so_far(&self, number: u32, template: &PlannedTrial, done: &[Trial]) -> Option<Search> {
        let known = self.known(number, done);
        known.or_else(|| self.search(number, template, done))
    }

    /// Computes the search anew from the trials that are done.
    fn search(&self, number: u32, template: &PlannedTrial, done: &[Trial]) -> Option<Search> {
        let first = trials_of_search(number, done).next()?;
        let (question, axis) = self.question(template);
        let about = Search {
            system: first.system.name.clone(),
            settings: template.settings_name.clone(),
            workload: template.workload.name.clone(),
            axes: axes(template),
            axis,
            ..Search::default()
        };
        let mut found = searching::conclude(&question, axis, number, done, &self.criteria, about);
        // A load that this host cannot offer is the client's limit.
        if let Some((most, Some(why))) = self.fits.get(&template.order)
            && found.high.is_none()
            && found.low == Some(*most)
        {
            found.bound = LimitedBy::Client;
            let text = format!("more than {most} does not fit this host: {why}");
            found.notes = vec![SearchNote::new(NoteOf::HostFull, text)];
        }
        Some(found)
    }

    /// A trial that is no part of a search, at the load that is a share of what a search found, if it is one.
    ///
    /// # Errors
    /// Why it has no load, in a sentence.
    pub(crate) fn at_its_load(
        &self,
        trial: &PlannedTrial,
        done: &[Trial],
    ) -> Result<Proposal, String> {
        let Some((share, axis)) = trial.share() else {
            return Ok(self.plain(trial.clone(), None));
        };
        let searches = (0..).zip(self.prepared.plan.searches());
        let searches: Vec<_> = searches
            .filter(|(_, search)| trial.is_share_of(search))
            .collect();
        // Where there are several searches, repeats use them in turn.
        let turn = (trial.repeat as usize).saturating_sub(1);
        let Some((number, template)) = turn.checked_rem(searches.len()).map(|nth| searches[nth])
        else {
            return Err(format!(
                "{} was not searched for {}: the system cannot do what the study asks for",
                share.of, trial.system
            ));
        };
        let Some(found) = self.so_far(number, template, done) else {
            return Err(format!("{} was not searched", share.of));
        };
        // The cause only: the search's own note has the details.
        let cause = found.notes.iter().find_map(|note| note.of.cause());
        let why = |reason: NoLoad| match cause {
            Some(cause) => format!("no load is {share}: {reason} ({cause})"),
            None => format!("no load is {share}: {reason}"),
        };
        let (load, end) = share.load(axis, found.low, found.high).map_err(why)?;
        let (loaded, processes) = self.loaded(trial, load).map_err(|error| {
            let error = error.lines().next().unwrap_or_default().to_owned();
            format!(
                "{share} is {}, which is not possible: {error}",
                axis.written(load)
            )
        })?;
        Ok(Proposal {
            processes,
            ..self.plain(
                loaded,
                Some(LimitShare {
                    of: share.of.clone(),
                    share: share.share,
                    axis,
                    end,
                    load,
                    at_least: found.high.is_none(),
                }),
            )
        })
    }

    /// A trial at a load, and the processes that it needs; computed once for all repeats.
    fn loaded(
        &self,
        trial: &PlannedTrial,
        load: f64,
    ) -> Result<(PlannedTrial, Option<u32>), String> {
        let key = (trial.cell.clone(), load.to_bits());
        let mut known = self.loaded.borrow_mut();
        let (workload, processes) = known
            .entry(key)
            .or_insert_with(|| {
                let loaded = trial.at_load(load).map_err(|error| error.to_string())?;
                let processes = self
                    .processes_for(&loaded)
                    .map_err(|error| error.to_string())?;
                Ok((loaded.workload, processes))
            })
            .clone()?;
        let mut loaded = trial.clone();
        loaded.workload = workload;
        Ok((loaded, processes))
    }

    /// The cells without a load, and why, once no search is left that could tell.
    pub fn not_measured(&self, done: &[Trial]) -> Vec<NotMeasured> {
        let mut cells: Vec<NotMeasured> = Vec::new();
        if self.tuner.is_some() {
            return cells;
        }
        let left = self.remaining(done);
        if left.iter().any(|trial| trial.seeks().is_some()) {
            return cells;
        }
        for trial in left {
            let Err(reason) = self.at_its_load(trial, done) else {
                continue;
            };
            if !cells.iter().any(|cell| cell.cell == trial.cell) {
                cells.push(NotMeasured {
                    cell: trial.cell.clone(),
                    system: trial.system.clone(),
                    settings: trial.settings_name.clone(),
                    workload: trial.workload.name.clone(),
                    axes: axes(trial),
                    reason,
                });
            }
        }
        cells
    }

    /// The question of a search, and the value that it varies.
    fn question(&self, template: &PlannedTrial) -> (Question, Axis) {
        let axis = template.seeks().unwrap_or(Axis::Rate);
        let (least, most) = axis.range();
        let fits = self.fits.get(&template.order);
        let fits = fits.map_or(most, |(most, _)| *most);
        let question = Question {
            flat_out: axis == Axis::Rate,
            whole: axis != Axis::Rate,
            start: fits.min(match axis {
                Axis::Rate => 100.0,
                Axis::Payload | Axis::Burst => 64.0,
                _ => 1.0,
            }),
            least,
            most: fits,
            ..Question::default()
        };
        let question = match &self.prepared.plan.search {
            Some(rules) => Question {
                width: rules.width,
                most_trials: rules.trials as usize,
                most_seconds: rules.budget as f64 / SECOND as f64,
                long_seconds: rules.long as f64 / SECOND as f64,
                ..question
            },
            None => question,
        };
        (question, axis)
    }

    /// The largest load of a search that this host can offer, and which resource is short beyond
    /// it.
    pub(super) fn largest(&self, template: &PlannedTrial) -> Result<(f64, Option<String>), Error> {
        let (question, axis) = self.question(template);
        let (least, most) = (question.least, question.most);
        if axis == Axis::Rate {
            return Ok((most, None));
        }
        let fits = |load: f64| {
            let trial = template.at_load(load).map_err(Error::bad_input)?;
            self.processes_for(&trial).map(|_| ())
        };
        let Err(mut why) = fits(most) else {
            return Ok((most, None));
        };
        fits(least)?;
        let (mut low, mut high) = (least, most);
        while high - low > 1.0_f64.max(0.01 * low) {
            let middle = ((low + high) / 2.0).floor();
            match fits(middle) {
                Ok(()) => low = middle,
                Err(error) => (high, why) = (middle, error),
            }
        }
        let why = why
            .to_string()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        Ok((low, Some(why)))
    }
}

/// The trials of a search.
fn trials_of_search(number: u32, done: &[Trial]) -> impl Iterator<Item = &Trial> {
    let mine = move |trial: &&Trial| trial.search.is_some_and(|step| step.search == number);
    done.iter().filter(mine)
}
