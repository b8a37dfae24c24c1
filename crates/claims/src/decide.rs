//! Whether a quantity lies in a range, or those of a curve do together.

use pubgauge_quantities::shown::number;
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

/// Where a quantity must lie: between `low` and `high` (either may be infinite), as it is judged, a logarithm or plain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    pub low: f64,
    pub high: f64,
    /// How far on either side of an end is a tie with it.
    pub margin: f64,
}

impl From<(f64, f64)> for Demand {
    fn from((low, high): (f64, f64)) -> Demand {
        Demand {
            low,
            high,
            margin: 0.0,
        }
    }
}

impl Demand {
    /// Where all of an interval lies that holds.
    fn surely(self) -> (f64, f64) {
        (self.low + self.margin, self.high - self.margin)
    }

    /// Beyond which all of an interval lies that fails.
    fn at_all(self) -> (f64, f64) {
        (self.low - self.margin, self.high + self.margin)
    }

    /// Whether an interval lies beside one of the ends, so that more repeats would show a tie.
    fn ties(self, (from, to): (f64, f64)) -> bool {
        let beside = |end: f64| from >= end - self.margin && to <= end + self.margin;
        self.margin > 0.0 && (beside(self.low) || beside(self.high))
    }
}

/// The judge of one point: the quantity lies where it is demanded to.
///
/// It holds if its whole interval does, by the margin of a tie; it fails if its whole interval lies on one side outside,
/// by that margin; it is undecided otherwise.
pub fn inside(
    estimate: &Estimate,
    demand: impl Into<Demand>,
    ways: Ways,
    show: Show<'_>,
) -> Finding {
    let demand = demand.into();
    let (low, high) = demand.surely();
    let (least_low, most_high) = demand.at_all();
    let (from, to) = estimate.interval(ways.hold);
    let (least, most) = estimate.interval(ways.fail);
    let middle = estimate.middle();
    let shown = show(middle);
    let found = |outcome, a, b| {
        let ends = ends_in_words(middle, (a, b), show);
        Finding::new(outcome, "", format!("{shown} {ends}"))
    };
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
    if most < least_low || least > most_high {
        let limit = if most < least_low {
            least_low
        } else {
            most_high
        };
        return Finding {
            turn: turned(limit, (most - least) / 2.0),
            ..found(Outcome::DoesNotHold, least, most)
        };
    }
    if demand.ties((from, to)) {
        let percent = number(100.0 * demand.margin.exp_m1());
        let open = found(Outcome::CannotTell, from, to);
        return Finding {
            reason: format!("{}: a tie within {percent} %", open.ours),
            ..open
        };
    }
    Finding {
        tells: foreseen(estimate, demand, ways),
        ..found(Outcome::CannotTell, from, to)
    }
}

/// The ends of an interval in words, of which either may be open.
fn ends_in_words(middle: f64, (from, to): (f64, f64), show: Show<'_>) -> String {
    // The middle of a limit with one end is that end.
    let end = |end: f64, or: &str| {
        if end == middle {
            or.to_owned()
        } else {
            format!("({} {or})", show(end))
        }
    };
    match (from.is_finite(), to.is_finite()) {
        (true, true) => format!("({} to {})", show(from), show(to)),
        (true, false) => end(from, "or more"),
        (false, true) => end(to, "or less"),
        (false, false) => "(no bound)".to_owned(),
    }
}

/// The outcome that more repeats would have of a quantity that is not decided.
fn foreseen(estimate: &Estimate, demand: Demand, ways: Ways) -> Option<Tells> {
    let (low, high) = demand.surely();
    let (least_low, most_high) = demand.at_all();
    let (from, to) = estimate.interval(ways.hold);
    let (least, most) = estimate.interval(ways.fail);
    let middle = estimate.middle();
    let is_inside = middle > low && middle < high;
    let distance = if is_inside {
        (middle - low).min(high - middle)
    } else {
        (least_low - middle).max(middle - most_high)
    };
    // With ever more repeats the known ends approach the middle; an end that is lacking does not.
    let known = |end: f64| end.is_finite();
    let tells = match is_inside {
        true => (low == f64::NEG_INFINITY || known(from)) && (high == f64::INFINITY || known(to)),
        false if middle <= least_low => known(most),
        false if middle >= most_high => known(least),
        // Beside an end: it becomes a tie.
        false => false,
    };
    let (outcome, ways) = if is_inside {
        (Outcome::Holds, ways.hold)
    } else {
        (Outcome::DoesNotHold, ways.fail)
    };
    let repeats = estimate.repeats_for(distance, one_of(ways));
    repeats.filter(|_| tells).map(|repeats| Tells {
        outcome: Some(outcome),
        repeats,
    })
}

/// A point of an axis with what was estimated there, or why nothing was.
pub type Estimated = (String, Result<Estimate, Lack>);

/// The judge of a curve: what all points say together decides, and no point may be decided against. One that is
/// decides by itself.
pub fn joint(
    whole: (String, Finding),
    points: &[Estimated],
    demand: impl Into<Demand>,
    ways: Ways,
    show: Show<'_>,
) -> Finding {
    let demand = demand.into();
    let known = points
        .iter()
        .filter_map(|(name, found)| Some((name, found.as_ref().ok()?)));
    let judged: Vec<(String, Finding, f64)> = known
        .map(|(name, estimate)| {
            let middle = estimate.middle();
            let beyond = (middle - demand.low).min(demand.high - middle);
            (name.clone(), inside(estimate, demand, ways, show), beyond)
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
