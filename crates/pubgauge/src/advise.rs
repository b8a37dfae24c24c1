//! `pubgauge advise`: which middleware for a fleet of devices.

mod promises;
mod stored;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use clap::Parser;
use pubgauge_advice::{
    Advice, Adviser, BOX_SIZE, BOX_WITHOUT_SIZE, Fleet, Room, Stage, StageKind, render,
};
use pubgauge_campaign::{Given, Prepared, SystemsHere};
use pubgauge_command::exit::{CRITERION, Ending, FINE, NOT_VALID, print, tell};
use pubgauge_place::shell::quoted;
use pubgauge_quantities::shown;
use pubgauge_report::advice_page;
use pubgauge_runner::trial::now;
use pubgauge_study::{PlanOptions, Study};
use pubgauge_testbed::{Catalog, memory, processors};

use crate::args::{AdviseArgs, Cli, RunArgs, Verb};
use crate::prepare::quantity;
use crate::study_run::{Ready, default_folder};
use crate::{drivers, ending, signals, stored_json};

/// Advises on a fleet.
pub fn advise(args: &AdviseArgs) -> Result<i32, Ending> {
    let (fleet, text) = fleet(args)?;
    let budget: Option<pubgauge_quantities::Span> =
        quantity("--budget", &Some(args.budget.clone()))?;
    let budget_s = budget.map_or(0.0, |span| span.0 as f64 / 1e9);
    if let Some(address) = args.on.iter().find(|name| name.contains("://")) {
        return Err(Ending::bad_input(format!(
            "--on {address}: advice is on systems that pubgauge starts\n  hint: how far a running one goes: pubgauge find --on {address}"
        )));
    }
    let catalog = Catalog::load(&args.systems).map_err(Ending::bad_input)?;
    let testbed = drivers::testbed().map_err(Ending::not_valid)?;
    let here = SystemsHere {
        catalog: &catalog,
        testbed: &testbed,
    };
    let promised = promises::promised(&fleet, &here, &args.on)?;
    let room = room(&promised);
    if args.explain {
        print(&(explain(&fleet, &promised) + &explain_boxes(&fleet, &promised, &room)));
        return Ok(FINE);
    }
    let prepared = check_plan(&fleet, &promised, &here)?;
    let earlier = stored::run_folders(&args.stored)?;
    let stop = signals::install().map_err(Ending::not_valid)?;
    let folder = folder(args, &fleet)?;
    let started = now().to_string();
    stored_json::write(&folder.join(stored::FLEET_FILE), &text).map_err(Ending::not_valid)?;
    let begun = Instant::now();
    let count = shown::so_many(promised.keeping.len() as u64, "system");
    args.output.remark(&format!(
        "{}: {count} of {} promise what is asked for; {} at most, into {}",
        fleet.name(),
        promised.keeping.len() + promised.left_out.len(),
        args.budget,
        folder.display()
    ));
    let shown = promises::try_on_running(&fleet, promised, &testbed, args.output, &stop)?;
    let mut adviser = Adviser::new(
        fleet,
        shown.keeping.clone(),
        shown.left_out.clone(),
        shown.untried.clone(),
    )
    .with_room(room);
    if let Some(prepared) = prepared.filter(|_| !earlier.is_empty()) {
        let runs = stored::read_runs(&earlier, &shown.keeping, &here);
        let now = stored::systems_now(&prepared, &shown);
        stored::count(&mut adviser, &now, runs, args.output)?;
    }
    let mut pace = Pace::default();
    while !stop.load(Relaxed) {
        let left_s = budget_s - begun.elapsed().as_secs_f64();
        let Some(step) = adviser.next_step(left_s) else {
            break;
        };
        let left_s = left_s - adviser.reserved_s(step.kind);
        measure(&mut adviser, &step, &folder, args, &stop, left_s, &mut pace)?;
    }
    pubgauge_testbed::stop_everything();
    let mut advice = adviser.advice();
    store_configurations(&mut advice, &shown, &folder)?;
    let page = store(&advice, &folder, &started, &text)?;
    let screen = || {
        let evidence = format!(" Page        {}\n", quoted(&page));
        render(&advice, args.verbose) + &evidence
    };
    args.output.print_result(&advice, screen);
    if stop.load(Relaxed) {
        tell!(
            "ended by the user: this is the advice from what was measured before\n  hint: go on with it: the same command with --stored {}",
            quoted(&folder)
        );
        return Ok(NOT_VALID);
    }
    Ok(exit_code(&advice))
}

/// Writes the files of the servers that an advice names into the folder.
fn store_configurations(
    advice: &mut Advice,
    shown: &promises::Promised,
    folder: &Path,
) -> Result<(), Ending> {
    for choice in &mut advice.choices {
        choice.server_files = store_configuration(shown, &choice.system, folder)?;
    }
    if let Some(plan) = &mut advice.boxes
        && let Some(system) = &plan.system
    {
        plan.server_files = store_configuration(shown, system, folder)?;
    }
    Ok(())
}

/// Writes the page and the file of an advice; returns the path of the page.
fn store(advice: &Advice, folder: &Path, started: &str, fleet: &str) -> Result<PathBuf, Ending> {
    let page = folder.join("advice.html");
    stored_json::write(&page, advice_page(advice, started, fleet)).map_err(Ending::not_valid)?;
    let json =
        serde_json::to_string_pretty(advice).map_err(|e| Ending::not_valid(e.to_string()))?;
    stored_json::write(&folder.join("advice.json"), format!("{json}\n"))
        .map_err(Ending::not_valid)?;
    Ok(page)
}

/// Writes the files of a system's server into the folder; their names.
fn store_configuration(
    shown: &promises::Promised,
    system: &str,
    folder: &Path,
) -> Result<Vec<String>, Ending> {
    let mut names = Vec::new();
    for (name, content) in shown.configuration(system) {
        stored_json::write(&folder.join(&name), content).map_err(Ending::not_valid)?;
        names.push(name);
    }
    Ok(names)
}

/// The machine, as far as boxes share it.
fn room(promised: &promises::Promised) -> Room {
    Room {
        processors: processors(),
        memory_bytes: memory(),
        brokerless: promised.brokerless(),
    }
}

/// The fleet, and its text.
fn fleet(args: &AdviseArgs) -> Result<(Fleet, String), Ending> {
    let (mut fleet, mut text) = described_fleet(args)?;
    if args.boxes {
        ask_for_boxes(&mut fleet, &mut text)?;
    }
    Ok((fleet, text))
}

fn described_fleet(args: &AdviseArgs) -> Result<(Fleet, String), Ending> {
    match (&args.fleet, args.small.file()) {
        (Some(path), _) => Fleet::open(path).map_err(Ending::bad_input),
        (None, Some(text)) => {
            let fleet = Fleet::parse("the flags", &text).map_err(Ending::bad_input)?;
            Ok((fleet, text))
        }
        (None, None) => Err(Ending::bad_input(
            "there is no fleet to advise on\n  hint: pubgauge advise --devices 5000 --every 30s --payload 120B, or a file (docs/advise.md)",
        )),
    }
}

/// Asks for boxes besides what the file says, which its copy tells.
fn ask_for_boxes(fleet: &mut Fleet, text: &mut String) -> Result<(), Ending> {
    let must = &mut fleet.file.must;
    if must.machine.is_none() {
        return Err(Ending::bad_input(format!(
            "--boxes: {BOX_WITHOUT_SIZE}\n  hint: --cores 0.4, or in [must] of the file, {BOX_SIZE}"
        )));
    }
    must.boxes = Some(true);
    text.push_str("\n# besides: --boxes (`boxes = true` in [must])\n");
    Ok(())
}

fn folder(args: &AdviseArgs, fleet: &Fleet) -> Result<PathBuf, Ending> {
    let Some(dir) = &args.out else {
        return default_folder(fleet.name());
    };
    let made = std::fs::create_dir(dir);
    made.map_err(|e| {
        Ending::bad_input(format!(
            "--out {}: {e}\n  hint: name a folder that does not exist yet, in one that does",
            dir.display()
        ))
    })?;
    Ok(dir.clone())
}

/// How long steps take beside what their plans say.
#[derive(Debug)]
struct Pace {
    planned_s: f64,
    took_s: f64,
}

impl Default for Pace {
    /// Servers start and stop, and clients connect.
    fn default() -> Pace {
        Pace {
            planned_s: 10.0,
            took_s: 13.0,
        }
    }
}

impl Pace {
    fn estimate_s(&self, planned_s: f64) -> f64 {
        planned_s * self.took_s / self.planned_s
    }
}

/// Measures a step, unless the budget does not reach for it.
fn measure(
    adviser: &mut Adviser,
    step: &Stage,
    folder: &Path,
    args: &AdviseArgs,
    stop: &Arc<AtomicBool>,
    left_s: f64,
    pace: &mut Pace,
) -> Result<(), Ending> {
    let study = folder.join(format!("{}.toml", step.kind.name()));
    stored_json::write(&study, adviser.fleet().study(step)).map_err(Ending::not_valid)?;
    let run = run_args(&study, &folder.join(step.kind.name()), args)?;
    let ready = match Ready::check_run(&run, None, None) {
        // A step that this machine cannot have is left out; the steps before it stand.
        Err(ending) if step.kind != StageKind::Fleet => {
            args.output.remark(&format!(
                "left out: {}: {}",
                step.describe(),
                ending.message
            ));
            adviser.skip(step.kind, "this machine cannot have it");
            return Ok(());
        }
        ready => ready?,
    };
    let planned_s = ready.prepared.plan.duration_estimate() as f64 / 1e9;
    let estimate_s = pace.estimate_s(planned_s);
    let about = shown::span((estimate_s.ceil() * 1e9) as u64);
    if estimate_s > left_s {
        args.output.remark(&format!(
            "left out, it takes about {about}: {}",
            step.describe()
        ));
        adviser.skip(step.kind, format!("about {about}, more than was left"));
        return Ok(());
    }
    args.output
        .remark(&format!("{}: about {about}", step.describe()));
    let begun = Instant::now();
    let done = ready.carry_out(&run, None, None, stop)?;
    pace.planned_s += planned_s;
    pace.took_s += begun.elapsed().as_secs_f64();
    // A search that was cut off has no interval.
    let is_search = matches!(step.kind, StageKind::Limit | StageKind::Boxes);
    if is_search && stop.load(Relaxed) {
        adviser.skip(step.kind, "ended by the user");
    } else {
        adviser.take(step.kind, &done.results);
    }
    Ok(())
}

/// The arguments of the run of a step.
fn run_args(study: &Path, out: &Path, args: &AdviseArgs) -> Result<RunArgs, Ending> {
    let mut line = vec![
        "pubgauge".into(),
        "run".into(),
        study.as_os_str().to_owned(),
        "--out".into(),
        out.as_os_str().to_owned(),
    ];
    for folder in &args.systems {
        line.extend(["--systems".into(), folder.as_os_str().to_owned()]);
    }
    if args.output.quiet {
        line.push("--quiet".into());
    }
    match Cli::try_parse_from(line).map(|cli| cli.verb) {
        Ok(Verb::Run(run)) => run.args(),
        _ => Err(Ending::not_valid(format!(
            "{} cannot be run",
            quoted(study)
        ))),
    }
}

/// The promises that are asked for, and the study of the first step.
fn explain(fleet: &Fleet, promised: &promises::Promised) -> String {
    let mut out = format!("# {}: what is asked of a system\n", fleet.name());
    for promise in fleet.promises(fleet.reliabilities()[0]) {
        out.push_str(&format!(
            "#   {}: {}\n",
            promise.because, promise.capability
        ));
    }
    for remark in fleet.remarks() {
        out.push_str(&format!("# {remark}\n"));
    }
    out.push_str("# left out by what they say of themselves\n");
    for left in &promised.left_out {
        let because = left.because.replace('\n', " ");
        out.push_str(&format!("#   {}: {}: {because}\n", left.system, left.asked));
    }
    match first_study(fleet, promised) {
        Some(study) => out + "# the study of the first step\n" + &study,
        None => out + "# no system is left\n",
    }
}

/// How boxes would be measured, on the first system that has a broker, where the fleet asks how many.
fn explain_boxes(fleet: &Fleet, promised: &promises::Promised, room: &Room) -> String {
    if fleet.file.must.boxes == Some(false) {
        return String::new();
    }
    let step = match Stage::of_boxes(fleet, &promised.keeping, room) {
        Ok(step) => step,
        Err(not_told) => return format!("# how many boxes: {}\n", not_told.because),
    };
    if fleet.file.must.boxes.is_none() {
        return format!("# where one box is not enough: {}\n", step.describe());
    }
    format!(
        "# the study of boxes, here with {}\n",
        step.candidates[0].system
    ) + &fleet.study(&step)
}

/// The study of the first step; `None` if no system is left.
fn first_study(fleet: &Fleet, promised: &promises::Promised) -> Option<String> {
    let candidates = promised.keeping.clone();
    let adviser = Adviser::new(fleet.clone(), candidates, Vec::new(), Vec::new());
    adviser.next_step(0.0).map(|step| fleet.study(&step))
}

/// Checks, before anything is started, that this machine can have the fleet.
fn check_plan(
    fleet: &Fleet,
    promised: &promises::Promised,
    here: &SystemsHere<'_>,
) -> Result<Option<Prepared>, Ending> {
    let Some(text) = first_study(fleet, promised) else {
        return Ok(None);
    };
    let study = Study::parse("the study of this fleet", &text, Path::new(""));
    let given = Given {
        study: study.map_err(Ending::bad_input)?,
        text,
        folder: PathBuf::new(),
        claims: Vec::new(),
    };
    let options = PlanOptions {
        known: here.known(),
        on: Vec::new(),
        repeats: None,
    };
    let planned = pubgauge_campaign::prepare(given, options, here, false);
    planned.map(Some).map_err(|error| {
        let Ending { message, code } = ending(error);
        let message = format!("{message}\n  hint: --explain prints the study of this fleet");
        Ending { message, code }
    })
}

fn exit_code(advice: &Advice) -> i32 {
    let boxes = advice.boxes.as_ref().and_then(|plan| plan.boxes);
    let is_unanswered = advice.choices.is_empty() && boxes.is_none();
    match (is_unanswered, advice.undecided.is_empty()) {
        (false, _) => FINE,
        (true, true) => CRITERION,
        (true, false) => NOT_VALID,
    }
}
