//! The parts of a table.

use std::error::Error;

use serde_json::Value;

pub struct Table<'a> {
    /// Its name, for example `trials`.
    pub name: &'static str,
    pub columns: Vec<ExportColumn>,
    /// Its rows.
    pub rows: Rows<'a>,
}

/// Rows, each as long as there are columns, with null where nothing was measured or is known. They are made one after the
/// other: what a table takes does not grow with its length.
pub type Rows<'a> = Box<dyn Iterator<Item = Result<Vec<Value>, RowError>> + 'a>;

/// Why the rows that follow cannot be made: what they come from cannot be read.
pub type RowError = Box<dyn Error + Send + Sync>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportColumn {
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
