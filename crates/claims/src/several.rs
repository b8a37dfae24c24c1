//! How findings are combined.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::{Finding, Outcome, Tells, TurningPoint, named};

/// All must hold: one that fails decides. What is not applicable is left out and named.
pub fn all_hold(findings: &[(String, Finding)]) -> Finding {
    // Where one fails here and another of its version alone, it is not the version that decides.
    let is = |outcome| findings.iter().any(|(_, f)| f.outcome == outcome);
    if is(Outcome::OfVersion) && !is(Outcome::DoesNotHold) {
        return combine(findings, Outcome::OfVersion, Outcome::Holds);
    }
    combine(findings, Outcome::DoesNotHold, Outcome::Holds)
}

/// One that holds decides; it fails if all fail.
pub fn any(findings: &[(String, Finding)]) -> Finding {
    combine(findings, Outcome::Holds, Outcome::DoesNotHold)
}

/// At least `least` must hold. What is not applicable could hold, and could fail: where it could decide, nobody can tell.
pub fn enough_hold(least: usize, findings: &[(String, Finding)]) -> Finding {
    let count = |outcome| {
        findings
            .iter()
            .filter(|(_, f)| f.outcome == outcome)
            .count()
    };
    if count(Outcome::NotApplicable) == findings.len() {
        return all_hold(findings);
    }
    let failed = count(Outcome::DoesNotHold) + count(Outcome::OfVersion);
    let held = count(Outcome::Holds);
    let outcome = match held >= least {
        true => Outcome::Holds,
        false if findings.len() - failed < least => Outcome::DoesNotHold,
        false => Outcome::CannotTell,
    };
    let each = findings
        .iter()
        .map(|(name, f)| named(name, &named(&f.outcome.to_string(), f.reason())));
    let each: Vec<String> = each.collect();
    let reason = format!("{held} of {} hold: {}", findings.len(), shortened(&each));
    // The n-th of those that go one way decides, where it is foreseen.
    let nth = |toward, n: usize| {
        let open = findings.iter().filter_map(|(_, f)| f.tells);
        let mut open: Vec<Tells> = open.filter(|t| t.outcome == Some(toward)).collect();
        open.sort_by_key(|tells| tells.repeats);
        open.get(n.checked_sub(1)?).copied()
    };
    let enough = nth(Outcome::Holds, least.saturating_sub(held));
    let too_few = nth(
        Outcome::DoesNotHold,
        (findings.len() - failed + 1).saturating_sub(least),
    );
    let told = enough.into_iter().chain(too_few);
    let told = told.min_by_key(|tells| tells.repeats);
    finding_over(findings, outcome, reason, told)
}

/// The halves of a claim by their outcomes: which hold, which do not, and which could not be judged.
pub fn in_part(findings: &[(String, Finding)]) -> Finding {
    let reason = by_outcome(findings, ": ", "");
    finding_over(findings, Outcome::InPart, reason, None)
}

/// Implementations of the same thing must agree. Where they differ, `strictly` judges each by itself, at the
/// confidence that so many need together: if they still differ, the outcome is [`Outcome::Depends`].
pub fn agree(
    findings: &[(String, Finding)],
    strictly: impl FnOnce() -> Vec<(String, Finding)>,
) -> Finding {
    let outcomes = |findings: &[(String, Finding)]| -> BTreeSet<Outcome> {
        let applicable = findings.iter().map(|(_, f)| f.outcome);
        applicable
            .filter(|o| *o != Outcome::NotApplicable)
            .collect()
    };
    let seen = outcomes(findings);
    let differ = |seen: &BTreeSet<Outcome>| seen.iter().filter(|o| o.is_answer()).count() > 1;
    match seen.iter().next() {
        None => return all_hold(findings),
        Some(Outcome::DoesNotHold | Outcome::OfVersion) if seen.len() == 1 => {
            return Finding {
                ours: listed(findings, |f| &f.ours),
                ..all_hold(findings)
            };
        }
        Some(Outcome::InPart) if seen.len() == 1 => {
            let reason = listed(findings, |f| &f.reason);
            return finding_over(findings, Outcome::InPart, reason, None);
        }
        Some(Outcome::Holds) if seen.len() == 1 => return all_hold(findings),
        _ => {}
    }
    let strict = differ(&seen).then(strictly);
    if let Some(strict) = strict.as_ref().filter(|strict| differ(&outcomes(strict))) {
        let reason = by_outcome(strict, " with ", "");
        return finding_over(strict, Outcome::Depends, reason, None);
    }
    // The number of repeats is worked out for the confidence that was not reached.
    let findings = strict.as_deref().unwrap_or(findings);
    let reason = by_outcome(findings, " with ", "not decided for every implementation: ");
    finding_over(findings, Outcome::CannotTell, reason, differing(findings))
}

/// When implementations are known to differ, or all are decided.
fn differing(findings: &[(String, Finding)]) -> Option<Tells> {
    let mut first: BTreeMap<Outcome, u32> = BTreeMap::new();
    for (_, finding) in findings {
        let foreseen = match finding.outcome {
            Outcome::CannotTell => finding.tells.and_then(|t| Some((t.outcome?, t.repeats))),
            Outcome::NotApplicable => None,
            decided => Some((decided, 0)),
        };
        if let Some((outcome, repeats)) = foreseen {
            let least = first.entry(outcome).or_insert(repeats);
            *least = repeats.min(*least);
        }
    }
    let mut repeats: Vec<u32> = first.into_values().collect();
    repeats.sort_unstable();
    match repeats.get(1) {
        Some(0) | None => every(findings),
        Some(repeats) => Some(Tells {
            outcome: Some(Outcome::Depends),
            repeats: *repeats,
        }),
    }
}

/// When all that is undecided is decided.
fn every(findings: &[(String, Finding)]) -> Option<Tells> {
    let open = findings
        .iter()
        .filter(|(_, f)| f.outcome == Outcome::CannotTell);
    let all: Vec<Tells> = open.map(|(_, f)| f.tells).collect::<Option<_>>()?;
    let first = all.first()?.outcome;
    let alike = all.iter().all(|tells| tells.outcome == first);
    Some(Tells {
        outcome: first.filter(|_| alike),
        repeats: all.iter().map(|tells| tells.repeats).max()?,
    })
}

/// Names by their outcomes; what does not hold or is open with its figures.
fn by_outcome(findings: &[(String, Finding)], with: &str, before: &str) -> String {
    let outcomes: BTreeSet<Outcome> = findings.iter().map(|(_, f)| f.outcome).collect();
    let groups = outcomes.into_iter().map(|outcome| {
        let of = findings.iter().filter(|(_, f)| f.outcome == outcome);
        let each = of.map(|(name, f)| match (outcome, f.reason()) {
            (Outcome::Holds, _) | (_, "") => name.clone(),
            (_, why) => format!("{name} ({why})"),
        });
        let word = match outcome {
            Outcome::NotApplicable => "left out".to_owned(),
            outcome => outcome.to_string(),
        };
        format!("{word}{with}{}", each.collect::<Vec<_>>().join(", "))
    });
    format!("{before}{}", groups.collect::<Vec<_>>().join("; "))
}

fn combine(findings: &[(String, Finding)], decides: Outcome, otherwise: Outcome) -> Finding {
    let is = |outcome| findings.iter().filter(move |(_, f)| f.outcome == outcome);
    let left_out: Vec<String> = is(Outcome::NotApplicable)
        .map(|(name, f)| named(name, &f.reason))
        .collect();
    if left_out.len() == findings.len() {
        let reason = if left_out.is_empty() {
            "nothing to judge".to_owned()
        } else {
            left_out.join("; ")
        };
        return Finding::new(Outcome::NotApplicable, reason, "");
    }
    let some = |outcome: &Outcome| is(*outcome).next().is_some();
    let outcome = [decides, Outcome::CannotTell].into_iter().find(some);
    let outcome = outcome.unwrap_or(otherwise);
    // A finding that holds at all its points needs no list of them as a reason, only of what was left out.
    let mut reason = match outcome {
        Outcome::Holds if decides != Outcome::Holds => listed(is(outcome), |f| &f.reason),
        outcome => listed(is(outcome), Finding::reason),
    };
    if !left_out.is_empty() {
        let gap = if reason.is_empty() { "" } else { "; " };
        reason.push_str(&format!("{gap}left out: {}", left_out.join("; ")));
    }
    // The first that goes the way in which one decides; else all must be known.
    let open = findings.iter().filter_map(|(_, f)| f.tells);
    let deciding = open.filter(|tells| tells.outcome == Some(decides));
    let told = deciding.min_by_key(|tells| tells.repeats);
    let found = finding_over(findings, outcome, reason, told.or_else(|| every(findings)));
    let turn = if outcome == decides {
        furthest(findings, decides)
    } else {
        found.turn
    };
    Finding { turn, ..found }
}

/// For another outcome every finding with this one would have to change: the figure that is furthest from its limit.
/// `None` where one of them has no such figure.
fn furthest(findings: &[(String, Finding)], outcome: Outcome) -> Option<TurningPoint> {
    let is = findings.iter().filter(|(_, f)| f.outcome == outcome);
    let turns: Vec<TurningPoint> = is
        .map(|(name, f)| Some(f.turn.clone()?.about(name)))
        .collect::<Option<_>>()?;
    let count = turns.len();
    let furthest = turns
        .into_iter()
        .max_by(|a, b| a.distance.total_cmp(&b.distance))?;
    Some(match count {
        1 => furthest,
        _ => TurningPoint {
            words: format!("all {count}, the furthest {}", furthest.words),
            ..furthest
        },
    })
}

/// Of the findings that are decided, the figure that is nearest to its limit.
fn nearest(findings: &[(String, Finding)]) -> Option<TurningPoint> {
    let turns = findings
        .iter()
        .filter_map(|(name, f)| Some(f.turn.clone()?.about(name)));
    turns.min_by(|a, b| a.distance.total_cmp(&b.distance))
}

/// The finding over several. Repeats tell only what is not decided.
fn finding_over(
    findings: &[(String, Finding)],
    outcome: Outcome,
    reason: String,
    tells: Option<Tells>,
) -> Finding {
    Finding {
        outcome,
        reason,
        ours: listed(findings, |f| &f.ours),
        tells: tells.filter(|_| outcome == Outcome::CannotTell),
        turn: nearest(findings).filter(|_| outcome.is_answer()),
    }
}

/// The words of findings, each once: of three and more that say the same, the first is named and the others are counted.
pub(crate) fn listed<'a>(
    findings: impl IntoIterator<Item = &'a (String, Finding)>,
    of: impl Fn(&Finding) -> &str,
) -> String {
    let mut said: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, finding) in findings.into_iter().filter(|(_, f)| !of(f).is_empty()) {
        let what = of(finding);
        match said.iter_mut().find(|(known, _)| *known == what) {
            // Two points have one step, which is also from the first to the last.
            Some((_, names)) if names.contains(&name.as_str()) => {}
            Some((_, names)) => names.push(name),
            None => said.push((what, vec![name.as_str()])),
        }
    }
    let each = said.iter().map(|(what, names)| {
        let names = match &names[..] {
            [first, _, more @ ..] if !more.is_empty() => {
                format!("{first} and {} more", names.len() - 1)
            }
            names => names.join(", "),
        };
        named(&names, what)
    });
    shortened(&each.collect::<Vec<_>>())
}

/// Most that are listed one by one.
const SHOWN: usize = 8;

fn shortened(all: &[String]) -> String {
    match all.len().checked_sub(SHOWN) {
        None | Some(0) => all.join("; "),
        Some(more) => format!("{}; and {more} more", all[..SHOWN].join("; ")),
    }
}
