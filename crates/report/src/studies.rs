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

/// All claims in Markdown: for each study how many have which outcome, and a line for each claim; below them when and where
/// they were measured. `words` has what was found in a reader's words, by `study ID`; a claim without any has its reason,
/// or its figures.
pub fn markdown(studies: &Studies, words: &BTreeMap<String, String>) -> String {
    if studies.studies.iter().all(|study| study.claims.is_empty()) {
        return "No paper's study has claims.\n".to_owned();
    }
    let mut out = String::from("| paper | claims | outcomes |\n|---|---|---|\n");
    for study in &studies.studies {
        out.push_str(&format!(
            "| {} | {} | {} |\n",
            escaped(&study.study),
            study.counts.total(),
            outcomes(study.counts)
        ));
    }
    for study in &studies.studies {
        let name = escaped(&study.study);
        out.push_str(&format!(
            "\n### {name}\n\n| claim | the paper says | here | |\n|---|---|---|---|\n"
        ));
        for claim in &study.claims {
            let found = words.get(&format!("{} {}", study.study, claim.id));
            out.push_str(&format!(
                "| {} | {} | **{}** | {} |\n",
                escaped(&claim.id),
                escaped(&claim.sentence),
                claim.outcome.as_str(),
                escaped(&in_words(claim, found))
            ));
        }
    }
    out.push_str(&measured(studies));
    out
}

/// The words about a claim: what was found, and by which stand-in.
fn in_words(claim: &ClaimOutcome, found: Option<&String>) -> String {
    let told = match found {
        // Of several runs each reason ends with what would tell.
        Some(found) => match claim.reason.rsplit_once(WOULD_TELL) {
            Some((_, by)) if !claim.outcome.is_answer() => format!("{found} Would tell: {by}."),
            _ => found.clone(),
        },
        None if !claim.reason.is_empty() => sentence(&claim.reason),
        None => sentence(&claim.ours),
    };
    let stand_in = match claim.stand_in.as_str() {
        "" => String::new(),
        what if claim.outcome.is_answer() => format!("Stand-in: {what}. "),
        _ => String::new(),
    };
    let later = if claim.rule_is_later {
        " The rule is later than its trials."
    } else {
        ""
    };
    format!("{stand_in}{told}{later}")
}

/// The text between a reason and the measurement that would tell.
const WOULD_TELL: &str = "; would tell: ";

/// Words as a sentence: with a capital, and a full stop; what would tell is a sentence of its own.
fn sentence(words: &str) -> String {
    let begun = |words: &str| {
        let mut letters = words.chars();
        let first = letters.next().map(|c| c.to_uppercase().to_string());
        format!("{}{}", first.unwrap_or_default(), letters.as_str())
    };
    match words.split_once(WOULD_TELL) {
        Some((why, by)) => format!("{}. Would tell: {by}.", begun(why)),
        None => format!(
            "{}.",
            begun(words.strip_prefix("would tell: ").unwrap_or(words))
        ),
    }
}

/// When the answered claims were measured and on what machine, then the systems of all.
fn measured(studies: &Studies) -> String {
    let mut days: BTreeMap<(bool, &str), Vec<String>> = BTreeMap::new();
    let mut machines = BTreeSet::new();
    for study in &studies.studies {
        let began = study.started.get(..10).unwrap_or_default();
        for claim in study
            .claims
            .iter()
            .filter(|claim| claim.outcome.is_answer())
        {
            let kept = claim.kept_from.is_empty();
            let day = if kept { began } else { &claim.kept_from };
            let of = format!("{} {}", study.study, claim.id);
            days.entry((kept, day)).or_default().push(of);
            machines.insert(study.machine.as_str());
        }
    }
    let mut out = String::new();
    for ((kept, day), claims) in days {
        let how = if kept {
            "by trials that are kept here"
        } else {
            "by trials that were not kept"
        };
        out.push_str(&format!(
            "\n(Measured on {day}, {how}: {}.)\n",
            escaped(&claims.join(", "))
        ));
    }
    for machine in machines.into_iter().filter(|machine| !machine.is_empty()) {
        out.push_str(&format!("\n(Machine: {}.)\n", escaped(machine)));
    }
    let systems: BTreeSet<&str> = (studies.studies.iter())
        .flat_map(|study| study.systems.iter().map(String::as_str))
        .collect();
    if !systems.is_empty() {
        let systems: Vec<&str> = systems.into_iter().collect();
        out.push_str(&format!("\n(Systems: {}.)\n", escaped(&systems.join(", "))));
    }
    out
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
