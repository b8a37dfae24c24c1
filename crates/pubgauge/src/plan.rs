//! `pubgauge plan`: what a run would do, starting nothing.

use pubgauge_driver::Mapping;
use pubgauge_study::{Profile, profiles};
use pubgauge_workload::SECOND;
use serde::Serialize;

use crate::args::PlanArgs;
use crate::drivers;
use crate::exit::{Ending, FINE, print};
use crate::prepare::{Prepared, prepare};
use crate::progress::so_many_trials;
use crate::systems::wrap;
use pubgauge_runner::convert::{arrival_words, describe, size_words};

/// A plan for machines.
#[derive(Serialize)]
struct PlanJson<'a> {
    study: &'a str,
    question: Option<&'a str>,
    seed: u64,
    duration_s: f64,
    trials: Vec<TrialJson<'a>>,
    unsupported: Vec<UnsupportedJson<'a>>,
}

#[derive(Serialize)]
struct TrialJson<'a> {
    id: u32,
    cell: &'a str,
    system: &'a str,
    settings: &'a str,
    workload: &'a str,
    axes: &'a [(String, String)],
    repeat: u32,
    duration_s: f64,
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
    let testbed = drivers::testbed().map_err(Ending::not_valid)?;
    let prepared = prepare(&args.selection, &testbed)?;
    print(&if args.json {
        json(&prepared)
    } else {
        words(&prepared)
    });
    Ok(FINE)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / SECOND as f64
}

fn json(prepared: &Prepared) -> String {
    let plan = &prepared.plan;
    let json = PlanJson {
        study: &plan.name,
        question: plan.question.as_deref(),
        seed: plan.seed,
        duration_s: seconds(plan.duration_estimate()),
        trials: plan
            .trials
            .iter()
            .map(|t| TrialJson {
                id: t.order,
                cell: &t.cell,
                system: &t.system,
                settings: &t.settings_name,
                workload: &t.workload.name,
                axes: &t.axes,
                repeat: t.repeat,
                duration_s: seconds(t.duration_estimate()),
                mappings: prepared.mappings(t),
            })
            .collect(),
        unsupported: plan
            .unsupported
            .iter()
            .map(|u| UnsupportedJson {
                cell: &u.cell,
                system: &u.system,
                settings: &u.settings,
            })
            .collect(),
    };
    format!(
        "{}\n",
        serde_json::to_string_pretty(&json).unwrap_or_default()
    )
}

fn words(prepared: &Prepared) -> String {
    let plan = &prepared.plan;
    let mut out = format!("study {}\n", plan.name);
    if let Some(question) = &plan.question {
        out.push_str(&wrap(question, 2));
    }
    out.push_str(&format!(
        "{}, about {:.0} s in all; order and draws from seed {}\n\nworkloads\n",
        so_many_trials(plan.trials.len() as u64),
        seconds(plan.duration_estimate()).ceil(),
        plan.seed
    ));
    let mut shown = Vec::new();
    for trial in &plan.trials {
        let info = describe(&trial.workload);
        let mut text = format!(
            "{}: {} publishers, {} subscribers, {} topics",
            info.name, info.publishers, info.subscribers, info.topics
        );
        for flow in &trial.workload.flows {
            text.push_str(&format!(
                "; {}: {}, {}",
                flow.name,
                size_words(&flow.size),
                arrival_words(&flow.arrivals)
            ));
        }
        if !shown.contains(&text) {
            out.push_str(&wrap(&text, 2));
            shown.push(text);
        }
    }
    let used = |p: &&Profile| {
        plan.trials
            .iter()
            .any(|t| t.profile.as_ref() == Some(&p.name))
    };
    for (nth, profile) in profiles().iter().filter(used).enumerate() {
        if nth == 0 {
            out.push_str("\nprofiles\n");
        }
        out.push_str(&wrap(&format!("{}: {}", profile.name, profile.about), 2));
    }
    if !plan.notes.is_empty() {
        out.push_str("\nnotes\n");
    }
    for note in &plan.notes {
        out.push_str(&wrap(note, 2));
    }
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
            seconds(t.duration_estimate())
        ));
    }
    out.push_str("\nwhat each setting becomes\n");
    let mut seen: Vec<(&str, &str, Vec<Mapping>)> = Vec::new();
    for t in &plan.trials {
        let mappings = prepared.mappings(t);
        let alike = |(system, name, other): &(&str, &str, Vec<Mapping>)| {
            *system == t.system && *name == t.settings_name && *other == mappings
        };
        if seen.iter().any(alike) {
            continue;
        }
        // `tuned` depends on the workload.
        let another = seen
            .iter()
            .any(|(s, n, _)| *s == t.system && *n == t.settings_name);
        let of = match another {
            true => format!(", {}", t.workload.name),
            false => String::new(),
        };
        out.push_str(&format!("  {} ({}{of})\n", t.system, t.settings_name));
        seen.push((&t.system, &t.settings_name, mappings.clone()));
        for m in mappings {
            out.push_str(&wrap(
                &format!("{} = {}: {}", m.setting, m.value, m.native),
                4,
            ));
        }
    }
    if !plan.unsupported.is_empty() {
        out.push_str("\nwhat cannot be had\n");
        for cell in &plan.unsupported {
            for u in &cell.settings {
                out.push_str(&wrap(
                    &format!("{}: {} = {}: {}", cell.system, u.setting, u.value, u.reason),
                    2,
                ));
            }
        }
    }
    out
}
