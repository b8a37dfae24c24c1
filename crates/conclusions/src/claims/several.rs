//! One outcome of each claim by runs of several days, and by runs on several beds.

use pubgauge_figures::claim::{ClaimOutcome, ClaimVerdict};
use pubgauge_figures::rule::Claim;
use pubgauge_quantities::lists::unique;

use super::kept::Kept;
use super::unmeasured;

/// Puts runs in the order of their days; of one day those on the study's own bed come last.
pub fn sort(runs: &mut [Kept]) {
    runs.sort_by_key(|kept| (kept.day().to_owned(), kept.is_on_own_bed()));
}

/// The outcome of a claim by all runs that were to judge it; `None` if there is none.
///
/// Runs that answer it must agree: else it cannot be told, and the reason has each one's outcome. A run that cannot tell
/// takes nothing from one that can, and is named. A run on another bed than the study's shows what an answer depends on, and
/// gives none by itself.
pub fn judge_by_runs(claim: &Claim, runs: &[Kept]) -> Option<ClaimOutcome> {
    let about = runs.iter().filter(|run| run.is_about(claim));
    let judged = about.map(|run| RunOutcome {
        label: run.label(),
        on_own_bed: run.is_on_own_bed(),
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

/// The outcome of a claim by one run.
#[derive(Clone, Debug)]
struct RunOutcome {
    /// Its day, and its bed where that is not the study's.
    label: String,
    /// Its bed is the study's.
    on_own_bed: bool,
    outcome: ClaimOutcome,
}

impl RunOutcome {
    fn is_answer(&self) -> bool {
        self.outcome.outcome.is_answer()
    }
}

fn join(mut runs: Vec<RunOutcome>) -> Option<ClaimOutcome> {
    runs.sort_by(|a, b| a.label.cmp(&b.label));
    let own: Vec<&RunOutcome> = runs.iter().filter(|run| run.on_own_bed).collect();
    let own_answers: Vec<&RunOutcome> = own.iter().copied().filter(|run| run.is_answer()).collect();
    let newest = own_answers.last().or(own.last()).copied()?;
    if runs.len() == 1 {
        return Some(newest.outcome.clone());
    }
    let answers: Vec<&RunOutcome> = match &own_answers[..] {
        [] => Vec::new(),
        _ => runs.iter().filter(|run| run.is_answer()).collect(),
    };
    let outcomes = |runs: &[&RunOutcome]| unique(runs.iter().map(|run| run.outcome.outcome));
    let agree = outcomes(&answers).len() < 2;
    let reason = if agree {
        let told = runs.iter().filter(|run| !run.outcome.reason.is_empty());
        // One alone has no label before it.
        let alone = told.clone().count() == 1;
        by_label(told, |run| {
            let RunOutcome { label, outcome, .. } = run;
            let reason = &outcome.reason;
            match outcome.outcome.as_str() {
                _ if answers.is_empty() || run.is_answer() => reason.clone(),
                said if alone => format!("the run of {label} {said}: {reason}"),
                said => format!("{said}: {reason}"),
            }
        })
    } else {
        let each = by_label(answers.iter().copied(), |run| {
            run.outcome.outcome.as_str().to_owned()
        });
        if outcomes(&own_answers).len() < 2 {
            format!("it depends on the bed: {each}")
        } else {
            format!("runs differ: {each}")
        }
    };
    let measured = runs.iter().filter(|run| !run.outcome.ours.is_empty());
    Some(ClaimOutcome {
        outcome: if agree {
            newest.outcome.outcome
        } else {
            ClaimVerdict::CannotTell
        },
        reason,
        ours: by_label(measured, |run| run.outcome.ours.clone()),
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

/// A text of each run behind its label; that of all, where they have the same.
fn by_label<'a>(
    runs: impl Iterator<Item = &'a RunOutcome>,
    text: impl Fn(&RunOutcome) -> String,
) -> String {
    let told: Vec<(&str, String)> = runs.map(|run| (&*run.label, text(run))).collect();
    let texts = unique(told.iter().map(|(_, text)| text.clone()));
    match &texts[..] {
        [all] => all.clone(),
        _ => {
            let each: Vec<String> = (told.iter())
                .map(|(label, text)| format!("{label}: {text}"))
                .collect();
            each.join("; ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(label: &str, outcome: ClaimVerdict, ours: &str, reason: &str) -> RunOutcome {
        RunOutcome {
            label: label.into(),
            on_own_bed: !label.contains(','),
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
    fn an_outcome_that_turns_with_the_bed_depends_on_it() {
        let other = |outcome| run("2026-11-30, large hosts", outcome, "3", "why");
        let turned = join(vec![
            other(ClaimVerdict::DoesNotHold),
            run("2026-11-30", ClaimVerdict::Holds, "2", ""),
            run("2026-12-02", ClaimVerdict::Holds, "2", ""),
        ])
        .unwrap();
        assert_eq!(turned.outcome, ClaimVerdict::CannotTell);
        assert_eq!(
            turned.reason,
            "it depends on the bed: 2026-11-30: holds; 2026-11-30, large hosts: does not hold; 2026-12-02: holds"
        );
        let alike = join(vec![
            other(ClaimVerdict::Holds),
            run("2026-11-30", ClaimVerdict::Holds, "2", ""),
        ])
        .unwrap();
        assert_eq!(alike.outcome, ClaimVerdict::Holds);
        assert_eq!(alike.ours, "2026-11-30: 2; 2026-11-30, large hosts: 3");
    }

    #[test]
    fn another_bed_alone_is_no_answer() {
        let other = run("2026-11-30, large hosts", ClaimVerdict::Holds, "3", "");
        assert_eq!(join(vec![other.clone()]), None);
        let own = run("2026-11-30", ClaimVerdict::CannotTell, "", "too short");
        let joined = join(vec![other, own]).unwrap();
        assert_eq!(joined.outcome, ClaimVerdict::CannotTell);
        assert_eq!(joined.reason, "too short");
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
    fn reasons_stand_behind_their_runs() {
        let joined = join(vec![
            run("2026-11-30", ClaimVerdict::Depends, "2.1", "not with b"),
            run("2026-12-02", ClaimVerdict::CannotTell, "", "a busy machine"),
        ])
        .unwrap();
        assert_eq!(joined.outcome, ClaimVerdict::Depends);
        assert_eq!(
            joined.reason,
            "2026-11-30: not with b; 2026-12-02: cannot tell: a busy machine"
        );
    }

    #[test]
    fn one_run_is_its_own_outcome_and_none_is_no_outcome() {
        let one = run("2026-11-30", ClaimVerdict::CannotTell, "", "why");
        assert_eq!(join(vec![one.clone()]), Some(one.outcome));
        assert_eq!(join(Vec::new()), None);
    }
}
