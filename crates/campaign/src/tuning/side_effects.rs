//! Figures that the best settings made worse, beside the one that they were chosen for.

use pubgauge_figures::figure::{Better, Figure, figure};
use pubgauge_figures::model::{Status, Trial};
use pubgauge_quantities::stats::Estimate;
use pubgauge_tuning::Gain;
use serde::Serialize;

use super::{DEFAULT, TUNED};

/// The figures that are looked at.
const FIGURES: [&str; 9] = [
    "latency.p50",
    "latency.p99",
    "latency.p99.9",
    "delivered-rate",
    "cpu-per-message",
    "client-cpu",
    "system-cpu",
    "client-memory",
    "system-memory",
];
/// Fewest pairs that an interval is drawn from.
const FEWEST_PAIRS: usize = 5;
/// A change up to this share is none.
const MARGIN: f64 = 0.02;

/// A figure that became worse.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SideEffect {
    pub figure: String,
    /// The figure of the best settings over the default's, in pairs.
    pub gain: Gain,
}

/// The figures that are worse in the pairs of trials: the interval of each leaves out no change.
pub fn side_effects(trials: &[Trial]) -> Vec<SideEffect> {
    let known = FIGURES.iter().filter_map(|name| Figure::named(name));
    known
        .filter_map(|known| side_effect(known, trials))
        .collect()
}

fn side_effect(known: &Figure, trials: &[Trial]) -> Option<SideEffect> {
    let value = |settings: &str, nth: u32| {
        let valid = trials
            .iter()
            .filter(|trial| trial.verdict.status == Status::Valid);
        let mut own =
            valid.filter(|t| t.search.is_none() && t.settings_name == settings && t.repeat == nth);
        let value = figure(own.next()?, None, &known.name)?;
        (value > 0.0).then(|| value.ln())
    };
    let last = trials
        .iter()
        .filter(|trial| trial.settings_name == TUNED)
        .map(|t| t.repeat)
        .max()?;
    let pairs = (1..=last).filter_map(|nth| Some(value(TUNED, nth)? - value(DEFAULT, nth)?));
    let differences: Vec<f64> = pairs.collect();
    if differences.len() < FEWEST_PAIRS {
        return None;
    }
    let change = Estimate::mean_of(&differences);
    // One of several figures: some would seem worse by chance.
    let (low, high) = change.interval(FIGURES.len());
    let is_worse = match known.better {
        Better::Less => low > MARGIN,
        Better::More => high < -MARGIN,
    };
    is_worse.then(|| SideEffect {
        figure: known.name.to_string(),
        gain: Gain {
            ratio: change.middle().exp(),
            low: Some(low.exp()),
            high: Some(high.exp()),
        },
    })
}
