//! The figures by which sides are compared, with their names in study files.

use std::borrow::Cow;
use std::sync::LazyLock;

use pubgauge_quantities::shown;
use pubgauge_results::figure::{Better, Figure as Known, Unit};
use pubgauge_results::{Trial, window};

use super::Pair;

/// A figure of a trial, or of a window of it.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its name, as in criteria where it can be one; that of a window ends in `@WINDOW`.
    pub name: Cow<'static, str>,
    /// What it is measured in.
    pub unit: Unit,
    /// Which direction is better.
    pub better: Better,
    known: &'static Known,
}

impl From<&'static Known> for Figure {
    fn from(known: &'static Known) -> Figure {
        Figure {
            name: Cow::Borrowed(&known.name),
            unit: known.unit,
            better: known.better,
            known,
        }
    }
}

impl PartialEq for Figure {
    fn eq(&self, other: &Figure) -> bool {
        self.name == other.name
    }
}

impl Figure {
    /// The figure of that name, as in studies or as in `results.json`.
    pub fn named(name: &str) -> Option<Figure> {
        let (known, window) = Known::in_window(name)?;
        let figure = FIGURES.iter().find(|figure| figure.known == known)?.clone();
        match window {
            None => Some(figure),
            Some(_) if !known.of_windows() => None,
            Some(window) => Some(Figure {
                name: format!("{}@{window}", known.name).into(),
                ..figure
            }),
        }
    }

    /// Whether windows of the measurement have it, too.
    pub fn of_windows(&self) -> bool {
        self.known.of_windows()
    }

    /// Whether it holds whatever the verdict.
    pub fn of_any_trial(&self) -> bool {
        self.known.of_any_trial
    }

    /// Whether it changes where system calls are counted.
    pub(crate) fn is_of_speed(&self) -> bool {
        self.known.is_of_speed()
    }

    /// Its value; `None` where a trial does not have it: the system is out of sight, or there are
    /// too few messages for the percentile.
    pub fn of(&self, trial: &Trial) -> Option<f64> {
        let value = self.known.of(trial, None, window::split(&self.name).1);
        value
            .ok()
            .filter(|value| value.is_finite() && *value >= 0.0)
    }

    /// A value with its unit.
    pub fn show(&self, value: f64) -> String {
        match self.unit {
            Unit::Nanoseconds => shown::time(value),
            Unit::PerSecond => shown::rate(value),
            Unit::MicrosecondsPerMessage => format!("{} µs", shown::digits(value)),
            Unit::Bytes => shown::bytes(value.round() as u64),
            Unit::Share => format!("{} %", shown::digits(100.0 * value)),
            Unit::BytesPerSecond => format!("{}/s", shown::bytes(value.round() as u64)),
            Unit::Messages | Unit::Seconds | Unit::Cores | Unit::Count | Unit::Verdict => {
                shown::digits(value)
            }
        }
    }
}

/// All figures that can be compared: those that one trial has by itself. Numbers of messages are compared as shares and
/// rates: how many there are depends on how many were due.
pub static FIGURES: LazyLock<Vec<Figure>> = LazyLock::new(|| {
    let compared = |known: &&Known| {
        known.is_of_one_trial() && !matches!(known.unit, Unit::Messages | Unit::Verdict)
    };
    Known::all()
        .iter()
        .filter(compared)
        .map(Figure::from)
        .collect()
});

/// The figures that a pair of cells is compared by as a default: latency where traffic is paced
/// (flat out it is that of queues), the delivered rate, loss, and processor time where both sides
/// have it.
pub fn figures_of(pair: &Pair<'_>) -> Vec<Figure> {
    let all = || pair.a.iter().chain(&pair.b);
    let flat_out = all().any(|t| t.workload.flat_out);
    let shown = |figure: &Figure| match &*figure.name {
        "latency.p50" | "latency.p99" => !flat_out && all().any(|t| t.latency_ns.count > 0),
        "round-trip.p50" => all().any(|t| t.round_trip_ns.is_some_and(|d| d.count > 0)),
        "delivered-rate" | "loss-share" => all().any(|t| t.expected > 0),
        "published-rate" => all().all(|t| t.expected == 0),
        "cpu-per-message" => all().all(|t| figure.of(t).is_some()),
        _ => false,
    };
    FIGURES.iter().filter(|f| shown(f)).cloned().collect()
}
