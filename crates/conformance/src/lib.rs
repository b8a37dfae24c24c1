//! The conformance suite: what every driver must do, checked through the seam against a running
//! system. A driver's own tests call [`check`]; what a system cannot do is a named [`Exception`]
//! with its reason, and its check still runs.
//!
//! [`prove`] tries one [capability](pubgauge_driver::Capability) that a system claims.

mod capabilities;
mod checks;
mod limits;
mod pair;
mod promises;
mod proof;
mod retention;
mod rig;
mod setup;
mod violation;

pub use capabilities::prove;
pub use proof::Proof;
pub use violation::Violation;

use pubgauge_driver::seam::Target;
use pubgauge_driver::settings::Settings;
use pubgauge_driver::{Check, Driver, Lifecycle};
use setup::CheckSetup;

/// A check that a system is known to fail, and why.
#[derive(Clone, Debug)]
pub struct Exception<'a> {
    /// The check's name.
    pub check: &'a str,
    /// Why the system cannot do it.
    pub reason: String,
    /// Whether the check may also pass.
    pub sometimes: bool,
}

impl<'a> Exception<'a> {
    /// A check that always fails.
    pub fn always(check: &'a str, reason: impl Into<String>) -> Self {
        Exception {
            check,
            reason: reason.into(),
            sometimes: false,
        }
    }

    /// The checks of messages that were accepted before a client or its fleet ended, which sometimes fail.
    pub fn at_the_end(reason: &str) -> [Exception<'static>; 2] {
        ["disconnect-takes-nothing-back", "close-takes-nothing-back"]
            .map(|check| Exception::sometimes(check, reason))
    }

    /// A check that sometimes fails.
    pub fn sometimes(check: &'a str, reason: impl Into<String>) -> Self {
        Exception {
            sometimes: true,
            ..Exception::always(check, reason)
        }
    }
}

/// The outcome of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conformity {
    /// The system passes it.
    Passed,
    /// The system fails it as expected: the exception's reason, and what this run saw.
    Excepted(String),
    /// The system fails it; or passes it although an exception says that it always fails.
    Failed(String),
}

/// Runs all checks that need no [`Lifecycle`]. `target` has the address of the running system.
/// Folders such as `scratch` are made and removed by the caller.
pub fn check(
    driver: &dyn Driver,
    target: &Target,
    settings: &Settings,
    exceptions: &[Exception<'_>],
) -> Vec<(&'static str, Conformity)> {
    run(driver, target, settings, exceptions, None)
}

/// Runs all checks, also those that stop or kill the system's server. Where the server ends by itself in a check
/// ([`Lifecycle::exit_reason`]), that is the outcome of this check, and the last one.
pub fn check_with_kill(
    driver: &dyn Driver,
    target: &Target,
    settings: &Settings,
    exceptions: &[Exception<'_>],
    server: &mut dyn Lifecycle,
) -> Vec<(&'static str, Conformity)> {
    run(driver, target, settings, exceptions, Some(server))
}

fn run<'a>(
    driver: &'a dyn Driver,
    target: &'a Target,
    settings: &Settings,
    exceptions: &[Exception<'_>],
    mut server: Option<&'a mut dyn Lifecycle>,
) -> Vec<(&'static str, Conformity)> {
    let mut setup = CheckSetup::new(driver, target, settings.clone());
    let mut outcomes = Vec::new();
    let judge = |setup: &mut CheckSetup<'_>, check: Check| {
        setup.next();
        let name = check.name();
        let exception = exceptions.iter().find(|e| e.check == name);
        let outcome = match (checks::run(check, setup), exception) {
            (Ok(()), None) => Conformity::Passed,
            (Ok(()), Some(exception)) if exception.sometimes => Conformity::Passed,
            (Err(why), Some(exception)) => {
                Conformity::Excepted(format!("{}; this time: {why}", exception.reason))
            }
            (Err(why), None) => Conformity::Failed(why.to_string()),
            (Ok(()), Some(exception)) => Conformity::Failed(format!(
                "it holds, although an exception says it does not ({}): remove the exception",
                exception.reason
            )),
        };
        (name, outcome)
    };
    let (of_a_server, of_all): (Vec<Check>, Vec<Check>) =
        Check::ALL.iter().partition(|check| check.needs_lifecycle());
    for check in of_all {
        outcomes.push(judge(&mut setup, check));
        if has_ended(server.as_deref_mut(), &mut outcomes) {
            return outcomes;
        }
    }
    if let Some(server) = server {
        setup.server = Some(server);
        for check in of_a_server {
            outcomes.push(judge(&mut setup, check));
            if has_ended(setup.server.as_deref_mut(), &mut outcomes) {
                break;
            }
        }
    }
    outcomes
}

/// Whether the server has ended by itself in the last check, which then failed because of it.
fn has_ended(
    server: Option<&mut (dyn Lifecycle + '_)>,
    outcomes: &mut [(&'static str, Conformity)],
) -> bool {
    let Some((_, outcome)) = outcomes
        .last_mut()
        .filter(|(_, of)| *of != Conformity::Passed)
    else {
        return false;
    };
    let Some(how) = server.and_then(|server| server.exit_reason()) else {
        return false;
    };
    *outcome = Conformity::Failed(format!("the system ended meanwhile: {how}"));
    true
}

/// All checks that failed, with the reasons; empty if the driver conforms.
pub fn failures(outcomes: &[(&str, Conformity)]) -> Vec<String> {
    let failed = |(name, outcome): &(&str, Conformity)| match outcome {
        Conformity::Failed(why) => Some(format!("{name}: {why}")),
        _ => None,
    };
    outcomes.iter().filter_map(failed).collect()
}
