//! Which addresses a password or a key may go to: studies and folders of runs may be a stranger's.

use std::ffi::OsStr;
use std::path::Path;

use pubgauge_command::exit::Ending;
use pubgauge_place::shell::quoted;
use pubgauge_study::Plan;

use crate::invocation::repeat;

/// Where the addresses of a plan come from that the command line does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Study,
    /// The folder of a run that goes on.
    Resumed,
}

/// Checks that no secret goes to an address that this command line does not name; `named` are those of its `--on` and
/// `--login-at`.
///
/// # Errors
/// If one would, with the command to type.
pub fn check(plan: &Plan, named: &[String], origin: Origin) -> Result<(), Ending> {
    let joined = pubgauge_testbed::join_addresses(named);
    let named: Vec<String> = joined.iter().map(|address| without_user(address)).collect();
    let mut unknown: Vec<&str> = Vec::new();
    for trial in &plan.trials {
        let system = trial.system.as_str();
        let is_unknown = system.contains("://") && !named.contains(&without_user(system));
        if is_unknown && !unknown.contains(&system) {
            unknown.push(system);
        }
    }
    let Some(address) = unknown.first() else {
        return Ok(());
    };
    let why = |place: &str| {
        format!(
            "the address {address} comes from {place}, and a password or a key goes to none that this command line does not name"
        )
    };
    Err(match origin {
        Origin::Resumed => repeat(&why("the folder of the run")),
        Origin::Study => Ending::bad_input(format!(
            "{}\n  hint: if it is yours: {}; or leave the password and the key out",
            why("the study"),
            command(&unknown)
        )),
    })
}

/// This command line, which names these addresses, too.
fn command(addresses: &[&str]) -> String {
    let mut words = vec!["pubgauge".to_owned()];
    words.extend(std::env::args_os().skip(1).map(|word| typed(&word)));
    for address in addresses {
        words.push("--login-at".to_owned());
        words.push(quoted(Path::new(address)));
    }
    words.join(" ")
}

/// A word of a command line, as it is typed.
fn typed(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let rest = text.trim_start_matches('-');
    let dashes = &text[..text.len() - rest.len()];
    if rest.is_empty() && !dashes.is_empty() {
        return dashes.to_owned();
    }
    format!("{dashes}{}", quoted(Path::new(rest)))
}

/// An address without its user.
fn without_user(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return address.to_owned();
    };
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    format!("{scheme}://{place}")
}

#[cfg(test)]
mod tests {
    use pubgauge_study::{PlanOptions, Study};

    use super::*;

    #[test]
    fn a_secret_goes_to_the_addresses_that_are_named_alone() {
        let strange = "mqtt://strange:1883".to_owned();
        let options = PlanOptions {
            on: vec![strange.clone()],
            ..PlanOptions::default()
        };
        let plan = Study::first_look().plan(&options).expect("a plan");
        for origin in [Origin::Study, Origin::Resumed] {
            let sent = |named: &[&str]| {
                let named: Vec<String> = named.iter().map(|one| (*one).to_owned()).collect();
                check(&plan, &named, origin).is_ok()
            };
            assert!(!sent(&[]));
            assert!(!sent(&["mqtts://mine"]), "another one is named");
            assert!(sent(&[&strange]));
            assert!(sent(&["mqtts://mine", "mqtt://gauge@strange:1883"]));
        }
    }

    #[test]
    fn words_are_told_as_they_are_typed() {
        let told = |word: &str| typed(OsStr::new(word));
        assert_eq!(told("--rate"), "--rate");
        assert_eq!(told("--set=a b"), "--'set=a b'");
        assert_eq!(told("a b.toml"), "'a b.toml'");
        assert_eq!(told("--"), "--");
    }
}
