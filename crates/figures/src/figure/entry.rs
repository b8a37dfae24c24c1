//! An entry of the catalogue, and what values of entries are made with.

use super::column::FigureColumn;
use super::scope::Scope;
use super::{
    Better::{self, Less, More},
    FigureSource, Unit,
};
use crate::model::{Connections, Interruption, Trial};

/// A figure that is not a statistic of a distribution.
pub(super) struct CatalogueEntry {
    pub(super) name: &'static str,
    /// Its name in `results.json`, in exports and in a stored criterion.
    pub(super) recorded: &'static str,
    pub(super) unit: Unit,
    pub(super) better: Better,
    pub(super) value: FigureSource,
    pub(super) says: &'static str,
    /// It is a count, or a share of counts: it holds whatever the verdict, because a criterion on loss is about lossy
    /// trials.
    pub(super) of_any_trial: bool,
    /// A trial in which the system failed does not meet a criterion that bounds it: from above where less is better
    /// (latency, loss), from below where more is (rates).
    pub(super) promised: bool,
    pub(super) column: Option<FigureColumn>,
}

pub(super) const fn entry(
    name: &'static str,
    recorded: &'static str,
    (unit, better): (Unit, Better),
    value: FigureSource,
    says: &'static str,
) -> CatalogueEntry {
    CatalogueEntry {
        name,
        recorded,
        unit,
        better,
        value,
        says,
        of_any_trial: false,
        promised: false,
        column: None,
    }
}

impl CatalogueEntry {
    pub(super) const fn of_any_trial(self) -> CatalogueEntry {
        CatalogueEntry {
            of_any_trial: true,
            ..self
        }
    }

    pub(super) const fn promised(self) -> CatalogueEntry {
        CatalogueEntry {
            promised: true,
            ..self
        }
    }

    /// The table of results has it.
    pub(super) const fn column(self, column: FigureColumn) -> CatalogueEntry {
        CatalogueEntry {
            column: Some(column),
            ..self
        }
    }
}

pub(super) const GOOD: (Unit, Better) = (Unit::Messages, More);
pub(super) const BAD: (Unit, Better) = (Unit::Messages, Less);
pub(super) const GOOD_DELIVERIES: (Unit, Better) = (Unit::Deliveries, More);
pub(super) const BAD_DELIVERIES: (Unit, Better) = (Unit::Deliveries, Less);
pub(super) const RATE: (Unit, Better) = (Unit::PerSecond, More);
pub(super) const SHARE: (Unit, Better) = (Unit::Share, Less);
pub(super) const COST: (Unit, Better) = (Unit::MicrosecondsPerMessage, Less);
pub(super) const CALLS: (Unit, Better) = (Unit::Count, Less);

pub(super) type OfTrial = fn(&Trial) -> Option<f64>;

/// A value of a trial, a flow or a window.
pub(super) const fn of_part(value: fn(&Scope<'_>) -> Option<f64>) -> FigureSource {
    FigureSource::OfPart(value)
}

/// A value of a whole trial alone.
pub(super) const fn of_whole_trial(value: OfTrial) -> FigureSource {
    FigureSource::OfTrial(value)
}

/// A value of a whole trial alone that is counted where the study asks for it.
pub(super) const fn on_request(value: OfTrial) -> FigureSource {
    FigureSource::OnRequest(value)
}

/// The connections of a trial in which any was made.
pub(super) fn connections_made(trial: &Trial) -> Option<&Connections> {
    Some(&trial.connections).filter(|connections| connections.made > 0)
}

/// The longest of a trial's interruptions; `None` without any, or if one did not end.
pub(super) fn longest(trial: &Trial, length: fn(&Interruption) -> Option<f64>) -> Option<f64> {
    let each: Option<Vec<f64>> = trial.interruptions.iter().map(length).collect();
    each?.into_iter().reduce(f64::max)
}

pub(super) fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then_some(part / whole)
}

pub(super) fn share(part: u64, whole: u64) -> Option<f64> {
    ratio(part as f64, whole as f64)
}

/// A share of the measurement; `None` where it was not observed.
pub(super) fn observed(share: f64) -> Option<f64> {
    (share > 0.0).then_some(share)
}

/// First deliveries that came during the measurement, those to slow and late subscribers among them.
pub(super) fn deliveries(trial: &Trial) -> f64 {
    let slow = trial.slow.as_ref().map_or(0, |slow| slow.taken);
    let late = trial.late.as_ref().map_or(0, |late| late.within);
    (trial.messages.delivered_msgs_per_s * trial.duration_s).round() + (slow + late) as f64
}

pub(super) fn per_delivery(count: u64, trial: &Trial) -> Option<f64> {
    ratio(count as f64, deliveries(trial))
}

/// Microseconds of processor time per first delivery, both of the measurement alone; without subscribers, per message
/// taken.
pub fn per_message(seconds: f64, trial: &Trial) -> Option<f64> {
    let messages = if trial.messages.expected > 0 {
        deliveries(trial)
    } else {
        trial.messages.published as f64
    };
    ratio(seconds * 1e6, messages)
}

/// Of client and system together. A broker out of sight would seem to cost nothing: there is no figure then. A
/// brokerless system works inside the client and has no time of its own.
pub(super) fn cpu_per_message(trial: &Trial) -> Option<f64> {
    let inside = trial.system_in_client().then_some(0.0);
    per_message(
        trial.client_cpu_s.total() + trial.system_cpu_s.or(inside)?,
        trial,
    )
}

pub(super) fn publishers_cpu(trial: &Trial) -> Option<f64> {
    observed(trial.client_cpu_s.publishers / trial.duration_s)
}
