//! Judges of a curve over an axis (crossing, jump, slope, spread, where a share of the maximum is reached), and
//! figures of a curve over time.

use pubgauge_quantities::shown;
use pubgauge_quantities::stats::{CONFIDENCE, Estimate, LinearFit, half_by_chance, moments};

use crate::decide::{Estimated, Ways, inside, joint};
use crate::finding::{Finding, Lack, Outcome, Tells};
use crate::several::all_hold;

/// Repeats that a judge of curves needs.
pub const FEWEST: usize = 3;

/// Fewest records of a repeat for a standard deviation or a growth.
const WINDOWS: usize = 8;

pub(crate) fn shown_ratio(log: f64) -> String {
    shown::number(log.exp())
}

/// How far off a line a curve may be and still be straight, as a share of its range.
const STRAIGHT: f64 = 0.1;

const ABOVE: (f64, f64) = (0.0, f64::INFINITY);
const BELOW: (f64, f64) = (f64::NEG_INFINITY, 0.0);

fn judge_both_ends(ratio: &Estimated, range: (f64, f64), ways: Ways) -> (String, Finding) {
    let finding = match &ratio.1 {
        Ok(estimate) => inside(estimate, range, ways, &shown_ratio),
        Err(lack) => lack.clone().into(),
    };
    (ratio.0.clone(), finding)
}

/// A crossing: the ratio is above 1 at the first `above` points and below 1 at the last `below` ones, as geometric
/// means, with no point decided against. `mean` is that of so many points from one on.
pub fn cross(
    ratios: &[Estimated],
    above: usize,
    below: usize,
    mean: &dyn Fn(usize, usize) -> Result<Estimate, Lack>,
    outer: Ways,
) -> Finding {
    let (n, required) = (ratios.len(), above + below);
    if above == 0 || below == 0 || required > n {
        return Finding::cannot_tell("no points on both sides of the crossing");
    }
    // The points, and the two means.
    let ways = Ways::every(required + 2).nested_in(outer);
    let side = |first: usize, count: usize, range| {
        let points = &ratios[first..first + count];
        let name = match points {
            [(only, _)] => only.clone(),
            [(first, _), .., (last, _)] => format!("mean from {first} to {last}"),
            [] => String::new(),
        };
        let (_, whole) = judge_both_ends(&(String::new(), mean(first, count)), range, ways);
        let judged = joint((name, whole), points, range, ways, &shown_ratio);
        (String::new(), judged)
    };
    all_hold(&[side(0, above, ABOVE), side(n - below, below, BELOW)])
}

/// A crossing anywhere: above 1 at the first point, below 1 at the last, and never decidedly back.
pub fn cross_anywhere(ratios: &[Estimated], outer: Ways) -> Finding {
    let [first, .., last] = ratios else {
        return Finding::cannot_tell("a crossing needs two points at least");
    };
    let ways = Ways::every(2).nested_in(outer);
    let ends = all_hold(&[
        judge_both_ends(first, ABOVE, ways),
        judge_both_ends(last, BELOW, ways),
    ]);
    if ends.outcome != Outcome::Holds {
        return ends;
    }
    if let Some((name, Err(why))) = ratios.iter().find(|(_, ratio)| ratio.is_err()) {
        return why.clone().about(name).into();
    }
    let signs = ratios.iter().filter_map(|(_, ratio)| {
        let (low, high) = ratio.as_ref().ok()?.interval(1);
        match (low > 0.0, high < 0.0) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    });
    let signs: Vec<bool> = signs.collect();
    if signs.windows(2).any(|pair| !pair[0] && pair[1]) {
        Finding {
            outcome: Outcome::CannotTell,
            reason: "it crosses more than once".into(),
            turn: None,
            ..ends
        }
    } else {
        ends
    }
}

fn steps_of(curve: &[f64]) -> Vec<f64> {
    curve.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// A jump: in each repeat's curve (logarithms, point by point) the largest step is one of `steps`, and it
/// more than doubles the figure. With no `steps` it may be any, but the same in all repeats.
pub fn jump(curves: &[Vec<f64>], steps: Option<&[usize]>, outer: Ways) -> Finding {
    let all_steps: Vec<Vec<f64>> = curves.iter().map(|curve| steps_of(curve)).collect();
    let count = all_steps.first().map_or(0, Vec::len);
    if curves.len() < FEWEST {
        return too_few(curves.len()).into();
    }
    let anywhere: Vec<usize> = (0..count).collect();
    let allowed = steps.unwrap_or(&anywhere);
    if allowed.is_empty() {
        return Finding::cannot_tell("no two points of the axis lie in the range of the jump");
    }
    let largest = |steps: &Vec<f64>, among: &[usize]| {
        among
            .iter()
            .copied()
            .max_by(|a, b| steps[*a].total_cmp(&steps[*b]))
            .unwrap_or(0)
    };
    let places: Vec<usize> = all_steps.iter().map(|s| largest(s, &anywhere)).collect();
    let heights: Vec<f64> = all_steps.iter().map(|s| s[largest(s, allowed)]).collect();
    let doubled = (2f64.ln(), f64::INFINITY);
    let height = inside(&Estimate::mean_of(&heights), doubled, outer, &shown_ratio);
    let there = places
        .iter()
        .filter(|place| allowed.contains(place))
        .count();
    let one_place = places.windows(2).all(|pair| pair[0] == pair[1]);
    let with = |outcome, reason: &str| Finding {
        outcome,
        reason: reason.into(),
        turn: None,
        ..height.clone()
    };
    if steps.is_some() && there == 0 {
        return with(
            Outcome::DoesNotHold,
            "the largest step lies elsewhere in every repeat",
        );
    }
    match height.outcome {
        Outcome::DoesNotHold => with(Outcome::DoesNotHold, "no step doubles it"),
        Outcome::Holds if there < curves.len() => with(
            Outcome::CannotTell,
            "the largest step does not lie there in every repeat",
        ),
        Outcome::Holds if steps.is_none() && !one_place => with(
            Outcome::CannotTell,
            "the largest step lies elsewhere from repeat to repeat",
        ),
        _ => height,
    }
}

/// Curves of two sides, one for each repeat: points (x, y).
pub type Curves<'a> = (&'a str, &'a [Vec<(f64, f64)>]);

/// The first side's least squares line rises less than the second's; with `linear`, both are straight.
pub fn slope(a: Curves<'_>, b: Curves<'_>, linear: bool, outer: Ways) -> Finding {
    for (name, curves) in [a, b] {
        if curves.len() < FEWEST {
            return too_few(curves.len()).about(name).into();
        }
        if curves.iter().any(|curve| curve.len() < 3) {
            return Finding::cannot_tell(format!("{name}: a slope needs three points at least"));
        }
    }
    let parts = if linear { 3 } else { 1 };
    let ways = Ways::every(parts).nested_in(outer);
    let slope =
        |curve: &Vec<(f64, f64)>| LinearFit::through(curve).map_or(f64::NAN, |line| line.slope);
    let slopes = |curves: &[Vec<(f64, f64)>]| curves.iter().map(slope).collect::<Vec<_>>();
    let (of_a, of_b) = (slopes(a.1), slopes(b.1));
    let difference = Estimate::contrast(&[(1.0, &of_a), (-1.0, &of_b)]);
    let show = |value: f64| format!("{} a unit", shown::number(value));
    let mut found = vec![(
        "slopes apart".to_owned(),
        inside(&difference, BELOW, ways, &show),
    )];
    if linear {
        found.extend(
            [a, b].map(|(name, curves)| (format!("{name} linear"), straight(curves, ways))),
        );
    }
    all_hold(&found)
}

/// Whether the mean curve is a straight line: the interval of each point's distance from it, over the repeats, lies within
/// a tenth of the curve's range. It is not if one lies beyond that.
fn straight(curves: &[Vec<(f64, f64)>], outer: Ways) -> Finding {
    let points = curves[0].len();
    let of_repeats =
        |value: &dyn Fn(usize) -> f64| (0..curves.len()).map(value).collect::<Vec<_>>();
    let mean = |point: usize| moments(&of_repeats(&|repeat| curves[repeat][point].1)).0;
    let (least, most) = (0..points)
        .map(mean)
        .fold((f64::MAX, f64::MIN), |(least, most), y| {
            (least.min(y), most.max(y))
        });
    let range = (most - least).max(f64::MIN_POSITIVE);
    let residuals = |curve: &Vec<(f64, f64)>| {
        let line = LinearFit::through(curve);
        let off = |point| line.map_or(f64::NAN, |line| line.residual(point));
        curve.iter().map(off).collect()
    };
    let residuals: Vec<Vec<f64>> = curves.iter().map(residuals).collect();
    let off =
        |point: usize| Estimate::mean_of(&of_repeats(&|repeat| residuals[repeat][point] / range));
    let off: Vec<Estimate> = (0..points).map(off).collect();
    let ways = Ways::every(points).nested_in(outer);
    let show = |share: f64| format!("{} %", shown::number(100.0 * share));
    let judged = |point: &Estimate| inside(point, (-STRAIGHT, STRAIGHT), ways, &show);
    let far = |a: &&Estimate, b: &&Estimate| a.middle().abs().total_cmp(&b.middle().abs());
    let Some(furthest) = off.iter().max_by(far) else {
        return Finding::cannot_tell("no points");
    };
    let first = |outcome| off.iter().map(judged).find(|f| f.outcome == outcome);
    let bent = first(Outcome::DoesNotHold).or_else(|| first(Outcome::CannotTell));
    let found = bent.unwrap_or_else(|| judged(furthest));
    Finding {
        ours: format!("off the line by {} of the range", found.ours),
        ..found
    }
}

/// Where each curve (x, y) first reaches this share of its own largest value: the index of that point.
pub fn reached(curves: &[Vec<(f64, f64)>], share: f64) -> Vec<usize> {
    let place = |curve: &Vec<(f64, f64)>| {
        let largest = curve.iter().map(|p| p.1).fold(f64::MIN, f64::max);
        let there = curve.iter().position(|p| p.1 >= share * largest);
        there.unwrap_or(0)
    };
    curves.iter().map(place).collect()
}

/// Whether the first side is earlier in more repeats than by chance, or later: exact binomial test in both directions,
/// repeat by repeat. Repeats with equal places count for neither.
pub fn earlier(a: &[usize], b: &[usize], ours: String, ways: Ways) -> Finding {
    let pairs = || a.iter().zip(b);
    let all = pairs().count();
    let earlier = pairs().filter(|(a, b)| a < b).count();
    let later = pairs().filter(|(a, b)| a > b).count();
    let is_chance = |hits: usize, all: usize, ways: usize| {
        half_by_chance(hits, all) > (1.0 - CONFIDENCE) / 2.0 / ways as f64
    };
    let shown = |hits: usize, ways: usize| all >= FEWEST && !is_chance(hits, all, ways);
    let ours = format!("earlier in {earlier} of {all} repeats, later in {later}: {ours}");
    if shown(earlier, ways.hold) {
        return Finding::new(Outcome::Holds, "", ours);
    }
    if shown(later, ways.fail) {
        return Finding::new(Outcome::DoesNotHold, "", ours);
    }
    let (hits, ways, toward) = if earlier >= later {
        (earlier, ways.hold, Outcome::Holds)
    } else {
        (later, ways.fail, Outcome::DoesNotHold)
    };
    // As many as would decide if the share stayed as it is.
    let decides = |repeats: &usize| !is_chance((hits * repeats) / all.max(1), *repeats, ways);
    let repeats = (all + 1..=200).find(|n| 2 * hits > all && decides(n));
    Finding {
        outcome: Outcome::CannotTell,
        reason: format!("{hits} of {all} repeats may be chance"),
        ours,
        tells: repeats.map(|repeats| Tells {
            outcome: Some(toward),
            repeats: repeats as u32,
        }),
        turn: None,
    }
}

/// Standard deviation over mean (coefficient of variation) of the records of a repeat; `None` of fewer than
/// 8, or if the mean is not above 0.
pub fn variation(records: &[f64]) -> Option<f64> {
    let (mean, variance) = moments(records);
    (records.len() >= WINDOWS && mean > 0.0).then(|| variance.sqrt() / mean)
}

/// The mean of the last quarter of a repeat's records over that of the first; `None` of fewer than 8, or
/// if the first is not above 0.
pub fn growth(records: &[f64]) -> Option<f64> {
    let quarter = records.len() / 4;
    let (first, _) = moments(&records[..quarter]);
    let (last, _) = moments(&records[records.len() - quarter..]);
    (records.len() >= WINDOWS && first > 0.0).then(|| last / first)
}

/// The logarithm of a repeat's standard deviation; `None` of fewer than 8 windows.
pub fn spread_of_windows(windows: &[f64]) -> Option<f64> {
    (windows.len() >= WINDOWS).then(|| moments(windows).1.sqrt().ln())
}

/// The logarithm of the standard deviation of the steps of a curve on logarithms; `None` of fewer than
/// two steps.
pub fn spread_of_steps(curve: &[f64]) -> Option<f64> {
    let steps = steps_of(curve);
    (steps.len() >= 2).then(|| moments(&steps).1.sqrt().ln())
}

/// Too few repeats to judge by.
pub fn too_few(repeats: usize) -> Lack {
    Lack {
        why: format!("{repeats} valid repeats, at least {FEWEST} are needed"),
        repeats: Some(FEWEST as u32),
        aside: false,
    }
}
