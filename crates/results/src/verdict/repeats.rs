//! Decisions over the repeats of one cell, some of which the machine disturbed.

use pubgauge_figures::model::{Rule, Status, Trial};

/// Whether other programs, a hypervisor, a quota or too small a machine took processor time that the trial needed.
fn disturbed(trial: &Trial) -> bool {
    use Rule::{ClientStalled, MachineFull, OthersBusy, QuotaFull, TimeStolen};
    let rules = [
        ClientStalled,
        MachineFull,
        OthersBusy,
        QuotaFull,
        TimeStolen,
    ];
    let reasons = &trial.verdict.reasons;
    reasons.iter().any(|reason| rules.contains(&reason.rule)) || trial.verdict.others_busy.is_some()
}

/// Whether a trial is client-bound because other programs or a hypervisor had the processors: what else is held against
/// it may be their doing.
pub fn spoilt_by_others(trial: &Trial) -> bool {
    let rules = [Rule::OthersBusy, Rule::TimeStolen];
    let mut reasons = trial.verdict.reasons.iter();
    trial.verdict.status == Status::ClientBound
        && (reasons.any(|reason| rules.contains(&reason.rule))
            || trial.verdict.others_busy.is_some())
}

/// Whether repeats of a cell that did not do what was asked show that the system cannot: `failed` of all `repeats`. Where
/// the machine disturbed others of them it may have disturbed these unseen, so that most of all repeats must have failed.
/// Loss and broken trials are facts, whatever the machine did.
pub fn failures_decide(repeats: &[&Trial], failed: impl Fn(&Trial) -> bool) -> bool {
    let failures: Vec<_> = repeats.iter().filter(|trial| failed(trial)).collect();
    let fact = |trial: &Trial| matches!(trial.verdict.status, Status::Lossy | Status::Broken);
    failures.iter().any(|trial| fact(trial))
        || 2 * failures.len() > repeats.len()
        || !repeats.iter().any(|trial| disturbed(trial))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubgauge_fixtures::TrialBuilder;

    fn trial(status: Status, rule: Option<Rule>) -> Trial {
        let trial = TrialBuilder::periodic(1.0, 1.0).status(status);
        let rules = rule.into_iter();
        rules
            .fold(trial, |trial, rule| trial.reason(rule, ""))
            .build()
    }

    #[test]
    fn one_failure_does_not_decide_against_repeats_that_the_machine_disturbed() {
        let failed = trial(Status::Valid, None);
        let good = trial(Status::Unsteady, None);
        let disturbed = trial(Status::ClientBound, Some(Rule::OthersBusy));
        let decide = |repeats: &[&Trial]| {
            failures_decide(repeats, |trial| {
                std::ptr::eq(trial, &raw const failed) || trial.verdict.status == Status::Lossy
            })
        };
        assert!(decide(&[&failed]) && decide(&[&failed, &good, &good]));
        assert!(!decide(&[
            &failed, &disturbed, &disturbed, &disturbed, &disturbed, &disturbed
        ]));
        assert!(!decide(&[&failed, &disturbed]) && !decide(&[&failed, &good, &disturbed]));
        assert!(decide(&[&failed, &failed, &disturbed]));
        let lossy = trial(Status::Lossy, Some(Rule::Lost));
        assert!(decide(&[&lossy, &disturbed, &disturbed]));
    }
}
