//! One outcome of each claim by runs of several days.

use pubgauge_figures::claim::{ClaimOutcome, ClaimVerdict};
use pubgauge_figures::rule::Claim;
use pubgauge_quantities::lists::unique;

use super::kept::Kept;
use super::unmeasured;

/// The outcome of a claim by all runs that were to judge it; `None` if there is none.
///
/// Runs that answer it must agree: else it cannot be told, and the reason has each one's outcome. A run that cannot tell
/// takes nothing from one that can, and is named.
pub fn judge_by_runs(claim: &Claim, runs: &[Kept]) -> Option<ClaimOutcome> {
    let about = runs.iter().filter(|run| run.is_about(claim));
    let judged = about.map(|run| DayOutcome {
        day: run.day().to_owned(),
        outcome: run.judge(std::slice::from_ref(claim)).remove(0),
    });
    join(judged.collect())
}

/// Each claim as [`judge_by_runs`] judges it; one that no run was to judge is unmeasured.
pub fn judge_all_by_runs(claims: &[Claim], runs: &[Kept]) -> Vec<ClaimOutcome> {
    let judged = claims
        .iter()
        .map(|claim| judge_by_runs(claim, runs).unwrap_or_else(|| unmeasured(claim)));
    judged.collect()
}

/// The outcome of a claim by the run of one day.
#[derive(Clone, Debug)]
struct DayOutcome {
    day: String,
    outcome: ClaimOutcome,
}

impl DayOutcome {
    fn is_answer(&self) -> bool {
        self.outcome.outcome.is_answer()
    }
}

fn join(mut runs: Vec<DayOutcome>) -> Option<ClaimOutcome> {
    runs.sort_by(|a, b| a.day.cmp(&b.day));
    let answers: Vec<&DayOutcome> = runs.iter().filter(|run| run.is_answer()).collect();
    let newest = answers.last().copied().or(runs.last())?;
    if runs.len() == 1 {
        return Some(newest.outcome.clone());
    }
    let outcomes = unique(answers.iter().map(|run| run.outcome.outcome));
    let agree = outcomes.len() < 2;
    let reason = if agree {
        let told = runs.iter().filter(|run| !run.outcome.reason.is_empty());
        by_day(told, |run| match (answers.is_empty(), run.is_answer()) {
            (false, false) => format!(
                "the run of {} {}: {}",
                run.day,
                run.outcome.outcome.as_str(),
                run.outcome.reason
            ),
            _ => run.outcome.reason.clone(),
        })
    } else {
        let each = by_day(answers.iter().copied(), |run| {
            run.outcome.outcome.as_str().to_owned()
        });
        format!("runs differ: {each}")
    };
    let measured = runs.iter().filter(|run| !run.outcome.ours.is_empty());
    Some(ClaimOutcome {
        outcome: if agree {
            newest.outcome.outcome
        } else {
            ClaimVerdict::CannotTell
        },
        reason,
        ours: by_day(measured, |run| run.outcome.ours.clone()),
        rule_is_later: answers.iter().any(|run| run.outcome.rule_is_later),
        // Of one run alone it would not turn the others'.
        would_change: String::new(),
        repeats_to_tell: (runs.iter().filter(|run| !run.is_answer()))
            .filter_map(|run| run.outcome.repeats_to_tell)
            .max()
            .filter(|_| answers.is_empty()),
        ..newest.outcome.clone()
    })
}

/// A text of each run behind its day; that of all, where they have the same.
fn by_day<'a>(
    runs: impl Iterator<Item = &'a DayOutcome>,
    text: impl Fn(&DayOutcome) -> String,
) -> String {
    let told: Vec<(&str, String)> = runs.map(|run| (&*run.day, text(run))).collect();
    let texts = unique(told.iter().map(|(_, text)| text.clone()));
    match &texts[..] {
        [all] => all.clone(),
        _ => {
            let each: Vec<String> = (told.iter())
                .map(|(day, text)| format!("{day}: {text}"))
                .collect();
            each.join("; ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(day: &str, outcome: ClaimVerdict, ours: &str, reason: &str) -> DayOutcome {
        DayOutcome {
            day: day.into(),
            outcome: ClaimOutcome {
                id: "K1".into(),
                outcome,
                ours: ours.into(),
                reason: reason.into(),
                ..ClaimOutcome::default()
            },
        }
    }

    #[test]
    fn runs_that_agree_are_one_outcome_with_the_figures_of_both() {
        let joined = join(vec![
            run("2026-12-02", ClaimVerdict::Holds, "1.9", ""),
            run("2026-11-30", ClaimVerdict::Holds, "2.1", ""),
        ])
        .unwrap();
        assert_eq!(joined.outcome, ClaimVerdict::Holds);
        assert_eq!(joined.ours, "2026-11-30: 2.1; 2026-12-02: 1.9");
        assert_eq!(joined.reason, "");
    }

    #[test]
    fn runs_that_differ_cannot_tell_and_say_so() {
        let joined = join(vec![
            run("2026-11-30", ClaimVerdict::Holds, "2.1", ""),
            run("2026-12-02", ClaimVerdict::DoesNotHold, "0.9", "below 1"),
        ])
        .unwrap();
        assert_eq!(joined.outcome, ClaimVerdict::CannotTell);
        assert_eq!(
            joined.reason,
            "runs differ: 2026-11-30: holds; 2026-12-02: does not hold"
        );
        assert_eq!(joined.ours, "2026-11-30: 2.1; 2026-12-02: 0.9");
    }

    #[test]
    fn a_run_that_cannot_tell_is_named_beside_one_that_can() {
        let joined = join(vec![
            run("2026-11-30", ClaimVerdict::Holds, "2.1", ""),
            run("2026-12-02", ClaimVerdict::CannotTell, "", "a busy machine"),
        ])
        .unwrap();
        assert_eq!(joined.outcome, ClaimVerdict::Holds);
        assert_eq!(
            joined.reason,
            "the run of 2026-12-02 cannot tell: a busy machine"
        );
        assert_eq!(joined.ours, "2.1");
    }

    #[test]
    fn one_run_is_its_own_outcome_and_none_is_no_outcome() {
        let one = run("2026-11-30", ClaimVerdict::CannotTell, "", "why");
        assert_eq!(join(vec![one.clone()]), Some(one.outcome));
        assert_eq!(join(Vec::new()), None);
    }
}
