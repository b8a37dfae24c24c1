//! Judging a claim by what a run measured: its parts, and the implementations of its sides.

mod cells;
mod choice;
mod curves;
mod gap;
mod judging;
mod measured;
mod picture;
mod points;
mod run;
mod sustained;

use pubgauge_figures::rule::{CellFilter, Claim, ClaimPart, ClaimRule, Needs};
use pubgauge_quantities::shown;
use pubgauge_quantities::stats::{one_of, wilson};

use crate::decide::Ways;
use crate::finding::{Finding, Outcome, named};
use crate::several::{agree, all_hold, enough_hold, in_part};
use choice::{Choice, choice_name};
pub(crate) use choice::{combinations, filters_of};
use judging::Judging;
pub use picture::{Curve, Picture, Point, pictures};
pub use run::{Absent, CellKey, Figures, MeasuredRun, Observation, SearchedLimit};

/// Fewest decided points by which a share is judged.
const FEWEST_DECIDED: usize = 6;

/// Judges a claim by what a run measured.
///
/// Where a side has several implementations, the claim is judged for each combination of them: all agree, or it
/// depends on them.
pub fn judge(claim: &Claim, run: &MeasuredRun<'_>) -> Finding {
    let mut finding = match lacking(claim, run) {
        Some(lacking) => lacking.into(),
        None => judged(claim, run),
    };
    if claim.stand_in.is_some() {
        finding.outcome = finding.outcome.of_stand_in();
    }
    if let (false, Some(by)) = (finding.outcome.is_answer(), &claim.told_by) {
        let gap = if finding.reason.is_empty() { "" } else { "; " };
        finding.reason.push_str(&format!("{gap}would tell: {by}"));
    }
    finding
}

/// A claim that is applicable.
fn judged(claim: &Claim, run: &MeasuredRun<'_>) -> Finding {
    let chosen = combinations(claim);
    let judged = |ways: Ways| -> Vec<(String, Finding)> {
        let one = |choice: &Choice| {
            (
                choice_name(claim, choice),
                judge_choice(claim, choice, run, ways),
            )
        };
        chosen.iter().map(one).collect()
    };
    let found = match &judged(Ways::ONE)[..] {
        [(_, one)] => one.clone(),
        several => agree(several, || judged(Ways::separately(several.len()))),
    };
    let mut finding = of_version(found, &claim.needs);
    if is_about_recording(claim) {
        finding.tells = None;
    }
    // The study knows better what would tell than the figures do.
    let repeats = finding
        .repeats_to_tell()
        .filter(|_| claim.told_by.is_none());
    if let (Outcome::CannotTell, Some(repeats)) = (finding.outcome, repeats) {
        finding
            .reason
            .push_str(&format!("; about {repeats} repeats would tell"));
    }
    finding
}

/// A finding of a version other than the one that is claimed about: what fails here may have held there.
fn of_version(found: Finding, needs: &Needs) -> Finding {
    match (&needs.of_version, found.outcome) {
        (Some(what), Outcome::DoesNotHold) => Finding {
            outcome: Outcome::OfVersion,
            reason: format!("{what}; here: {}", found.reason()),
            ..found
        },
        _ => found,
    }
}

/// The axis of cells that are days of a recording, not trials: its name.
pub const RECORDING: &str = "recording";

/// Whether a claim is about a recording, of which no run makes more days.
pub fn is_about_recording(claim: &Claim) -> bool {
    let filters = filters_of(&claim.parts, None);
    filters.iter().any(|filter| filter.contains_key(RECORDING))
}

/// A claim with a choice among implementations.
fn judge_choice(claim: &Claim, choice: &Choice, run: &MeasuredRun<'_>, ways: Ways) -> Finding {
    match claim.share {
        Some(share) => share_of_points(claim, choice, share, run, ways),
        None => halves(&claim.parts, choice, run, ways),
    }
}

/// The parts of a claim: all hold, or some do. Those that do while others do not are told one by one, at the
/// confidence that so many need.
fn halves(parts: &[ClaimPart], choice: &Choice, run: &MeasuredRun<'_>, outer: Ways) -> Finding {
    let found = all_needed(parts, choice, run, outer);
    let has = |found: &[(String, Finding)], outcome| found.iter().any(|f| f.1.outcome == outcome);
    let fails = |found: &[(String, Finding)]| found.iter().any(|f| f.1.outcome.fails());
    if has(&found, Outcome::Holds) && fails(&found) {
        let count = parts.iter().filter(|part| applicable(part, run)).count();
        let strict = judge_parts(parts, choice, run, Ways::separately(count).nested_in(outer));
        if has(&strict, Outcome::Holds) && fails(&strict) {
            return in_part(&strict);
        }
    }
    let whole = all_hold(&found);
    match whole.outcome {
        Outcome::Holds if has(&found, Outcome::NotApplicable) => in_part(&found),
        _ => whole,
    }
}

/// How often these cells were looked at before they are judged: the n-th look has half the chance of error of the one
/// before it, so that all together have 0.05 at most.
fn looks(filters: &[CellFilter], run: &MeasuredRun<'_>) -> Ways {
    if !run.in_rounds {
        return Ways::ONE;
    }
    let about = |t: &&Observation<'_>| filters.iter().any(|filter| t.cell.passes(filter));
    let rounds = run.trials.iter().filter(about).map(|trial| trial.round);
    Ways::separately(2usize.saturating_pow(rounds.max().unwrap_or(0) + 1))
}

/// Why a claim, or a part of one, is not judged by the run.
#[derive(Clone, Debug)]
enum Lacking {
    /// It is about something that the run does not have.
    NotApplicable(String),
    /// The cells that the run has do not tell it.
    Untold(String),
}

impl From<Lacking> for Finding {
    fn from(lacking: Lacking) -> Finding {
        match lacking {
            Lacking::NotApplicable(why) => Finding::new(Outcome::NotApplicable, why, ""),
            Lacking::Untold(why) => Finding::cannot_tell(why),
        }
    }
}

/// Why a claim is not judged by the run.
fn lacking(claim: &Claim, run: &MeasuredRun<'_>) -> Option<Lacking> {
    let rules: Vec<&ClaimRule> = claim.parts.iter().flat_map(ClaimPart::rules).collect();
    let before = |first: &String| match &run.day {
        Some(day) if day < first => Some(Lacking::Untold(format!(
            "it was measured on {day}; its rule or its bed is another one since {first}"
        ))),
        _ => None,
    };
    unjudged(&claim.needs, &rules, run).or_else(|| claim.not_before.as_ref().and_then(before))
}

/// Why a part of a claim is not judged by the run.
fn lacks(part: &ClaimPart, run: &MeasuredRun<'_>) -> Option<Lacking> {
    unjudged(&part.needs, &part.rules(), run)
}

fn unjudged(needs: &Needs, rules: &[&ClaimRule], run: &MeasuredRun<'_>) -> Option<Lacking> {
    let missing = missing(needs, rules, run).map(Lacking::NotApplicable);
    missing.or_else(|| needs.untold.clone().map(Lacking::Untold))
}

/// Why these rules of a claim are not applicable to the run. The network that they need is that of their cells.
fn missing(needs: &Needs, rules: &[&ClaimRule], run: &MeasuredRun<'_>) -> Option<String> {
    if let Some(why) = &needs.never {
        return Some(why.clone());
    }
    // Without a trial nobody knows over which links they would go.
    if needs.untold.is_some() {
        return None;
    }
    let has = |system: &String| run.systems().any(|s| s == system);
    let lacking: Vec<&str> = needs
        .systems
        .iter()
        .filter(|s| !has(s))
        .map(String::as_str)
        .collect();
    if !lacking.is_empty() {
        return Some(format!("the run has no {}", lacking.join(", no ")));
    }
    let wanted = needs.network.as_ref()?;
    match &run.network_of(rules)[..] {
        [] if run.networks.is_empty() => Some(format!(
            "it needs {wanted}; the run has no network between hosts"
        )),
        [] => Some(format!(
            "it needs {wanted}; not all of its cells ran on such a network"
        )),
        is if !is.contains(&&**wanted) => Some(format!(
            "it needs {wanted}; its cells have {}",
            is.join(", ")
        )),
        _ => None,
    }
}

/// Whether there is something to judge by.
fn applicable(part: &ClaimPart, run: &MeasuredRun<'_>) -> bool {
    (part.rule.is_some() || part.group.is_some()) && lacks(part, run).is_none()
}

/// The finding of each part, where all must hold.
pub(crate) fn all_needed(
    parts: &[ClaimPart],
    choice: &Choice,
    run: &MeasuredRun<'_>,
    outer: Ways,
) -> Vec<(String, Finding)> {
    let count = parts.iter().filter(|part| applicable(part, run)).count();
    judge_parts(parts, choice, run, Ways::every(count).nested_in(outer))
}

/// The finding of each part, by its name.
fn judge_parts(
    parts: &[ClaimPart],
    choice: &Choice,
    run: &MeasuredRun<'_>,
    ways: Ways,
) -> Vec<(String, Finding)> {
    let judged = |part: &ClaimPart| match (lacks(part, run), &part.rule, &part.group) {
        (Some(lacking), ..) => lacking.into(),
        (None, Some(rule), _) => Judging { rule, choice, run }.judge_part(ways),
        (None, None, Some(group)) => {
            let of = |parts: &[ClaimPart]| parts.iter().filter(|p| applicable(p, run)).count();
            match group.least {
                None => {
                    let found = all_needed(&group.parts, choice, run, ways);
                    let left_out = found.iter().any(|f| f.1.outcome == Outcome::NotApplicable);
                    match all_hold(&found) {
                        // A cell that is left out could decide.
                        whole if whole.outcome == Outcome::Holds && left_out => Finding {
                            outcome: Outcome::CannotTell,
                            turn: None,
                            ..whole
                        },
                        whole => whole,
                    }
                }
                Some(count) => {
                    let ways = Ways::at_least(count, of(&group.parts)).nested_in(ways);
                    enough_hold(count, &judge_parts(&group.parts, choice, run, ways))
                }
            }
        }
        (None, None, None) => Finding::new(Outcome::NotApplicable, "no rule", ""),
    };
    let named = |part: &ClaimPart| (part.name.clone(), of_version(judged(part), &part.needs));
    parts.iter().map(named).collect()
}

/// More than a share of the decided points of all parts must hold: Wilson's interval. Ties are left out, and so are parts
/// that are not applicable; without these it holds in part at best.
fn share_of_points(
    claim: &Claim,
    choice: &Choice,
    share: f64,
    run: &MeasuredRun<'_>,
    ways: Ways,
) -> Finding {
    let left_out = claim.parts.iter().filter_map(|part| {
        let (Lacking::NotApplicable(why) | Lacking::Untold(why)) = lacks(part, run)?;
        Some(named(&part.name, &why))
    });
    let left_out: Vec<String> = left_out.collect();
    let parts = claim.parts.iter().filter(|part| lacks(part, run).is_none());
    let rules = parts.filter_map(|part| part.rule.as_ref());
    let judged: Vec<Judging<'_>> = rules.map(|rule| Judging { rule, choice, run }).collect();
    if judged.is_empty() {
        return Finding::new(Outcome::NotApplicable, left_out.join("; "), "");
    }
    let apart = |own: &Judging<'_>| cells::slowed_apart(run, own.rule, &own.filters());
    if let Some(why) = judged.iter().find_map(apart) {
        return Finding::cannot_tell(why);
    }
    let looks = looks(&filters_of(&claim.parts, Some(choice)), run);
    let points: Vec<(String, Finding)> = judged
        .iter()
        .flat_map(|own| own.judge_separately(ways))
        .collect();
    let count = |outcome| points.iter().filter(|(_, f)| f.outcome == outcome).count();
    let (won, lost) = (count(Outcome::Holds), count(Outcome::DoesNotHold));
    let decided = won + lost;
    let (low, high) = wilson(won, decided, one_of(ways.nested_in(looks).hold));
    let percent = |share: f64| shown::number(100.0 * share);
    let ours = format!(
        "{won} of {decided} decided points, {} ties or missing ({} % to {} %)",
        points.len() - decided,
        percent(low),
        percent(high)
    );
    if decided < FEWEST_DECIDED {
        let reason = format!("{decided} decided points, at least {FEWEST_DECIDED} are needed");
        return Finding::new(Outcome::CannotTell, reason, ours);
    }
    let without = format!("left out: {}", left_out.join("; "));
    let (outcome, reason) = match (low > share, high < share) {
        (true, _) if left_out.is_empty() => (Outcome::Holds, ""),
        (true, _) => (Outcome::InPart, &*without),
        (_, true) => (Outcome::DoesNotHold, ""),
        _ => (
            Outcome::CannotTell,
            "the share's interval has both sides of it",
        ),
    };
    Finding::new(outcome, reason, ours)
}
