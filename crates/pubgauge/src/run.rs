//! `pubgauge run` and `pubgauge find`.

use std::sync::atomic::Ordering::Relaxed;

use pubgauge_command::exit::{Ending, NOT_VALID, tell};
use pubgauge_place::shell::quoted;
use pubgauge_report::spoilt_trials;
use pubgauge_search::Axis;

use crate::args::{FindArgs, RunArgs};
use crate::ending;
use crate::endpoint::MetricsEndpoint;
use crate::folder::Several;
use crate::invocation::Invocation;
use crate::page::{Detail, print_results};
use crate::study_run::Ready;
use crate::{gate, hosts, signals};

/// Runs a study, or all studies of a folder.
pub fn run(args: &RunArgs) -> Result<i32, Ending> {
    if let Some(several) = Several::asked_for(args)? {
        return several.run(args);
    }
    let begun = earlier_invocation(args)?;
    gate::can_be_written(&args.gate)?;
    let hosts = hosts::from_args(&args.hosts)?;
    let ready = Ready::check_run(args, begun.as_ref(), hosts.as_ref())?;
    let name = ready.prepared.plan.name.clone();
    let endpoint = args
        .listen
        .as_deref()
        .map(MetricsEndpoint::open)
        .transpose()?;
    let stop = signals::install().map_err(Ending::not_valid)?;
    if let Some(hosts) = &hosts {
        pubgauge_campaign::hosts::gather(hosts, &stop, &mut |words| args.output.remark(words))
            .map_err(ending)?;
    }
    let result = ready.carry_out(args, endpoint.as_ref(), hosts.as_ref(), &stop);
    pubgauge_testbed::stop_everything();
    let done = result?;
    let detail = Detail::from_flags(args.verbose, args.output.json);
    print_results(&done.results, &done.folder, Some(&done.page), detail);
    let study = args.selection.study.as_deref();
    gate::report(&args.gate, &name, study, &done.checks)?;
    // The answer says it, too.
    if detail == Detail::Json
        && let Some(words) = spoilt_trials(&done.results)
    {
        args.output.remark(&words);
    }
    if stop.load(Relaxed) {
        tell!(
            "ended by the user; go on with: pubgauge run --resume {}",
            quoted(&done.folder)
        );
        return Ok(NOT_VALID);
    }
    Ok(gate::exit_code(&done.checks))
}

/// Searches for limits: a run whose study has "find" for one of its values.
pub fn find(args: FindArgs) -> Result<i32, Ending> {
    let mut run = args.run;
    let selection = &mut run.selection;
    if run.resume.is_none() {
        selection.find = Some(args.axis);
        if selection.study.is_none() {
            // Defaults without file and flags: systems that start at once, and a short warm-up.
            if selection.on.is_empty() {
                selection.set.insert(0, "systems=first-look".into());
            }
            selection.daily.warm_up.get_or_insert("1s".into());
            // A client that wakes up for every message reaches its limit before most systems do.
            if args.axis == Axis::Rate {
                selection.pacing_within.get_or_insert("1ms".into());
            }
            // Bursts are back to back, without a rate.
            if args.axis == Axis::Burst {
                let rate = &mut selection.daily.rate;
                if rate.is_empty() {
                    rate.push("max".into());
                }
            }
        }
    }
    for (path, value) in [
        ("search.width", args.width),
        ("search.budget", args.budget),
        ("search.confirm", args.confirm),
    ] {
        selection.set.extend(value.map(|v| format!("{path}={v}")));
    }
    self::run(&run)
}

/// How the resumed run was begun; `None` for a new run, and for one that is resumed with all its
/// flags.
///
/// # Errors
/// If its folder does not say how it was begun.
pub fn earlier_invocation(args: &RunArgs) -> Result<Option<Invocation>, Ending> {
    let Some(dir) = &args.resume else {
        return Ok(None);
    };
    let begun = Invocation::read(dir)?;
    if begun.is_none() && args.selection.is_empty() {
        Err(Invocation::missing(dir))
    } else {
        Ok(begun)
    }
}
