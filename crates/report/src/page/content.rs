//! The content of the page.

use pubgauge_figures::Results;

use crate::answers::WorkloadAnswer;
use crate::charts::Chart;
use crate::searches::Sought;
use crate::summary::{Summary, WorkloadCells};

/// The content of the page.
pub(super) struct Page<'a> {
    pub(super) results: &'a Results,
    pub(super) summary: Summary<'a>,
    /// Of each workload.
    pub(super) answers: Vec<WorkloadAnswer>,
    /// Of each workload.
    pub(super) figures: Vec<Vec<Chart>>,
    /// Searches for a limit.
    pub(super) searches: Vec<Sought<'a>>,
    /// The trials of each search.
    pub(super) searched: Vec<WorkloadCells<'a>>,
    /// Of each search.
    pub(super) search_figures: Vec<Vec<Chart>>,
}

impl Page<'_> {
    /// The workloads that are compared, and the trials of each search.
    pub(super) fn measured(&self) -> impl Iterator<Item = &WorkloadCells<'_>> {
        self.summary.workloads.iter().chain(&self.searched)
    }

    /// Whether the reference broker ran.
    pub(super) fn reference(&self) -> bool {
        let mut cells = self.measured().flat_map(|workload| &workload.cells);
        cells.any(|cell| cell.reference)
    }
}
