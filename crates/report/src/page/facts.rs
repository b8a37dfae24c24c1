//! The facts around the figures: validity, criteria, settings, machine, words.

use std::fmt::Write as _;

use pubgauge_results::{Results, Status, Trial};

use super::content::Page;
use super::html::{END_TABLE, badge, badge_of, begin_table, escape, system_of};
use crate::answers::Carries;
use crate::columns::columns;
use crate::lists::unique;
use crate::{glossary, searches, summary, units};

/// The largest number of groups of doubtful repeats with which they are unfolded.
const OPEN_DOUBTS: usize = 6;

/// The trials that are not valid, and why.
pub(super) fn doubts(out: &mut String, page: &Page<'_>) {
    let compared = |t: &&Trial| !summary::is_of_search(page.results, t);
    let trials = || page.results.trials.iter().filter(compared);
    let valid = trials().filter(|t| t.verdict.status == Status::Valid);
    let (valid, all) = (valid.count(), trials().count());
    out.push_str("<section id=\"validity\"><h2>What is not valid, and why</h2>\n");
    if !page.searches.is_empty() {
        out.push_str("<p>Trials of a search are not counted here: what each told stands with the search.</p>\n");
    }
    if all == 0 && !page.searches.is_empty() {
        out.push_str("</section>\n");
        return;
    }
    if valid == all {
        let words = match all {
            1 => "The one trial is valid.".into(),
            _ => format!("All {all} trials are valid."),
        };
        let _ = writeln!(out, "<p>{words}</p></section>");
        return;
    }
    let groups = page.summary.doubtful();
    let few = groups.len() <= OPEN_DOUBTS;
    let _ = write!(
        out,
        "<p>{valid} of {all} trials are valid. Figures of the others are marked wherever they stand and win nothing.</p>\n\
         <details{}><summary>The reasons</summary>\n<ul class=\"doubts\">\n",
        if few { " open" } else { "" }
    );
    for (workload, cell, group) in groups {
        let _ = write!(
            out,
            "<li>{} <strong>{}</strong>, {}{}<ul>",
            badge(group.status),
            escape(&cell.label),
            escape(&workload.name),
            group.repeats(cell.trials.len())
        );
        for reason in &group.trials[0].verdict.reasons {
            let _ = write!(out, "<li>{}</li>", escape(&reason.text));
        }
        out.push_str("</ul></li>\n");
    }
    out.push_str("</ul></details></section>\n");
}

/// The study's criteria and their outcomes.
pub(super) fn criteria(out: &mut String, results: &Results) {
    if results.study.criteria.is_empty() {
        return;
    }
    out.push_str("<section id=\"criteria\"><h2>Criteria</h2>\n");
    begin_table(
        out,
        "fold",
        "Criteria",
        ["criterion", "outcome", "figures"].map(plain),
    );
    for outcome in &results.study.criteria {
        let (class, word, meaning) = match outcome.met {
            Some(true) => ("valid", "met", "Every trial that it bears on meets it."),
            Some(false) => (
                "broken",
                "not met",
                "At least one trial that it bears on fails it.",
            ),
            None => (
                "unsteady",
                "undecided",
                "No trial fails it, and at least one cannot tell.",
            ),
        };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"wrap\">{}</td></tr>",
            escape(&outcome.criterion),
            badge_of(class, meaning, word),
            escape(&outcome.figures)
        );
    }
    let _ = writeln!(out, "{END_TABLE}</section>");
}

/// A table's heading that needs no explanation.
fn plain(head: &str) -> (&str, &str) {
    (head, "")
}

/// The settings asked for and what they became, folded: one table for each system and settings.
pub(super) fn settings(out: &mut String, page: &Page<'_>) {
    out.push_str("<section id=\"settings\"><h2>What each setting became</h2>\n");
    let cells = page.measured().flat_map(|workload| &workload.cells);
    let shown = unique(cells.map(|cell| {
        let trial = cell.trials[0];
        let mut name = system_of(trial);
        if !["", "default"].contains(&trial.settings_name.as_str()) {
            let _ = write!(name, ", {}", trial.settings_name);
        }
        (name, &trial.mappings)
    }));
    for (nth, (label, mappings)) in shown.iter().enumerate() {
        let label = escape(label);
        let _ = writeln!(out, "<details><summary>{label}</summary>");
        if mappings.is_empty() {
            out.push_str("<p>Nothing was asked for but the defaults.</p>");
        } else {
            let name = format!("Settings {} of {label}", nth + 1);
            begin_table(
                out,
                "",
                &name,
                ["setting", "asked for", "became"].map(plain),
            );
            for mapping in *mappings {
                let _ = writeln!(
                    out,
                    "<tr><td>{}</td><td>{}</td><td class=\"wrap\">{}</td></tr>",
                    escape(&mapping.setting),
                    escape(&mapping.value),
                    escape(&mapping.native)
                );
            }
            out.push_str(END_TABLE);
        }
        out.push_str("</details>\n");
    }
    out.push_str("</section>\n");
}

/// Cells of the grid that a system cannot honour, and those whose load no search found.
pub(super) fn unsupported(out: &mut String, results: &Results) {
    if results.study.unsupported.is_empty() && results.not_measured.is_empty() {
        return;
    }
    out.push_str("<section id=\"unsupported\"><h2>What could not be had</h2>\n<ul>\n");
    for cell in &results.study.unsupported {
        for setting in &cell.settings {
            let _ = writeln!(
                out,
                "<li><strong>{}</strong>: {} = {}: {}</li>",
                escape(&cell.system),
                escape(&setting.setting),
                escape(&setting.value),
                escape(&setting.reason)
            );
        }
    }
    for cell in &results.not_measured {
        let (name, why) = (escape(&cell.cell), escape(&cell.reason));
        let _ = writeln!(out, "<li><strong>{name}</strong>: not measured: {why}</li>");
    }
    out.push_str("</ul></section>\n");
}

/// The machine and all versions.
pub(super) fn machine(out: &mut String, results: &Results) {
    let machine = &results.machine;
    let mut systems: Vec<String> = results.trials.iter().map(system_of).collect();
    systems.sort();
    systems.dedup();
    let governor = machine.governor.clone();
    let facts = [
        ("systems", systems.join(", ")),
        ("pubgauge", machine.pubgauge_version.clone()),
        (
            "processor",
            format!("{}, {} available", machine.cpu_model, machine.cores),
        ),
        ("memory", units::bytes(machine.memory_bytes)),
        (
            "operating system",
            format!("{}, {}", machine.os, machine.kernel),
        ),
        (
            "frequency governor",
            governor.unwrap_or_else(|| "not told".into()),
        ),
        ("open files allowed", machine.max_open_files.to_string()),
        (
            "load average before",
            format!("{:.2}", machine.load_average_1min),
        ),
        ("results format", results.format.clone()),
        ("seed", results.study.seed.to_string()),
    ];
    out.push_str("<section id=\"machine\"><h2>Machine and versions</h2>\n");
    list(
        out,
        facts.iter().map(|(name, value)| (*name, value.as_str())),
    );
    if let Some(calibration) = &machine.calibration {
        let text = serde_json::to_string_pretty(calibration).unwrap_or_default();
        let _ = writeln!(
            out,
            "<details><summary>Calibration of this machine</summary><pre tabindex=\"0\">{}</pre></details>",
            escape(&text)
        );
    }
    out.push_str("</section>\n");
}

/// Every term on the page, explained in one line each.
pub(super) fn reading(out: &mut String, page: &Page<'_>) {
    out.push_str(
        "<section id=\"reading\"><h2>How to read this</h2>\n<p class=\"paper\">Folded in the file, and not on \
         paper: what each setting became, what each system can do, every trial, distribution functions, and the data of every figure.</p>\n",
    );
    let answers = [Carries::Yes, Carries::No, Carries::CannotTell].into_iter();
    let rows = || page.answers.iter().flat_map(|answer| &answer.rows);
    let answers = answers.filter(|carries| rows().any(|row| row.carries == Some(*carries)));
    let answers = answers.map(|carries| (carries.word(), glossary::carries(carries)));
    let verdicts = Status::ALL.into_iter();
    let trials = &page.results.trials;
    let verdicts = verdicts.filter(|status| trials.iter().any(|t| t.verdict.status == *status));
    let verdicts = verdicts.map(|status| (status.word(), glossary::verdict(status)));
    let told = searches::FINDINGS.into_iter().filter(|(finding, _, _)| {
        let mut steps = page.searches.iter().flat_map(|sought| &sought.tried);
        steps.any(|tried| tried.step.finding == *finding)
    });
    let told = told.map(|(_, word, meaning)| (word, meaning));
    let shown: Vec<&str> = page
        .measured()
        .flat_map(columns)
        .map(|column| column.name)
        .collect();
    let always = ["latency"]
        .into_iter()
        .chain(page.reference().then_some("reference broker"));
    let shown: Vec<&str> = always.chain(shown).collect();
    let figures = glossary::FIGURES
        .into_iter()
        .filter(|(name, _)| shown.contains(name));
    let interval = (
        "± and bars",
        "95 % confidence interval of the mean over repeats (Student's t). Two rows are called apart only if the interval of \
         their ratio leaves out 1 (Welch, on logarithms, Bonferroni); one repeat has no interval.",
    );
    list(
        out,
        answers
            .chain(told)
            .chain(verdicts)
            .chain(figures)
            .chain([interval]),
    );
    out.push_str("</section>\n");
}

fn list<'t>(out: &mut String, facts: impl Iterator<Item = (&'t str, &'t str)>) {
    out.push_str("<dl class=\"facts\">\n");
    for (name, value) in facts {
        let _ = writeln!(
            out,
            "<div><dt>{}</dt><dd>{}</dd></div>",
            escape(name),
            escape(value)
        );
    }
    out.push_str("</dl>\n");
}
