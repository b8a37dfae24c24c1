//! The data of the charts, as `page.js` reads it.

use serde::Serialize;
use serde_json::Value;

use super::html::in_script;
use crate::charts::Chart;

/// Figures that are drawn together, with the cells that their rows belong to. The rows themselves stand in elements of their
/// own ([`rows`]), because a page of many trials shows few of its figures.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Drawn<'a> {
    pub(super) cells: Vec<DrawnCell<'a>>,
    pub(super) figures: Vec<&'a Chart>,
    pub(super) flat_out: bool,
}

/// A cell that rows of figures belong to.
#[derive(Serialize)]
pub(super) struct DrawnCell<'a> {
    /// The first value of its rows; unique among the cells.
    pub(super) label: &'a str,
    /// Its name beside other cells of its point.
    pub(super) row: &'a str,
    /// Number of the varied load, from 0; one point is drawn at a time.
    pub(super) point: usize,
    /// Number of its colour, from 0.
    pub(super) colour: usize,
    /// Whether it is the reference broker.
    pub(super) reference: bool,
}

impl<'a> Drawn<'a> {
    /// Figures of one point, with a cell of its own colour for each of the `labels`.
    pub(super) fn of_rows(
        labels: impl IntoIterator<Item = &'a str>,
        figures: Vec<&'a Chart>,
    ) -> Self {
        let cell = |(nth, label)| DrawnCell {
            label,
            row: label,
            point: 0,
            colour: nth,
            reference: false,
        };
        Drawn {
            cells: labels.into_iter().enumerate().map(cell).collect(),
            figures,
            flat_out: false,
        }
    }

    /// The cells and figures as JSON for a script element.
    pub(super) fn json(&self) -> String {
        in_script(&serde_json::to_string(self).expect("figures are plain data"))
    }
}

/// Rows that begin with the same two values: those, then the rest of each row.
type Group<'a> = (&'a [Value], Vec<&'a [Value]>);

/// The rows of a figure as JSON for a script element. Neighbours that begin with the same two values, row and verdict, stand
/// together: `[[[row, verdict], [[...], ...]], ...]`.
pub(super) fn rows(figure: &Chart) -> String {
    let groups = figure.rows.chunk_by(|a, b| a[..2] == b[..2]);
    let groups = groups.map(|rows| (&rows[0][..2], rows.iter().map(|row| &row[2..]).collect()));
    let groups: Vec<Group<'_>> = groups.collect();
    in_script(&serde_json::to_string(&groups).expect("rows are plain data"))
}
