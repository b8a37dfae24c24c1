//! Trials grouped by workload and cell.

use pubgauge_figures::{Results, Trial};
use pubgauge_quantities::lists::grouped;

use crate::cell::is_reference;
pub use crate::cell::{Carried, Cell, Doubt, REFERENCE_NAMES};
pub use crate::metric::Bound;
use crate::naming::{self, GridPoint};

/// Everything that ran, workload by workload in the order of the first trial of each.
pub struct Summary<'a> {
    pub workloads: Vec<WorkloadCells<'a>>,
    /// The systems by name, the reference broker last; the index selects the colour.
    pub systems: Vec<String>,
}

/// One workload over all systems.
pub struct WorkloadCells<'a> {
    pub name: String,
    /// Whether all its traffic is flat out: throughput is then the main figure.
    pub flat_out: bool,
    /// The points of the varied load: at least one, an empty one where nothing was varied.
    pub points: Vec<GridPoint>,
    /// Its cells, point by point, in the order of the systems.
    pub cells: Vec<Cell<'a>>,
}

impl<'a> WorkloadCells<'a> {
    /// The cells of a point, which are compared with each other.
    pub fn cells_at(&self, point: usize) -> impl Iterator<Item = &Cell<'a>> {
        self.cells.iter().filter(move |cell| cell.point == point)
    }
}

impl<'a> Summary<'a> {
    /// Groups the trials of a run that count, without those of searches: these differ in load, so that they are
    /// not repeats of a cell, and the search is shown in their place.
    pub fn summarize(results: &'a Results) -> Summary<'a> {
        let names = results.trials.iter().map(|t| t.system.name.clone());
        // Sorted by name, so that the random order of trials does not change a system's colour.
        let mut systems: Vec<String> = names.collect();
        systems.sort_by_key(|name| (is_reference(name), name.clone()));
        systems.dedup();
        let place = |system: &str| systems.iter().position(|name| name == system);
        let workload = |(name, trials): (&String, Vec<&'a Trial>)| {
            let trials = trials.into_iter().map(|t| ((&t.cell, &t.system.name), t));
            let cells = grouped(trials)
                .into_iter()
                .map(|((_, system), trials)| Cell {
                    system_index: place(system).unwrap_or_default(),
                    ..Cell::from_repeats(trials)
                });
            let mut cells: Vec<Cell<'a>> = cells.collect();
            let points = naming::name(&mut cells);
            cells.sort_by_key(|cell| (cell.point, cell.system_index, cell.row.clone()));
            WorkloadCells {
                name: name.clone(),
                flat_out: cells.iter().all(Cell::flat_out),
                points,
                cells,
            }
        };
        let compared = results.counted();
        let compared = compared.filter(|trial| !results.is_of_search(trial));
        let by_name = grouped(compared.map(|trial| (&trial.workload.name, trial)));
        let workloads = by_name.into_iter().map(workload).collect();
        Summary { workloads, systems }
    }

    /// Repeats that are not valid, with their workload and cell.
    pub fn doubtful(&self) -> Vec<(&WorkloadCells<'a>, &Cell<'a>, Doubt<'a>)> {
        let cells = self.workloads.iter().flat_map(|workload| {
            let cells = workload.cells.iter();
            cells.map(move |cell| (workload, cell))
        });
        let doubtful = cells.flat_map(|(workload, cell)| {
            let groups = cell.doubtful().into_iter();
            groups.map(move |group| (workload, cell, group))
        });
        doubtful.collect()
    }

    /// The place of a system in [`Summary::systems`].
    pub fn position(&self, system: &str) -> usize {
        let place = self.systems.iter().position(|name| name == system);
        place.unwrap_or_default()
    }
}
