//! The figures by which sides are compared, with their names in study files.

use std::borrow::Cow;

use pubgauge_figures::Trial;
use pubgauge_figures::figure::{Figure, Unit};

use super::Pair;

/// A figure of the catalogue by the name that asks for it: that of a window ends in `@WINDOW`.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedFigure {
    pub name: Cow<'static, str>,
    /// The figure.
    pub known: &'static Figure,
}

impl From<&'static Figure> for NamedFigure {
    fn from(figure: &'static Figure) -> NamedFigure {
        NamedFigure {
            name: Cow::Borrowed(&figure.name),
            known: figure,
        }
    }
}

impl NamedFigure {
    /// The figure of that name, as in studies or as in `results.json`, if it can be compared.
    pub fn named(name: &str) -> Option<NamedFigure> {
        let (figure, window) = Figure::in_window(name)?;
        match window {
            _ if !is_comparable(figure) => None,
            None => Some(figure.into()),
            Some(_) if !figure.of_windows() => None,
            Some(window) => Some(NamedFigure {
                name: format!("{}@{window}", figure.name).into(),
                known: figure,
            }),
        }
    }

    /// Its value; `None` where a trial does not have it: the system is out of sight, or there are
    /// too few messages for the percentile.
    pub fn value_in(&self, trial: &Trial) -> Option<f64> {
        let (_, window) = Figure::in_window(&self.name)?;
        let value = self.known.value_in(trial, None, window).ok();
        value.filter(|value| value.is_finite() && *value >= 0.0)
    }
}

/// The figures that can be compared.
pub fn comparable() -> impl Iterator<Item = NamedFigure> {
    let all = Figure::all().iter().filter(|figure| is_comparable(figure));
    all.map(NamedFigure::from)
}

/// Whether one trial has it by itself. Numbers of messages are compared as shares and rates: how many there are depends
/// on how many were due.
fn is_comparable(figure: &Figure) -> bool {
    figure.is_of_one_trial()
        && !matches!(
            figure.unit,
            Unit::Messages | Unit::Deliveries | Unit::Verdict
        )
}

/// The figures that a pair of cells is compared by as a default: latency where traffic is paced
/// (flat out it is that of queues), the delivered rate, loss, and processor time where both sides
/// have it.
pub fn figures_of(pair: &Pair<'_>) -> Vec<NamedFigure> {
    let all = || pair.a.iter().chain(&pair.b);
    let flat_out = all().any(|t| t.workload.flat_out);
    let shown = |figure: &NamedFigure| match &*figure.name {
        "latency.p50" | "latency.p99" => {
            !flat_out && all().any(|t| t.messages.latency_ns.count > 0)
        }
        "round-trip.p50" => all().any(|t| t.messages.round_trip_ns.is_some_and(|d| d.count > 0)),
        "delivered-rate" | "loss-share" => all().any(|t| t.messages.expected > 0),
        "published-rate" => all().all(|t| t.messages.expected == 0),
        "cpu-per-message" => all().all(|t| figure.value_in(t).is_some()),
        _ => false,
    };
    comparable().filter(shown).collect()
}
