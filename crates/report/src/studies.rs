//! Summary of several studies: their claims with the outcomes; of those without claims, the answers.

use std::collections::{BTreeMap, BTreeSet};

use pubgauge_figures::claim::ClaimOutcome;
use pubgauge_figures::model::Machine;
use pubgauge_figures::studies::{FORMAT, OutcomeCounts, Studies, StudyOutcome};
use pubgauge_figures::{Results, Trial};
use pubgauge_quantities::shown;

use crate::answers::answers;
use crate::summary::Summary;
use crate::terminal::{plain, wrapped};

/// Width in characters of a study's name in the table.
const NAME: usize = 20;

/// Studies in the order of their folders.
pub fn collect_studies(mut studies: Vec<StudyOutcome>) -> Studies {
    studies.sort_by(|a, b| a.folder.cmp(&b.folder));
    Studies {
        format: FORMAT.to_owned(),
        studies,
    }
}

/// Summary of a run; `folder` is its path below the folder of all, empty for a single run.
pub fn outcome(results: &Results, folder: &str) -> StudyOutcome {
    let system = |trial: &Trial| format!("{} {}", trial.system.name, trial.system.version);
    let mut systems: Vec<String> = results.trials.iter().map(system).collect();
    systems.sort();
    systems.dedup();
    let study = &results.study;
    StudyOutcome {
        study: study.name.clone(),
        question: study.question.clone(),
        folder: folder.to_owned(),
        started: study.started.clone(),
        trials: results.trials.len() as u32,
        planned_trials: study.planned_trials,
        cut_off: study.cut_off,
        failed: None,
        machine: machine(&results.machine),
        pubgauge_version: results.machine.pubgauge_version.clone(),
        systems: systems.iter().map(|s| s.trim_end().to_owned()).collect(),
        answers: if results.claims.is_empty() {
            answers_of_run(results)
        } else {
            Vec::new()
        },
        counts: OutcomeCounts::count(&results.claims),
        claims: results.claims.clone(),
    }
}

/// A machine in words, without its name.
fn machine(machine: &Machine) -> String {
    // The text behind the version may be anything, a host name too.
    let kernel = machine.kernel.split('-').next().unwrap_or_default();
    let facts = [
        machine.number_of_processors(),
        machine.cpu_model.clone(),
        format!("{} of memory", shown::bytes(machine.memory_bytes)),
        machine.os.clone(),
        kernel.to_owned(),
    ];
    let known: Vec<String> = facts.into_iter().filter(|fact| !fact.is_empty()).collect();
    known.join(", ")
}

/// The answers of a run: the limit of each search, then each row of each workload.
fn answers_of_run(results: &Results) -> Vec<String> {
    let summary = Summary::summarize(results);
    let sought = crate::searches::searches_of(results, &summary);
    let limits = sought.iter().map(|s| format!("{}: {}", s.label, s.limit()));
    let rows = answers(results).into_iter().flat_map(|answer| {
        let workload = answer.workload;
        answer.rows.into_iter().map(move |row| {
            let carries = match row.carries {
                Some(carries) => format!("{}, ", carries.as_str()),
                None => String::new(),
            };
            // Names leave out the parts that all rows have in common; the system may be missing too.
            let name = match row.row.contains(&row.system) {
                true => row.row,
                false if row.row.is_empty() => row.system,
                false => format!("{}, {}", row.system, row.row),
            };
            format!("{workload}, {name}: {carries}{}", row.figure)
        })
    });
    limits.chain(rows).collect()
}

/// The title of all studies, in one line.
pub fn title(studies: &Studies) -> String {
    let all = studies.studies.len();
    match studies
        .studies
        .iter()
        .filter(|s| !s.claims.is_empty())
        .count()
    {
        0 => format!(
            "What {} answer{}",
            counted(all, "study", "studies"),
            if all == 1 { "s" } else { "" }
        ),
        papers => format!(
            "What {} said, and what holds here",
            counted(papers, "paper", "papers")
        ),
    }
}

fn counted(number: usize, one: &str, several: &str) -> String {
    const WORDS: [&str; 13] = [
        "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve",
    ];
    let what = if number == 1 { one } else { several };
    match WORDS.get(number) {
        Some(word) => format!("{word} {what}"),
        None => format!("{number} {what}"),
    }
}

/// The name of a study among the others: its folder, which is unique.
pub(crate) fn name(study: &StudyOutcome) -> &str {
    match study.folder.as_str() {
        "" => &study.study,
        folder => folder,
    }
}

/// How much of a study was measured, in words; empty for a complete one.
pub(crate) fn state(study: &StudyOutcome) -> String {
    match (&study.failed, study.cut_off) {
        (Some(why), _) => why.clone(),
        (None, true) => format!(
            "cut off after {} of {} trials",
            study.trials, study.planned_trials
        ),
        (None, false) => String::new(),
    }
}

/// The studies for the terminal, no line longer than `width` (at least 60) characters.
pub fn table(studies: &Studies, width: usize) -> String {
    let width = width.max(60);
    let mut out = format!("{}\n\n", title(studies));
    if studies.studies.iter().any(|s| !s.claims.is_empty()) {
        for study in &studies.studies {
            let whole = plain(name(study));
            let mut name: String = whole.chars().take(NAME).collect();
            if name.len() < whole.len() {
                name.pop();
                name.push('…');
            }
            let trials = shown::so_many(study.trials.into(), "trial");
            let said = [outcomes(study.counts), trials];
            let said: Vec<String> = said.into_iter().filter(|words| !words.is_empty()).collect();
            wrapped(
                &mut out,
                &format!(" {name:<NAME$} "),
                &said.join("; "),
                width,
            );
        }
        out.push('\n');
    }
    for study in &studies.studies {
        let about = study.question.as_deref().map(|q| format!(": {q}"));
        let head = format!("{}{}", name(study), about.unwrap_or_default());
        wrapped(&mut out, "", &plain(&head), width);
        let state = state(study);
        if !state.is_empty() {
            wrapped(&mut out, "  ! ", &plain(&state), width);
        }
        for claim in &study.claims {
            wrapped(&mut out, "  - ", &plain(&claim_words(claim)), width);
        }
        for answer in &study.answers {
            wrapped(&mut out, "  - ", &plain(answer), width);
        }
        out.push('\n');
    }
    out
}

/// `holds 6, cannot tell 21`: the outcomes that there are.
pub(crate) fn outcomes(counts: OutcomeCounts) -> String {
    let some = counts.named_counts().into_iter().filter(|(_, n)| *n > 0);
    let words: Vec<String> = some.map(|(word, n)| format!("{word} {n}")).collect();
    words.join(", ")
}

/// A claim in one line: outcome, sentence, both figures, reason.
pub(crate) fn claim_words(claim: &ClaimOutcome) -> String {
    let mut text = format!(
        "{} {}: {}",
        claim.id,
        claim.outcome.as_str(),
        claim.sentence
    );
    let said = [
        ("stand-in", &claim.stand_in),
        ("why", &claim.reason),
        ("ours", &claim.ours),
        ("theirs", &claim.papers),
    ];
    for (what, words) in said.into_iter().filter(|(_, words)| !words.is_empty()) {
        text.push_str(&format!(" | {what}: {words}"));
    }
    text
}

/// The claims that were decided as a table in Markdown.
pub fn markdown(studies: &Studies) -> String {
    let all = || {
        let studies = studies.studies.iter();
        studies.flat_map(|study| study.claims.iter().map(move |claim| (study, claim)))
    };
    let decided = |(_, claim): &(&StudyOutcome, &ClaimOutcome)| claim.outcome.is_answer();
    let chosen: Vec<(&StudyOutcome, &ClaimOutcome)> = all().filter(decided).collect();
    if chosen.is_empty() {
        let what = match all().next() {
            None => "No paper's study has been run whole yet.",
            Some(_) => "No claim has been decided yet.",
        };
        return format!("{what}\n");
    }
    let mut out = String::from(
        "| claim | what the paper says | the paper's figures | ours | outcome |\n|---|---|---|---|---|\n",
    );
    for (study, claim) in &chosen {
        // Figures that stand in the cell before are no reason to be told twice.
        let told = claim
            .reason
            .split("; ")
            .all(|figure| claim.ours.contains(figure));
        let why = if told {
            String::new()
        } else {
            first(&claim.reason)
        };
        let said = [claim.stand_in.clone(), why];
        let said: Vec<String> = said.into_iter().filter(|words| !words.is_empty()).collect();
        let outcome = match &said[..] {
            [] => format!("**{}**", claim.outcome.as_str()),
            said => format!(
                "**{}**: {}",
                claim.outcome.as_str(),
                escaped(&said.join("; "))
            ),
        };
        out.push_str(&format!(
            "| {} {} | {} ({}) | {} | {} | {outcome} |\n",
            escaped(&study.study),
            escaped(&claim.id),
            escaped(&claim.sentence),
            escaped(&claim.source),
            escaped(&claim.papers),
            escaped(&first(&claim.ours)),
        ));
    }
    out.push_str(&measured(&chosen));
    let counts =
        |study: &StudyOutcome| format!("{}: {}", escaped(&study.study), outcomes(study.counts));
    let counts: Vec<String> = studies.studies.iter().map(counts).collect();
    out.push_str(&format!("\n(Of all claims: {}.)\n", counts.join("; ")));
    out
}

/// On what machines each of these claims' studies was measured and when, then the systems of all.
fn measured(chosen: &[(&StudyOutcome, &ClaimOutcome)]) -> String {
    let mut runs: Vec<&StudyOutcome> = chosen.iter().map(|(study, _)| *study).collect();
    runs.dedup_by_key(|study| &study.study);
    let mut machines: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for study in &runs {
        let day = study.started.get(..10).map(|day| format!(" on {day}"));
        let said = format!("{}{}", study.study, day.unwrap_or_default());
        machines.entry(&study.machine).or_default().push(said);
    }
    let systems: BTreeSet<&str> = (runs.iter())
        .flat_map(|study| study.systems.iter().map(String::as_str))
        .collect();
    let mut out = String::new();
    for (machine, studies) in machines {
        let said = [studies.join(", "), escaped(machine)].into_iter();
        let said: Vec<String> = said.filter(|words| !words.is_empty()).collect();
        out.push_str(&format!("\n(Measured: {}.)\n", said.join("; ")));
    }
    if !systems.is_empty() {
        let systems: Vec<&str> = systems.into_iter().collect();
        out.push_str(&format!("\n(Systems: {}.)\n", escaped(&systems.join(", "))));
    }
    out
}

/// The first figures of several, for a cell of a table; the file has all.
fn first(figures: &str) -> String {
    const SHOWN: usize = 2;
    let all: Vec<&str> = figures.split("; ").collect();
    match all.len().saturating_sub(SHOWN) {
        0 | 1 => figures.to_owned(),
        more => format!("{}; and {more} more", all[..SHOWN].join("; ")),
    }
}

/// Text escaped for Markdown, also within a table.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in plain(text).chars() {
        if "|<>*_`\\[]".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
