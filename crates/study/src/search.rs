//! Studies that search for a limit: one value of a flow is "find".

use std::ops::Range;

use pubgauge_workload::{SECOND, Until};

use crate::file::SearchFile;
use crate::plan::{Plan, PlanOptions, PlannedTrial};
use crate::problem::StudyError;
use crate::study::Study;
use crate::tree::{Node, Value};

/// What stands in a study where a value is searched for.
const FIND: &str = "find";
/// Length of a search's trials where the study does not say, in seconds.
const SHORT_S: u64 = 5;
/// Length of the confirming trial where the study does not say, in seconds.
const LONG_S: u64 = 45;

/// What can be searched for in a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Messages a second over all publishers of the flow.
    Rate,
    /// Publishing devices.
    Publishers,
    /// Subscribing devices.
    Subscribers,
    /// Topics.
    Topics,
    /// Bytes of a message.
    Payload,
    /// Messages back to back of each publisher.
    Burst,
}

impl Axis {
    /// All of them.
    pub const ALL: [Axis; 6] = [
        Axis::Rate,
        Axis::Publishers,
        Axis::Subscribers,
        Axis::Topics,
        Axis::Payload,
        Axis::Burst,
    ];

    /// Its name, which is the key of the flow.
    pub fn name(self) -> &'static str {
        match self {
            Axis::Rate => "rate",
            Axis::Publishers => "publishers",
            Axis::Subscribers => "subscribers",
            Axis::Topics => "topics",
            Axis::Payload => "payload",
            Axis::Burst => "burst",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Axis> {
        Axis::ALL.into_iter().find(|axis| axis.name() == name)
    }

    /// Smallest and largest value that is tried.
    pub fn range(self) -> (f64, f64) {
        match self {
            Axis::Rate => (1.0, 1e8),
            Axis::Payload => (16.0, (64u64 << 20) as f64),
            Axis::Burst => (1.0, 1e6),
            _ => (1.0, 100_000.0),
        }
    }

    /// A value as a study writes it.
    pub fn written(self, load: f64) -> String {
        match self {
            Axis::Rate => format!("{load}/s"),
            Axis::Payload => format!("{load:.0}B"),
            _ => format!("{load:.0}"),
        }
    }
}

/// Searches of a plan, one for each of its trials: those have the value from which a search begins in the
/// place of the one that is searched for.
#[derive(Clone, Debug)]
pub struct SearchPlan {
    /// What is searched for.
    pub axis: Axis,
    /// Width of the interval at which a search ends, as a share of its lower end.
    pub width: f64,
    /// Trials of a search at most.
    pub trials: u32,
    /// Length of a search at most, ns.
    pub budget: u64,
    /// Length of a short trial's measurement, ns.
    pub short: u64,
    /// Length of the confirming trial's measurement, ns.
    pub long: u64,
    place: Place,
    study: Study,
    options: PlanOptions,
}

/// Where "find" stands.
#[derive(Clone, Debug)]
struct Place {
    axis: Axis,
    path: Vec<String>,
    span: Range<usize>,
}

impl Study {
    /// Where a value is searched for.
    ///
    /// # Errors
    /// If there are several, or several workloads.
    fn sought(&self) -> Result<Option<Place>, StudyError> {
        let mut places = Vec::new();
        if let Some(workload) = self.tree.get("workload") {
            collect(&workload.node, &mut vec!["workload".into()], &mut places);
        }
        let problem = |span: &Range<usize>, message: &str, hint: &str| {
            let (message, hint) = (message.to_owned(), Some(hint.to_owned()));
            StudyError::one(self.sources.problem(Some(span.clone()), message, hint))
        };
        if let Some(second) = places.get(1) {
            return Err(problem(
                &second.span,
                "one value of one flow can be searched for at a time",
                "name the flow: --set workload.NAME.flow.NAME.rate=find",
            ));
        }
        let Some(place) = places.pop() else {
            return Ok(None);
        };
        let several = |node: &Node| matches!(&node.value, Value::List(list) if list.len() > 1);
        if self
            .tree
            .get("workload")
            .is_some_and(|entry| several(&entry.node))
        {
            return Err(problem(
                &place.span,
                "a study that searches has one workload",
                "move the others into a study of their own",
            ));
        }
        let varied = |key: &str| key.rsplit('.').next() == Some(place.axis.name());
        let of_workload = match self.tree.get("workload").map(|entry| &entry.node.value) {
            Some(Value::List(list)) => list.first().and_then(|workload| workload.get("grid")),
            _ => None,
        };
        let grids = [self.tree.get("grid"), of_workload];
        let mut axes = grids
            .into_iter()
            .flatten()
            .flat_map(|grid| grid.node.entries());
        if let Some(axis) = axes.find(|entry| varied(&entry.key)) {
            return Err(problem(
                &axis.span,
                "this is searched for, and cannot vary over the grid too",
                "take it out of [grid], or \"find\" out of the workload",
            ));
        }
        Ok(Some(place))
    }

    /// The same study with a value in that place.
    fn with(&self, place: &Place, value: Value) -> Study {
        let mut study = self.clone();
        let node = Node {
            span: place.span.clone(),
            value,
        };
        let steps: Vec<&str> = place.path.iter().map(String::as_str).collect();
        // The path was found in this very tree.
        let _ = study.tree.set(&steps, place.span.clone(), &node);
        study
    }

    /// Puts "find" at the place of a flow's value, as `pubgauge find --axis` asks, unless the study
    /// searches already.
    ///
    /// # Errors
    /// If there is no flow.
    pub fn search_for(&mut self, axis: Axis) -> Result<(), StudyError> {
        match self.sought()? {
            Some(_) => Ok(()),
            None => self.apply_flag("find", axis.name(), FIND),
        }
    }

    /// Plans the study; see [`Study::plan`]. If it searches, its trials are those that searches begin with.
    pub(crate) fn plan_searches(&self, options: &PlanOptions) -> Result<Option<Plan>, StudyError> {
        let Some(place) = self.sought()? else {
            return Ok(None);
        };
        if let Some(entry) = self.tree.get("compare").or(self.tree.get("ablation")) {
            let hint = "compare limits by their intervals, or take \"find\" out of the workload";
            return Err(StudyError::one(self.sources.problem(
                Some(entry.span.clone()),
                "a study that searches for a limit compares nothing else",
                Some(hint.to_owned()),
            )));
        }
        let axis = place.axis;
        let study = self.with(&place, start(axis));
        let file = study.file()?;
        let rules = self.rules(&file.search)?;
        let mut plan = study.plan_all(options)?;
        let short = match file.phases.measure {
            Some(_) => None,
            None => Some(SHORT_S * SECOND),
        };
        for trial in &mut plan.trials {
            if let Some(short) = short {
                measures(trial, short);
            }
        }
        let measured = |trial: &PlannedTrial| trial.workload.phases.measure.latest();
        plan.resolved = found_again(&plan.resolved, &place);
        plan.search = Some(SearchPlan {
            axis,
            width: rules.width.unwrap_or(0.1),
            trials: rules.trials.unwrap_or(30),
            budget: rules.budget.map_or(480 * SECOND, |span| span.0),
            short: plan.trials.first().map_or(SHORT_S * SECOND, measured),
            long: rules.confirm.map_or(LONG_S * SECOND, |span| span.0),
            place,
            study,
            options: options.clone(),
        });
        Ok(Some(plan))
    }

    fn rules(&self, rules: &SearchFile) -> Result<SearchFile, StudyError> {
        let mut problems = Vec::new();
        let mut wrong = |key: &str, message: &str| {
            let at = self.tree.locate(&["search", key]);
            problems.push(self.sources.problem(Some(at), message.to_owned(), None));
        };
        if rules
            .width
            .is_some_and(|width| !(0.02..=1.0).contains(&width))
        {
            wrong("width", "`width` is a share from 0.02 to 1, such as 0.1");
        }
        if rules
            .trials
            .is_some_and(|trials| !(6..=1000).contains(&trials))
        {
            wrong("trials", "`trials` is a number from 6 to 1000");
        }
        if rules.confirm.is_some_and(|span| span.0 < SECOND) {
            wrong("confirm", "`confirm` is 1s at the least");
        }
        match problems.is_empty() {
            true => Ok(rules.clone()),
            false => Err(StudyError { problems }),
        }
    }
}

impl SearchPlan {
    /// The trial of a search at a load, or flat out; `template` is the plan's trial that the search
    /// belongs to, and `measure` the length of the measurement, ns.
    ///
    /// # Errors
    /// What the study says of a value that is not possible.
    pub fn at(
        &self,
        template: &PlannedTrial,
        load: Option<f64>,
        measure: u64,
    ) -> Result<PlannedTrial, StudyError> {
        let mut trial = match load {
            None => template.clone(),
            Some(load) => {
                let value = match self.axis {
                    Axis::Rate | Axis::Payload => Value::Text(self.axis.written(load)),
                    _ => Value::Integer(load as i64),
                };
                let study = self.study.with(&self.place, value);
                let options = PlanOptions {
                    repeats: Some(1),
                    ..self.options.clone()
                };
                // Workloads do not depend on systems, but for how many brokers there are.
                let same = |trial: &PlannedTrial| {
                    trial.brokers == template.brokers && trial.axes == template.axes
                };
                let plan = study.plan_all(&options)?;
                let one = plan.trials.into_iter().find(same);
                // What profiles and systems made of the settings does not depend on the load.
                PlannedTrial {
                    workload: one.map_or(template.workload.clone(), |trial| trial.workload),
                    ..template.clone()
                }
            }
        };
        let written = match load {
            Some(load) => self.axis.written(load),
            None => "max".to_owned(),
        };
        trial.cell = format!("{} / {}={written}", trial.cell, self.axis.name());
        trial.axes.push((self.axis.name().to_owned(), written));
        measures(&mut trial, measure);
        Ok(trial)
    }
}

/// Sets the length of a trial's measurement, ns.
fn measures(trial: &mut PlannedTrial, ns: u64) {
    let mut workload = (*trial.workload).clone();
    workload.phases.measure = Until::Time(ns);
    trial.workload = workload.into();
}

/// What a search begins with.
fn start(axis: Axis) -> Value {
    match axis {
        Axis::Rate => Value::Text("max".into()),
        Axis::Payload => Value::Text(axis.written(axis.range().0)),
        _ => Value::Integer(1),
    }
}

/// The places of "find" below a node.
fn collect(node: &Node, path: &mut Vec<String>, places: &mut Vec<Place>) {
    let mut below = |step: String, node: &Node| {
        path.push(step);
        collect(node, path, places);
        path.pop();
    };
    match &node.value {
        Value::List(list) => {
            for (nth, node) in list.iter().enumerate() {
                below(nth.to_string(), node);
            }
        }
        Value::Table(entries) => {
            for entry in entries {
                below(entry.key.clone(), &entry.node);
            }
        }
        Value::Text(text) if text == FIND => {
            if let Some(axis) = path.last().and_then(|key| Axis::named(key)) {
                places.push(Place {
                    axis,
                    path: path.clone(),
                    span: node.span.clone(),
                });
            }
        }
        _ => {}
    }
}

/// The resolved study with "find" in its place again.
fn found_again(resolved: &str, place: &Place) -> String {
    let mut study: toml::Value = match toml::from_str(resolved) {
        Ok(study) => study,
        Err(_) => return resolved.to_owned(),
    };
    let mut at = Some(&mut study);
    for step in &place.path {
        at = at.and_then(|value| match step.parse::<usize>() {
            Ok(nth) => value.get_mut(nth),
            Err(_) => value.get_mut(step.as_str()),
        });
    }
    if let Some(value) = at {
        *value = toml::Value::String(FIND.into());
    }
    toml::to_string(&study).unwrap_or_else(|_| resolved.to_owned())
}
