//! Who clients are to a system, for the plan: what a system has not, and what the rest becomes.

use std::collections::{BTreeMap, BTreeSet};

use pubgauge_driver::{Identification, Scheme, Settings, Unsupported};
use pubgauge_study::{Plan, PlannedTrial};
use pubgauge_testbed::Testbed;
use pubgauge_workload::{Device, Identity};

use crate::Chosen;

/// A part of an identity, in words.
type Part = fn(&Identity) -> Option<String>;

/// The parts of an identity, by their keys in a study.
const PARTS: [(&str, Part); 3] = [
    ("identities: client-id", |own| own.id.clone()),
    ("identities: user", |own| {
        own.user
            .clone()
            .or_else(|| own.password.as_ref().map(|_| "(a password alone)".into()))
    }),
    ("identities: certs", |own| {
        let certificate = own.certificate.as_ref()?;
        Some(certificate.file.display().to_string())
    }),
];

fn identities(trial: &PlannedTrial) -> impl Iterator<Item = &Identity> {
    let devices = trial.workload.devices.iter();
    devices.filter_map(|device: &Device| device.identity.as_deref())
}

/// The answers of a system to the parts, in the order of [`PARTS`].
fn answers(identification: Identification) -> [Result<&'static str, &'static str>; 3] {
    let Identification {
        id,
        user,
        certificate,
    } = identification;
    [id, user, certificate]
}

/// The first part of a trial's identities that its system has not, and why.
pub(crate) fn refused(trial: &PlannedTrial, chosen: &Chosen) -> Option<Unsupported> {
    identities(trial).next()?;
    let target = Testbed::planned_target(&chosen.file, chosen.variant.as_deref()).ok()?;
    let schemes = chosen.driver.schemes();
    let encrypted = target.endpoints.iter().any(|endpoint| {
        Scheme::find(endpoint, schemes).is_some_and(|scheme| scheme.encryption.is_on())
    });
    for settings in trial.all_settings() {
        let mut answers = answers(chosen.driver.identification(settings, &target));
        if !encrypted && answers[2].is_ok() {
            answers[2] = Err("its address has no TLS, in which alone certificates are shown");
        }
        for ((setting, part), answer) in PARTS.iter().zip(answers) {
            let Err(reason) = answer else { continue };
            if let Some(value) = identities(trial).find_map(part) {
                return Some(Unsupported {
                    setting: (*setting).into(),
                    value,
                    reason: reason.into(),
                });
            }
        }
    }
    None
}

/// One sentence for each system, of what the parts become.
pub(crate) fn remarks(plan: &Plan, systems: &BTreeMap<String, Chosen>) -> Vec<String> {
    let mut all = BTreeSet::new();
    for trial in &plan.trials {
        let Some(chosen) = systems.get(&trial.system) else {
            continue;
        };
        let settings: &Settings = &trial.settings;
        let target = Testbed::planned_target(&chosen.file, chosen.variant.as_deref());
        let Ok(target) = target else { continue };
        let answers = answers(chosen.driver.identification(settings, &target));
        let given = |part: Part| identities(trial).filter(|own| part(own).is_some()).count();
        let told = PARTS.iter().zip(answers).filter_map(|((_, part), answer)| {
            let clients = given(*part);
            (clients > 0).then_some((clients, answer.ok()?))
        });
        let told: Vec<String> = told
            .map(|(clients, words)| {
                format!("{words} ({clients} of {})", trial.workload.devices.len())
            })
            .collect();
        if !told.is_empty() {
            let workload = &trial.workload.name;
            all.insert(format!(
                "{}, {workload}: clients have identities of their own: {}",
                trial.system,
                told.join("; ")
            ));
        }
    }
    all.into_iter().collect()
}
