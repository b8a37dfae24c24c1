//! What a table is made of.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its name, for example `trials`.
    pub name: &'static str,
    pub columns: Vec<Column>,
    /// Its rows, each as long as `columns`; null where nothing was measured or is known.
    pub rows: Vec<Vec<Value>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, which ends in the unit.
    pub name: String,
    /// The type of its cells.
    pub kind: CellType,
}

/// The type of the cells of a column, except for empty ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellType {
    Text,
    /// A whole number.
    Integer,
    /// A number, finite.
    Real,
    /// True or false.
    Flag,
}
