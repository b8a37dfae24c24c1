//! The largest of several sides over the smallest, whichever they are.

use super::cells::{Measured, Point, Series, at_least};
use crate::curve::FEWEST;

/// The gap at each point of the axis.
///
/// In each repeat the largest and the smallest side are those by the means of all other repeats: chosen by the
/// repeat itself, noise alone would make a gap.
pub(super) fn series(sides: &[Series]) -> Series {
    let names: Vec<&str> = sides.iter().map(|side| side.name.as_str()).collect();
    let points = sides.first().map_or(&[][..], |side| &side.points);
    let at = |(nth, (point, _)): (usize, &Point)| {
        let all: Result<Vec<&Measured>, String> = sides
            .iter()
            .map(|side| side.points[nth].1.as_ref().map_err(String::clone))
            .collect();
        (point.clone(), all.and_then(|all| gap(&all)))
    };
    Series {
        name: format!("largest over smallest of {}", names.join(", ")),
        points: points.iter().enumerate().map(at).collect(),
    }
}

fn gap(all: &[&Measured]) -> Result<Measured, String> {
    let limits: Vec<(f64, f64)> = all
        .iter()
        .filter_map(|m| match m {
            Measured::Between(low, high) => Some((*low, *high)),
            Measured::Repeats { .. } | Measured::AtLeast(_) => None,
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
    let mut logs: Vec<Vec<f64>> = Vec::new();
    for measured in all {
        let values = match measured {
            Measured::Repeats { values, .. } => values,
            Measured::AtLeast(values) => return Err(at_least(values.len())),
            Measured::Between(..) => return Err("limits and repeats cannot be compared".into()),
        };
        if values.iter().any(|(_, value)| *value <= 0.0) {
            return Err("a value is 0 and has no logarithm".into());
        }
        logs.push(values.iter().map(|(_, value)| value.ln()).collect());
    }
    let repeats = logs.iter().map(Vec::len).min().unwrap_or(0);
    if repeats < FEWEST {
        return Err(crate::curve::too_few(repeats).reason);
    }
    let values = (0..repeats).map(|left_out| {
        let others = |logs: &Vec<f64>| {
            let sum: f64 = logs.iter().sum::<f64>() - logs[left_out];
            sum / (logs.len() - 1) as f64
        };
        let by = |a: &&Vec<f64>, b: &&Vec<f64>| others(a).total_cmp(&others(b));
        let (largest, smallest) = (logs.iter().max_by(by), logs.iter().min_by(by));
        let apart = largest
            .zip(smallest)
            .map_or(0.0, |(l, s)| l[left_out] - s[left_out]);
        (left_out as u32 + 1, apart.exp())
    });
    Ok(Measured::Repeats {
        values: values.collect(),
        expected: 0.0,
        windows: Vec::new(),
    })
}
