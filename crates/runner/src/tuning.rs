//! Trials as a tuning sees them: the score of a point, from its trials alone. Pure: a tuning that was cut off goes on from the trials
//! on disk.

use pubgauge_figures::criterion::CriterionSpec;
use pubgauge_figures::figure::figure;
use pubgauge_figures::model::{Status, Trial};
use pubgauge_figures::search::{LimitedBy, Purpose as StepPurpose, Search};
use pubgauge_search::{Axis, Question, Step};
use pubgauge_tuning::{Finding, Objective};

use crate::searching;

/// Share of what the default delivers flat out, below which a search is not gone on with: such settings are hopeless.
const FAR_BEHIND: f64 = 0.4;

/// The finding of a point, and why it has no score, if it has none.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    pub finding: Finding,
    pub why: Vec<String>,
}

impl Told {
    fn without_score(finding: Finding, why: Vec<String>) -> Told {
        Told { finding, why }
    }
}

/// The figure that an objective looks at; a search has it for a limit.
pub fn figure_name(objective: Objective) -> &'static str {
    match objective {
        Objective::P99 => "latency.p99",
        Objective::Limit => "limit",
        Objective::Cost => "cpu-per-message",
    }
}

/// The finding of a point that one trial is enough for. Only a valid trial has a score: what an overloaded system, a lossy
/// one or a busy client shows is no figure of these settings.
pub fn judge_trial(objective: Objective, trial: &Trial) -> Told {
    let reasons = trial.verdict.sentences();
    match trial.verdict.status {
        Status::Valid => {}
        // The load was not carried: the system, or a window of the settings, was the limit.
        Status::Overloaded | Status::Lossy | Status::SettingBound => {
            return Told::without_score(Finding::Hopeless, reasons);
        }
        Status::Broken if !trial.circumstances.system_died.is_empty() => {
            return Told::without_score(Finding::Hopeless, reasons);
        }
        Status::HostBound
        | Status::TooShort
        | Status::Unsteady
        | Status::ClientBound
        | Status::Broken => return Told::without_score(Finding::Nothing, reasons),
    }
    let name = figure_name(objective);
    match figure(trial, None, name).filter(|value| *value > 0.0) {
        Some(value) => Told {
            finding: Finding::Score(objective.score(value)),
            why: Vec::new(),
        },
        None => {
            let why = format!("too few messages for {name}: a longer measurement has more");
            Told::without_score(Finding::Nothing, vec![why])
        }
    }
}

/// A search for the limit of one point, by its number among the searches of the run.
#[derive(Clone, Copy, Debug)]
pub struct PointSearch<'a> {
    pub question: &'a Question,
    pub axis: Axis,
    pub number: u32,
    pub criteria: &'a [CriterionSpec],
}

impl PointSearch<'_> {
    /// The next step, or `None` at its end. `default_flat_out`: what the default delivered flat out, where that is known.
    pub fn next(&self, trials: &[Trial], default_flat_out: Option<f64>) -> Option<Step> {
        if self.is_far_behind(trials, default_flat_out) {
            return None;
        }
        let step = searching::next(self.question, self.axis, self.number, trials, self.criteria);
        match step {
            Step::FlatOut | Step::Short(_) => Some(step),
            // Points are compared by short trials, and again in pairs.
            Step::Long(_) | Step::Cost(_) | Step::End => None,
        }
    }

    /// The rate that it delivered flat out, in messages a second.
    pub fn flat_out(&self, trials: &[Trial]) -> Option<f64> {
        let own = |trial: &&Trial| {
            let step = trial.search;
            step.is_some_and(|s| s.search == self.number && s.purpose == StepPurpose::FlatOut)
        };
        let mut delivered = trials
            .iter()
            .filter(own)
            .map(|t| t.messages.delivered_msgs_per_s);
        delivered.next_back()
    }

    fn is_far_behind(&self, trials: &[Trial], default_flat_out: Option<f64>) -> bool {
        let both = self.flat_out(trials).zip(default_flat_out);
        both.is_some_and(|(own, default)| own < FAR_BEHIND * default)
    }

    /// Its finding. A limit of the client's is no figure of the system.
    pub fn judge(&self, trials: &[Trial], default_flat_out: Option<f64>) -> Told {
        if self.is_far_behind(trials, default_flat_out) {
            let why = "flat out it is far behind the default: its limit was not searched for";
            return Told::without_score(Finding::Hopeless, vec![why.to_owned()]);
        }
        let found = searching::conclude(
            self.question,
            self.axis,
            self.number,
            trials,
            self.criteria,
            Search::default(),
        );
        let notes = || found.notes.iter().map(|note| note.text.clone()).collect();
        match (found.low, found.high, found.bound) {
            (_, _, LimitedBy::Client) => Told::without_score(Finding::Nothing, notes()),
            (Some(low), Some(high), _) => Told {
                finding: Finding::Score(Objective::Limit.score((low * high).sqrt())),
                why: Vec::new(),
            },
            (None, _, LimitedBy::System) => Told::without_score(Finding::Hopeless, notes()),
            _ => Told::without_score(Finding::Nothing, notes()),
        }
    }
}
