//! The facts around the figures: validity, criteria, settings, machine, words.

use std::fmt::Write as _;

use maud::{Markup, html};
use pubgauge_figures::model::Machine;
use pubgauge_figures::{Results, Status, Trial};
use pubgauge_quantities::lists::unique;
use pubgauge_quantities::shown;

use super::content::Page;
use super::html::{badge, badge_of, system_of, table};
use crate::answers::Carries;
use crate::columns::columns;
use crate::summary::{Cell, Doubt, WorkloadCells};
use crate::{glossary, searches};

/// The largest number of groups of doubtful repeats with which they are unfolded.
const OPEN_DOUBTS: usize = 6;

/// The trials that are not valid, and why.
pub(super) fn doubts(page: &Page<'_>) -> Markup {
    let compared = |t: &&Trial| !page.results.is_of_search(t);
    let trials = || page.results.trials.iter().filter(compared);
    let with = |status| trials().filter(|t| t.verdict.status == status).count();
    let (valid, all) = (with(Status::Valid), trials().count());
    let (bound, by_setting) = (with(Status::HostBound), with(Status::SettingBound));
    html! {
        section id="validity" {
            h2 { "What is not valid, and why" }
            @if !page.searches.is_empty() {
                p { "Trials of a search are not counted here: what each told stands with the search." }
            }
            @match (valid, all) {
                (_, 0) if !page.searches.is_empty() => {}
                (1, 1) => p { "The one trial is valid." },
                _ if valid == all => p { "All " (all) " trials are valid." },
                _ => {
                    p {
                        (valid) " of " (all) " trials are valid. "
                        @if bound > 0 {
                            (bound) " are host-bound: their rates are those of a client host of the given size, "
                            "their latencies are not quoted. "
                        }
                        @if by_setting > 0 {
                            (by_setting) " are setting-bound: a window of the settings held the publishers back, rates are "
                            "lower bounds, their latencies are not quoted. "
                        }
                        "Figures of the others are marked wherever they stand and win nothing."
                    }
                    (reasons(&page.summary.doubtful()))
                }
            }
        }
    }
}

fn reasons(groups: &[(&WorkloadCells<'_>, &Cell<'_>, Doubt<'_>)]) -> Markup {
    html! {
        details open[groups.len() <= OPEN_DOUBTS] {
            summary { "The reasons" }
            ul class="doubts" {
                @for (workload, cell, group) in groups {
                    li {
                        (badge(group.status)) " " strong { (cell.label) } ", "
                        (workload.name) (group.repeats(cell.trials.len()))
                        ul {
                            @for reason in &group.trials[0].verdict.reasons { li { (reason.text) } }
                            @if let Some(reason) = group.trials[0].verdict.reasons.first() {
                                li { strong { "Next: " } (reason.rule.advice()) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The study's criteria and their outcomes.
pub(super) fn criteria(results: &Results) -> Markup {
    let badge = |met: Option<bool>| match met {
        Some(true) => badge_of("valid", "Every trial that it bears on meets it.", "met"),
        Some(false) => {
            let meaning = "At least one trial that it bears on fails it.";
            badge_of("broken", meaning, "not met")
        }
        None => {
            let meaning = "No trial fails it, and at least one cannot tell.";
            badge_of("unsteady", meaning, "undecided")
        }
    };
    let rows = html! {
        @for outcome in &results.study.criteria {
            tr {
                th scope="row" { (outcome.criterion) }
                td { (badge(outcome.met)) }
                td class="wrap" { (outcome.figures) }
            }
        }
    };
    let heads = ["criterion", "outcome", "figures"];
    html! {
        @if !results.study.criteria.is_empty() {
            section id="criteria" {
                h2 { "Criteria" }
                (table("fold", "Criteria", heads, rows))
            }
        }
    }
}

/// The settings asked for and what they became, folded: one table for each system and settings.
pub(super) fn settings(page: &Page<'_>) -> Markup {
    let cells = page.measured().flat_map(|workload| &workload.cells);
    let shown = unique(cells.map(|cell| {
        let trial = cell.trials[0];
        let mut name = system_of(trial);
        if !["", "default"].contains(&trial.settings_name.as_str()) {
            let _ = write!(name, ", {}", trial.settings_name);
        }
        (name, &trial.mappings)
    }));
    let rows = |mappings: &[pubgauge_driver::Mapping]| {
        html! {
            @for mapping in mappings {
                tr {
                    td { (mapping.setting) }
                    td { (mapping.value) }
                    td class="wrap" { (mapping.native) }
                }
            }
        }
    };
    let heads = ["setting", "asked for", "became"];
    html! {
        section id="settings" {
            h2 { "What each setting became" }
            @for ((label, mappings), nth) in shown.iter().zip(1..) {
                details {
                    summary { (label) }
                    @if mappings.is_empty() {
                        p { "Nothing was asked for but the defaults." }
                    } @else {
                        (table("", &format!("Settings {nth} of {label}"), heads, rows(mappings)))
                    }
                }
            }
        }
    }
}

/// Cells of the grid that a system cannot honour, and those whose load no search found.
pub(super) fn unsupported(results: &Results) -> Markup {
    let unsupported = &results.study.unsupported;
    let settings = unsupported.iter().flat_map(|cell| {
        let settings = cell.settings.iter();
        settings.map(move |setting| (&cell.system, setting))
    });
    html! {
        @if !(unsupported.is_empty() && results.not_measured.is_empty()) {
            section id="unsupported" {
                h2 { "What could not be had" }
                ul {
                    @for (system, setting) in settings {
                        li {
                            strong { (system) } ": " (setting.setting) " = " (setting.value) ": " (setting.reason)
                        }
                    }
                    @for cell in &results.not_measured {
                        li { strong { (cell.cell) } ": not measured: " (cell.reason) }
                    }
                }
            }
        }
    }
}

/// The machine and all versions.
pub(super) fn machine(results: &Results) -> Markup {
    let calibration = results.machine.calibration.as_ref();
    let calibration = calibration.map(|c| serde_json::to_string_pretty(c).unwrap_or_default());
    html! {
        section id="machine" {
            h2 { "Machine and versions" }
            (list(facts(results, &results.machine)))
            @if let Some(text) = calibration {
                details {
                    summary { "Calibration of this machine" }
                    pre tabindex="0" { (text) }
                }
            }
        }
    }
}

/// The state of idle processors: they sleep as the kernel has it, or poll, in how many trials.
fn idle_processors(results: &Results, machine: &Machine) -> String {
    let sleep = match &machine.idle_driver {
        Some(driver) => format!("sleep ({driver})"),
        None => "as the kernel has it".into(),
    };
    let polled = results
        .trials
        .iter()
        .filter(|t| t.circumstances.client.poll_when_idle);
    match polled.count() {
        0 => sleep,
        all if all == results.trials.len() => "poll (poll-when-idle)".into(),
        some => format!(
            "{sleep}; poll in {some} of {} trials (poll-when-idle)",
            results.trials.len()
        ),
    }
}

fn facts(results: &Results, machine: &Machine) -> [(&'static str, String); 11] {
    let mut systems: Vec<String> = results.trials.iter().map(system_of).collect();
    systems.sort();
    systems.dedup();
    let governor = machine.governor.clone();
    [
        ("systems", systems.join(", ")),
        ("pubgauge", machine.pubgauge_version.clone()),
        (
            "processor",
            match machine.quota() {
                Some(_) => format!("{}, {}", machine.cpu_model, machine.number_of_processors()),
                None => format!("{}, {} available", machine.cpu_model, machine.cores),
            },
        ),
        ("memory", shown::bytes(machine.memory_bytes)),
        (
            "operating system",
            format!("{}, {}", machine.os, machine.kernel),
        ),
        (
            "frequency governor",
            governor.unwrap_or_else(|| "not told".into()),
        ),
        ("idle processors", idle_processors(results, machine)),
        ("open files allowed", machine.max_open_files.to_string()),
        (
            "load average before",
            format!("{:.2}", machine.load_average_1min),
        ),
        ("results format", results.format.clone()),
        ("seed", results.study.seed.to_string()),
    ]
}

/// Every term on the page, explained in one line each.
pub(super) fn reading(page: &Page<'_>) -> Markup {
    let answers = [Carries::Yes, Carries::No, Carries::CannotTell].into_iter();
    let rows = || page.answers.iter().flat_map(|answer| &answer.rows);
    let answers = answers.filter(|carries| rows().any(|row| row.carries == Some(*carries)));
    let answers = answers.map(|carries| (carries.as_str(), glossary::carries(carries)));
    let verdicts = Status::ALL.into_iter();
    let trials = &page.results.trials;
    let verdicts = verdicts.filter(|status| trials.iter().any(|t| t.verdict.status == *status));
    let verdicts = verdicts.map(|status| (status.as_str(), glossary::verdict(status)));
    let told = searches::FINDINGS.into_iter().filter(|(finding, _, _)| {
        let mut steps = page.searches.iter().flat_map(|sought| &sought.tried);
        steps.any(|tried| tried.step.finding == *finding)
    });
    let told = told.map(|(_, word, meaning)| (word, meaning));
    let columns = page
        .measured()
        .flat_map(columns)
        .map(|column| column.look.name);
    let mut shown: Vec<&str> = columns.chain(["latency"]).collect();
    shown.extend(page.reference().then_some("reference broker"));
    let figures = glossary::figures().filter(|(name, _)| shown.contains(name));
    let interval = (
        "± and bars",
        "95 % confidence interval of the mean over repeats (Student's t). Two rows are called apart only if the interval of \
         their ratio leaves out 1 (Welch, on logarithms, Bonferroni). Of two repeats both values stand instead; one repeat says nothing of chance.",
    );
    let terms = answers.chain(told).chain(verdicts).chain(figures);
    html! {
        section id="reading" {
            h2 { "How to read this" }
            p class="paper" {
                "Folded in the file, and not on paper: what each setting became, what each system can do, every trial, "
                "distribution functions, and the data of every figure."
            }
            (list(terms.chain([interval])))
        }
    }
}

fn list<T: AsRef<str>>(facts: impl IntoIterator<Item = (&'static str, T)>) -> Markup {
    html! {
        dl class="facts" {
            @for (name, value) in facts {
                div { dt { (name) } dd { (value.as_ref()) } }
            }
        }
    }
}
