//! Which repeats a rule is about.

use std::collections::{BTreeMap, BTreeSet};

use pubgauge_figures::rule::{CellFilter, ClaimRule, Judge, SPANS_OF_BLOCK, SUSTAINED, range};
use pubgauge_quantities::stats::Estimate;
use pubgauge_quantities::written::amount;

use super::measured::{Measured, at_least, at_most, zeros};
use super::run::{CellKey, Figures, MeasuredRun, Observation};
use super::sustained::sustained;
use crate::curve::{FEWEST, growth, spread_of_steps, spread_of_windows, variation};
use crate::decide::{Demand, Show, Ways, inside};
use crate::finding::{Finding, Lack};

/// One point of the axis by its name, and what was measured there or why nothing was.
pub(super) type Point = (String, Result<Measured, Lack>);

/// One side along the axis.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) points: Vec<Point>,
}

pub(super) fn name_at(name: &str, point: &str) -> String {
    match point {
        "" => name.to_owned(),
        point => format!("{name} at {point}"),
    }
}

/// Whether an estimate lies where it must, if there is one.
pub(super) fn judge_range(
    estimate: Result<Estimate, Lack>,
    demand: impl Into<Demand>,
    ways: Ways,
    show: Show<'_>,
) -> Finding {
    match estimate {
        Ok(estimate) => inside(&estimate, demand, ways, show),
        Err(lack) => lack.into(),
    }
}

/// The values of a rule's axis: those that its filter names; else (or with a range) all that cells of any side have.
/// Numbers are in rising order; names are as the filter has them, else in that of the alphabet. One without a name where
/// there is no axis.
pub(super) fn points(
    run: &MeasuredRun<'_>,
    rule: &ClaimRule,
    sides: &[&CellFilter],
) -> Vec<String> {
    if let Some(blocks) = rule.blocks {
        return (1..=blocks).map(|block| block.to_string()).collect();
    }
    let Some(axis) = rule.grid_axis() else {
        return vec![String::new()];
    };
    if let Some(named) = rule.filter.get(axis)
        && named.iter().all(|value| range(value).is_none())
    {
        let mut numbers: Vec<(f64, &String)> =
            named.iter().filter_map(|n| Some((amount(n)?, n))).collect();
        if numbers.len() < named.len() {
            return named.clone();
        }
        numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
        return numbers.into_iter().map(|(_, name)| name.clone()).collect();
    }
    let cells = run.cells();
    let filters: Vec<CellFilter> = sides.iter().map(|side| rule.cells(side)).collect();
    let seen: BTreeSet<&str> = cells
        .filter(|cell| filters.iter().any(|filter| cell.passes(filter)))
        .filter_map(|cell| cell.value(axis))
        .collect();
    let mut values: Vec<String> = seen.into_iter().map(str::to_owned).collect();
    values.sort_by(|a, b| match (amount(a), amount(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => a.cmp(b),
    });
    values
}

/// Why cells of a rule cannot be compared: some of the trials were slowed, others were not.
pub(super) fn slowed_apart(
    run: &MeasuredRun<'_>,
    rule: &ClaimRule,
    sides: &[&CellFilter],
) -> Option<String> {
    let filters: Vec<CellFilter> = sides.iter().map(|side| rule.cells(side)).collect();
    let about = |t: &&Observation<'_>| filters.iter().any(|filter| t.cell.passes(filter));
    let trials = || run.trials.iter().filter(about);
    let is_slowed = |t: &&Observation<'_>| t.figures.is_slowed(&rule.figure);
    let slowed = trials().filter(is_slowed).count();
    (slowed > 0 && slowed < trials().count()).then(|| {
        "system calls were counted in some of the trials, which slows them: have them counted in all or in none"
            .to_owned()
    })
}

impl Series {
    pub(super) fn from_run(
        run: &MeasuredRun<'_>,
        rule: &ClaimRule,
        name: String,
        side: &CellFilter,
        points: &[String],
    ) -> Series {
        let filter = rule.cells(side);
        let each = |point: &String| {
            let mut filter = filter.clone();
            let block = rule.blocks.and_then(|_| point.parse().ok());
            if let Some(axis) = rule.grid_axis() {
                filter.insert(axis.clone(), vec![point.clone()]);
            }
            let found = measured(run, rule, &filter, block)
                .map_err(|lack| lack.about(&name_at(&name, point)));
            (point.clone(), found)
        };
        let points = points.iter().map(each).collect();
        Series { name, points }
    }

    pub(super) fn name_at(&self, point: &str) -> String {
        name_at(&self.name, point)
    }

    /// Whether all its values have logarithms.
    pub(super) fn positive(&self) -> bool {
        self.points
            .iter()
            .filter_map(|(_, m)| m.as_ref().ok())
            .all(|m| match m {
                Measured::Repeats { values, .. }
                | Measured::AtLeast(values)
                | Measured::AtMost(values) => values.iter().all(|(_, v)| *v > 0.0),
                Measured::Between(low, _) => *low > 0.0,
            })
    }

    /// The curve of each repeat that has all points, by its number: (x, y), y on logarithms if asked for.
    pub(super) fn curves(&self, logs: bool) -> Result<BTreeMap<u32, Vec<(f64, f64)>>, Lack> {
        let mut all: Vec<(f64, &Vec<(u32, f64)>)> = Vec::new();
        for (point, measured) in &self.points {
            // Of an axis of names only the order counts.
            let x = amount(point).unwrap_or(f64::NAN);
            match measured {
                Ok(Measured::Repeats { values, .. }) => all.push((x, values)),
                Ok(Measured::Between(..)) => {
                    return Err("limits have no curve for each repeat".into());
                }
                Ok(Measured::AtLeast(values)) => {
                    return Err(at_least(values.len()).about(&self.name_at(point)));
                }
                Ok(Measured::AtMost(_)) => return Err(at_most().about(&self.name_at(point))),
                Err(why) => return Err(why.clone()),
            }
        }
        let zero = all.iter().find_map(|(_, values)| zeros(values));
        if let Some(lack) = zero.filter(|_| logs) {
            return Err(lack.about(&self.name));
        }
        let repeats: Vec<u32> = all
            .first()
            .map(|(_, v)| v.iter().map(|(r, _)| *r).collect())
            .unwrap_or_default();
        let curve = |repeat: &u32| {
            let point = |(x, values): &(f64, &Vec<(u32, f64)>)| {
                let y = values.iter().find(|(r, _)| r == repeat)?.1;
                Some((*x, if logs { y.ln() } else { y }))
            };
            let curve = all.iter().map(point).collect::<Option<Vec<_>>>();
            Some((*repeat, curve?))
        };
        Ok(repeats.iter().filter_map(curve).collect())
    }

    /// The values of the axis are numbers, whose distances count.
    pub(super) fn numbers(&self) -> Result<(), Lack> {
        let mut points = self.points.iter();
        match points.find(|(point, _)| amount(point).is_none()) {
            Some((point, _)) => Err(format!("`{point}` is not a number").into()),
            None => Ok(()),
        }
    }

    pub(super) fn spreads_of_steps(&self) -> Result<Measured, Lack> {
        let curves = self.curves(true)?;
        let spread = |(repeat, curve): (&u32, &Vec<(f64, f64)>)| {
            let values: Vec<f64> = curve.iter().map(|p| p.1).collect();
            Some((*repeat, spread_of_steps(&values)?))
        };
        let spreads: Option<Vec<_>> = curves.iter().map(spread).collect();
        let few = || Lack::from("three points at least are needed").about(&self.name);
        self.spreads(spreads.ok_or_else(few)?)
    }

    pub(super) fn spreads_of_windows(&self) -> Result<Measured, Lack> {
        let Some((_, measured)) = self.points.first() else {
            return Err(Lack::from("not measured").about(&self.name));
        };
        let windows = match measured.as_ref().map_err(Lack::clone)? {
            Measured::Repeats { windows, .. } => windows,
            Measured::AtLeast(values) => {
                return Err(at_least(values.len()).about(&self.name));
            }
            Measured::AtMost(_) => return Err(at_most().about(&self.name)),
            Measured::Between(..) => return Err("limits have no seconds".into()),
        };
        let spread =
            |(repeat, windows): &(u32, Vec<f64>)| Some((*repeat, spread_of_windows(windows)?));
        let spreads: Option<Vec<_>> = windows.iter().map(spread).collect();
        let short = || Lack::from("a repeat has fewer than 8 seconds").about(&self.name);
        self.spreads(spreads.ok_or_else(short)?)
    }

    fn spreads(&self, values: Vec<(u32, f64)>) -> Result<Measured, Lack> {
        if values.iter().all(|(_, spread)| spread.is_finite()) {
            Ok(Measured::Repeats {
                values,
                expected: 0.0,
                windows: Vec::new(),
            })
        } else {
            Err(Lack::from("a repeat does not vary at all").about(&self.name))
        }
    }
}

/// The one cell that a filter lets through: its trials that count, or a block of each, from 1, or its limit.
fn measured(
    run: &MeasuredRun<'_>,
    rule: &ClaimRule,
    filter: &CellFilter,
    block: Option<u32>,
) -> Result<Measured, Lack> {
    if rule.figure == SUSTAINED {
        return sustained(run, rule, filter);
    }
    if rule.figure == "limit" {
        let mut limits = run.limits.iter().filter(|limit| limit.cell.passes(filter));
        return match (limits.next(), limits.next()) {
            (Some(limit), None) => Ok(Measured::Between(limit.low, limit.high)),
            (None, _) => Err("no limit was searched for".into()),
            (Some(_), Some(_)) => Err("several limits fit; name settings, workload or axes".into()),
        };
    }
    let trials = run.trials.iter().map(|trial| &trial.cell);
    let absent = run.absent.iter().map(|absent| &absent.cell);
    let cells = trials.chain(absent).filter(|cell| cell.passes(filter));
    let cells = cells.collect::<BTreeSet<&CellKey>>().len();
    if cells > 1 {
        return Err(format!("{cells} cells fit; name settings, workload or axes").into());
    }
    let trials = run.trials_of(filter)?;
    let aside = |t: &&&Observation<'_>| rule.leave_out.contains(&t.verdict);
    if let Some(first) = trials.iter().find(aside) {
        let number = trials.iter().filter(aside).count();
        let why = format!("{number} of {} repeats {}", trials.len(), first.verdict);
        return Err(Lack {
            aside: true,
            ..why.into()
        });
    }
    let counts = |t: &&&Observation<'_>| rule.counts(&t.verdict);
    // Trials that the client limited may be left out.
    if let Some(bad) = (trials.iter()).find(|t| !counts(t) && t.shows_limit_of_system()) {
        let number = trials.iter().filter(|t| t.verdict == bad.verdict).count();
        return Err(format!("{number} of {} repeats {}", trials.len(), bad.verdict).into());
    }
    let kept: Vec<&Observation<'_>> = trials.iter().filter(counts).copied().collect();
    let flow = match filter.get("flow").map(Vec::as_slice) {
        None | Some([]) => None,
        Some([flow]) => Some(flow.as_str()),
        Some(_) => return Err("several flows fit; name one".into()),
    };
    if let Some(block) = block {
        return of_block(&kept, flow, rule, block);
    }
    // One of several flows may have gained what another lost.
    let bounded = flow.is_none() && kept.len() < FEWEST && LEAST.contains(&&*rule.figure);
    if bounded {
        let with_bounds = |t: &&&Observation<'_>| counts(t) || BY_CLIENT.contains(&&*t.verdict);
        let of = |t: &&Observation<'_>| Some((t.repeat, figure(t.figures, None, &rule.figure)?));
        let values: Vec<(u32, f64)> = trials.iter().filter(with_bounds).filter_map(of).collect();
        if values.len() >= FEWEST {
            return Ok(Measured::AtLeast(values));
        }
    }
    of_repeats(&kept, flow, rule)
}

/// The figure of a rule in the repeats that count.
fn of_repeats(
    kept: &[&Observation<'_>],
    flow: Option<&str>,
    rule: &ClaimRule,
) -> Result<Measured, Lack> {
    let mut values = Vec::new();
    let mut expected = 0.0;
    for trial in kept {
        let value = figure(trial.figures, flow, &rule.figure);
        values.push((
            trial.repeat,
            value.ok_or_else(|| format!("no {} was measured", rule.figure))?,
        ));
        if matches!(rule.judge, Judge::Count(_)) && OF_DELIVERIES.contains(&&*rule.figure) {
            expected += trial.figures.figure(flow, "expected").unwrap_or(0.0);
        }
    }
    let windows: Vec<(u32, Vec<f64>)> = match rule.judge {
        Judge::Spread(_) => kept
            .iter()
            .map(|t| (t.repeat, t.figures.windows(flow, &rule.figure)))
            .collect(),
        _ => Vec::new(),
    };
    match stretched(kept, flow, rule, &windows) {
        Stretched::No => Ok(Measured::Repeats {
            values,
            expected,
            windows,
        }),
        Stretched::Whole => Ok(Measured::AtMost(values)),
        Stretched::InPart => Err(at_most()),
    }
}

/// The series of a rule in a block of each trial that counts, from 1: spans of the block are its repeats.
fn of_block(
    kept: &[&Observation<'_>],
    flow: Option<&str>,
    rule: &ClaimRule,
    block: u32,
) -> Result<Measured, Lack> {
    let spans = rule.blocks.unwrap_or(1) * SPANS_OF_BLOCK;
    let mut values = Vec::new();
    for trial in kept {
        let records = trial.figures.windows(flow, &rule.figure);
        if records.is_empty() {
            return Err(format!("{} is no series that was measured", rule.figure).into());
        }
        if records.len() < spans as usize {
            let why = format!("{} records are too few for {spans} spans", records.len());
            return Err(why.into());
        }
        let is_stretched = |value: &f64| trial.figures.is_stretched(&rule.figure, *value);
        if records.iter().any(is_stretched) {
            return Err(at_most());
        }
        let begins = |span: u32| records.len() * span as usize / spans as usize;
        for nth in 0..SPANS_OF_BLOCK {
            let span = (block - 1) * SPANS_OF_BLOCK + nth;
            let records = &records[begins(span)..begins(span + 1)];
            let mean = records.iter().sum::<f64>() / records.len() as f64;
            values.push((trial.repeat * SPANS_OF_BLOCK + nth, mean));
        }
    }
    Ok(Measured::Repeats {
        values,
        expected: 0.0,
        windows: Vec::new(),
    })
}

/// Whether the stops of a quota made times longer.
enum Stretched {
    No,
    /// The figure itself is such a time: at most what was measured.
    Whole,
    /// Parts of the figure are, a side of its quotient or records of its series, so that it may be off either way.
    InPart,
}

fn stretched(
    kept: &[&Observation<'_>],
    flow: Option<&str>,
    rule: &ClaimRule,
    windows: &[(u32, Vec<f64>)],
) -> Stretched {
    let name = rule.figure.as_str();
    let some = |figures: &dyn Figures, name: &str| {
        let name = name.trim();
        match series_of(name) {
            Some((series, _)) => {
                let records = figures.windows(flow, series);
                records
                    .iter()
                    .any(|value| figures.is_stretched(series, *value))
            }
            None => {
                let value = figures.figure(flow, name);
                value.is_some_and(|value| figures.is_stretched(name, value))
            }
        }
    };
    let in_records = kept.iter().zip(windows).any(|(t, (_, records))| {
        let mut records = records.iter();
        records.any(|value| t.figures.is_stretched(name, *value))
    });
    let any = kept
        .iter()
        .any(|t| name.split('/').any(|part| some(t.figures, part)));
    let is_plain = !name.contains('/') && series_of(name).is_none() && windows.is_empty();
    match any || in_records {
        false => Stretched::No,
        true if is_plain => Stretched::Whole,
        true => Stretched::InPart,
    }
}

/// The series of a figure that is a statistic of one, and the statistic.
fn series_of(name: &str) -> Option<(&str, &str)> {
    let split = name.trim().rsplit_once('.');
    split.filter(|(_, statistic)| ["cv", "growth"].contains(statistic))
}

/// The verdicts of a trial whose limit was the client or its own window, in the words of `results.json`.
const BY_CLIENT: [&str; 2] = ["client-bound", "setting-bound"];

/// Figures of which a trial that the client limited shows a lower bound.
const LEAST: [&str; 2] = ["delivered-rate", "delivered-bytes-rate"];

/// Figures that count some of the deliveries that were expected: of these alone, none counted bounds a share.
const OF_DELIVERIES: [&str; 3] = ["lost", "duplicated", "reordered"];

/// A figure, or the quotient of two: `published-rate / delivered-rate`.
fn figure(figures: &dyn Figures, flow: Option<&str>, name: &str) -> Option<f64> {
    let of = |name: &str| match series_of(name) {
        Some((series, "cv")) => variation(&figures.windows(flow, series)),
        Some((series, _)) => growth(&figures.windows(flow, series)),
        None => figures.figure(flow, name.trim()),
    };
    let value = match name.split_once('/') {
        None => of(name)?,
        Some((part, whole)) => of(part)? / of(whole)?,
    };
    value.is_finite().then_some(value)
}
