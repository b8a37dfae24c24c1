//! Whether a quantity lies in a range, or those of a curve do together.

use pubgauge_quantities::stats::{Estimate, one_of};

use crate::finding::{Finding, Lack, Outcome, Tells, TurningPoint, named};
use crate::several::{all_hold, listed};

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
        Ways::at_least(points, points)
    }

    /// One of `points` that holds decides, all must fail.
    pub fn any_of(points: usize) -> Ways {
        Ways::at_least(1, points)
    }

    /// At least `least` of `points` must hold.
    pub fn at_least(least: usize, points: usize) -> Ways {
        Ways {
            hold: (points + 1).saturating_sub(least).max(1),
            fail: least.max(1),
        }
    }

    /// Of `several` judgements each is told by itself, whichever way it goes.
    pub fn separately(several: usize) -> Ways {
        let several = several.max(1);
        Ways {
            hold: several,
            fail: several,
        }
    }

    /// Within another judgement.
    pub fn nested_in(self, outer: Ways) -> Ways {
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
    let turned = |limit: f64, half: f64| {
        limit.is_finite().then(|| TurningPoint {
            words: format!("{} instead of {shown}", show(limit)),
            distance: if half > 0.0 && half.is_finite() {
                (middle - limit).abs() / half
            } else {
                f64::INFINITY
            },
        })
    };
    // An open end is never passed, not even by an open interval.
    let over_low = low == f64::NEG_INFINITY || from > low;
    let under_high = high == f64::INFINITY || to < high;
    if over_low && under_high {
        let limit = if middle - low < high - middle {
            low
        } else {
            high
        };
        return Finding {
            turn: turned(limit, (to - from) / 2.0),
            ..found(Outcome::Holds, from, to)
        };
    }
    if most < low || least > high {
        let limit = if most < low { low } else { high };
        return Finding {
            turn: turned(limit, (most - least) / 2.0),
            ..found(Outcome::DoesNotHold, least, most)
        };
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
    let repeats = tells
        .then(|| estimate.repeats_for(distance, one_of(ways)))
        .flatten();
    let toward = if is_inside {
        Outcome::Holds
    } else {
        Outcome::DoesNotHold
    };
    Finding {
        tells: repeats.map(|repeats| Tells {
            outcome: Some(toward),
            repeats,
        }),
        ..found(Outcome::CannotTell, from, to)
    }
}

/// A point of an axis with what was estimated there, or why nothing was.
pub type Estimated = (String, Result<Estimate, Lack>);

/// The judge of a curve: what all points say together decides, and no point may be decided against. One that is
/// decides by itself.
pub fn joint(
    whole: (String, Finding),
    points: &[Estimated],
    range: (f64, f64),
    ways: Ways,
    show: Show<'_>,
) -> Finding {
    let known = points
        .iter()
        .filter_map(|(name, found)| Some((name, found.as_ref().ok()?)));
    let judged: Vec<(String, Finding, f64)> = known
        .map(|(name, estimate)| {
            let middle = estimate.middle();
            let margin = (middle - range.0).min(range.1 - middle);
            (name.clone(), inside(estimate, range, ways, show), margin)
        })
        .collect();
    let against: Vec<(String, Finding)> = judged
        .iter()
        .filter(|(_, finding, _)| finding.outcome == Outcome::DoesNotHold)
        .map(|(name, finding, _)| (name.clone(), finding.clone()))
        .collect();
    if !against.is_empty() {
        let said = [whole].into_iter().filter(|w| !w.1.ours.is_empty());
        return Finding {
            ours: listed(
                said.chain(against.clone()).collect::<Vec<_>>().iter(),
                |f| &f.ours,
            ),
            ..all_hold(&against)
        };
    }
    let (name, whole) = whole;
    let refuting = judged.iter().filter_map(|(_, finding, _)| finding.tells);
    let refuting = refuting.filter(|tells| tells.outcome == Some(Outcome::DoesNotHold));
    let undecided = whole.outcome == Outcome::CannotTell && whole.tells.is_some();
    let soonest = refuting
        .chain(whole.tells)
        .min_by_key(|tells| tells.repeats);
    let nearest = judged.iter().min_by(|a, b| a.2.total_cmp(&b.2));
    let of_nearest = nearest.map(|(name, finding, _)| named(name, &finding.ours));
    Finding {
        ours: match (named(&name, &whole.ours), of_nearest) {
            (all, Some(nearest)) if points.len() > 1 => {
                format!("{all}; nearest to the contrary: {nearest}")
            }
            (all, _) => all,
        },
        reason: match whole.outcome {
            Outcome::Holds => String::new(),
            _ => named(&name, whole.reason()),
        },
        tells: soonest.filter(|_| undecided),
        turn: whole.turn.map(|turn| turn.about(&name)),
        outcome: whole.outcome,
    }
}
