//! The columns of the table of results, for terminal and page alike.

use pubgauge_figures::figure::{self, Better, Figure, Shown, Unit};
use pubgauge_quantities::shown;

use crate::summary::{Cell, WorkloadCells};

/// A figure with its place in the table.
#[derive(Clone, Copy)]
pub(crate) struct PlacedColumn {
    figure: &'static Figure,
    pub look: figure::FigureColumn,
}

/// The text where there is no figure.
const NONE: &str = "-";

impl PlacedColumn {
    /// Its entry for a row: of counts the sum over all repeats, else the mean over those that are quoted.
    pub fn entry(&self, cell: &Cell<'_>) -> String {
        if self.is_count() {
            return shown::count(self.counts(cell).sum::<f64>() as u64);
        }
        if self.figure.is_statistic() && !cell.quotes_latency() {
            return NONE.into();
        }
        let estimate = cell.estimate(|trial| self.figure.value_in(trial, None, None).ok());
        estimate.map_or(NONE.into(), |estimate| {
            if self.look.has_unit {
                shown::digits(estimate.mean)
            } else {
                self.figure.unit.format(estimate.mean)
            }
        })
    }

    /// Whether every entry above 0 tells of something that went wrong.
    pub fn is_of_failures(&self) -> bool {
        self.is_count() && self.figure.better == Better::Less
    }

    fn is_count(&self) -> bool {
        matches!(self.figure.unit, Unit::Messages | Unit::Deliveries)
    }

    fn counts<'c>(&self, cell: &'c Cell<'_>) -> impl Iterator<Item = f64> + use<'c> {
        let figure = self.figure;
        let counts =
            move |trial: &&pubgauge_figures::Trial| figure.value_in(trial, None, None).ok();
        cell.trials.iter().filter_map(counts)
    }

    fn is_shown(&self, workload: &WorkloadCells<'_>) -> bool {
        let mut cells = workload.cells.iter();
        match self.look.shown {
            Shown::Always => true,
            Shown::IfKnown => cells.any(|cell| self.entry(cell) != NONE),
            Shown::IfAny => cells.any(|cell| self.counts(cell).any(|count| count > 0.0)),
        }
    }
}

/// The columns of a workload's table, after the name of the row and the verdict.
pub(crate) fn columns(workload: &WorkloadCells<'_>) -> Vec<PlacedColumn> {
    let figures = Figure::of_columns().into_iter();
    figures
        .map(|(figure, look)| PlacedColumn { figure, look })
        .filter(|column| column.is_shown(workload))
        .collect()
}
