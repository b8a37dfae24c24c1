//! The loads of a study that are not known before the run.

use std::collections::BTreeMap;
use std::sync::Arc;

use pubgauge_strict_toml::{InvalidInput, Node, Problem};

use crate::cells::Cell;
use crate::load::{OpenLoad, ShareOfLimit};
use crate::places::{FIND, ValuePosition, find_places};
use crate::planned::PlannedTrial;
use crate::study::Study;
use crate::unknown_name::not_of_study;

impl Study {
    /// Whether a value of the study is searched for.
    pub(crate) fn seeks(&self) -> bool {
        find_places(&self.tree)
            .iter()
            .any(|place| place.text == FIND)
    }

    /// The unknown value of each workload, for each of these cells; and the indices of the
    /// workloads that are searched, in the study's list.
    pub(crate) fn open_loads(
        &self,
        cells: &[Cell<'_>],
        bare: &Node,
        seed: u64,
        problems: &mut Vec<Problem>,
    ) -> (Vec<BTreeMap<usize, Arc<OpenLoad>>>, Vec<usize>) {
        let written = find_places(&self.tree);
        let sought: Vec<&ValuePosition> = written.iter().filter(|p| p.text == FIND).collect();
        let mut found = Vec::new();
        let of_cell = |cell: &Cell<'_>| {
            let here = |place: &&ValuePosition| cell.workloads.contains(&place.workload);
            // Errors in its paths are reported when it is planned.
            let tree = cell.tree(bare).unwrap_or_else(|_| bare.clone());
            let open = find_places(&tree);
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
                            sources: self.sources.clone(),
                            tree: tree.clone(),
                            folder: self.folder.clone(),
                            scale: self.scale.clone(),
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

    /// The base of a value that is a share; `None` if it is searched for. An error has a message and a hint.
    fn read(
        &self,
        place: &ValuePosition,
        sought: &[&ValuePosition],
    ) -> Result<Option<ShareOfLimit>, (String, Option<String>)> {
        let problem = |message: String, hint: Option<String>| Err((message, hint));
        let key = place.axis.name();
        if place.text == FIND {
            // A value of a grid is not written in the flow.
            return if sought.iter().any(|p| p.span == place.span) {
                Ok(None)
            } else {
                problem(
                    "a grid does not search".into(),
                    Some(format!("write {key} = \"find\" in the flow")),
                )
            };
        }
        let example = format!(
            "write it as {key} = \"80% of NAME\", where NAME is a workload with {key} = \"find\""
        );
        let share: ShareOfLimit = match place.text.parse() {
            Ok(share) => share,
            Err(error) => return problem(error.to_string(), Some(example)),
        };
        let workloads = self.tree.list("workload").iter();
        let names: Vec<&str> = workloads.map(|w| w.name().unwrap_or_default()).collect();
        let Some(of) = names.iter().position(|name| *name == share.of) else {
            let message = not_of_study(&share.of, "no workload", &names);
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
    pub(crate) fn check_shares(&self, trials: &[PlannedTrial]) -> Result<(), InvalidInput> {
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
        if problems.is_empty() {
            Ok(())
        } else {
            Err(InvalidInput { problems })
        }
    }

    /// A value that is searched for and varies over the grid.
    fn varied_and_sought(&self, cell: &Cell<'_>, place: &ValuePosition) -> Problem {
        let workload = self.tree.list("workload").get(place.workload);
        let own = workload.and_then(|workload| workload.get("grid"));
        let grid = own.or(self.tree.get("grid"));
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
