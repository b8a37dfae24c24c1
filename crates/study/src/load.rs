//! Loads that are not known before the run: a value of a flow that is searched for ("find"), or that is a share of
//! what the search of another workload finds ("80% of limit").

use std::collections::BTreeMap;
use std::fmt;
use std::iter::once;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use pubgauge_workload::{Until, Workload};

use crate::cells::Cell;
use crate::placing;
use crate::plan::PlannedTrial;
use crate::problem::{Problem, StudyError};
use crate::resolve::{self, Traces};
use crate::search::Axis;
use crate::study::Study;
use crate::tree::{Node, Value};
use crate::units::{Percent, did_you_mean, nearest};

/// The text in place of a value that is searched for.
pub(crate) const FIND: &str = "find";

/// A share of the limit that the search of a workload finds, written as `80% of limit`.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The share, above 0; 1 is the limit.
    pub share: f64,
    /// Name of the workload that is searched.
    pub of: String,
}

/// A value of a flow that is known only once the run has found it.
#[derive(Clone, Debug)]
pub(crate) struct OpenLoad {
    place: Place,
    /// What it is a share of; searched for if absent.
    share: Option<Share>,
    /// The study with the grid's values of one cell in place.
    study: Study,
    /// Seed of the workload's draws.
    seed: u64,
}

/// The position of such a value in the study.
#[derive(Clone, Debug)]
struct Place {
    axis: Axis,
    /// Index of its workload in the study's list.
    workload: usize,
    path: Vec<String>,
    span: Range<usize>,
    text: String,
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Share, String> {
        let parts = text.split_once(" of ");
        let share = parts.and_then(|(share, _)| share.parse::<Percent>().ok());
        match (share, parts) {
            (Some(share), Some((_, of))) if share.0 > 0.0 && !of.trim().is_empty() => Ok(Share {
                share: share.0,
                of: of.trim().to_owned(),
            }),
            (Some(_), Some((_, of))) if !of.trim().is_empty() => Err(format!(
                "`{text}` is nothing; a share of a limit is above 0% and below 1000%"
            )),
            _ => Err(format!(
                "`{text}` is no share of a limit; expected a percentage above 0% and below 1000%, and the name of \
                 a workload that is searched"
            )),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", Percent(self.share), self.of)
    }
}

impl Share {
    /// The load of a share, from the ends of the interval that the limit lies in: of the lower end
    /// up to 100 %, of the upper end above, so that the load is certainly on its side of the limit.
    /// Rounded away from the limit, to whole numbers or four digits. The second value is the end
    /// that it is a share of.
    ///
    /// # Errors
    /// Why there is no such load, in words.
    pub fn load(
        &self,
        axis: Axis,
        low: Option<f64>,
        high: Option<f64>,
    ) -> Result<(f64, f64), String> {
        let above = self.share > 1.0;
        let Some(end) = (if above { high } else { low }) else {
            let found = match (above, low) {
                (true, Some(low)) => format!("at least {} and no upper end", axis.written(low)),
                (true, None) => "no limit".to_owned(),
                (false, _) => "no limit: no load stayed within what was asked for".to_owned(),
            };
            return Err(format!("the search of {} found {found}", self.of));
        };
        let load = axis.rounded(self.share * end, above);
        match axis != Axis::Rate && load < axis.range().0 {
            true => Err(format!(
                "{self} is less than the smallest {}: the search of {} found {}",
                axis.name(),
                self.of,
                axis.written(end)
            )),
            false => Ok((load, end)),
        }
    }
}

/// Whether a text stands for a value that is not known before the run. No size and no rate has a
/// percent sign.
fn is_open(text: &str) -> bool {
    text == FIND || text.contains('%')
}

/// All such values of a study's flows.
fn places(tree: &Node) -> Vec<Place> {
    let list = |node: &Node, key: &str| -> Vec<Node> {
        match node.get(key).map(|entry| &entry.node.value) {
            Some(Value::List(list)) => list.clone(),
            _ => Vec::new(),
        }
    };
    let mut places = Vec::new();
    for (workload, node) in list(tree, "workload").iter().enumerate() {
        for (flow, node) in list(node, "flow").iter().enumerate() {
            for entry in node.entries() {
                let (Some(axis), Value::Text(text)) = (Axis::named(&entry.key), &entry.node.value)
                else {
                    continue;
                };
                if is_open(text) {
                    let (nth, number) = (workload.to_string(), flow.to_string());
                    places.push(Place {
                        axis,
                        workload,
                        path: ["workload", &nth, "flow", &number, &entry.key]
                            .map(str::to_owned)
                            .to_vec(),
                        span: entry.node.span.clone(),
                        text: text.clone(),
                    });
                }
            }
        }
    }
    places
}

/// Puts a value into a place.
fn put(tree: &mut Node, place: &Place, value: Value) {
    let span = place.span.clone();
    let node = Node {
        span: span.clone(),
        value,
    };
    let steps: Vec<&str> = place.path.iter().map(String::as_str).collect();
    // The path was found in this very tree.
    let _ = tree.set(&steps, span, &node);
}

/// Replaces each value that is not known by the value that a search begins with.
pub(crate) fn fill(tree: &mut Node) {
    for place in places(tree) {
        let value = match place.axis {
            Axis::Rate => Value::Text("max".into()),
            axis => axis.value(axis.range().0),
        };
        put(tree, &place, value);
    }
}

/// Puts the study's own texts back into the places that [`fill`] has filled.
pub(crate) fn restored(resolved: &str, tree: &Node) -> String {
    let open = places(tree);
    let study = toml::from_str::<toml::Value>(resolved).ok();
    let Some(mut study) = study.filter(|_| !open.is_empty()) else {
        return resolved.to_owned();
    };
    for place in open {
        let mut at = Some(&mut study);
        for step in &place.path {
            at = at.and_then(|value| match step.parse::<usize>() {
                Ok(nth) => value.get_mut(nth),
                Err(_) => value.get_mut(step.as_str()),
            });
        }
        if let Some(value) = at {
            *value = toml::Value::String(place.text);
        }
    }
    toml::to_string(&study).unwrap_or_else(|_| resolved.to_owned())
}

impl Study {
    /// Whether a value of the study is searched for.
    pub(crate) fn seeks(&self) -> bool {
        places(&self.tree).iter().any(|place| place.text == FIND)
    }

    /// The unknown value of each workload, for each of these cells; and the indices of the
    /// workloads that are searched, in the study's list.
    pub(crate) fn open_loads(
        &self,
        cells: &[Cell],
        seed: u64,
        problems: &mut Vec<Problem>,
    ) -> (Vec<BTreeMap<usize, Arc<OpenLoad>>>, Vec<usize>) {
        let written = places(&self.tree);
        let sought: Vec<&Place> = written.iter().filter(|p| p.text == FIND).collect();
        let mut found = Vec::new();
        let of_cell = |cell: &Cell| {
            let here = |place: &&Place| cell.workloads.contains(&place.workload);
            let open = places(&cell.tree);
            for lost in sought.iter().copied().filter(here) {
                if !open.iter().any(|p| p.path == lost.path && p.text == FIND) {
                    found.push(self.varied_and_sought(cell, lost));
                }
            }
            let mut loads = BTreeMap::new();
            for place in open.iter().filter(here) {
                let read = self.read(place, &sought);
                let twice = loads.contains_key(&place.workload);
                match read {
                    _ if twice => found.push(self.sources.problem(
                        Some(place.span.clone()),
                        "one value of one flow can be searched for at a time, or be a share of a limit",
                        Some("name the flow: --set workload.NAME.flow.NAME.rate=find".into()),
                    )),
                    Err((message, hint)) => {
                        let at = Some(place.span.clone());
                        found.push(self.sources.problem(at, message, hint));
                    }
                    Ok(share) => {
                        let study = Study {
                            tree: cell.tree.clone(),
                            ..self.clone()
                        };
                        let load = OpenLoad {
                            place: place.clone(),
                            share,
                            study,
                            seed: seed.wrapping_add(place.workload as u64),
                        };
                        loads.insert(place.workload, Arc::new(load));
                    }
                }
            }
            loads
        };
        let loads = cells.iter().map(of_cell).collect();
        // Cells have their flows in common.
        for problem in found {
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        (loads, sought.iter().map(|place| place.workload).collect())
    }

    /// What a value is a share of; `None` if it is searched for. An error has a message and a hint.
    fn read(
        &self,
        place: &Place,
        sought: &[&Place],
    ) -> Result<Option<Share>, (String, Option<String>)> {
        let problem = |message: String, hint: Option<String>| Err((message, hint));
        let key = place.axis.name();
        if place.text == FIND {
            // A value of a grid is not written in the flow.
            return match sought.iter().any(|p| p.span == place.span) {
                true => Ok(None),
                false => problem(
                    "a grid does not search".into(),
                    Some(format!("write {key} = \"find\" in the flow")),
                ),
            };
        }
        let example = format!(
            "write it as {key} = \"80% of NAME\", where NAME is a workload with {key} = \"find\""
        );
        let share: Share = match place.text.parse() {
            Ok(share) => share,
            Err(message) => return problem(message, Some(example)),
        };
        let names: Vec<&str> = match self.tree.get("workload").map(|entry| &entry.node.value) {
            Some(Value::List(list)) => list.iter().map(|n| n.name().unwrap_or_default()).collect(),
            _ => Vec::new(),
        };
        let Some(of) = names.iter().position(|name| *name == share.of) else {
            let near = did_you_mean(nearest(&share.of, names.iter().copied()));
            let message = format!(
                "`{}` is no workload of this study{near}; there is {}",
                share.of,
                names.join(", ")
            );
            return problem(message, Some(example));
        };
        if of == place.workload {
            let message = format!(
                "`{}` is this workload: nothing can be a share of itself",
                share.of
            );
            return problem(message, Some(example));
        }
        match sought.iter().find(|p| p.workload == of) {
            None => problem(
                format!(
                    "`{}` is not searched: it has no limit to take a share of",
                    share.of
                ),
                Some(format!(
                    "write {key} = \"find\" in a flow of `{}`",
                    share.of
                )),
            ),
            Some(p) if p.axis != place.axis => problem(
                format!(
                    "`{}` is searched for its {}, and this is the {key}",
                    share.of,
                    p.axis.name()
                ),
                Some(format!("write {} = \"{share}\"", p.axis.name())),
            ),
            Some(_) => Ok(Some(share)),
        }
    }

    /// Whether the limit of each share is searched for.
    pub(crate) fn check_shares(&self, trials: &[PlannedTrial]) -> Result<(), StudyError> {
        let searches: Vec<&PlannedTrial> = trials.iter().filter(|t| t.seeks().is_some()).collect();
        let without = |trial: &&PlannedTrial| {
            trial.share().is_some() && !searches.iter().any(|search| trial.is_share_of(search))
        };
        let mut problems: Vec<Problem> = Vec::new();
        for trial in trials.iter().filter(without) {
            let (Some(open), Some((share, _))) = (&trial.load, trial.share()) else {
                continue;
            };
            let at = Some(open.place.span.clone());
            let message = format!("no search of `{}` is made for {}", share.of, trial.cell);
            let hint = "a share has the systems, settings and grid of the workload whose limit it is of, which is not left out";
            let problem = self.sources.problem(at, message, Some(hint.into()));
            let known = |p: &Problem| (p.line, p.column) == (problem.line, problem.column);
            if !problems.iter().any(known) {
                problems.push(problem);
            }
        }
        match problems.is_empty() {
            true => Ok(()),
            false => Err(StudyError { problems }),
        }
    }

    /// A value that is searched for and varies over the grid.
    fn varied_and_sought(&self, cell: &Cell, place: &Place) -> Problem {
        let of_workload = match self.tree.get("workload").map(|entry| &entry.node.value) {
            Some(Value::List(list)) => list.get(place.workload).and_then(|node| node.get("grid")),
            _ => None,
        };
        let grid = of_workload.or(self.tree.get("grid"));
        let last = |key: &str| key.rsplit('.').next() == Some(place.axis.name());
        let axes = grid.map_or(&[][..], |grid| grid.node.entries());
        let axis = axes.iter().find(|axis| last(&axis.key));
        let axis = axis.filter(|axis| cell.axes.iter().any(|(name, _)| *name == axis.key));
        self.sources.problem(
            Some(axis.map_or(&place.span, |axis| &axis.span).clone()),
            "this is searched for, and cannot vary over the grid too",
            Some("take it out of the grid, or \"find\" out of the workload; `grid = {}` gives a workload none".into()),
        )
    }
}

impl OpenLoad {
    /// The workload with this load, over so many brokers.
    fn workload(&self, load: f64, brokers: u32) -> Result<Arc<Workload>, StudyError> {
        let (study, index) = (&self.study, self.place.workload);
        let mut tree = study.tree.clone();
        put(&mut tree, &self.place, self.place.axis.value(load));
        let file = study.decode(&tree)?;
        let (mut found, mut notes) = (Vec::new(), Vec::new());
        let mut traces = Traces::new(&file.trace, &study.folder);
        let said = (&mut found, &mut notes);
        let own = &file.workload[index];
        let workload = resolve::workload(own, index, &file.phases, self.seed, &mut traces, said);
        found.splice(0..0, traces.found.drain(..));
        if !found.is_empty() {
            return Err(study.clashed(&tree, &found));
        }
        let over = placing::over(&workload.into(), once(brokers));
        let over =
            over.map_err(|clash| study.clashed(&tree, &[clash.of_workload(&file, index)]))?;
        Ok(over[&brokers].clone())
    }
}

/// Sets the length of a trial's measurement, ns.
fn measures(trial: &mut PlannedTrial, ns: u64) {
    let mut workload = (*trial.workload).clone();
    workload.phases.measure = Until::Time(ns);
    trial.workload = workload.into();
}

impl PlannedTrial {
    /// What is searched for, if the trial stands for a search.
    pub fn seeks(&self) -> Option<Axis> {
        let load = self.load.as_ref().filter(|load| load.share.is_none());
        load.map(|load| load.place.axis)
    }

    /// What its load is a share of, and of which value.
    pub fn share(&self) -> Option<(&Share, Axis)> {
        let load = self.load.as_ref()?;
        Some((load.share.as_ref()?, load.place.axis))
    }

    /// Index in its workload of the flow whose load is not known before the run.
    pub fn open_flow(&self) -> Option<usize> {
        self.load.as_ref()?.place.path.get(3)?.parse().ok()
    }

    /// A trial of the search that it stands for, at a load or flat out; `measure` is the length of the
    /// measurement, ns.
    ///
    /// # Errors
    /// What the study says of a value that is not possible.
    pub fn seeking(&self, load: Option<f64>, measure: u64) -> Result<PlannedTrial, StudyError> {
        let mut trial = match load {
            None => self.clone(),
            Some(load) => self.at(load)?,
        };
        if let Some(axis) = self.seeks() {
            let written = load.map_or("max".to_owned(), |load| axis.written(load));
            trial.cell = format!("{} / {}={written}", trial.cell, axis.name());
            trial.axes.push((axis.name().to_owned(), written));
        }
        measures(&mut trial, measure);
        Ok(trial)
    }

    /// The same trial at a load; as it is, if its load is known.
    ///
    /// # Errors
    /// What the study says of a value that is not possible.
    pub fn at(&self, load: f64) -> Result<PlannedTrial, StudyError> {
        // What profiles and systems made of the settings does not depend on the load.
        let workload = match &self.load {
            Some(open) => open.workload(load, self.brokers)?,
            None => self.workload.clone(),
        };
        Ok(PlannedTrial {
            workload,
            ..self.clone()
        })
    }

    /// Whether the limit that `search` finds is that of this trial's system, settings and values of
    /// the grid. An axis that the search does not have is ignored.
    pub fn is_share_of(&self, search: &PlannedTrial) -> bool {
        let last = |name: &str| name.rsplit('.').next().map(str::to_owned);
        let own = |name: &String| {
            let axes = || self.axes.iter();
            let found = axes().find(|(own, _)| own == name);
            found.or_else(|| axes().find(|(own, _)| last(own) == last(name)))
        };
        let axes = || search.axes.iter();
        self.share()
            .is_some_and(|(share, _)| share.of == search.workload.name)
            && (&self.system, &self.settings_name) == (&search.system, &search.settings_name)
            && axes().all(|(name, value)| own(name).is_some_and(|(_, own)| own == value))
    }
}
