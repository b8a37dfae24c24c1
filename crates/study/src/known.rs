//! The systems there are, and the caller's choices.

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
