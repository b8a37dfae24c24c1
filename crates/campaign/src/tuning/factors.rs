//! The settings of a cell that can be varied.

use pubgauge_driver::Settings;
use pubgauge_study::PlannedTrial;
use pubgauge_testbed::{Tunable, TunableScale};
use pubgauge_tuning::{Factor, Levels, Point, written};
use serde_json::Value;

use crate::Chosen;

/// A factor, and what its system's file says of it.
#[derive(Clone, Debug)]
pub struct TunedFactor {
    pub factor: Factor,
    pub about: String,
    /// The value where nothing is said, as it is written; absent where nothing is known of it.
    pub default: Option<String>,
    /// The price that a better figure may have.
    pub costs: Option<String>,
    /// The promise of the system that is given up.
    pub gives_up: Option<String>,
}

/// A setting that is not varied, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub name: String,
    pub why: String,
}

/// The factors of a cell on its system, and the settings that are left out. `given_up`: names of settings whose promise may be given
/// up.
pub fn factors(
    chosen: &Chosen,
    cell: &PlannedTrial,
    given_up: &[String],
) -> (Vec<TunedFactor>, Vec<LeftOut>) {
    let (mut factors, mut left_out) = (Vec::new(), Vec::new());
    let Ok(system) = chosen.file.variant(chosen.variant.as_deref()) else {
        return (factors, left_out);
    };
    for tunable in system.tunables() {
        let name = tunable.path(&chosen.file.name);
        let own = name
            .strip_prefix("native.")
            .and_then(|rest| rest.split_once('.'));
        // A setting of a driver that another variant has.
        if own.is_some_and(|(driver, _)| driver != chosen.driver.name()) {
            continue;
        }
        match factor(chosen, cell, (tunable, &name), given_up) {
            Ok(factor) => factors.push(factor),
            Err(why) => left_out.push(LeftOut { name, why }),
        }
    }
    (factors, left_out)
}

fn factor(
    chosen: &Chosen,
    cell: &PlannedTrial,
    (tunable, name): (&Tunable, &str),
    given_up: &[String],
) -> Result<TunedFactor, String> {
    if cell.all_settings().any(|settings| settings.has(name)) {
        return Err("the study, or its profile, sets it".to_owned());
    }
    let is_named = |given: &String| given == name || given == tunable.name();
    if let Some(what) = tunable
        .gives_up
        .as_ref()
        .filter(|_| !given_up.iter().any(is_named))
    {
        return Err(format!(
            "gives up {what}; --give-up {} varies it",
            tunable.name()
        ));
    }
    let refusal = |value: &Value| {
        let refused = cell.all_settings().find_map(|settings| {
            let with = match settings.with_setting(name, value.clone()) {
                Ok(with) => with,
                Err(error) => return Some(error.to_string()),
            };
            let refused = chosen.resolve(&with).err()?;
            Some(
                refused
                    .first()
                    .map_or_else(String::new, |one| one.reason.clone()),
            )
        });
        refused.map(|why| format!("{} is not possible here: {why}", written(value)))
    };
    let levels = levels_of(tunable, refusal)?;
    if let Some(words) = no_effect(chosen, cell, name, &levels) {
        return Err(format!("it changes nothing here ({words})"));
    }
    Ok(TunedFactor {
        factor: Factor {
            name: name.to_owned(),
            levels,
        },
        about: tunable.about.clone(),
        default: tunable.default.as_ref().map(written),
        costs: tunable.costs.clone(),
        gives_up: tunable.gives_up.clone(),
    })
}

/// The values of a tunable that are possible in a cell; `refusal` says why one is not.
fn levels_of(
    tunable: &Tunable,
    refusal: impl Fn(&Value) -> Option<String>,
) -> Result<Levels, String> {
    match (tunable.from, tunable.to) {
        (Some(from), Some(to)) => {
            let default = tunable.default.as_ref().and_then(Value::as_f64);
            let whole = [Some(to), default]
                .into_iter()
                .flatten()
                .all(|n| n.fract() == 0.0)
                && from.fract() == 0.0;
            let levels = Levels::Range {
                from,
                to,
                is_logarithmic: tunable.scale == TunableScale::Log,
                whole,
                default: default.unwrap_or(from),
            };
            if let Some(why) = levels.range_ends().iter().find_map(&refusal) {
                return Err(why);
            }
            Ok(levels)
        }
        _ => {
            let others = tunable.values.iter();
            let others = others.filter(|value| Some(*value) != tunable.default.as_ref());
            let (refused, possible): (Vec<_>, Vec<_>) = others
                .map(|value| (value.clone(), refusal(value)))
                .partition(|(_, why)| why.is_some());
            if possible.is_empty() {
                let why = refused.into_iter().find_map(|(_, why)| why);
                return Err(why.unwrap_or_else(|| "it has no other value".to_owned()));
            }
            let possible = possible.into_iter().map(|(value, _)| value);
            Ok(Levels::Choices(possible.collect()))
        }
    }
}

/// The words of a setting that becomes with every value what it is without one; `None` if it makes a difference.
fn no_effect(chosen: &Chosen, cell: &PlannedTrial, name: &str, levels: &Levels) -> Option<String> {
    let becomes = |settings: &Settings| {
        let mappings = chosen.resolve(settings).ok()?.into_iter();
        let mut own = mappings.filter(|mapping| mapping.setting == name);
        own.next().map(|mapping| mapping.native)
    };
    let values = match levels {
        Levels::Choices(values) => values.clone(),
        Levels::Range { .. } => levels.range_ends(),
    };
    let is_same = |settings: &Settings| {
        let without = becomes(settings)?;
        let with = |value: &Value| becomes(&settings.with_setting(name, value.clone()).ok()?);
        let all = values
            .iter()
            .all(|value| with(value).as_ref() == Some(&without));
        all.then_some(without)
    };
    let each: Option<Vec<String>> = cell.all_settings().map(is_same).collect();
    each?.into_iter().next()
}

/// Settings with the values of a point.
///
/// # Errors
/// If a setting cannot have its value.
pub(super) fn settings_at(
    settings: &Settings,
    factors: &[Factor],
    point: &Point,
) -> Result<Settings, String> {
    let mut at = settings.clone();
    for (factor, value) in factors.iter().zip(&point.0) {
        if let Some(value) = value {
            let with = at.with_setting(&factor.name, value.clone());
            at = with.map_err(|error| format!("{} = {}: {error}", factor.name, written(value)))?;
        }
    }
    Ok(at)
}
