//! Which systems keep what a fleet asks for: by what they say of themselves, then on the running system.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pubgauge_advice::{Candidate, Fleet, LeftOut, Promise, Undecided, WhyOut};
use pubgauge_campaign::capabilities::answer;
use pubgauge_campaign::{Chosen, SystemsHere};
use pubgauge_command::exit::Ending;
use pubgauge_command::options::Output;
use pubgauge_driver::{Lifecycle, Reliability, Support, Target, Topology};
use pubgauge_testbed::{SystemFile, SystemKind, Testbed};

use crate::check::prove;
use crate::{ending, signals};

/// Systems that promise what is asked for, and those that do not.
pub struct Promised {
    pub keeping: Vec<Candidate>,
    /// How each of these is started, in their order.
    chosen: Vec<Chosen>,
    pub left_out: Vec<LeftOut>,
    /// Systems that could not be tried.
    pub untried: Vec<Undecided>,
    /// The versions of those that were started, by system.
    versions: BTreeMap<String, String>,
}

impl Promised {
    /// The version of a system that was started, as it says itself.
    pub fn version(&self, system: &str) -> Option<String> {
        self.versions.get(system).cloned()
    }

    /// Systems without a broker: their clients reach each other directly.
    pub fn brokerless(&self) -> Vec<String> {
        let each = self.keeping.iter().zip(&self.chosen);
        let brokerless = each.filter(|(_, chosen)| {
            let target = Testbed::planned_target(&chosen.file, chosen.variant.as_deref());
            target.is_ok_and(|target| chosen.driver.topology(&target) == Topology::Brokerless)
        });
        let names = brokerless.map(|(candidate, _)| candidate.system.clone());
        names.collect()
    }

    /// The files of a system's server as it is configured, by names that tell systems apart.
    pub fn configuration(&self, system: &str) -> Vec<(String, String)> {
        let place = self.keeping.iter().position(|one| one.system == system);
        let chosen = place.and_then(|place| self.chosen.get(place));
        let file = chosen.and_then(|of| of.file.variant(of.variant.as_deref()).ok());
        let files = file.map_or(Vec::new(), |file| file.configuration());
        let named = files.into_iter().map(|file| {
            let name = format!("{}.{}", system, file.path).replace([':', '/'], "-");
            (name, file.content)
        });
        named.collect()
    }
}

/// The systems of `on`, or all that are found here, by what their drivers and files say. Of the variants of a system that
/// one driver speaks to, the first that fits is taken, the default one before others.
///
/// # Errors
/// A name that is no system's.
pub fn promised(fleet: &Fleet, here: &SystemsHere<'_>, on: &[String]) -> Result<Promised, Ending> {
    let mut names = here.names(on).map_err(ending)?;
    names.retain(|name| name != "reference-broker" || !on.is_empty());
    let mut promised = Promised {
        keeping: Vec::new(),
        chosen: Vec::new(),
        left_out: Vec::new(),
        untried: Vec::new(),
        versions: BTreeMap::new(),
    };
    let mut lacking: Vec<(Kind, LeftOut)> = Vec::new();
    let mut all = Vec::new();
    for name in names {
        let chosen = here.choose(&name).map_err(ending)?;
        let is_default = chosen.variant == chosen.file.default_variant;
        all.push((name, chosen, is_default));
    }
    all.sort_by_key(|(_, _, is_default)| !is_default);
    let mut taken: Vec<Kind> = Vec::new();
    for (name, chosen, _) in all {
        let kind = Kind::new(&chosen);
        if on.is_empty() && taken.contains(&kind) {
            continue;
        }
        match fitting(fleet, &chosen) {
            Ok(reliability) => {
                lacking.retain(|(other, _)| *other != kind);
                taken.push(kind);
                promised.keeping.push(Candidate {
                    system: name,
                    reliability,
                });
                promised.chosen.push(chosen);
            }
            Err(lack) => {
                let is_known = on.is_empty() && lacking.iter().any(|(other, _)| *other == kind);
                if !is_known {
                    let left = LeftOut {
                        system: name,
                        why: lack.why,
                        asked: lack.promise.because,
                        because: lack.because,
                    };
                    lacking.push((kind, left));
                }
            }
        }
    }
    promised.left_out = lacking.into_iter().map(|(_, left)| left).collect();
    Ok(promised)
}

/// A system as one driver speaks to it.
#[derive(PartialEq, Eq)]
struct Kind {
    system: String,
    driver: String,
}

impl Kind {
    fn new(chosen: &Chosen) -> Kind {
        Kind {
            system: chosen.file.name.clone(),
            driver: chosen.driver.name().to_owned(),
        }
    }
}

/// A promise that a system does not make, or is known to break.
struct Lack {
    promise: Promise,
    why: WhyOut,
    because: String,
}

/// The reliability under which a system promises all that is asked for, or the first promise that it does not make, and why.
fn fitting(fleet: &Fleet, chosen: &Chosen) -> Result<Reliability, Lack> {
    let ways = fleet.reliabilities().iter();
    let mut refused = None;
    for &reliability in ways {
        match missing(fleet, chosen, reliability) {
            None => return Ok(reliability),
            // The lack of the usual way is told, unless that is the way itself.
            Some(lack) => {
                let is_way = lack.promise.capability
                    == pubgauge_driver::Capability::Reliability(reliability);
                if refused.is_none() || !is_way {
                    refused = Some(lack);
                }
            }
        }
    }
    Err(refused.expect("a delivery has at least one reliability"))
}

fn missing(fleet: &Fleet, chosen: &Chosen, reliability: Reliability) -> Option<Lack> {
    let file = chosen.file.variant(chosen.variant.as_deref()).ok()?;
    let target = target(&file);
    let promises = fleet.promises(reliability);
    for promise in &promises {
        let found = answer(&file, &target, chosen.driver.as_ref(), promise.capability);
        if matches!(found.support, Support::Unsupported | Support::Broken) {
            return Some(Lack {
                promise: promise.clone(),
                why: match found.support {
                    Support::Broken => WhyOut::Breaks,
                    _ => WhyOut::Lacks,
                },
                because: found.words,
            });
        }
    }
    if fleet.file.must.encryption && !file.has_certificate() {
        let promise = Promise {
            capability: promises[0].capability,
            because: "encryption = true".into(),
        };
        let words = "pubgauge has no variant of it that encrypts and promises the rest";
        return Some(Lack {
            promise,
            why: WhyOut::Lacks,
            because: words.to_owned(),
        });
    }
    // Promises that hold one by one may not be had together.
    let refused = chosen.resolve(&fleet.settings(reliability)).err()?;
    let first = refused.first()?;
    let together = Promise {
        because: format!("{} = {} beside the rest", first.setting, first.value),
        ..promises[0].clone()
    };
    Some(Lack {
        promise: together,
        why: WhyOut::Lacks,
        because: first.reason.clone(),
    })
}

fn target(file: &SystemFile) -> Target {
    Target {
        endpoints: file.endpoints.clone(),
        features: file.features.clone(),
        ..Target::default()
    }
}

/// Shows the promises on the running systems; those that do not keep one are left out.
///
/// # Errors
/// If a private folder cannot be made.
pub fn try_on_running(
    fleet: &Fleet,
    promised: Promised,
    testbed: &Testbed,
    output: Output,
    stop: &Arc<AtomicBool>,
) -> Result<Promised, Ending> {
    let scratch = signals::scratch().map_err(Ending::not_valid)?;
    let mut shown = Promised {
        keeping: Vec::new(),
        chosen: Vec::new(),
        left_out: promised.left_out,
        untried: Vec::new(),
        versions: BTreeMap::new(),
    };
    for (candidate, chosen) in promised.keeping.into_iter().zip(promised.chosen) {
        if stop.load(Relaxed) {
            break;
        }
        let promises = fleet.promises(candidate.reliability);
        let tried = show_promises(&promises, &chosen, testbed, scratch.path());
        // A system that was ended meanwhile has shown nothing.
        if stop.load(Relaxed) {
            break;
        }
        match tried {
            Ok(Shown {
                broken: None,
                version,
            }) => {
                output.remark(&format!("{} keeps what it promises", candidate.system));
                let version = version.map(|version| (candidate.system.clone(), version));
                shown.versions.extend(version);
                shown.keeping.push(candidate);
                shown.chosen.push(chosen);
            }
            Ok(Shown {
                broken: Some((promise, because)),
                ..
            }) => {
                output.remark(&format!(
                    "{}: {}: {because}",
                    candidate.system, promise.because
                ));
                shown.left_out.push(LeftOut {
                    system: candidate.system,
                    why: WhyOut::Breaks,
                    asked: promise.because,
                    because,
                });
            }
            Err(because) => {
                output.remark(&format!("{}: {because}", candidate.system));
                shown.untried.push(Undecided {
                    system: candidate.system,
                    because,
                });
            }
        }
    }
    Ok(shown)
}

/// The behaviour of a running system.
struct Shown {
    /// The first promise that it does not keep, and how it behaves instead.
    broken: Option<(Promise, String)>,
    /// Its version, as it says itself.
    version: Option<String>,
}

/// Shows promises on the running system.
///
/// # Errors
/// Why it could not be tried.
fn show_promises(
    promises: &[Promise],
    chosen: &Chosen,
    testbed: &Testbed,
    scratch: &Path,
) -> Result<Shown, String> {
    let variant = chosen.variant.as_deref();
    let file = (chosen.file.variant(variant)).map_err(|error| error.to_string())?;
    let started = testbed.start(&chosen.file, variant, scratch);
    let mut running = started.map_err(|error| format!("it could not be started: {error}"))?;
    let target = running.target.clone();
    let killable = matches!(file.kind, SystemKind::Process | SystemKind::Builtin);
    let driver = chosen.driver.as_ref();
    let mut each = promises.iter();
    let broken = each.find_map(|promise| {
        let lifecycle = killable.then_some(&mut running as &mut dyn Lifecycle);
        let proof = prove(driver, &target, &file, promise.capability, lifecycle);
        Some((promise.clone(), proof.err()?.to_string()))
    });
    let version = running.version.clone();
    running.stop();
    Ok(Shown { broken, version })
}
