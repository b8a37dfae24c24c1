//! The cells of a study: which systems, settings and values of which grid each workload is crossed with.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;

use pubgauge_setup::Setup;
use pubgauge_strict_toml::{Entry, Node, Problem, TomlValue};
use pubgauge_workload::Workload;

use crate::file::{NamedSettings, StudyFile, Systems, WorkloadFile};
use crate::known::PlanOptions;
use crate::load::OpenLoad;
use crate::planned::{MAX_TRIALS, PlannedTrial};
use crate::profile;
use crate::resolve::own_settings;
use crate::study::{Study, path_fault};
use crate::tree::{PathFault, full_path, put_value};
use crate::unknown_name::{no_such_system, not_of_study};

/// Keys at the top of a study that no grid varies.
const FIXED: [&str; 13] = [
    "name",
    "question",
    "systems",
    "search",
    "compare",
    "ablation",
    "repeats",
    "order",
    "seed",
    "grid",
    "criterion",
    "claim",
    "scale",
];

/// Keys of a workload with which a path of its own grid may begin; each is also a key at the top of
/// a study.
const OF_WORKLOAD: [&str; 5] = ["flow", "phases", "topology", "client", "testbed"];

/// One combination of a grid's values, and the workloads that are run with it. The tree with the values in place is
/// made when it is needed: a grid may have 100,000 of them.
pub(crate) struct Cell<'a> {
    pub(crate) axes: Vec<(String, String)>,
    /// The values and where they go.
    set: Vec<(Rc<[String]>, &'a Node)>,
    /// Indices in the study's list of workloads.
    pub(crate) workloads: Rc<[usize]>,
}

impl Cell<'_> {
    /// The study of this cell; `bare` is [`Study::without_grids`].
    ///
    /// # Errors
    /// Which axis leads nowhere, and why.
    pub(crate) fn tree(&self, bare: &Node) -> Result<Node, (usize, PathFault)> {
        let mut tree = bare.clone();
        for (axis, (path, value)) in self.set.iter().enumerate() {
            let steps: Vec<&str> = path.iter().map(String::as_str).collect();
            put_value(&mut tree, &steps, value.span.clone(), value)
                .map_err(|fault| (axis, fault))?;
        }
        Ok(tree)
    }
}

/// The systems and settings that one workload is crossed with.
pub(crate) struct Crossed {
    pub(crate) systems: Vec<String>,
    pub(crate) variants: Vec<NamedSettings>,
    pub(crate) repeats: u32,
}

impl Study {
    /// Every combination of the values of the study's grid, and of each grid that a workload has of its own.
    pub(crate) fn cells(&self, problems: &mut Vec<Problem>) -> Vec<Cell<'_>> {
        let all = self.tree.list("workload");
        let own = |nth: &usize| all[*nth].get("grid");
        let (with, without): (Vec<usize>, Vec<usize>) =
            (0..all.len()).partition(|nth| own(nth).is_some());
        let grid = self.tree.get("grid");
        let mut cells = match (without.is_empty(), grid) {
            (true, None) => Vec::new(),
            (true, Some(grid)) => {
                let message = "every workload has a grid of its own: this one counts for nothing";
                let at = Some(grid.span.clone());
                problems.push(self.sources.problem(at, message, None));
                Vec::new()
            }
            (false, grid) => self.combinations(grid, None, without, problems),
        };
        for nth in with {
            let workload = Some((nth, all[nth].name().unwrap_or_default()));
            cells.extend(self.combinations(own(&nth), workload, vec![nth], problems));
        }
        cells
    }

    /// The tree without its grids, whose values are in the cells.
    pub(crate) fn without_grids(&self) -> Node {
        let mut tree = self.tree.clone();
        tree.leave_out("grid");
        for workload in tree.list_mut("workload").into_iter().flatten() {
            workload.leave_out("grid");
        }
        tree
    }

    /// Every combination of a grid's values; `own` is the workload whose own grid it is.
    fn combinations<'a>(
        &'a self,
        grid: Option<&'a Entry>,
        own: Option<(usize, &str)>,
        workloads: Vec<usize>,
        problems: &mut Vec<Problem>,
    ) -> Vec<Cell<'a>> {
        let bare = self.without_grids();
        let mut cells = vec![Cell {
            axes: Vec::new(),
            set: Vec::new(),
            workloads: workloads.into(),
        }];
        let members = cells[0].workloads.clone();
        // By their names, as a run's own copy of its study has them: cells are named by them.
        let mut axes: Vec<&Entry> = grid
            .map_or(&[][..], |grid| grid.node.entries())
            .iter()
            .collect();
        axes.sort_by(|a, b| a.key.cmp(&b.key));
        for axis in axes {
            let mut wrong = |message: String| {
                problems.push(self.sources.problem(Some(axis.span.clone()), message, None));
            };
            let TomlValue::List(values) = &axis.node.value else {
                continue;
            };
            if values.is_empty() {
                wrong(format!("the axis `{}` has no values", axis.key));
                continue;
            }
            // Cells are named by their values.
            let mut names = BTreeSet::new();
            if let Some(twice) = values.iter().find(|value| !names.insert(value_text(value))) {
                let (key, value) = (&axis.key, value_text(twice));
                wrong(format!("the axis `{key}` has `{value}` twice"));
                continue;
            }
            let first = axis.key.split('.').next().unwrap_or_default();
            if FIXED.contains(&first) {
                wrong(format!("`{}` cannot vary within a study", axis.key));
                continue;
            }
            if cells.len().saturating_mul(values.len()) > MAX_TRIALS {
                wrong(format!("the grid makes more than {MAX_TRIALS} trials"));
                return cells;
            }
            let path: Rc<[String]> = path_of(&axis.key, own).into();
            let all = self.tree.list("workload");
            let own_value = |nth: &&usize| own.is_none() && overrides(&all[**nth], &path);
            if let Some(nth) = members.iter().find(own_value) {
                wrong(format!(
                    "workload `{}` has its own `{}`, which this axis does not reach: leave it out there, or give the \
                     workload a `grid` of its own",
                    all[*nth].text("name").unwrap_or_default(),
                    axis.key
                ));
                continue;
            }
            let mut next = Vec::with_capacity(cells.len() * values.len());
            for cell in &cells {
                for value in values {
                    let one_more = cell.axes.len() + 1;
                    let mut axes = Vec::with_capacity(one_more);
                    axes.extend_from_slice(&cell.axes);
                    axes.push((axis.key.clone(), value_text(value)));
                    let mut set = Vec::with_capacity(one_more);
                    set.extend_from_slice(&cell.set);
                    set.push((path.clone(), value));
                    next.push(Cell {
                        axes,
                        set,
                        workloads: cell.workloads.clone(),
                    });
                }
            }
            // Where a path leads does not depend on the values of other cells.
            if let Some(Err((_, fault))) = next.first().map(|cell| cell.tree(&bare)) {
                wrong(path_fault(&axis.key, &fault));
                return cells;
            }
            cells = next;
        }
        cells
    }

    /// Checks the names of systems and settings in workloads.
    pub(crate) fn check_crossing(
        &self,
        base: &StudyFile,
        options: &PlanOptions,
        problems: &mut Vec<Problem>,
    ) {
        let variants = base.variants();
        let settings: Vec<&str> = variants.iter().map(NamedSettings::shown_name).collect();
        for (nth, workload) in base.workload.iter().enumerate() {
            let number = nth.to_string();
            let mut wrong =
                |key: &str, at: Option<usize>, message: String, hint: Option<String>| {
                    let at = at.map(|at| at.to_string());
                    let mut path = vec!["workload", &number, key];
                    path.extend(at.as_deref());
                    problems.push(self.problem(&self.tree, &path, message, hint));
                };
            let lists = [
                ("systems", &workload.systems),
                ("settings", &workload.settings),
            ];
            for (key, names) in lists {
                if names.as_ref().is_some_and(Vec::is_empty) {
                    let message = format!("a workload with no {key} is never run");
                    let hint = "`repeats = 0` leaves a workload out";
                    wrong(key, None, message, Some(hint.into()));
                }
            }
            for (at, name) in workload.systems.iter().flatten().enumerate() {
                if let Some(Systems::Many(listed)) = &base.systems {
                    if !listed.contains(name) {
                        let message = not_of_study(name, "no system", listed);
                        wrong("systems", Some(at), message, None);
                    }
                } else if !options.known.all.is_empty()
                    && !name.contains("://")
                    && !options.known.all.contains(name)
                {
                    let (message, hint) = no_such_system(name, &options.known.all);
                    wrong("systems", Some(at), message, Some(hint));
                }
            }
            for (at, name) in workload.settings.iter().flatten().enumerate() {
                if !settings.contains(&name.as_str()) {
                    let message = not_of_study(name, "the name of no settings", &settings);
                    wrong("settings", Some(at), message, None);
                }
            }
        }
    }
}

impl Crossed {
    /// Its number of trials in one cell.
    pub(crate) fn trials(&self) -> u64 {
        let cells = self.systems.len().saturating_mul(self.variants.len()) as u64;
        cells.saturating_mul(u64::from(self.repeats))
    }
}

/// The systems and settings of the run that a workload is crossed with; or why it is left out.
pub(crate) fn crossed(
    workload: &WorkloadFile,
    systems: &[String],
    variants: &[NamedSettings],
    repeats: impl Fn(Option<u32>) -> u32,
) -> Result<Crossed, String> {
    let named = |names: &Option<Vec<String>>, name: &str| {
        names
            .as_ref()
            .is_none_or(|names| names.iter().any(|n| n == name))
    };
    if workload.repeats == Some(0) {
        return Err(format!(
            "workload `{}` is left out: repeats = 0",
            workload.name
        ));
    }
    let kept: Vec<String> = (systems.iter())
        .filter(|system| named(&workload.systems, system))
        .cloned()
        .collect();
    if kept.is_empty() {
        let names = workload.systems.iter().flatten();
        return Err(format!(
            "workload `{}` is left out: it is for {} alone",
            workload.name,
            names.map(String::as_str).collect::<Vec<_>>().join(", ")
        ));
    }
    Ok(Crossed {
        systems: kept,
        variants: (variants.iter())
            .filter(|variant| named(&workload.settings, variant.shown_name()))
            .cloned()
            .collect(),
        repeats: repeats(workload.repeats),
    })
}

/// How many trials are looked back for the same settings.
const KNOWN: usize = 64;

/// The trials of one workload in one cell, whose load may not be known before the run; `placed` has the brokers of a system, and the workload over them.
pub(crate) fn add_trials<'a>(
    study: &StudyFile,
    (nth, load): (usize, Option<&Arc<OpenLoad>>),
    cell: &Cell<'_>,
    crossed: &Crossed,
    placed: impl Fn(&str) -> (u32, &'a Arc<Workload>),
    trials: &mut Vec<PlannedTrial>,
) {
    let file = &study.workload[nth];
    let setup = study.setup_of(file);
    let own = own_settings(file);
    for repeat in 1..=crossed.repeats {
        for variant in &crossed.variants {
            let settings_name = variant.shown_name();
            let profile = variant.profile.as_deref().and_then(profile::profile);
            let settings = match profile {
                Some(profile) => profile.ask.overridden_by(&variant.ask),
                None => variant.ask.clone(),
            };
            // Most cells ask for what those before them do.
            let known = trials.iter().rev().take(KNOWN);
            let known = known.map(|t| &t.settings).find(|s| ***s == settings);
            let settings = known.cloned().unwrap_or_else(|| settings.into());
            for system in &crossed.systems {
                let (brokers, workload) = placed(system);
                let mut id = format!("{system} / {settings_name} / {}", workload.name);
                for (path, value) in &cell.axes {
                    // Writing to a string cannot fail.
                    let _ = write!(id, " / {path}={value}");
                }
                trials.push(PlannedTrial {
                    order: 0,
                    listed: trials.len() as u32,
                    cell: id,
                    system: system.clone(),
                    settings_name: settings_name.to_owned(),
                    profile: variant.profile.clone(),
                    wish: profile.map(|p| p.wish.clone().into()),
                    not_granted: Vec::new(),
                    settings: settings.clone(),
                    of_flows: own.iter().map(|own| settings.overridden_by(own)).collect(),
                    axes: cell.axes.clone(),
                    setup: Setup {
                        brokers,
                        ..setup.clone()
                    },
                    workload: workload.clone(),
                    repeat,
                    load: load.cloned(),
                });
            }
        }
    }
}

/// Whether a workload has a value of its own in place of the study's at `path`.
fn overrides(workload: &Node, path: &[String]) -> bool {
    let first = path.first().map(String::as_str).unwrap_or_default();
    if !["phases", "topology", "client", "testbed"].contains(&first) {
        return false;
    }
    // A network or hosts of its own are in place of all of the study's.
    let testbed = workload.get("testbed").map(|entry| &entry.node);
    let has = |key: &str| testbed.is_some_and(|testbed| testbed.get(key).is_some());
    if let [_, second, ..] = path
        && ["network", "hosts"].contains(&second.as_str())
        && first == "testbed"
    {
        return has("network") || has("hosts");
    }
    let mut node = workload;
    for key in path {
        match node.get(key) {
            Some(entry) => node = &entry.node,
            // A list or a plain value of its own is in place of all of the study's.
            None => return !matches!(node.value, TomlValue::Table(_)),
        }
    }
    true
}

/// The path that an axis sets; an axis of a workload's own grid begins in that workload.
fn path_of(key: &str, own: Option<(usize, &str)>) -> Vec<String> {
    let mut steps: Vec<String> = full_path(key).split('.').map(str::to_owned).collect();
    let Some((nth, name)) = own else {
        return steps;
    };
    let number = nth.to_string();
    if OF_WORKLOAD.contains(&steps[0].as_str()) {
        steps.insert(0, "workload".into());
    }
    if steps[0] == "workload" {
        let named = steps.len() > 1 && (steps[1] == name || steps[1] == number);
        if named {
            steps[1] = number
        } else {
            steps.insert(1, number)
        }
    }
    steps
}

/// A value of an axis for names and tables.
fn value_text(node: &Node) -> String {
    match &node.value {
        TomlValue::Text(text) => text.clone(),
        _ => node.to_json().to_string(),
    }
}
