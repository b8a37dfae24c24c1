//! Names of rows: they say what was varied.

use std::collections::{BTreeSet, HashMap, HashSet};

use pubgauge_figures::Trial;
use pubgauge_quantities::lists::unique;
use pubgauge_quantities::written::{amount, spaced};

use crate::cell::Cell;

/// One combination of values of the varied load (payload, rate, devices). Rows are compared within.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct GridPoint {
    /// Its text: `payload = 1 KiB, rate = 5k/s`; empty where no load was varied.
    pub label: String,
    /// Its axes and values, as they are shown.
    pub values: Vec<(String, String)>,
}

/// Names the cells of one workload and returns its points, by rising values.
///
/// [`Cell::row`] becomes the system (where there are several), the name of the settings and the
/// settings that were varied; [`Cell::label`] has the values of the load too. Results without
/// stored names are distinguished by version, then by the settings asked for, then by number.
pub fn name(cells: &mut [Cell<'_>]) -> Vec<GridPoint> {
    let several = |of: &dyn Fn(&Trial) -> String| {
        let all: BTreeSet<String> = cells.iter().map(|cell| of(cell.trials[0])).collect();
        all.len() > 1
    };
    let systems = several(&|t| t.system.name.clone());
    let settings = several(&|t| t.settings_name.clone());
    let varied: Vec<String> = axes(cells)
        .into_iter()
        .filter(|axis| several(&|t| value(t, axis).unwrap_or_default().to_owned()))
        .collect();
    let of_settings = |axis: &str| axis.starts_with("settings");
    let mut named = Vec::new();
    for cell in cells.iter() {
        let trial = cell.trials[0];
        let of = |wanted: bool| -> Vec<(String, String)> {
            let wanted = varied.iter().filter(|axis| of_settings(axis) == wanted);
            let pairs = wanted.filter_map(|axis| {
                let value = spaced(value(trial, axis)?);
                Some((short(axis, &varied), value))
            });
            pairs.collect()
        };
        let equations = |pairs: &[(String, String)]| -> Vec<String> {
            pairs
                .iter()
                .map(|(axis, v)| format!("{axis} = {v}"))
                .collect()
        };
        let mut row: Vec<String> = Vec::new();
        row.extend(systems.then(|| cell.system.clone()));
        row.extend(Some(trial.settings_name.clone()).filter(|name| settings && !name.is_empty()));
        row.extend(equations(&of(true)));
        let values = of(false);
        let point = GridPoint {
            label: equations(&values).join(", "),
            values,
        };
        named.push((row, point));
    }
    let mut known = HashSet::new();
    let points = named.iter().map(|(_, point)| point);
    let new = points.filter(|point| known.insert(*point));
    let mut points: Vec<GridPoint> = new.cloned().collect();
    points.sort_by(|a, b| {
        // Words after numbers, by the alphabet.
        let places = |point: &GridPoint| -> Vec<(bool, f64, String)> {
            let values = point.values.iter().map(|(_, value)| value);
            values
                .map(|value| match amount(value) {
                    Some(number) => (false, number, String::new()),
                    None => (true, 0.0, value.clone()),
                })
                .collect()
        };
        places(a)
            .partial_cmp(&places(b))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    tell_apart(cells, &mut named);
    let places: HashMap<&GridPoint, usize> = points.iter().zip(0..).collect();
    for (cell, (row, point)) in cells.iter_mut().zip(named) {
        let mut label = row.clone();
        label.extend(Some(point.label.clone()).filter(|label| !label.is_empty()));
        let or_system = |parts: Vec<String>| {
            if parts.is_empty() {
                cell.system.clone()
            } else {
                parts.join(", ")
            }
        };
        (cell.row, cell.label) = (or_system(row), or_system(label));
        cell.point = places.get(&point).copied().unwrap_or(0);
    }
    points
}

/// Names of the axes of all cells, each once, in the order of the study.
fn axes(cells: &[Cell<'_>]) -> Vec<String> {
    let axes = cells.iter().flat_map(|cell| &cell.trials[0].axes);
    unique(axes.map(|axis| axis.name.clone()))
}

fn value<'t>(trial: &'t Trial, axis: &str) -> Option<&'t str> {
    let found = trial.axes.iter().find(|a| a.name == axis);
    found.map(|axis| axis.value.as_str())
}

/// The last step of an axis' path; the whole path where another axis has the same last step.
fn short(axis: &str, all: &[String]) -> String {
    let last = |path: &str| path.rsplit('.').next().unwrap_or(path).to_owned();
    match all.iter().filter(|other| last(other) == last(axis)).count() {
        1 => last(axis),
        _ => axis.to_owned(),
    }
}

/// A mark that distinguishes rows: a name with its sign, and a value.
type Way = dyn Fn(&Trial) -> Vec<(String, String)>;

/// Makes rows of the same point differ: by version, by the settings asked for, at last by number.
fn tell_apart(cells: &[Cell<'_>], named: &mut [(Vec<String>, GridPoint)]) {
    let version = |trial: &Trial| vec![(String::new(), trial.system.version.clone())];
    let asked = |trial: &Trial| -> Vec<(String, String)> {
        let pairs = trial.mappings.iter();
        pairs
            .map(|m| (format!("{} = ", m.setting), m.value.clone()))
            .collect()
    };
    let ways: [&Way; 2] = [&version, &asked];
    let alike = |named: &[(Vec<String>, GridPoint)]| -> Vec<usize> {
        let mut times: HashMap<_, usize> = HashMap::new();
        for one in named {
            *times.entry(one).or_default() += 1;
        }
        (0..named.len())
            .filter(|at| times[&named[*at]] > 1)
            .collect()
    };
    for way in ways {
        let group = alike(named);
        let all: Vec<_> = group.iter().map(|at| way(cells[*at].trials[0])).collect();
        for (nth, at) in group.into_iter().enumerate() {
            let differs = |pair: &&(String, String)| all.iter().any(|o| !o.contains(pair));
            let words = all[nth].iter().filter(differs);
            named[at]
                .0
                .extend(words.map(|(name, value)| format!("{name}{value}")));
        }
    }
    for (nth, at) in alike(named).into_iter().enumerate() {
        named[at].0.push(format!("#{}", nth + 1));
    }
}
