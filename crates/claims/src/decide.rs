//! Whether a quantity lies in a range, and how findings are combined.

use std::fmt;

use pubgauge_quantities::stats::{Estimate, one_of};

/// The judgement of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It holds here.
    Holds,
    /// It does not hold here.
    DoesNotHold,
    /// Neither could be shown.
    CannotTell,
    /// It is about something that is not here.
    NotApplicable,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Outcome::Holds => "holds",
            Outcome::DoesNotHold => "does not hold",
            Outcome::CannotTell => "cannot tell",
            Outcome::NotApplicable => "not applicable",
        })
    }
}

/// An outcome with what decided it.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub outcome: Outcome,
    /// What decided, or what would be needed.
    pub reason: String,
    /// The figures that were judged, in words; empty if there are none.
    pub ours: String,
    /// About how many repeats would decide; `None` where repeats would not help.
    pub repeats_to_tell: Option<u32>,
}

impl Finding {
    /// A finding that repeats do not change.
    pub fn new(outcome: Outcome, reason: impl Into<String>, ours: impl Into<String>) -> Finding {
        Finding {
            outcome,
            reason: reason.into(),
            ours: ours.into(),
            repeats_to_tell: None,
        }
    }

    /// [`Outcome::CannotTell`], because of `reason`.
    pub fn cannot_tell(reason: impl Into<String>) -> Finding {
        Finding::new(Outcome::CannotTell, reason, "")
    }

    /// The reason; the figures, where they are reason enough.
    fn why(&self) -> &str {
        match self.reason.as_str() {
            "" => &self.ours,
            reason => reason,
        }
    }
}

/// In how many ways a judgement over several points could be wrong by chance: the confidence of a point
/// is `1 - 0.05 / ways`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ways {
    /// For a point to hold.
    pub hold: usize,
    /// For a point to fail.
    pub fail: usize,
}

impl Ways {
    /// A single point.
    pub const ONE: Ways = Ways { hold: 1, fail: 1 };

    /// All of `points` must hold, one that fails decides.
    pub fn every(points: usize) -> Ways {
        Ways::least(points, points)
    }

    /// One of `points` that holds decides, all must fail.
    pub fn some(points: usize) -> Ways {
        Ways::least(1, points)
    }

    /// At least `least` of `points` must hold.
    pub fn least(least: usize, points: usize) -> Ways {
        Ways {
            hold: (points + 1).saturating_sub(least).max(1),
            fail: least.max(1),
        }
    }

    /// Within another judgement.
    pub fn within(self, outer: Ways) -> Ways {
        Ways {
            hold: self.hold * outer.hold,
            fail: self.fail * outer.fail,
        }
    }
}

/// How a quantity is shown: its estimate as it was judged, a logarithm or plain.
pub type Show<'a> = &'a dyn Fn(f64) -> String;

/// The judge of one point: the quantity lies between `low` and `high` (either may be infinite).
///
/// It holds if its whole interval does, fails if its whole interval lies on one side outside, and is
/// undecided otherwise.
pub fn inside(estimate: &Estimate, (low, high): (f64, f64), ways: Ways, show: Show<'_>) -> Finding {
    let (from, to) = estimate.interval(ways.hold);
    let (least, most) = estimate.interval(ways.fail);
    let middle = estimate.middle();
    // The middle of a limit with one end is that end.
    let end = |end: f64, or: &str| {
        if end == middle {
            or.to_owned()
        } else {
            format!("({} {or})", show(end))
        }
    };
    let (shown, ends) = (show(middle), |a: f64, b: f64| {
        match (a.is_finite(), b.is_finite()) {
            (true, true) => format!("({} to {})", show(a), show(b)),
            (true, false) => end(a, "or more"),
            (false, true) => end(b, "or less"),
            (false, false) => "(no bound)".to_owned(),
        }
    });
    let found = |outcome, a, b| Finding::new(outcome, "", format!("{shown} {}", ends(a, b)));
    // An open end is never passed, not even by an open interval.
    let over_low = low == f64::NEG_INFINITY || from > low;
    let under_high = high == f64::INFINITY || to < high;
    if over_low && under_high {
        return found(Outcome::Holds, from, to);
    }
    if most < low || least > high {
        return found(Outcome::DoesNotHold, least, most);
    }
    let is_inside = middle > low && middle < high;
    let distance = if is_inside {
        (middle - low).min(high - middle)
    } else {
        (low - middle).max(middle - high)
    };
    let ways = if is_inside { ways.hold } else { ways.fail };
    // With ever more repeats the known ends approach the middle; an end that is lacking does not.
    let known = |end: f64| end.is_finite();
    let tells = match is_inside {
        true => (low == f64::NEG_INFINITY || known(from)) && (high == f64::INFINITY || known(to)),
        false if middle <= low => known(most),
        false => known(least),
    };
    let repeats = || estimate.repeats_for(distance, one_of(ways));
    Finding {
        repeats_to_tell: tells.then(repeats).flatten(),
        ..found(Outcome::CannotTell, from, to)
    }
}

/// All must hold: one that fails decides. What is not applicable is left out and named.
pub fn all(findings: &[(String, Finding)]) -> Finding {
    combine(findings, Outcome::DoesNotHold, Outcome::Holds)
}

/// One that holds decides; it fails if all fail.
pub fn any(findings: &[(String, Finding)]) -> Finding {
    combine(findings, Outcome::Holds, Outcome::DoesNotHold)
}

/// At least `least` must hold. What is not applicable is left out and named: it could have held, and could
/// have failed.
pub fn least(least: usize, findings: &[(String, Finding)]) -> Finding {
    let count = |outcome| {
        findings
            .iter()
            .filter(|(_, f)| f.outcome == outcome)
            .count()
    };
    let left_out = count(Outcome::NotApplicable);
    if findings.len() - left_out < least {
        return Finding {
            outcome: Outcome::NotApplicable,
            ..all(findings)
        };
    }
    let (held, failed) = (count(Outcome::Holds), count(Outcome::DoesNotHold));
    let outcome = match held >= least {
        true => Outcome::Holds,
        false if findings.len() - failed < least => Outcome::DoesNotHold,
        false => Outcome::CannotTell,
    };
    let each = findings
        .iter()
        .map(|(name, f)| named(name, &named(&f.outcome.to_string(), f.why())));
    let each: Vec<String> = each.collect();
    let reason = format!("{held} of {} hold: {}", findings.len(), shortened(&each));
    over(findings, outcome, reason)
}

/// Implementations of the same thing must agree; where they differ, the outcome is
/// [`Outcome::CannotTell`].
pub fn agree(findings: &[(String, Finding)]) -> Finding {
    let applicable = || {
        findings
            .iter()
            .filter(|(_, f)| f.outcome != Outcome::NotApplicable)
    };
    let Some((_, first)) = applicable().next() else {
        return all(findings);
    };
    if applicable().all(|(_, f)| f.outcome == first.outcome) {
        return match first.outcome {
            Outcome::DoesNotHold => Finding {
                ours: listed(findings, |f| &f.ours),
                ..all(findings)
            },
            _ => all(findings),
        };
    }
    let decided = |outcome| applicable().any(|(_, f)| f.outcome == outcome);
    let why = if decided(Outcome::Holds) && decided(Outcome::DoesNotHold) {
        "it differs between implementations".to_owned()
    } else {
        "not decided for every implementation".to_owned()
    };
    let each = applicable().map(|(name, f)| match f.reason.as_str() {
        "" => format!("{name}: {}", f.outcome),
        reason => format!("{name}: {} ({reason})", f.outcome),
    });
    let reason = format!("{why}: {}", each.collect::<Vec<_>>().join("; "));
    over(findings, Outcome::CannotTell, reason)
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
    // A finding that holds at all its points needs no list of them as a reason.
    let mut reason = match outcome {
        Outcome::Holds if decides != Outcome::Holds => String::new(),
        outcome => listed(is(outcome), Finding::why),
    };
    if !left_out.is_empty() {
        let gap = if reason.is_empty() { "" } else { "; " };
        reason.push_str(&format!("{gap}left out: {}", left_out.join("; ")));
    }
    over(findings, outcome, reason)
}

/// The finding over several. Repeats tell only what is not decided.
fn over(findings: &[(String, Finding)], outcome: Outcome, reason: String) -> Finding {
    let repeats = findings.iter().filter_map(|(_, f)| f.repeats_to_tell);
    let undecided = outcome == Outcome::CannotTell;
    Finding {
        outcome,
        reason,
        ours: listed(findings, |f| &f.ours),
        repeats_to_tell: repeats.max().filter(|_| undecided),
    }
}

fn named(name: &str, what: &str) -> String {
    match (name, what) {
        ("", what) => what.to_owned(),
        (name, "") => name.to_owned(),
        (name, what) => format!("{name}: {what}"),
    }
}

/// What findings say, each once: of three and more that say the same, the first is named and the others are counted.
fn listed<'a>(
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
