//! The columns of the table of results, for terminal and page alike.

use pubgauge_figures::Trial;
use pubgauge_figures::figure::per_message;
use pubgauge_quantities::shown;

use crate::cell::passed_on;
use crate::summary::{Cell, WorkloadCells};

pub(crate) struct Column {
    /// Its name, explained in [`crate::glossary::FIGURES`].
    pub name: &'static str,
    /// Its heading in the terminal, in two lines.
    pub head: [&'static str; 2],
    /// Characters that it takes in the terminal.
    pub width: usize,
    /// Width in characters of the narrowest terminal that shows it.
    pub from: usize,
    entries: Entries,
}

/// The entry of a column for a row.
enum Entries {
    Figure(fn(&Cell<'_>) -> String),
    /// A count of failures over all repeats: such a column is shown only if some count is above 0.
    Failures(fn(&Trial) -> u64),
}

impl Column {
    const fn new(
        name: &'static str,
        head: [&'static str; 2],
        width: usize,
        figure: fn(&Cell<'_>) -> String,
    ) -> Column {
        Column {
            name,
            head,
            width,
            from: 0,
            entries: Entries::Figure(figure),
        }
    }

    const fn failures(
        name: &'static str,
        head: [&'static str; 2],
        count: fn(&Trial) -> u64,
    ) -> Column {
        Column {
            name,
            head,
            width: 7,
            from: 0,
            entries: Entries::Failures(count),
        }
    }

    const fn from(self, from: usize) -> Column {
        Column { from, ..self }
    }

    /// Its entry for a row.
    pub fn show(&self, cell: &Cell<'_>) -> String {
        match self.entries {
            Entries::Figure(figure) => figure(cell),
            Entries::Failures(count) => sum(cell, count),
        }
    }

    /// Whether every entry above 0 tells of something that went wrong.
    pub fn is_of_failures(&self) -> bool {
        matches!(self.entries, Entries::Failures(_)) || self.name == "lost"
    }
}

/// All columns, after the name of the row and the verdict.
const COLUMNS: [Column; 15] = [
    Column::new("delivered", ["deliv.", "msgs/s"], 8, |c| {
        mean(c, |t| Some(passed_on(t))).map_or(NONE.into(), shown::rate)
    }),
    Column::new("p50", ["latency", "p50"], 7, |c| latency(c, 0.5)),
    Column::new("p99", ["", "p99"], 7, |c| latency(c, 0.99)),
    Column::new("p99.9", ["", "p99.9"], 7, |c| latency(c, 0.999)),
    Column::new("p99.99", ["", "p99.99"], 7, |c| latency(c, 0.9999)).from(120),
    Column::new("lost", ["", "lost"], 6, |c| sum(c, |t| t.lost)),
    Column::failures("under way", ["under", "way"], |t| t.under_way),
    Column::failures("duplicated", ["", "dupl."], |t| t.duplicated),
    Column::failures("reordered", ["re-", "ordered"], |t| t.reordered),
    Column::failures("refused", ["", "refused"], |t| t.refused),
    Column::failures("not connected", ["not", "conn."], |t| t.not_connected),
    Column::failures("not sent", ["not", "sent"], |t| t.not_sent),
    Column::new("system CPU", ["CPU", "system"], 6, |c| {
        cpu(c, |t| t.system_cpu_s)
    }),
    Column::new("client CPU", ["µs/msg", "client"], 6, |c| {
        cpu(c, |t| Some(t.client_cpu_s.total()))
    }),
    Column::new("system memory", ["system", "memory"], 8, |c| {
        let bytes = mean(c, |t| Some(t.system_rss_bytes? as f64));
        bytes.map_or(NONE.into(), |bytes| shown::bytes(bytes as u64))
    })
    .from(100),
];

/// The text where there is no figure.
const NONE: &str = "-";

/// Columns that are shown even where no row has a figure, because its absence matters.
const ALWAYS: [&str; 4] = ["delivered", "p50", "p99", "system CPU"];

/// The columns of a workload's table: those that have a figure.
pub(crate) fn columns(workload: &WorkloadCells<'_>) -> Vec<&'static Column> {
    let figures = |column: &Column| workload.cells.iter().any(|cell| column.show(cell) != NONE);
    let shown = |column: &&Column| match column.entries {
        Entries::Failures(count) => workload.any(count),
        Entries::Figure(_) => ALWAYS.contains(&column.name) || figures(column),
    };
    COLUMNS.iter().filter(shown).collect()
}

fn mean(cell: &Cell<'_>, figure: fn(&Trial) -> Option<f64>) -> Option<f64> {
    cell.estimate(figure).map(|estimate| estimate.mean)
}

fn sum(cell: &Cell<'_>, count: fn(&Trial) -> u64) -> String {
    shown::count(cell.trials.iter().map(|trial| count(trial)).sum())
}

fn cpu(cell: &Cell<'_>, seconds: fn(&Trial) -> Option<f64>) -> String {
    let figure = cell.estimate(|trial| per_message(seconds(trial)?, trial));
    figure.map_or(NONE.into(), |estimate| shown::digits(estimate.mean))
}

fn latency(cell: &Cell<'_>, quantile: f64) -> String {
    if !cell.quotes_latency() {
        return NONE.into();
    }
    let figure = cell.estimate(|t| Some(t.latency_ns.quotable(quantile)? as f64));
    figure.map_or(NONE.into(), |estimate| shown::time(estimate.mean))
}
