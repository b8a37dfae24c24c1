//! The capabilities of systems: by their drivers, and by what was measured to be broken.

use pubgauge_driver::{Answer, Capability, Driver, Support, Target};
use pubgauge_figures::model::{CapabilityAnswer, SystemCapabilities};
use pubgauge_testbed::SystemFile;

use crate::Prepared;

/// One answer of a system: its driver's, unless its file says that a check fails on it.
pub fn answer(
    file: &SystemFile,
    target: &Target,
    driver: &dyn Driver,
    capability: Capability,
) -> Answer {
    let mut answer = driver.capability(capability, target);
    if let Some(remark) = file.remarks.get(&capability.to_string()) {
        answer.words = format!("{}; measured: {remark}", answer.words);
    }
    match file.deviation(capability) {
        Some(measured) if answer.support != Support::Unsupported => Answer {
            support: Support::Broken,
            words: measured.to_string(),
        },
        _ => answer,
    }
}

/// All answers of a system in one variant, in the order of [`Capability::ALL`].
pub fn of_system(name: &str, file: &SystemFile, driver: &dyn Driver) -> SystemCapabilities {
    let target = Target {
        endpoints: file.endpoints.clone(),
        features: file.features.clone(),
        ..Target::default()
    };
    let one = |capability| CapabilityAnswer {
        capability,
        answer: answer(file, &target, driver, capability),
    };
    SystemCapabilities {
        system: name.to_owned(),
        answers: Capability::ALL.into_iter().map(one).collect(),
    }
}

/// The answers of each system of a plan.
pub fn of_plan(prepared: &Prepared) -> Vec<SystemCapabilities> {
    let answers = prepared.systems.iter().map(|(name, chosen)| {
        let file = chosen.file.variant(chosen.variant.as_deref());
        let file = file.unwrap_or_else(|_| chosen.file.clone());
        of_system(name, &file, chosen.driver.as_ref())
    });
    answers.collect()
}
