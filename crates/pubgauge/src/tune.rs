//! `pubgauge tune`: which settings serve a workload better than the default.

mod engine;
mod findings;
mod profile;
mod screen;

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use pubgauge_campaign::Prepared;
use pubgauge_campaign::tuning::{self, Tuner, TuningPlan};
use pubgauge_command::exit::{Ending, FINE, NOT_VALID, tell};
use pubgauge_figures::Results;
use pubgauge_place::shell::quoted;
use pubgauge_quantities::Span;
use pubgauge_quantities::spelling::did_you_mean;
use pubgauge_search::Axis;
use pubgauge_tuning::{Objective, Verdict};

use crate::args::TuneArgs;
use crate::ending;
use crate::endpoint::MetricsEndpoint;
use crate::prepare::quantity;
use crate::progress::about;
use crate::study_run::{Leading, Ready};
use crate::{hosts, signals, stored_json};
use engine::Engine;

pub use profile::load as load_profiles;

/// Name of the file with the findings, in the folder of the run.
const FILE: &str = "tune.json";
/// Measurements of the default beside those of each setting alone, about.
const BASES_ABOUT: usize = 4;

/// Tunes a system for a workload.
pub fn tune(mut args: TuneArgs) -> Result<i32, Ending> {
    args.run.selection.resolve_words()?;
    let budget: Option<Span> = quantity("--budget", &Some(args.budget.clone()))?;
    let budget_s = budget.map_or(0.0, |span| span.0 as f64 / 1e9);
    check(&args)?;
    if args.objective == Objective::Limit {
        let selection = &mut args.run.selection;
        selection.find = Some(Axis::Rate);
        // As `pubgauge find` does it.
        if selection.study.is_none() {
            selection.daily.warm_up.get_or_insert("1s".into());
            selection.pacing_within.get_or_insert("1ms".into());
        }
    }
    let begun = crate::run::earlier_invocation(&args.run)?;
    let hosts = hosts::from_args(&args.run.hosts)?;
    let mut ready = Ready::check_run(&args.run, begun.as_ref(), hosts.as_ref())?;
    let plan = plan(&mut ready.prepared, &args, budget_s)?;
    let engine = args.engine.as_ref().map(|command| {
        let factors = plan
            .factors
            .iter()
            .map(|tuned| tuned.factor.clone())
            .collect();
        Engine::new(command, args.objective, factors)
    });
    let stop = signals::install().map_err(Ending::not_valid)?;
    let optimizer = engine
        .transpose()?
        .map(|engine| Box::new(engine.stopped_by(&stop)) as Box<dyn tuning::Optimizer>);
    if let Some(hosts) = &hosts {
        pubgauge_campaign::hosts::gather(hosts, &stop, &mut |words| args.run.output.remark(words))
            .map_err(ending)?;
    }
    say_plan(&ready.prepared, &plan, &args)?;
    let mut found = None;
    let mut conclude = |prepared: &Prepared, tuner: &Tuner<'_>, results: &Results| {
        found = Some(findings::find(prepared, tuner, results, stop.load(Relaxed)));
    };
    let leading = Leading {
        plan: &plan,
        optimizer,
        conclude: &mut conclude,
    };
    let listen = args.run.listen.as_deref();
    let endpoint = listen.map(MetricsEndpoint::open).transpose()?;
    let (run, hosts) = (&args.run, hosts.as_ref());
    let led = ready.lead(run, endpoint.as_ref(), hosts, &stop, Some(leading));
    pubgauge_testbed::stop_everything();
    let done = led?;
    let findings = match found {
        Some(Ok(findings)) => findings,
        Some(Err(error)) => return Err(ending(error)),
        None => return Err(Ending::not_valid("nothing was tuned")),
    };
    let text = serde_json::to_string_pretty(&findings).unwrap_or_default() + "\n";
    stored_json::write(&done.folder.join(FILE), text).map_err(Ending::not_valid)?;
    args.run.output.print_result(&findings, || {
        screen::describe(&findings, &done, args.run.verbose)
    });
    if stop.load(Relaxed) {
        tell!(
            "ended by the user; what was measured is in {}",
            quoted(&done.folder)
        );
        return Ok(NOT_VALID);
    }
    if let Some(name) = &args.save_profile {
        profile::save(name, &findings)?;
    }
    Ok(match findings.conclusion.verdict {
        Verdict::CannotTell { .. } => NOT_VALID,
        _ => FINE,
    })
}

/// Checks what can be checked before the study is read.
fn check(args: &TuneArgs) -> Result<(), Ending> {
    if args.run.selection.on.len() != 1 && args.run.resume.is_none() {
        return Err(Ending::bad_input(
            "one system is tuned at a time\n  hint: name it: pubgauge tune --on rabbitmq",
        ));
    }
    if args.run.selection.repeats.is_some() {
        return Err(Ending::bad_input(
            "--repeats: a tuning decides itself how often it measures what\n  hint: --pairs N for more pairs, --budget for more time",
        ));
    }
    if args.run.gate.junit.is_some() {
        return Err(Ending::bad_input(
            "--junit: a tuning is no gate\n  hint: its findings are in tune.json, and in --json",
        ));
    }
    match &args.save_profile {
        Some(name) => profile::check(name),
        None => Ok(()),
    }
}

/// The factors, and how they are varied.
fn plan(prepared: &mut Prepared, args: &TuneArgs, budget_s: f64) -> Result<TuningPlan, Ending> {
    if let Some(name) = &args.workload {
        let names: Vec<String> = (prepared.plan.trials.iter())
            .map(|trial| trial.workload.name.clone())
            .collect();
        if !names.contains(name) {
            let near = did_you_mean(name, names.iter().map(String::as_str));
            return Err(Ending::bad_input(format!(
                "--workload {name}: the study has no such workload{near}"
            )));
        }
        prepared
            .plan
            .trials
            .retain(|trial| trial.workload.name == *name);
    }
    // Pairs and repeats are the tuning's own.
    prepared.plan.trials.retain(|trial| trial.repeat == 1);
    prepared.plan.compare = None;
    let cell = tuning::only_cell(prepared).map_err(ending)?;
    if args.objective == Objective::P99 && cell.workload.flows.iter().any(|flow| flow.is_flat_out())
    {
        return Err(Ending::bad_input(
            "--for p99: a flow is flat out, and its latency is that of a full queue\n  hint: give it a rate (--rate 5k/s), or tune --for limit",
        ));
    }
    let Some(chosen) = prepared.systems.get(&cell.system) else {
        return Err(Ending::bad_input(format!(
            "there is no system {}",
            cell.system
        )));
    };
    let (mut factors, mut left_out) = tuning::factors(chosen, cell, &args.give_up);
    let known: Vec<String> = (factors.iter().map(|tuned| tuned.factor.name.clone()))
        .chain(left_out.iter().map(|one| one.name.clone()))
        .collect();
    let is_name = |given: &str, name: &str| given == name || name.rsplit('.').next() == Some(given);
    for (flag, names) in [("--vary", &args.vary), ("--give-up", &args.give_up)] {
        if let Some(wrong) = names
            .iter()
            .find(|given| !known.iter().any(|name| is_name(given, name)))
        {
            let short = known.iter().filter_map(|name| name.rsplit('.').next());
            let near = did_you_mean(wrong, short);
            return Err(Ending::bad_input(format!(
                "{flag} {wrong}: {} has no such setting to tune{near}\n  hint: it has {}",
                cell.system,
                known.join(", ")
            )));
        }
    }
    if !args.vary.is_empty() {
        let is_varied = |name: &str| args.vary.iter().any(|given| is_name(given, name));
        factors.retain(|tuned| is_varied(&tuned.factor.name));
        left_out.retain(|one| is_varied(&one.name));
    }
    if factors.is_empty() {
        let why: Vec<String> = left_out
            .iter()
            .map(|one| format!("\n  {}: {}", one.name, one.why))
            .collect();
        return Err(Ending::bad_input(format!(
            "{}: there is nothing to vary{}\n  hint: [[tunable]] in the system's file says what can be tuned (docs/add-a-broker.md)",
            cell.system,
            why.concat()
        )));
    }
    Ok(TuningPlan {
        objective: args.objective,
        factors,
        left_out,
        budget_s,
        pairs: args.pairs as usize,
    })
}

/// Tells, before anything starts, what is varied and how long it takes.
fn say_plan(prepared: &Prepared, plan: &TuningPlan, args: &TuneArgs) -> Result<(), Ending> {
    let tuner = Tuner::new(prepared, plan, None).map_err(ending)?;
    let each = Duration::from_secs_f64(tuner.expected_s());
    let alone = tuner.count_alone() + BASES_ABOUT;
    let pairs = 2 * plan.pairs;
    let needed = Duration::from_secs_f64(tuner.expected_s() * (alone + pairs + 3) as f64);
    args.run.output.remark(&format!(
        "{} in {} at most: {} settings are varied, a measurement takes about {}; each alone {alone} measurements, then combinations, \
         then {} pairs at least",
        plan.objective.name(),
        about(Duration::from_secs_f64(plan.budget_s)),
        plan.factors.len(),
        about(each),
        plan.pairs,
    ));
    if needed.as_secs_f64() > plan.budget_s {
        args.run.output.remark(&format!(
            "note: the budget is too small for each setting alone and the pairs, which take about {}: some are left out",
            about(needed)
        ));
    }
    for one in &plan.left_out {
        args.run
            .output
            .remark(&format!("not varied: {}: {}", one.name, one.why));
    }
    Ok(())
}
