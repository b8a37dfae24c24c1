//! A plan with the systems that it runs on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use pubgauge_driver::{Carries, Driver, Mapping, Settings, Tls, Unsupported};
use pubgauge_figures::model::AxisValue;
use pubgauge_quantities::lists::unique;
use pubgauge_runner::ResolvedSettings;
use pubgauge_study::{Plan, PlannedTrial};
use pubgauge_testbed::{SystemFile, Testbed};
use pubgauge_tuning::written;
use serde::{Deserialize, Serialize};

/// A plan, and the systems it runs on.
pub struct Prepared {
    /// The study as given: the file's text, or what the flags stand for.
    pub given: String,
    /// The plan, with unsupported trials separated.
    pub plan: Plan,
    /// The systems, by the name that the plan uses.
    pub systems: BTreeMap<String, Chosen>,
    /// The folder that the study's relative paths start from.
    pub folder: PathBuf,
    /// The systems on this machine.
    pub found: AvailableSystems,
    /// Processes on each side for trials that ask for no number of them, where one process is not
    /// enough.
    pub processes: Option<u32>,
}

impl Prepared {
    /// Sets how all systems that have TLS are reached.
    pub fn reached_by(mut self, tls: &Option<Tls>) -> Prepared {
        for chosen in self.systems.values_mut() {
            let variant = chosen.file.variant(chosen.variant.as_deref());
            // One with a certificate of the run is checked by that.
            if !variant.is_ok_and(|system| system.has_certificate()) {
                chosen.tls.clone_from(tls);
            }
        }
        let unchecked = self.unchecked();
        self.plan.notes.extend(unchecked);
        self
    }

    /// Notes on systems whose certificate goes unchecked, and on what that gives up.
    fn unchecked(&self) -> Vec<String> {
        let notes = self.plan.trials.iter().flat_map(|trial| {
            let mappings = self.resolved(&trial.system, &trial.settings).into_iter();
            let of_tls = mappings.filter(|mapping| mapping.setting == "tls");
            of_tls.map(move |mapping| format!("{}: {}", trial.system, mapping.native))
        });
        unique(notes)
    }

    /// The outcome of a trial's settings on its system, wishes that were not granted included.
    pub fn mappings(&self, trial: &PlannedTrial) -> Vec<Mapping> {
        trial.mappings(self.resolved(&trial.system, &trial.settings))
    }

    /// The outcome of settings on a system.
    pub fn resolved(&self, system: &str, settings: &Settings) -> Vec<Mapping> {
        let chosen = self.systems.get(system);
        let resolved = chosen.and_then(|chosen| chosen.resolve(settings).ok());
        resolved.unwrap_or_default()
    }
}

/// The values of the grid in a cell.
pub fn axes(trial: &PlannedTrial) -> Vec<AxisValue> {
    let value = |(name, value): &(String, String)| AxisValue {
        name: name.clone(),
        value: value.clone(),
    };
    trial.axes.iter().map(value).collect()
}

/// A system of a plan.
pub struct Chosen {
    pub file: SystemFile,
    /// The variant that was asked for.
    pub variant: Option<String>,
    pub driver: Arc<dyn Driver>,
    /// How it is reached by TLS, if the arguments say so.
    pub tls: Option<Tls>,
}

impl Chosen {
    /// Settings with what they become; of those that the system does not have nothing.
    pub fn resolved(&self, settings: &Settings) -> ResolvedSettings {
        ResolvedSettings {
            settings: settings.clone(),
            mappings: self.resolve(settings).unwrap_or_default(),
        }
    }

    /// The outcome of settings on this system, and whether its certificate goes unchecked.
    pub fn resolve(&self, settings: &Settings) -> Result<Vec<Mapping>, Vec<Unsupported>> {
        let mut target =
            Testbed::planned_target(&self.file, self.variant.as_deref()).map_err(|e| {
                vec![Unsupported {
                    setting: "variant".into(),
                    value: self.variant.clone().unwrap_or_default(),
                    reason: e.to_string(),
                }]
            })?;
        target.tls.clone_from(&self.tls);
        let mut mappings = self.driver.resolve(settings, &target)?;
        mappings.extend(target.unchecked(self.driver.schemes()));
        mappings.extend(self.resolve_options(settings)?);
        Ok(mappings)
    }

    /// The options of the system's own configuration that settings give, as the lines that they become.
    fn resolve_options(&self, settings: &Settings) -> Result<Vec<Mapping>, Vec<Unsupported>> {
        let Some(options) = settings.options.get(&self.file.name) else {
            return Ok(Vec::new());
        };
        let Ok(system) = self.file.variant(self.variant.as_deref()) else {
            return Ok(Vec::new());
        };
        let (mut mappings, mut refused) = (Vec::new(), Vec::new());
        for (name, value) in options {
            let setting = format!("options.{}.{name}", self.file.name);
            let shown = written(value);
            match system.option_lines(name, value) {
                Ok(lines) => mappings.push(Mapping {
                    setting,
                    value: shown,
                    native: lines.join("; "),
                    term: None,
                    qos: None,
                }),
                Err(reason) => refused.push(Unsupported {
                    setting,
                    value: shown,
                    reason,
                }),
            }
        }
        if refused.is_empty() {
            Ok(mappings)
        } else {
            Err(refused)
        }
    }

    /// In how far recorded messages travel on this system as they were recorded.
    pub fn carries(&self, settings: &Settings) -> Carries {
        let target = Testbed::planned_target(&self.file, self.variant.as_deref());
        target.map_or_else(
            |_| Carries::default(),
            |target| self.driver.carries(settings, &target),
        )
    }
}

/// The systems on this machine, in the order in which they run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AvailableSystems {
    /// Systems that `"available"` stands for.
    pub plain: Vec<String>,
    /// Systems that `"available-variants"` stands for.
    pub variants: Vec<String>,
    /// Systems that `"first-look"` stands for.
    pub first_look: Vec<String>,
}
