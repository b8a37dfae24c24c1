//! Gates: the outcomes of a run or of a comparison as checks, the exit code that follows from them,
//! JUnit XML, and annotations.

use std::path::Path;

use pubgauge_command::exit::{CRITERION, Ending, FINE, NOT_VALID, write_plain};
use pubgauge_conclusions::compare::{
    Comparison, Difference, FigureChange, NotCompared, Row, WhyNot,
};
use pubgauge_export::check::{Check, CheckOutcome, github, junit};
use pubgauge_figures::comparison::{ComparedFigure, GuardOutcome, PairComparison};
use pubgauge_figures::criterion::default_for;
use pubgauge_figures::model::{Results, Status, Trial};
use pubgauge_report::compare::{change, format_change};
use pubgauge_results::criterion::bearing;
use pubgauge_results::verdict::spoilt_by_others;

use crate::args::{Annotations, GateArgs};
use crate::progress::so_far;
use crate::stored_json;

/// The checks of a run: its criteria, and whether its trials can be trusted. A trial that cannot is
/// no failure as long as another one can, unless it is broken, or other programs spoilt it and all other repeats of its
/// cell; nor is one of a late client, or of a latency that fell, that proves all the same that what is asked for is met.
pub fn of_run(results: &Results) -> Vec<Check> {
    let criteria = results.study.criteria.iter().map(|criterion| Check {
        group: "criteria".into(),
        name: criterion.criterion.clone(),
        outcome: match criterion.met {
            Some(true) => CheckOutcome::Passed,
            Some(false) => CheckOutcome::Failed,
            None => CheckOutcome::Undecided,
        },
        words: criterion.figures.clone(),
    });
    let status = |trial: &Trial| trial.verdict.status;
    let planned: Vec<&Trial> = results.standing().collect();
    let is_valid = |trial: &Trial| status(trial) == Status::Valid;
    let valid: Vec<&Trial> = (planned.iter().copied())
        .filter(|trial| is_valid(trial))
        .collect();
    let trusted = |trial: &Trial| {
        let mut same = valid.iter();
        let is_spoilt = spoilt_by_others(trial)
            && !same
                .any(|other| other.cell == trial.cell && other.system.name == trial.system.name);
        !is_spoilt && !valid.is_empty() || is_proof(results, trial)
    };
    let searches = results.searches.iter().map(|search| Check {
        group: "searches".into(),
        name: format!("{}, {}, {}", search.system, search.workload, search.axis),
        outcome: match search.low {
            Some(_) => CheckOutcome::Passed,
            None => CheckOutcome::Undecided,
        },
        words: so_far(search),
    });
    let trials = planned.into_iter().map(|trial| Check {
        group: "trials".into(),
        name: format!("{}, repeat {}", trial.cell, trial.repeat),
        outcome: match (status(trial), trusted(trial)) {
            (Status::Valid, _) => CheckOutcome::Passed,
            (Status::Broken, _) | (_, false) => CheckOutcome::Undecided,
            _ => CheckOutcome::Aside,
        },
        words: match trial.verdict.sentences() {
            none if none.is_empty() => status(trial).as_str().to_owned(),
            words => format!("{}: {}", status(trial).as_str(), words.join("; ")),
        },
    });
    let none = results.trials.is_empty().then(|| Check {
        group: "trials".into(),
        name: "some trial".into(),
        outcome: CheckOutcome::Undecided,
        words: "no trial has been measured".into(),
    });
    // A load that no limit is known for is reported with the search.
    let not_measured = results.not_measured.iter().map(|cell| Check {
        group: "trials".into(),
        name: cell.cell.clone(),
        outcome: CheckOutcome::Aside,
        words: format!("not measured: {}", cell.reason),
    });
    // Its criteria may not have been evaluated, and trials are missing that might fail them.
    let cut_off = results.study.cut_off.then(|| Check {
        group: "run".into(),
        name: "the whole run".into(),
        outcome: CheckOutcome::Undecided,
        words: format!(
            "cut off after {} of {} trials",
            results.trials.len(),
            results.study.planned_trials
        ),
    });
    let trials = trials.chain(not_measured).chain(none);
    let guarded = results.comparisons.iter().flat_map(guard_checks);
    let all = criteria.chain(guarded).chain(searches).chain(trials);
    all.chain(cut_off).collect()
}

/// The checks of a new release against the old one, one for each figure that decides.
fn guard_checks(comparison: &PairComparison) -> impl Iterator<Item = Check> {
    comparison.figures.iter().filter_map(move |figure| {
        let outcome = figure.guard?;
        let (old, new) = (&comparison.base, &comparison.other);
        let axes = comparison.axes.iter();
        let axes: String = axes
            .map(|axis| format!(", {} = {}", axis.name, axis.value))
            .collect();
        let changed = guarded_change(figure);
        let why = figure.why.iter().map(|why| format!("; {why}"));
        Some(Check {
            group: "guard".into(),
            name: format!(
                "{}{axes}: {} of {} ({}) against {} ({})",
                comparison.workload,
                figure.figure,
                new.system,
                new.settings,
                old.system,
                old.settings
            ),
            outcome: match outcome {
                GuardOutcome::WithinMargin => CheckOutcome::Passed,
                GuardOutcome::Worse => CheckOutcome::Failed,
                GuardOutcome::CannotTell => CheckOutcome::Undecided,
            },
            words: format!("{outcome}: {changed}{}", why.collect::<String>()),
        })
    })
}

/// The change of a figure with its interval.
fn guarded_change(figure: &ComparedFigure) -> String {
    match FigureChange::from_stored(figure).map(format_change) {
        None => "no figures".to_owned(),
        Some((change, interval)) if interval.is_empty() => change,
        Some((change, interval)) => format!("{change} ({interval})"),
    }
}

/// Whether the latency of a trial, whatever it contains beside the system's, meets all that is asked of it.
fn is_proof(results: &Results, trial: &Trial) -> bool {
    let specs = results.study.criterion_specs.iter();
    let mut asked: Vec<_> = specs
        .filter(|spec| spec.filter.lets_through(trial))
        .cloned()
        .collect();
    if asked.is_empty() {
        asked.push(default_for(trial));
    }
    let is_met = |spec| bearing(trial, spec).met == Some(true);
    trial.verdict.latency_is_upper_bound && asked.iter().all(is_met)
}

/// The checks of a comparison, one for each figure. A cell of A without a partner is undecided: what B would show
/// there is not known. One that is new in B is no failure.
pub fn of_comparison(comparison: &Comparison, not_compared: &[NotCompared]) -> Vec<Check> {
    let sections = comparison.sections.iter();
    let figures = sections.flat_map(|section| {
        section.rows.iter().map(|row| Check {
            group: section.title.clone(),
            name: row.figure.name.to_string(),
            outcome: match row.verdict {
                Difference::Better | Difference::Same => CheckOutcome::Passed,
                Difference::Worse => CheckOutcome::Failed,
                Difference::CannotTell => CheckOutcome::Undecided,
            },
            words: describe(row),
        })
    });
    let alone = not_compared.iter().map(|cell| Check {
        group: "not compared".into(),
        name: cell.what.clone(),
        outcome: match cell.why {
            WhyNot::OnlyInA | WhyNot::OtherWorkload(_) => CheckOutcome::Undecided,
            WhyNot::OnlyInB | WhyNot::OfSearches(_) => CheckOutcome::Aside,
        },
        words: cell.to_string(),
    });
    figures.chain(alone).collect()
}

fn describe(row: &Row) -> String {
    let changed = match (row.a, row.b) {
        (Some(a), Some(b)) => {
            format!(
                "{} to {}, {}",
                row.figure.known.unit.format(a.mean),
                row.figure.known.unit.format(b.mean),
                change(row)
            )
        }
        _ => "no figures".to_owned(),
    };
    match &row.why {
        Some(why) => format!("{}: {changed}; {why}", row.verdict),
        None => format!("{}: {changed}", row.verdict),
    }
}

/// The exit code: 1 if a check failed, else 2 if one is undecided, else 0.
pub fn exit_code(checks: &[Check]) -> i32 {
    let some = |outcome| checks.iter().any(|check| check.outcome == outcome);
    match (some(CheckOutcome::Failed), some(CheckOutcome::Undecided)) {
        (true, _) => CRITERION,
        (_, true) => NOT_VALID,
        _ => FINE,
    }
}

/// Checks, before a run, that the files asked for can be written.
///
/// # Errors
/// If it cannot.
pub fn can_be_written(gate: &GateArgs) -> Result<(), Ending> {
    let Some(file) = &gate.junit else {
        return Ok(());
    };
    let folder = file.parent().filter(|p| !p.as_os_str().is_empty());
    let wrong = |why: &str| Ending::bad_input(format!("--junit {}: {why}", file.display()));
    if file.is_dir() {
        return Err(wrong(
            "is a folder\n  hint: name a file, for example results.xml",
        ));
    }
    if folder.is_none_or(Path::is_dir) {
        Ok(())
    } else {
        Err(wrong("its folder does not exist\n  hint: make it first"))
    }
}

/// Writes what was asked for: JUnit XML to its file, annotations to standard error. `study` is
/// shown beside annotations.
///
/// # Errors
/// If the file cannot be written.
pub fn report(
    gate: &GateArgs,
    name: &str,
    study: Option<&Path>,
    checks: &[Check],
) -> Result<(), Ending> {
    let on_github = || std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true");
    let annotations = gate.annotations.unwrap_or(if on_github() {
        Annotations::Github
    } else {
        Annotations::None
    });
    if annotations == Annotations::Github {
        let study = study.map(|path| path.display().to_string());
        // To standard error, because the CI runner reads both streams and standard output may be
        // JSON.
        write_plain(format_args!("{}", github(name, study.as_deref(), checks)));
    }
    write(gate, name, checks)
}

/// Writes JUnit XML, if that was asked for.
///
/// # Errors
/// If the file cannot be written.
pub fn write(gate: &GateArgs, name: &str, checks: &[Check]) -> Result<(), Ending> {
    let Some(file) = &gate.junit else {
        return Ok(());
    };
    let text = junit(&format!("pubgauge {name}"), checks);
    stored_json::write(file, text).map_err(Ending::not_valid)
}

#[cfg(test)]
mod tests {
    use pubgauge_figures::model::{Rule, StudyInfo};
    use pubgauge_fixtures::TrialBuilder;

    use super::*;

    #[test]
    fn a_run_that_was_cut_off_is_undecided() {
        let is_undecided = |cut_off| {
            let results = Results {
                study: StudyInfo {
                    cut_off,
                    planned_trials: 30,
                    ..StudyInfo::default()
                },
                ..Results::default()
            };
            of_run(&results)
                .iter()
                .any(|check| check.group == "run" && check.outcome == CheckOutcome::Undecided)
        };
        assert!(is_undecided(true) && !is_undecided(false));
    }

    fn trial(cell: &str, status: Status, rule: Option<Rule>) -> Trial {
        let trial = TrialBuilder::periodic(1.0, 1.0).cell(cell).status(status);
        let rules = rule.into_iter();
        rules
            .fold(trial, |trial, rule| trial.reason(rule, ""))
            .build()
    }

    /// Whether a run with these trials is undecided.
    fn is_undecided(trials: &[&Trial]) -> bool {
        let results = Results {
            trials: trials.iter().map(|trial| (*trial).clone()).collect(),
            ..Results::default()
        };
        let checks = of_run(&results);
        checks
            .iter()
            .any(|check| check.outcome == CheckOutcome::Undecided)
    }

    #[test]
    fn a_cell_that_others_spoilt_is_undecided_and_one_that_the_client_limits_is_not() {
        let valid = trial("a", Status::Valid, None);
        let limited = trial("b", Status::ClientBound, Some(Rule::MachineFull));
        let spoilt = trial("b", Status::ClientBound, Some(Rule::OthersBusy));
        let again = trial("b", Status::Valid, None);
        assert!(!is_undecided(&[&valid]) && !is_undecided(&[&valid, &limited]));
        assert!(is_undecided(&[&limited]));
        assert!(is_undecided(&[&valid, &spoilt]));
        assert!(!is_undecided(&[&valid, &spoilt, &again]));
    }
}
