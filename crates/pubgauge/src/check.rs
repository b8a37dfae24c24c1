//! `pubgauge check`: checks on the running system what its driver and its file claim: that the
//! driver keeps the contract of `Driver` and `Fleet`, and every cell of the matrix of capabilities.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pubgauge_campaign::capabilities::answer;
use pubgauge_campaign::{Chosen, SystemsHere};
use pubgauge_command::exit::{CRITERION, Ending, FINE, print, print_json};
use pubgauge_conformance::{self as conformance, Conformity, Exception, Proof, Violation};
use pubgauge_driver::{
    Answer, Capability, Driver, Lifecycle, Reliability, Settings, Support, Target, Topology,
};
use pubgauge_quantities::text::wrap;
use pubgauge_testbed::{Catalog, Deviation, SystemFile, SystemKind, Testbed};
use serde::Serialize;

use crate::args::CheckArgs;
use crate::ending;
use crate::{drivers, signals};

/// The result for one system.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Report {
    system: String,
    version: Option<String>,
    lines: Vec<ClaimLine>,
}

/// The result for one claim.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ClaimLine {
    /// A check of the conformance suite with its settings, or a capability.
    claim: String,
    finding: CheckStatus,
    words: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum CheckStatus {
    /// The system behaved as claimed.
    Shown,
    /// It did not behave as claimed, as its file says.
    Broken,
    /// The system does not have it; planning says so.
    Unsupported,
    /// Clients cannot see it; the driver's own tests show it.
    Unseen,
    /// It did not behave as claimed, or behaves better than its file says.
    Failed,
}

/// Checks systems, one after the other.
pub fn check(args: &CheckArgs) -> Result<i32, Ending> {
    let catalog = Catalog::load(&args.systems).map_err(Ending::bad_input)?;
    let testbed = drivers::testbed().map_err(Ending::not_valid)?;
    let here = SystemsHere {
        catalog: &catalog,
        testbed: &testbed,
    };
    let names = here.names(&args.on).map_err(ending)?;
    let stop = signals::install().map_err(Ending::not_valid)?;
    let scratch = signals::scratch().map_err(Ending::not_valid)?;
    let mut reports = Vec::new();
    for name in &names {
        let chosen = here.choose(name).map_err(ending)?;
        args.output.remark(&format!("checking {name}"));
        let report = check_one(name, &chosen, &testbed, scratch.path(), args, &stop)?;
        if !args.output.json {
            print(&describe(&report, args.verbose));
        }
        reports.push(report);
        if stop.load(Relaxed) {
            return Err(Ending::not_valid("stopped"));
        }
    }
    if args.output.json {
        print_json(&reports);
    }
    let failed = |r: &Report| r.lines.iter().any(|l| l.finding == CheckStatus::Failed);
    Ok(if reports.iter().any(failed) {
        CRITERION
    } else {
        FINE
    })
}

fn check_one(
    name: &str,
    chosen: &Chosen,
    testbed: &Testbed,
    scratch: &Path,
    args: &CheckArgs,
    stop: &Arc<AtomicBool>,
) -> Result<Report, Ending> {
    let variant = chosen.variant.as_deref();
    let file = chosen.file.variant(variant).map_err(Ending::bad_input)?;
    let driver = chosen.driver.as_ref();
    let mut running = testbed
        .start(&chosen.file, variant, scratch)
        .map_err(Ending::not_valid)?;
    let target = running.target.clone();
    let version = running.version.clone().or_else(|| driver.library());
    let killable = matches!(file.kind, SystemKind::Process | SystemKind::Builtin);
    let mut lines = Vec::new();
    let mut told = |claim: String, (finding, words): (CheckStatus, String)| {
        let spelt = spelt(finding);
        args.output.remark(&format!("  {spelt:11} {claim}"));
        lines.push(ClaimLine {
            claim,
            finding,
            words,
        });
    };
    if !args.capabilities_only {
        for (words, settings) in grid(driver, &target) {
            if stop.load(Relaxed) || running.exit_reason().is_some() {
                break;
            }
            let exceptions: Vec<_> = file
                .deviations
                .iter()
                .filter_map(|(name, deviation)| {
                    // `CHECK`, or `CHECK:SETTINGS` if it fails under these alone.
                    let (check, only) = name.split_once(':').unwrap_or((name, words));
                    (only == words).then(|| Exception {
                        check,
                        reason: deviation.to_string(),
                        sometimes: deviation.is_sometimes(),
                    })
                })
                .collect();
            let outcomes = if killable {
                conformance::check_with_kill(driver, &target, &settings, &exceptions, &mut running)
            } else {
                conformance::check(driver, &target, &settings, &exceptions)
            };
            for (check, outcome) in outcomes {
                let found = match outcome {
                    Conformity::Passed => (CheckStatus::Shown, String::new()),
                    Conformity::Excepted(reason) => (CheckStatus::Broken, reason),
                    Conformity::Failed(why) => (CheckStatus::Failed, why),
                };
                told(format!("{check} ({words})"), found);
            }
        }
    }
    for capability in Capability::ALL {
        if stop.load(Relaxed) || running.exit_reason().is_some() {
            break;
        }
        let answer = answer(&file, &target, driver, capability);
        let mut found = capable(answer, file.deviation(capability), || {
            let lifecycle = killable.then_some(&mut running as &mut dyn Lifecycle);
            prove(driver, &target, &file, capability, lifecycle)
        });
        if matches!(found.0, CheckStatus::Failed | CheckStatus::Broken)
            && let Some(how) = Lifecycle::exit_reason(&mut running)
        {
            found = (
                CheckStatus::Failed,
                format!("the system ended meanwhile: {how}"),
            );
        }
        told(capability.to_string(), found);
    }
    // A system that ended between two checks, or while it was stopped on purpose and did not come back.
    if let Some(how) = running.exit_reason() {
        let words = format!("it is not there any more, and was asked nothing more: {how}");
        told("stays-up".to_owned(), (CheckStatus::Failed, words));
    }
    running.stop();
    Ok(Report {
        system: name.to_owned(),
        version,
        lines,
    })
}

/// The settings under which a system must conform: the defaults, and the strongest guarantee it
/// offers.
fn grid(driver: &dyn Driver, target: &Target) -> Vec<(&'static str, Settings)> {
    let mut grid = vec![("no-settings", Settings::default())];
    let strongest = [
        ("exactly-once", Reliability::ExactlyOnce),
        ("reliable", Reliability::Reliable),
        ("at-least-once", Reliability::AtLeastOnce),
    ]
    .map(|(name, reliability)| {
        let settings = Settings {
            reliability: Some(reliability),
            ..Settings::default()
        };
        (name, settings)
    })
    .into_iter()
    .find(|(_, settings)| driver.resolve(settings, target).is_ok());
    grid.extend(strongest);
    grid
}

/// The finding on a capability; `prove` is asked for it where the system has it.
fn capable(
    answer: Answer,
    deviation: Option<&Deviation>,
    prove: impl FnOnce() -> Result<Proof, Violation>,
) -> (CheckStatus, String) {
    let Answer { support, words } = answer;
    if support == Support::Unsupported {
        return (CheckStatus::Unsupported, words);
    }
    match (prove(), support == Support::Broken) {
        (Ok(Proof::Shown), true) if !deviation.is_some_and(Deviation::is_sometimes) => {
            let why = format!(
                "it holds, although the system's file says it does not ({words}): remove the deviation"
            );
            (CheckStatus::Failed, why)
        }
        (Ok(Proof::Shown), _) => (CheckStatus::Shown, words),
        (Ok(Proof::Unseen(why)), _) => (CheckStatus::Unseen, why.to_owned()),
        (Err(why), true) => (CheckStatus::Broken, format!("{words} ({why})")),
        (Err(why), false) => (CheckStatus::Failed, why.to_string()),
    }
}

/// Tries a capability on the running system that a file describes.
pub fn prove<'a>(
    driver: &'a dyn Driver,
    target: &'a Target,
    file: &SystemFile,
    capability: Capability,
    server: Option<&'a mut dyn Lifecycle>,
) -> Result<Proof, Violation> {
    if let Capability::Topology(topology) = capability {
        // Whether messages go through a process of the system follows from what was started.
        let brokered = file.kind != SystemKind::Library;
        return if brokered == (topology == Topology::Brokered) {
            Ok(Proof::Shown)
        } else {
            Err("what was started for it says otherwise".into())
        };
    }
    conformance::prove(driver, target, capability, server)
}

fn spelt(finding: CheckStatus) -> &'static str {
    match finding {
        CheckStatus::Shown => "shown",
        CheckStatus::Broken => "broken",
        CheckStatus::Unsupported => "unsupported",
        CheckStatus::Unseen => "unseen",
        CheckStatus::Failed => "FAILED",
    }
}

fn describe(report: &Report, verbose: bool) -> String {
    let count = |finding| report.lines.iter().filter(|l| l.finding == finding).count();
    let version = report.version.as_deref().unwrap_or("version unknown");
    let mut out = format!(
        "{} ({version}): {} shown, {} broken as its file says, {} unsupported, {} unseen by clients (only tests of the driver can show it), {} failed\n",
        report.system,
        count(CheckStatus::Shown),
        count(CheckStatus::Broken),
        count(CheckStatus::Unsupported),
        count(CheckStatus::Unseen),
        count(CheckStatus::Failed),
    );
    out = wrap(out.trim_end(), 0);
    for line in &report.lines {
        let interesting = matches!(line.finding, CheckStatus::Failed | CheckStatus::Broken);
        if interesting || verbose {
            out.push_str(&format!("  {:11} {}\n", spelt(line.finding), line.claim));
            if !line.words.is_empty() {
                out.push_str(&wrap(&line.words, 6));
            }
        }
    }
    out
}
