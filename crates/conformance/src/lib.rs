//! The conformance suite: what every driver must do, checked through the seam against a running
//! system. A driver's own tests call [`check`]; what a system cannot do is a named
//! [`Exception`] with its reason, never a check left out.
//!
//! [`prove`] goes through the [capabilities](pubgauge_driver::Capability) that a system claims, one by one.

mod capabilities;
mod checks;
mod kept;
mod limits;
mod promises;
mod setup;

pub use capabilities::{Proof, prove};

use pubgauge_driver::Driver;
use pubgauge_driver::seam::Target;
use pubgauge_driver::settings::Settings;
use setup::Setup;

/// A check that a system is known to fail, and why.
#[derive(Clone, Debug)]
pub struct Exception<'a> {
    /// The check's name.
    pub check: &'a str,
    /// Why the system cannot do it.
    pub reason: String,
    /// It does not show each time: the check may pass too.
    pub sometimes: bool,
}

impl<'a> Exception<'a> {
    /// A check that fails each time.
    pub fn always(check: &'a str, reason: impl Into<String>) -> Self {
        Exception {
            check,
            reason: reason.into(),
            sometimes: false,
        }
    }

    /// A check that fails now and then.
    pub fn sometimes(check: &'a str, reason: impl Into<String>) -> Self {
        Exception {
            sometimes: true,
            ..Exception::always(check, reason)
        }
    }
}

/// What became of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It holds.
    Passed,
    /// It does not hold, as expected, for this reason.
    Excepted(String),
    /// It does not hold.
    Failed(String),
}

/// How a system ends before it is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// At once, without a chance to save anything (SIGKILL).
    Killed,
    /// In order.
    Stopped,
}

/// A system whose server the suite may end and start again.
pub trait Lifecycle {
    /// Ends the server and starts it again in the same folder, at the same addresses; returns
    /// when it is ready.
    ///
    /// # Errors
    /// Why it did not come back, in words.
    fn restart(&mut self, how: Ending) -> Result<(), String>;

    /// Stops the server's processes in their tracks, or lets them go on (SIGSTOP, SIGCONT):
    /// whatever is sent meanwhile stays where it is. Tells whether that was done. By default nothing
    /// is stopped, and what a server takes in then depends on how fast it is.
    fn pause(&mut self, _paused: bool) -> bool {
        false
    }
}

type Check = fn(&mut Setup<'_>) -> Result<(), String>;

/// The names of all checks; the last ones need a server that may be stopped and killed.
pub fn check_names() -> impl Iterator<Item = &'static str> {
    let checks = checks::ALL.iter().chain(&checks::OF_A_SERVER);
    checks.map(|(name, _)| *name)
}

/// Runs all checks that need no [`Lifecycle`]. `target` gives the running system's address;
/// `scratch` folders and the like are the caller's.
pub fn check(
    driver: &dyn Driver,
    target: &Target,
    settings: &Settings,
    exceptions: &[Exception<'_>],
) -> Vec<(&'static str, Outcome)> {
    run(driver, target, settings, exceptions, None)
}

/// Runs all checks, killing the system's server for one of them.
pub fn check_with_kill(
    driver: &dyn Driver,
    target: &Target,
    settings: &Settings,
    exceptions: &[Exception<'_>],
    server: &mut dyn Lifecycle,
) -> Vec<(&'static str, Outcome)> {
    run(driver, target, settings, exceptions, Some(server))
}

fn run<'a>(
    driver: &'a dyn Driver,
    target: &'a Target,
    settings: &Settings,
    exceptions: &[Exception<'_>],
    server: Option<&'a mut dyn Lifecycle>,
) -> Vec<(&'static str, Outcome)> {
    let mut setup = Setup::new(driver, target, settings.clone());
    let mut outcomes = Vec::new();
    let judge = |setup: &mut Setup<'_>, (name, check): (&'static str, Check)| {
        setup.next();
        let exception = exceptions.iter().find(|e| e.check == name);
        let outcome = match (check(setup), exception) {
            (Ok(()), None) => Outcome::Passed,
            (Ok(()), Some(exception)) if exception.sometimes => Outcome::Passed,
            (Err(_), Some(exception)) => Outcome::Excepted(exception.reason.clone()),
            (Err(why), None) => Outcome::Failed(why),
            (Ok(()), Some(exception)) => Outcome::Failed(format!(
                "it holds, although an exception says it does not ({}): remove the exception",
                exception.reason
            )),
        };
        (name, outcome)
    };
    for check in checks::ALL {
        outcomes.push(judge(&mut setup, check));
    }
    if let Some(server) = server {
        setup.server = Some(server);
        for check in checks::OF_A_SERVER {
            outcomes.push(judge(&mut setup, check));
        }
    }
    outcomes
}

/// All checks that failed, in words; empty if the driver conforms.
pub fn failures(outcomes: &[(&str, Outcome)]) -> Vec<String> {
    let failed = |(name, outcome): &(&str, Outcome)| match outcome {
        Outcome::Failed(why) => Some(format!("{name}: {why}")),
        _ => None,
    };
    outcomes.iter().filter_map(failed).collect()
}
