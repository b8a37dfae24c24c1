//! Settings that profiles wish for, put into a plan.

use std::sync::Arc;

use pubgauge_driver::{Mapping, Settings, Unsupported};

use crate::planned::{Plan, PlannedTrial};
use crate::profile::{TUNED, tuned};

impl Plan {
    /// Fills the profile `tuned` in; `driver` tells the name of a system's driver.
    pub fn tune(&mut self, driver: impl Fn(&str) -> Option<String>) {
        let tuned_trials = |t: &&mut PlannedTrial| t.profile.as_deref() == Some(TUNED);
        for trial in self.trials.iter_mut().filter(tuned_trials) {
            let flows = &trial.workload.flows;
            let flat_out = flows.iter().any(|flow| flow.is_flat_out());
            let driver = driver(&trial.system);
            if let Some(tuned) = driver.and_then(|driver| tuned().get(&driver)) {
                trial.wish = Some(tuned.settings(flat_out).into());
            }
        }
    }

    /// Adds the profiles' wishes to settings that do not set the same, as far as the systems can
    /// honour them; `resolve` as in [`Plan::split_unsupported`]. [`PlannedTrial::mappings`] lists
    /// the rest.
    pub fn grant_wishes(
        &mut self,
        mut resolve: impl FnMut(&str, &Settings) -> Result<(), Vec<Unsupported>>,
    ) {
        for trial in &mut self.trials {
            let Some(wish) = trial.wish.take() else {
                continue;
            };
            let mut wish = Arc::unwrap_or_clone(wish);
            for asked in std::iter::once(&*trial.settings).chain(&trial.of_flows) {
                // Each round removes at least one wish.
                while let Err(refused) = resolve(&trial.system, &wish.overridden_by(asked)) {
                    let before = trial.not_granted.len();
                    for refusal in refused {
                        let name = &refusal.setting;
                        if wish.has(name) && !asked.has(name) {
                            wish = wish.without_setting(name);
                            trial.not_granted.push(refusal);
                        }
                    }
                    if trial.not_granted.len() == before {
                        break;
                    }
                }
            }
            trial.settings = wish.overridden_by(&trial.settings).into();
            for asked in &mut trial.of_flows {
                *asked = wish.overridden_by(asked);
            }
        }
    }
}

impl PlannedTrial {
    /// The outcome of its settings: `resolved`, and the wishes of its profile that were not granted.
    pub fn mappings(&self, mut resolved: Vec<Mapping>) -> Vec<Mapping> {
        for wish in &self.not_granted {
            let not_granted = format!("not to be had here ({})", wish.reason);
            match resolved.iter_mut().find(|m| m.setting == wish.setting) {
                Some(own) => {
                    own.native = format!("{}; the profile's wish is {not_granted}", own.native);
                    own.value.clone_from(&wish.value);
                }
                None => resolved.push(Mapping {
                    setting: wish.setting.clone(),
                    value: wish.value.clone(),
                    native: not_granted,
                    term: None,
                    qos: None,
                }),
            }
        }
        resolved
    }
}
