//! `pubgauge plan`: what a run would do, starting nothing. Prints one screen, or everything with
//! `--verbose`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pubgauge_campaign::capacity;
use pubgauge_campaign::capacity::{ClientCounts, brokers};
use pubgauge_campaign::{ClientOptions, Prepared};
use pubgauge_command::exit::{Ending, FINE};
use pubgauge_conclusions::claims::rule_words;
use pubgauge_driver::{Mapping, Settings};
use pubgauge_quantities::lists::unique;
use pubgauge_quantities::shown::{self, so_many};
use pubgauge_quantities::text::wrap;
use pubgauge_runner::describe::{arrival_words, describe, size_words};
use pubgauge_search::Axis;
use pubgauge_study::{Plan, PlannedTrial, Profile, all_profiles};
use pubgauge_workload::{Audience, SECOND, Volume, Volumes, Workload};
use serde::{Serialize, Serializer};

use crate::args::{PlanArgs, Selection};
use crate::ending;
use crate::prepare::prepare;
use crate::progress::{NOTES, about, lengths, notes};
use crate::study_run::tls;
use crate::{crowd, drivers, folder, identities};

/// A plan as JSON output.
#[derive(Serialize)]
struct PlanJson<'a> {
    study: &'a str,
    question: Option<&'a str>,
    /// The size of the study; absent: the study as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    scale: Option<&'a str>,
    seed: u64,
    duration_s: f64,
    trials: Trials<'a>,
    unsupported: Vec<UnsupportedJson<'a>>,
    /// Where the plan differs from the letter of the study.
    notes: &'a [String],
}

/// The trials, each made when it is written: there may be 100,000.
struct Trials<'a>(&'a Prepared);

impl Serialize for Trials<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let trials = self.0.plan.trials.iter();
        serializer.collect_seq(trials.map(|trial| trial_json(self.0, trial)))
    }
}

#[derive(Serialize)]
struct TrialJson<'a> {
    id: u32,
    cell: &'a str,
    system: &'a str,
    settings: &'a str,
    workload: &'a str,
    axes: &'a [(String, String)],
    /// The value that is not known before the run: `rate: searched for`, `rate: 80% of limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<String>,
    repeat: u32,
    /// Number of brokers, and the clients of each.
    brokers: u32,
    clients: Vec<u64>,
    duration_s: f64,
    mappings: Vec<Mapping>,
    /// Flows with settings of their own.
    flows: Vec<FlowJson<'a>>,
}

#[derive(Serialize)]
struct FlowJson<'a> {
    flow: &'a str,
    mappings: Vec<Mapping>,
}

#[derive(Serialize)]
struct UnsupportedJson<'a> {
    cell: &'a str,
    system: &'a str,
    settings: &'a [pubgauge_driver::Unsupported],
}

/// Prints the plan.
pub fn plan(args: &PlanArgs) -> Result<i32, Ending> {
    let Some(of_folder) = folder::studies_of(&args.selection)? else {
        let prepared = planned(args, &args.selection)?;
        let shown = json(&prepared);
        args.output
            .print_result(&shown, || describe_plan(&prepared, args.verbose));
        return Ok(FINE);
    };
    of_folder
        .left_out
        .iter()
        .for_each(|words| args.output.remark(words));
    let files = &of_folder.files;
    let studies = folder::for_each_study(&args.selection, files, |one| planned(args, one))?;
    let shown: Vec<_> = studies.iter().map(json).collect();
    args.output.print_result(&shown, || {
        let each = studies
            .iter()
            .map(|one| describe_plan(one, args.verbose) + "\n");
        let length = folder::length(studies.iter().map(|one| (&one.plan, None)));
        each.collect::<String>() + &length + "\n"
    });
    Ok(FINE)
}

/// The plan of one study, checked.
fn planned(args: &PlanArgs, selection: &Selection) -> Result<Prepared, Ending> {
    let testbed = drivers::testbed().map_err(Ending::not_valid)?;
    let tls = tls(&args.login)?;
    let prepared = prepare(selection, &testbed)?.reached_by(&tls);
    identities::check_certificates(&prepared.plan, tls.as_ref())?;
    let client = ClientOptions::default();
    capacity::check_limits(
        &prepared.plan,
        &prepared.systems,
        &client,
        prepared.processes,
    )
    .map_err(ending)?;
    pubgauge_campaign::sizes::check(&prepared.plan).map_err(ending)?;
    Ok(prepared)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / SECOND as f64
}

/// Flows with settings of their own.
fn own_settings(trial: &PlannedTrial) -> impl Iterator<Item = (&str, &Settings)> {
    trial.workload.flows.iter().filter_map(|flow| {
        let own = (flow.settings as usize).checked_sub(1)?;
        Some((flow.name.as_str(), trial.of_flows.get(own)?))
    })
}

/// Mappings of a trial's settings, and of those of its flows that have their own, by flow.
fn all_mappings<'a>(
    prepared: &Prepared,
    trial: &'a PlannedTrial,
) -> Vec<(Option<&'a str>, Vec<Mapping>)> {
    let flows = own_settings(trial)
        .map(|(flow, settings)| (Some(flow), prepared.resolved(&trial.system, settings)));
    std::iter::once((None, prepared.mappings(trial)))
        .chain(flows)
        .collect()
}

fn json(prepared: &Prepared) -> PlanJson<'_> {
    let plan = &prepared.plan;
    PlanJson {
        study: &plan.name,
        question: plan.question.as_deref(),
        scale: plan.scale.as_deref(),
        seed: plan.seed,
        duration_s: seconds(plan.duration_estimate()),
        trials: Trials(prepared),
        unsupported: plan
            .unsupported
            .iter()
            .map(|u| UnsupportedJson {
                cell: &u.cell,
                system: &u.system,
                settings: &u.settings,
            })
            .collect(),
        notes: &plan.notes,
    }
}

fn trial_json<'a>(prepared: &'a Prepared, t: &'a PlannedTrial) -> TrialJson<'a> {
    TrialJson {
        id: t.order,
        cell: &t.cell,
        system: &t.system,
        settings: &t.settings_name,
        workload: &t.workload.name,
        axes: &t.axes,
        load: open_load(t).map(|(axis, from)| format!("{}: {from}", axis.name())),
        repeat: t.repeat,
        brokers: t.setup.brokers,
        clients: clients(t),
        duration_s: seconds(prepared.plan.estimate(t)),
        mappings: prepared.mappings(t),
        flows: own_settings(t)
            .map(|(flow, settings)| FlowJson {
                flow,
                mappings: prepared.resolved(&t.system, settings),
            })
            .collect(),
    }
}

/// The plan.
fn describe_plan(prepared: &Prepared, verbose: bool) -> String {
    let plan = &prepared.plan;
    let scale = plan.scale.iter().map(|scale| format!(", at scale {scale}"));
    let mut out = format!("study {}{}\n", plan.name, scale.collect::<String>());
    if let Some(question) = &plan.question {
        out.push_str(&wrap(question, 2));
    }
    let every: Vec<&PlannedTrial> = plan.trials.iter().collect();
    let in_all = about(Duration::from_nanos(plan.duration_estimate()));
    let trials = so_many(plan.trials.len() as u64, "trial");
    let length = match (&plan.search, plan.rounds()) {
        (Some(_), _) => format!("{}; at most {in_all} in all", lengths(plan, &every)),
        (None, Some(_)) => format!("rounds of {trials}, at most {in_all} in all"),
        (None, None) => format!("{trials}, about {in_all} in all"),
    };
    let seed = plan.seed;
    out.push_str(&format!("{length}; order and draws from seed {seed}\n"));
    out.extend(crowd::quota().map(|words| words + "\n"));
    let workloads = unique(plan.trials.iter().map(workload));
    section(&mut out, "workloads", workloads);
    section(&mut out, "offered to the system", volumes(plan));
    let networks = unique(
        plan.trials
            .iter()
            .filter_map(|t| t.setup.network.as_deref()),
    );
    if !networks.is_empty() {
        out.push_str("\nnetwork\n");
    }
    for network in networks {
        let words = pubgauge_campaign::networks::describe_network(network);
        out.extend(words.lines().map(|line| format!("  {line}\n")));
    }
    let sizes = unique(plan.trials.iter().filter_map(|t| t.setup.hosts.as_deref()));
    let sizes = sizes.iter().filter(|sizes| !sizes.are_free());
    let sizes = sizes.map(|sizes| sizes.describe().join(", "));
    section(&mut out, "hosts of given sizes", sizes.collect());
    out.push_str(&if verbose {
        describe_in_full(prepared)
    } else {
        one_screen(prepared)
    });
    let unsupported = plan.unsupported.iter().flat_map(|cell| {
        cell.settings.iter().map(|u| {
            let words = format!("{} = {}: {}", u.setting, u.value, u.reason);
            (words, cell.system.as_str())
        })
    });
    section(&mut out, "what cannot be had", by_words(unsupported));
    let claims = plan.claims.iter();
    let claims = claims.map(|c| format!("{}: {} Rule: {}", c.id, c.sentence, rule_words(c)));
    let claims = if verbose || plan.claims.is_empty() {
        claims.collect()
    } else {
        vec![format!(
            "{} judged by what is measured",
            so_many(claims.len() as u64, "claim")
        )]
    };
    section(&mut out, "claims", claims);
    let most = if verbose { usize::MAX } else { NOTES };
    section(&mut out, "notes", notes(&plan.notes, most));
    if !verbose {
        out.push_str("\nevery trial in its order, and what each setting becomes: --verbose\n");
    }
    out
}

fn workload(trial: &PlannedTrial) -> String {
    let info = describe(&trial.workload, 0);
    let mut text = format!(
        "{}: {}, {}, {}",
        info.name,
        so_many(info.publishers.into(), "publisher"),
        so_many(info.subscribers.into(), "subscriber"),
        so_many(info.topics.into(), "topic")
    );
    let open = open_load(trial);
    for (nth, flow) in trial.workload.flows.iter().enumerate() {
        if !flow.publishes() && trial.open_flow() != Some(nth) {
            text.push_str(&format!("; {}: subscribes only", flow.name));
            continue;
        }
        let here = open.as_ref().filter(|_| trial.open_flow() == Some(nth));
        let open = here.map(|(axis, from)| format!("{}: {from}", axis.name()));
        let arrivals = match (&open, here) {
            (Some(open), Some((Axis::Rate, _))) => open.clone(),
            (Some(open), _) => format!("{}, {open}", arrival_words(&flow.arrivals)),
            (None, _) => arrival_words(&flow.arrivals),
        };
        let size = size_words(&flow.size);
        text.push_str(&format!("; {}: {size}, {arrivals}", flow.name));
    }
    if trial.setup.brokers > 1 {
        let clients = clients(trial);
        let (least, most) = (clients.iter().min(), clients.iter().max());
        let (least, most) = (least.unwrap_or(&0), most.unwrap_or(&0));
        let of_each = if least == most {
            so_many(*most, "client")
        } else {
            format!("{least} to {most} clients")
        };
        text.push_str(&format!(
            "; over {} brokers with {of_each} each: each topic lives on one of them, the first on the first, the second on the second, and so on in turn; whoever publishes or hears it connects there",
            trial.setup.brokers
        ));
    }
    text
}

/// Bytes a second that no machine moves through its memory, several copies of each message being made.
const OUT_OF_REACH_BYTES: f64 = 100e9;
/// Messages a second that no system takes or delivers on one machine.
const OUT_OF_REACH_MESSAGES: f64 = 100e6;

/// Messages into the system and deliveries out of it each second, of each workload whose load is known.
fn volumes(plan: &Plan) -> Vec<String> {
    // Repeats and systems share a workload.
    let mut known: Vec<*const Workload> = Vec::new();
    let mut told = Vec::new();
    for trial in plan
        .trials
        .iter()
        .filter(|trial| open_load(trial).is_none())
    {
        if known.len() >= MOST_VOLUMES || known.contains(&Arc::as_ptr(&trial.workload)) {
            continue;
        }
        known.push(Arc::as_ptr(&trial.workload));
        told.extend(volume(&trial.workload));
    }
    unique(told)
}

/// Workloads whose volume is told.
const MOST_VOLUMES: usize = 20;

fn volume(workload: &Workload) -> Option<String> {
    let audience = Audience::new(workload).ok()?;
    let Volumes { mean, peak } = Volumes::estimate(workload, &audience)?;
    let words = |messages: f64, what: &str, bytes: f64| {
        let size = shown::bytes(bytes as u64);
        format!("{} {what} and {size} a second", shown::number(messages))
    };
    let most_bytes = peak.bytes_in.max(peak.bytes_out);
    let most_messages = peak.messages_in.max(peak.messages_out);
    let doubt = if most_bytes > OUT_OF_REACH_BYTES || most_messages > OUT_OF_REACH_MESSAGES {
        "; this is more than any one machine carries"
    } else {
        ""
    };
    let both = |volume: &Volume| {
        format!(
            "in {}, out {}",
            words(volume.messages_in, "messages", volume.bytes_in),
            words(volume.messages_out, "deliveries", volume.bytes_out)
        )
    };
    let told = if peak == mean {
        both(&mean)
    } else {
        format!("on average {}; at the peak {}", both(&mean), both(&peak))
    };
    Some(format!("{}: {told}{doubt}", workload.name))
}

/// The value that is not known before the run, and where it comes from.
fn open_load(trial: &PlannedTrial) -> Option<(Axis, String)> {
    let share = || trial.share().map(|(share, axis)| (axis, share.to_string()));
    let sought = trial.seeks();
    sought
        .map(|axis| (axis, "searched for".to_owned()))
        .or_else(share)
}

/// The connections to each broker.
fn clients(trial: &PlannedTrial) -> Vec<u64> {
    let brokers = brokers(&trial.workload, trial.setup.brokers);
    brokers.iter().map(ClientCounts::total).collect()
}

fn section(out: &mut String, title: &str, lines: Vec<String>) {
    if !lines.is_empty() {
        out.push_str(&format!("\n{title}\n"));
        lines.iter().for_each(|line| out.push_str(&wrap(line, 2)));
    }
}

/// Groups systems by text: `A, B: text` for each distinct text, in order of first occurrence.
fn by_words<'a>(said: impl Iterator<Item = (String, &'a str)>) -> Vec<String> {
    let mut all: Vec<(String, Vec<&str>)> = Vec::new();
    for (words, system) in said {
        match all.iter_mut().find(|(known, _)| *known == words) {
            Some((_, systems)) if systems.contains(&system) => {}
            Some((_, systems)) => systems.push(system),
            None => all.push((words, vec![system])),
        }
    }
    let line = |(words, systems): &(String, Vec<&str>)| format!("{}: {words}", systems.join(", "));
    all.iter().map(line).collect()
}

/// A setting and what it becomes.
fn becomes(m: &Mapping) -> String {
    format!("{} = {}: {}", m.setting, m.value, m.native)
}

/// One screen: what is varied, and what the settings become.
fn one_screen(prepared: &Prepared) -> String {
    let plan = &prepared.plan;
    let systems = distinct(plan.trials.iter().map(|t| &*t.system));
    let settings = distinct(plan.trials.iter().map(|t| &*t.settings_name));
    let mut varied = vec![("systems", systems), ("settings", settings)];
    varied.retain(|(name, values)| *name == "systems" || values.len() > 1);
    let values = || plan.trials.iter().flat_map(|t| &t.axes);
    for axis in distinct(values().map(|(axis, _)| &**axis)) {
        let values = values().filter(|(name, _)| name == axis);
        varied.push((axis, distinct(values.map(|(_, value)| &**value))));
    }
    let lines = varied
        .iter()
        .map(|(name, values)| format!("{name}: {}", values.join(", ")));
    let mut lines: Vec<String> = lines.collect();
    if plan.repeats > 1 {
        lines.push(format!("repeats: {}", repeats(plan)));
    }
    let mut out = String::new();
    section(&mut out, "varied", lines);
    let mut asked = Vec::new();
    for t in &plan.trials {
        for (flow, mappings) in all_mappings(prepared, t) {
            let flow = flow.map_or(String::new(), |flow| format!("flow {flow}: "));
            for m in mappings {
                if m.value != "default" {
                    asked.push((format!("{flow}{}", becomes(&m)), t.system.as_str()));
                }
            }
        }
    }
    section(
        &mut out,
        "what is asked for becomes",
        by_words(asked.into_iter()),
    );
    out
}

/// Number of repeats: `5`, or `3 (flood), 5 (steady)` where workloads differ.
fn repeats(plan: &Plan) -> String {
    let mut of: BTreeMap<&str, u32> = BTreeMap::new();
    for trial in &plan.trials {
        let most = of.entry(&trial.workload.name).or_default();
        *most = trial.repeat.max(*most);
    }
    let mut by_number: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for (workload, number) in of {
        by_number.entry(number).or_default().push(workload);
    }
    if by_number.len() == 1 {
        return plan.repeats.to_string();
    }
    let each = by_number
        .iter()
        .map(|(n, names)| format!("{n} ({})", names.join(", ")));
    each.collect::<Vec<_>>().join(", ")
}

/// The distinct values, in order.
fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let distinct: BTreeSet<&str> = values.collect();
    distinct.into_iter().collect()
}

/// Every trial, and every setting.
fn describe_in_full(prepared: &Prepared) -> String {
    let plan = &prepared.plan;
    let mut out = String::new();
    let used = |p: &&'static Profile| {
        plan.trials
            .iter()
            .any(|t| t.profile.as_ref() == Some(&p.name))
    };
    let used = all_profiles().filter(used);
    let about = used.map(|profile| format!("{}: {}", profile.name, profile.about));
    section(&mut out, "profiles", about.collect());
    out.push_str("\ntrials, in order\n");
    for t in &plan.trials {
        let axes: Vec<String> = t
            .axes
            .iter()
            .map(|(path, value)| format!("{path}={value}"))
            .collect();
        let mut what = vec![t.system.as_str(), t.workload.name.as_str()];
        if t.settings_name != "default" {
            what.push(&t.settings_name);
        }
        what.extend(axes.iter().map(String::as_str));
        let repeat = if plan.repeats > 1 {
            format!(", repeat {}", t.repeat)
        } else {
            String::new()
        };
        out.push_str(&format!(
            "  {:>3}  {}{repeat}  {:.1} s\n",
            t.order + 1,
            what.join(", "),
            seconds(plan.estimate(t))
        ));
    }
    out.push_str("\nwhat each setting becomes\n");
    let mut seen: Vec<(String, Vec<Mapping>)> = Vec::new();
    for t in &plan.trials {
        for (flow, mappings) in all_mappings(prepared, t) {
            let whole = format!("{} ({})", t.system, t.settings_name);
            let mut title = match flow {
                None => whole,
                Some(flow) => format!("{whole}, flow {flow} of {}", t.workload.name),
            };
            let known = |(other, theirs): &(String, Vec<Mapping>)| {
                *theirs == mappings && other.starts_with(&title)
            };
            if seen.iter().any(known) {
                continue;
            }
            // `tuned` depends on the workload.
            if seen.iter().any(|(other, _)| *other == title) {
                title = format!("{title}, {}", t.workload.name);
            }
            out.push_str(&format!("  {title}\n"));
            for m in &mappings {
                out.push_str(&wrap(&becomes(m), 4));
            }
            seen.push((title, mappings));
        }
    }
    out
}
