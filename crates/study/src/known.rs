//! The systems there are, and the caller's choices.

use pubgauge_quantities::spelling::did_you_mean;

use std::collections::BTreeMap;

/// The systems there are, and the caller's choices.
#[derive(Clone, Debug, Default)]
pub struct PlanOptions {
    /// The systems there are.
    pub known: KnownSystems,
    /// Run on these instead of the study's systems (`--on`); a name, or an address with `://`.
    pub on: Vec<String>,
    /// Repeats instead of the study's (`--repeats`).
    pub repeats: Option<u32>,
}

impl PlanOptions {
    /// Plans as on a machine on which there are these systems, and no others are known.
    pub fn with_systems<S: Into<String>>(names: impl IntoIterator<Item = S>) -> PlanOptions {
        let names: Vec<String> = names.into_iter().map(S::into).collect();
        PlanOptions {
            known: KnownSystems {
                all: names.clone(),
                found: names.clone(),
                found_variants: names.clone(),
                first_look: names,
                ..KnownSystems::default()
            },
            ..PlanOptions::default()
        }
    }
}

/// The systems there are.
#[derive(Clone, Debug, Default)]
pub struct KnownSystems {
    /// Names of all systems that pubgauge has a file for.
    pub all: Vec<String>,
    /// Those that are found on this machine, in the order in which they are to be run.
    pub found: Vec<String>,
    /// The systems found in every variant, as `NAME:VARIANT` where there are several.
    pub found_variants: Vec<String>,
    /// Those found that are part of the first look: they start at once and need little.
    pub first_look: Vec<String>,
    /// Number of brokers of systems that run already; 1 if absent. An address tells its own number.
    pub brokers: BTreeMap<String, u32>,
}

/// Message and hint for a name that no system has.
pub(crate) fn no_such_system(name: &str, known: &[String]) -> (String, String) {
    let lists = "`pubgauge systems` lists them".to_owned();
    if let Some((system, variant)) = name.split_once(':')
        && known.iter().any(|k| k == system)
    {
        let own = known.iter().filter_map(|k| k.strip_prefix(system));
        let own: Vec<_> = own.filter_map(|k| k.strip_prefix(':')).collect();
        let message = format!("`{system}` has no variant `{variant}`");
        return if own.is_empty() {
            (format!("{message}: it has none"), lists)
        } else {
            (message, format!("its variants are `{}`", own.join("`, `")))
        };
    }
    let near = did_you_mean(name, known);
    let message = format!("there is no system `{name}`{near}");
    (message, lists)
}
