//! The largest of several sides over the smallest, whichever they are.

use std::collections::BTreeMap;

use pubgauge_quantities::stats::moments;

use super::cells::{Point, Series};
use super::measured::{Measured, at_least, at_most, zeros};
use crate::curve::{FEWEST, too_few};
use crate::decide::Ways;
use crate::finding::Lack;

/// How much further apart repeats count where they do not choose the same sides: a choice depends on all repeats, and
/// the gap is known less well than they say (simulated with 2 to 4 equal sides and 3 to 20 repeats: it is then in no
/// more than 2 of 100 runs outside its interval).
const OTHERS: f64 = 3.0;

/// The judgements that a gap between so many sides makes at once: of each pair whether it is the gap.
pub(super) fn ways(sides: usize) -> Ways {
    Ways::separately(sides * sides.saturating_sub(1) / 2)
}

/// The gap at each point of the axis.
///
/// In each repeat the largest and the smallest side are those by the means of all other repeats: chosen by the
/// repeat itself, noise alone would make a gap.
pub(super) fn series(sides: &[Series]) -> Series {
    let names: Vec<&str> = sides.iter().map(|side| side.name.as_str()).collect();
    let points = sides.first().map_or(&[][..], |side| &side.points);
    let at = |(nth, (point, _)): (usize, &Point)| {
        let all: Result<Vec<&Measured>, Lack> = sides
            .iter()
            .map(|side| side.points[nth].1.as_ref().map_err(Lack::clone))
            .collect();
        (point.clone(), all.and_then(|all| gap(&all)))
    };
    Series {
        name: format!("largest over smallest of {}", names.join(", ")),
        points: points.iter().enumerate().map(at).collect(),
    }
}

fn gap(all: &[&Measured]) -> Result<Measured, Lack> {
    let limits: Vec<(f64, f64)> = all
        .iter()
        .filter_map(|m| match m {
            Measured::Between(low, high) => Some((*low, *high)),
            Measured::Repeats { .. } | Measured::AtLeast(_) | Measured::AtMost(_) => None,
        })
        .collect();
    if limits.len() == all.len() {
        let largest = |of: fn(&(f64, f64)) -> f64| limits.iter().map(of).fold(0.0, f64::max);
        let smallest =
            |of: fn(&(f64, f64)) -> f64| limits.iter().map(of).fold(f64::INFINITY, f64::min);
        return Ok(Measured::Between(
            (largest(|l| l.0) / smallest(|l| l.1)).max(1.0),
            largest(|l| l.1) / smallest(|l| l.0),
        ));
    }
    let mut logs: Vec<BTreeMap<u32, f64>> = Vec::new();
    for measured in all {
        let values = match measured {
            Measured::Repeats { values, .. } => values,
            Measured::AtLeast(values) => return Err(at_least(values.len())),
            Measured::AtMost(_) => return Err(at_most()),
            Measured::Between(..) => return Err("limits and repeats cannot be compared".into()),
        };
        if let Some(lack) = zeros(values) {
            return Err(lack);
        }
        logs.push(
            values
                .iter()
                .map(|(repeat, value)| (*repeat, value.ln()))
                .collect(),
        );
    }
    let of_all = |repeat: &&u32| logs.iter().all(|side| side.contains_key(repeat));
    let first = logs.first().into_iter().flat_map(BTreeMap::keys);
    let repeats: Vec<u32> = first.filter(of_all).copied().collect();
    if repeats.len() < FEWEST {
        return Err(too_few(repeats.len()));
    }
    let by_others = |left_out: &u32| {
        let others = |side: &BTreeMap<u32, f64>| {
            let others = side.iter().filter(|(repeat, _)| *repeat != left_out);
            moments(&others.map(|(_, log)| *log).collect::<Vec<_>>()).0
        };
        let by = |a: &usize, b: &usize| others(&logs[*a]).total_cmp(&others(&logs[*b]));
        let all = || 0..logs.len();
        (all().max_by(by).unwrap_or(0), all().min_by(by).unwrap_or(0))
    };
    let chosen: Vec<(usize, usize)> = repeats.iter().map(by_others).collect();
    let apart = chosen.iter().zip(&repeats);
    let apart: Vec<f64> = apart
        .map(|((largest, smallest), repeat)| logs[*largest][repeat] - logs[*smallest][repeat])
        .collect();
    let (mean, _) = moments(&apart);
    let agree = chosen.windows(2).all(|two| two[0] == two[1]);
    let stretch = if agree { 1.0 } else { OTHERS };
    let values = apart.iter().zip(repeats);
    let values = values.map(|(gap, repeat)| (repeat, (mean + stretch * (gap - mean)).exp()));
    Ok(Measured::Repeats {
        values: values.collect(),
        expected: 0.0,
        windows: Vec::new(),
    })
}
